"""Prices of budgets that hold nothing back are 0, and worths of any size are planned for as well as worths of 1."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxflip import Budget, Fate, Nearest, Plan, Prices, Problem, TorchClassifier, resolve, solve
from maxflip.io.summary import summary_table
from maxflip.report.budgets import budgets
from maxflip.select import choose as chooser
from tests.conftest import LONG
from tests.examples import linear_problem, small_net


def random_capped(seed: int) -> tuple[Problem, int]:
    """Ample budgets of every kind, and a cap on people that binds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 80))
    x = rng.normal(size=(n, 3)) - 1.0
    budgets: dict[str, Any] = {"x0": float(1e4 * n), "x1": Budget(1e4 * n, cost="absolute")}
    budgets["hours"] = Budget(1e4 * n, {"x1": 0.5, "x2": 1.0}, "absolute")
    weight = rng.normal(size=3)
    open_ = int((x @ weight < 2 * math.atanh(0.1)).sum())
    cap = max(1, int(open_ * rng.uniform(0.2, 0.8)))
    return linear_problem(weight, x, {**budgets, "people": Budget(cap, cost="count")}), min(cap, open_)


@pytest.mark.parametrize("seed", range(2000 if LONG else 12))
def test_with_a_binding_cap_and_ample_budgets_the_cap_alone_has_a_price(seed: int) -> None:
    problem, most = random_capped(seed)
    plan = solve(problem)
    assert plan.count == most
    assert plan.prices is not None
    assert {name: price for name, price in plan.prices.items() if name != "people"} == {"x0": 0, "x1": 0, "hours": 0}
    if plan.fate_counts()[Fate.LEFT_OUT]:
        assert plan.prices["people"] == pytest.approx(1.0, abs=0.01)
    assert set(plan.price_ranges) <= {"people"}


def test_where_everybody_is_moved_nothing_has_a_price() -> None:
    rng = np.random.default_rng(1)
    plan = solve(linear_problem([1.0, -2.0], rng.normal(size=(50, 2)), [1e5, 1e5]))
    assert plan.prices == {"x0": 0.0, "x1": 0.0}


def test_a_budget_that_binds_keeps_its_price() -> None:
    """One budget, gaps r_j: the price of one more unit is one person per r^2 of the last one picked."""
    x = -np.arange(1.0, 101.0)[:, None] / 10
    problem = linear_problem([1.0], x, [40.0])
    plan = solve(problem)
    gap = 2 * math.atanh(0.1) - x[plan.selected, 0].min()
    assert plan.prices is not None
    assert plan.prices["x0"] == pytest.approx(1 / gap**2, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "few"), [("money", False), ("decades", True), *([("money", True), ("decades", False)] if LONG else [])]
)
def test_worths_of_any_size_reach_the_bound(kind: str, few: bool) -> None:
    """1,000 people, linear, so that the bound is proved."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1000, 6))
    worth = 10 ** rng.uniform(0, 6, 1000) if kind == "decades" else np.round(rng.lognormal(6, 1.2, 1000))
    amounts = {f"x{i}": float(a) for i, a in enumerate((2 if few else 20) * rng.lognormal(size=6))}
    plan = solve(linear_problem(rng.normal(size=6), x, amounts, worth=worth))
    assert plan.bound is not None
    assert plan.worth >= 0.995 * plan.bound
    assert chooser.GAVE_UP not in plan.notices


def test_a_program_that_gives_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    problem = linear_problem([1.0, 1.0], rng.normal(size=(30, 2)) - 1, [5.0, 5.0])
    monkeypatch.setattr(chooser, "relaxed", lambda *_, **__: None)
    plan = solve(problem)
    assert chooser.GAVE_UP in plan.notices
    assert plan.count > 0


def test_scaling_leaves_relations_between_worths_as_they_are() -> None:
    assert chooser.unit_of(np.array([1.0, 1000.0])) == 1.0
    assert chooser.unit_of(np.array([1.0, 1e6])) == 2.0**20


def network_problem(n: int, cost: str) -> Problem:
    rng = np.random.default_rng(n)
    budgets = {f"x{i}": Budget(float(a), cost=cost) for i, a in enumerate(n / 30 * rng.lognormal(size=5))}
    classifier = TorchClassifier(small_net(5, seed=3), output="logits")
    return Problem(classifier=classifier, cohort=rng.normal(size=(n, 5)), target=1, margin=0.1, budgets=budgets)


def gradients(plan: Plan) -> int:
    return int(plan.trace["gradients"][-1])


@cache
def solved_network(cost: Any) -> tuple[Problem, Plan]:
    problem = network_problem(400, cost)
    return problem, solve(problem)


@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("factor", [0.9, 1.0, 1.2] if LONG else [0.9])
def test_resolve_takes_a_tenth_of_the_gradients_and_loses_little(cost: str, factor: float) -> None:
    problem, plan = solved_network(cost)
    budgets = {name: factor * budget.amount for name, budget in problem.budgets.items()}
    again, fresh = resolve(problem, plan, budgets=budgets), solve(problem.changed(budgets=budgets))
    assert 10 * gradients(again) <= gradients(plan)
    assert again.worth >= 0.98 * fresh.worth
    assert again.estimate is not None
    assert fresh.worth <= again.estimate + 1


def test_a_cap_with_a_place_left_has_no_price() -> None:
    """`hours` is used up by 119 people, one below the cap. More places would stay empty."""
    x = -np.ones((200, 1))
    each = (1.0 + 2 * math.atanh(0.1)) ** 2
    budgets = {"x0": 119.5 * each, "people": Budget(120, cost="count")}
    plan = solve(linear_problem([1.0], x, budgets))
    assert plan.count == 119
    assert plan.prices is not None
    assert plan.prices["people"] == 0.0
    assert plan.prices["x0"] > 0.0


def test_a_budget_so_small_that_all_flips_avoid_it_keeps_its_price() -> None:
    """With more of x0 alone more people are moved."""
    x = np.random.default_rng(0).normal(size=(60, 2)) - 2.0
    problem = linear_problem([1.0, 1.0], x, {"x0": 1e-9, "x1": 50.0})
    plan = solve(problem)
    assert resolve(problem, plan, budgets={"x0": 5.0}).count > plan.count
    assert plan.prices is not None
    assert plan.prices["x0"] > 0.0


@pytest.mark.parametrize("solver", [Prices(), Nearest()])
def test_a_budget_too_small_for_any_flip_is_known_with_what_it_would_take(solver: Any, tmp_path: Path) -> None:
    """x0 >= 2 artanh(0.1) = 0.2007 is asked: the samples lack 1.2007, 2.2007 and 3.2007 in x0."""
    lack = 1.0 + 2 * math.atanh(0.1)
    amounts: dict[str, Any] = {"x0": 50.0, "hours": Budget(1e-9, {"x0": 2.0}, "absolute")}
    problem = linear_problem([1.0], [[-1.0], [-2.0], [-3.0], [1.0]], amounts)
    plan = solve(problem, solver)
    assert plan.count == 0
    assert dict(plan.needs) == {"hours": pytest.approx(2 * lack, rel=1e-3)}
    assert "hours (there is 1 × 10⁻⁹)" in scarce(plan)
    assert "no single budget" not in scarce(plan)
    plan.save(tmp_path / "plan")
    again = Plan.load(tmp_path / "plan")
    assert again.needs == plan.needs
    assert scarce(again) == scarce(plan)
    enough = resolve(problem, plan, budgets={"hours": 2 * lack * 1.01}, solver=solver)
    assert (enough.count, dict(enough.needs)) == (1, {})
    assert "needs" not in summary_table(enough, None)


def test_two_budgets_that_are_both_too_small_are_both_named() -> None:
    tiny = {"x0": 1e-9, "hours": Budget(1e-9, {"x0": 1.0}, "absolute"), "ample": Budget(1e9, {"x0": 1.0})}
    plan = solve(linear_problem([1.0], [[-1.0], [-2.0]], tiny))
    assert list(plan.needs) == ["x0", "hours"]
    assert plan.needs["x0"] == pytest.approx(plan.needs["hours"] ** 2)


def test_nothing_is_too_small_where_nobody_needs_a_flip_or_none_is_known() -> None:
    assert solve(linear_problem([1.0], [[1.0], [2.0]], {"x0": 1e-9})).needs == {}
    away = linear_problem([1.0], [[-1.0], [-2.0]], {"x0": 1e-9}, limits={"x0": (-5.0, 0.0)})
    plan = solve(away)
    assert (plan.fate_counts()[Fate.UNREACHABLE], dict(plan.needs)) == (2, {})


def scarce(plan: Plan) -> str:
    return str(budgets(plan).scarce.striptags())
