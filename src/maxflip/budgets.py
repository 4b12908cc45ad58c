"""Budget: so much of something, shared by the whole cohort. Ledger: all budgets of a problem, compiled to matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maxflip.exact import ExactSum, Floats, Power
from maxflip.frozen import Frozen, read_only
from maxflip.parts import each_part, filled

Cost = Literal["squared", "absolute", "count"]
Rows = NDArray[np.int64]
COSTS: tuple[Cost, ...] = ("squared", "absolute", "count")
HUGE = 1e150  # changes above this have squares beyond float64


@dataclass(frozen=True)
class Budget:
    """sum over picked samples j and features i of uses_i * phi(change_ji) <= amount.

    amount  number >= 0; 0 freezes what it weighs, inf is no limit
    uses    {feature: weight >= 0}; None: the feature that the budget is named after, with weight 1
    cost    what phi is: "squared" (d * d, the paper), "absolute" (|d|); or "count": picked samples, and no `uses`
    """

    amount: float
    uses: Mapping[str, float] | None = None
    cost: Cost = "squared"


@dataclass(frozen=True, eq=False)
class Ledger(Frozen):
    """Budgets r = 1..m over features i = 1..F: a_r(d) = sum_i squared_ri d_i^2 + absolute_ri |d_i| + count_r.

    amounts (m,)   squared, absolute (m, F)   count (m,) of 0 and 1
    """

    names: tuple[str, ...]
    amounts: Floats
    squared: Floats
    absolute: Floats
    count: Floats

    @classmethod
    def compile(cls, budgets: Mapping[str, Budget], features: tuple[str, ...]) -> Ledger:
        """Budgets must be valid and have their `uses` filled in (Problem sees to both)."""
        m, width = len(budgets), len(features)
        position = {name: i for i, name in enumerate(features)}
        weights = {cost: np.zeros((m, width)) for cost in ("squared", "absolute")}
        for r, budget in enumerate(budgets.values()):
            for name, weight in (budget.uses or {}).items():
                weights[budget.cost][r, position[name]] = weight
        return cls(
            names=tuple(budgets),
            amounts=read_only(np.array([b.amount for b in budgets.values()], dtype=np.float64)),
            squared=read_only(weights["squared"]),
            absolute=read_only(weights["absolute"]),
            count=read_only(np.array([float(b.cost == "count") for b in budgets.values()])),
        )

    @cached_property
    def actionable(self) -> NDArray[np.bool_]:
        """(F,): features that some budget weighs and no empty budget forbids."""
        weight = self.squared + self.absolute
        weighed = (weight > 0).any(axis=0)
        forbidden = (weight[self.amounts == 0] > 0).any(axis=0)
        return np.asarray(weighed & ~forbidden)

    def consumption(self, changes: Floats) -> Floats:
        """(c, F) changes -> (c, m) consumption, rounded: for solvers. Decisions use `fits`."""
        largest = max(each_part(lambda part: np.abs(changes[part]).max(initial=0.0), len(changes)), default=0.0)
        if largest < HUGE:
            return filled(lambda part: self._plain_consumption(changes[part]), (len(changes), len(self.names)))
        with np.errstate(over="ignore"):  # what is beyond float64 is inf, and fits no budget
            return np.stack([self._consumption(r, changes) for r in range(len(self.names))], axis=1)

    def _plain_consumption(self, changes: Floats) -> Floats:
        drawn = changes**2 @ self.squared.T
        if self.absolute.any():
            drawn += np.abs(changes) @ self.absolute.T
        return np.asarray(drawn + self.count)

    def _consumption(self, r: int, changes: Floats) -> Floats:
        """(c,), whatever the size: a weight is multiplied in before the square, and a weight of 0 not at all."""
        drawn = np.full(len(changes), self.count[r])
        for i in np.flatnonzero(self.squared[r]):
            drawn += (np.sqrt(self.squared[r, i]) * changes[:, i]) ** 2
        for i in np.flatnonzero(self.absolute[r]):
            drawn += self.absolute[r, i] * np.abs(changes[:, i])
        return drawn

    def _exact(self, changes: Floats, picked: Rows | None = None) -> list[ExactSum]:
        """What a plan with these changes (count, F) draws from each budget; nothing of a count."""
        if picked is None:
            sums = each_part(lambda part: self._exact_part(changes[part]), len(changes))
        else:
            sums = each_part(lambda part: self._exact_part(changes[picked[part]]), len(picked))
        return [ExactSum.total(part[r] for part in sums) for r in range(len(self.names))]

    def _exact_part(self, changes: Floats) -> list[ExactSum]:
        columns = np.ascontiguousarray(changes.T)
        return [self._exact_sum(r, columns) for r in range(len(self.names))]

    def _exact_sum(self, r: int, columns: Floats) -> ExactSum:
        """columns (F, count)"""
        parts: list[tuple[float, Floats, Power]] = []
        for i in np.flatnonzero(self.squared[r]):
            parts.append((float(self.squared[r, i]), columns[i], 2))
        for i in np.flatnonzero(self.absolute[r]):
            parts.append((float(self.absolute[r, i]), columns[i], 1))
        return ExactSum(parts)

    def overspent(self, changes: Floats, picked: Rows | None = None) -> list[int]:
        """The budgets that the plan with these changes (c, F), or those picked of them, exceeds; decided exactly."""
        exact, count = self._exact(changes, picked), len(changes if picked is None else picked)
        return [
            r
            for r, amount in enumerate(self.amounts)
            if not (count <= amount if self.count[r] else exact[r].at_most(float(amount)))
        ]

    def excess(self, r: int, changes: Floats) -> float:
        """What the plan draws from budget r beyond its amount, rounded once."""
        amount = float(self.amounts[r])
        return len(changes) - amount if self.count[r] else self._exact(changes)[r].beyond(amount)

    def fits(self, changes: Floats) -> bool:
        return not self.overspent(changes)

    def spent(self, changes: Floats) -> Floats:
        """(m,): exact consumption of a plan, rounded once to the nearest float64."""
        exact = self._exact(changes)
        return np.array(
            [float(len(changes)) if self.count[r] else exact[r].rounded() for r in range(len(self.names))], dtype=float
        )
