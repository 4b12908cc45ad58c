"""A problem's cohort as files: one for a table; for sequences a long one and, if needed, a static one."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from maxflip._util.types import Floats
from maxflip.data.cohort import plain_name
from maxflip.data.sequences import Ragged
from maxflip.errors import InputError
from maxflip.problem.problem import Problem


class _Columns:
    """The columns of a file, with unique names."""

    def __init__(self, features: Sequence[str], values: Floats, apart: Collection[str] = ()) -> None:
        """values (rows, F): NaN becomes an empty cell   apart: names that no column may have"""
        self.apart = apart
        self.arrays = {
            name: pa.array(values[:, i], pa.float64(), mask=np.isnan(values[:, i])) for i, name in enumerate(features)
        }

    def add(self, name: str, cells: Any, kind: pa.DataType, beside: Collection[str] = ()) -> str:
        """Add a column; return its name, made different from those of all columns and of `beside`."""
        taken = {plain_name(other) for other in (*self.arrays, *self.apart, *beside)}
        while plain_name(name) in taken:
            name += "_"
        self.arrays[name] = pa.array(cells, kind)
        return name

    def parquet(self) -> bytes:
        sink = io.BytesIO()
        pq.write_table(pa.table(self.arrays), sink)
        return sink.getvalue()


class CohortFiles:
    """cohort: columns of the cohort's file   samples: per-sample columns, for sequences in a static file"""

    def __init__(self, problem: Problem) -> None:
        people, ragged = problem.cohort.plain, problem.cohort.ragged
        self.people = people
        groups = _columns_of_groups(problem)
        self.cohort = self.samples = _Columns(people.features, people.values, problem.menu.one_hot)
        self.static_features: tuple[str, ...] = ()
        self.kind: dict[str, Any] = {}  # keys of the job for sequences
        self.steps: dict[str, Any] = {}
        self.groups: dict[tuple[str, type], str] = {}  # columns of groups, and of what kind they are: their names
        if ragged is None:
            self.id = self.cohort.add("id", people.ids.tolist(), pa.string(), groups)
            return
        self.static_features = ragged.static_features
        beside = {*ragged.static_features, *groups}  # in a job, names are unique over both files
        self.samples = _Columns(ragged.static_features, ragged.static)
        self.id = self.cohort.add("id", people.ids[ragged.owner].tolist(), pa.string(), beside)
        self.samples.arrays[self.id] = pa.array(people.ids.tolist(), pa.string())
        self.kind = {"kind": "sequences"}
        self.steps = {"time": self.cohort.add("time", ragged.times, pa.float64(), beside)}
        may_change = _steps_that_change(problem, ragged)
        if may_change is None:
            self.steps["steps"] = "all"
        else:
            self.steps["steps_column"] = self.cohort.add("may_change", may_change, pa.bool_(), beside)

    def add_groups(self, problem: Problem) -> None:
        """Add the columns of the groups of quotas, and of those who may get actions, but for those that are there
        already. The texts of a category get another name: beside its code, a column of the category's name would be a
        contradiction."""
        columns = _columns_of_groups(problem)
        for name in columns:
            cells = self.people.column(name)
            if cells is not None and name not in self.samples.arrays:
                is_text = any(isinstance(cell, str) for cell in cells)
                kind = pa.string() if is_text else pa.float64()
                if name in problem.menu.one_hot:
                    called = self.samples.add(name, cells, kind, columns)
                else:
                    called, self.samples.arrays[name] = name, pa.array(cells, kind)
                self.groups[name, str if is_text else float] = called

    @property
    def has_static(self) -> bool:
        """Whether a static file is needed."""
        return self.samples is not self.cohort and len(self.samples.arrays) > 1

    def table(self) -> dict[str, Any]:
        table = {
            **self.kind,
            "file": "cohort.parquet",
            "id": self.id,
            "features": list(self.people.features),
            "units": dict(self.people.units),
            **self.steps,
        }
        if self.has_static:
            table |= {"static": "static.parquet", "static_features": list(self.static_features)}
        return table


def _columns_of_groups(problem: Problem) -> tuple[str, ...]:
    """They keep their names, by which summary.json knows them."""
    parts = [one.who.group for one in problem.menu.actions if one.who is not None]
    return tuple(dict.fromkeys([*problem.quotas.columns, *(part[0] for part in parts if isinstance(part, tuple))]))


def _steps_that_change(problem: Problem, ragged: Ragged) -> NDArray[np.bool_] | None:
    """(N,): the steps whose values may change; None: all of them."""
    drawing = {name for budget in problem.budgets.values() for name in budget.drawing}
    changing = [i for i, name in enumerate(problem.cohort.features) if name in drawing]
    everyone = np.arange(len(problem))
    step = problem.slots.steps(everyone, np.arange(problem.width))
    sample, slot = np.nonzero(step >= 0)
    has_slot = np.zeros(problem.cohort.values.shape, dtype=bool)
    has_slot[ragged.begin[sample] + step[sample, slot], problem.slots.feature[slot]] = True
    measured = ~np.isnan(problem.cohort.values[:, changing])
    if np.array_equal(has_slot[:, changing], measured):
        return None
    rows = np.asarray(has_slot.any(axis=1))
    if not np.array_equal(has_slot[:, changing], measured & rows[:, None]):
        raise InputError(
            "steps: some values of a step may change and others not, which a job cannot say. Save the plan without "
            "`model`, or let all values of a step change or none."
        )
    return rows
