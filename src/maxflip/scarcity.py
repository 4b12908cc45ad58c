"""Which budgets hold a plan back: a budget of which enough is left has the price 0."""

from __future__ import annotations

import numpy as np

from maxflip.exact import Floats
from maxflip.pool import Pool
from maxflip.problem import Problem

TWICE = 2.0


def true_prices(problem: Problem, prices: Floats, offered: Pool, picked: Pool) -> Floats:
    """(m,): what one more unit of each budget would win.

    At these prices a sample is picked if its flip costs at most its worth v, so it needs at most v / price_r of budget
    r; those who are not picked need a little more. A budget of which 2 v / price_r is left is not scarce: its price is
    0. Where nobody is left to pick all prices are 0.

    prices (m,): at which the market clears   offered: the flips that the plan was chosen from   picked: the plan
    """
    others = offered.rows[~np.isin(offered.rows, picked.rows)]
    worth = float(problem.worth[others].max(initial=0.0))
    finite = np.isfinite(problem.ledger.amounts)
    left = np.where(finite, problem.ledger.amounts - problem.bill(picked.rows, picked.changes).spent(), 0.0)
    return np.where(prices * left >= TWICE * worth, 0.0, prices)
