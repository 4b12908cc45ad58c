"""Reads untrusted files: once, and only plain files."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LARGEST = 8 << 30  # bytes; larger files are refused
NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO}


class Unreadable(Exception):
    """A file is missing, damaged or not in its documented format."""

    exit_code = 2


class Broken(Unreadable):
    """A model breaks its contract: it does not map a batch to a batch, or its output is random."""

    exit_code = 3


class Unavailable(Unreadable):
    """A file exists but cannot be read, because of its permissions or its disk."""

    exit_code = 4


class Refused(Exception):
    """A model file could run code when opened, and is not opened."""

    exit_code = 7


@contextmanager
def reading(name: object, remedy: str = "") -> Iterator[None]:
    """Turn any exception inside into one sentence that names the file."""
    try:
        yield
    except (Refused, Unreadable) as error:
        raise type(error)(f"{name}: {error}{remedy}") from error
    except Exception as error:
        raise Unreadable(f"{name}: {getattr(error, 'strerror', None) or repr(error):.300}{remedy}") from error


def read(path: Path, *, follow_links: bool = True) -> bytes:
    """The bytes of a plain file. Read once, so that the same bytes are hashed, audited and parsed."""
    with reading(path):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW))
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode) or os.fstat(handle).st_size > LARGEST:
                    raise Unreadable(f"must be a plain file of at most {LARGEST} bytes")
                return file.read()
        except OSError as error:
            if error.errno in NO_FILE:
                raise
            raise Unavailable(f"cannot be read: {error.strerror}. Check its permissions and its disk") from error


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without duplicate keys, which readers would interpret differently."""
    if len(dict(pairs)) < len(pairs):
        raise Unreadable(f"a key occurs twice among {[key for key, _ in pairs]!r:.300}")
    return dict(pairs)
