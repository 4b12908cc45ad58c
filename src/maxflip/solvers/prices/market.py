"""Market: all shards and the budgets' prices. Rounds alternate between searching flips and clearing the market."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.engine import Held
from maxflip._util.types import Floats, Rows
from maxflip.plan.bracket import ROUNDING, Ceiling, most_allowed, most_payable
from maxflip.problem.problem import Problem
from maxflip.search.settings import GRADIENT, PRICING
from maxflip.solvers.base import Run
from maxflip.solvers.prices import bundle
from maxflip.solvers.prices.clearing import Cleared, DualPart, clear
from maxflip.solvers.prices.levers import LeverSearch
from maxflip.solvers.prices.settings import CLEARING, MARKET, SHARD
from maxflip.solvers.prices.shard import FlipSet, Shard


def traded(problem: Problem) -> NDArray[np.bool_]:
    """(m,): budgets that have a price. Empty ones and (nearly) unlimited ones have none."""
    amounts = problem.ledger.amounts
    return np.asarray((amounts > 0) & (amounts < PRICING.largest_budget))


def per_budget(problem: Problem) -> Floats:
    """(m,): prices 1 / amount; 0 for budgets that are not traded"""
    return np.where(
        traded(problem), 1.0 / np.clip(problem.ledger.amounts, PRICING.smallest_budget, PRICING.largest_budget), 0.0
    )


def first_prices(problem: Problem, of_budgets: Floats) -> Floats:
    """(m + Q,): these prices of budgets, with prices of quotas to begin with"""
    return np.concatenate([of_budgets, np.full(len(problem.quotas), CLEARING.first_quota * typical_worth(problem))])


def typical_worth(problem: Problem) -> float:
    worth = problem.worth[problem.worth > 0]
    return float(np.median(worth)) if len(worth) else 1.0


def rounding_of(problem: Problem, of_quotas: Floats) -> float:
    """What rounding can hide of all worths at these prices of quotas (Q,). Coefficients, at most 1, are rounded too."""
    if not len(of_quotas):
        return 0.0
    sizes = float(problem.worth.sum()) + len(problem) * float(of_quotas.sum())
    return ROUNDING * (len(of_quotas) + 1) * sizes


def prices_of_nearest(problem: Problem) -> tuple[Floats, Floats]:
    """(m,) each: the prices of Nearest(prices="unit") and of Nearest(prices="budgets")"""
    return np.ones(len(problem.ledger.names)), per_budget(problem)


@dataclass(frozen=True, eq=False)
class Tried:
    """prices (K, m + Q): the best first   weights (K,): with these, the average draw at the prices keeps the budgets"""

    prices: Floats
    weights: Floats


@dataclass(eq=False)
class Market:
    """All samples, in shards, and the prices of the budgets and the quotas, which are rows of one program.

    prices (m + Q,): the best so far, of the budgets and then of the quotas
    part: the part of each budget that these samples may use
    value: D at these prices, with the known flips
    last: the last clearing
    spent: gradients per sample spent on the estimate of the first prices
    effort: factor of every limit on gradients
    levers: flips with levers; None without any
    """

    problem: Problem
    held: Held[Shard]
    run: Run
    prices: Floats
    part: float = 1.0
    spent: float = 0.0
    effort: float = 1.0
    value: float = math.inf
    last: Cleared | None = None
    rounds: int = 0
    trace: dict[str, list[Any]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    levers: LeverSearch | None = None

    def open(self, *, scaled: bool, polished: bool, led: bool) -> None:
        """Search first flips.   scaled: scale the prices, of which only the ratios are known, so that half can pay"""
        stage = "Finding first flips"
        again = prices_of_nearest(self.problem)
        self.held.ask(
            lambda shard: shard.first_flips(again, polished=polished, led=led), stage=stage, watch=self.run.watch
        )
        if scaled:
            self.prices = np.append(self.prices[self.budgets] * self._contested(), self.prices[self.budgets.stop :])
        self.value = self.dual(self.prices)
        self._note("first flips")

    def reopen(self, flips: FlipSet, lost: Rows) -> None:
        """Start from known flips; search only for the samples `lost`."""
        prices = self.prices
        self.held.ask(lambda shard: shard.begin_with(flips, prices))
        self.held.ask(lambda shard: shard.explore(lost), stage="Finding flips", watch=self.run.watch)
        self.held.ask(lambda shard: shard.lay_planes(prices, MARKET.renewed))
        self.value = self.dual(self.prices)
        self._note("known flips")

    def clear_again(self) -> None:
        """Clear the market, from prices that cleared other budgets."""
        self.visit(self._cleared(CLEARING.near).prices, MARKET.picked)

    def nearest(self, prices: Floats) -> FlipSet:
        """The flips that `Nearest` finds at these prices."""
        return FlipSet.all(self.held.ask(lambda shard: shard.nearest(prices)))

    def tried(self) -> Tried:
        """Minimise D by cutting planes, for linear models. Returns the best prices and all others tried."""
        priced, units = self.priced, self.units[self.priced]
        right = self.right[priced]

        def at(q: Floats) -> Floats:
            prices = np.zeros(len(priced))
            prices[priced] = q / units
            return prices

        def evaluate(q: Floats) -> tuple[float, Floats]:
            parts = self.held.ask(lambda shard: shard.gain_and_draws(at(q)))
            drawn = np.sum([drawn for _, drawn in parts], axis=0)[priced]
            return float((right * q).sum()) + math.fsum(gain for gain, _ in parts), right - drawn / units

        start = np.maximum(self.prices[priced] * units, CLEARING.lowest * self.typical_worth)
        worths, shares = bundle.minimise(evaluate, start)
        theta = bundle.weights(shares, worths[0])
        return Tried(np.array([at(q) for q in worths]), theta)

    def blended(self, tried: Tried) -> FlipSet:
        """For each sample, the weighted average of its flips at the prices tried. Together these draw about the whole
        budgets."""
        some = tried.weights > 0
        return FlipSet.all(self.held.ask(lambda shard: shard.average_at(tried.prices[some], tried.weights[some])))

    def equilibrate(self, rounds: int) -> None:
        """Clear the market as the planes predict it, search flips at the new prices, and repeat while the planes
        predict a lower D.

        The planes are exact at the prices of their search, and D is convex. So a step that does not lower D is
        shortened. The first step is always taken: even if D is nearly least, demand may be far from the budgets.
        """
        length = 0.0
        for _ in range(rounds):
            if length < MARKET.shortest:
                cleared, here, length = self._cleared(), self.prices, 1.0
                promised = self.value - cleared.value > MARKET.enough * self.value
                if cleared.value < 0 or (self.rounds and not promised):
                    return
            ratio = np.where(self.priced, cleared.prices / np.where(self.priced, here, 1.0), 0.0)
            length = 0.0 if self.visit(here * ratio**length) else length * MARKET.shorter

    def visit(self, prices: Floats, reach: float = MARKET.reach, steps: int = SHARD.descents) -> bool:
        """Search flips at these prices, with `steps` descents each. If D is lower there, move there and return True."""
        self.rounds += 1
        stage = f"Following the prices, round {self.rounds}"
        self.held.ask(lambda shard: shard.reprice(prices, reach, steps), stage=stage, watch=self.run.watch)
        self.value = self.dual(self.prices)  # new, cheaper flips may raise it
        value = self.dual(prices)
        better = value < self.value
        if better:
            self.prices, self.value = prices, value
        self._note("prices")
        return better

    @property
    def budgets(self) -> slice:
        """The rows that are budgets."""
        return slice(len(self.amounts))

    @cached_property
    def priced(self) -> NDArray[np.bool_]:
        """(m + Q,): rows that have a price: traded budgets, and all quotas"""
        return np.append(self.traded, np.ones(len(self.problem.quotas), dtype=bool))

    @cached_property
    def units(self) -> Floats:
        """(m + Q,): prices are compared as those of so much: of a whole budget, or of a quota for all samples"""
        size = float(sum(self.held.ask(lambda shard: len(shard.rows))))
        return np.append(self.amounts, np.full(len(self.problem.quotas), size))

    @cached_property
    def right(self) -> Floats:
        """(m + Q,): right sides of the rows, in these units"""
        own = self.part * self.problem.quotas.amounts
        return np.append(np.ones(len(self.amounts)), own / self.units[self.budgets.stop :])

    @cached_property
    def amounts(self) -> Floats:
        """(m,): offered. Tiny budgets are clipped so that 1 / amount stays finite; the bound stays valid."""
        amounts = self.part * self.problem.ledger.amounts
        return np.where(amounts > 0, np.maximum(amounts, PRICING.smallest_budget), 0.0)

    @cached_property
    def traded(self) -> NDArray[np.bool_]:
        return traded(self.problem)

    @property
    def most(self) -> float:
        """Upper limit of a selection's worth: the smaller of D and the worth of all samples with a flip, or of the most
        valuable ones that fees and count budgets allow."""
        return min(self.value, self._all_worth)

    @property
    def is_open(self) -> bool:
        """Whether a plan may be worth more than the earlier one."""
        return self.most - self.run.won >= self.least_worth * (1 - 1e-9)

    @property
    def is_capped(self) -> bool:
        """Whether D has reached the worth of all samples that may be picked, so that cheaper flips win nothing."""
        return self.value >= self._all_worth * (1 - MARKET.enough)

    @property
    def _all_worth(self) -> float:
        rows = np.concatenate([np.empty(0, np.int64), *self.held.ask(lambda shard: shard.rows_found())])
        return most_payable(self.problem.ledger, self.problem.ledger.amounts, self.problem.worth[rows], rows)

    @cached_property
    def is_simple(self) -> bool:
        """Whether at most one priced budget depends on the changes: the cheapest flips are then the same at all
        prices."""
        return bool(self.problem.ledger.draws[self.traded].any(axis=1).sum() <= 1)

    @cached_property
    def weighs(self) -> bool:
        """Whether any change draws on a budget that has a price."""
        return bool(self.problem.ledger.draws[self.traded].any())

    @cached_property
    def least_worth(self) -> float:
        """The smallest positive worth of a sample."""
        return float(self.problem.worth[self.problem.worth > 0].min(initial=np.inf))

    @cached_property
    def typical_worth(self) -> float:
        return typical_worth(self.problem)

    def follow(self) -> None:
        """For every sample, try the directions in which the picked samples are changed."""
        prices = self.prices
        self._mend("Following others", lambda shard: shard.follow(prices, MARKET.picked))

    def touch_up(self) -> None:
        """Improve the flips of the samples that are picked at the present prices."""
        prices = self.prices
        self._mend("Polishing flips", lambda shard: shard.touch_up(prices, MARKET.picked, GRADIENT.touch_up))

    def finish(self) -> None:
        """The same by longer walks, for prices that are nearly final."""
        prices = self.prices
        self._mend("Finishing flips", lambda shard: shard.touch_up(prices, MARKET.picked, GRADIENT.finish))

    def _mend(self, step: str, work: Callable[[Shard], None]) -> None:
        done = self.trace["step"].count(step)
        self.held.ask(work, stage=f"{step}, round {done + 1}", watch=self.run.watch)
        self.value = self.dual(self.prices)
        self._note(step)

    @property
    def gradients_per_sample(self) -> float:
        """Gradients evaluated so far, per sample."""
        counts = self.held.ask(lambda shard: (shard.evaluations.gradients, len(shard.rows)))
        return self.spent + sum(gradients for gradients, _ in counts) / sum(samples for _, samples in counts)

    def has_spent(self, limit: float) -> bool:
        """Whether more gradients per sample were evaluated than limit x effort."""
        return self.gradients_per_sample > self.effort * limit

    def rows_unreachable(self) -> Rows:
        """Samples that are proved to have no flip."""
        rows = np.concatenate([np.empty(0, np.int64), *self.held.ask(lambda shard: shard.rows_unreachable())])
        return rows if self.levers is None else rows[~self.levers.possible[rows]]

    def costs(self) -> Floats:
        """(n,): C_j at the present prices, with all known flips; inf without one"""
        costs, prices = np.full(len(self.problem), np.inf), self.prices
        for rows, own in self.held.ask(lambda shard: (shard.rows, shard.costs(prices[self.budgets]))):
            costs[rows] = own
        return costs

    def close(self) -> None:
        """Update D at the present prices with all flips found since."""
        self.value = self.dual(self.prices)
        self._note("end")

    def scarce_prices(self, left: Floats, won: float) -> Floats:
        """(m + Q,): the prices, set to 0 for budgets and quotas that do not limit the plan.

        If D is nearly flat in a price, rounds end before the price reaches 0. So prices are set to 0 for as many
        budgets as possible, those with the largest unused share first, as long as D, minimised over the other prices,
        exceeds the plan's worth by less than one sample, or hardly exceeds the present D.

        left (m,): what the plan leaves of each budget   won: its worth
        """
        prices = self.prices.copy()
        prices[self.priced] *= self._counts
        if prices.any() and self.value > self.most:  # smoothing overprices count budgets
            sharper = self._cleared_from(prices)
            prices = sharper.prices if sharper.value < self.value else prices
        own = prices[self.budgets]
        share = np.where(own > 0, left / np.where(own > 0, self.amounts, 1.0), 0.0)
        emptied = np.argsort(-share, kind="stable")[: int((share > MARKET.left).sum())]
        enough = max(won + self.least_worth * (1 - 1e-6), self.value + MARKET.flat * self.typical_worth)
        low, high = 0, len(emptied)
        while low < high:
            middle = (low + high + 1) // 2
            start = prices.copy()
            start[emptied[:middle]] = 0.0
            found = self._cleared_from(start)
            if found.value <= enough:
                low, best = middle, found.prices
            else:
                high = middle - 1
        return best if low else prices

    def _cleared_from(self, prices: Floats) -> Cleared:
        """Clear from these prices; prices of 0 stay 0."""
        if prices.any():
            return self._clear(prices, CLEARING.sharp, CLEARING.steps)
        return Cleared(prices, self._evaluate(prices, 0.0).value, np.zeros((len(prices), len(prices))))

    def _clear(self, start: Floats, softness: tuple[float, ...], patience: int = CLEARING.small_gains) -> Cleared:
        """Clear the market; slightly less than each budget is offered."""
        units = self.units.copy()
        units[self.budgets] *= MARKET.offered
        return clear(self._evaluate, units, start, self.typical_worth, softness, patience, right=self.right)

    @property
    def _counts(self) -> NDArray[np.bool_]:
        """Of the rows that have a price: whether it is clearly above the lower limit of `clear`."""
        worth_all = self.prices[self.priced] * self.units[self.priced]
        return np.asarray(worth_all > CLEARING.low * CLEARING.lowest * self.typical_worth)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """By budget: the range of amounts in which its price changes by at most 10 %, predicted by the curvature of D.

        When the market clears, B = demand(prices), so d prices = -H^-1 d B with the Hessian H of D.
        """
        if self.last is None or not np.isfinite(self.last.curvature).all():
            return {}
        names = self.problem.ledger.names
        free = self.priced.copy()
        free[free] = self._counts
        found = {}
        inverse = np.linalg.pinv(self.last.curvature[np.ix_(free, free)]) if free.any() else np.empty((0, 0))
        for place, r in enumerate(np.flatnonzero(free[self.budgets])):
            steady, slope = MARKET.steady * float(self.prices[r]), float(inverse[place, place])
            amount = float(self.problem.ledger.amounts[r])
            if steady > slope * amount:
                continue  # the curvature of only a few samples gives no range
            reach = steady / slope
            found[names[r]] = (max(0.0, amount - reach), amount + reach)
        return found

    def dual(self, prices: Floats) -> float:
        """D(prices), with the known flips"""
        spent = float(prices[prices > 0] @ (self.right * self.units)[prices > 0])
        return spent + math.fsum(self.held.ask(lambda shard: shard.value(prices)))

    def ceilings(self) -> tuple[Ceiling, Ceiling]:
        """D as a function of the budgets, an upper limit of every plan's worth: with proved lower bounds of C_j if
        there are any, else with the known flips. First at these budgets; then at any others too, which may pay for
        levers that these do not pay for.

        Any prices prove a bound. Prices near 0 can make the lower bounds of C_j inaccurate, so the bound is also proved
        with these set to 0, and the lower one is taken.
        """
        prices = self.prices
        found = self._ceiling_at(prices)
        without = prices.copy()
        without[self.priced] *= self._counts
        if found.proved and not np.array_equal(without, prices):
            amounts = {name: budget.amount for name, budget in self.problem.budgets.items()}
            other = self._ceiling_at(without)
            if most_allowed([other], amounts, self.problem.worth) < most_allowed([found], amounts, self.problem.worth):
                found, prices = other, without
        if not found.proved or self.levers is None or self.levers.all_payable:
            return found, found
        return found, self._ceiling_at(prices, any_budgets=True)

    def _ceiling_at(self, prices: Floats, *, any_budgets: bool = False) -> Ceiling:
        problem, of_quotas = self.problem, prices[self.budgets.stop :]
        paid = (of_quotas * problem.quotas.amounts).tolist()  # for what the quotas allow, whatever the budgets are
        shares = self.held.ask(lambda shard: (shard.rows, shard.proved_gains(prices)))
        gains = [(rows, own) for rows, own in shares if own is not None]
        if gains:
            with_levers = None if self.levers is None else self.levers.proved_gains(prices, any_budgets=any_budgets)
            parts = [
                *chain.from_iterable(
                    (own if with_levers is None else np.maximum(own, with_levers[rows])).tolist() for rows, own in gains
                ),
                *paid,
            ]
            # Each part has its own rounding error; fsum adds none.
            rest = math.fsum(parts) + ROUNDING * math.fsum(map(abs, parts)) + rounding_of(problem, of_quotas)
        else:
            rest = math.fsum([*self.held.ask(lambda shard: shard.value(prices)), *paid])
        closed = frozenset(name for name, budget in problem.budgets.items() if budget.amount == 0)
        of_budgets = dict(zip(problem.ledger.names, prices[self.budgets].tolist(), strict=True))
        return Ceiling(of_budgets, rest, bool(gains), closed)

    def _evaluate(self, prices: Floats, softness: float) -> DualPart:
        return DualPart.total(self.held.ask(lambda shard: shard.dual_part(prices, softness)), len(prices))

    def _cleared(self, first: tuple[float, ...] = CLEARING.annealed) -> Cleared:
        self.last = self._clear(self.prices, first if self.last is None else CLEARING.warm)
        return self.last

    def _contested(self) -> float:
        """The factor of the prices at which half of the samples cost more than they are worth.

        If all samples can pay, or none, D is linear and shows nothing about better prices.
        """
        prices = self.prices
        relative = np.concatenate([np.empty(0), *self.held.ask(lambda shard: shard.relative_costs(prices))])
        paid = relative[relative > 0]  # with free features, some flips cost nothing at any prices
        return 1.0 / float(np.median(paid)) if len(paid) else 1.0

    def _note(self, step: str) -> None:
        counts = self.held.ask(lambda shard: (shard.evaluations.gradients, shard.evaluations.forwards))
        line = {
            "step": step,
            "dual": self.value,
            "gradients": sum(g for g, _ in counts),
            "forwards": sum(f for _, f in counts),
            "seconds": time.monotonic() - self.began,
        }
        for name, entry in line.items():
            self.trace.setdefault(name, []).append(entry)
