"""Prices of features, from prices of budgets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxflip._util.types import Floats
from maxflip.problem.problem import Problem
from maxflip.search.settings import PRICING


@dataclass(frozen=True, eq=False)
class FeaturePrices:
    """cost(d) = sum_i squared_i d_i^2 + absolute_i |d_i| over the problem's actionable features, (A,) each."""

    squared: Floats
    absolute: Floats

    @classmethod
    def at(cls, problem: Problem, prices: Floats) -> FeaturePrices:
        """squared_i = sum_r prices_r U_ri over the squared budgets, absolute_i the same over the absolute ones.

        prices (m,): of the budgets, >= 0. Of a function, the squared budget most like it is taken (`as_squares`).
        """
        columns = problem.actionable
        squared = prices @ (problem.ledger.squared + problem.as_squares)[:, columns]
        absolute = prices @ problem.ledger.absolute[:, columns]
        spread = problem.spread
        dearest = max((squared * spread**2 + absolute * spread).max(initial=0.0), np.finfo(float).tiny)
        is_free = (squared == 0) & (absolute == 0)
        floor = PRICING.free * dearest if not is_free.all() else 1.0
        return cls(np.where(is_free, floor / spread**2, squared), absolute)
