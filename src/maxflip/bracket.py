"""Bracket: what the best plan is worth with other budgets, between what is known to fit and what a bound allows.

at_least   The people are put in a few orders that do not depend on the new budgets. Of each order the longest
           beginning that fits is a plan. A larger budget never shortens a beginning, so the best of them is monotone.
at_most    rest + sum_r price_r B_r for the prices at which the bound was computed. Prices are never negative, so this
           is monotone too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxflip.budgets import Ledger, Rows
from maxflip.exact import Floats
from maxflip.frozen import FrozenMap, read_only
from maxflip.parts import rows_of

ROUNDING = 1e-15  # of a sum of floats, each rounded once or twice: more than it can be off


class Bracket(NamedTuple):
    """Between which two numbers the worth of the best plan lies.

    Attributes:
        at_least: some plan within the budgets is worth this; it is known.
        at_most: no plan is worth more, by the bound; where there is only an estimate, about the most.
    """

    at_least: float
    at_most: float

    def __repr__(self) -> str:
        if self.at_least == self.at_most:
            return f"exactly {self.at_least:.10g}"
        return f"between {self.at_least:.10g} and {self.at_most:.10g}"


@dataclass(frozen=True)
class Ceiling:
    """No plan with budgets B is worth more than  rest + sum_r price_r B_r.

        rest = sum_j max(0, v_j - C_j(prices)),   C_j(prices): what the cheapest flip of sample j costs at these prices

    prices: of every budget, >= 0   proved: C_j are lower bounds; else they are of the flips known, and this estimates
    closed: budgets that were 0, whose features were frozen. It says nothing of plans that may change those.
    """

    prices: Mapping[str, float]
    rest: float
    proved: bool
    closed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "prices", FrozenMap(self.prices))

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.rest) and all(map(math.isfinite, self.prices.values()))

    def at(self, amounts: Mapping[str, float]) -> float:
        """The most that a plan is worth with these amounts, rounded up; inf where it says nothing of them."""
        if any(amounts[name] > 0 for name in self.closed):
            return math.inf
        paid = [price * amounts[name] for name, price in self.prices.items() if price > 0]
        return math.fsum([self.rest, *paid]) + ROUNDING * math.fsum([abs(self.rest), *paid])


def most_allowed(ceilings: Sequence[Ceiling], amounts: Mapping[str, float], worths: Floats) -> float:
    """The least of the proved ceilings, or of all where none is, at these amounts; inf without any.

    Where all worths are whole, a proved one is rounded down: no plan lies between two whole numbers.
    """
    proved = [ceiling for ceiling in ceilings if ceiling.proved]
    most = min((ceiling.at(amounts) for ceiling in proved or ceilings), default=math.inf)
    is_whole = proved and math.isfinite(most) and bool((worths == np.floor(worths)).all())
    return float(math.floor(most)) if is_whole else most


def most_worth(worths: Floats, cap: float) -> float:
    """What at most `cap` of these are worth together."""
    return math.fsum(worths if cap >= len(worths) else np.sort(worths)[::-1][: math.floor(cap)])


@dataclass(frozen=True, eq=False)
class Offers:
    """c flips from which `fitting` makes up plans.   sample (c,)   worth (c,): of the sample   changes (c, K)
    picked (c,): those of the plan at hand   must (c,): of samples that have to be picked"""

    ledger: Ledger
    sample: Rows
    worth: Floats
    changes: Floats
    picked: NDArray[np.bool_]
    must: NDArray[np.bool_]

    def orders(self, prices: Floats | None) -> tuple[Rows, ...]:
        """In which flips are taken, at most one per sample, those that must be first.

        By cost per worth, the cheapest first; a cost is what all draws cost at the prices (m,), or the sum of the
        shares of the budgets that they take, or what is drawn from one budget alone. By each of these costs once those
        of the plan first, and once all together.
        """
        drawn = self.ledger.consumption(self.changes)
        amounts = self.ledger.amounts
        shares = np.divide(1.0, amounts, out=np.zeros_like(amounts), where=(amounts > 1e-300) & np.isfinite(amounts))
        weights = [*([] if prices is None else [prices]), shares, *np.eye(len(amounts))]
        found = []
        for weight in weights:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                cost = np.where(self.worth > 0, (drawn[:, weight > 0] @ weight[weight > 0]) / self.worth, np.inf)
            cost = np.nan_to_num(cost, nan=np.inf, posinf=np.inf)
            found += [self._order(cost, self.picked), self._order(cost, np.zeros_like(self.picked))]
        return tuple(found)

    def _order(self, cost: Floats, first: NDArray[np.bool_]) -> Rows:
        """Those that must be, then `first`, then the rest, by cost; of each sample the one that comes first here."""
        order = np.lexsort((cost, ~first, ~self.must))
        once = np.unique(self.sample[order], return_index=True)[1]
        return read_only(order[np.sort(once)])

    def fitting(self, orders: Sequence[Rows], amounts: Floats) -> Rows:
        """The best beginning of one of the orders that fits into the amounts (m,); nobody where those who must be
        picked do not fit."""
        ledger = replace(self.ledger, amounts=amounts)
        needed = len(np.unique(self.sample[self.must]))
        best, most = np.empty(0, dtype=np.int64), 0.0
        drawn = ledger.consumption(self.changes)
        generous = amounts * (1 + 1e-9) + 1e-300  # rounding does not hide that a longer beginning fits
        longest = [_within(drawn[order], generous) for order in orders]
        hoped = [math.fsum(self.worth[order[:end]]) for order, end in zip(orders, longest, strict=True)]
        for k in sorted(range(len(orders)), key=lambda k: -hoped[k]):
            if hoped[k] <= most:
                break
            changes = rows_of(self.changes, orders[k])
            length = _last_true(partial(_fit, ledger, changes), _within(drawn[orders[k]], amounts), longest[k])
            worth = math.fsum(self.worth[orders[k][:length]])
            if length >= needed and worth > most:
                best, most = orders[k][:length], worth
        return best


def _fit(ledger: Ledger, changes: Floats, length: int) -> bool:
    return not ledger.overspent(changes[:length])


def _within(drawn: Floats, amounts: Floats) -> int:
    """How many of the first rows of drawn (c, m) add up to no more than the amounts, rounding aside. Draws are never
    negative: if some fit, so do fewer."""
    with np.errstate(over="ignore", invalid="ignore"):
        within = (np.cumsum(drawn, axis=0) <= amounts).all(axis=1)
    return len(drawn) if within.all() else int(within.argmin())


def _last_true(holds: Callable[[int], bool], guess: int, end: int) -> int:
    """The largest number up to `end` that holds, where 0 does and none behind one that does not; near the guess."""
    low, high, step = guess, guess, 1
    while low > 0 and not holds(low):
        low, high, step = max(0, low - step), low, 2 * step
    if low == guess:
        high = low + 1
        while high <= end and holds(high):
            low, high, step = high, high + step, 2 * step
        high = min(high, end + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
