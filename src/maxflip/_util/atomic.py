"""The one way in which a file is written: whole, or not at all, even if the power goes.

A temporary file in the same folder, fsync, rename over the name, fsync of the folder. Files are readable by their
owner only: a plan is about people.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from maxflip.errors import OutputError


def write_bytes(path: str | Path, data: bytes) -> None:
    target = Path(path)
    if target.is_symlink():  # written through, as by any program: the link stays, and what it leads to is replaced
        target = Path(os.path.realpath(target))
    with output_errors(Path(path)):
        put_bytes(target, data)


def put_bytes(target: Path, data: bytes) -> None:
    """The same for a file of a folder that is being made: an OSError is told by whoever knows the folder's name."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """A rename is on disk only once its folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def output_errors(target: Path) -> Iterator[None]:
    """What the operating system says about a path, as an OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{target}: {error.strerror or error}. Nothing was written there.") from error
