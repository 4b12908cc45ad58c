"""Which budgets limit a plan: one of which enough is left has the price 0, and one may be too small for any flip."""

from __future__ import annotations

import numpy as np

from maxflip._util.types import Floats
from maxflip.plan.pool import Pool
from maxflip.problem.problem import Problem
from maxflip.select.settings import SCARCITY


def true_prices(problem: Problem, prices: Floats, offered: Pool, picked: Pool, worth: Floats) -> Floats:
    """(m,): worth of one more unit of each budget.

    A budget does not bind, so its price is 0, if one of these is true:

    1. At least 2 v / price_r is left of it. A picked sample costs at most its worth v, so it draws at most v / price_r.
       v is the largest worth of a sample that is not picked.
    2. At least a tenth of it is left, and twice what the next samples would draw of it on average. These are the
       samples not picked whose cheapest flip costs at most twice their worth; or the cheapest of all, if there is none.
       Except if D, over these flips, rises by a sample once the price is 0: then flips avoid the budget because so
       little of it is there.
    3. It counts people, or adds up their fees, and any one more fits.

    If every sample with a flip is picked, all prices are 0.

    prices (m,): the solver's   offered: the flips that the plan was chosen from   picked: the plan's flips
    worth (n,): of the samples, at the prices of the quotas
    """
    others = offered.those(~np.isin(offered.rows, picked.rows))
    if not len(others):
        return np.zeros_like(prices)
    finite = np.isfinite(problem.ledger.amounts)
    left = np.where(finite, problem.ledger.amounts - problem.bill(picked.rows, picked.changes).spent(), 0.0)
    most = float(worth[others.rows].max())
    ample = prices * left >= SCARCITY.samples_left * most
    unused = (left >= SCARCITY.unused * problem.ledger.amounts) & (
        left >= SCARCITY.samples_left * _needed(problem, prices, others, worth)
    )
    for r in np.flatnonzero(unused & ~ample & (prices > 0)):
        without = np.where(np.arange(len(prices)) == r, 0.0, prices)
        unused[r] = _dual(problem, without, offered, worth) < _dual(problem, prices, offered, worth) + most
    dearest = np.broadcast_to(problem.ledger.flats(others.rows), (len(others), len(prices))).max(axis=0)
    has_place = problem.ledger.are_flat & (left >= dearest)
    return np.where(ample | unused | has_place, 0.0, prices)


def _dual(problem: Problem, prices: Floats, offered: Pool, worth: Floats) -> float:
    """D(prices) = sum_r price_r B_r + sum_j max(0, v_j - C_j(prices)),   C_j: of the cheapest of these flips"""
    gain = worth[offered.rows] - problem.bill(offered.rows, offered.changes).consumption @ prices
    best = np.zeros(len(worth))
    np.maximum.at(best, offered.rows, gain)
    return float(prices[prices > 0] @ problem.ledger.amounts[prices > 0] + best.sum())


def needs(problem: Problem, known: Pool) -> dict[str, float]:
    """{budget: draw} of the known flip that comes nearest to fitting, for the budgets of which it draws more than there
    is. Empty if a known flip fits, or none is known.

    How near a flip comes: its largest draw as a multiple of the amount. A budget that all known flips exceed is
    always among these.
    """
    if not len(known):
        return {}
    amounts = problem.ledger.amounts
    drawn = problem.bill(known.rows, known.changes).consumption
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(drawn > 0, drawn / amounts, 0.0).max(axis=1)
    nearest = int(share.argmin())
    over = drawn[nearest] > amounts
    if not np.isfinite(drawn[nearest][over]).all():
        return {}
    return {problem.ledger.names[r]: float(drawn[nearest, r]) for r in np.flatnonzero(over).tolist()}


def _needed(problem: Problem, prices: Floats, others: Pool, worth: Floats) -> Floats:
    """(m,): mean draw of the next samples on each budget, each with its cheapest flip."""
    drawn = problem.bill(others.rows, others.changes).consumption
    cost = np.where(prices > 0, drawn, 0.0) @ prices
    order = np.lexsort((cost, others.rows))
    cheapest = order[np.append(True, others.rows[order][1:] != others.rows[order][:-1])]
    relative = cost[cheapest] / np.maximum(worth[others.rows[cheapest]], 1e-300)
    following = cheapest[relative <= max(SCARCITY.samples_left, float(relative.min()))]
    return np.asarray(drawn[following].mean(axis=0))
