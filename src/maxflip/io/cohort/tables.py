"""Cohorts from .parquet and .csv files, read strictly: an invalid value is reported with its position, never coerced.

Files and frames become the same Columns, which `Cohort.table` validates. The bytes are read once, checked, parsed and
freed, so that layout, cells and hash describe one state of the file.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from maxflip._util.faults import grouped
from maxflip._util.messages import visible
from maxflip.data.cohort import Cohort, column_faults, whose
from maxflip.data.one_hot import Codes, coded, held_as_texts, read_codes, with_codes
from maxflip.data.tables import Column
from maxflip.errors import InputError, ResourceError
from maxflip.io.cohort.cells import Cells, Extra
from maxflip.io.cohort.csv_layout import BLOCK, Layout
from maxflip.io.opening import Opened, Origin, open_file, read_from


class Reading(NamedTuple):
    """A cohort and further per-sample columns of its file."""

    cohort: Cohort
    columns: dict[Extra, NDArray[Any]]
    may_change: list[NDArray[np.bool_]] | None = None  # for sequences with such a column: of each step


def read_cohort(
    file: str | Path | Table,
    *,
    id: str,  # noqa: A002  the column's name in every file
    features: Sequence[str],
    units: Mapping[str, str] | None = None,
    extra_columns: Sequence[Extra] = (),
    source: str | None = None,
    one_hot: Mapping[str, Sequence[str]] | None = None,
) -> Reading:
    """The columns `id`, `features` and `extra_columns` of a .parquet or .csv file.

    Features of `one_hot` that the file has as a column of texts are made from it. What else is wrong with `one_hot` is
    left to the Problem, which lists it with its other faults.

    `source` is the file's name in messages, by default its path. All other columns become the cohort's `ignored`. All
    faults of the file are in one InputError.
    """
    table = file if isinstance(file, Table) else read_table(file, source=source)
    chosen, used = set(features), {e.column for e in extra_columns}
    held = held_as_texts(read_codes(one_hot)[0], table.names, id)
    beside = sorted(used - chosen - {id} - held.keys())
    faults = column_faults(table.names, held, [*features, *beside], id, table.source)
    if faults:
        raise InputError(faults)
    made = {feature for own in held.values() for feature in own}
    cells = table.load([id, *held, *(name for name in (*features, *beside) if name not in made)])
    ids, faults = id_column(cells[id], table.source)
    faults += _add_codes(cells, held, ids, table.source)
    arrays: dict[Extra, NDArray[Any]] = {}
    extra_faults: list[str] = []
    for extra in extra_columns:
        arrays[extra], wrong = read_extra(extra, cells[extra.column], ids, table.source)
        extra_faults += wrong
    columns = []
    for name in with_codes(table.names, held):
        if name == id:
            columns.append(ids)
        elif name in chosen:
            columns.append(cells.pop(name).numbers())  # pop frees the texts
        elif name not in used:
            columns.append(Column(name, range(table.rows)))
    try:
        cohort = Cohort.table(columns, features=features, id=id, units=units, source=table.source)
    except InputError as error:
        raise InputError([*faults, *error.problems, *extra_faults]) from None
    if faults or extra_faults:
        raise InputError(faults + extra_faults)
    return Reading(cohort, arrays)


def _add_codes(cells: dict[str, Cells], held: Codes, ids: Column, source: str) -> list[str]:
    """Add the columns of codes that are made from texts to the cells; return the faults of the texts."""
    faults = []
    for category, own in held.items():
        texts = Column(category, cells[category].names())
        columns, wrong = coded(texts, own, partial(whose, ids.cells), source)
        cells |= {name: Cells(name, pa.chunked_array([column.cells]), False) for name, column in columns.items()}
        faults += wrong
    return faults


def id_column(cells: Cells, source: str) -> tuple[Column, list[str]]:
    """The id column, and faults. Row numbers replace ids of a wrong type, so that other columns are still checked."""
    if cells.holds_names:
        return Column(cells.name, cells.names()), []
    fault = f"{source}: column {cells.name!r} has type {cells.data.type}; ids must be texts or integers."
    return Column(cells.name, range(len(cells.data))), [fault]


def read_extra(extra: Extra, cells: Cells, ids: Column, source: str) -> tuple[NDArray[Any], list[str]]:
    column = f"{source}: column {extra.column!r}"
    if not extra.accepts(cells):
        return np.empty(0), [f"{column} has type {cells.data.type}; {extra.wanted}."]
    values, wrong = extra.read(cells)

    def sentence(j: int, what: str) -> str:
        return f"{column}, row {j + 1} (id {visible(str(ids.cells[j]))}): {what}; {extra.wanted}."

    return values, grouped(wrong, sentence, column)


@dataclass(eq=False)
class Table:
    """A table file: its column names, possibly with duplicates, and the cells of chosen columns.

    read_columns: columns by position; it keeps the bytes of the file in memory
    """

    source: str
    origin: Origin
    names: tuple[str, ...]
    rows: int
    is_csv: bool
    read_columns: Callable[[Sequence[int]], Sequence[pa.ChunkedArray]] | None

    def load(self, names: Sequence[str]) -> dict[str, Cells]:
        """Cells of columns whose names are unique in the file. Can be called only once, because it frees the bytes."""
        read_columns, self.read_columns = self.read_columns, None
        if read_columns is None:
            raise ValueError(f"{self.source}: was loaded already.")
        position = {name: i for i, name in enumerate(self.names)}
        wanted = list(dict.fromkeys(names))
        columns = read_columns([position[n] for n in wanted])
        return {n: Cells(n, column, self.is_csv) for n, column in zip(wanted, columns, strict=True)}


def read_table(path: str | Path, *, source: str | None = None) -> Table:
    """A .parquet or .csv file with a checked layout. Cells are read and checked by `load`."""
    name = str(path) if source is None else source
    readers = {".parquet": _parquet_table, ".csv": _csv_table}
    with open_file(path, name) as file:
        place = Path(path)
        suffix = place.suffix.lower()
        if suffix not in readers:
            raise InputError(f"{name}: its name ends in {suffix!r}; a cohort is a .parquet or a .csv file.")
        opened = Opened(place, name, read_from(file, name))
    if not opened.data:
        raise InputError(f"{name}: is empty. A cohort needs a header and at least one row.")
    return readers[suffix](opened)


# Parquet


def _parquet_table(file: Opened) -> Table:
    source = file.source
    if not file.data.startswith(b"PAR1"):
        raise InputError(f"{source}: is no Parquet file: it does not begin with PAR1. If it is CSV, name it .csv.")
    with _parquet_errors(source):
        parquet = pa.parquet.ParquetFile(pa.BufferReader(file.data))
        names, rows = tuple(parquet.schema_arrow.names), parquet.metadata.num_rows

    def read_columns(positions: Sequence[int]) -> list[pa.ChunkedArray]:
        with _parquet_errors(source):
            found = parquet.read(columns=[names[i] for i in positions])
            return [_plain(found.column(names[i])) for i in positions]

    return Table(source, file.origin(), names, rows, False, read_columns)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without a dictionary, in a type that numpy supports, with all bytes validated."""
    column.validate(full=True)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    return pc.cast(column, pa.float32()) if pa.types.is_float16(column.type) else column


@contextmanager
def _parquet_errors(source: str) -> Iterator[None]:
    """Turn pyarrow's errors about damaged files into one-line InputErrors; errors of the system propagate."""
    try:
        yield
    except MemoryError as error:
        raise ResourceError(f"{source}: is too large for the memory of this machine: {_reason(error)}.") from error
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(
            f"{source}: is damaged or no Parquet file: {_reason(error)}. Write or copy it again."
        ) from error


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(". ")


# CSV


def _csv_table(file: Opened) -> Table:
    source = file.source
    layout = Layout(source)
    layout.scan(io.BytesIO(file.data))
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
        blocks = pa.csv.ReadOptions(column_names=labels, block_size=max(BLOCK, 2 * layout.longest_line))
        rows = pa.BufferReader(pa.py_buffer(file.data).slice(layout.first_row))
        try:
            table = pa.csv.read_csv(rows, read_options=blocks, parse_options=parse, convert_options=as_written)
        except pa.ArrowException as error:
            raise InputError(f"{source}: cannot be read as CSV: {_reason(error)}.") from error
        if len(table) != layout.rows:
            found = f"{len(table)} rows were parsed, {layout.rows} were counted"
            raise InputError(f"{source}: cannot be read as CSV: {found}.")
        return [table.column(label) for label in wanted]

    return Table(source, file.origin(), layout.names, layout.rows, True, read_columns)
