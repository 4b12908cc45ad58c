"""Prices: everyone's cheapest flip at prices at which the budgets clear.

    OPT <= D(lambda) = sum_r lambda_r B_r + sum_j max(0, v_j - C_j(lambda))        for every lambda >= 0

C_j(lambda) is the cost of the cheapest flip of sample j at these prices. Each round finds flips at the present prices,
models each surface by its tangent plane, minimises the modelled D over the prices, and moves to that minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from maxflip._util.events import silent
from maxflip._util.types import Floats, Rows
from maxflip.errors import ProblemError
from maxflip.plan.bracket import most_allowed
from maxflip.plan.plan import Fate
from maxflip.plan.pool import Pool
from maxflip.problem.problem import Problem
from maxflip.search import linear
from maxflip.solvers.base import Proposal, Run, check_factor_option, check_whole_option
from maxflip.solvers.prices.closing import FEW, UNSPENT, Closing
from maxflip.solvers.prices.market import LARGEST, SMALLEST, Market, Tried, per_budget, prices_of_nearest, traded
from maxflip.solvers.prices.shard import Columns, Shard, has_kinks

FILLS = 3
SOME, MANY = 2000, 10_000  # beyond MANY samples, prices are first estimated on about SOME of them
# Where costs have kinks, flips found at wrong prices are of little use later. So prices are estimated from this many
# samples on, on this part of them, and more carefully.
MANY_KINKED, PART_KINKED = 1500, 0.1
SOME_EXACT = 20_000  # the same for linear models: evaluating them costs little
GAP_EXACT = 2e-3  # gap at which column generation ends there; fills and local search win most of the rest
SMALL = 128  # up to so many samples, first flips are polished, so that they are as cheap as those of Nearest
COMPARED = 200  # samples up to which all flips of Nearest are offered too, so that no plan is below its plans
# Flips are mended in stages, finer as the prices improve. Before each stage, column generation closes the relative gap
# between its mixture and the dual to:
GAP_TO_FOLLOW, GAP_TO_MEND_AGAIN, GAP_TO_FINISH = 3e-2, 2e-3, 1e-3
FOLLOWED = 55  # gradients per sample: beyond, the directions of others are not tried a second time
SPARING = 80  # gradients per sample: beyond, flips are not finished; below, finishing is repeated ...
WON = 1e-4  # ... while each time raises D by more than this part of it
POOLED = 0.5  # of the samples: if an earlier plan has flips of more than these, the search starts from them ...
FACTOR = 2.0  # ... unless a budget has become so many times larger or smaller
LOWEST = 1e-6  # of the most valuable budget: the least that any budget is worth at first, from an earlier plan's prices
RENEWALS = 2  # rounds of column generation over an earlier plan's flips, where costs have kinks
RETRIED = 0.05  # of the samples: if more than these lack a flip, those that the earlier plan gave up on are skipped


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Everyone's cheapest flip, at budget prices under which demand equals supply.

    Args:
        rounds: at most so many price changes, before the flips are polished.
        chunk: samples searched at a time.
        effort: 1 allows about 100 gradients per sample, 3 about 300. More effort finds cheaper flips of networks, above
            all with absolute budgets (docs/results/kinds.md says what it wins).
    """

    rounds: int = 12
    chunk: int = 4096
    effort: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rounds", "chunk"):
            check_whole_option(f"Prices.{name}", getattr(self, name))
        check_factor_option("Prices.effort", self.effort)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        _refuse_functions(problem)
        rows = run.candidates_wanted(problem)
        amounts = problem.ledger.amounts
        nobody = bool((problem.ledger.count[amounts < 1] > 0).any())
        if not len(problem.actionable) or not len(rows) or nobody:
            return _nothing_to_trade(problem, rows)
        sold = traded(problem)
        start = per_budget(problem)
        earlier = _earlier_prices(problem, run, sold)
        if earlier is not None:
            start = earlier
        exact = linear.applies(problem.linear, problem.goal)
        known = earlier is not None
        more: list[Columns] = []
        if earlier is not None and run.pool is not None and _is_near(problem, run, rows, run.pool):
            market, flips = self._reopened(problem, run, rows, run.pool, start)
            closing = Closing(market, merged=[flips])
            if market.traded.any() and market.is_open:
                self._renew(market, closing)
        else:
            spent = 0.0
            jumping = bool(sold.any()) and _jumps(problem, exact=exact) and len(rows) > FEW
            if jumping:
                tried = self._tried_on_some(problem, run, rows, start, scaled=not known)
                start, known = tried.prices[0], True
            elif sold.any() and not exact and len(rows) > (MANY_KINKED if has_kinks(problem) else MANY):
                start, spent = self._prices_of_some(problem, run, rows, start, scaled=not known)
                known = True
            market = self._opened(problem, run, rows, start, scaled=not known, spent=spent)
            closing = Closing(market)
            if jumping:
                closing.add(market.blended(tried))
                closing.run(GAP_EXACT)
                closing.fill(FILLS)
            else:
                self._search(market, closing, exact=exact)
            if exact or len(rows) <= COMPARED:
                more = [market.nearest(prices) for prices in prices_of_nearest(problem)]
        columns = Columns.all([closing.columns(), *more]).once
        market.close()
        prices = market.scarce_prices(*closing.outcome) if closing.picked is not None else market.prices
        ceiling = market.ceiling()
        most = most_allowed([ceiling], {name: b.amount for name, b in problem.budgets.items()}, problem.worth)
        found = np.concatenate([rows[:0], *market.held.ask(lambda shard: shard.rows_found())])
        return Proposal(
            rows=columns.rows,
            changes=columns.changes,
            known=found,
            unreachable=np.concatenate([rows[:0], *market.held.ask(lambda shard: shard.rows_unreachable())]),
            unusable=np.concatenate([rows[:0], *market.held.ask(lambda shard: shard.rows_unusable())]),
            prices=dict(zip(problem.ledger.names, prices.tolist(), strict=True)),
            price_ranges=market.ranges(),
            bound=most if ceiling.proved else None,
            estimate=most if not ceiling.proved and len(found) else None,  # without a flip nothing is known
            ceilings=(ceiling,) if ceiling.proved or len(found) else (),
            picked=None if closing.picked is None else Pool.of(problem, closing.picked.rows, closing.picked.changes),
            trace=market.trace,
        )

    def _search(self, market: Market, closing: Closing, *, exact: bool) -> None:
        """Flips and prices from nothing."""
        if not market.traded.any():
            return
        market.settle(self.rounds)
        if market.is_capped:
            closing.run(GAP_TO_FOLLOW)
        if not exact and closing.gap > 0.0:  # at gap 0 cheaper flips win nothing
            self._mend(market, closing)
            if closing.samples <= MANY and not market.has_spent(UNSPENT):
                closing.add(market.nearest(per_budget(market.problem)))
        closing.run()
        closing.make_whole()
        closing.fill(FILLS)

    def _renew(self, market: Market, closing: Closing) -> None:
        """Adjust prices to slightly changed budgets, and find a few flips there. Where costs have kinks, the linear
        program over all known flips gives better prices than the tangent planes."""
        if has_kinks(market.problem):
            closing.run(GAP_TO_FINISH, RENEWALS)
        else:
            market.clear_again()
            market.settle(self.rounds)

    def _mend(self, market: Market, closing: Closing) -> None:
        """Cheaper flips at prices that are about right."""

        def won_at(gap: float, mended: Callable[[], None]) -> float:
            """By how much the cheaper flips raise D at unchanged prices: the possible gain."""
            closing.run(gap)
            before = market.value
            mended()
            won = market.value - before
            market.settle(2)
            return won

        def again() -> None:
            if not market.has_spent(FOLLOWED):
                market.follow()
            market.touch_up()

        won_at(GAP_TO_FOLLOW, market.follow)
        won_at(GAP_TO_MEND_AGAIN, again)
        steps = [market.finish, market.follow] if has_kinks(market.problem) else [market.finish]
        won = [np.inf] * len(steps)
        for step in cycle(range(len(steps))):
            if max(won) <= WON * market.value or market.has_spent(SPARING):
                return
            won[step] = won_at(GAP_TO_FINISH, steps[step])

    def _opened(
        self,
        problem: Problem,
        run: Run,
        rows: Rows,
        start: Floats,
        *,
        scaled: bool,
        part: float = 1.0,
        spent: float = 0.0,
    ) -> Market:
        held = run.engine.hold(lambda chunk: Shard(problem, chunk, start), problem.chunks(rows, self.chunk))
        market = Market(problem, held, run, start, part, spent, self.effort)
        market.open(scaled=scaled, polished=len(rows) <= SMALL or market.is_simple, led=len(rows) <= MANY)
        return market

    def _reopened(self, problem: Problem, run: Run, rows: Rows, pool: Pool, start: Floats) -> tuple[Market, Columns]:
        """A market that starts from an earlier plan's flips; and these flips. Samples without one are searched. If they
        are many, those for which the earlier plan found none are skipped."""
        held = run.engine.hold(lambda chunk: Shard(problem, chunk, start), problem.chunks(rows, self.chunk))
        market = Market(problem, held, run, start, effort=self.effort)
        flips = Columns(pool.rows, pool.changes)
        lost = rows[~np.isin(rows, pool.rows)]
        if run.start is not None and len(lost) > RETRIED * len(rows):
            given_up = run.start.all_ids[run.start.fates.astype(str) == Fate.NOT_FOUND].astype(str)
            lost = lost[~np.isin(problem.cohort.ids[lost].astype(str), given_up)]
        market.reopen(flips, lost)
        return market, flips

    def _tried_on_some(self, problem: Problem, run: Run, rows: Rows, start: Floats, *, scaled: bool) -> Tried:
        """Prices tried on some evenly spaced samples of a linear model. They begin where a market of fewer samples
        clears, as far as it does."""
        prices = start
        for size, begins in ((FEW, True), (SOME_EXACT, False)):
            some = rows[:: -(-len(rows) // size)]
            quietly = replace(run, watch=silent)
            market = self._opened(problem, quietly, some, prices, scaled=scaled and begins, part=len(some) / len(rows))
            if begins:
                market.settle(1)
                prices = market.prices
        return market.tried()

    def _prices_of_some(
        self, problem: Problem, run: Run, rows: Rows, start: Floats, *, scaled: bool
    ) -> tuple[Floats, float]:
        """Prices estimated on some evenly spaced samples, with all budgets scaled down in proportion; and the gradients
        this took, per sample of all."""
        kinked = has_kinks(problem)
        wanted = min(SOME, int(PART_KINKED * len(rows))) if kinked else SOME
        some = rows[:: len(rows) // wanted]
        quietly, part = replace(run, watch=silent), len(some) / len(rows)
        market = self._opened(problem, quietly, some, start, scaled=scaled, part=part)
        market.settle(self.rounds)
        if kinked:
            closing = Closing(market)
            for gap, mended in ((GAP_TO_FOLLOW, market.follow), (GAP_TO_MEND_AGAIN, market.touch_up)):
                closing.run(gap)
                mended()
                market.settle(2)
            closing.run(GAP_TO_FINISH)
        return market.prices, part * market.gradients_per_sample


def _jumps(problem: Problem, *, exact: bool) -> bool:
    """Whether flips jump from feature to feature where budgets clear, and are found at little cost: beyond one plane,
    with kinked costs."""
    return exact and problem.linear is not None and linear.is_one_half_space(problem.linear) and has_kinks(problem)


def _refuse_functions(problem: Problem) -> None:
    faults = [
        f"budgets.{cost.budget}: Prices cannot price {cost.name}, only squared, absolute and count budgets. Solve with "
        "MS(), BCMS(), CCMS(), KL() or Nearest()."
        for cost in problem.functions
    ]
    if faults:
        raise ProblemError(faults)


def _earlier_prices(problem: Problem, run: Run, traded: NDArray[np.bool_]) -> Floats | None:
    """Prices at which the plan to start from was found. (It shows 0 for budgets that it leaves unused.)"""
    if run.start is None or not run.start.prices:
        return None
    known = run.start.ceilings[0].prices if run.start.ceilings else run.start.prices
    prices = np.array([known.get(name, 0.0) for name in problem.ledger.names])
    amounts = np.where(traded, np.clip(problem.ledger.amounts, SMALLEST, LARGEST), 1.0)
    worth_all = np.where(traded, prices * amounts, 0.0)
    # Lower limit, so that a price of 0 can rise again: the whole budget at a millionth of the most valuable budget, or
    # of the largest worth where no budget holds the plan back.
    low = LOWEST * (worth_all.max() or problem.worth.max()) / amounts
    return np.where(traded, np.maximum(prices, low), 0.0) if low.max() > 0 else None


def _is_near(problem: Problem, run: Run, rows: Rows, pool: Pool) -> bool:
    """Whether the earlier plan's flips are a good start: it answers the same question, most samples have a flip in it,
    and no budget has changed by more than FACTOR."""
    if run.start is None or not run.start.answers(problem) or np.isin(rows, pool.rows).mean() <= POOLED:
        return False
    for name, budget in problem.budgets.items():
        before = run.start.budgets.get(name)
        if before is None or before.uses != budget.uses or before.cost != budget.cost_name:
            return False
        if before.amount != budget.amount and not before.amount / FACTOR <= budget.amount <= before.amount * FACTOR:
            return False
    return True


def _nothing_to_trade(problem: Problem, rows: Rows) -> Proposal:
    """Nothing can change, or nobody may be picked."""
    fixed = rows if not len(problem.actionable) else rows[:0]
    none = np.empty((0, problem.width))
    return Proposal(rows=rows[:0], changes=none, unreachable=fixed, bound=0.0)
