"""Reads UBJSON, the binary JSON of XGBoost's .ubj files: sizes are checked before anything is taken from the data."""

from typing import Any

import numpy as np

from maxflip_wall.files import Unreadable, unique_keys

DEEPEST = 64  # containers within each other
NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
WORDS = {b"Z": None, b"T": True, b"F": False}


def parse_ubjson(data: bytes) -> Any:
    """The one value in `data`; typed arrays become numpy arrays. Raises Unreadable."""
    reader = _Reader(data)
    value = reader.value(reader.marker(), 0)
    if reader.at != len(data):
        raise Unreadable(f"{len(data) - reader.at} bytes follow its end")
    return value


class _Reader:
    """A place in the data, which moves on with each part that is read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or size > len(self.data) - self.at:
            raise Unreadable(f"is truncated or damaged at byte {self.at}: {size} bytes wanted there")
        self.at += size
        return self.data[self.at - size : self.at]

    def marker(self) -> bytes:
        return self.take(1)

    def follows(self, mark: bytes) -> bool:
        """Whether this mark comes next; it is passed then."""
        if self.data[self.at : self.at + 1] != mark:
            return False
        self.at += 1
        return True

    def number(self, marker: bytes) -> int | float:
        kind = np.dtype(NUMBERS[marker])
        number: int | float = np.frombuffer(self.take(kind.itemsize), kind)[0].item()
        return number

    def size(self) -> int:
        marker = self.marker()
        if marker not in NUMBERS or marker in (b"d", b"D"):
            raise Unreadable(f"is damaged at byte {self.at - 1}: a size was wanted, got {marker!r}")
        size = int(self.number(marker))
        if not 0 <= size <= len(self.data) - self.at:  # each element takes a byte or more
            raise Unreadable(f"is truncated or damaged at byte {self.at}: {size} elements cannot follow")
        return size

    def text(self) -> str:
        return self.take(self.size()).decode("utf-8")

    def value(self, marker: bytes, depth: int) -> Any:
        if depth > DEEPEST:
            raise Unreadable(f"has more than {DEEPEST} containers within each other")
        if marker in NUMBERS:
            return self.number(marker)
        if marker in WORDS:
            return WORDS[marker]
        if marker == b"S":
            return self.text()
        if marker == b"C":
            return self.take(1).decode("ascii")
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.table(depth)
        raise Unreadable(f"is damaged at byte {self.at - 1}: unknown mark {marker!r}")

    def array(self, depth: int) -> Any:
        if self.follows(b"$"):
            marker = self.marker()
            if marker not in NUMBERS or not self.follows(b"#"):
                raise Unreadable(f"is damaged at byte {self.at}: a typed array must hold numbers, and say how many")
            kind = np.dtype(NUMBERS[marker])
            numbers = np.frombuffer(self.take(self.size() * kind.itemsize), kind)
            return numbers.astype(kind.newbyteorder("="))
        if self.follows(b"#"):
            return [self.value(self.marker(), depth + 1) for _ in range(self.size())]
        values = []
        while not self.follows(b"]"):
            values.append(self.value(self.marker(), depth + 1))
        return values

    def table(self, depth: int) -> dict[str, Any]:
        if self.follows(b"#"):
            return unique_keys([self.entry(depth) for _ in range(self.size())])
        entries = []
        while not self.follows(b"}"):
            entries.append(self.entry(depth))
        return unique_keys(entries)

    def entry(self, depth: int) -> tuple[str, Any]:
        return self.text(), self.value(self.marker(), depth + 1)
