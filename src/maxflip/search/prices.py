"""What a change costs per feature when every budget has a price."""

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
        """From one price >= 0 per budget, (m,): s = prices U over the squared budgets, l over the absolute ones.

        A budget that is a function counts as the squared one that is most like it.
        """
        columns = problem.actionable
        squared = prices @ (problem.ledger.squared + problem.as_squares)[:, columns]
        absolute = prices @ problem.ledger.absolute[:, columns]
        spread = problem.spread
        dearest = max((squared * spread**2 + absolute * spread).max(initial=0.0), np.finfo(float).tiny)
        is_free = (squared == 0) & (absolute == 0)
        floor = PRICING.free * dearest if not is_free.all() else 1.0
        return cls(np.where(is_free, floor / spread**2, squared), absolute)
