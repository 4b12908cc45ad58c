"""Tables as CSV, with exact numbers and without formulas."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxflip._util.atomic import write_bytes

if TYPE_CHECKING:
    import pyarrow as pa

# Spreadsheets take texts with these beginnings for formulas. Some programs convert the full-width forms too. Texts that
# begin with ' get another one, so that removing one ' always restores the text.
_GUARDED = ("'", "=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠")


def write_csv(table: pa.Table, path: str | Path) -> None:
    """Numbers as the shortest text that reads back to the same float64; texts guarded by a leading '."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow([_cell(value) for value in row])
    write_bytes(path, text.getvalue().encode())


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_GUARDED) else text
