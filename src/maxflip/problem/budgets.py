"""Budget: so much of something, shared by the whole cohort. Ledger: all budgets of a problem, compiled to matrices.
Bill: what some changes draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxflip._util.exact import ExactSum, Power
from maxflip._util.frozen import Frozen, read_only
from maxflip._util.parallel import each, each_part, filled
from maxflip._util.types import Floats, Rows

if TYPE_CHECKING:
    import torch

Cost = Literal["squared", "absolute", "count"]
CostFunction: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"
COSTS: tuple[Cost, ...] = ("squared", "absolute", "count")
HUGE = 1e150  # changes above this have squares beyond float64
TINY = 2.0**-1000


@dataclass(frozen=True)
class Budget:
    """So much of something, shared by the whole cohort.

        sum over picked samples j and features i of uses_i * phi(change_ji) <= amount

    Args:
        amount: number >= 0; 0 freezes what it weighs, inf is no limit.
        uses: {feature: weight >= 0}; None: the feature that the budget is named after, with weight 1.
        cost: what phi is: "squared" (d * d, the paper), "absolute" (|d|); or "count": picked samples, and no `uses`;
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
        return np.asarray(self.draws.any(axis=0) & ~self.forbidden)

    @property
    def forbidden(self) -> NDArray[np.bool_]:
        """(F,): features that an empty budget weighs"""
        return np.asarray(self.draws[self.amounts == 0].any(axis=0))

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

    @cached_property
    def _own_feature(self) -> NDArray[np.int64] | None:
        """(m,): the feature that each budget weighs, squared, where it is one for each: the paper's case"""
        alone = (self.squared > 0).sum(axis=1) == 1
        return self.squared.argmax(axis=1) if alone.all() and not self.absolute.any() else None

    def _plain_consumption(self, changes: Floats) -> Floats:
        if self._own_feature is not None:
            weight = self.squared[np.arange(len(self.names)), self._own_feature]
            with np.errstate(over="ignore"):
                return np.asarray(changes[:, self._own_feature] ** 2 * weight)
        with np.errstate(over="ignore"):
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

    def _exact(
        self, changes: Floats, called: Floats | None, picked: Rows | None, budgets: Sequence[int]
    ) -> dict[int, ExactSum]:
        """What a plan with these changes (c, F), or those picked of them, draws from some budgets; nothing of a count.
        What a function draws is the float64 that it says; their sum is exact like any other."""
        own = slice(None) if picked is None else picked
        count = len(changes) if picked is None else len(picked)
        columns = np.empty((changes.shape[1], count))  # one after the other, so that a whole one is added up at once

        def fill(part: slice) -> None:
            columns[:, part] = changes[part if picked is None else picked[part]].T

        def total(r: int) -> ExactSum:
            if r not in self.functions:
                return self._exact_sum(r, columns)
            said = self._said(r, called)[own]  # what is no number is seen before it would be added up
            return ExactSum([(1.0, np.where(np.isfinite(said), said, 0.0), 1)])

        if budgets:
            each_part(fill, count)
        return dict(zip(budgets, each(total, budgets), strict=True))

    def _exact_sum(self, r: int, columns: Floats) -> ExactSum:
        """columns (F, count)"""
        parts: list[tuple[float, Floats, Power]] = []
        for i in np.flatnonzero(self.squared[r]):
            parts.append((float(self.squared[r, i]), columns[i], 2))
        for i in np.flatnonzero(self.absolute[r]):
            parts.append((float(self.absolute[r, i]), columns[i], 1))
        return ExactSum(parts)

    def _said(self, r: int, called: Floats | None) -> Floats:
        """(c,): what the function of budget r says"""
        return np.asarray(_known(called)[:, np.searchsorted(self.functions, r)])

    def overspent(self, changes: Floats, called: Floats | None = None, picked: Rows | None = None) -> list[int]:
        """The budgets that the plan with these changes (c, F), or those picked of them, exceeds; decided exactly."""
        own = slice(None) if picked is None else picked
        count = len(changes) if picked is None else len(picked)
        doubtful = np.flatnonzero(~self._clearly_within(changes, picked)).tolist()
        exact = self._exact(changes, called, picked, [r for r in doubtful if not self.count[r]])
        over = [
            r
            for r in doubtful
            if not (count <= self.amounts[r] if self.count[r] else exact[r].at_most(self.amounts[r]))
        ]
        unpaid = [r for r in self.functions.tolist() if not np.isfinite(self._said(r, called)[own]).all()]
        return sorted({*over, *unpaid})

    def _clearly_within(self, changes: Floats, picked: Rows | None) -> NDArray[np.bool_]:
        """(m,): by sums of each column in plain floats, and what rounding can have done to them.

        Nothing in such a sum is negative, so that no rounding of a product, or of one of the sums, takes away more than
        2**-53 of the whole; nor more than TINY, where products are below the smallest float64, times the weight that a
        square is multiplied by afterwards.
        """

        def sizes(part: slice) -> Floats:
            some = np.abs(changes[part if picked is None else picked[part]])
            with np.errstate(over="ignore"):
                return np.stack([np.einsum("ci,ci->i", some, some), some.sum(axis=0)])

        count = len(changes) if picked is None else len(picked)
        squares, absolutes = np.sum([np.zeros((2, changes.shape[1])), *each_part(sizes, count)], axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            drawn = np.where(self.squared > 0, self.squared * squares, 0.0).sum(axis=1)
            drawn += np.where(self.absolute > 0, self.absolute * absolutes, 0.0).sum(axis=1)
            most = drawn * (1.0 + 4.0 * (count + self.squared.shape[1] + 4) * 2.0**-53)
            most += count * TINY * (1.0 + self.squared.sum(axis=1))
        clear = (most < self.amounts) & (self.count == 0)
        clear[self.functions] = False
        return np.asarray(clear)

    def excess(self, r: int, changes: Floats, called: Floats | None = None) -> float:
        """What the plan draws from budget r beyond its amount, rounded once."""
        amount = float(self.amounts[r])
        return len(changes) - amount if self.count[r] else self._exact(changes, called, None, [r])[r].beyond(amount)

    def fits(self, changes: Floats) -> bool:
        return not self.overspent(changes)

    def spent(self, changes: Floats, called: Floats | None = None) -> Floats:
        """(m,): exact consumption of a plan, rounded once to the nearest float64."""
        exact = self._exact(changes, called, None, np.flatnonzero(self.count == 0).tolist())
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
