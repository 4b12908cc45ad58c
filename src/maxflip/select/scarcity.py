"""Which budgets limit a plan: a budget of which enough is left has the price 0."""

from __future__ import annotations

import numpy as np

from maxflip._util.types import Floats
from maxflip.plan.pool import Pool
from maxflip.problem.problem import Problem
from maxflip.select.settings import SCARCITY


def true_prices(problem: Problem, prices: Floats, offered: Pool, picked: Pool) -> Floats:
    """(m,): worth of one more unit of each budget.

    A budget does not bind, so its price is 0, if one of these is true:

    1. At least 2 v / price_r is left of it. A picked sample costs at most its worth v, so it draws at most v / price_r.
       v is the largest worth of a sample that is not picked.
    2. At least a tenth of it is left, and twice what the next samples would draw of it on average. These are the
       samples not picked whose cheapest flip costs at most twice their worth; or the cheapest of all, if there is none.
    3. It counts people, and one more fits.

    If every sample with a flip is picked, all prices are 0.

    prices (m,): the solver's   offered: the flips that the plan was chosen from   picked: the plan's flips
    """
    others = offered.those(~np.isin(offered.rows, picked.rows))
    if not len(others):
        return np.zeros_like(prices)
    finite = np.isfinite(problem.ledger.amounts)
    left = np.where(finite, problem.ledger.amounts - problem.bill(picked.rows, picked.changes).spent(), 0.0)
    worth = float(problem.worth[others.rows].max())
    ample = prices * left >= SCARCITY.samples_left * worth
    unused = (left >= SCARCITY.unused * problem.ledger.amounts) & (
        left >= SCARCITY.samples_left * _needed(problem, prices, others)
    )
    counts = problem.ledger.count
    has_place = (counts > 0) & (left >= counts)
    return np.where(ample | unused | has_place, 0.0, prices)


def _needed(problem: Problem, prices: Floats, others: Pool) -> Floats:
    """(m,): mean draw of the next samples on each budget, each with its cheapest flip."""
    drawn = problem.ledger.consumption(others.changes)
    cost = np.where(prices > 0, drawn, 0.0) @ prices
    order = np.lexsort((cost, others.rows))
    cheapest = order[np.append(True, others.rows[order][1:] != others.rows[order][:-1])]
    relative = cost[cheapest] / np.maximum(problem.worth[others.rows[cheapest]], 1e-300)
    following = cheapest[relative <= max(SCARCITY.samples_left, float(relative.min()))]
    return np.asarray(drawn[following].mean(axis=0))
