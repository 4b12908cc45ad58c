"""Samples that are alike: of equals those whose ids come first are picked, also where flips are searched in batches."""

from __future__ import annotations

import numpy as np
import pytest

from maxflip import Nearest, Prices, Problem, TorchClassifier, solve
from maxflip.plan.pool import Pool
from maxflip.select.twins import share_flips
from maxflip.solvers import Solver
from tests.conftest import LONG
from tests.examples import linear_problem, small_net


@pytest.mark.parametrize("solver", [Prices(), Nearest()], ids=repr)
@pytest.mark.parametrize("seed", [0, 2, 3, 4] if LONG else [0, 3])
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


def test_those_taken_for_alike_keep_a_flip_of_their_own() -> None:
    """Samples whose fixed features differ may be as confident, to the digits of the model. Flips of one feature were
    once taken for the same whatever their length; the shortest does not flip everybody."""
    missing = np.array([1.0, 1.5, 2.0])
    problem = linear_problem([1.0, 1.0], [[0.0, -m] for m in missing], [10.0, 0.0], margin=0.0)
    own = Pool.of(problem, np.arange(3), np.column_stack([missing + 0.01, np.zeros(3)]))
    shared = share_flips(problem, own, np.zeros(3, dtype=np.int64))
    assert {(row, change) for row, change in zip(shared.rows.tolist(), shared.changes[:, 0].tolist(), strict=True)} == {
        (row, m + 0.01) for row in range(3) for m in missing[row:].tolist()
    }
