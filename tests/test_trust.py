"""Searches in trust regions, where the cheapest flip is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from maxflip import Budget, Problem, TorchClassifier
from maxflip.search import FeaturePrices, trust
from maxflip.search.gradient import Best, explore
from maxflip.search.surface import Surface
from tests.examples import linear_net, small_net


def posed(net: torch.nn.Module, n: int, features: int) -> Surface:
    x = np.random.default_rng(3).normal(size=(n, features)) - 0.5
    budgets = {f"x{i}": Budget(1.0, cost="absolute") for i in range(features)}
    problem = Problem(classifier=TorchClassifier(net, output="logits"), cohort=x, target=1, margin=0.1, budgets=budgets)
    absolute = np.linspace(1.0, 2.0, features)
    return Surface(problem, np.arange(n), FeaturePrices(np.zeros(features), absolute))


def test_one_linear_score_is_moved_by_the_feature_that_does_most_for_its_price() -> None:
    weights = np.array([1.0, 3.0, -2.0])
    surface = posed(linear_net(weights), 20, 3)
    everyone = torch.arange(20)
    gap = -surface.margin(torch.zeros(20, 3, dtype=torch.float64), everyone)
    at = everyone[gap > 0]
    best = Best.none(surface.low)
    start = torch.full((len(at), 3), 2.0, dtype=torch.float64) * torch.sign(torch.tensor(weights)) * 4
    trust.descend(surface, best, at, start, torch.full((20,), 50.0, dtype=torch.float64))
    cheapest = (gap / (torch.tensor(weights).abs() / surface.rates.up.absolute).max())[at]
    assert best.found[at].all()
    assert (best.cost[at] / cheapest).numpy() == pytest.approx(1.0, abs=2e-3)


def test_no_flip_becomes_dearer_and_most_become_cheaper() -> None:
    surface = posed(small_net(6, seed=2, dtype=torch.float64), 60, 6)
    everyone = torch.arange(60)
    best = Best.none(surface.low)
    explore(surface, best, everyone)
    at = everyone[best.found]
    before = best.cost[at].clone()
    trust.descend(surface, best, at, best.change[at], torch.full((60,), 20.0, dtype=torch.float64))
    assert (best.cost[at] <= before).all()
    assert float((best.cost[at] / before).mean()) < 0.97
    assert (surface.margin(best.change[at], at) >= 0).all()


def test_the_step_is_the_cheapest_in_its_box() -> None:
    """Against a fine grid, boxes that do not contain 0 among them."""
    rng = np.random.default_rng(0)
    steps = np.linspace(0, 1, 201)
    for _ in range(20):
        g, low = torch.tensor(rng.normal(size=(1, 2))), torch.tensor(rng.normal(size=(1, 2)))
        high = low + torch.tensor(rng.uniform(0.5, 2.0, size=(1, 2)))
        squared, absolute = torch.tensor(rng.uniform(0.1, 1, 2)), torch.tensor(rng.uniform(0.1, 1, 2))
        corner = torch.where(g > 0, high, low)
        r = (g * low).sum(1).minimum((g * high).sum(1)) * 0.5 + (g * corner).sum(1) * 0.5
        found = trust._cheapest(g, r, squared, absolute, low, high)
        grid = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
        points = torch.tensor(grid) * (high - low) + low
        cost = (squared * points**2 + absolute * points.abs()).sum(1)
        least = cost[(points * g).sum(1) >= r].min()
        own = (squared * found**2 + absolute * found.abs()).sum(1)
        assert float((g * found).sum() - r) >= -1e-9
        assert float(own - least) <= 1e-9
