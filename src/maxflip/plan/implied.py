"""Implied: the values that follow from a plan's changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxflip._util.frozen import Frozen, freeze
from maxflip._util.types import Floats, Rows

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Implied(Frozen):
    """e values of derived features that are others than before: person by person, by step, then by feature.

    picked (e,): whose, as a position in `Plan.selected`   step (e,): 0 for a table   feature (e,)
    before, after (e,)
    """

    picked: Rows
    step: Rows
    feature: Rows
    before: Floats
    after: Floats

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.picked)

    @classmethod
    def of(cls, problem: Problem, rows: Rows, changes: Floats) -> Implied | None:
        """What follows from these changes (c, K) of the samples `rows` (c,); None where nothing can."""
        columns = problem.derived.columns
        if not len(columns):
            return None
        if not len(rows):
            return cls(rows, rows, rows, np.empty(0), np.empty(0))
        layout = problem.after(rows, changes)
        after = layout.values[:, columns]
        before = problem.cohort.values[problem.cohort.layout.rows_of(rows)][:, columns]
        row, k = np.nonzero((after != before) & ~np.isnan(before))
        picked, step = layout.owners(row)
        return cls(picked, step, columns[k], before[row, k], after[row, k])
