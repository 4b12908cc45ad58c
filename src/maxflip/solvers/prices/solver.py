"""Prices: each sample's cheapest flip, at prices at which the budgets clear.

    OPT <= D(lambda) = sum_r lambda_r B_r + sum_j max(0, v_j - C_j(lambda))        for every lambda >= 0

C_j(lambda) is the cost of the cheapest flip of sample j at these prices. Quotas have prices mu >= 0 too:

    OPT <= D(lambda, mu) = sum_r lambda_r B_r + sum_q mu_q b_q + sum_j max(0, v_j - mu . c_j - C_j(lambda))

so that the price of a quota acts like another worth. Each round searches flips at the present
prices, approximates each surface by its tangent plane, minimises the D that the planes predict, and moves there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING

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
from maxflip.search.settings import PRICING
from maxflip.solvers.base import Proposal, Run
from maxflip.solvers.prices import menu
from maxflip.solvers.prices.column_generation import ColumnGeneration
from maxflip.solvers.prices.flip_shard import shard_of
from maxflip.solvers.prices.levers import LeverSearch
from maxflip.solvers.prices.market import Market, Tried, first_prices, per_budget, prices_of_nearest, traded
from maxflip.solvers.prices.settings import COLUMNS, MENU, STAGES
from maxflip.solvers.prices.shard import FlipSet, has_kinks

if TYPE_CHECKING:
    from maxflip.solvers.prices.options import Prices


@dataclass(frozen=True)
class Trade:
    """One solve with these options."""

    options: Prices

    def propose(self, problem: Problem, run: Run) -> Proposal:
        _refuse_functions(problem)
        if problem.menu.levers is not None and not problem.has_free_changes:
            return menu.propose(problem, run)
        rows = run.candidates_wanted(problem)
        amounts = problem.ledger.amounts
        nobody = bool((problem.ledger.flats(rows) > amounts).any(axis=-1).all())
        if not len(problem.actionable) or not len(rows) or nobody:
            return _nothing_to_trade(problem, rows)
        sold = traded(problem)
        start = first_prices(problem, per_budget(problem))
        some_price = bool(sold.any()) or len(problem.quotas) > 0
        earlier = _earlier_prices(problem, run, sold)
        if earlier is not None:
            start = first_prices(problem, earlier)
        exact = linear.applies(problem.linear, problem.goal)
        known = earlier is not None
        more: list[FlipSet] = []
        if earlier is not None and run.pool is not None and _is_near(problem, run, rows, run.pool):
            market, flips = self._reopened(problem, run, rows, run.pool, start)
            generation = ColumnGeneration(market, added=[flips])
            if some_price and market.is_open:
                self._renew(market, generation)
        else:
            spent = 0.0
            jumping = some_price and _jumps(problem, exact=exact) and len(rows) > COLUMNS.few
            if jumping:
                tried = self._tried_on_some(problem, run, rows, start, scaled=not known)
                start, known = tried.prices[0], True
            elif some_price and not exact and len(rows) > (STAGES.many_kinked if has_kinks(problem) else STAGES.many):
                start, spent = self._prices_of_some(problem, run, rows, start, scaled=not known)
                known = True
            market = self._opened(problem, run, rows, start, scaled=not known, spent=spent)
            generation = ColumnGeneration(market)
            if jumping:
                generation.add(market.blended(tried))
                generation.run(STAGES.gap_exact)
                generation.fill(STAGES.fills)
            else:
                self._search(market, generation, exact=exact)
                if some_price and _jumps(problem, exact=exact) and generation.gap >= market.least_worth:
                    self._cut(market, generation)
            if exact or len(rows) <= STAGES.compared:
                more = [market.nearest(prices) for prices in prices_of_nearest(problem)]
        if problem.menu.levers is not None:  # without them, the bound would not hold
            self._pull_levers(market, generation, rows)
        candidates = FlipSet.all([generation.candidates(), *more]).once
        market.close()
        prices = market.scarce_prices(*generation.outcome) if generation.picked is not None else market.prices
        ceiling, lasting = market.ceilings()
        most = most_allowed([ceiling], {name: b.amount for name, b in problem.budgets.items()}, problem.worth)
        found = np.concatenate([rows[:0], *market.held.ask(lambda shard: shard.rows_found())])
        return Proposal(
            rows=candidates.rows,
            changes=candidates.changes,
            known=found,
            unreachable=market.rows_unreachable(),
            unusable=np.concatenate([rows[:0], *market.held.ask(lambda shard: shard.rows_unusable())]),
            prices=dict(zip(problem.ledger.names, prices[market.budgets].tolist(), strict=True)),
            quota_prices=prices[market.budgets.stop :],
            price_ranges=market.ranges(),
            bound=most if ceiling.proved else None,
            estimate=most if not ceiling.proved and len(found) else None,  # without a flip nothing is known
            ceilings=(lasting,) if ceiling.proved or len(found) else (),
            picked=None
            if generation.picked is None
            else Pool.of(problem, generation.picked.rows, generation.picked.changes),
            trace=market.trace,
        )

    def _search(self, market: Market, generation: ColumnGeneration, *, exact: bool) -> None:
        """Search flips and prices without an earlier plan."""
        if not market.priced.any():
            return
        market.equilibrate(self.options.rounds)
        if market.is_capped:
            generation.run(STAGES.gap_to_follow)
        if not exact and generation.gap > 0.0:  # at gap 0 cheaper flips win nothing
            self._mend(market, generation)
            if generation.samples <= STAGES.many and not market.has_spent(STAGES.unspent):
                generation.add(market.nearest(per_budget(market.problem)))
        generation.run()
        generation.make_whole()
        generation.fill(STAGES.fills)

    def _pull_levers(self, market: Market, generation: ColumnGeneration, rows: Rows) -> None:
        """Search flips with levers at the present prices, and prices with these flips."""
        market.levers = LeverSearch.of(market.problem, rows)
        for _ in range(MENU.rounds):
            generation.add(market.levers.flips(market.prices, market.costs()))
            market.value = market.dual(market.prices)
            generation.reprice()
            if market.traded.any():
                market.visit(market.prices)
                generation.run()
        generation.make_whole()
        generation.fill(STAGES.fills)

    def _cut(self, market: Market, generation: ColumnGeneration) -> None:
        """Prices by cutting planes, if column generation has left a gap. The program's dual prices are 0 for a budget
        that no known flip draws on; at such prices all samples would draw on it."""
        tried = market.tried()
        market.visit(tried.prices[0])
        generation.add(market.blended(tried))
        generation.run()
        generation.fill(STAGES.fills)

    def _renew(self, market: Market, generation: ColumnGeneration) -> None:
        """Adjust prices to slightly changed budgets, and find a few flips there. Where costs have kinks, the linear
        program over all known flips gives better prices than the tangent planes."""
        if has_kinks(market.problem):
            generation.run(STAGES.gap_to_finish, STAGES.renewals)
        else:
            market.clear_again()
            market.equilibrate(self.options.rounds)

    def _mend(self, market: Market, generation: ColumnGeneration) -> None:
        """Search cheaper flips at nearly final prices."""

        def won_at(gap: float, mended: Callable[[], None]) -> float:
            """The rise of D by cheaper flips at unchanged prices: the possible gain."""
            generation.run(gap)
            before = market.value
            mended()
            won = market.value - before
            market.equilibrate(STAGES.rounds_between)
            return won

        def again() -> None:
            if not market.has_spent(STAGES.followed):
                market.follow()
            market.touch_up()

        won_at(STAGES.gap_to_follow, market.follow)
        won_at(STAGES.gap_to_mend_again, again)
        steps = [market.finish, market.follow] if has_kinks(market.problem) else [market.finish]
        won = [np.inf] * len(steps)
        for step in cycle(range(len(steps))):
            if max(won) <= STAGES.won * market.value or market.has_spent(STAGES.sparing):
                return
            won[step] = won_at(STAGES.gap_to_finish, steps[step])

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
        held = run.engine.hold(lambda chunk: shard_of(problem, chunk, start), problem.chunks(rows, self.options.chunk))
        market = Market(problem, held, run, start, part, spent, self._effort(problem))
        market.open(scaled=scaled, polished=len(rows) <= STAGES.small or market.is_simple, led=len(rows) <= STAGES.many)
        return market

    def _reopened(self, problem: Problem, run: Run, rows: Rows, pool: Pool, start: Floats) -> tuple[Market, FlipSet]:
        """A market that starts from an earlier plan's flips, and these flips. Samples without a flip are searched. If
        they are many, those that were `not_found` in the earlier plan are skipped."""
        held = run.engine.hold(lambda chunk: shard_of(problem, chunk, start), problem.chunks(rows, self.options.chunk))
        market = Market(problem, held, run, start, effort=self._effort(problem))
        flips = FlipSet(pool.rows, pool.changes)
        lost = rows[~np.isin(rows, pool.rows)]
        if run.start is not None and len(lost) > STAGES.retried * len(rows):
            given_up = run.start.all_ids[run.start.fates.astype(str) == Fate.NOT_FOUND].astype(str)
            lost = lost[~np.isin(problem.cohort.ids[lost].astype(str), given_up)]
        market.reopen(flips, lost)
        return market, flips

    def _effort(self, problem: Problem) -> float:
        return self.options.effort * (STAGES.effort_by_rules if problem.has_rules else 1.0)

    def _tried_on_some(self, problem: Problem, run: Run, rows: Rows, start: Floats, *, scaled: bool) -> Tried:
        """Prices tried by cutting planes on some evenly spaced samples of a linear model. They begin at the prices of a
        market of fewer samples."""
        prices = start
        for size, begins in ((COLUMNS.few, True), (STAGES.some_exact, False)):
            some = rows[:: -(-len(rows) // size)]
            quietly = replace(run, watch=silent)
            market = self._opened(problem, quietly, some, prices, scaled=scaled and begins, part=len(some) / len(rows))
            if begins:
                market.equilibrate(1)
                prices = market.prices
        return market.tried()

    def _prices_of_some(
        self, problem: Problem, run: Run, rows: Rows, start: Floats, *, scaled: bool
    ) -> tuple[Floats, float]:
        """Prices estimated on some evenly spaced samples, with all budgets scaled down in proportion; and the gradients
        evaluated for this, per sample of all."""
        kinked = has_kinks(problem)
        wanted = min(STAGES.some, int(STAGES.part_kinked * len(rows))) if kinked else STAGES.some
        some = rows[:: len(rows) // wanted]
        quietly, part = replace(run, watch=silent), len(some) / len(rows)
        market = self._opened(problem, quietly, some, start, scaled=scaled, part=part)
        market.equilibrate(self.options.rounds)
        if kinked:
            generation = ColumnGeneration(market)
            for gap, mended in ((STAGES.gap_to_follow, market.follow), (STAGES.gap_to_mend_again, market.touch_up)):
                generation.run(gap)
                mended()
                market.equilibrate(STAGES.rounds_between)
            generation.run(STAGES.gap_to_finish)
        return market.prices, part * market.gradients_per_sample


def _jumps(problem: Problem, *, exact: bool) -> bool:
    """Whether cutting planes suit the problem: a single half-space, where flips are cheap to compute and averages of
    them are flips, and kinked costs, with which flips jump between features at the prices that clear the budgets."""
    return (
        exact
        and not problem.has_rules
        and problem.linear is not None
        and linear.is_one_half_space(problem.linear)
        and has_kinks(problem)
    )


def _refuse_functions(problem: Problem) -> None:
    faults = [
        f"budgets.{cost.budget}: Prices cannot price {cost.name}, only squared, absolute and count budgets. Solve with "
        "MS(), BCMS(), CCMS(), KL() or Nearest()."
        for cost in problem.functions
    ]
    if faults:
        raise ProblemError(faults)


def _earlier_prices(problem: Problem, run: Run, traded: NDArray[np.bool_]) -> Floats | None:
    """The prices at which the earlier plan was found. (Its own `prices` are 0 for budgets that it leaves unused.)"""
    if run.start is None or not run.start.prices:
        return None
    known = run.start.ceilings[0].prices if run.start.ceilings else run.start.prices
    prices = np.array([known.get(name, 0.0) for name in problem.ledger.names])
    amounts = np.where(traded, np.clip(problem.ledger.amounts, PRICING.smallest_budget, PRICING.largest_budget), 1.0)
    worth_all = np.where(traded, prices * amounts, 0.0)
    # Lower limit, so that a price of 0 can rise again: the whole budget at a millionth of the most valuable budget, or
    # of the largest worth if all prices are 0.
    low = STAGES.lowest * (worth_all.max() or problem.worth.max()) / amounts
    return np.where(traded, np.maximum(prices, low), 0.0) if low.max() > 0 else None


def _is_near(problem: Problem, run: Run, rows: Rows, pool: Pool) -> bool:
    """Whether the earlier plan's flips are a good start: it answers the same question, most samples have a flip in it,
    and no budget has changed by more than a factor of 2."""
    if run.start is None or not run.start.answers(problem) or np.isin(rows, pool.rows).mean() <= STAGES.pooled:
        return False
    for name, budget in problem.budgets.items():
        before = run.start.budgets.get(name)
        if before is None or replace(before, amount=budget.amount) != budget.detached():
            return False
        if (
            before.amount != budget.amount
            and not before.amount / STAGES.factor <= budget.amount <= before.amount * STAGES.factor
        ):
            return False
    return True


def _nothing_to_trade(problem: Problem, rows: Rows) -> Proposal:
    """The proposal if nothing can change or nobody may be picked."""
    fixed = rows if not len(problem.actionable) else rows[:0]
    none = np.empty((0, problem.width))
    return Proposal(rows=rows[:0], changes=none, unreachable=fixed, bound=0.0)
