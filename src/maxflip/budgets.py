"""Budget: so much of something, shared by the whole cohort. Ledger: all budgets of a problem, compiled to matrices.
Bill: what some changes draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxflip.exact import ExactSum, Floats, Power
from maxflip.frozen import Frozen, read_only
from maxflip.parts import each_part, filled

if TYPE_CHECKING:
    import torch

Cost = Literal["squared", "absolute", "count"]
CostFunction: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"
Rows = NDArray[np.int64]
COSTS: tuple[Cost, ...] = ("squared", "absolute", "count")
HUGE = 1e150  # changes above this have squares beyond float64


@dataclass(frozen=True)
class Budget:
    """sum over picked samples j and features i of uses_i * phi(change_ji) <= amount.

    amount  number >= 0; 0 freezes what it weighs, inf is no limit
    uses    {feature: weight >= 0}; None: the feature that the budget is named after, with weight 1
    cost    what phi is: "squared" (d * d, the paper), "absolute" (|d|); or "count": picked samples, and no `uses`;
            or a function of the values before and after, (B, len(uses)) float64 tensors on the CPU whose columns are
            the features that `uses` lists, to what each sample draws, (B,): never negative, 0 where nothing changes,
            with a gradient. Then sum_j cost(x_j, x_j + d_j) <= amount. A plan has its name, "function NAME", instead.
    """

    amount: float
    uses: Mapping[str, float] | Sequence[str] | None = None
    cost: str | CostFunction = "squared"

    @property
    def weights(self) -> Mapping[str, float]:
        """By feature; 1 for those that are only listed."""
        if self.uses is None or isinstance(self.uses, Mapping):
            return self.uses or {}
        return dict.fromkeys(self.uses, 1.0)

    @property
    def is_function(self) -> bool:
        return self.cost not in COSTS

    @property
    def cost_name(self) -> str:
        if isinstance(self.cost, str):
            return self.cost
        return f"function {getattr(self.cost, '__name__', type(self.cost).__name__)}"

    def detached(self) -> Budget:
        """With the name of the function in its place."""
        return replace(self, cost=self.cost_name)


@dataclass(frozen=True, eq=False)
class Ledger(Frozen):
    """Budgets r = 1..m over features i = 1..F: a_r(d) = sum_i squared_ri d_i^2 + absolute_ri |d_i| + count_r.

    amounts (m,)   squared, absolute (m, F)   count (m,) of 0 and 1
    draws (m, F): whether a change of the feature draws on the budget
    functions (k,): the budgets that are functions of more than d. What these draw is asked of the problem (`Bill`), and
    given to the methods below as `called` (c, k).
    """

    names: tuple[str, ...]
    amounts: Floats
    squared: Floats
    absolute: Floats
    count: Floats
    draws: NDArray[np.bool_]
    functions: NDArray[np.int64]

    @classmethod
    def compile(cls, budgets: Mapping[str, Budget], features: tuple[str, ...]) -> Ledger:
        """Budgets must be valid and have their `uses` filled in (Problem sees to both)."""
        m, width = len(budgets), len(features)
        position = {name: i for i, name in enumerate(features)}
        weights = {cost: np.zeros((m, width)) for cost in ("squared", "absolute", "function")}
        for r, budget in enumerate(budgets.values()):
            kind = "function" if budget.is_function else budget.cost_name
            for name, weight in budget.weights.items():
                weights[kind][r, position[name]] = weight
        return cls(
            names=tuple(budgets),
            amounts=read_only(np.array([b.amount for b in budgets.values()], dtype=np.float64)),
            squared=read_only(weights["squared"]),
            absolute=read_only(weights["absolute"]),
            count=read_only(np.array([float(b.cost == "count") for b in budgets.values()])),
            draws=read_only(sum(weights.values(), np.zeros((m, width))) > 0),
            functions=read_only(np.flatnonzero([b.is_function for b in budgets.values()])),
        )

    def at(self, columns: NDArray[np.int64]) -> Ledger:
        """The same budgets over places, of which `columns` tells the feature: a change counts wherever it is made."""
        return replace(
            self,
            squared=read_only(self.squared[:, columns]),
            absolute=read_only(self.absolute[:, columns]),
            draws=read_only(self.draws[:, columns]),
        )

    @cached_property
    def actionable(self) -> NDArray[np.bool_]:
        """(F,): features that some budget weighs and no empty budget forbids."""
        forbidden = self.draws[self.amounts == 0].any(axis=0)
        return np.asarray(self.draws.any(axis=0) & ~forbidden)

    def consumption(self, changes: Floats, called: Floats | None = None) -> Floats:
        """(c, F) changes -> (c, m) consumption, rounded: for solvers. Decisions use `fits`."""
        largest = max(each_part(lambda part: np.abs(changes[part]).max(initial=0.0), len(changes)), default=0.0)
        if largest < HUGE:
            drawn = filled(lambda part: self._plain_consumption(changes[part]), (len(changes), len(self.names)))
        else:
            with np.errstate(over="ignore"):  # what is beyond float64 is inf, and fits no budget
                drawn = np.stack([self._consumption(r, changes) for r in range(len(self.names))], axis=1)
        if len(self.functions):
            drawn[:, self.functions] = _known(called)
        return drawn

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

    def _exact(self, changes: Floats, called: Floats | None, picked: Rows | None = None) -> list[ExactSum]:
        """What a plan with these changes (count, F), or those picked of them, draws from each budget; nothing of a
        count. What a function draws is the float64 that it says; their sum is exact like any other."""

        def part_of(part: slice) -> list[ExactSum]:
            own = part if picked is None else picked[part]
            columns = np.ascontiguousarray(changes[own].T)
            sums = [self._exact_sum(r, columns) for r in range(len(self.names))]
            for place, r in enumerate(self.functions.tolist()):
                said = _known(called)[own, place]  # what is no number is seen before it would be added up
                sums[r] = ExactSum([(1.0, np.where(np.isfinite(said), said, 0.0), 1)])
            return sums

        sums = each_part(part_of, len(changes) if picked is None else len(picked))
        return [ExactSum.total(part[r] for part in sums) for r in range(len(self.names))]

    def _exact_sum(self, r: int, columns: Floats) -> ExactSum:
        """columns (F, count)"""
        parts: list[tuple[float, Floats, Power]] = []
        for i in np.flatnonzero(self.squared[r]):
            parts.append((float(self.squared[r, i]), columns[i], 2))
        for i in np.flatnonzero(self.absolute[r]):
            parts.append((float(self.absolute[r, i]), columns[i], 1))
        return ExactSum(parts)

    def overspent(self, changes: Floats, called: Floats | None = None, picked: Rows | None = None) -> list[int]:
        """The budgets that the plan with these changes (c, F), or those picked of them, exceeds; decided exactly."""
        count = len(changes) if picked is None else len(picked)
        if len(self.functions):
            said = _known(called) if picked is None else _known(called)[picked]
            unpaid = self.functions[~np.isfinite(said).all(axis=0)].tolist()
        else:
            unpaid = []
        exact = self._exact(changes, called, picked)
        return [
            r
            for r, amount in enumerate(self.amounts)
            if r in unpaid or not (count <= amount if self.count[r] else exact[r].at_most(float(amount)))
        ]

    def excess(self, r: int, changes: Floats, called: Floats | None = None) -> float:
        """What the plan draws from budget r beyond its amount, rounded once."""
        amount = float(self.amounts[r])
        return len(changes) - amount if self.count[r] else self._exact(changes, called)[r].beyond(amount)

    def fits(self, changes: Floats) -> bool:
        return not self.overspent(changes)

    def spent(self, changes: Floats, called: Floats | None = None) -> Floats:
        """(m,): exact consumption of a plan, rounded once to the nearest float64."""
        exact = self._exact(changes, called)
        return np.array(
            [float(len(changes)) if self.count[r] else exact[r].rounded() for r in range(len(self.names))], dtype=float
        )


def _known(called: Floats | None) -> Floats:
    if called is None:
        raise ValueError("a budget is a function: what the changes draw depends on where they start (Problem.bill)")
    return called


@dataclass(frozen=True, eq=False)
class Bill:
    """What c changes of certain samples draw, each function asked once.   changes (C, F)   called (C, k): see Ledger

    picked (c,): which of them; None: all. Changes stay where they are, since very many take long to copy.
    """

    ledger: Ledger
    changes: Floats
    called: Floats
    picked: Rows | None = None

    def of(self, which: Any) -> Bill:
        """Of these of the changes alone."""
        picked = np.arange(len(self.changes))[which] if self.picked is None else self.picked[which]
        return Bill(self.ledger, self.changes, self.called, picked)

    def __len__(self) -> int:
        return len(self.changes) if self.picked is None else len(self.picked)

    @property
    def _own(self) -> Any:
        return slice(None) if self.picked is None else self.picked

    @property
    def sizes(self) -> Floats:
        """(c, F + k): a change with no larger number among these draws no more from any budget."""
        return np.hstack([np.abs(self.changes[self._own]), self.called[self._own]])

    def sizes_for(self, r: int) -> Floats:
        """(c, .): those on which budget r depends."""
        ledger = self.ledger
        if r in ledger.functions:
            return np.asarray(self.called[self._own][:, ledger.functions == r])
        return np.asarray(np.abs(self.changes[self._own][:, ledger.draws[r]]))

    @property
    def can_be_paid(self) -> NDArray[np.bool_]:
        """(c,): no function says inf"""
        return np.asarray(np.isfinite(self.called[self._own]).all(axis=1))

    @cached_property
    def consumption(self) -> Floats:
        """(c, m), rounded"""
        return filled(self._consumption, (len(self), len(self.ledger.names)))

    def _consumption(self, part: slice) -> Floats:
        own = part if self.picked is None else self.picked[part]
        return self.ledger.consumption(self.changes[own], self.called[own])

    def overspent(self) -> list[int]:
        return self.ledger.overspent(self.changes, self.called, self.picked)

    def excess(self, r: int) -> float:
        return self.ledger.excess(r, self.changes[self._own], self.called[self._own])

    def fits(self) -> bool:
        return not self.overspent()

    def spent(self) -> Floats:
        return self.ledger.spent(self.changes[self._own], self.called[self._own])
