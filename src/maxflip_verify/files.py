"""Read a file once, whole, and only if it is a plain file: the folder under audit may be hostile."""

import json
import os
import stat
from pathlib import Path
from typing import Any


class Unreadable(Exception):  # noqa: N818 -- not always an error of the caller
    """A file is missing, damaged or not what its contract says: there is nothing to judge (exit 2)."""


class Refused(Exception):  # noqa: N818
    """A model file could run code when opened, so it is not opened (exit 7)."""


def read(path: Path, *, follow_links: bool = True, largest: int = 8 << 30) -> bytes:
    """The bytes to hash, audit and parse: one read, so that nobody swaps the file in between."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW))
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
                raise Unreadable(f"{path}: must be a plain file of at most {largest} bytes")
            return file.read()
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def parse_json(data: bytes, name: str) -> Any:
    """JSON as the standard has it: no NaN, and no key twice, which two readers could see differently."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key appears twice")
        return dict(pairs)

    def not_json(text: str) -> Any:
        raise ValueError(f"{text} is no number in JSON")

    try:
        return json.loads(data.decode(), object_pairs_hook=once, parse_constant=not_json)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name}: not valid JSON: {error}") from error
