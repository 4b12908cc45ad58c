"""The cells of one column of a file: ids, class names, numbers, limits; read strictly, never coerced."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from maxflip._util.faults import BadCell, Kind, bad_value
from maxflip._util.messages import listed
from maxflip._util.types import Floats
from maxflip.data.tables import Column

_EXACT_INTEGERS = 2**53
_NUMBER = r"^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf|infinity))$"
_WHOLE = r"^[+-]?\d+$"
_COLUMN = re.compile("0|[1-9][0-9]{0,8}")


@dataclass(frozen=True, eq=False)
class Cells:
    """One column as stored in the file: texts in a CSV, any type in Parquet."""

    name: str
    data: pa.ChunkedArray
    is_csv: bool

    @property
    def holds_names(self) -> bool:
        """Whether the cells are texts or integers, or all empty: valid types for ids and class names."""
        kind = self.data.type
        return bool(_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind))

    @property
    def holds_labels(self) -> bool:
        """Names or floating point numbers, into which other programs convert integer columns with empty cells."""
        return self.holds_names or bool(pa.types.is_floating(self.data.type))

    @property
    def holds_numbers(self) -> bool:
        kind, types = self.data.type, pa.types
        return self.holds_names or any(is_it(kind) for is_it in (types.is_floating, types.is_boolean, types.is_decimal))

    def names(self) -> list[str | int | float | None]:
        names: list[str | int | float | None] = self.data.to_pylist()
        return names

    def gaps(self) -> NDArray[np.bool_]:
        """(n,): whether each cell is empty."""
        empty = pc.equal(self.data, "") if _is_text(self.data.type) else pc.is_null(self.data)
        return np.asarray(pc.fill_null(empty, True).to_numpy(), dtype=bool)

    def numbers(self) -> Column:
        """The cells as a Column of numbers; cells that are no numbers stay as they are."""
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

    def measurements(self) -> tuple[Floats, dict[int, BadCell], bool]:
        """Values in float64, NaN for empty cells; the cells that are neither empty nor numbers; and whether all values
        are whole.

        Empty cells are first replaced by zeros, so that sparse columns need no loop over cells.
        """
        gaps = self.gaps()
        full = replace(self, data=_filled(self.data)) if gaps.any() else self
        column = full.numbers()
        values, wrong = column.numbers()
        values[gaps] = np.nan
        return values, {j: what for j, what in wrong.items() if not gaps[j]}, column.is_whole

    def flags(self) -> tuple[NDArray[np.bool_], dict[int, BadCell]]:
        """true and false in any case, or 1 and 0, as booleans; and all other cells."""
        texts = pc.utf8_lower(pc.cast(self.data, pa.large_string()))
        is_true = pc.fill_null(pc.is_in(texts, pa.array(["true", "1"], pa.large_string())), False).to_numpy()
        is_false = pc.fill_null(pc.is_in(texts, pa.array(["false", "0"], pa.large_string())), False).to_numpy()
        bad = np.flatnonzero(~is_true & ~is_false).tolist()
        cells = self.data.take(pa.array(bad, pa.int64())).to_pylist()
        return is_true, {j: bad_value(cell) for j, cell in zip(bad, cells, strict=True)}


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    is_view = getattr(types, "is_string_view", None)  # pyarrow 16 and later
    return bool(types.is_string(kind) or types.is_large_string(kind) or (is_view is not None and is_view(kind)))


def _filled(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """With zeros for empty cells; decimals and entirely empty columns are unchanged."""
    kind = data.type
    if _is_text(kind):
        return pc.if_else(pc.fill_null(pc.equal(data, ""), True), "0", data)
    if pa.types.is_decimal(kind) or pa.types.is_null(kind) or not data.null_count:
        return data
    return pc.fill_null(data, pa.scalar(0).cast(kind))


def _number_column(name: str, texts: pa.ChunkedArray) -> Column:
    """Texts as the nearest float64. Whole numbers that float64 would round become ints; other texts stay texts."""
    odd: list[int] = []
    try:
        values = pc.cast(texts, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        spelled = pc.match_substring_regex(texts, _NUMBER)
        # Without a plus sign, which older versions of pyarrow do not read.
        values = pc.cast(pc.utf8_ltrim(pc.if_else(spelled, texts, "nan"), "+"), pa.float64()).to_numpy()
        odd = np.flatnonzero(~spelled.to_numpy()).tolist()
    large = np.flatnonzero(np.isfinite(values) & (np.abs(values) >= _EXACT_INTEGERS)).tolist()
    rounded = _rounded(values, texts, large) if large else {}
    if not odd and not rounded:
        looks_whole = bool(np.all(values == np.floor(values)))
        return Column(name, values, is_whole=looks_whole and pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py())
    cells = values.astype(object)
    for j, text in zip(odd, texts.take(pa.array(odd, pa.int64())).to_pylist(), strict=True):
        cells[j] = text
    for j, number in rounded.items():
        cells[j] = number
    return Column(name, cells)


def _rounded(values: Floats, texts: pa.ChunkedArray, large: list[int]) -> dict[int, int]:
    """Row -> whole number, for those that float64 cannot represent."""
    found = {}
    for j, text in zip(large, texts.take(pa.array(large, pa.int64())).to_pylist(), strict=True):
        if re.fullmatch(_WHOLE, text, re.ASCII):
            digits = int(text.lstrip("+-0"))  # int() refuses thousands of digits, even of leading zeros
            number = -digits if text.startswith("-") else digits
            if number != int(values[j]):
                found[j] = number
    return found


class Extra(Protocol):
    """A per-sample column that is no feature: its valid cells, and how they become an array."""

    @property
    def column(self) -> str: ...

    @property
    def wanted(self) -> str: ...

    def accepts(self, cells: Cells) -> bool:
        """Whether the column's type is valid."""
        ...

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, BadCell]]:
        """One value per row, and the invalid cells by row."""
        ...


@dataclass(frozen=True)
class Label:
    """The wanted class of each sample, by name or, if no class is called so, by output column. Read as columns.

    classes: their names; None: they have none, and the number of columns is found later
    """

    column: str
    classes: tuple[str, ...] | None

    @property
    def wanted(self) -> str:
        if self.classes is None:
            return "wanted an output column, 0 or more: the classes have no names"
        return f"wanted one of {listed(self.classes)}, or an output column from 0 to {len(self.classes) - 1}"

    def accepts(self, cells: Cells) -> bool:
        return cells.holds_labels

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, BadCell]]:
        given = cells.names()
        if self.classes is None:
            found = [int(text) if _COLUMN.fullmatch(text := _label(cell)) else -1 for cell in given]
        else:
            place = {str(i): i for i in range(len(self.classes))} | {name: i for i, name in enumerate(self.classes)}
            found = [place.get(_label(cell), -1) for cell in given]
        wrong = {j: bad_value(cell) for j, (cell, column) in enumerate(zip(given, found, strict=True)) if column < 0}
        return np.array(found, dtype=np.int64), wrong


def _label(cell: str | int | float | None) -> str:
    """The cell as text: 1.0 becomes "1". Other floats become "", which is no label."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.0f}" if cell.is_integer() else ""


@dataclass(frozen=True)
class Amount:
    """A number per sample, finite and >= 0."""

    column: str
    wanted: str = "wanted a finite number >= 0"

    def accepts(self, cells: Cells) -> bool:
        return cells.holds_numbers

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, BadCell]]:
        values, wrong = cells.numbers().numbers()
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0))).tolist()
        return values, {j: wrong.get(j, BadCell(Kind.VALUE, f"{values[j]}")) for j in bad}


@dataclass(frozen=True)
class Limit:
    """A number per sample; NaN for an empty cell, which means no limit."""

    column: str
    wanted: str = "wanted a number, or nothing for an open side"

    def accepts(self, cells: Cells) -> bool:
        return cells.holds_numbers

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, BadCell]]:
        values, wrong = cells.numbers().numbers()
        bad = np.flatnonzero(np.isnan(values) & ~cells.gaps()).tolist()
        return values, {j: wrong.get(j, BadCell(Kind.NOT_FINITE, "NaN")) for j in bad}


@dataclass(frozen=True)
class Category:
    """A column to group samples by: numbers if all cells are numbers, else texts; None for empty cells."""

    column: str
    wanted: str = "wanted texts or numbers"

    def accepts(self, cells: Cells) -> bool:
        return not pa.types.is_nested(cells.data.type) and not pa.types.is_binary(cells.data.type)

    def read(self, cells: Cells) -> tuple[NDArray[Any], dict[int, BadCell]]:
        gaps = cells.gaps()
        found = np.full(len(cells.data), None, dtype=object)
        is_flag = pa.types.is_boolean(cells.data.type)
        if cells.holds_numbers and not is_flag and (cells.is_csv or not _is_text(cells.data.type)):
            values, wrong, _ = cells.measurements()
            if not wrong and np.isfinite(values[~gaps]).all():
                found[~gaps] = values[~gaps].tolist()
                return found, {}
        texts = pc.cast(cells.data, pa.large_string()).to_pylist()
        found[~gaps] = [text for text, gap in zip(texts, gaps.tolist(), strict=True) if not gap]
        return found, {}
