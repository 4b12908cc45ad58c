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
    """e values that others than before follow from: of derived features, and of those that actions change.

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
        if not len(problem.derived.columns) and problem.menu.levers is None:
            return None
        if not len(rows):
            return cls(rows, rows, rows, np.empty(0), np.empty(0))
        own, layout = problem.cohort.plain.layout, problem.after(rows, changes)
        before, after = own.values[own.rows_of(rows)], layout.values
        follows = np.zeros(before.shape, dtype=bool)
        follows[:, problem.derived.columns] = True
        if problem.menu.levers is not None:
            follows |= problem.cohort.layout.touched(changes)
        row, feature = np.nonzero(follows & (after != before) & ~np.isnan(before))
        picked, step = layout.owners(row)
        return cls(picked, step, feature, before[row, feature], after[row, feature])
