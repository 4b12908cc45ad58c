"""What a file that is no model of a known kind seems to be: most other ways to keep a model run code when opened.

Told by content, as names are easily changed. Nothing is unpickled, and of compressed data only the beginning unpacked.
"""

import lzma
import pickletools
import re
import zlib
from collections.abc import Callable

from maxflip_wall.allowlist import ALLOWED
from maxflip_wall.files import Refused, Unreadable

BEGINNING = 1 << 20  # bytes that are looked at where not all of them need be
ENOUGH = 10_000  # parts of lines that pickletools writes, two or more per opcode
RUNS = "which runs code when loaded"
YAML = rb"""(?mx) !!python/ | tag:yaml\.org,2002:python | ^%TAG[ \t]
    | ^ (?: --- | [ ]*+ - | [ ]*+ (?: -[ ]+ )? ["'\w.]{1,200} : ) [ ]++ !{1,2} [\w<]"""


def stranger(data: bytes) -> Exception:
    """Refused if `data` could be a program, Unreadable if it is nothing known."""
    for start, kind in ALLOWED["first_bytes"].items():
        if data.startswith(start.encode("latin-1")):
            return Refused(f"looks like {kind}")
    if _is_pickle(data):
        return Refused(f"looks like a pickle, {RUNS}")
    if re.search(YAML, data[:BEGINNING]):
        return Refused(f"looks like YAML with tags, {RUNS}")
    if any(map(_unpacked, WITH_HEADER, [data] * len(WITH_HEADER))):
        return Refused(f"looks like a compressed file, perhaps a joblib pickle, {RUNS}")
    for unpack in WITHOUT_HEADER:  # these make something of anything
        content = _unpacked(unpack, data)
        if re.match(rb"\x80[\x02-\x05]", content) or (content and _is_pickle(content)):
            return Refused(f"looks like a compressed pickle, {RUNS}")
    return Unreadable("neither a .pt2, a .skops nor another known kind of model file")


class _Tally:
    """Counts what is written to it, up to enough."""

    count = 0

    def write(self, _: str) -> None:
        self.count += 1
        if self.count > ENOUGH:
            raise OverflowError


def _is_pickle(data: bytes) -> bool:
    """Do its opcodes hold together, from the first on? The oldest pickles have no signature; a walk runs nothing."""
    shown = _Tally()
    try:
        pickletools.dis(data, shown)  # type: ignore[arg-type]
    except Exception:
        return shown.count > ENOUGH
    return True


def _raw_lzma(kind: int) -> Callable[[bytes], bytes]:
    return lambda data: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[{"id": kind}]).decompress(data, BEGINNING)


WITH_HEADER: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: zlib.decompressobj().decompress(data, BEGINNING),
    lambda data: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=1 << 28).decompress(data, BEGINNING),
)
WITHOUT_HEADER: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: zlib.decompressobj(wbits=-15).decompress(data, BEGINNING),
    _raw_lzma(lzma.FILTER_LZMA1),
    _raw_lzma(lzma.FILTER_LZMA2),
)


def _unpacked(unpack: Callable[[bytes], bytes], data: bytes) -> bytes:
    try:
        return unpack(data[:BEGINNING])
    except (lzma.LZMAError, zlib.error, EOFError):
        return b""
