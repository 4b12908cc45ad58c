"""Trifles are dropped: known answers, and laws against plans that keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxflip import Action, Budget, Limit, Nearest, Problem, ProblemError, Rounded, TorchClassifier, judge, solve
from tests.conftest import LONG
from tests.contract import SOLVERS
from tests.examples import linear_net, linear_problem, missing_score, net_problem


def shared(amount: float, features: int, cost: Any = "squared") -> dict[str, Budget]:
    return {"all": Budget(amount, {f"x{i}": 1.0 for i in range(features)}, cost)}


@pytest.mark.parametrize(
    ("w", "kept"),
    [
        ([1.0, 0.095, 0.0], 1),  # x1 has 0.0089 of the cost: without it, 0.0090 more
        ([1.0, 0.11, 0.0], 2),  # 0.012
        ([1.0, 0.05, 0.05], 1),  # 0.0025 each
        ([1.0, 0.09, 0.09], 2),  # 0.0079 each, 0.0158 together: one of them
        ([1.0, 1.0, 1.0], 3),
    ],
)
def test_what_a_flip_can_do_without(w: list[float], kept: int) -> None:
    """The cheapest flip is r w / |w|^2, at r^2 / |w|^2; without some features, the same of the others."""
    x = np.zeros((2, 3))
    plan = solve(linear_problem(w, x, shared(1e6, 3)))
    untidy = solve(linear_problem(w, x, shared(1e6, 3), tidy=False))
    assert np.count_nonzero(plan.changes, axis=1).tolist() == [kept] * 2
    assert np.count_nonzero(untidy.changes, axis=1).tolist() == [np.count_nonzero(w)] * 2
    largest = np.sort(w)[::-1][:kept]
    expected = 2 * missing_score(w, x)[0] ** 2 / (largest @ largest)
    assert untidy.spend["all"] <= plan.spend["all"] <= 1.01 * untidy.spend["all"]
    assert plan.spend["all"] == pytest.approx(expected, rel=1e-4)


def test_nobody_loses_a_place_for_it() -> None:
    """A budget that pays for two cheapest flips and not a bit more."""
    w, x = [1.0, 0.05], np.zeros((2, 2))
    exact = solve(linear_problem(w, x, shared(1e6, 2), tidy=False)).spend["all"]
    plan = solve(linear_problem(w, x, shared(exact, 2)))
    assert plan.count == 2
    assert np.count_nonzero(plan.changes) == 4
    roomy = solve(linear_problem(w, x, shared(1.002 * exact, 2)))  # room for one of them, of 0.0025 / 2
    assert roomy.count == 2
    assert np.count_nonzero(roomy.changes) == 3


def test_of_two_ways_that_cost_the_same_one_is_enough() -> None:
    """Absolute costs: both features pay alike, so that any mixture is a cheapest flip."""
    problem = linear_problem([1.0, 1.0], np.zeros((4, 2)), shared(1e3, 2, "absolute"), limits={"x0": (None, 0.15)})
    lacks = missing_score([1.0, 1.0], np.zeros((1, 2)))[0]
    assert lacks > 0.15
    plan = solve(problem, Nearest())
    assert np.count_nonzero(plan.changes, axis=1).max() == 1


@settings(max_examples=60 if LONG else 2, deadline=None)
@given(seed=st.integers(0, 10_000), network=st.booleans())
def test_the_same_people_within_the_same_budgets(seed: int, network: bool) -> None:
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        options["must_hold"] = [Rounded({"x0": 0.01})]
    if rng.random() < 0.5:
        options["limits"] = {"x1": Limit(step=0.05, smallest=0.1)}

    def ask(*, tidy: bool) -> Problem:
        if network:
            return net_problem(10, 4, seed=seed, tidy=tidy, **options)
        w, x = np.random.default_rng(seed).normal(size=4), np.random.default_rng(seed + 1).normal(size=(10, 4))
        return linear_problem(w, x, [2.0] * 4, b=-1.0, tidy=tidy, **options)

    problem = ask(tidy=True)
    plan, untidy = solve(problem), solve(ask(tidy=False))
    assert plan.selected.tolist() == untidy.selected.tolist()
    assert (plan.bound, plan.estimate, plan.status) == (untidy.bound, untidy.estimate, untidy.status)
    assert (np.count_nonzero(plan.changes, axis=1) <= np.count_nonzero(untidy.changes, axis=1)).all()
    assert problem.bill(plan.selected, plan.changes).fits()
    with problem.classifier.borrowed():
        assert judge.is_flip(problem, plan.selected, plan.changes).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_is_tidied(solver: Any) -> None:
    x = np.random.default_rng(0).normal(size=(12, 3))
    ask: Any = {"w": [1.0, 0.8, 1e-4], "x": x, "budgets": [50.0] * 3, "b": -1.0}
    plan, untidy = (solve(linear_problem(**ask, tidy=tidy), solver) for tidy in (True, False))
    assert plan.count == untidy.count > 0
    assert np.count_nonzero(plan.changes[:, 2]) == 0 < np.count_nonzero(untidy.changes[:, 2])


def test_changes_beside_actions_are_tidied() -> None:
    problem = Problem(
        classifier=TorchClassifier(linear_net([1.0, 0.01], -3.0), output="logits"),
        cohort=np.zeros((3, 2)),
        target=1,
        margin=0.1,
        budgets={"x0": 30.0, "x1": 30.0, "calls": Budget(1.0, {"call": 1.0})},
        actions=[Action("call", {"x0": 1.0})],
    )
    plan = solve(problem)
    assert plan.count == 3
    assert np.count_nonzero(plan.changes[:, 1]) == 0
    assert np.count_nonzero(plan.changes[:, 0]) == 3


def test_other_values_of_tidy_are_refused() -> None:
    with pytest.raises(ProblemError, match="tidy = 'no': must be True or False"):
        linear_problem([1.0], [[0.0]], [1.0], tidy="no")


def test_nothing_is_left_of_a_sample_that_needs_nothing_else() -> None:
    """A flip of one change stays."""
    plan = solve(linear_problem([1.0], np.zeros((2, 1)), [9.0]))
    assert np.count_nonzero(plan.changes, axis=1).tolist() == [1, 1]
