"""The auditor's own readers of Parquet and CSV: whole files, and columns of a cohort."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc
from pyarrow import csv, parquet

from maxflip_verify.exact import Floats
from maxflip_wall import Unreadable, reading

TEXTUAL = {"string", "large_string", "string_view", "bool"}  # types of columns that name a value of a category


def read_table(data: bytes, name: str, texts: tuple[str, ...] = ()) -> pa.Table:
    """A Parquet or CSV file; in a CSV, the columns `texts` are read as text."""
    with reading(name):
        if data[:4] == b"PAR1":
            file = parquet.ParquetFile(pa.BufferReader(data))
            if file.metadata.num_rows * file.metadata.num_columns > 1 << 29:
                raise Unreadable(f"claims {file.metadata.num_rows} rows, more than can be read")
            return file.read()
        one_block = csv.ReadOptions(
            block_size=min(len(data) + 1, 2**31 - 1)
        )  # so that column types are inferred from all rows
        literally = {"null_values": [], "true_values": [], "false_values": [], "strings_can_be_null": False}
        types = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()), **literally)
        return csv.read_csv(pa.BufferReader(data), one_block, csv.ParseOptions(newlines_in_values=True), types)


def numbers(cells: pa.ChunkedArray) -> Floats:
    """As float64; NaN for empty cells. Raises Unreadable for whole numbers that float64 cannot hold exactly."""
    if pa.types.is_string(cells.type):
        cells = pc.if_else(pc.equal(cells, ""), None, cells)
    by_hand = pa.types.is_decimal(cells.type)  # pyarrow does not guarantee rounding to nearest for decimals
    listed = [np.nan if c is None else float(c) for c in cells.to_pylist()] if by_hand else None
    values = np.array(listed) if by_hand else cells.cast("double", safe=False).to_numpy()
    large = np.flatnonzero(np.abs(values) >= 2.0**53)
    for cell, value in zip(cells.take(pa.array(large)).to_pylist(), values[large].tolist(), strict=True):
        if (digits := str(cell).lstrip("+-0")).isdigit() and int(digits) != abs(value):
            raise Unreadable(f"{cell} is not exactly representable in float64")
    return values


def with_codes(table: pa.Table, name: str, one_hot: dict[str, list[str]], key: str) -> pa.Table:
    """The table with the columns of one-hot codes, 1 and 0, where it has the category as a column of texts instead.

    "plan_pro" stands for the text "pro" of the category "plan", and so does "pro".   key: the column of ids
    """
    held = set(table.column_names) - {key}
    for category, codes in one_hot.items():
        if category not in held:
            continue
        with reading(f"{name}: column {category!r}"):
            if table.column_names.count(category) != 1 or held & set(codes):
                raise Unreadable(f"wanted once, and none of {sorted(held & set(codes))!r:.300} beside it")
            cells = table[category].combine_chunks()
            cells = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
            if not (pa.types.is_integer(cells.type) or str(cells.type) in TEXTUAL):
                raise Unreadable(f"has the type {cells.type}; wanted texts, whole numbers or true and false")
            words = cells.cast("string").to_pylist()
            values = [code[len(category) + 1 :] if code.startswith(f"{category}_") else code for code in codes]
            if len(set(values)) < len(values) or not set(words) <= set(values):
                raise Unreadable(f"holds {sorted(map(str, set(words)))!r:.300}; wanted one of {values!r:.300} each")
            for code, value in zip(codes, values, strict=True):
                table = table.append_column(code, pa.array([float(word == value) for word in words]))
    return table


@dataclass(frozen=True)
class Source:
    """A file of the cohort, with the order of its rows in the cohort."""

    name: str
    table: pa.Table
    order: NDArray[np.intp] | None = None  # None: the order of the file

    def _cells(self, key: str, gaps: bool) -> pa.ChunkedArray:
        if self.table.column_names.count(key) != 1 or (self.table[key].null_count and not gaps):
            raise Unreadable(f"wanted once and without gaps; the columns are {self.table.column_names!r:.300}")
        return self.table[key]

    def texts(self, key: str) -> list[str]:
        with reading(f"{self.name}: column {key!r}"):
            texts: list[str] = self._cells(key, gaps=False).cast("string").to_pylist()
            return texts if self.order is None else [texts[i] for i in self.order]

    def numbers(self, key: str, gaps: bool = False) -> Floats:
        with reading(f"{self.name}: column {key!r}"):
            return self._ordered(numbers(self._cells(key, gaps)))

    def equal(self, key: str, value: str | float) -> NDArray[np.bool_]:
        """Whose cell is this text, or this number"""
        with reading(f"{self.name}: column {key!r}"):
            cells = self._cells(key, gaps=True)
            if isinstance(value, str):
                found = pc.fill_null(pc.equal(cells.cast("string"), value), False).to_numpy()
            else:
                found = numbers(cells) == value
            return np.asarray(found if self.order is None else found[self.order], dtype=bool)

    def limits(self, key: str, open_end: float) -> Floats:
        with reading(f"{self.name}: column {key!r}"):  # an empty cell means no limit
            cells = self.table[key].to_pylist()
            return self._ordered(np.array([open_end if cell in (None, "") else float(cell) for cell in cells]))

    def _ordered(self, values: Floats) -> Floats:
        return values if self.order is None else values[self.order]


def group_of(group: dict[str, Any], people: Source, ids: list[str], place: str) -> NDArray[np.bool_]:
    """(n,): who has the value in the column, or is one of the ids"""
    if "ids" not in group:
        return people.equal(group["column"], group["value"])
    if unknown := sorted(set(group["ids"]) - set(ids)):
        raise Unreadable(f"job.toml: {place}: the cohort has no {unknown!r:.200}")
    return np.isin(np.array(ids, dtype=object), np.array(group["ids"], dtype=object))
