"""The measures once more, by other means: from the saved plan.parquet, the data and the network's own logits.

Nothing of maxflip's judge, slots or ledger, nor of measures.py, has a part in the numbers that are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import BCMS, KL, Cohort, Nearest, Prices, Problem, TorchClassifier, solve
from maxflip.networks import GRUD
from maxflip.solvers import Solver
from research.experiments.measures import measured

Floats = NDArray[np.float64]
MARGIN, WANTED = 0.1, 1
FEATURES = ("pressure", "glucose", "age")
SOLVERS: Mapping[str, Solver] = {
    "Prices": Prices(),
    "Nearest": Nearest(),
    "BCMS": BCMS.scale_free(outer=3, inner=20, optimizer="adam"),
    "KL": KL.scale_free(outer=3, inner=20, optimizer="adam"),
}


def recomputed(
    folder: Path,
    steps: Mapping[str, Floats],
    budgets: Mapping[str, float],
    logits: Callable[[str, Floats], Sequence[float]],
) -> dict[str, float]:
    """steps: of each id its values, (T, F), NaN where missing   logits: of an id with other values than these"""
    after = {name: values.copy() for name, values in steps.items()}
    drawn = dict.fromkeys(FEATURES, 0.0)
    changes = pq.read_table(folder / "plan.parquet").to_pylist()
    for row in changes:
        column = FEATURES.index(row["feature"])
        assert row["before"] == steps[row["id"]][row["step"], column]
        after[row["id"]][row["step"], column] += row["change"]
        drawn[row["feature"]] += row["change"] ** 2
    everything = np.concatenate(list(steps.values()))
    spread = dict(zip(FEATURES, np.nanstd(everything, axis=0), strict=True))
    flipped, gaps = [], []
    for name in dict.fromkeys(row["id"] for row in changes):
        assert _confidence(logits(name, steps[name])) < MARGIN
        chances = np.sort(_softmax(logits(name, after[name])))
        gaps.append(chances[-1] - chances[-2])
        if _confidence(logits(name, after[name])) >= MARGIN:
            flipped.append(name)
    return {
        "n": len(steps),
        "count": len(flipped),
        "consumption_per_picked": sum(drawn[f] / spread[f] ** 2 for f in budgets) / len(flipped),
        "unspent": sum(1.0 - drawn[f] / budgets[f] for f in budgets) / len(budgets),
        "spent": sum(drawn[f] / budgets[f] for f in budgets) / len(budgets),
        "prediction_gap": sum(gaps) / len(gaps),
    }


def _softmax(logits: Sequence[float]) -> Floats:
    raised = np.exp(np.asarray(logits) - max(logits))
    return np.asarray(raised / raised.sum())


def _confidence(logits: Sequence[float]) -> float:
    chances = _softmax(logits)
    return float(chances[WANTED] - np.delete(chances, WANTED).max())


def compare(problem: Problem, solver: Solver, folder: Path, steps: Mapping[str, Floats], logits: Any) -> None:
    plan = solve(problem, solver)
    plan.save(folder)
    amounts = {name: budget.amount for name, budget in problem.budgets.items()}
    again = recomputed(folder, steps, amounts, logits)
    told = measured(problem, plan)
    assert 0 < again["count"] < len(steps)
    assert 0.0 < again["spent"] < 1.0
    assert {name: told[name] for name in again} == pytest.approx(again, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_of_a_table(tmp_path: Path, solver: str) -> None:
    """Three classes, and a third feature that may not change"""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)).double().eval()
    values = np.random.default_rng(3).normal([0.0, 1.0, 0.0], [1.0, 3.0, 1.0], (40, 3))
    names = [f"P{j}" for j in range(len(values))]
    problem = Problem(
        classifier=TorchClassifier(net, output="logits", dtype=torch.float64),
        cohort=Cohort.table(values, ids=names, features=FEATURES),
        target=WANTED,
        margin=MARGIN,
        budgets={"pressure": 4.0, "glucose": 20.0},
    )

    def logits(_: str, row: Floats) -> list[float]:
        with torch.no_grad():
            (answer,) = net(torch.as_tensor(row)).tolist()
        return list(answer)

    compare(
        problem, SOLVERS[solver], tmp_path / "plan", {n: v[None] for n, v in zip(names, values, strict=True)}, logits
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_of_sequences(tmp_path: Path, solver: str) -> None:
    """Of several lengths, with missing values; the network is asked about one at a time, without padding"""
    torch.manual_seed(1)
    chance = np.random.default_rng(1)
    net = GRUD(3, 6, means=[0.0, 1.0, 0.0], scale=[1.0, 3.0, 1.0]).double().eval()
    with torch.no_grad():
        net.head.weight.mul_(8.0)
    sequences = [chance.normal([0.0, 1.0, 0.0], [1.0, 3.0, 1.0], (length, 3)) for length in chance.integers(1, 6, 30)]
    for values in sequences:
        values[chance.random(values.shape) < 0.3] = np.nan
        values[0, 0] = 0.5
    times = [np.cumsum(chance.exponential(1.0, len(values))) for values in sequences]
    names = [f"P{j}" for j in range(len(sequences))]
    problem = Problem(
        classifier=TorchClassifier(net, output="logits", dtype=torch.float64),
        cohort=Cohort.sequences(sequences, times=times, ids=names, features=FEATURES),
        target=WANTED,
        margin=MARGIN,
        steps="all",
        budgets={"pressure": 4.0, "glucose": 20.0},
    )
    when = dict(zip(names, times, strict=True))

    def logits(name: str, steps: Floats) -> list[float]:
        x = torch.as_tensor(np.nan_to_num(steps, nan=0.0))[None]
        seen = torch.as_tensor(~np.isnan(steps))[None]
        with torch.no_grad():
            (answer,) = net(x, seen, torch.as_tensor(when[name])[None], torch.tensor([len(steps)])).tolist()
        return list(answer)

    compare(problem, SOLVERS[solver], tmp_path / "plan", dict(zip(names, sequences, strict=True)), logits)
