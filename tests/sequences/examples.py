"""Small problems of sequences whose right answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from maxflip import Cohort, Problem, TorchClassifier
from maxflip.data.inputs import Batch


class Total(nn.Module):
    """Logits 0 and b + sum over steps of w . x: the cheapest change is spread evenly over all steps."""

    takes = ("x", "observed")

    def __init__(self, w: Any, b: float = 0.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w, dtype=torch.float64))
        self.b = b

    def forward(self, x: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        score = (torch.where(observed, x, 0.0) @ self.w).sum(dim=1) + self.b
        return torch.stack([torch.zeros_like(score), score], dim=1)


class LastStep(nn.Module):
    """Any network of rows, asked about the last step."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        return self.net(x[torch.arange(len(x), device=x.device), length - 1])  # type: ignore[no-any-return]


class Recurrent(nn.Module):
    """A small GRU over values and their flags, read at the last step."""

    takes = ("x", "observed", "time", "length")

    def __init__(self, features: int, classes: int = 2, seed: int = 0, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.cell = nn.GRU(2 * features + 1, 12, batch_first=True)
            self.head = nn.Linear(12, classes)
            for parameter in self.parameters():
                parameter.data *= 1.5
        self.to(dtype)

    def forward(
        self, x: torch.Tensor, observed: torch.Tensor, time: torch.Tensor, length: torch.Tensor
    ) -> torch.Tensor:
        hidden, _ = self.cell(torch.cat([x, observed.to(x.dtype), time[..., None]], dim=2))
        return self.head(hidden[torch.arange(len(x), device=x.device), length - 1])  # type: ignore[no-any-return]


def ragged_values(n: int, features: int, longest: int = 6, missing: float = 0.3, seed: int = 0) -> list[Any]:
    """Sequences of 1 to `longest` steps, with holes; the last has no value at all."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=(int(rng.integers(1, longest + 1)), features)) for _ in range(n)]
    for sequence in values:
        sequence[rng.random(sequence.shape) < missing] = np.nan
    if missing:
        values[-1][:] = np.nan
    return values


def ragged_cohort(n: int = 30, features: int = 3, **options: Any) -> Cohort:
    values = ragged_values(n, features, **options)
    return Cohort.sequences(values, ids=[f"P{j:03}" for j in range(n)])


def ragged_problem(n: int = 30, features: int = 3, **options: Any) -> Problem:
    settings: dict[str, Any] = {
        "classifier": TorchClassifier(Recurrent(features), output="logits"),
        "cohort": ragged_cohort(n, features),
        "target": 1,
        "margin": 0.1,
        "steps": "all",
        "budgets": {f"x{i}": 2.0 for i in range(features)},
    } | options
    return Problem(**settings)


def alone(problem: Problem, row: int, change: Any = 0.0) -> Batch:
    """One sequence as it is, built here: what the model is asked about."""
    ragged = problem.cohort.ragged
    assert ragged is not None
    at = slice(int(ragged.begin[row]), int(ragged.begin[row + 1]))
    values = problem.cohort.values[at]
    observed = ~np.isnan(values)
    return Batch(
        torch.tensor(np.where(observed, values + change, 0.0))[None],
        torch.tensor(observed)[None],
        torch.tensor(ragged.times[at])[None],
        torch.tensor([len(values)]),
        torch.tensor(ragged.static[row])[None],
    )
