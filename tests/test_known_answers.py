"""Problems whose optimum is known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from maxflip import Budget, Fate, Nearest, Problem, Status, solve
from tests.conftest import LONG
from tests.examples import linear_problem, missing_score


@pytest.mark.parametrize("seed", range(50))
def test_one_budget_linear_score_takes_the_longest_prefix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    w, x = rng.normal(size=1), rng.normal(size=(n, 1)) * 3
    gap = missing_score(w, x)
    costs = np.sort((gap[gap > 0] / w[0]) ** 2)
    budget = float(rng.uniform(0, 1.2) * costs.sum()) if len(costs) else 1.0
    expected = int((np.cumsum(costs) <= budget).sum())
    plan = solve(linear_problem(w, x, [budget]), Nearest())
    assert plan.count in (expected, expected - 1 if _is_close(costs, expected, budget) else expected)


def _is_close(costs: np.ndarray, expected: int, budget: float) -> bool:
    """The guard makes a flip dearer by about 1e-8: only a budget that tight may lose one."""
    return expected > 0 and abs(costs[:expected].sum() - budget) < 1e-6 * budget


@pytest.mark.parametrize("seed", range(50))
def test_any_number_of_budgets_at_the_clearing_prices(seed: int) -> None:
    """The optimum is the longest prefix of the sorted r_j^2 with sum <= (sum_i |w_i| sqrt B_i)^2.

    It is attained at prices |w_i| / sqrt B_i, where every budget is used up at the same pace.
    """
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 80)), int(rng.integers(1, 7))
    w, x = rng.normal(size=m) + np.sign(rng.normal(size=m)) * 0.1, rng.normal(size=(n, m))
    gap = missing_score(w, x)
    squares = np.sort(gap[gap > 0] ** 2)
    budgets = rng.uniform(0.05, 1.0, m) * squares.sum() / 10
    capacity = float((np.abs(w) * np.sqrt(budgets)).sum() ** 2)
    expected = int((np.cumsum(squares) <= capacity).sum())
    prices = {f"x{i}": abs(w[i]) / math.sqrt(budgets[i]) for i in range(m)}
    plan = solve(linear_problem(w, x, budgets), Nearest(prices=prices))
    assert plan.count in (expected, expected - 1 if _is_close(squares, expected, capacity) else expected)


LARGE = [(1000, 20, True), (3000, 20, False), (3000, 20, True)] if LONG else []


@pytest.mark.parametrize(("n", "m", "money"), [(300, 6, False), (300, 6, True), (1000, 20, False), *LARGE])
def test_absolute_budgets_of_a_linear_score_are_shared_out_among_all(n: int, m: int, money: bool) -> None:
    """A change of y in feature i adds |w_i| y to the score, so that all budgets together add sum_i |w_i| B_i, and any
    sample may draw on any of them. The optimum is that of one knapsack. At the market's prices everybody is as well
    off with any feature; flips of one feature each once reached 91 % of it."""
    rng = np.random.default_rng(n)
    w, x = rng.normal(size=m), rng.normal(size=(n, m))
    gap = missing_score(w, x)
    gap = np.where(gap > 0, gap, np.inf)
    worth = np.round(rng.lognormal(6.0, 1.2, n)) if money else np.ones(n)
    amounts = rng.lognormal(size=m)
    amounts *= 0.2 * gap[np.isfinite(gap)].sum() / (np.abs(w) @ amounts)
    order = np.argsort(gap / worth)
    known = float(worth[order][np.cumsum(gap[order]) <= np.abs(w) @ amounts].sum())
    budgets = {f"x{i}": Budget(float(a), cost="absolute") for i, a in enumerate(amounts)}
    plan = solve(linear_problem(w, x, budgets, worth=worth))
    assert plan.worth >= (0.995 * known if money else known - 1)
    assert plan.bound is not None
    assert known <= plan.bound


@pytest.mark.parametrize("k", [0, 1, 3, 7])
def test_copies_of_one_sample(k: int) -> None:
    """n copies, one budget of (k + 1/2) a: k of them."""
    a = (1.0 + 2 * math.atanh(0.1)) ** 2
    plan = solve(linear_problem([1.0], np.full((7, 1), -1.0), [(k + 0.5) * a]))
    assert plan.count == k


def test_a_count_budget_alone_gives_a_proved_optimum() -> None:
    from maxflip import Budget

    x = np.random.default_rng(0).normal(size=(30, 1)) - 3
    plan = solve(linear_problem([1.0], x, {"x0": math.inf, "people": Budget(11.7, cost="count")}))
    assert (plan.count, plan.bound, plan.status) == (11, 11.0, Status.OPTIMAL)


def test_a_budget_that_is_almost_nothing_is_no_reason_to_fail() -> None:
    """1 / 5e-324 is no number. Nobody is called unusable for it, and a plan that flips nobody not the best possible."""
    x = np.full((9, 2), -1.0)
    plan = solve(linear_problem([1.0, 1.0], x, [5e-324, 1e6]))
    assert plan.fate_counts()[Fate.UNUSABLE] == 0
    assert plan.count == 9 or plan.status is not Status.OPTIMAL
    assert solve(linear_problem([1.0, 1.0], x, [0.0, 1e6])).count == 9


def test_worth_is_maximised_not_the_count() -> None:
    """One dear sample worth 5 against two cheap ones worth 1 each."""
    x = np.array([[-2.0], [-1.0], [-1.0]])
    dear = (2.0 + 2 * math.atanh(0.1)) ** 2
    plan = solve(linear_problem([1.0], x, [dear * 1.01], worth=[5.0, 1.0, 1.0]))
    assert plan.selected.tolist() == [0]
    assert plan.worth == 5.0


def test_more_budget_and_smaller_margin_never_lower_an_exact_optimum() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1))
    counts = [solve(linear_problem([1.0], x, [b])).count for b in (0.1, 0.5, 2.0, 8.0, 32.0)]
    assert counts == sorted(counts)
    margins = [solve(linear_problem([1.0], x - 1, [3.0], margin=m)).count for m in (0.8, 0.5, 0.2, 0.0)]
    assert margins == sorted(margins)


def unlike_features(seed: int) -> tuple[Problem, int]:
    """One linear score whose features do very unlike amounts, with absolute budgets; and how many can be flipped.

    Every unit of a budget raises the score by |w|, whoever gets it: those who need least come first.
    """
    rng = np.random.default_rng(seed)
    w = rng.normal(size=20) * rng.choice([1.0, 0.3, 0.05, 0.002], 20)
    need = rng.uniform(0.5, 6.0, 300)
    amounts = rng.lognormal(0.0, 1.5, 20) * 0.02 * need.sum() / np.abs(w) * rng.uniform(0.02, 1.0, 20)
    x = np.zeros((300, 20))
    x[:, 0] = -need / w[0]
    budgets = {f"x{i}": Budget(amount, cost="absolute") for i, amount in enumerate(amounts.tolist())}
    most = int((np.cumsum(np.sort(need)) <= (np.abs(w) * amounts).sum()).sum())
    return linear_problem(w.tolist(), x, budgets, margin=0.0), most


@pytest.mark.parametrize("seed", range(8) if LONG else [5])
def test_budgets_that_no_known_flip_draws_on_get_a_price_too(seed: int) -> None:
    """Column generation alone finds bounds up to 120 people too high here. One person may still be missed."""
    problem, most = unlike_features(seed)
    plan = solve(problem)
    assert most - 1 <= plan.count <= most
    assert plan.bound is not None
    assert most <= plan.bound <= most + 1
