"""Of plans worth the same, the one that draws least: against brute force, and where the answer is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from maxflip import Budget, Nearest, Prices, Problem, ProblemError, solve
from maxflip.select.choose import choose
from maxflip.solvers import Solver
from tests.conftest import LONG
from tests.examples import linear_problem, missing_score
from tests.test_choose import random_candidates

Floats = NDArray[np.float64]


def drawn(problem: Problem, changes: Floats) -> float:
    """sum_r weight_r spend_r / amount_r over finite budgets"""
    spent, total = problem.ledger.spent(changes), 0.0
    for name, amount, spend in zip(problem.ledger.names, problem.ledger.amounts, spent, strict=True):
        if 0 < amount < math.inf:
            total += problem.thrift.get(name, 1.0) * spend / amount
    return total


def least_drawn(problem: Problem, rows: NDArray[np.int64], changes: Floats) -> tuple[float, float]:
    """(worth, draw) of the best selection, by trying all of them"""
    options = [[None, *np.flatnonzero(rows == row)] for row in np.unique(rows)]
    best = (0.0, 0.0)
    for picks in itertools.product(*options):
        chosen = [c for c in picks if c is not None]
        worth = math.fsum(problem.worth[rows[chosen]])
        if worth < best[0] - 1e-12 or not problem.ledger.fits(changes[chosen]):
            continue
        draw = drawn(problem, changes[chosen])
        if worth > best[0] + 1e-12 or draw < best[1]:
            best = (worth, draw)
    return best


@pytest.mark.parametrize("block", range(8))
def test_equals_brute_force(block: int) -> None:
    """2,000 small problems in the long run, 320 in the short one."""
    size = 250 if LONG else 20
    for seed in range(10_000 + size * block, 10_000 + size * (block + 1)):
        problem, rows, changes = random_candidates(seed)
        chosen = choose(problem, rows, changes)
        worth, draw = least_drawn(problem, rows, changes)
        assert math.fsum(problem.worth[rows[chosen]]) == pytest.approx(worth, abs=1e-9), seed
        assert drawn(problem, changes[chosen]) == pytest.approx(draw, abs=1e-9), seed


def capped(n: int, cap: int, seed: int) -> tuple[Problem, NDArray[np.int64]]:
    """One linear score, ample budgets, a binding cap; and whom to pick: those whose flip draws least.

    At prices 1 / amount the squared cost of closing a gap r is r^2 / sum_i w_i^2 amount_i: least for the least gaps.
    """
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=4)
    x = rng.normal(size=(n, 4)) * 2
    budgets = {f"x{i}": float(50 * n * rng.uniform(0.5, 2)) for i in range(4)}
    problem = linear_problem(weight, x, {**budgets, "people": Budget(cap, cost="count")})
    gap = missing_score(weight, x)
    nearest = np.argsort(np.where(gap > 0, gap, np.inf), kind="stable")[:cap]
    return problem, np.sort(nearest)


@pytest.mark.parametrize("solver", [Prices(), Nearest()], ids=repr)
@pytest.mark.parametrize(("n", "cap"), [(60, 7), (400, 15), (1000, 50), (5000, 300)])
def test_with_a_binding_cap_and_ample_budgets_the_cheapest_are_picked(n: int, cap: int, solver: Solver) -> None:
    problem, nearest = capped(n, cap, seed=n)
    plan = solve(problem, solver)
    assert plan.selected.tolist() == nearest.tolist()
    best = solve(problem.changed(budgets={"people": n}), Nearest())
    own = {str(i): change for i, change in zip(best.ids, best.moves, strict=True)}
    assert drawn(problem, plan.moves) == pytest.approx(
        drawn(problem, np.array([own[str(i)] for i in plan.ids])), rel=1e-6
    )


def test_weights_change_what_is_saved() -> None:
    """Two features can close the same gap: the one that weighs nothing is drawn on."""
    x = -np.ones((6, 2))
    budgets = {"x0": Budget(100.0, cost="absolute"), "x1": Budget(100.0, cost="absolute")}
    for dear, free in (("x0", "x1"), ("x1", "x0")):
        problem = linear_problem([1.0, 1.0], x, budgets, thrift={dear: 10.0, free: 0.1})
        plan = solve(problem)
        assert plan.count == 6
        assert plan.spend[dear] == pytest.approx(0.0, abs=1e-6)
        assert plan.spend[free] > 0


@pytest.mark.parametrize(
    ("thrift", "said"),
    [
        ({"x9": 1.0}, "thrift: no budget is called 'x9'"),
        ({"x0": -1.0}, "thrift.x0 = -1.0: must be a finite number >= 0."),
        ({"x0": "much"}, "thrift.x0 = 'much': must be a finite number >= 0."),
        ([1.0], "thrift: got"),
    ],
)
def test_wrong_weights_are_named(thrift: object, said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        linear_problem([1.0], [[-1.0]], {"x0": 1.0}, thrift=thrift)


@pytest.mark.parametrize(("weight", "saved"), [(0.0, "x1"), (1e3, "x0")])
def test_weights_count_where_the_cap_is_used_up(weight: float, saved: str) -> None:
    """Budgets are ample, so that what weighs more is not drawn on at all, or hardly."""
    x = np.random.default_rng(30).normal(size=(30, 2)) - 1
    budgets = {"x0": 90.0, "x1": 90.0, "people": Budget(7, cost="count")}
    plan = solve(linear_problem([1.0, 0.5], x, budgets, thrift={"x0": weight}))
    plain = solve(linear_problem([1.0, 0.5], x, budgets))
    assert plan.count == 7
    assert plan.spend[saved] < 0.05 * plain.spend[saved]
