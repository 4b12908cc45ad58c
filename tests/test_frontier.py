"""resolve and frontier: more of a budget is never worth less."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxflip import Budget, Grouped, InputError, Nearest, Prices, Problem, frontier, look, resolve, solve
from maxflip.solvers.base import Proposal, Run, Solver
from tests.asked import linear_questions
from tests.conftest import LONG
from tests.examples import linear_problem, net_problem

law = settings(max_examples=2000 if LONG else 20)
SCALES = [0.3, 0.97, 1.0, 1.03]
NEED = 2 * math.atanh(0.1)


class Fickle(Solver):
    """Finds the flips of some samples alone, others for each amount: less for more, unless flips are shared."""

    def propose(self, problem: Problem, run: Run) -> Proposal:
        whole = Nearest().propose(problem, run)
        seed = int.from_bytes(problem.ledger.amounts.tobytes()[:8], "little") % 2**32
        kept = (np.random.default_rng(seed).random(len(whole.rows)) < 0.4) | np.isin(whole.rows, problem.include)
        return replace(whole, rows=whole.rows[kept], changes=whole.changes[kept])


@law
@given(linear_questions(), st.sampled_from([Prices(), Nearest(), Fickle(), Fickle()]), st.booleans())
def test_more_of_all_budgets_is_never_worth_less(problem: Problem, solver: Any, starts_from_a_plan: bool) -> None:
    plan = solve(problem, solver) if starts_from_a_plan else None
    curve = frontier(problem, SCALES, solver, plan=plan)
    worths = [p.worth for p in curve.plans]
    assert worths == sorted(worths)
    proved = [p.bound for p in curve.plans if p.bound is not None]
    assert proved == sorted(proved)
    for scale, found in zip(curve.scales, curve.plans, strict=True):
        for name, budget in problem.budgets.items():
            assert found.budgets[name].amount == budget.amount * scale
            assert found.spend[name] <= budget.amount * scale
        assert found.bound is None or found.worth <= found.bound
        assert found.bound is None or found.what_if({}).at_most == found.bound
        assert set(problem.cohort.ids[problem.include]) <= {*found.ids, *found.all_ids[found.fates == "already"]}
    if plan is not None:
        assert curve.plans[2].worth >= plan.worth


@law
@given(
    linear_questions(), st.sampled_from([Prices(), Nearest(), Fickle(), Fickle()]), st.sampled_from([1.0, 1.01, 3.0])
)
def test_a_solve_from_a_plan_is_worth_no_less(problem: Problem, solver: Any, factor: float) -> None:
    plan = solve(problem, solver)
    larger = {name: budget.amount * factor for name, budget in problem.budgets.items()}
    again = resolve(problem, plan, solver, budgets=larger)
    assert again.worth >= plan.worth
    back = resolve(
        problem.changed(budgets=larger), again, solver, budgets={n: b.amount for n, b in problem.budgets.items()}
    )
    assert back.worth >= plan.worth  # the pool remembers


def test_flips_of_all_scales_are_shared() -> None:
    """Twelve at a distance of about 1, of whom each solve finds some: together they find six for a budget of six."""
    problem = linear_problem([1.0], NEED - 1.0 - 1e-6 * np.arange(12.0)[:, None], [6.5])
    alone = [solve(problem.changed(budgets={"x0": 6.5 * s}), Fickle()).count for s in SCALES]
    assert alone != sorted(alone)
    assert min(alone[1:4]) < 6
    assert [p.count for p in frontier(problem, SCALES, Fickle()).plans[:4]] == [1, 6, 6, 6]


def test_networks_and_absolute_budgets_with_a_threshold() -> None:
    problem = net_problem(
        25,
        margin=None,
        threshold=0.6,
        budgets={f"x{i}": Budget(1.0, {f"x{i}": 1.0}, "absolute") for i in range(4)},
    )
    curve = frontier(problem, [0.9, 0.98, 1.0])
    worths = [p.worth for p in curve.plans]
    assert worths == sorted(worths)
    for found in curve.plans:
        assert found.estimate is not None
        assert found.estimate >= found.worth


@pytest.mark.parametrize("other", [{"budgets": {"x0": 50.0}}, {"margin": 0.6}], ids=str)
def test_a_plan_of_another_question_is_refused(other: dict[str, Any]) -> None:
    problem = linear_problem([1.0], NEED - np.linspace(0.1, 3.0, 40)[:, None], [10.0])
    with pytest.raises(InputError, match="plan: it answers another question"):
        frontier(problem, [0.5, 1.0], plan=solve(problem.changed(**other)))


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_resolve_is_not_below_nearest_however_much_a_budget_grows(factor: float) -> None:
    n = 100 if LONG else 30
    problem = net_problem(n, seed=3, budgets={f"x{i}": Budget(n / 20, cost="absolute") for i in range(4)})
    larger = {"x0": factor * n / 20}
    found = resolve(problem, solve(problem), budgets=larger)
    asked = problem.changed(budgets=larger)
    assert found.worth >= max(solve(asked, Nearest()).worth, solve(asked, Nearest(prices="unit")).worth)


X = np.random.default_rng(0).normal(-1.0, 1.0, size=(40 if LONG else 16, 2))


def asked(**options: Any) -> Problem:
    budgets = options.pop("budgets", {"x0": Budget(9.0, {"x0": 1.0}), "x1": 9.0})
    return linear_problem([1.0, 0.5], X, budgets, **options)


TARGET = [1] * (len(X) // 2) + [0] * (len(X) // 2)
OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "weights of a budget": ({}, {"budgets": {"x0": Budget(9.0, {"x0": 0.01}), "x1": 9.0}}),
    "kind of a budget": ({}, {"budgets": {"x0": Budget(9.0, cost="absolute"), "x1": 9.0}}),
    "limits of each": ({"limits": {"x0": (X[:, 0] - 5, None)}}, {"limits": {"x0": (X[:, 0] - 10, None)}}),
    "target of each": ({"target": TARGET}, {"target": TARGET[::-1]}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_plan_of_a_question_that_looks_alike_is_refused(case: str) -> None:
    """It would bring bounds that are false here."""
    first, other = (asked(**options) for options in OTHERS[case])
    plan = solve(first)
    either: Any = (frontier, look)
    for ask in either:
        ask(first, plan=plan, scales=[1.0, 2.0])
        with pytest.raises(InputError, match="plan"):
            ask(other, plan=plan, scales=[1.0, 2.0])


def test_a_plan_whose_budgets_were_divided_needs_its_solver() -> None:
    problem, solver = asked(), Grouped(Prices(), ["a"] * (len(X) - 6) + ["b"] * 6)
    plan = solve(problem, solver)
    with pytest.raises(InputError, match=r"divided among 2 groups\. Give the solver too"):
        look(problem, plan, scales=[0.5, 1.0])
    found = look(problem, plan, scales=[0.5, 1.0], solver=solver)
    assert found.plan is not None
    assert found.plan.solver.groups == 2
    assert look(problem, plan, scales=None).frontier is None


def test_scales_that_do_not_suffice_for_those_who_must_be_picked_are_left_out() -> None:
    problem = asked(include=["1", "2"])
    plan = solve(problem)
    dear = problem.changed(budgets={name: 1.001 * plan.spend[name] for name in problem.budgets})
    enough = solve(dear, start=plan)
    found = look(dear, enough, scales=[1e-6, 1.0, 2.0])
    assert found.frontier is not None
    assert found.frontier.scales == (1.0, 2.0)


def test_what_is_no_problem_is_said() -> None:
    plan = solve(asked(), Nearest())
    wrong: Any = "x"
    with pytest.raises(InputError, match="problem: got 'x'; wanted a Problem"):
        frontier(wrong, [1.0])
    with pytest.raises(InputError, match="problem: got 'x'; wanted a Problem"):
        resolve(wrong, plan)
