"""Flips that no walk from the start finds: the passing region is a corner of the limits, behind a valley, or where
others end. Each model is made by hand, so that who can be flipped is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from maxflip import Cohort, Fate, Nearest, Plan, Prices, Problem, TorchClassifier, solve
from maxflip._util.engine import Local
from maxflip.search import last_resort


class OneCorner(nn.Module):
    """Class 1 only where |x - corner|^2 < 0.1 (corner (F,)); elsewhere the score rises the farther one is from it, so
    that every gradient leads away."""

    def __init__(self, corner: Any) -> None:
        super().__init__()
        self.corner = nn.Buffer(torch.tensor(corner, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        away = ((x - self.corner) ** 2).sum(dim=1)
        z = torch.where(away < 0.1, 3.0 - away, -5.0 + torch.tanh(0.01 * away))
        return torch.stack([torch.zeros_like(z), z], dim=1)


class Maze(nn.Module):
    """z = sum_i (cos(pi x_i) - 1) + s: hills at even whole numbers, valleys at odd ones. Only where x_0 is about 4 and
    x_1 about -4 is s = 1.5, and the hill passes; elsewhere s = -0.5, and none does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hills = torch.cos(torch.pi * x).sum(dim=1) - x.shape[1]
        high = (x[:, 0] > 3.5) & (x[:, 1] < -3.5)
        z = hills + torch.where(high, 1.5, -0.5)
        return torch.stack([torch.zeros_like(z), z], dim=1)


def problem(net: nn.Module, x: Any, *, high: float = 4.0, **more: Any) -> Problem:
    names = x.features if isinstance(x, Cohort) else [f"x{i}" for i in range(x.shape[1])]
    return Problem(
        classifier=TorchClassifier(net.eval(), output="logits"),
        cohort=x,
        target=1,
        margin=0.1,
        budgets=dict.fromkeys(names, 1e6),
        limits=dict.fromkeys(names, (-high, high)),
        **more,
    )


def ends(plan: Plan, asked: Problem) -> Any:
    return asked.cohort.values[plan.selected] + plan.changes


def starts(n: int, features: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).uniform(-1, 1, size=(n, features))


@pytest.mark.parametrize("solver", [Nearest(), Prices()])
@pytest.mark.parametrize("corner", [[4.0, 4.0, -4.0], [-4.0, 4.0, 4.0], [-4.0, -4.0, -4.0]])
def test_a_region_at_one_corner_alone_is_found(solver: Any, corner: list[float]) -> None:
    asked = problem(OneCorner(corner), starts(20, 3))
    plan = solve(asked, solver)
    assert plan.count == 20
    assert ((ends(plan, asked) - corner) ** 2).sum(axis=1).max() < 0.1


@pytest.mark.parametrize("solver", [Nearest(), Prices()])
def test_a_hill_behind_valleys_is_found(solver: Any) -> None:
    asked = problem(Maze(), starts(20, 4))
    plan = solve(asked, solver)
    assert plan.count == 20
    assert (ends(plan, asked)[:, 0] > 3.5).all()
    assert (ends(plan, asked)[:, 1] < -3.5).all()


def test_without_limits_the_corners_are_ten_spreads_away() -> None:
    """The cohort has spread 1 by construction: (10, -10) relative to the one sample that is asked for."""
    x = np.array([[1.0, 1.0], [-1.0, -1.0]])
    asked = Problem(
        classifier=TorchClassifier(OneCorner([11.0, -9.0]).eval(), output="logits"),
        cohort=x,
        target=1,
        margin=0.1,
        budgets={"x0": 1e6, "x1": 1e6},
        exclude=["1"],
    )
    plan = solve(asked, Nearest())
    assert plan.count == 1
    np.testing.assert_allclose(ends(plan, asked)[0], [11.0, -9.0], atol=0.4)


def test_others_ends_lead_where_no_corner_and_no_ascent_does() -> None:
    """Class 1 is a ball of radius 0.5 around (1, 2, ..., 8) / 4, inside the limits. One sample stands in front of it,
    from where the gradient leads in; for the others every gradient leads away, and no corner is near."""

    class Ball(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            centre = torch.arange(1, 9, dtype=x.dtype) / 4
            away = ((x - centre) ** 2).sum(dim=1)
            z = torch.where(away < 1.0, 0.5 - away, -9.0 + 0.01 * away)
            return torch.stack([torch.zeros_like(z), z], dim=1)

    x = np.full((9, 8), -3.0)
    x[:, 0] -= np.arange(9) / 10
    x[0] = np.arange(1, 9) / 4 + 0.3  # |.|^2 = 0.72
    assert solve(problem(Ball(), x), Nearest()).count == 9
    assert solve(problem(Ball(), x[1:]), Nearest()).count == 0


@pytest.mark.parametrize("solver", [Nearest(chunk=8), Prices(chunk=8)])
def test_neither_the_order_of_rows_nor_the_number_of_workers_matters(solver: Any) -> None:
    x, ids = starts(24, 4), [f"p{i:03d}" for i in range(24)]
    shuffled = np.random.default_rng(1).permutation(24)
    moves = []
    for order in (np.arange(24), shuffled):
        cohort = Cohort.table(x[order], ids=[ids[j] for j in order])
        for workers in (1, 2):
            plan = solve(problem(Maze(), cohort), solver, engine=Local(workers))
            moves.append(dict(zip(plan.ids, plan.changes.tolist(), strict=True)))
    assert len(moves[0]) == 24
    assert all(other == moves[0] for other in moves[1:])


class Nowhere(nn.Module):
    """Nobody passes anywhere, and the score has slopes and waves that keep a search busy."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = -3.0 + torch.sin(3 * x).mean(dim=1)
        return torch.stack([torch.zeros_like(z), z], dim=1)


@pytest.mark.parametrize(("n", "features"), [(1, 2), (200, 2), (200, 12)])
def test_gradients_are_limited_where_everyone_is_lost(n: int, features: int) -> None:
    """Of few samples, Prices also searches the flips of Nearest, at two kinds of prices."""
    for solver, searches in ((Nearest(), 1), (Prices(), 3)):
        plan = solve(problem(Nowhere(), starts(n, features)), solver)
        assert plan.count == 0
        assert plan.trace["gradients"][-1] <= 100 * n * searches


def test_nobody_lost_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A linear score in disguise: every walk crosses."""

    class Slope(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = (x + 0.1 * torch.tanh(x)).sum(dim=1) - 5.0
            return torch.stack([torch.zeros_like(z), z], dim=1)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the last resort was called")

    monkeypatch.setattr(last_resort.LastResort, "run", never)
    assert solve(problem(Slope(), starts(50, 4)), Nearest()).count == 50


def test_an_output_that_is_not_finite_at_a_far_corner_does_not_make_a_sample_unusable() -> None:
    class Root(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = -3.0 + 0.1 * torch.sqrt(3.9 - x[:, 0].clamp_min(1.5)) + 0 * x.sum(dim=1)
            return torch.stack([torch.zeros_like(z), z], dim=1)

    plan = solve(problem(Root(), starts(5, 2)), Nearest())
    assert plan.fate_counts()[Fate.NOT_FOUND] == 5
