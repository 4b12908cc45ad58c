"""Opening of files: regular ones only, with a sentence for each problem of a path.

The inputs of a plan are read once and completely, so that their hashes are of the bytes that were solved. They are not
memory-mapped, because a map changes with its file.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from maxflip._util.messages import closest
from maxflip.errors import InputError, OutputError, ResourceError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one slash: a Path has lost the second


class Origin(NamedTuple):
    """An input file.   sha256: of the bytes that were read, not of the file as it is now"""

    path: Path
    sha256: str


@dataclass(frozen=True, eq=False)
class Opened:
    """A file that was read completely.   source: its name in messages"""

    path: Path
    source: str
    data: bytes

    def origin(self) -> Origin:
        return Origin(self.path, hashlib.sha256(self.data).hexdigest())


def read_file(path: str | Path, source: str, most: int = -1) -> Opened:
    """Read a regular file.   source: its name in messages   most: number of bytes, at most; -1: all"""
    with open_file(path, source) as file:
        return Opened(Path(path), source, read_from(file, source, most))


def read_from(file: BinaryIO, source: str, most: int = -1) -> bytes:
    try:
        return file.read(most)
    except MemoryError as error:
        raise ResourceError(
            f"{source}: is too large for the memory of this machine: files are read completely."
        ) from error


@contextmanager
def open_file(path: str | Path, source: str) -> Iterator[BinaryIO]:
    """Open a regular file for reading. Others are refused before they are opened, since a FIFO would hang."""
    if is_url(str(path)) or is_url(source):
        raise InputError(f"{source}: is a URL, and nothing is fetched. Download the file and give its path.")
    place = Path(path)
    try:
        mode = _mode(place, source)
        if stat.S_ISDIR(mode):
            raise InputError(f"{source}: is a folder; wanted a file.")
        if not stat.S_ISREG(mode):
            raise InputError(f"{source}: is a pipe, socket or device; wanted a regular file.")
        with place.open("rb") as file:
            yield file
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{source}: {missing_file(place, source)}") from None
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{source}: cannot be read: {reason}. Check its permissions and its disk.") from error


def _mode(place: Path, source: str) -> int:
    try:
        return os.stat(place).st_mode
    except ValueError as error:  # a NUL in the path
        raise InputError(f"{source!r}: is not a path: {error}.") from error


def is_url(written: str) -> bool:
    return _URL.match(written) is not None


def missing_file(place: Path, written: str) -> str:
    """'no such file in /data. Did you mean 'patients.csv'?'"""
    folder = place.absolute().parent
    expansion = " `~` and `$` are not expanded in paths; write them out." if set("~$") & set(written) else ""
    try:
        neighbours = [entry.name for entry in os.scandir(folder) if entry.is_file() and not entry.name.startswith(".")]
    except OSError:
        return f"no such file; there is no folder {folder}.{expansion}"
    # Compare stems: all names ending in .csv are similar. Of files with equal stems, the one of the same kind is kept.
    same_kind_last = sorted(neighbours, key=lambda name: Path(name).suffix == place.suffix)
    meant = closest(place.stem, {Path(name).stem: name for name in same_kind_last})
    return f"no such file in {folder}.{f' Did you mean {meant!r}?' if meant else ''}{expansion}"
