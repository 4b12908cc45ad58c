"""Files are opened here: regular ones only, and what is wrong with a path is said in a sentence.

What a plan is made from is read once, whole, so that its hash is of the very bytes that were solved. It is not mapped
into memory: a mapped file changes when the one on disk does.
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
    """A file that something was made from.   sha256: of the bytes that were read, whatever lies there by now"""

    path: Path
    sha256: str


@dataclass(frozen=True, eq=False)
class Opened:
    """A file that was read once, whole.   source: what messages call it"""

    path: Path
    source: str
    data: bytes

    def origin(self) -> Origin:
        return Origin(self.path, hashlib.sha256(self.data).hexdigest())


def read_file(path: str | Path, source: str, most: int = -1) -> Opened:
    """most: bytes that are read at the most; -1: all"""
    with open_file(path, source) as file:
        return Opened(Path(path), source, read_from(file, source, most))


def read_from(file: BinaryIO, source: str, most: int = -1) -> bytes:
    try:
        return file.read(most)
    except MemoryError as error:
        raise ResourceError(f"{source}: needs more memory than there is: it is read whole.") from error


@contextmanager
def open_file(path: str | Path, source: str) -> Iterator[BinaryIO]:
    """A regular file, open for reading. Anything else is refused before it is opened: a FIFO would hang."""
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
        raise InputError(f"{source!r}: is no path: {error}.") from error


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
    # By their stems, or any two .csv would be alike; of equal stems the file of the same kind comes last, and stays.
    of_the_kind_last = sorted(neighbours, key=lambda name: Path(name).suffix == place.suffix)
    meant = closest(place.stem, {Path(name).stem: name for name in of_the_kind_last})
    return f"no such file in {folder}.{f' Did you mean {meant!r}?' if meant else ''}{expansion}"
