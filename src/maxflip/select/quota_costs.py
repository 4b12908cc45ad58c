"""What quotas cost: how much more could be won without one, by the linear relaxation over the known flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from maxflip._util.types import Floats, Rows
from maxflip.plan.pool import Pool
from maxflip.problem.problem import Problem
from maxflip.select.choose import offered, per_share
from maxflip.select.relaxation import Candidates, near_least


def quota_costs(
    problem: Problem, flips: Pool, must: Rows, prices: Mapping[str, float] | None, quota_prices: Floats | None
) -> list[tuple[float | None, float | None]]:
    """(price, cost) of each quota; None if the program found no solution.

    price  worth that one person less who is asked for, or one more who is allowed, would bring: the dual price
    cost   L without the quota minus L, where L is the value of the relaxation: never negative, and about how much more
           the best plan would be worth. Flips of other people may be cheaper at other prices, so that it is no bound.
    """
    offer = offered(problem, flips.rows, problem.bill(flips.rows, flips.changes), must)
    if not len(offer.place):
        return [(0.0, 0.0)] * len(problem.quotas.asked)
    candidates, guess = offer.candidates, per_share(problem, prices, quota_prices)
    whole = near_least(candidates, guess)
    if whole is None:
        return [(None, None)] * len(problem.quotas.asked)
    unit = offer.largest / float(candidates.worth.max()) if offer.largest > 0 else 1.0
    found: list[tuple[float | None, float | None]] = []
    for number in range(len(problem.quotas.asked)):
        own = candidates.budgets.stop + np.flatnonzero([side.quota == number for side in problem.quotas.sides])
        price = float(whole[1][own].sum())
        without = near_least(_without(candidates, own), np.delete(whole[1], own)) if price > 0 else whole
        cost = None if without is None else unit * max(0.0, without[0] - whole[0])
        found.append((unit * price, cost))
    return found


def _without(candidates: Candidates, rows: Rows) -> Candidates:
    """The candidates without these rows of the program, all of quotas."""
    gone = rows - candidates.budgets.stop
    return replace(
        candidates,
        share=np.delete(candidates.share, rows, axis=1),
        quotas=np.delete(candidates.quotas, gone),
        steps=np.delete(candidates.steps, gone),
    )
