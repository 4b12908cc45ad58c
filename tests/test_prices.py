"""Prices: known answers, proofs, and the laws of re-solving."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch import nn

from maxflip import Budget, Fate, Nearest, Prices, Problem, TorchClassifier, frontier, resolve, solve
from maxflip._util.engine import Local
from maxflip.errors import InputError
from maxflip.search import linear
from maxflip.solvers.prices.clearing import DualPart, clear
from maxflip.solvers.prices.shard import Shard
from tests.conftest import LONG
from tests.examples import linear_problem, missing_score, net_problem

KINDS = ["squared", "absolute", "mixed", "shared", "count"]


def random_linear(seed: int, kind: str = "mixed", most: int = 60 if LONG else 30) -> Problem:
    """2 to 4 classes, one or several budgets per feature, limits and worths now and then."""
    rng = np.random.default_rng(seed)
    n, width, classes = int(rng.integers(1, most)), int(rng.integers(1, 6)), int(rng.choice([2, 2, 3, 4]))
    net = nn.Linear(width, classes, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(rng.normal(size=(classes, width))))
        net.bias.copy_(torch.tensor(rng.normal(size=classes)))
    x = rng.normal(size=(n, width))
    budgets: dict[str, Any] = {}
    for i in range(width):
        amount = float(rng.lognormal()) * n / width * 0.3
        absolute = kind == "absolute" or (kind == "mixed" and rng.random() < 0.5)
        budgets[f"x{i}"] = Budget(amount, cost="absolute" if absolute else "squared")
    if kind == "shared":
        uses = {f"x{i}": float(rng.uniform(0.2, 2)) for i in range(width)}
        budgets["hours"] = Budget(0.3 * n, uses=uses, cost="absolute")
    if kind == "count":
        budgets["people"] = Budget(int(rng.integers(1, n + 1)), cost="count")
    options: dict[str, Any] = {"margin": 0.1}
    if rng.random() < 0.4:
        options["limits"] = {f"x{i}": (float(x[:, i].mean()) - 1.5, float(x[:, i].mean()) + 1.5) for i in range(width)}
    if rng.random() < 0.3:
        options["worth"] = rng.choice([0.5, 1.0, 2.0], size=n)
    return Problem(classifier=TorchClassifier(net, output="logits"), cohort=x, target=0, budgets=budgets, **options)


@pytest.mark.parametrize("seed", range(200 if LONG else 4))
def test_one_score_and_squared_budgets_reach_the_closed_form_optimum(seed: int) -> None:
    """The longest prefix of the sorted r_j^2 whose sum is at most (sum_i |w_i| sqrt B_i)^2."""
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(1, 60 if LONG else 30)), int(rng.integers(1, 8))
    w, x = rng.normal(size=width), rng.normal(size=(n, width))
    lack = missing_score(w, x)
    all_of_it = (np.maximum(lack, 0.0) ** 2).sum() / (w**2).sum()
    amounts = rng.dirichlet(np.ones(width)) * rng.uniform(0.05, 1) * all_of_it + 1e-6
    plan = solve(linear_problem(w, x, amounts), Prices())
    costs = np.sort(lack[lack > 0] ** 2)
    best = int((np.cumsum(costs) <= (np.abs(w) @ np.sqrt(amounts)) ** 2).sum())
    assert best - 1 <= plan.count <= best
    assert plan.bound is not None
    assert plan.bound >= best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100 if LONG else 1))
def test_a_plan_is_within_one_sample_per_budget_of_its_proved_bound(kind: str, seed: int) -> None:
    problem = random_linear(seed, kind)
    plan = solve(problem, Prices())
    assert plan.bound is not None
    largest = np.sort(problem.worth)[::-1][: len(problem.ledger.names)].sum()
    assert plan.bound - largest - 1e-9 <= plan.worth <= plan.bound + 1e-9
    assert plan.worth >= solve(problem, Nearest()).worth - 1e-9


def fits_together(problem: Problem, who: tuple[int, ...]) -> bool:
    """Whether these samples, wanted in class 1 of 2, fit into the budgets at once: a convex program, by SLSQP."""
    forms = problem.linear
    assert forms is not None
    w = (forms[0].weight[1] - forms[0].weight[0]).numpy()
    bias = float(forms[0].bias[1] - forms[0].bias[0])
    x = problem.cohort.values[list(who)]
    need = 2 * np.arctanh(problem.goal.required) - (x @ w + bias)
    start = np.maximum(need, 0)[:, None] * w / (w @ w)
    amounts = problem.ledger.amounts

    def worst(flat: Any) -> Any:
        return 1.0 - problem.ledger.squared @ (flat.reshape(x.shape) ** 2).sum(axis=0) / amounts

    found = minimize(
        lambda v: v[-1],
        np.append(start.ravel(), 10.0),
        constraints=[
            {"type": "ineq", "fun": lambda v: worst(v[:-1]) + v[-1]},
            {"type": "ineq", "fun": lambda v: v[:-1].reshape(x.shape) @ w - need},
        ],
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-10},
    )
    return bool(found.success and found.x[-1] <= -1e-6)


@pytest.mark.parametrize("seed", range(200 if LONG else 5))
def test_no_set_of_people_that_fits_is_worth_more_than_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(2, 7)), int(rng.integers(2, 4))
    problem = linear_problem(rng.normal(size=width), rng.normal(size=(n, width)), rng.lognormal(0, 1, width) * n / 8)
    plan = solve(problem, Prices())
    assert plan.bound is not None
    standing = np.flatnonzero(plan.fates != "already")
    for size in range(int(plan.bound) + 1, len(standing) + 1):
        assert not any(fits_together(problem, who) for who in itertools.combinations(standing.tolist(), size))


@pytest.mark.parametrize("limits", [None, {"x0": (-1.0, 1.0), "x2": (-0.5, 2.0)}])
def test_the_terms_of_the_market_have_the_derivatives_they_say(limits: Any) -> None:
    budgets = {
        "x0": 2.0,
        "x1": Budget(3.0, cost="absolute"),
        "hours": Budget(2.0, uses={"x1": 1.0, "x2": 0.5}, cost="squared"),
        "x3": Budget(1.0, cost="absolute"),
        "people": Budget(9, cost="count"),
    }
    problem = net_problem(n=40, budgets=budgets, limits=limits)
    prices = np.array([0.3, 0.2, 0.4, 0.25, 0.05])
    with problem.classifier.borrowed():
        shard = Shard(problem, np.arange(40), prices)
        shard.first_flips((), polished=False, led=False)
        terms = shard.dual_part(prices, 0.3)
        step = 1e-6
        for r in range(len(prices)):
            up, down = prices.copy(), prices.copy()
            up[r], down[r] = up[r] + step, down[r] - step
            above, below = shard.dual_part(up, 0.3), shard.dual_part(down, 0.3)
            assert (above.value - below.value) / (2 * step) == pytest.approx(terms.gradient[r], rel=1e-5, abs=1e-6)
            slope = (above.gradient - below.gradient) / (2 * step)
            np.testing.assert_allclose(slope, terms.hessian[r], rtol=1e-3, atol=1e-3)


def test_the_market_clears_where_its_dual_is_least() -> None:
    """Samples that cost c_j times the price of one budget: D falls up to the price at which the budget is used up."""
    costs = np.linspace(1.0, 10.0, 2001)

    def evaluate(prices: Any, softness: float) -> DualPart:
        gain = 1.0 - prices[0] * costs
        if softness == 0:
            return DualPart(float(np.maximum(gain, 0).sum()), np.array([-costs[gain > 0].sum()]), np.zeros((1, 1)))
        p = 1 / (1 + np.exp(-gain / softness))
        value = float((softness * np.logaddexp(0, gain / softness)).sum())
        return DualPart(value, np.array([-(p @ costs)]), np.array([[(p * (1 - p) / softness) @ costs**2]]))

    bought = costs[costs <= 4.0].sum()
    cleared = clear(evaluate, np.array([bought]), np.array([1e-3]), 1.0)
    assert cleared.prices[0] == pytest.approx(1 / 4.0, rel=1e-2)


@pytest.mark.parametrize("part", range(20 if LONG else 1))
@settings(max_examples=25 if LONG else 2)
@given(drawn=st.integers(0, 10**6), more=st.floats(1.0, 3.0), less=st.floats(0.0, 1.0))
def test_a_warm_resolve_of_a_relaxed_problem_is_never_worse(part: int, drawn: int, more: float, less: float) -> None:
    seed = drawn + part * (10**6 + 1)  # parts are other problems even where the same are drawn
    problem = random_linear(seed, "mixed", most=20) if seed % 2 else net_problem(n=20, seed=seed % 97)
    plan = solve(problem, Prices())
    larger = {name: budget.amount * more for name, budget in problem.budgets.items()}
    again = resolve(problem, plan, budgets=larger)
    assert again.worth >= plan.worth - 1e-9
    easier = resolve(problem, plan, margin=problem.goal.required * less)
    still_open = easier.fates[plan.selected] != "already"
    assert easier.worth >= problem.worth[plan.selected][still_open].sum() - 1e-9


def test_a_frontier_never_falls() -> None:
    found = frontier(net_problem(), [2.0, 0.5, 1.0])
    assert found.scales == (0.5, 1.0, 2.0)
    assert list(found.table()["worth"].to_pylist()) == sorted(p.worth for p in found.plans)
    nothing: Any
    for nothing in ([], 1.0):
        with pytest.raises(InputError, match="scales"):
            frontier(net_problem(), nothing)
    with pytest.raises(InputError, match=r"plan: got None.*solve"):
        resolve(net_problem(), None)  # type: ignore[arg-type]


def test_workers_chunks_of_work_and_threads_change_no_bit() -> None:
    n, chunk, shares = (200, 32, (1, 3, 7)) if LONG else (75, 25, (1, 3))
    problem = net_problem(n=n, budgets={f"x{i}": 5.0 + i for i in range(4)})
    plans = [solve(problem, Prices(chunk=chunk), engine=Local(workers)) for workers in shares]
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        plans.append(solve(problem, Prices(chunk=chunk)))
    finally:
        torch.set_num_threads(threads)
    for plan in plans[1:]:
        assert np.array_equal(plan.selected, plans[0].selected)
        assert plan.changes.tobytes() == plans[0].changes.tobytes()
        assert plan.prices == plans[0].prices


def test_more_of_a_budget_is_no_reason_to_find_fewer_flips() -> None:
    """At prices that are very unlike everyone goes where it is cheap, also those who must go elsewhere."""
    counts = [
        solve(net_problem(budgets={"x0": 1e3, "x1": 1e3, "x2": 1e3, "x3": amount}), solver).count
        for solver in (Prices(), Nearest())
        for amount in (1e2, 1e6, 1e10, np.inf)
    ]
    assert len(set(counts)) == 1


def test_worth_may_be_counted_in_any_unit() -> None:
    """Neither linear programs nor the first prices have a size of their own."""
    n = 24 if LONG else 12
    plan = solve(net_problem(n, seed=3))
    assert plan.estimate is not None
    for worth in [1e-10, 1e8, 1e10, 1e17] if LONG else [1e-10, 1e17]:
        other = solve(net_problem(n, seed=3, worth=np.full(n, worth)))
        assert other.count == plan.count
        assert other.estimate == pytest.approx(worth * plan.estimate, rel=1e-3)


@pytest.mark.parametrize("cost", ["squared", "absolute"])
def test_budgets_may_be_counted_in_units_beyond_those_of_prices(cost: str) -> None:
    x = np.random.default_rng(0).normal(size=(8, 1)) - 2
    ordinary, tiny, huge = (
        solve(linear_problem([1.0], x, {"b": Budget(8 * unit, {"x0": unit}, cost)})) for unit in (1.0, 1e-120, 1e120)
    )
    assert 0 < ordinary.count == tiny.count == huge.count


def test_features_of_a_size_whose_squares_overflow_have_prices_without_a_range() -> None:
    x = np.random.default_rng(0).normal(size=(8, 1)) - 2
    plan = solve(linear_problem([1e-80], 1e80 * x, {"x0": math.inf, "people": Budget(3, cost="count")}))
    assert (plan.count, plan.price_ranges) == (3, {})


def test_without_any_flip_there_is_no_estimate() -> None:
    plan = solve(net_problem(n=40, features=3, classes=200, target=7))
    assert plan.fate_counts()[Fate.NOT_FOUND] == 40
    assert plan.estimate is None


def test_what_is_free_costs_nothing_in_the_estimate() -> None:
    plan = solve(net_problem(n=40, budgets={f"x{i}": np.inf for i in range(4)}), Prices())
    assert plan.estimate == pytest.approx(plan.worth)
    assert plan.prices == {f"x{i}": 0.0 for i in range(4)}


@pytest.mark.parametrize("seed", range(5))
def test_one_sample_whose_flip_must_use_several_budgets_at_once(seed: int) -> None:
    """Three absolute budgets, each flip along one feature alone too dear: a mixture of them is the flip."""
    d = np.random.default_rng(seed).random(3) + 0.5
    budgets = {f"x{i}": Budget(float(d[i]), cost="absolute") for i in range(3)}
    lack = 0.97 * d.sum()
    plan = solve(linear_problem([1.0, 1.0, 1.0], [[0.0, 0.0, 0.0]], budgets, b=2 * np.arctanh(0.1) - lack), Prices())
    assert plan.count == 1


@pytest.mark.parametrize("options", [{"rounds": 0}, {"chunk": 0}, {"rounds": True}, {"chunk": 2.5}])
def test_options_that_are_none(options: Any) -> None:
    with pytest.raises(InputError, match="whole number"):
        Prices(**options)


def test_numbers_of_numpy_are_numbers() -> None:
    problem = linear_problem([1.0], [[-1.0], [-2.0]], [2.0])
    assert frontier(problem, np.arange(1, 3)).scales == (1.0, 2.0)
    assert frontier(problem, np.array([0.5], dtype=np.float32)).scales == (0.5,)


def test_samples_without_a_flip_at_some_prices_are_not_offered_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = linear_problem([1.0, 1.0], -np.ones((3, 2)), [9.0, 9.0])
    shard = Shard(problem, np.arange(3), np.ones(2))
    shard.first_flips((), polished=True, led=False)
    search = linear.search

    def without_the_first(*given: Any) -> linear.Searched:
        exact = search(*given)
        exact.found[0], exact.change[0] = False, 0.0
        return exact

    monkeypatch.setattr(linear, "search", without_the_first)
    assert shard.flips_at(np.ones(2), 1.0, taken=np.array([1])).rows.tolist() == [2]


def test_flips_that_are_far_too_dear_are_left_out_but_known() -> None:
    problem = net_problem(6000, budgets={"x0": 20.0, "x1": 10.0})
    plan, nearest = solve(problem), solve(problem, Nearest())
    assert nearest.fate_counts()[Fate.LEFT_OUT] > 2000
    assert plan.fate_counts()[Fate.NOT_FOUND] == nearest.fate_counts()[Fate.NOT_FOUND]


class TwoWays(nn.Module):
    """The score is the larger of x0 - 1.5 and 4 (x1 - 1)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        score = torch.maximum(x[:, 0] - 1.5, 4 * (x[:, 1] - 1))
        return torch.stack([torch.zeros_like(score), score], dim=1)


def test_whoever_sees_only_a_way_that_is_far_too_dear_is_led_the_way_of_others() -> None:
    """Twenty see x0 alone, which a hundred others need much less of; their cheapest flips are by x1."""
    x = np.array([[0.0, 0.5]] * 20 + [[1.4, -10.0]] * 100 + [[-10.0, 0.0]] * 300)
    needed = 2 * math.atanh(0.1)
    by_x0, by_x1 = (0.1 + needed) ** 2, (1 + needed / 4) ** 2
    budgets = {"x0": 50.5 * by_x0, "x1": 100.5 * by_x1}
    problem = Problem(
        classifier=TorchClassifier(TwoWays(), output="logits"), cohort=x, target=1, margin=0.1, budgets=budgets
    )
    left = budgets["x1"] - 20 * (0.5 + needed / 4) ** 2
    assert solve(problem).count == 50 + 20 + int(left / by_x1)
