"""Bracket: lower and upper bound of the best plan's worth at other budgets.

at_least   Known flips are put in a few orders that do not depend on the new budgets. The longest prefix of an order
           that fits is a feasible plan. A larger budget never shortens a prefix, so the best of them is monotone. With
           quotas, only prefixes that keep them count; which these are does not depend on the budgets either.
at_most    The dual bound rest + sum_r price_r B_r, at the prices of the earlier bound. Prices are never negative, so
           this is monotone too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import FrozenMap, read_only
from maxflip._util.parallel import rows_of
from maxflip._util.types import Floats, Rows
from maxflip.problem.ledger import Ledger
from maxflip.problem.quotas import Quotas, keeping

ROUNDING = 1e-15  # relative: exceeds the rounding error of a sum whose terms were rounded once or twice
RUNNING = 1e-9  # relative: exceeds that of a running sum of the fees of up to a million samples


class Bracket(NamedTuple):
    """Between which two numbers the worth of the best plan lies.

    Attributes:
        at_least: worth of a known plan that keeps the budgets.
        at_most: the dual bound of every plan's worth; without a bound, the estimate.
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

    prices: of every budget, >= 0   proved: the C_j are lower bounds; else costs of known flips, and this is an estimate
    closed: budgets that were 0, which froze their features. The ceiling does not apply where one of them is above 0.
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
        """Upper bound of a plan's worth with these amounts, rounded up; inf where a closed budget is above 0."""
        if any(amounts[name] > 0 for name in self.closed):
            return math.inf
        paid = [price * amounts[name] for name, price in self.prices.items() if price > 0]
        return math.fsum([self.rest, *paid]) + ROUNDING * math.fsum([abs(self.rest), *paid])


def most_allowed(ceilings: Sequence[Ceiling], amounts: Mapping[str, float], worths: Floats) -> float:
    """The smallest proved ceiling at these amounts; if none is proved, the smallest of all; inf without any.

    If all worths are whole numbers, a proved one is rounded down, because every plan then has a whole worth.
    """
    proved = [ceiling for ceiling in ceilings if ceiling.proved]
    most = min((ceiling.at(amounts) for ceiling in proved or ceilings), default=math.inf)
    is_whole = proved and math.isfinite(most) and bool((worths == np.floor(worths)).all())
    return float(math.floor(most)) if is_whole else most


def most_worth(worths: Floats, cap: float) -> float:
    """Largest total worth of at most `cap` samples."""
    return math.fsum(worths if cap >= len(worths) else np.sort(worths)[::-1][: math.floor(cap)])


def most_payable(ledger: Ledger, amounts: Floats, worths: Floats, rows: Rows) -> float:
    """No plan of these samples is worth more, (c,) each: what they draw whatever their change must be paid.

    The least over the budgets, each by itself.   amounts (m,): of the budgets
    """
    flats = ledger.flats(rows)
    most = math.fsum(worths)
    for r in np.flatnonzero(np.isfinite(amounts) & (flats > 0).any(axis=tuple(range(flats.ndim - 1)))).tolist():
        most = min(most, _most_paid(worths, np.broadcast_to(flats[..., r], worths.shape), float(amounts[r])))
    return most


def _most_paid(worths: Floats, draws: Floats, amount: float) -> float:
    """Upper bound of sum v_j z_j with sum f_j z_j <= B, z in {0, 1}.   worths v, draws f (c,)   amount B

    Of equal draws exactly; else of the relaxation, which takes those worth most for what they draw, the last in part.
    """
    paying = (draws > 0) & (draws <= amount)
    v, f, free = worths[paying], draws[paying], worths[draws == 0]
    if not len(v):
        return math.fsum(free)
    if (f == f[0]).all():
        return math.fsum([*free, most_worth(v, math.floor(Fraction(amount) / Fraction(float(f[0]))))])
    order = np.argsort(-v / f, kind="stable")
    left = amount - (np.cumsum(f[order]) - f[order])
    parts = np.clip(left / f[order], 0.0, 1.0)
    most = math.fsum([*free, *(v[order] * parts)]) * (1 + RUNNING)
    return float(math.floor(most)) if (worths == np.floor(worths)).all() else most


@dataclass(frozen=True, eq=False)
class Offers:
    """c flips from which `fitting` builds plans.

    sample (c,)   worth (c,): of the sample   changes (c, K)   picked (c,): flips of the current plan
    must (c,): flips of samples that must be picked   quotas: over all samples
    """

    ledger: Ledger
    sample: Rows
    worth: Floats
    changes: Floats
    picked: NDArray[np.bool_]
    must: NDArray[np.bool_]
    quotas: Quotas

    def orders(self, prices: Floats | None) -> tuple[Rows, ...]:
        """Orders in which `fitting` takes flips: at most one per sample, samples that must be picked first.

        Flips are sorted by cost / worth, ascending. There are several costs: draws at the prices (m,), the sum of
        budget shares, and draws from each single budget. Each gives two orders: the plan's flips first, or all alike.
        """
        drawn = self.ledger.consumption(self.changes, rows=self.sample)
        amounts = self.ledger.amounts
        shares = np.divide(1.0, amounts, out=np.zeros_like(amounts), where=(amounts > 1e-300) & np.isfinite(amounts))
        weights = [*([] if prices is None else [prices]), shares, *np.eye(len(amounts))]
        weights = weights[: 1 if len(self.quotas) else None]  # orders that keep quotas take long to make
        found = []
        for weight in weights:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                cost = np.where(self.worth > 0, (drawn[:, weight > 0] @ weight[weight > 0]) / self.worth, np.inf)
            cost = np.nan_to_num(cost, nan=np.inf, posinf=np.inf)
            found += [self._order(cost, self.picked), self._order(cost, np.zeros_like(self.picked))]
        return tuple(found)

    def _order(self, cost: Floats, first: NDArray[np.bool_]) -> Rows:
        """`must` before `first` before the rest, each by cost; only the first flip of each sample is kept."""
        order = np.lexsort((cost, ~first, ~self.must))
        once = np.unique(self.sample[order], return_index=True)[1]
        once = order[np.sort(once)]
        if len(self.quotas):
            once = once[keeping(self.quotas, self.sample[once], int((self.must | first)[once].sum()))]
        return read_only(once)

    def fitting(self, orders: Sequence[Rows], amounts: Floats) -> Rows:
        """The prefix of greatest worth, over all orders, that fits into the amounts (m,); empty if the samples that
        must be picked do not fit."""
        ledger = replace(self.ledger, amounts=amounts)
        needed = len(np.unique(self.sample[self.must]))
        best, most = np.empty(0, dtype=np.int64), 0.0
        drawn = ledger.consumption(self.changes, rows=self.sample)
        generous = amounts * (1 + 1e-9) + 1e-300  # slack, so that rounding hides no longer prefix
        longest = [_within(drawn[order], generous) for order in orders]
        hoped = [math.fsum(self.worth[order[:end]]) for order, end in zip(orders, longest, strict=True)]
        for k in sorted(range(len(orders)), key=lambda k: -hoped[k]):
            if hoped[k] <= most:
                break
            changes, sample = rows_of(self.changes, orders[k]), self.sample[orders[k]]
            length = _last_true(partial(_fit, ledger, changes, sample), _within(drawn[orders[k]], amounts), longest[k])
            kept = np.flatnonzero(self.quotas.held_by_prefixes(sample[:length]))
            if not len(kept):
                continue
            length = int(kept[-1])
            worth = math.fsum(self.worth[orders[k][:length]])
            if self.must[orders[k][:length]].sum() >= needed and worth > most:
                best, most = orders[k][:length], worth
        return best


def _fit(ledger: Ledger, changes: Floats, sample: Rows, length: int) -> bool:
    return not ledger.overspent(changes[:length], rows=sample[:length])


def _within(drawn: Floats, amounts: Floats) -> int:
    """Length of the longest prefix of drawn (c, m) whose sum keeps the amounts, rounding aside. Draws are never
    negative, so every shorter prefix fits too."""
    with np.errstate(over="ignore", invalid="ignore"):
        within = (np.cumsum(drawn, axis=0) <= amounts).all(axis=1)
    return len(drawn) if within.all() else int(within.argmin())


def _last_true(is_true: Callable[[int], bool], guess: int, end: int) -> int:
    """The largest k <= end with is_true(k), searched around the guess. is_true is monotone, and is_true(0) is True."""
    low, high, step = guess, guess, 1
    while low > 0 and not is_true(low):
        low, high, step = max(0, low - step), low, 2 * step
    if low == guess:
        high = low + 1
        while high <= end and is_true(high):
            low, high, step = high, high + step, 2 * step
        high = min(high, end + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_true(middle) else (low, middle)
    return low
