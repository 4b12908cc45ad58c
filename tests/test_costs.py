"""Budgets that are functions of the user's: `Budget(amount, uses=[...], cost=function)`."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maxflip import (
    BCMS,
    CCMS,
    KL,
    MS,
    Budget,
    Cohort,
    Fate,
    InputError,
    Nearest,
    Plan,
    Prices,
    Problem,
    ProblemError,
    frontier,
    judge,
    resolve,
    solve,
)
from maxflip._util.types import Floats, Rows
from maxflip.select.choose import choose
from maxflip.solvers import Solver
from maxflip.solvers.paper.search import Search
from maxflip.solvers.paper.settings import Units
from tests.conftest import LONG
from tests.examples import linear_problem, missing_score, net_problem
from tests.test_contract import assert_lawful, same

METRIC = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)


def squares(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    return ((after - before) ** 2).sum(dim=1)


def soft(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Squared for small changes, absolute for large ones."""
    return ((1.0 + (after - before) ** 2).sqrt() - 1.0).sum(dim=1)


def distance(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """In a fixed metric; its root has no gradient where nothing changes."""
    d = after - before
    return ((d @ METRIC) * d).sum(dim=1).sqrt()


def uphill(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Dearer where a value is large already: it depends on more than the change."""
    return ((after - before) ** 2 * before.exp()).sum(dim=1)


SETTINGS: list[Solver] = [
    MS(outer=3, inner=40),
    BCMS(outer=3, inner=40, draws=20),
    CCMS(outer=3, inner=40, draws=20, choices=0.25),
    KL(outer=3, inner=40),
    MS.scale_free(outer=3, inner=25, optimizer="adam", keep_moving=True),
    BCMS.scale_free(outer=3, inner=25, optimizer="adam", draws=10),
    CCMS.scale_free(outer=3, inner=25, optimizer="adam", draws=10, choices=0.25, alpha=1e-4),
    KL.scale_free(outer=3, inner=25, optimizer="adam"),
]
SOLVERS: list[Solver] = [*SETTINGS[4:], Nearest(), Nearest(prices="unit")]
every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


# A function that is the squared cost, and that cost itself.


@pytest.mark.parametrize("solver", SETTINGS, ids=repr)
def test_a_function_that_squares_leads_where_squares_lead(solver: Solver) -> None:
    x = np.random.default_rng(2).normal(size=(30, 4))
    by_name = {"both": Budget(3.0, {"x1": 1.0, "x0": 1.0}), "x2": 1.0, "x3": math.inf}
    by_function = by_name | {"both": Budget(3.0, ["x1", "x0"], squares)}
    wanted, got = (solve(net_problem(cohort=x, budgets=b), solver, seed=5) for b in (by_name, by_function))
    assert wanted.count > 0
    assert np.array_equal(wanted.selected, got.selected)
    np.testing.assert_allclose(got.changes, wanted.changes, rtol=0, atol=1e-12)
    assert got.trace.keys() == wanted.trace.keys()
    for name in got.trace.keys() - {"seconds", "seconds_inner"}:
        np.testing.assert_allclose(got.trace[name], wanted.trace[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert got.spend["both"] == pytest.approx(wanted.spend["both"], rel=1e-12)


@pytest.mark.parametrize("prices", ["budgets", "unit", {"both": 0.3, "x2": 2.0}])
@pytest.mark.parametrize("make", [net_problem, lambda **o: linear_problem([1.0, -1.0, 0.5, 0.3], o.pop("cohort"), **o)])
def test_nearest_goes_by_squares_like_the_function(make: Callable[..., Problem], prices: Any) -> None:
    """Weights other than 1 too: they are found by asking."""
    x = np.random.default_rng(2).normal(size=(40, 4)) * [1.0, 3.0, 1.0, 1.0]
    by_name = {"both": Budget(3.0, {"x1": 0.25, "x0": 2.0}), "x2": 1.0}
    weight = torch.tensor([0.25, 2.0], dtype=torch.float64)
    by_function = by_name | {"both": Budget(3.0, ["x1", "x0"], lambda b, a: (weight * (a - b) ** 2).sum(dim=1))}
    wanted, got = (solve(make(cohort=x, budgets=b), Nearest(prices=prices)) for b in (by_name, by_function))
    assert 0 < wanted.count < 40 - wanted.fate_counts()[Fate.ALREADY]
    assert np.array_equal(wanted.selected, got.selected)
    np.testing.assert_allclose(got.changes, wanted.changes, rtol=0, atol=1e-8)


# Known answers.


def test_one_feature_one_budget_is_the_longest_prefix() -> None:
    """Whoever lacks s moves by s / w, and those who then pay least come first."""
    x = np.random.default_rng(0).normal(size=(40, 1)) - 2.0
    move = np.maximum(missing_score([0.8], x), 0.0) / 0.8
    pays = np.sort(np.sqrt(1.0 + move**2) - 1.0)
    amount = float(pays[:12].sum() + pays[12] / 2)
    plan = solve(linear_problem([0.8], x, {"x0": Budget(amount, cost=soft)}), Nearest())
    assert plan.count == 12
    assert plan.spend["x0"] == pytest.approx(pays[:12].sum(), rel=1e-6)


def best_of_all(problem: Problem, rows: Rows, changes: Floats) -> float:
    """By brute force: every selection with at most one change per sample, functions summed by fsum."""
    best = 0.0
    drawn = problem.bill(rows, changes).consumption
    for size in range(1, len(rows) + 1):
        for some in itertools.combinations(range(len(rows)), size):
            picked = list(some)
            fits = all(math.fsum(drawn[picked, r]) <= amount for r, amount in enumerate(problem.ledger.amounts))
            if fits and len(set(rows[picked].tolist())) == size:
                best = max(best, math.fsum(problem.worth[rows[picked]]))
    return best


@pytest.mark.parametrize("function", [soft, distance, uphill])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25 if LONG else 10)
def test_choose_is_as_good_as_brute_force(function: Any, seed: int) -> None:
    """Up to 8 candidates of 4 samples; amounts that some selection meets to the last bit among them."""
    rng = np.random.default_rng(seed)
    x, rows = rng.normal(size=(4, 2)), rng.integers(0, 4, size=8)
    changes = rng.normal(size=(8, 2)) * rng.choice([0.1, 1.0, 3.0], size=(8, 1))
    budgets = {"both": Budget(1.0, ["x0", "x1"], function), "people": Budget(3, cost="count")}
    problem = linear_problem([1.0, 1.0], x, budgets, worth=rng.integers(1, 4, size=4))
    drawn = problem.bill(rows, changes).called[:, 0]
    meets = math.fsum(drawn[rng.random(8) < 0.4])
    problem = problem.changed(budgets={"both": float(rng.choice([meets, rng.uniform(0, drawn.sum())]))})
    chosen = choose(problem, rows, changes)
    assert len(set(rows[chosen].tolist())) == len(chosen)
    assert math.fsum(drawn[chosen]) <= problem.ledger.amounts[0]
    assert math.fsum(problem.worth[rows[chosen]]) == best_of_all(problem, rows, changes)


def test_a_smaller_change_may_draw_more() -> None:
    """So of two changes of a sample, neither is outdone for being larger in every feature."""

    def valley(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        d = (after - before).sum(dim=1)
        return d**2 * ((d - 2.0) ** 2 + 0.01)

    problem = linear_problem([1.0], [[-1.0]], {"x0": Budget(0.5, cost=valley)})
    assert choose(problem, np.array([0, 0]), np.array([[1.2], [2.0]])).tolist() == [1]


@pytest.mark.parametrize("function", [soft, distance, uphill])
@pytest.mark.parametrize("units", ["raw", "standard"])
def test_slopes_are_those_of_what_is_drawn(function: Any, units: Units) -> None:
    x = np.random.default_rng(4).normal(size=(5, 3)) * [1.0, 2.0, 3.0]
    budgets = {"x1": 2.0, "both": Budget(4.0, ["x2", "x0"], function), "x0": Budget(0.0, ["x0"], soft)}
    search = Search(linear_problem([1.0, 1.0, 1.0], x, budgets), np.arange(5), units)
    u = torch.tensor(np.random.default_rng(5).normal(size=(5, 2)))
    weight = torch.tensor(np.random.default_rng(6).uniform(size=(5, 2)))
    step, there = 1e-6, torch.zeros_like(u)
    for i in range(2):
        by = torch.zeros_like(u)
        by[:, i] = step
        there[:, i] = (weight * (search.consumption(u + by) - search.consumption(u - by))).sum(dim=1) / (2 * step)
    torch.testing.assert_close(search.consumption_slope(u, weight), there, rtol=1e-7, atol=1e-8)
    still = search.consumption_slope(torch.zeros_like(u), weight)
    torch.testing.assert_close(still, torch.zeros_like(u), rtol=0, atol=0)


# Decisions.


def test_an_overspend_by_the_last_bit_is_no_plan() -> None:
    x = np.random.default_rng(1).normal(size=(6, 2)) - 3.0
    rows, changes = np.arange(6), np.full((6, 2), 5.0) + np.arange(6)[:, None] / 7
    problem = linear_problem([1.0, 1.0], x, {"both": Budget(math.inf, ["x0", "x1"], distance)})
    total = math.fsum(problem.bill(rows, changes).called[:, 0])
    met = problem.changed(budgets={"both": total})
    assert judge.verdict(met, rows, changes).kept.all()
    assert met.bill(rows, changes).spent().tolist() == [total]
    short = problem.changed(budgets={"both": math.nextafter(total, 0.0)})
    assert short.bill(rows, changes).overspent() == [0]
    with pytest.raises(RuntimeError, match="overspends both"):
        judge.verdict(short, rows, changes)


@every_solver
@pytest.mark.parametrize("function", [soft, distance, uphill])
def test_plans_are_lawful_and_within_what_the_function_says(solver: Solver, function: Any) -> None:
    x = np.random.default_rng(3).normal(size=(40, 3))
    budgets = {"both": Budget(4.0, ["x2", "x0"], function), "x1": 1.0, "people": Budget(20, cost="count")}
    problem = net_problem(
        cohort=x, features=3, budgets=budgets, limits={"x0": (-2.0, 2.0)}, directions={"x2": "up"}, exclude=["1"]
    )
    plan = solve(problem, solver, seed=1)
    assert_lawful(problem, plan)
    assert plan.count > 0
    assert same(plan, solve(problem, solver, seed=1))
    before = torch.tensor(x[plan.selected][:, [2, 0]])
    after = torch.tensor((x[plan.selected] + plan.changes)[:, [2, 0]])
    said = [float(function(b[None], a[None])) for b, a in zip(before, after, strict=True)]
    assert plan.spend["both"] == math.fsum(said) <= 4.0
    assert (plan.prices, plan.estimate) == (None, None)
    name = f"function {function.__name__}"
    (told,) = [notice for notice in plan.notices if name in notice]
    assert told.startswith(f"Budget 'both' counts what {name} says of each sample alone, in float64;")


@every_solver
def test_nothing_and_everything(solver: Solver) -> None:
    x = np.random.default_rng(3).normal(size=(20, 2))
    both = {"both": Budget(0.0, ["x0", "x1"], soft)}
    assert solve(linear_problem([1.0, 2.0], x, both), solver).count == 0
    one = solve(linear_problem([1.0, 2.0], x, {"x0": Budget(0.0, cost=soft), "x1": 9.0}), solver)
    assert one.count > 0
    assert (one.changes[:, 0] == 0).all()
    all_ = solve(linear_problem([1.0, 2.0], x, {"both": Budget(math.inf, ["x0", "x1"], soft)}), solver)
    assert all_.fate_counts()[Fate.LEFT_OUT] == all_.fate_counts()[Fate.NOT_FOUND] == 0


@every_solver
def test_those_who_must_be_picked_are(solver: Solver) -> None:
    x = np.random.default_rng(3).normal(size=(20, 2)) - 1.0
    everyone = linear_problem([1.0, 2.0], x, {"both": Budget(math.inf, ["x0", "x1"], distance)})
    needs = solve(everyone, Nearest())
    drawn = everyone.bill(needs.selected, needs.changes).called[:, 0]
    dearest = int(needs.selected[drawn.argmax()])
    budgets = {"both": Budget(1.01 * drawn.max(), ["x0", "x1"], distance)}
    assert solve(linear_problem([1.0, 2.0], x, budgets), solver).fates[dearest] != Fate.FLIPPED
    plan = solve(linear_problem([1.0, 2.0], x, budgets, include=[str(dearest)]), solver)
    assert plan.fates[dearest] == Fate.FLIPPED


def test_a_function_is_asked_once_for_each_change() -> None:
    asked: list[int] = []

    def counting(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        asked.append(len(before))
        return soft(before, after)

    x = np.zeros((50, 1)) - 1.0
    changes = np.random.default_rng(0).uniform(1, 2, size=(50, 1))
    problem = linear_problem([1.0], x, {"x0": Budget(5.0, cost=counting)})
    asked.clear()
    choose(problem, np.arange(50), changes)
    assert asked == [1] * 50


def test_what_is_no_number_cannot_be_paid() -> None:
    def bounded(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return -(1.0 - (after - before).sum(dim=1) ** 2 / 100).log()

    x = np.array([[-1.0], [-2.0], [-1.5]])
    rows, changes = np.array([0, 0, 1, 2]), np.array([[2.0], [11.0], [10.0], [3.0]])
    for amount in (1.0, math.inf):
        problem = linear_problem([1.0], x, {"x0": Budget(amount, cost=bounded)})
        assert problem.bill(rows, changes).called[:, 0].tolist()[1:3] == [math.inf, math.inf]
        assert choose(problem, rows, changes).tolist() == [0, 3]
        assert not problem.bill(rows, changes).fits()
        with pytest.raises(ProblemError, match="no flip is known for 1 of these ids: 1"):
            choose(problem, rows, changes, must=np.array([1]))


def test_a_number_below_zero_is_told_with_its_sample() -> None:
    def later(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        d = (after - before).sum(dim=1)
        return d**2 * (3.0 - d)

    cohort = Cohort.table([[-1.0], [-2.0], [-1.5]], ids=["a", "b", "c"])
    problem = net_problem(cohort=cohort, features=1, budgets={"x0": Budget(1.0, cost=later)})
    with pytest.raises(
        ProblemError, match=r"budgets\.x0\.cost: function later said -16\.0 .*row 2 \(id b\); it must be"
    ):
        problem.bill(np.array([0, 1]), np.array([[1.0], [4.0]]))


# What a budget may be.


def said(b: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    raise KeyError("no such thing")


def forgetful(b: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    return squares(b, a) * torch.rand(1, dtype=torch.float64)


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        (
            Budget(1.0, ["a"], "cubic"),
            r"budgets.h.cost = 'cubic': must be 'squared', 'absolute', 'count' or a function.",
        ),
        (Budget(1.0, ["a"], "function soft"), r"budgets.h.cost = 'function soft': must be"),
        (Budget(1.0, ["a", "z"], soft), r"budgets.h.uses.z: no feature is called 'z'."),
        (Budget(1.0, ["a", "a"], soft), r"budgets.h.uses: the feature 'a' is listed twice. Keep it once."),
        (Budget(1.0, "a", soft), r"budgets.h.uses = 'a': must be a list of features."),
        (Budget(1.0, [["a"]], soft), r"budgets.h.uses = \[\['a'\]\]: must be a list of features."),  # type: ignore[list-item]
        (Budget(1.0, {"a": 2.0}, soft), r"budgets.h.uses.a = 2.0: a function has no weights. Weigh inside it"),
        (Budget(1.0, None, soft), r"budgets.h: no feature is called 'h'."),
        (Budget(-1.0, ["a"], soft), r"budgets.h = -1.0: must be >= 0"),
        (
            Budget(1.0, ["a"], said),
            r"budgets.h.cost: function said raised KeyError for tensors of shape \(32, 1\): 'no ",
        ),
        (Budget(1.0, ["a"], lambda b: b), r"function <lambda> raised TypeError"),  # type: ignore[misc, arg-type]
        (Budget(1.0, ["a"], lambda b, a: 0.0), r"<lambda> returned 0.0; wanted a float64 tensor of shape \(32,\), one"),  # type: ignore[arg-type, return-value]
        (Budget(1.0, ["a"], lambda b, a: (a - b) ** 2), r"<lambda> returned float64 of shape \(32, 1\); wanted"),
        (Budget(1.0, ["a"], lambda b, a: squares(b, a).float()), r"<lambda> returned float32 of shape \(32,\); wanted"),
        (
            Budget(1.0, ["a"], lambda b, a: squares(b, a) + 1),
            r"said 1.0 for .* exactly 0 where nothing changes \(row 1\)",
        ),
        (Budget(1.0, ["a"], lambda b, a: a[:, 0] - b[:, 0]), r"said -.* it must be >= 0 \(row 1\)"),
        (
            Budget(1.0, ["a"], lambda b, a: torch.where(a[:, 0] < b[:, 0], torch.nan, squares(b, a))),
            r"said nan for .* finite wherever",
        ),
        (Budget(1.0, ["a"], forgetful), r"function forgetful said .*; asked before, it said another number \(row 1\)"),
        (Budget(1.0, ["a"], lambda b, a: squares(b, a) / len(a)), r"more or less of a sample alone than .* dim=1 only"),
        (Budget(1.0, ["a"], lambda b, a: squares(b, a).detach()), r"gives no gradient: no detach\(\)"),
        (Budget(1.0, ["a"], lambda b, a: squares(b, a.detach()) + 0 * a.sum(1)), r"no gradient at any change tried"),
        (Budget(1.0, ["a"], lambda b, a: squares(b, a.sub_(0.0))), r"<lambda> raised RuntimeError"),
    ],
)
def test_what_a_function_may_not_be(budget: Budget, sentence: str) -> None:
    x = np.random.default_rng(0).normal(size=(8, 2)) + 5.0
    with pytest.raises(ProblemError, match=sentence):
        linear_problem([1.0, 1.0], x, {"b": 1.0, "h": budget}, features=["a", "b"])
    problem = linear_problem([1.0, 1.0], x, {"b": 1.0, "h": Budget(1.0, {"a": 1.0})}, features=["a", "b"])
    with pytest.raises(ProblemError, match=sentence):
        problem.changed(budgets={"h": budget})


def test_a_function_is_tried_inside_the_limits_alone() -> None:
    def logs(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return (after / before).log().sum(dim=1) ** 2

    x = np.random.default_rng(0).uniform(0.1, 2.0, size=(30, 1))
    budgets = {"x0": Budget(3.0, cost=logs)}
    with pytest.raises(ProblemError, match="finite wherever the limits allow"):
        linear_problem([1.0], x, budgets)
    plan = solve(linear_problem([-1.0], x, budgets, b=0.8, limits={"x0": (0.05, None)}), Nearest())
    assert plan.count > 0


def test_columns_come_in_the_order_of_uses() -> None:
    seen: list[list[float]] = []

    def looking(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        seen.extend(before.tolist())
        return squares(before, after)

    linear_problem([1.0, 1.0, 1.0], [[1.0, 2.0, 3.0]], {"h": Budget(1.0, ["x2", "x0"], looking)})
    assert seen
    assert all(row == [3.0, 1.0] for row in seen)


# Who takes them, and what is kept of them.


def test_prices_says_who_takes_functions() -> None:
    problem = net_problem(20, budgets={"x0": Budget(1.0, cost=soft), "x1": 1.0})
    with pytest.raises(
        ProblemError, match=r"budgets\.x0: Prices cannot price function soft.*MS\(\), BCMS\(\), CCMS\(\)"
    ):
        solve(problem)
    with pytest.raises(ProblemError, match="cannot price"):
        solve(problem, Prices(rounds=3))


def plan_by_function() -> tuple[Problem, Plan]:
    budgets = {"both": Budget(4.0, ["x0", "x2"], lambda b, a: 2.0 * soft(b, a)), "x1": 1.0}
    x = np.random.default_rng(0).normal(size=(30, 3)) - 1.0
    problem = linear_problem([1.0, -1.0, 0.5], x, budgets)
    return problem, solve(problem, Nearest())


def test_a_plan_has_the_name_of_the_function_only(tmp_path: Path) -> None:
    _, plan = plan_by_function()
    assert plan.budgets["both"] == Budget(4.0, {"x0": 1.0, "x2": 1.0}, "function <lambda>")
    assert same(plan, pickle.loads(pickle.dumps(plan)))
    plan.save(tmp_path / "plan")
    loaded = Plan.load(tmp_path / "plan")
    assert same(plan, loaded)
    assert (loaded.budgets, loaded.spend) == (dict(plan.budgets), plan.spend)
    for one in (plan, loaded):
        costs = {(row["feature"], row["cost"] is None) for row in one.table().to_pylist()}
        assert costs == {("x0", True), ("x1", False), ("x2", True)}
    page = (tmp_path / "plan" / "report.html").read_text()
    assert "changes, by the function <bdi>&lt;lambda&gt;</bdi>: <bdi>x0</bdi>, <bdi>x2</bdi>" in page


def test_no_job_is_written_that_cannot_hold_the_function(tmp_path: Path) -> None:
    problem, plan = plan_by_function()
    sentence = r"budgets\.both: a job file cannot contain function <lambda>, so a plan with it cannot be audited"
    with pytest.raises(InputError, match=sentence + ".*without problem and model"):
        plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "model.pt2")
    with pytest.raises(InputError, match=sentence + ".*without inputs"):
        plan.save(tmp_path / "plan", inputs=dict.fromkeys(["cohort", "model", "job"], tmp_path / "file"))
    assert not (tmp_path / "plan").exists()


def test_a_number_keeps_the_function() -> None:
    problem, plan = plan_by_function()
    more = resolve(problem, plan, Nearest(), budgets={"both": 8.0})
    assert plan.worth < more.worth
    assert more.spend["both"] > 4.0
    plain = problem.changed(budgets={"both": Budget(4.0, {"x0": 1.0, "x2": 1.0})})
    assert not plain.functions
    assert not [n for n in plain.notices if "lambda" in n]
    curve = frontier(problem, [0.5, 1.0], Nearest())
    assert [p.worth for p in curve.plans] == sorted(p.worth for p in curve.plans)
    assert curve.plans[0].spend["both"] <= 2.0


def test_a_problem_with_a_named_function_pickles() -> None:
    problem = net_problem(20, budgets={"x0": Budget(1.0, cost=soft), "x1": 1.0})
    again = pickle.loads(pickle.dumps(problem))
    assert same(solve(problem, Nearest()), solve(again, Nearest()))
