"""what_if: between what is known to fit and what the bound allows, at any budgets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxflip import Bracket, Budget, InputError, Nearest, Plan, Prices, Problem, ProblemError, resolve, solve
from maxflip.plan.bracket import Ceiling, most_allowed
from tests.asked import (
    Solved,
    amounts_after,
    linear_questions,
    more_of,
    solved_questions,
    steps_of_budgets,
)
from tests.conftest import LONG
from tests.examples import linear_problem, net_problem

law = settings(max_examples=2000 if LONG else 20)
NEED = 2 * math.atanh(0.1)  # of the score, for a margin of 0.1


def at_distances(distances: list[float], budgets: Any, **options: Any) -> Problem:
    """Samples on a line that need a change of just these sizes."""
    return linear_problem([1.0], NEED - np.array(distances)[:, None], budgets, **options)


# --- by hand ---


def test_samples_that_cost_one_each_are_counted() -> None:
    plan = solve(at_distances([1.0] * 10, [4.0 + 1e-3]))
    assert plan.what_if({}) == (4.0, 4.0)
    assert plan.what_if({"x0": 1.0}) == (5.0, 5.0)
    assert plan.what_if({"x0": 100.0}) == (10.0, 10.0)
    assert plan.what_if({"x0": -1.5}) == (2.0, 2.0)
    assert plan.what_if({"x0": -4.0 - 1e-3}) == (0.0, 0.0)


def test_a_cap_that_is_halved_halves_the_promise() -> None:
    """Half of 20 places: 10, whatever else there is."""
    problem = at_distances(np.linspace(0.1, 1.0, 40).tolist(), {"x0": 1e3, "people": Budget(20, cost="count")})
    plan = solve(problem)
    assert plan.what_if({}) == (20.0, 20.0)
    assert plan.what_if({"people": -10}) == (10.0, 10.0)
    assert plan.what_if({"people": -19.5}) == (0.0, 0.0)
    assert plan.what_if({"people": 3.9}) == (23.0, 23.0)
    assert plan.what_if({"people": 1000}) == (40.0, 40.0)
    assert plan.what_if({"x0": 1e6}) == (20.0, 20.0)  # more of what holds nobody back


def test_the_worthiest_stay_where_a_cap_is_cut() -> None:
    problem = at_distances([1.0, 1.0, 1.0], {"x0": 9.0, "people": Budget(3, cost="count")}, worth=[5.0, 1.0, 20.0])
    plan = solve(problem)
    assert plan.what_if({"people": -1}) == (25.0, 25.0)
    assert plan.what_if({"people": -2}) == (20.0, 20.0)


def test_a_first_unit_of_a_budget_of_nothing_may_win_everybody() -> None:
    """Features that were frozen: no bound is known of them, and nobody is out of reach for sure."""
    problem = linear_problem([1.0, 1.0], NEED - np.ones((3, 2)), {"x0": 0.0, "x1": 0.1}, limits={"x1": (-3.0, 1e-3)})
    plan = solve(problem)
    assert plan.what_if({}) == (0.0, 0.0)
    assert plan.what_if({"x0": 1.0}) == (0.0, 3.0)
    assert plan.what_if({"x1": 1.0}) == (0.0, 0.0)  # out of reach by the limits: proved


def test_whoever_must_be_picked_is_in_every_plan() -> None:
    """The dear one must be picked: with less than it needs nothing is known to fit."""
    problem = at_distances([1.0, 1.0, 3.0], [11.0 + 1e-3], include=[2])
    plan = solve(problem)
    assert plan.count == 3
    assert plan.what_if({"x0": -1.0}) == (2.0, 2.0)
    assert plan.what_if({"x0": -3.0}).at_least == 0.0


def test_nobody_who_is_excluded_is_promised() -> None:
    plan = solve(at_distances([1.0, 1.0, 1.0], [1.5], exclude=[0]))
    assert plan.what_if({"x0": 10.0}) == (2.0, 2.0)


def test_a_solver_without_prices_knows_caps_and_what_fits() -> None:
    problem = at_distances([1.0, 1.0, 1.0, 2.0], {"x0": 2.5, "people": Budget(3, cost="count")})
    plan = solve(problem, Nearest())
    assert plan.what_if({}) == (2.0, 3.0)
    assert plan.what_if({"x0": 1.0}) == (3.0, 3.0)
    assert plan.what_if({"x0": 1e9, "people": 9}) == (4.0, 4.0)


def test_a_function_draws_no_more_for_some_than_for_all() -> None:
    """What it says of a single flip is not known to the plan."""

    def stretched(before: Any, after: Any) -> Any:
        return ((after - before) ** 2).sum(dim=1)

    problem = at_distances([1.0, 1.0, 1.0], {"own": Budget(2.5, ["x0"], stretched), "people": Budget(2, cost="count")})
    plan = solve(problem, Nearest())
    assert plan.count == 2
    assert plan.what_if({"people": -1.0}) == (1.0, 1.0)
    assert plan.what_if({"own": -0.4}).at_least == 2.0
    assert plan.what_if({"own": -1.0}).at_least == 0.0
    assert plan.what_if({"own": 5.0, "people": 5}) == (2.0, 3.0)


def test_a_network_has_an_estimate_for_its_most() -> None:
    plan = solve(net_problem())
    here, more = plan.what_if({}), plan.what_if({"x0": 1.0})
    assert plan.bound is None
    assert plan.estimate is not None
    assert here.at_most == max(plan.estimate, here.at_least)
    assert here.at_least == plan.worth
    assert here.at_most < more.at_most < 60


def test_it_says_what_it_is() -> None:
    assert repr(Bracket(96.0, 104.5)) == "between 96 and 104.5"
    assert repr(Bracket(7.0, 7.0)) == "exactly 7"
    low, high = Bracket(1.0, 2.0)
    assert (low, high) == (1.0, 2.0)


def test_ceilings_are_rounded_down_only_where_they_are_proved_and_worths_whole() -> None:
    whole, parts, amounts = np.array([1.0, 2.0]), np.array([1.0, 0.5]), {"a": 2.0}
    proved, guessed = Ceiling({"a": 0.3}, 1.0, True), Ceiling({"a": 0.2}, 1.0, False)
    assert most_allowed([proved, guessed], amounts, whole) == 1.0
    assert most_allowed([proved, guessed], amounts, parts) == pytest.approx(1.6)
    assert most_allowed([guessed], amounts, whole) == pytest.approx(1.4)
    assert most_allowed([], amounts, whole) == math.inf
    assert Ceiling({"a": 0.0}, 1.0, True).at({"a": math.inf}) == pytest.approx(1.0)
    assert Ceiling({"a": 0.0}, 1.0, True, frozenset({"a"})).at({"a": 1e-9}) == math.inf


# --- what is asked ---


@pytest.mark.parametrize("more", ["5", -1e9, math.nan, math.inf, True])
def test_it_takes_numbers_that_leave_a_budget(more: Any) -> None:
    plan = solve(at_distances([1.0], [9.0]))
    wrong: Any
    for wrong in ({"x0": more}, ["x0"], more):
        with pytest.raises(InputError, match="what_if"):
            plan.what_if(wrong)


def test_a_budget_that_there_is_not() -> None:
    with pytest.raises(InputError, match=r"what_if: no budget is called 'x7'"):
        solve(at_distances([1.0], [9.0])).what_if({"x7": 1.0})


def test_numbers_of_numpy_are_numbers() -> None:
    plan = solve(at_distances([1.0, 2.0], [2.0]))
    more: Any
    for more in (np.int64(1), np.float32(1)):
        assert plan.what_if({"x0": more}) == plan.what_if({"x0": 1.0})


# --- laws ---


@law
@given(solved_questions(), steps_of_budgets())
def test_the_best_of_all_sets_of_samples_lies_inside(asked: Solved, factors: list[float]) -> None:
    more = more_of(asked.problem, factors)
    plan = solve(asked.problem)
    found = plan.what_if(more)
    amounts = amounts_after(asked.problem, more)
    assert found.at_least <= asked.best(amounts, 1e-6) * (1 + 1e-12)
    assert found.at_most >= asked.best(amounts, -1e-6) * (1 - 1e-12)


@law
@given(linear_questions(), steps_of_budgets(), steps_of_budgets(), st.sampled_from([Prices(), Prices(), Nearest()]))
def test_what_a_solve_finds_lies_inside_and_neither_end_falls(
    problem: Problem, factors: list[float], others: list[float], solver: Prices | Nearest
) -> None:
    plan = solve(problem, solver)
    here = plan.what_if({})
    assert here.at_least >= plan.worth
    if plan.bound is not None:
        assert here.at_most == plan.bound
    lies_inside(problem, plan, more_of(problem, factors))
    less = more_of(problem, [min(pair) for pair in zip(factors, others, strict=True)])
    more = more_of(problem, [max(pair) for pair in zip(factors, others, strict=True)])
    low, high = plan.what_if(less), plan.what_if(more)
    assert low.at_least <= high.at_least
    assert low.at_most <= high.at_most
    for name, amount in more.items():  # one budget at a time, too
        one = plan.what_if({**less, name: amount})
        assert low.at_least <= one.at_least <= high.at_least
        assert low.at_most <= one.at_most <= high.at_most


def lies_inside(problem: Problem, plan: Plan, more: dict[str, float]) -> None:
    found = plan.what_if(more)
    try:
        again = resolve(problem, plan, budgets=amounts_after(problem, more))
    except ProblemError:  # the budgets do not suffice for the one who must be picked
        assert len(problem.include)
        assert found.at_least == 0.0
    else:
        assert found.at_least <= again.worth <= found.at_most
        assert again.bound is None or again.worth <= again.bound
