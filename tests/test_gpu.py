"""Every solver where there is a GPU: the plan is lawful, judged there, and about as good as on the processor."""

from __future__ import annotations

import pytest
import torch

from maxflip import TorchClassifier, solve
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
