"""What the result files of one folder say, read once each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from research.evidence.files import FOLDER, Made, read

Row = dict[str, Any]


class Results:
    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self._read: Callable[[str], tuple[list[Row], Made]] = cache(self._from_file)

    def rows(self, name: str) -> list[Row]:
        return self._read(name)[0]

    def made(self, name: str) -> Made:
        return self._read(name)[1]

    def has(self, name: str) -> bool:
        return (self.folder / f"{name}.parquet").exists()

    def _from_file(self, name: str) -> tuple[list[Row], Made]:
        if not self.has(name):
            raise FileNotFoundError(f"there is no result file {self.folder / name}.parquet")
        table, made = read(name, self.folder)
        return table.to_pylist(), made
