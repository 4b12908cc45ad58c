"""The cheapest flip: closed forms for linear models, a fine grid for networks, limits that hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maxflip import Budget, Problem, TorchClassifier
from maxflip.judge import confidence_after
from maxflip.search import FeaturePrices, cheapest_flips, gradient
from maxflip.search.settings import GRADIENT, Gait
from maxflip.search.surface import Surface
from tests.examples import linear_net, linear_problem, missing_score, net_problem, small_net, trained_net


def flips_at(problem: Problem, *prices: float) -> Any:
    with problem.classifier.borrowed():
        return cheapest_flips(problem, np.arange(len(problem)), FeaturePrices.at(problem, np.array(prices)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_linear_squared_without_limits_is_the_closed_form(dtype: torch.dtype) -> None:
    """C_j = gap_j^2 / sum_i w_i^2 / price_i."""
    rng = np.random.default_rng(0)
    w, x, prices = rng.normal(size=5), rng.normal(size=(200, 5)), rng.uniform(0.1, 3, 5)
    classifier = TorchClassifier(linear_net(w, 0.3, dtype), output="logits")
    problem = Problem(classifier=classifier, cohort=x, target=1, margin=0.1, budgets={f"x{i}": 1.0 for i in range(5)})
    gap = missing_score(w, x, 0.3)
    rows = np.flatnonzero(gap > 0.01)
    flips = cheapest_flips(problem, rows, FeaturePrices.at(problem, prices))
    assert flips.found.all()
    cost = (flips.changes**2 * prices).sum(axis=1)
    tolerance = 1e-6 if dtype == torch.float64 else 1e-3
    np.testing.assert_allclose(cost, gap[rows] ** 2 / (w**2 / prices).sum(), rtol=tolerance)


def test_threshold_and_the_other_class() -> None:
    """threshold t: w.x must reach logit t; wanting class 0 turns the score around."""
    x = np.array([[-1.0], [0.5]])
    up = linear_problem([2.0], x, [1.0], margin=None, threshold=0.9)
    np.testing.assert_allclose(x[:, 0] + flips_at(up, 1.0).changes[:, 0], math.log(9) / 2, rtol=1e-6)
    down = linear_problem([2.0], x + 3, [1.0], target=0)
    np.testing.assert_allclose(x[:, 0] + 3 + flips_at(down, 1.0).changes[:, 0], -math.atanh(0.1), rtol=1e-6)


def test_unreachable_is_proved_for_linear_models() -> None:
    x = np.array([[0.0, 0.0], [-10.0, 0.0], [-2.0, 0.0]])
    problem = linear_problem([1.0, 1.0], x, [1.0, 1.0], limits={"x0": (-20, 1), "x1": (-1, 1)})
    flips = flips_at(problem, 1.0, 1.0)
    assert flips.found.tolist() == [True, True, True]
    tight = linear_problem([1.0, 1.0], x, [1.0, 1.0], limits={"x0": (-20, -1), "x1": (-1, 1)})
    flips = flips_at(tight, 1.0, 1.0)
    assert flips.found.tolist() == [True, False, False]
    assert flips.unreachable.tolist() == [False, True, True]


def test_a_network_that_cannot_move_is_unreachable_and_one_that_can_is_only_not_found() -> None:
    problem = net_problem(20, limits={f"x{i}": (np.full(20, -9.0), np.full(20, -8.0)) for i in range(4)})
    frozen = net_problem(
        20, budgets={"x0": 0.0, "x1": 1.0}, limits={"x1": "observed"}, cohort=np.full((20, 4), 0.5), target=0
    )
    fails = confidence_after(frozen, np.arange(20), np.zeros((20, 4))) < 0.1
    assert fails.all()
    assert flips_at(frozen, 1.0, 1.0).unreachable.all()
    assert not flips_at(problem, 1.0, 1.0, 1.0, 1.0).unreachable.any()


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("goal", [{"margin": 0.1}, {"margin": 0.0}, {"margin": None, "threshold": 0.6}])
@pytest.mark.parametrize("cost", ["squared", "absolute"])
def test_networks_against_a_fine_grid(classes: int, goal: dict[str, Any], cost: Any) -> None:
    """Two features: every change on a grid of 241 x 241 is tried; the search is at most a little dearer."""
    budgets = {"x0": Budget(1.0, cost=cost), "x1": Budget(1.0, cost=cost)}
    problem = Problem(
        classifier=TorchClassifier(trained_net(classes), output="logits"),
        cohort=2 * np.random.default_rng(3).normal(size=(25, 2)),
        target=1,
        budgets=budgets,
        limits={"x0": (-3, 3), "x1": (-3, 3)},
        **goal,
    )
    prices = np.array([1.0, 2.0])
    start = confidence_after(problem, np.arange(25), np.zeros((25, 2)))
    rows = np.flatnonzero(start < problem.goal.required)
    flips = cheapest_flips(problem, rows, FeaturePrices.at(problem, prices))
    axis = np.linspace(-3, 3, 241)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    ratios = []
    for j, row in enumerate(rows):
        d = points - problem.cohort.values[row]
        passing = confidence_after(problem, np.full(len(d), row), d) >= problem.goal.required + problem.guard
        value = (d**2 @ prices) if cost == "squared" else (np.abs(d) @ prices)
        if not passing.any():
            continue
        own = flips.changes[j]
        mine = float(own**2 @ prices) if cost == "squared" else float(np.abs(own) @ prices)
        ratios.append(mine / value[passing].min() if flips.found[j] else np.inf)
    assert len(ratios) >= 5
    assert max(ratios) <= (1.02 if cost == "squared" else 1.05)


@given(st.integers(0, 10**6), st.sampled_from(["net", "linear"]))
def test_flips_pass_and_never_leave_limits_or_directions(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n, features = 6, 3
    x = rng.normal(size=(n, features)) * 10.0 ** rng.integers(-2, 3)
    low, high = np.sort(rng.normal(size=(2, features)) * np.abs(x).max(), axis=0)
    ways = {f"x{i}": str(rng.choice(["up", "down"])) for i in range(features) if rng.random() < 0.3}
    net = small_net(features, seed=seed) if kind == "net" else linear_net(rng.normal(size=features))
    budgets: dict[str, Any] = {"x0": 1.0, "both": Budget(1.0, {"x0": 0.5, "x1": 1.0}, "absolute")}
    ways = {name: way for name, way in ways.items() if name != "x2"}
    try:
        problem = Problem(
            classifier=TorchClassifier(net, output="logits"),
            cohort=x,
            target=1,
            margin=0.05,
            budgets=budgets,
            limits={f"x{i}": (float(low[i]), float(high[i])) for i in range(2)},
            directions=ways,
        )
    except ValueError:
        return
    flips = flips_at(problem, *rng.uniform(0.1, 2, 2))
    d = flips.changes[flips.found]
    rows = flips.rows[flips.found]
    after = x[rows] + d
    assert (after >= np.minimum(np.append(low[:2], -np.inf), x[rows])).all()
    assert (after <= np.maximum(np.append(high[:2], np.inf), x[rows])).all()
    assert (d[:, 2] == 0).all()
    for name, way in ways.items():
        assert (d[:, int(name[1])] * (1 if way == "up" else -1) >= 0).all()
    if len(rows):
        assert (confidence_after(problem, rows, d) >= 0.05 + problem.guard).all()


def test_a_limit_that_freezes_a_feature_equals_removing_its_budget() -> None:
    free = net_problem(30, limits={"x0": (-5, 5)}, budgets={"x0": 1.0, "x1": 1.0})
    pinned = net_problem(
        30,
        limits={"x1": (free.cohort.values[:, 1], free.cohort.values[:, 1]), "x0": (-5, 5)},
        budgets={"x0": 1.0, "x1": 1.0},
    )
    alone = net_problem(30, limits={"x0": (-5, 5)}, budgets={"x0": 1.0})
    a, b = flips_at(pinned, 1.0, 1.0), flips_at(alone, 1.0)
    np.testing.assert_array_equal(a.found, b.found)
    np.testing.assert_allclose(a.changes[a.found], b.changes[b.found], rtol=1e-3, atol=1e-6)


def test_free_features_are_used_before_dear_ones() -> None:
    """An infinite budget has price 0: the change goes there."""
    problem = linear_problem([1.0, 1.0], np.full((5, 2), -1.0), [math.inf, 1.0])
    changes = flips_at(problem, 0.0, 1.0).changes
    assert (np.abs(changes[:, 0]) > 1000 * np.abs(changes[:, 1])).all()


def test_output_that_is_not_finite_on_the_way_is_no_flip() -> None:
    class Cliff(torch.nn.Module):
        """NaN beyond x = 1, and the class changes only at x = 2."""

        def __init__(self) -> None:
            super().__init__()
            self.net = linear_net([1.0], -2.0)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z: torch.Tensor = self.net(x)
            return torch.where(x > 1, torch.full_like(z, torch.nan), z)

    problem = Problem(
        classifier=TorchClassifier(Cliff(), output="logits"),
        cohort=[[0.0], [0.5]],
        target=1,
        margin=0.1,
        budgets={"x0": 9.0},
    )
    flips = flips_at(problem, 1.0)
    assert not flips.found.any()
    assert flips.unusable.all()


class Counted(torch.nn.Module):
    """A network that counts the rows it is asked about, with and without a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small_net(4, 3, seed=0, dtype=torch.float32)
        self.with_gradient = self.without = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled():
            self.with_gradient += len(x)
        else:
            self.without += len(x)
        z: torch.Tensor = self.net(x)
        return z


def counted_surface(net: Counted) -> Surface:
    x = np.random.default_rng(0).normal(size=(60, 4))
    classifier = TorchClassifier(net, output="logits")
    budgets = {f"x{i}": 1.0 for i in range(4)}
    problem = Problem(classifier=classifier, cohort=x, target=1, margin=0.1, budgets=budgets)
    start = confidence_after(problem, np.arange(60), np.zeros((60, 4)))
    rows = np.flatnonzero(start < problem.goal.required)
    net.with_gradient = net.without = 0
    return Surface(problem, rows, FeaturePrices.at(problem, np.ones(4)))


def test_evaluations_are_counted_and_samples_that_have_arrived_leave() -> None:
    net = Counted()
    surface = counted_surface(net)
    best = gradient.search(surface)
    assert bool(best.found.all())
    assert (surface.evaluations.gradients, surface.evaluations.forwards) == (net.with_gradient, net.without)
    at_most = 1 + GRADIENT.explore.steps + GRADIENT.follow.steps + GRADIENT.refine.steps + GRADIENT.descents
    assert surface.evaluations.gradients < at_most * len(surface.low)


def test_a_warm_start_is_refined_by_fewer_evaluations_and_never_dearer() -> None:
    cold, warm = counted_surface(Counted()), counted_surface(Counted())
    first = gradient.search(cold)
    longer = 1.2 * first.change
    again = gradient.search(warm, start=longer)
    given = warm.rates.cost(longer)
    passes = warm.margin(longer, torch.arange(len(longer))) >= 0
    assert int(passes.sum()) >= 20
    assert bool((again.cost <= given)[passes].all())
    assert float((again.cost / first.cost)[passes].median()) < 1.01
    assert warm.evaluations.gradients < 0.6 * cold.evaluations.gradients


class Scored(torch.nn.Module):
    """Logits 0 and a score."""

    def __init__(self, score: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.score = score

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        score = self.score(x)
        return torch.stack([torch.zeros_like(score), score], dim=1)


def scored(score: Callable[[torch.Tensor], torch.Tensor], flips: list[list[float]]) -> tuple[Surface, gradient.Best]:
    """Samples at the origin, squared prices of 1, and a flip of each."""
    classifier = TorchClassifier(Scored(score), output="logits")
    cohort = np.zeros((len(flips), 2))
    problem = Problem(classifier=classifier, cohort=cohort, target=1, margin=0.1, budgets={"x0": 1.0, "x1": 1.0})
    surface = Surface(problem, np.arange(len(flips)), FeaturePrices.at(problem, np.ones(2)))
    change = torch.tensor(flips, dtype=torch.float64)
    assert bool((surface.margin(change, torch.arange(len(flips))) >= 0).all())
    return surface, gradient.Best(change, (change**2).sum(dim=1))


NEEDED = 2 * math.atanh(0.1)  # of a score


def test_someone_whose_flip_is_far_too_dear_is_led_where_others_went() -> None:
    """The score is the larger of x0 - 10 and x1 - 1: the first sample knows of x0 alone."""
    surface, best = scored(
        lambda x: torch.maximum(x[:, 0] - 10, x[:, 1] - 1), [[11.0, 0.0], [0.0, 1.3], [0.0, 1.25], [0.0, 1.4]]
    )
    gradient.follow(surface, best, torch.tensor([0]), torch.tensor([1, 2, 3]), worth=torch.full((4,), 2.0))
    assert float(best.cost[0]) == pytest.approx((1 + NEEDED) ** 2, rel=0.02)


def test_nobody_walks_who_is_promised_nothing_that_is_worth_it() -> None:
    surface, best = scored(lambda x: torch.maximum(x[:, 0] - 10, x[:, 1] - 1), [[11.0, 0.0], [0.0, 1.3], [0.0, 1.25]])
    gradient.follow(surface, best, torch.arange(3), torch.arange(3), worth=torch.ones(3))
    assert surface.evaluations.gradients == 3  # for the planes alone: no flip costs less than 1.4
    assert best.cost.tolist() == pytest.approx([121.0, 1.3**2, 1.25**2])


@pytest.mark.parametrize(("gait", "near"), [(GRADIENT.touch_up, 0.02), (GRADIENT.finish, 0.002)])
def test_a_flip_in_a_crease_is_touched_up(gait: Gait, near: float) -> None:
    """Both x0 + 2 x1 and 2 x0 + x1 must reach what is needed: most cheaply where x0 = x1, a third of it."""
    surface, best = scored(
        lambda x: torch.minimum(x[:, 0] + 2 * x[:, 1], 2 * x[:, 0] + x[:, 1]),
        [[1.301 * NEEDED / 3, 0.851 * NEEDED / 3], [0.901 * NEEDED / 3, 1.201 * NEEDED / 3]],
    )
    gradient.touch_up(surface, best, torch.arange(2), gait)
    assert (best.cost / (2 * (NEEDED / 3) ** 2)).tolist() == pytest.approx([1.0, 1.0], abs=near)
