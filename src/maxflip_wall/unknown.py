"""Recognises files that are no supported model file. Most other model formats run code when opened.

Decided by content, because names are easily changed. Nothing is unpickled, and only the beginning of compressed data is
unpacked.
"""

import lzma
import pickletools
import re
import zlib
from collections.abc import Callable

from maxflip_wall.allowlist import ALLOWED
from maxflip_wall.files import Refused, Unreadable

BEGINNING = 1 << 20  # bytes examined in searches that do not need the whole file
ENOUGH = 10_000  # writes of pickletools, two or more per opcode, after which data count as a pickle
RUNS = "which runs code when loaded"
YAML = rb"""(?mx) !!python/ | tag:yaml\.org,2002:python | ^%TAG[ \t]
    | ^ (?: --- | [ ]*+ - | [ ]*+ (?: -[ ]+ )? ["'\w.]{1,200} : ) [ ]++ !{1,2} [\w<]"""


def unknown_file(data: bytes) -> Exception:
    """The exception for `data`: Refused if it could run code, Unreadable if its format is unknown."""
    for start, kind in ALLOWED["first_bytes"].items():
        if data.startswith(start.encode("latin-1")):
            return Refused(f"looks like {kind}")
    if _is_pickle(data):
        return Refused(f"looks like a pickle, {RUNS}")
    if re.search(YAML, data[:BEGINNING]):
        return Refused(f"looks like YAML with tags, {RUNS}")
    if any(map(_unpacked, WITH_HEADER, [data] * len(WITH_HEADER))):
        return Refused(f"looks like a compressed file, perhaps a joblib pickle, {RUNS}")
    for unpack in WITHOUT_HEADER:  # without a header, any data can be unpacked to something
        content = _unpacked(unpack, data)
        if re.match(rb"\x80[\x02-\x05]", content) or (content and _is_pickle(content)):
            return Refused(f"looks like a compressed pickle, {RUNS}")
    return Unreadable("neither a .pt2, a .skops nor another known kind of model file")


class _Tally:
    """Counts writes; raises OverflowError after ENOUGH of them."""

    count = 0

    def write(self, _: str) -> None:
        self.count += 1
        if self.count > ENOUGH:
            raise OverflowError


def _is_pickle(data: bytes) -> bool:
    """Whether the data parse as pickle opcodes. The oldest pickles have no signature; parsing runs no code."""
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
