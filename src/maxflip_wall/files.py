"""Read a file once, if it is a plain file: whoever wrote it may be hostile."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LARGEST = 8 << 30


class Unreadable(Exception):
    """A file is missing, damaged or not what its contract says: there is nothing to judge (exit 2)."""


class Refused(Exception):
    """A model file could run code when opened, so it is not opened (exit 7)."""


@contextmanager
def reading(name: object, remedy: str = "") -> Iterator[None]:
    """Whatever goes wrong in here is the file's fault: one sentence that names it, and no traceback."""
    try:
        yield
    except (Refused, Unreadable) as error:
        raise type(error)(f"{name}: {error}{remedy}") from error
    except Exception as error:
        raise Unreadable(f"{name}: {getattr(error, 'strerror', None) or repr(error):.300}{remedy}") from error


def read(path: Path, *, follow_links: bool = True) -> bytes:
    """The bytes to hash, audit and parse: one read, so that nobody swaps the file in between."""
    with reading(path):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode) or os.fstat(handle).st_size > LARGEST:
                raise Unreadable(f"must be a plain file of at most {LARGEST} bytes")
            return file.read()
