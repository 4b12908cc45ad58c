"""Samples that are alike: of equals those whose ids come first are picked, also where flips are searched in batches."""

from __future__ import annotations

import numpy as np
import pytest

from maxflip import Nearest, Prices, Problem, TorchClassifier, solve
from maxflip.solvers import Solver
from tests.examples import small_net


@pytest.mark.parametrize("solver", [Prices(), Nearest()], ids=repr)
@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_the_first_of_copies_is_picked(solver: Solver, seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = rng.normal(size=(15, 4))
    x = np.concatenate([own, own, own])
    problem = Problem(
        classifier=TorchClassifier(small_net(4, seed=seed), output="logits"),
        cohort=x,
        target=1,
        margin=0.1,
        budgets={f"x{i}": 2.0 for i in range(4)},
    )
    plan = solve(problem, solver)
    picked = set(plan.selected.tolist())
    assert picked
    for row in picked:
        assert {row % 15 + 15 * k for k in range(row // 15)} <= picked
