"""Which budgets hold a plan back: a budget of which enough is left has the price 0."""

from __future__ import annotations

import numpy as np

from maxflip.exact import Floats
from maxflip.pool import Pool
from maxflip.problem import Problem

TWICE = 2.0


def true_prices(problem: Problem, prices: Floats, offered: Pool, picked: Pool) -> Floats:
    """(m,): what one more unit of each budget would win.

    A picked sample costs at most its worth v, so it draws at most v / price_r of budget r. The next one to be picked
    would draw a little more. So a budget with 2 v / price_r left does not bind: its price is 0. v is the largest worth
    of a sample that is not picked. If every sample with a flip is picked, all prices are 0.

    prices (m,): at which the market clears   offered: the flips that the plan was chosen from   picked: the plan
    """
    others = offered.rows[~np.isin(offered.rows, picked.rows)]
    worth = float(problem.worth[others].max(initial=0.0))
    finite = np.isfinite(problem.ledger.amounts)
    left = np.where(finite, problem.ledger.amounts - problem.bill(picked.rows, picked.changes).spent(), 0.0)
    return np.where(prices * left >= TWICE * worth, 0.0, prices)
