"""Cohorts from disk, .parquet and .csv: read strictly, so that what is wrong is said with its place, never coerced.

A file becomes the same Columns as a frame in Python, and `Cohort.table` judges both with the same words. The
layout of a CSV is checked byte by byte before it is parsed: what a stray quote or a missing field means differs from
parser to parser, and a cohort that two programs read differently cannot be audited.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from maxflip.cohort import Cohort, name_faults
from maxflip.errors import SHOWN, InputError, OutputError, ResourceError
from maxflip.exact import Floats
from maxflip.frames import Column
from maxflip.suggest import did_you_mean, listed, shown

LONGEST_FIELD = 1_000_000  # bytes in one cell of a CSV
LONGEST_LINE = 64_000_000  # bytes in one row of a CSV
_BLOCK = 8 << 20
_EXACT_INTEGERS = 2**53
_BOM = b"\xef\xbb\xbf"
_COMMA, _NEWLINE, _RETURN, _QUOTE = b',\n\r"'
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # one slash: a Path has lost the second
_NUMBER = r"^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf|infinity))$"
_WHOLE = r"^[+-]?\d+$"
_OTHER_FORMATS = {
    b"PAR1": "a Parquet file; name it .parquet",
    b"PK\x03\x04": "a zip archive, perhaps an Excel workbook; save it as CSV",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"ARROW1": "an Arrow file; save it as .parquet",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


class Extra(Protocol):
    """A per-sample column that is no feature: what it must hold, and how its cells become an array."""

    @property
    def column(self) -> str: ...

    @property
    def wanted(self) -> str: ...

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, str]]:
        """One value per row, and for each faulty row what is wrong with its cell."""
        ...


@dataclass(frozen=True)
class Label:
    """The wanted class of each sample, by name or by output column; a name wins over a number. Read as columns."""

    column: str
    classes: tuple[str, ...]

    @property
    def wanted(self) -> str:
        return f"wanted one of {listed(self.classes)}, or an output column from 0 to {len(self.classes) - 1}"

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, str]]:
        place = {str(i): i for i in range(len(self.classes))} | {name: i for i, name in enumerate(self.classes)}
        given = cells.names()
        found = [place.get(str(c), -1) for c in given]
        wrong = {
            j: "the cell is empty" if cell in (None, "") else shown(cell)
            for j, (cell, column) in enumerate(zip(given, found, strict=True))
            if column < 0
        }
        return np.array(found, dtype=np.int64), wrong


@dataclass(frozen=True)
class Amount:
    """A number per sample, finite and >= 0."""

    column: str
    wanted: str = "wanted a finite number >= 0"

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, str]]:
        values, wrong = cells.numbers().numbers()
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0))).tolist()
        return values, {j: wrong.get(j, f"{values[j]}") for j in bad}


@dataclass(frozen=True)
class Limit:
    """A number per sample; NaN where the cell is empty, which leaves that side open."""

    column: str
    wanted: str = "wanted a number, or nothing for an open side"

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, str]]:
        values, wrong = cells.numbers().numbers()
        bad = np.flatnonzero(np.isnan(values) & ~cells.gaps()).tolist()
        return values, {j: wrong.get(j, "NaN") for j in bad}


class Reading(NamedTuple):
    """A cohort and the per-sample columns that were read beside it."""

    cohort: Cohort
    columns: dict[Extra, NDArray[Any]]


def read_cohort(
    path: str | Path,
    *,
    id: str,  # noqa: A002  the column's name in every file
    features: Sequence[str],
    units: Mapping[str, str] | None = None,
    extra_columns: Sequence[Extra] = (),
    source: str | None = None,
) -> Reading:
    """The columns `id` and `features` of a .parquet or .csv file, and what else is wanted per sample.

    `source` is what messages call the file: its path unless given. Columns in `extra_columns` count as used; all
    others become the cohort's `ignored`. Every fault of the file is listed in one InputError.
    """
    table = read_table(path, source=source)
    beside = [n for n in dict.fromkeys(e.column for e in extra_columns) if n not in features and n != id]
    faults = name_faults(table.names, [*features, *beside], id, table.source)
    if faults:
        raise InputError(faults)
    loaded = table.load([id, *features, *beside])
    ids, faults = _read_ids(loaded[id], table.source)
    columns = [
        ids if name == id else loaded[name].numbers() if name in features else Column(name, range(table.rows))
        for name in table.names
        if name not in beside
    ]
    cohort: Cohort | None = None
    try:
        cohort = Cohort.table(columns, features=features, id=id, units=units, source=table.source)
    except InputError as error:
        faults += error.problems
    arrays: dict[Extra, NDArray[Any]] = {}
    for extra in extra_columns:
        arrays[extra], extra_faults = _read_extra(extra, loaded[extra.column], ids, table.source)
        faults += extra_faults
    if cohort is None or faults:
        raise InputError(faults)
    return Reading(cohort, arrays)


def _read_ids(cells: Cells, source: str) -> tuple[Column, list[str]]:
    """The id column; row numbers stand in for a type that holds no ids, so that the other columns are still judged."""
    if cells.holds_names:
        return Column(cells.name, cells.names()), []
    fault = f"{source}: column {cells.name!r} has type {cells.data.type}; ids must be texts or integers."
    return Column(cells.name, range(len(cells.data))), [fault]


def _read_extra(extra: Extra, cells: Cells, ids: Column, source: str) -> tuple[NDArray[Any], list[str]]:
    column = f"{source}: column {extra.column!r}"
    if not (cells.holds_names if isinstance(extra, Label) else cells.holds_numbers):
        return np.empty(0), [f"{column} has type {cells.data.type}; {extra.wanted}."]
    values, wrong = extra.read(cells)
    faults = [f"{column}, row {j + 1} (id {ids.cells[j]}): {wrong[j]}; {extra.wanted}." for j in list(wrong)[:SHOWN]]
    if len(wrong) > SHOWN:
        faults.append(f"{column}: {len(wrong)} such cells.")
    return values, faults


# The cells of one column


@dataclass(frozen=True, eq=False)
class Cells:
    """One column as it stands in the file: texts in a CSV, a type of its own in Parquet."""

    name: str
    data: pa.ChunkedArray
    is_csv: bool

    @property
    def holds_names(self) -> bool:
        """Texts or integers, or nothing at all: what ids and class names are made of."""
        kind = self.data.type
        return bool(_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind))

    @property
    def holds_numbers(self) -> bool:
        kind, types = self.data.type, pa.types
        return self.holds_names or any(is_it(kind) for is_it in (types.is_floating, types.is_boolean, types.is_decimal))

    def names(self) -> list[str | int | None]:
        names: list[str | int | None] = self.data.to_pylist()
        return names

    def gaps(self) -> NDArray[np.bool_]:
        """(n,): where the cell is empty."""
        empty = pc.equal(self.data, "") if _is_text(self.data.type) else pc.is_null(self.data)
        return np.asarray(pc.fill_null(empty, True).to_numpy(), dtype=bool)

    def numbers(self) -> Column:
        """The cells as a Column: numbers, and where a cell is none, the cell itself."""
        kind, types = self.data.type, pa.types
        if self.is_csv:
            return _number_column(self.name, self.data)
        if not self.holds_numbers:
            return Column(self.name, range(len(self.data)), unusable=str(kind))
        if types.is_decimal(kind):
            number = int if kind.scale <= 0 else float
            cells = [c if c is None else number(c) for c in self.data.to_pylist()]
            return Column(self.name, cells, is_whole=kind.scale <= 0)
        whole = bool(types.is_integer(kind) or types.is_boolean(kind))
        if self.data.null_count or _is_text(kind):
            numbers = self.data.cast(pa.int8()) if types.is_boolean(kind) else self.data
            return Column(self.name, numbers.to_pylist(), is_whole=whole)
        return Column(self.name, self.data.to_numpy(), is_whole=whole)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    is_view = getattr(types, "is_string_view", None)  # pyarrow 16 and later
    return bool(types.is_string(kind) or types.is_large_string(kind) or (is_view is not None and is_view(kind)))


def _number_column(name: str, texts: pa.ChunkedArray) -> Column:
    """Texts as the nearest float64; whole numbers that float64 would round, and what is no number, stay as they are."""
    odd: list[int] = []
    try:
        values = pc.cast(texts, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        spelled = pc.match_substring_regex(texts, _NUMBER)
        # Without its plus: older versions of pyarrow know none.
        values = pc.cast(pc.utf8_ltrim(pc.if_else(spelled, texts, "nan"), "+"), pa.float64()).to_numpy()
        odd = np.flatnonzero(~spelled.to_numpy()).tolist()
    rounded = _rounded(values, texts)
    if not odd and not rounded:
        looks_whole = bool(np.all(values == np.floor(values)))
        return Column(name, values, is_whole=looks_whole and pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py())
    cells = values.astype(object)
    for j, text in zip(odd, texts.take(pa.array(odd, pa.int64())).to_pylist(), strict=True):
        cells[j] = text
    for j, number in rounded.items():
        cells[j] = number
    return Column(name, cells)


def _rounded(values: Floats, texts: pa.ChunkedArray) -> dict[int, int]:
    """Row -> whole number, where float64 does not hold it."""
    large = np.flatnonzero(np.isfinite(values) & (np.abs(values) > _EXACT_INTEGERS)).tolist()
    found = {}
    for j, text in zip(large, texts.take(pa.array(large, pa.int64())).to_pylist(), strict=True):
        if re.fullmatch(_WHOLE, text, re.ASCII):
            digits = int(text.lstrip("+-0"))  # int() refuses thousands of digits, even of leading zeros
            number = -digits if text.startswith("-") else digits
            if number != int(values[j]):
                found[j] = number
    return found


# Files


@dataclass(frozen=True, eq=False)
class Table:
    """A table file: all its column names as they stand, some perhaps twice, and cells of those that are asked for."""

    source: str
    names: tuple[str, ...]
    rows: int
    is_csv: bool
    read_columns: Callable[[Sequence[int]], Sequence[pa.ChunkedArray]]  # by position

    def load(self, names: Sequence[str]) -> dict[str, Cells]:
        """The cells of columns whose names stand in the file once."""
        wanted = list(dict.fromkeys(names))
        columns = self.read_columns([self.names.index(n) for n in wanted])
        return {n: Cells(n, column, self.is_csv) for n, column in zip(wanted, columns, strict=True)}


def read_table(path: str | Path, *, source: str | None = None) -> Table:
    """A .parquet or .csv file, checked as far as its layout goes; cells are read and judged when asked for."""
    name = str(path) if source is None else source
    readers = {".parquet": _parquet_table, ".csv": _csv_table}
    with open_file(path, name) as file:
        suffix = Path(path).suffix.lower()
        if suffix not in readers:
            raise InputError(f"{name}: its name ends in {suffix!r}; a cohort is a .parquet or a .csv file.")
        if os.fstat(file.fileno()).st_size == 0:
            raise InputError(f"{name}: is empty. A cohort needs a header and at least one row.")
        return readers[suffix](file, Path(path), name)


@contextmanager
def open_file(path: str | Path, source: str) -> Iterator[BinaryIO]:
    """A regular file, open for reading. Anything else is refused before it is opened: a FIFO would hang."""
    if _URL.match(str(path)) or _URL.match(source):
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
        raise InputError(f"{source}: {missing_file(place)}") from None
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{source}: cannot be read: {reason}. Check its permissions and its disk.") from error


def _mode(place: Path, source: str) -> int:
    try:
        return os.stat(place).st_mode
    except ValueError as error:  # a NUL in the path
        raise InputError(f"{source!r}: is no path: {error}.") from error


def missing_file(place: Path) -> str:
    """'no such file in /data. Did you mean 'patients.csv'?'"""
    folder = place.absolute().parent
    not_expanded = " `~` and `$` are not expanded in paths; write them out." if re.search(r"[~$]", str(place)) else ""
    try:
        neighbours = os.listdir(folder)
    except OSError:
        return f"no such file; there is no folder {folder}.{not_expanded}"
    return f"no such file in {folder}.{did_you_mean(place.name, neighbours)}{not_expanded}"


# Parquet


def _parquet_table(file: BinaryIO, path: Path, source: str) -> Table:
    if file.read(4) != b"PAR1":
        raise InputError(f"{source}: is no Parquet file: it does not begin with PAR1. If it is CSV, name it .csv.")
    with _parquet_errors(source):
        opened = pa.parquet.ParquetFile(file)
        names, rows = tuple(opened.schema_arrow.names), opened.metadata.num_rows

    def read_columns(positions: Sequence[int]) -> list[pa.ChunkedArray]:
        with open_file(path, source) as again, _parquet_errors(source):
            found = pa.parquet.ParquetFile(again).read(columns=[names[i] for i in positions])
            return [_plain(found.column(names[i])) for i in positions]

    return Table(source, names, rows, False, read_columns)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without a dictionary, in a type that numpy knows; every byte of it valid."""
    column.validate(full=True)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    return pc.cast(column, pa.float32()) if pa.types.is_float16(column.type) else column


@contextmanager
def _parquet_errors(source: str) -> Iterator[None]:
    """What pyarrow says about a damaged file, in one line; what the system says about reading passes through."""
    try:
        yield
    except MemoryError as error:
        raise ResourceError(f"{source}: needs more memory than there is: {_reason(error)}.") from error
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(
            f"{source}: is damaged or no Parquet file: {_reason(error)}. Write or copy it again."
        ) from error


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(". ")


# CSV


def _csv_table(file: BinaryIO, path: Path, source: str) -> Table:
    layout = _Layout(source)
    layout.scan(file)
    labels = [str(i) for i in range(len(layout.names))]

    def read_columns(positions: Sequence[int]) -> list[pa.ChunkedArray]:
        wanted = [labels[i] for i in positions]
        if layout.rows == 0:
            return [pa.chunked_array([], pa.large_string())] * len(wanted)
        as_written = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.large_string()),
            include_columns=wanted,
            null_values=[],
            strings_can_be_null=False,
        )
        parse = pa.csv.ParseOptions(newlines_in_values=layout.is_multiline)
        blocks = pa.csv.ReadOptions(column_names=labels, block_size=max(_BLOCK, 2 * layout.longest_line))
        with open_file(path, source) as again:
            again.seek(layout.first_row)
            try:
                table = pa.csv.read_csv(again, read_options=blocks, parse_options=parse, convert_options=as_written)
            except pa.ArrowException as error:
                raise InputError(f"{source}: cannot be read as CSV: {_reason(error)}.") from error
        if len(table) != layout.rows:
            raise InputError(f"{source}: changed while it was read. Try again when nobody writes to it.")
        return [table.column(label) for label in wanted]

    return Table(source, layout.names, layout.rows, True, read_columns)


class _Layout:
    """Where the rows of a CSV are: RFC 4180 in UTF-8, with or without BOM and carriage returns. Empty lines are no rows.

    Faults that shift everything after them (a stray quote, another encoding) end the scan; rows of the wrong length
    are collected.
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
        self._ragged = 0

    def scan(self, file: BinaryIO) -> None:
        file.seek(0)
        start = file.read(6)
        for mark, what in _OTHER_FORMATS.items():
            if start.startswith(mark):
                self._stop(b"", 0, f"this is {what}.")
        self.first_row = len(_BOM) if start.startswith(_BOM) else 0
        file.seek(self.first_row)
        rest = b""
        while piece := file.read(_BLOCK):
            rest = self._take_rows(rest + piece)
        if rest:
            rest = self._take_rows(rest + b"\n")
        if rest:
            self._refuse_stray_quotes(rest)
            self._stop(rest, 0, "a quote is opened in this row and never closed. Close it, or double it.")
        if self._ragged > SHOWN:
            self._faults.append(f"{self.source}: {self._ragged} lines have a wrong number of fields.")
        if self._faults:
            raise InputError(self._faults)

    def _take_rows(self, block: bytes) -> bytes:
        """Check the whole rows at the start of the block; what is left of it begins a row."""
        if (nul := block.find(b"\0")) >= 0:
            self._stop(block, nul, "holds a NUL byte. Save the file as UTF-8 text.")
        data = np.frombuffer(block, np.uint8)
        is_end = (data == _COMMA) | (data == _NEWLINE)
        if b'"' in block:
            is_end &= (np.cumsum(data == _QUOTE, dtype=np.uint8) & 1) == 0
        ends = np.flatnonzero(is_end)  # of fields
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
        """ends: where each row's newline is   fields: how many it has"""
        starts = np.concatenate([[0], ends + 1])[: len(ends)]
        lengths = ends - starts
        returns = np.frombuffer(whole, np.uint8)[starts] == _RETURN
        is_row = (fields > 1) | (lengths > 1) | ((lengths == 1) & ~returns)
        numbers = self.rows + np.cumsum(is_row)
        ragged = np.flatnonzero(is_row & (fields != len(self.names))).tolist()
        for k in ragged[: max(0, SHOWN - self._ragged)]:
            self._faults.append(
                f"{self._line(whole, int(starts[k]))} (row {numbers[k]}): {fields[k]} fields; the header has "
                f"{len(self.names)}. Put a field that holds a comma in quotes, or correct the row."
            )
        self._ragged += len(ragged)
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
                block, place, "a quote stands inside a field. Put the whole field in quotes and double those inside."
            )

    def _refuse_lone_returns(self, block: bytes) -> None:
        if b"\r" not in block:
            return
        data = np.frombuffer(block, np.uint8)
        lone = (data[:-1] == _RETURN) & (data[1:] != _NEWLINE)
        if b'"' in block:
            lone &= (np.cumsum(data[:-1] == _QUOTE, dtype=np.uint8) & 1) == 0
        if lone.any():
            self._stop(block, int(lone.argmax()), "a carriage return without a newline. Save it with newlines.")

    def _line(self, block: bytes, place: int) -> str:
        before = self._lines + block.count(b"\n", 0, place)
        return f"{self.source}: line {before + 1}"

    def _stop(self, block: bytes, place: int, what: str) -> None:
        raise InputError([*self._faults, f"{self._line(block, place)}: {what}"])
