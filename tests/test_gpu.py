"""Every solver where there is a GPU: the plan is lawful, judged there, and about as good as on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from maxflip import Action, Budget, Limit, Quota, Rounded, TorchClassifier, Uptake, Ways, judge, solve
from maxflip.solvers import Solver
from tests.contract import SOLVERS
from tests.examples import net_problem, small_net
from tests.sequences.examples import Recurrent, ragged_problem

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use")
every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


@every_solver
def test_tables(solver: Solver) -> None:
    counts = [
        solve(net_problem(60, classifier=TorchClassifier(small_net(4).to(device), output="logits")), solver).count
        for device in ("cpu", "cuda")
    ]
    assert min(counts) > 0
    assert abs(counts[0] - counts[1]) <= 3


@every_solver
def test_sequences(solver: Solver) -> None:
    net = Recurrent(3).to("cuda")
    plan = solve(ragged_problem(classifier=TorchClassifier(net, output="logits")), solver)
    assert plan.count > 0


FREE = np.random.default_rng(0).normal(size=(60, 2))
RULES: dict[str, dict[str, Any]] = {
    "derived": {
        "cohort": np.column_stack([FREE, GAP := FREE[:, 0] - 0.5 * FREE[:, 1], np.maximum(GAP, 0.25) / 3]),
        "budgets": {"x0": 9.0, "x1": 9.0},
        "derived": {"x2": "x0 - 0.5 * x1", "x3": "max(x2, 0.25) / 3"},
    },
    "steps": {"limits": {"x0": Limit(step=0.25), "x1": Limit(smallest=0.5), "x2": Limit(step=0.1, direction="up")}},
    "few": {"most_changes": 2},
    "few, steps": {"most_changes": 2, "limits": {f"x{i}": Limit(step=0.25) for i in range(4)}},
    "must hold": {"must_hold": [Uptake(0.8), Rounded({"x0": 0.1})]},
    "actions": {
        "actions": [Action("push", {"x0": 1.0}, draws={"x1": 0.5}), Action("pull", {"x3": "x 0.5"}, draws={"x2": 0.5})],
        "most_actions": 2,
    },
    "ways and quotas": {
        "budgets": {"x0": Budget(4.0, {"x0": Ways(2.0, 0.5)}, fee=0.01), "x1": 4.0},
        "quotas": [Quota([str(j) for j in range(30)], at_least=0.4)],
    },
}


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    """As on the processor: about as many, by the same rules, which the judge checks there to the last bit."""
    counts = []
    for device in ("cpu", "cuda"):
        classifier = TorchClassifier(small_net(4, dtype=torch.float64).to(device), output="logits")
        problem = net_problem(60, classifier=classifier, **RULES[name])
        plan = solve(problem)
        assert judge.admissible(problem, plan.selected, plan.moves).all()
        assert problem.bill(plan.selected, plan.moves).fits()
        counts.append(plan.count)
    assert min(counts) > 0
    assert abs(counts[0] - counts[1]) <= 2
