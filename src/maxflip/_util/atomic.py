"""Atomic writing of files: a file is written completely or not at all, even if the power fails.

Writes a temporary file in the same folder, calls fsync, renames it, and calls fsync on the folder. Only the owner can
read the files, because plans hold personal data.
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
    if target.is_symlink():  # keep the link and replace its target
        target = Path(os.path.realpath(target))
    with output_errors(Path(path)):
        put_bytes(target, data)


def put_bytes(target: Path, data: bytes) -> None:
    """Like write_bytes, for files inside a folder being built. OSErrors propagate; the caller names the folder."""
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
    """Call fsync on the folder, which makes renames in it durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def output_errors(target: Path) -> Iterator[None]:
    """Turn an OSError inside into an OutputError that names `target`."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{target}: {error.strerror or error}. Nothing was written there.") from error
