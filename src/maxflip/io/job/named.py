"""Budgets of a problem as a job can say them: what is each sample's own stands in columns of the cohort's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from maxflip.io.cohort.write import CohortFiles
from maxflip.problem.budgets import Budget, Ways
from maxflip.problem.own import Own, Part


def named(budgets: Mapping[str, Budget], files: CohortFiles) -> dict[str, Budget]:
    """The budgets with the names of the columns, which are added to the files where they are not among the features."""
    columns = _Columns(files, budgets)
    return {
        name: replace(
            budget,
            uses={f: columns.weight(w, f"{name}_{f}") for f, w in budget.weights.items()} or None,
            fee=columns.number(budget.fee, f"{name}_fee"),
            only=columns.part(budget.only),
        )
        for name, budget in budgets.items()
    }


class _Columns:
    """added: {column of the problem's cohort, or (column, kind of its values): what it is called in the files}"""

    def __init__(self, files: CohortFiles, budgets: Mapping[str, Budget]) -> None:
        people = files.people
        self.files = files
        self.features = people.layout.of_each(people.features)[1]
        self.parts = [b.only for b in budgets.values() if isinstance(b.only, Part) and isinstance(b.only.group, tuple)]
        self.added: dict[Any, str] = dict(files.groups)

    def weight(self, weight: Any, name: str) -> Any:
        if isinstance(weight, Ways):
            return Ways(self.number(weight.up, f"{name}_up"), self.number(weight.down, f"{name}_down"))
        return self.number(weight, name)

    def number(self, number: Any, name: str) -> Any:
        """name: of its column, if it came from none"""
        if not isinstance(number, Own) or number.column in self.features:
            return number
        column = name if number.column is None else number.column
        if number.column is None or column not in self.added:
            self.added[column] = self.files.samples.add(column, number.values.tolist(), pa.float64())
        return Own(number.values, self.added[column])

    def part(self, part: Any) -> Any:
        if not isinstance(part, Part) or not isinstance(part.group, tuple) or part.group[0] in self.features:
            return part
        column, value = part.group
        kind = column, type(value)
        if kind not in self.added:
            cells = self._cells(*kind)
            self.added[kind] = self.files.samples.add(column, cells, pa.string() if kind[1] is str else pa.float64())
        return Part((self.added[kind], value), part.inside)

    def _cells(self, column: str, kind: type) -> list[Any]:
        """The column, as far as parts of the cohort tell it: empty for those who are in none."""
        cells: list[Any] = [None] * len(self.files.people)
        for part in self.parts:
            name, value = tuple(part.group)
            if name == column and isinstance(value, kind):
                cells = [value if there else cell for there, cell in zip(part.inside.tolist(), cells, strict=True)]
        return cells
