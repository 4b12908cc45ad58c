"""Plans for tree ensembles: what every plan promises, and what Prices promises beside Nearest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from maxflip import (
    KL,
    MS,
    Action,
    Budget,
    Cohort,
    Limit,
    Nearest,
    Plan,
    Prices,
    Problem,
    ProblemError,
    Quota,
    TreeClassifier,
    solve,
)
from maxflip.solvers import Solver
from maxflip.solvers.prices.flip_shard import FlipShard
from tests.test_contract import assert_lawful, same
from tests.trees.trained import data, told_by, trained

pytest.importorskip("numba")

KINDS = ["lightgbm", "random forest", "gradient boosting", "histograms"]
SOLVERS = [Nearest(), Prices()]
HOURS = Budget(3.0, {"x0": 1.0, "x1": 0.5}, "absolute")


def problem(kind: str = "gradient boosting", classes: int = 2, count: int = 40, **options: Any) -> Problem:
    model = trained(kind, classes)
    x = data(missing=False)[0]
    p = told_by(model, x)
    x = x[p.argmax(axis=1) != 1][:count]
    given: dict[str, Any] = {"cohort": Cohort.table(x, ids=[str(j) for j in range(len(x))]), "target": 1, "margin": 0.0}
    given["budgets"] = {"hours": HOURS, "x2": 1.0, "x3": 2.0}
    return Problem(classifier=TreeClassifier(model), **(given | options))


def assert_told(kind: str, classes: int, asked: Problem, plan: Plan) -> None:
    """The library itself predicts the wanted class."""
    after = asked.cohort.values[plan.selected] + plan.changes
    assert (told_by(trained(kind, classes), after).argmax(axis=1) == 1).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3])
def test_plans_keep_what_every_plan_promises(kind: str, classes: int) -> None:
    asked = problem(kind, classes)
    plans = [solve(asked, solver) for solver in SOLVERS]
    for plan in plans:
        assert plan.count
        assert_lawful(asked, plan)
        assert_told(kind, classes, asked, plan)
    assert plans[1].count >= plans[0].count


@pytest.mark.parametrize(
    "options",
    [
        {"budgets": {"x0": 1.0, "people": Budget(7, cost="count")}},
        {"budgets": {"x0": math.inf, "x1": 0.3}},
        {"worth": np.linspace(0, 3, 40), "threshold": 0.6, "margin": None},
        {"limits": "observed", "directions": {"x1": "down"}, "include": ["3"], "exclude": ["5"]},
        {"limits": {"x0": Limit(step=0.25), "x3": Limit(step=1), "x2": Limit(smallest=0.2)}, "most_changes": 2},
        {"quotas": Quota(list(map(str, range(20))), at_most=0.5)},
        {"actions": [Action("course", {"x2": 0.5}, {"hours": 0.1})]},
    ],
    ids=", ".join,
)
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_plans_keep_rules(options: dict[str, Any], solver: Solver) -> None:
    asked = problem(**options)
    plan = solve(asked, solver)
    assert plan.count
    assert asked.bill(plan.selected, plan.changes).fits()


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_plans_depend_on_neither_order_nor_chance(solver: Solver) -> None:
    asked = problem()
    first = solve(asked, solver)
    assert same(first, solve(asked, solver, seed=1))
    turned = Cohort.table(asked.cohort.values[::-1], ids=asked.cohort.ids[::-1].tolist())
    other = solve(problem(cohort=turned), solver)
    assert sorted(first.ids) == sorted(other.ids)


def test_chunks_do_not_change_the_nearest_flips() -> None:
    asked = problem()
    assert same(solve(asked, Nearest()), solve(asked, Nearest(chunk=7)))


@pytest.mark.parametrize("solver", [MS(), KL()], ids=repr)
def test_solvers_that_need_gradients_say_so(solver: Solver) -> None:
    with pytest.raises(ProblemError, match="needs gradients"):
        solve(problem(), solver)


def test_the_smoothed_dual_has_the_slopes_of_its_value() -> None:
    asked = problem(include=["2"])
    shard = FlipShard(asked, asked.cohort.order, np.array([0.3, 0.3, 0.3]))
    shard.first_flips((), polished=False, led=False)
    for prices in ([1.0, 0.1, 0.3], [0.1, 1.0, 0.3], [0.3, 0.3, 0.02]):
        shard.reprice(np.array(prices), np.inf)
    at = np.array([0.4, 0.3, 0.2])
    part = shard.dual_part(at, 0.1)
    for r, step in enumerate(1e-6 * np.eye(3)):
        up, down = shard.dual_part(at + step, 0.1), shard.dual_part(at - step, 0.1)
        assert part.gradient[r] == pytest.approx((up.value - down.value) / 2e-6, rel=1e-4)
        assert part.hessian[r] == pytest.approx((up.gradient - down.gradient) / 2e-6, rel=1e-3, abs=1e-6)
    assert shard.dual_part(at, 0.0).value == pytest.approx(shard.value(at), rel=1e-9)


def test_kernels_are_compiled_once() -> None:
    from maxflip.search.trees import kernel

    solve(problem("histograms"), Nearest())
    solve(problem("gradient boosting", 3, count=1), Nearest())
    assert len(kernel.search.signatures) == 1
