"""Linear models with absolute budgets: prices by cutting planes, and averages of flips."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from maxflip import Budget, solve
from maxflip._util.types import Floats
from maxflip.solvers.prices import bundle
from tests.examples import linear_problem


def test_the_least_of_a_polyhedron_is_found() -> None:
    """D(q) = sum_r q_r + sum_j max(0, 1 - min_r q_r a_r): each sample is bought by the budget that is cheapest for it.

    100 equal samples: where all budgets are equally cheap, c = a_r q_r, D is c sum_r 1 / a_r + 100 (1 - c).
    """
    a = np.array([0.1, 0.02, 0.05])

    def evaluate(q: Floats) -> tuple[float, Floats]:
        cheapest = int((q * a).argmin())
        gain = 1 - q[cheapest] * a[cheapest]
        slope = np.ones(3)
        if gain > 0:
            slope[cheapest] -= 100 * a[cheapest]
        return float(q.sum() + 100 * max(0.0, gain)), slope

    best = bundle.minimise(evaluate, np.array([9.0, 45.0, 18.5]))[0][0]
    # It falls up to c = 1, since sum_r 1 / a_r = 80 < 100.
    assert evaluate(best)[0] == pytest.approx(80.0, rel=2e-4)


def test_weights_spread_what_is_drawn_over_the_budgets() -> None:
    """Two ways, each of which draws twice one budget and nothing of the other: half of each fits."""
    assert bundle.weights(np.array([[2.0, 0.0], [0.0, 2.0]]), np.ones(2)).tolist() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("seed", range(3))
def test_one_score_and_absolute_budgets_reach_the_closed_form_optimum(seed: int) -> None:
    """A unit of the score costs 1 / |w_i| of budget i, so that all budgets together buy sum_i |w_i| B_i of it: the
    optimum is the longest prefix of the sorted gaps that this pays for."""
    rng = np.random.default_rng(seed)
    n, m = 1500, 8
    x, w = rng.normal(size=(n, m)), rng.normal(size=m)
    gaps = np.sort(np.clip(2 * math.atanh(0.1) - x @ w, 0.0, None))
    gaps = gaps[gaps > 0]
    share = rng.dirichlet(np.ones(m))
    amounts = 0.3 * gaps.sum() * share / np.abs(w)
    budgets: dict[str, Any] = {f"x{i}": Budget(float(amounts[i]), cost="absolute") for i in range(m)}
    most = int((np.cumsum(gaps) <= 0.3 * gaps.sum()).sum())
    plan = solve(linear_problem(w, x, budgets))
    assert plan.bound is not None
    assert most <= plan.bound <= most + 2
    assert most - plan.count <= 0.003 * most
