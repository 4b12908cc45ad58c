"""Every measure by hand, on a problem so small that the answer can be written down.

The model says p = sigmoid(x0 + x1): one table of three samples, both features free, one squared budget each.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from maxflip import BCMS, Nearest, Plan, Prices, Problem, TorchClassifier, solve
from research.experiments.measures import (
    gradients,
    iterations,
    measured,
    of_iterations,
    of_prices,
    perturbed,
    spreads,
    standard,
)


class Sum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.sum(dim=1, keepdim=True)
        return torch.cat([torch.zeros_like(total), total], dim=1)


def problem(**budgets: float) -> Problem:
    return Problem(
        classifier=TorchClassifier(Sum().double().eval(), output="logits", dtype=torch.float64),
        cohort=np.array([[-1.0, 0.0], [-3.0, 0.0], [-200.0, 0.0]]),
        target=1,
        margin=0.1,
        budgets=budgets or {"x0": 40.0, "x1": 10.0},
    )


def made(change: float) -> Any:
    """The first two samples moved by `change` in x0, nothing in x1"""
    asked = problem()
    plan = solve(asked, Nearest())
    moves = np.zeros((2, 2))
    moves[:, 0] = change
    spend = {"x0": 2 * change**2, "x1": 0.0}
    own: dict[str, Any] = {name: getattr(plan, name) for name in ("budgets", "estimate", "bound", "notices")}
    return asked, SimpleNamespace(
        **own, count=2, worth=2.0, selected=np.array([0, 1]), moves=moves, spend=spend, seconds=1.5, trace={}
    )


def test_residual_consumption_and_gap_by_hand() -> None:
    asked, plan = made(4.0)
    row = measured(asked, plan)
    assert row["unspent"] == pytest.approx((0.2 + 1.0) / 2)  # 32 of 40, 0 of 10
    assert row["spent"] == pytest.approx(0.4)
    spread = spreads(asked)["x0"]
    assert spread == pytest.approx(float(np.std([-1.0, -3.0, -200.0])))
    assert row["consumption_per_picked"] == pytest.approx(32.0 / spread**2 / 2)
    # sigmoid(3) and sigmoid(1): best minus second best is tanh(s / 2)
    assert row["prediction_gap"] == pytest.approx((math.tanh(1.5) + math.tanh(0.5)) / 2)
    assert (row["n"], row["count"], row["worth"], row["seconds"]) == (3, 2, 2.0, 1.5)
    assert row["consumption_per_perturbed"] is None


def test_nothing_picked_has_no_consumption_and_no_gap() -> None:
    asked = problem(x0=1e-6, x1=1e-6)
    row = measured(asked, solve(asked, Nearest()))
    assert (row["count"], row["unspent"], row["spent"]) == (0, 1.0, 0.0)
    assert row["consumption_per_picked"] is None
    assert row["prediction_gap"] is None


def test_budgets_without_a_limit_have_no_residual() -> None:
    asked = problem(x0=math.inf, x1=math.inf)
    row = measured(asked, solve(asked, Nearest()))
    assert row["unspent"] is None
    assert row["spent"] is None


def test_consumption_is_counted_in_squared_spreads() -> None:
    assert standard({"a": 8.0, "b": 9.0, "c": 0.0}, {"a": 2.0, "b": 3.0}) == 3.0


def traced(**columns: Any) -> Plan:
    budgets = {"x0": None, "x1": None}
    plan: Any = SimpleNamespace(budgets=budgets, trace=columns)
    found: Plan = plan
    return found


def test_what_all_moved_samples_draw_is_that_of_the_first_best_iterate_of_each_group() -> None:
    plan = traced(
        group=[0, 0, 0, 1, 1],
        worth=[1.0, 3.0, 3.0, 2.0, 0.0],
        inner=[5, 5, 5, 4, 4],
        gradients=[10, 20, 30, 8, 16],
        **{"drawn: x0": [1.0, 2.0, 100.0, 4.0, 100.0], "drawn: x1": [0.0, 8.0, 100.0, 8.0, 100.0]},
    )
    assert perturbed(plan, {"x0": 1.0, "x1": 2.0}, 5) == pytest.approx((6.0 + 16.0 / 4) / 5)
    assert gradients(plan) == 30 + 16
    assert iterations(plan) == 23


def test_a_run_of_bcms_gives_a_row_per_outer_iteration_and_no_prices() -> None:
    asked = problem()
    plan = solve(asked, BCMS(outer=3, inner=4, patience=None))
    rows = of_iterations(plan)
    assert [row["outer"] for row in rows] == [1, 2, 3]
    assert rows[0]["mean_mu"] == plan.trace["mean_mu"][0]
    assert rows[2]["grad_mu"] == plan.trace["slope_mu"][2]
    assert max(row["count"] for row in rows) == plan.count
    assert of_prices(plan) == []
    assert measured(asked, plan)["iterations_made"] == 12
    assert measured(asked, plan)["gradients"] >= 12


def test_prices_give_a_row_per_budget() -> None:
    plan = solve(problem(), Prices())
    assert [row["feature"] for row in of_prices(plan)] == ["x0", "x1"]
    assert of_iterations(plan) == []
