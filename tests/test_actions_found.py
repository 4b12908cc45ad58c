"""Faults of actions and choices that a hostile review found, each with the smallest case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import maxflip_verify
from maxflip import (
    Action,
    BlackBoxClassifier,
    Budget,
    Fate,
    InputError,
    Nearest,
    Plan,
    ProblemError,
    Ways,
    frontier,
    resolve,
    solve,
)
from tests.examples import linear_net, linear_problem
from tests.jobs import export

HOURS = Action("a", {"x0": 3.0}, {"hours": 3.0})


def hours(amount: float, **more: Any) -> dict[str, Any]:
    return {"hours": Budget(amount, cost="absolute"), **more}


@pytest.mark.parametrize("free", [{}, {"x1": 1.0}], ids=["alone", "beside"])
def test_a_bound_of_small_budgets_is_none_of_larger_ones(free: dict[str, float]) -> None:
    """Two hours pay for no action of three; the bound of 0 was taken for twelve hours too."""
    problem = linear_problem([1.0, 0.0], [[-1.0, 0.0]] * 4, hours(4.0, **free), actions=[HOURS])
    for plan in frontier(problem, [0.5, 1.0, 2.0, 4.0]).plans:
        assert plan.bound is not None
        assert plan.bound >= plan.worth
    small = problem.changed(budgets={"hours": 2.0})
    plan = solve(small)
    assert (plan.fates == Fate.UNREACHABLE).all()
    assert plan.bound == 0
    best = resolve(small, plan, budgets={"hours": 12.0})
    assert best.worth == 4 == best.bound
    assert plan.what_if({"hours": 10.0}).at_most >= 4


def test_a_plan_from_an_earlier_one_counts_actions_in_its_bound() -> None:
    """With an earlier plan near by, flips by actions were not looked for: the bound was below the plan."""
    actions = [Action("set", {"x1": "= 2"}), Action("dear", {"x2": 1.0}, {"hours": 1.0})]
    x = [[-1.0, 0.0, 0.0], [-1.5, 0.0, 0.0], [-1.2, -0.5, 0.0]]
    budgets = {"x0": 2.0, "people": Budget(3, cost="count"), "hours": Budget(3.0, cost="absolute")}
    problem = linear_problem([1.0, 1.5, 0.5], x, budgets, actions=actions)
    plan = solve(problem)
    for amount in (2.0, 3.0):
        again = resolve(problem, plan, budgets={"people": amount, "x0": 1.5})
        assert again.bound is not None
        assert again.bound >= again.worth == amount


def test_groups_do_not_prove_people_with_actions_unreachable() -> None:
    problem = linear_problem([1.0, 0.0], [[-1.0, 0.0]] * 6, hours(7.0), actions=[HOURS])
    plan = solve(problem, allocation="proportional", groups=[0, 0, 0, 1, 1, 1])
    assert plan.count == 2
    assert plan.fate_counts()[Fate.UNREACHABLE] == 0


@pytest.mark.parametrize("v", [0.88, 0.22, 0.15])
def test_an_own_draw_that_uses_up_a_squared_budget_is_paid(v: float) -> None:
    """The square of the root of a draw was above it, so that the only one who can be paid for was not looked at."""
    budgets = {"hours": Budget(v), "x1": Budget(1.0)}
    action = Action("a", {"x0": 3.0}, {"hours": "1 x2"})
    x = [[-1.0, 0.0, v], [-1.0, 0.0, 1.1 * v]]
    problem = linear_problem([1.0, 0.0, 0.0], x, budgets, actions=[action])
    plan = solve(problem)
    assert plan.count == 1 == plan.bound == solve(problem, Nearest()).count


def test_what_is_left_of_a_budget_does_not_loosen_the_bound() -> None:
    problem = linear_problem([1.0, 0.0], [[-1.0, 0.0]] * 100, hours(5.0), actions=[HOURS])
    plan = solve(problem)
    assert plan.count == 1 == plan.bound
    assert plan.prices is not None
    assert plan.prices["hours"] == pytest.approx(1 / 3)


def test_draws_that_tie_as_floats_are_told_apart() -> None:
    """0.1 + 0.4 is more than 0.5, which the budget has."""
    actions = [
        Action("one", {"x0": 1.5}, {"hours": 0.1}),
        Action("two", {"x0": 1.5}, {"hours": 0.4}),
        Action("both", {"x0": 3.0}, {"hours": 0.5}, excludes=["one", "two"]),
    ]
    problem = linear_problem([1.0, 0.0], [[-2.0, 0.0]], hours(0.5), actions=actions, most_actions=2)
    assert solve(problem).count == 1


def test_a_small_menu_offers_whatever_the_best_selection_may_need() -> None:
    """The third is far too dear at the prices of the program over shares, and fills up the budget: 2 + 2.5 + 0.5."""
    action = Action("a", {"x0": 3.0}, {"hours": "1 x1"})
    x = [[-1.0, 2.0], [-1.0, 2.625], [-1.0, 2.5], [-1.0, 0.5]]
    problem = linear_problem([1.0, 0.0], x, hours(5.0), actions=[action], worth=[3.0, 2.0, 1.0, 2.0])
    plan = solve(problem)
    assert plan.ids.tolist() == ["0", "2", "3"]
    assert solve(problem, Nearest()).worth == plan.worth


def test_people_worth_nothing_are_no_fault() -> None:
    problem = linear_problem([1.0, 0.0], [[-1.0, 0.0]], hours(5.0), actions=[HOURS], worth=[0.0])
    assert solve(problem).worth == 0


def test_what_follows_from_actions_is_read_back(tmp_path: Path) -> None:
    plan = solve(linear_problem([1.0, 0.0], [[-1.0, 0.0]] * 4, hours(4.0), actions=[HOURS]))
    plan.save(tmp_path / "plan")
    again = Plan.load(tmp_path / "plan")
    assert len(again.implied_table()) == 1
    assert again.implied_table().equals(plan.implied_table())
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "implied.parquet").is_file()


def test_the_auditor_agrees_on_a_zero_without_sign(tmp_path: Path) -> None:
    """-2 x 0 is -0.0; the change of 0.0 that is added makes it 0.0."""
    action = Action("stop", {"x0": "x 0"}, {"hours": 3.0})
    problem = linear_problem([1.0, 0.0], [[-2.0, 0.0]], hours(4.0), b=1.0, actions=[action])
    export(linear_net([1.0, 0.0], 1.0), tmp_path / "model.pt2", features=2, dtype=torch.float64)
    solve(problem).save(tmp_path / "plan", problem=problem, model=tmp_path / "model.pt2")
    assert maxflip_verify.audit(tmp_path / "plan").passed


def test_codes_of_many_digits_are_told_apart(tmp_path: Path) -> None:
    """Both were called 1.23457e+06, and the switch led to the first of them."""
    budgets = {"x1": Budget(3.0, cost="absolute")}
    choices = {"x1": {1234567: 3.0, 1234568: 1.0, 0.12345678: 2.0}}
    problem = linear_problem([0.0, 1.0], [[0.0, 0.0]], budgets, b=-1234567.5, choices=choices)
    plan = solve(problem)
    assert plan.table()["feature"].to_pylist() == ["x1 = 1234568"]
    assert plan.implied_table()["after"].to_pylist() == [1234568.0]
    export(linear_net([0.0, 1.0], -1234567.5), tmp_path / "model.pt2", features=2, dtype=torch.float64)
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "model.pt2")
    assert maxflip_verify.audit(tmp_path / "plan").passed


ONE_HOT = {"one_hot": {"c": ["x0", "x1"]}, "choices": {"c": {"x0": 1.0}}}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"budgets": {"h": Budget(3.0, uses={"x1": Ways(1, 2)})}, "choices": {"x1": {2: 5.0}}}, "budgets.h.uses.x1"),
        ({"budgets": {"h": Budget(3.0, uses={"x1": "x0"})}, "choices": {"x1": {2: 5.0}}}, "weight x distance"),
        ({"budgets": {"x0": 1.0, "c": 1.0}, **ONE_HOT}, "budgets.x0: 'x0' belongs to the category 'c': use choices."),
        ({"budgets": {"x1": 1.0}, "choices": {"x1": {2: 1.0, "2": 5.0}}}, "choices.x1.2: the value is named twice."),
        ({"budgets": {"x1": 1.0}, "choices": {"x1": dict.fromkeys(range(10_001), 1.0)}}, "more than 10,000"),
    ],
    ids=["ways", "column", "free code", "twice", "many"],
)
def test_faults_that_were_taken_silently(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ProblemError) as raised:
        linear_problem([1.0, 0.0], [[1.0, 0.0]], **arguments)
    assert says in raised.value.problems[0]


@pytest.mark.parametrize("argument", ["classes", "features"])
def test_names_that_are_no_list_are_a_fault(argument: str) -> None:
    with pytest.raises(InputError, match=f"{argument}: got 5"):
        BlackBoxClassifier(lambda x: np.full((len(x), 2), 0.5), **{argument: 5})  # type: ignore[arg-type]


def test_no_lever_is_a_zero_with_a_sign() -> None:
    """Flips without a lever were moved against its gradient by nothing: -0.0 in its column."""
    budgets = {"x0": 4.0, "hours": Budget(1.0, cost="absolute")}
    problem = linear_problem([1.0, 0.0], [[-1.0, 0.0], [-1.5, 0.0]], budgets, actions=[HOURS])
    stored = problem.settle(np.array([0, 1]), np.array([[1.0, -0.0, -0.0], [-0.0, 0.0, 1.0]]))
    assert not np.signbit(stored).any()
