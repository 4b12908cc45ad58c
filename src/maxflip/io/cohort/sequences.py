"""Sequences from disk: a long table with a row per step, and a static table with a row per sequence.

The rows of a sequence must be contiguous and in the order of time, so that a step is identified by its row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from maxflip._util.faults import ALIKE, BadCell, Kind, grouped
from maxflip._util.messages import visible
from maxflip._util.types import Floats
from maxflip.data.cohort import NO_ID, Cohort, name_faults, read_ids, read_values
from maxflip.errors import InputError
from maxflip.io.cohort.cells import Cells, Extra
from maxflip.io.cohort.tables import Reading, Table, id_column, read_extra, read_table

_MEASURED = "values must be finite numbers, or empty where nothing was measured"


@dataclass(frozen=True)
class Columns:
    """Column names of the long table.   changeable: of the column that states which steps may change, if any"""

    id: str
    time: str
    features: Sequence[str]
    changeable: str | None = None


@dataclass(frozen=True, eq=False)
class Static:
    """The static table: values (n, S) and other columns per sequence; rows in the order of the file."""

    source: str
    ids: list[str]
    values: Floats
    columns: dict[Extra, NDArray[Any]]
    ignored: tuple[str, ...]


def read_sequences(
    file: str | Path | Table,
    columns: Columns,
    *,
    static: Static | None = None,
    static_features: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    source: str | None = None,
) -> Reading:
    """The sequences of a .parquet or .csv file. All faults of the file are in one InputError, with row and id."""
    table = file if isinstance(file, Table) else read_table(file, source=source)
    flags = [] if columns.changeable is None else [columns.changeable]
    used = [*columns.features, columns.time, *flags]
    faults = name_faults(table.names, used, columns.id, table.source)
    if faults:
        raise InputError(faults)
    if not table.rows:
        raise InputError(f"{table.source}: cohort has 0 rows. It needs at least one.")
    cells = table.load([columns.id, *used])
    rows = _blocks(cells[columns.id], table.source)
    times, faults = _times(cells[columns.time], rows)
    values = np.empty((table.rows, len(columns.features)))
    whole = []
    for i, name in enumerate(columns.features):
        values[:, i], wrong, is_whole = _measured(cells.pop(name), rows)
        faults += wrong
        whole += [name] if is_whole else []
    may_change, wrong = _flags(cells[columns.changeable], rows) if columns.changeable else (None, [])
    faults += wrong
    order = None
    if static is not None:
        order, wrong = _matched(rows, static)
        faults += wrong
    if faults:
        raise InputError(faults)

    def split(array: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(array, rows.begin[1:])

    known = {} if static is None or order is None else {key: array[order] for key, array in static.columns.items()}
    cohort = Cohort.sequences(
        split(values),
        times=split(times),
        static=static.values[order] if static is not None and static_features else None,
        ids=rows.ids,
        features=columns.features,
        static_features=static_features or None,
        units=units,
        source=table.source,
    )
    ignored = [name for name in table.names if name not in used and name != columns.id]
    ignored += [f"{name} ({static.source})" for name in static.ignored] if static is not None else []
    cohort = replace(cohort, ignored=tuple(ignored), whole_features=tuple(whole))
    return Reading(cohort, known, None if may_change is None else split(may_change))


def read_static(
    file: str | Path | Table,
    *,
    id: str,  # noqa: A002  the column's name in every file
    features: Sequence[str],
    extra_columns: Sequence[Extra],
    source: str | None = None,
) -> Static:
    """The columns `features` and `extra_columns` of a file with a row per sequence."""
    table = file if isinstance(file, Table) else read_table(file, source=source)
    beside = [e.column for e in extra_columns if e.column not in features]
    faults = name_faults(table.names, [*features, *dict.fromkeys(beside)], id, table.source)
    if faults:
        raise InputError(faults)
    cells = table.load([id, *features, *beside])
    column, faults = id_column(cells[id], table.source)
    texts, wrong = read_ids(column.cells, table.rows, id, table.source)
    faults += wrong
    values = np.empty((table.rows, 0))
    if features:
        values, wrong = read_values([cells[name].numbers() for name in features], texts, table.source)
        faults += wrong
    arrays: dict[Extra, NDArray[Any]] = {}
    for extra in extra_columns:
        arrays[extra], wrong = read_extra(extra, cells[extra.column], column, table.source)
        faults += wrong
    if faults or texts is None:
        raise InputError(faults)
    ignored = tuple(name for name in table.names if name != id and name not in features and name not in beside)
    return Static(table.source, texts.tolist(), values, arrays, ignored)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The sequences' rows in the file.   begin (n,): first row of each   ids: one each   texts: the id of each row"""

    source: str
    column: str
    texts: pa.ChunkedArray
    begin: NDArray[np.int64]
    ids: list[str]

    def sentence(self, column: str, wanted: str) -> Any:
        def words(j: int, what: str) -> str:
            who = visible(str(self.texts[j].as_py()))
            return f"{self.source}: column {column!r}, row {j + 1} (id {who}): {what}; {wanted}."

        return words

    def faults(self, column: str, wrong: Mapping[int, BadCell], wanted: str) -> list[str]:
        return grouped(wrong, self.sentence(column, wanted), f"{self.source}: column {column!r}")


def _blocks(cells: Cells, source: str) -> _Rows:
    place = f"{source}: column {cells.name!r}"
    if not cells.holds_names:
        raise InputError(f"{place} has type {cells.data.type}; ids must be texts or integers.")
    empty = np.flatnonzero(cells.gaps()).tolist()
    if empty:
        words = dict.fromkeys(empty, NO_ID)
        raise InputError(grouped(words, lambda j, what: f"{place}, row {j + 1}: {what}", place))
    texts = pc.cast(cells.data, pa.large_string())
    changes = pc.not_equal(texts[1:], texts[:-1]).to_numpy() if len(texts) > 1 else np.empty(0, dtype=bool)
    begin = np.concatenate([[0], 1 + np.flatnonzero(changes)]).astype(np.int64)
    ids: list[str] = texts.take(pa.array(begin)).to_pylist()
    first: dict[str, int] = {}
    again = []
    for text, row in zip(ids, begin.tolist(), strict=True):
        if first.setdefault(text, row) != row:
            again.append(
                f"{place}, row {row + 1}: id {visible(text)} appears again after other ids; its first row is row "
                f"{first[text] + 1}. Put the rows of an id together, in the order of time."
            )
    if again:
        more = [f"{place}: ... and {len(again) - ALIKE} more in this column."] if len(again) > ALIKE else []
        raise InputError([*again[:ALIKE], *more])
    return _Rows(source, cells.name, texts, begin, ids)


def _times(cells: Cells, rows: _Rows) -> tuple[Floats, list[str]]:
    if not cells.holds_numbers:
        return np.empty(0), [
            f"{rows.source}: column {cells.name!r} has type {cells.data.type}; times must be numbers, such as hours "
            "since a beginning."
        ]
    times, wrong = cells.numbers().numbers()
    bad = np.flatnonzero(~np.isfinite(times)).tolist()
    if bad:
        what = {j: wrong.get(j, BadCell(Kind.NOT_FINITE, f"{times[j]}")) for j in bad}
        return times, rows.faults(cells.name, what, "every step has a time, a finite number")
    goes_on = np.ones(len(times), dtype=bool)
    goes_on[rows.begin] = False
    back = 1 + np.flatnonzero((np.diff(times) < 0) & goes_on[1:])
    what = {
        j: BadCell(Kind.VALUE, f"time goes backwards, {times[j]:.15g} after {times[j - 1]:.15g}") for j in back.tolist()
    }
    return times, rows.faults(cells.name, what, "sort the rows of each id by time")


def _measured(cells: Cells, rows: _Rows) -> tuple[Floats, list[str], bool]:
    if not cells.holds_numbers:
        fault = f"{rows.source}: column {cells.name!r} has type {cells.data.type}; wanted numbers."
        return np.full(len(cells.data), np.nan), [fault], False
    values, wrong, is_whole = cells.measurements()
    wrong = {
        **wrong,
        **{j: BadCell(Kind.NOT_FINITE, f"{values[j]}") for j in np.flatnonzero(np.isinf(values)).tolist()},
    }
    return values, rows.faults(cells.name, wrong, _MEASURED), is_whole


def _flags(cells: Cells, rows: _Rows) -> tuple[NDArray[np.bool_], list[str]]:
    kind = cells.data.type
    if not (cells.holds_names or pa.types.is_boolean(kind)):
        return np.empty(0, dtype=bool), [
            f"{rows.source}: column {cells.name!r} has type {kind}; wanted true or false for each step."
        ]
    flags, wrong = cells.flags()
    return flags, rows.faults(cells.name, wrong, "wanted true or false, whether values of this step may change")


def _matched(rows: _Rows, static: Static) -> tuple[NDArray[np.int64], list[str]]:
    """(n,): each sequence's row in the static file; and faults."""
    place = {text: j for j, text in enumerate(static.ids)}
    missing = [text for text in rows.ids if text not in place]
    extra = sorted(place.keys() - set(rows.ids), key=place.__getitem__)
    faults = [f"{static.source}: has no row for id {visible(text)} of {rows.source}." for text in missing[:ALIKE]]
    faults += [
        f"{static.source}: column {rows.column!r}, row {place[text] + 1} (id {visible(text)}): {rows.source} has no "
        "steps for it. A sequence without measurements needs one row there, with a time and nothing else."
        for text in extra[:ALIKE]
    ]
    rest = max(0, len(missing) - ALIKE) + max(0, len(extra) - ALIKE)
    if rest:
        only = f"more {'id that is' if rest == 1 else 'ids that are'}"
        faults.append(f"{static.source}: ... and {rest} {only} in only one of the two files.")
    return np.array([place.get(text, 0) for text in rows.ids], dtype=np.int64), faults
