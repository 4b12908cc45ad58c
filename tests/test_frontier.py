"""resolve and frontier: more of a budget is never worth less."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxflip import Budget, InputError, Nearest, Prices, Problem, frontier, resolve, solve
from maxflip.solvers.base import Proposal, Run
from tests.asked import linear_questions
from tests.conftest import LONG
from tests.examples import linear_problem, net_problem

law = settings(max_examples=2000 if LONG else 20)
SCALES = [0.3, 0.97, 1.0, 1.03]
NEED = 2 * math.atanh(0.1)


class Fickle:
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
    n = 100
    problem = net_problem(n, seed=3, budgets={f"x{i}": Budget(n / 20, cost="absolute") for i in range(4)})
    larger = {"x0": factor * n / 20}
    found = resolve(problem, solve(problem), budgets=larger)
    asked = problem.changed(budgets=larger)
    assert found.worth >= max(solve(asked, Nearest()).worth, solve(asked, Nearest(prices="unit")).worth)
