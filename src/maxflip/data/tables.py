"""Columns from whatever people keep tables in: arrays, tensors, pandas, polars, pyarrow; none imported unless used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxflip._util.faults import EMPTY, BadCell, Kind
from maxflip._util.messages import counted, shown
from maxflip._util.types import Floats
from maxflip.errors import InputError

_EXACT_INTEGERS = 2**53


@dataclass(frozen=True, eq=False)
class Column:
    """Cells as an array or list; `is_whole` for integer and boolean types; `unusable` names a type without numbers.

    is_flag: of booleans, which the cells hold as 1 and 0
    """

    name: str
    cells: Any
    is_whole: bool = False
    unusable: str = ""
    is_flag: bool = False

    def words(self) -> list[str | None]:
        """The cells as texts, None where empty: integers as they are written, booleans as true and false."""
        cells = self.cells.tolist() if isinstance(self.cells, np.ndarray) else self.cells
        return [_word(bool(c) if self.is_flag and c is not None else c) for c in cells]

    def numbers(self) -> tuple[Floats, dict[int, BadCell]]:
        """float64 values, NaN where a cell is no number, and for those rows what the cell was."""
        array = np.asarray(self.cells)
        if array.dtype.kind == "f":
            return array.astype(np.float64), {}
        if array.dtype.kind in "iub":
            values = array.astype(np.float64)
            if array.dtype.kind == "b" or array.dtype.itemsize < 8:
                return values, {}
            large = np.flatnonzero((array > _EXACT_INTEGERS) | (array < -_EXACT_INTEGERS)).tolist()
            inexact = [j for j in large if int(values[j]) != int(array[j])]
            values[inexact] = np.nan
            return values, {j: _inexact(array[j]) for j in inexact}
        values = np.full(len(array), np.nan)
        wrong: dict[int, BadCell] = {}
        for j, cell in enumerate(self.cells):
            if isinstance(cell, (int, np.integer)) and not isinstance(cell, bool) and not _holds(int(cell)):
                wrong[j] = _inexact(cell)
            elif isinstance(cell, (int, float, np.number)) and not isinstance(cell, bool):
                values[j] = float(cell)
            elif cell is None or _is_missing(cell):
                wrong[j] = EMPTY
            else:
                wrong[j] = BadCell(Kind.NO_NUMBER, f"{shown(cell)} is no number")
        return values, wrong


def _inexact(number: Any) -> BadCell:
    return BadCell(Kind.INEXACT, f"{shown(int(number))} is not exactly representable in float64")


def _holds(number: int) -> bool:
    """Whether float64 holds the integer exactly."""
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def _word(cell: Any) -> str | None:
    if cell is None or _is_missing(cell) or (isinstance(cell, float) and np.isnan(cell)):
        return None
    return str(cell).lower() if isinstance(cell, (bool, np.bool_)) else str(cell)


def _is_missing(cell: object) -> bool:
    return type(cell).__name__ in ("NAType", "NaTType") or cell == ""


def is_listing(value: Any) -> bool:
    """Whether the value is an ordered collection: a list, an array, a Series; not a text, a mapping or a set."""
    if isinstance(value, (str, bytes, Mapping, AbstractSet)) or getattr(value, "ndim", 1) == 0:
        return False
    return isinstance(value, Iterable)


def columns_of(data: Any, names: Sequence[str] | None, source: str) -> tuple[list[Column], Any]:
    """The table's columns, and a pandas index that holds ids (or None)."""
    if hasattr(data, "detach"):  # a tensor, on any device, perhaps part of a graph
        data = data.detach().cpu()
        data = (data.double() if data.is_floating_point() else data).numpy()
    if isinstance(data, list) and data and isinstance(data[0], Column):  # a file's reader has made them already
        return data, None
    if isinstance(data, (np.ndarray, list, tuple)):
        return _array_columns(data, names, source), None
    import narwhals as nw

    labels = _labels(data)
    if hasattr(data, "set_axis") and labels != list(data.columns):
        data = data.set_axis(labels, axis=1)  # 0, 1, ... are names too
    if len(set(labels)) < len(labels):  # no frame library looks into such a table; name faults are told by the Cohort
        return [Column(c, np.zeros(len(data))) for c in labels], None
    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        raise InputError(
            f"{source}: got {type(data).__name__}; wanted a 2-dimensional array, a tensor, or a pandas, polars or "
            "pyarrow frame."
        ) from None
    index: Any = getattr(data, "index", None)
    is_plain = index is None or type(index).__name__ == "RangeIndex"
    return [_frame_column(str(name), frame[name]) for name in frame.columns], None if is_plain else list(index)


def _labels(data: Any) -> list[str]:
    """Column names where a library allows the same one twice."""
    library = type(data).__module__.partition(".")[0]
    attribute = {"pandas": "columns", "pyarrow": "column_names"}.get(library)
    return [str(c) for c in getattr(data, attribute, ())] if attribute else []


def _array_columns(data: Any, names: Sequence[str] | None, source: str) -> list[Column]:
    try:
        array = np.asarray(data)
    except ValueError:
        raise InputError(f"{source}: its rows have different lengths; wanted a table, (samples, features).") from None
    if array.ndim != 2:
        raise InputError(f"{source}: has shape {array.shape}; wanted two dimensions, (samples, features).")
    if names is not None and len(names) != array.shape[1]:
        named, held = counted(len(names), "name"), counted(array.shape[1], "column")
        raise InputError(f"features: {named} for {held} of {source}. Give one per column.")
    labels = list(names) if names is not None else [f"x{i}" for i in range(array.shape[1])]
    unusable = "" if array.dtype.kind in "fiubO" else str(array.dtype)
    whole = array.dtype.kind in "iub"
    return [Column(n, array[:, i], is_whole=whole, unusable=unusable) for i, n in enumerate(labels)]


def _frame_column(name: str, series: Any) -> Column:
    dtype = series.dtype
    if dtype.is_float():
        return Column(name, _with_nan(series))
    if dtype.is_integer():
        cells = series.to_list() if series.null_count() else series.to_numpy()
        return Column(name, cells, is_whole=True)
    kind = str(dtype)
    if kind == "Boolean":
        return Column(name, [c if c is None else int(c) for c in series.to_list()], is_whole=True, is_flag=True)
    if kind in ("String", "Object", "Unknown") or kind.startswith("Decimal"):
        cells = series.to_list()
        return Column(name, [c if c is None else float(c) for c in cells] if kind.startswith("Decimal") else cells)
    return Column(name, series.to_list(), unusable=kind)


def _with_nan(series: Any) -> Any:
    """Nulls as NaN; plain float columns without a copy where the library can."""
    if not series.null_count():
        return series.to_numpy()
    return np.array([np.nan if c is None else c for c in series.to_list()], dtype=np.float64)
