"""Positions of the rows and fields of a CSV, checked byte by byte before parsing.

Parsers differ in what they make of a stray quote or a missing field, and a cohort that two programs read differently
cannot be audited.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from maxflip._util.faults import ALIKE
from maxflip._util.messages import counted
from maxflip.errors import InputError

LONGEST_FIELD = 1_000_000  # bytes in one cell
LONGEST_LINE = 64_000_000  # bytes in one row
BLOCK = 4 << 20
_BOM = b"\xef\xbb\xbf"
_COMMA, _NEWLINE, _RETURN, _QUOTE = b',\n\r"'
_OTHER_FORMATS = {
    b"PAR1": "a Parquet file; name it .parquet",
    b"PK\x03\x04": "a zip archive, perhaps an Excel workbook; save it as CSV",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"ARROW1": "an Arrow file; save it as .parquet",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


class Layout:
    """The layout of a CSV: RFC 4180 in UTF-8, with or without BOM and carriage returns. Empty lines are no rows.

    Faults that make the rest unreadable (a stray quote, another encoding) end the scan; rows with a wrong number of
    fields are collected.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.names: tuple[str, ...] = ()
        self.rows = 0
        self.first_row = 0  # byte
        self.longest_line = 0  # bytes
        self.is_multiline = False  # some cells have several lines
        self._lines = 0  # newlines before the block
        self._faults: list[str] = []
        self._uneven = 0

    def scan(self, file: BinaryIO) -> None:
        file.seek(0)
        start = file.read(6)
        for mark, what in _OTHER_FORMATS.items():
            if start.startswith(mark):
                self._stop(b"", 0, f"this is {what}.")
        self.first_row = len(_BOM) if start.startswith(_BOM) else 0
        file.seek(self.first_row)
        rest = b""
        while piece := file.read(BLOCK):
            rest = self._take_rows(rest + piece)
        if rest:
            rest = self._take_rows(rest + b"\n")
        if rest:
            self._refuse_stray_quotes(rest)
            self._stop(rest, 0, "a quote is opened in this row and never closed. Close it, or double it.")
        if self._uneven > ALIKE:
            more = self._uneven - ALIKE
            self._faults.append(f"{self.source}: ... and {counted(more, 'more line')} with a wrong number of fields.")
        if self._faults:
            raise InputError(self._faults)

    def _take_rows(self, block: bytes) -> bytes:
        """Check the complete rows of the block; return the rest, which begins a row."""
        if (nul := block.find(b"\0")) >= 0:
            self._stop(block, nul, "holds a NUL byte. Save the file as UTF-8 text.")
        data = np.frombuffer(block, np.uint8)
        ends = _outside_quotes(data, np.flatnonzero((data == _COMMA) | (data == _NEWLINE)))  # of fields
        row_ends = np.flatnonzero(data[ends] == _NEWLINE)
        taken = int(ends[row_ends[-1]]) + 1 if len(row_ends) else 0
        whole = block[:taken]
        self._refuse_other_encodings(whole)
        self._refuse_long_fields(block, np.append(ends, len(block)))
        if not taken and len(block) > LONGEST_LINE:
            self._stop(block, 0, f"is longer than {LONGEST_LINE} bytes. Rows end in a newline.")
        if not self.names and taken:
            self._read_header(block[: int(ends[row_ends[0]])], ends[: row_ends[0] + 1])
            self.first_row += int(ends[row_ends[0]]) + 1
            self.rows = -1  # the header is counted below
        self._refuse_stray_quotes(whole)
        self._refuse_lone_returns(whole)
        self._count_rows(whole, ends[row_ends], np.diff(row_ends, prepend=-1))
        self._lines += whole.count(b"\n")
        return block[taken:]

    def _count_rows(self, whole: bytes, ends: NDArray[np.int64], fields: NDArray[np.int64]) -> None:
        """ends: position of each row's newline   fields: number of fields of each row"""
        starts = np.concatenate([[0], ends + 1])[: len(ends)]
        lengths = ends - starts
        returns = np.frombuffer(whole, np.uint8)[starts] == _RETURN
        is_row = (fields > 1) | (lengths > 1) | ((lengths == 1) & ~returns)
        numbers = self.rows + np.cumsum(is_row)
        uneven = np.flatnonzero(is_row & (fields != len(self.names))).tolist()
        for k in uneven[: max(0, ALIKE - self._uneven)]:
            self._faults.append(
                f"{self._line(whole, int(starts[k]))} (row {numbers[k]}): {counted(int(fields[k]), 'field')}; "
                f"the header has {len(self.names)}. Put a field that holds a comma in quotes, or correct the row."
            )
        self._uneven += len(uneven)
        self.is_multiline |= whole.count(b"\n") > len(ends)
        self.longest_line = max(self.longest_line, int(lengths.max(initial=0)) + 1)
        self.rows += int(is_row.sum())

    def _read_header(self, line: bytes, ends: NDArray[np.int64]) -> None:
        if not line.strip():
            self._stop(line, 0, "is empty; wanted column names.")
        for separator in (b";", b"\t", b"|"):
            if separator in line and b"," not in line:
                self._stop(line, 0, f"fields are separated by {separator.decode()!r}. Save the file with commas.")
        self._refuse_stray_quotes(line + b"\n")
        fields = [line[a:b] for a, b in zip([0, *(ends[:-1] + 1).tolist()], ends.tolist(), strict=True)]
        fields[-1] = fields[-1].removesuffix(b"\r")
        plain = [f[1:-1].replace(b'""', b'"') if f.startswith(b'"') else f for f in fields]
        self.names = tuple(f.decode() for f in plain)

    def _refuse_other_encodings(self, block: bytes) -> None:
        try:
            block.decode()
        except UnicodeDecodeError as error:
            byte = block[error.start]
            self._stop(block, error.start, f"byte 0x{byte:02x} is not UTF-8. Save the file as UTF-8.")

    def _refuse_long_fields(self, block: bytes, ends: NDArray[np.int64]) -> None:
        lengths = np.diff(ends, prepend=-1) - 1
        k = int(lengths.argmax())
        if lengths[k] > LONGEST_FIELD:
            self._refuse_stray_quotes(block)  # which would explain it
            start = int(ends[k] - lengths[k])
            self._stop(block, start, f"a field is longer than {LONGEST_FIELD} bytes. Is a quote left open?")

    def _refuse_stray_quotes(self, block: bytes) -> None:
        """A quoted field begins and ends at a separator, and quotes inside it are doubled."""
        if b'"' not in block:
            return
        data = np.frombuffer(b"\n" + block + b"\n", np.uint8)
        quotes = np.flatnonzero(data == _QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        stray = opening[~np.isin(data[opening - 1], (_COMMA, _NEWLINE, _QUOTE))]
        loose = closing[~np.isin(data[closing + 1], (_COMMA, _NEWLINE, _RETURN, _QUOTE))]
        if len(stray) + len(loose):
            place = int(min([*stray[:1], *loose[:1]])) - 1
            self._stop(
                block,
                place,
                "there is a quote inside a field. Put the whole field in quotes and double the quotes inside it.",
            )

    def _refuse_lone_returns(self, block: bytes) -> None:
        if b"\r" not in block:
            return
        data = np.frombuffer(block, np.uint8)
        lone = np.flatnonzero((data[:-1] == _RETURN) & (data[1:] != _NEWLINE))
        for place in _outside_quotes(data, lone)[:1].tolist():
            self._stop(block, place, "a carriage return without a newline. Save the file with newlines.")

    def _line(self, block: bytes, place: int) -> str:
        before = self._lines + block.count(b"\n", 0, place)
        return f"{self.source}: line {before + 1}"

    def _stop(self, block: bytes, place: int, what: str) -> None:
        raise InputError([*self._faults, f"{self._line(block, place)}: {what}"])


def _outside_quotes(data: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places that are not inside quotes."""
    quotes = np.flatnonzero(data == _QUOTE)
    if not len(quotes):
        return places
    opened = np.bincount(np.searchsorted(places, quotes[0::2]), minlength=len(places))
    closed = np.bincount(np.searchsorted(places, quotes[1::2]), minlength=len(places))
    is_outside = np.cumsum(opened[: len(places)] - closed[: len(places)]) == 0
    return np.asarray(places[is_outside])
