"""How many flips are missed within limits: `python -m research.benchmarks.reach --data DIR [--samples 300] [--keep]`.

Four networks (64-64) with limits and a margin that few reach easily. An independent search, in this file, says who
can be flipped: 100 ascents by the sign of the gradient from random corners of the limits. For `Nearest` and `Prices`,
and for both without the last resort (climbs then go on to their end): how many of those people are `not_found`, and
gradients per person. Each network is asked once more without limits, where nobody is lost. `--keep` writes the result
file and renders docs/results/flips.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from pyarrow.csv import read_csv
from torch import nn

from maxflip import Fate, Nearest, Prices, Problem, TorchClassifier, datasets, solve
from maxflip.search import gradient
from maxflip.search.settings import GRADIENT
from research.benchmarks.flips import TARGET, trained, unwanted
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]

Row = dict[str, Any]

WANTED = TARGET
SHARE = 0.1  # squared standard deviations per person: the budget of each feature
TRAINED_ON = 8000  # rows
RESTARTS, STEPS = 100, 60
FIRST_STEP, LAST_STEP = 0.2, 0.005  # of the width of the limits
SURE = 1e-5  # by so much more than the margin a flip of the independent search must pass


@dataclass(frozen=True, eq=False)
class Source:
    """values (n, F), labels (n,): 0 is wanted"""

    values: Floats
    labels: Labels
    features: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """x (n, F): the people, in standard deviations. Limits are their own range of each feature."""

    name: str
    net: nn.Module
    x: Floats
    features: tuple[str, ...]
    changeable: tuple[str, ...]
    directions: Mapping[str, str]
    margin: float

    @property
    def actionable(self) -> Mask:
        return np.array([name in self.changeable for name in self.features])

    def box(self) -> tuple[Floats, Floats]:
        """(n, F): the least and greatest change of each value."""
        low, high = self.x.min(axis=0) - self.x, self.x.max(axis=0) - self.x
        ways = [self.directions.get(name) for name in self.features]
        low[:, [way == "up" for way in ways]] = 0.0
        high[:, [way == "down" for way in ways]] = 0.0
        low[:, ~self.actionable] = high[:, ~self.actionable] = 0.0
        return low, high


def problem_of(case: Case, *, limits: bool) -> Problem:
    return Problem(
        classifier=TorchClassifier(case.net, output="logits"),
        cohort=case.x,
        features=case.features,
        target=WANTED,
        margin=case.margin,
        budgets={name: SHARE * len(case.x) for name in case.changeable},
        limits=dict.fromkeys(case.changeable, "observed") if limits else None,
        directions=case.directions if limits else None,
    )


def reachable(case: Case) -> Mask:
    """(n,): whom the independent search flips."""
    x = torch.tensor(case.x, dtype=torch.float32)
    low, high = (torch.tensor(side, dtype=torch.float32) for side in case.box())
    generator = torch.Generator().manual_seed(1)
    flipped = torch.zeros(len(x), dtype=torch.bool)
    for _ in range(RESTARTS):
        d = torch.where(torch.rand(x.shape, generator=generator) < 0.5, low, high)
        for k in range(STEPS):
            d.requires_grad_(True)
            z = case.net(x + d)
            others = torch.logsumexp(torch.cat([z[:, :WANTED], z[:, WANTED + 1 :]], dim=1), dim=1)
            (g,) = torch.autograd.grad((z[:, WANTED] - others).sum(), d)
            p = torch.softmax(z.detach().double(), dim=1)
            ahead = p[:, WANTED] - torch.cat([p[:, :WANTED], p[:, WANTED + 1 :]], dim=1).amax(dim=1)
            flipped |= ahead >= case.margin + SURE
            step = FIRST_STEP * (LAST_STEP / FIRST_STEP) ** (k / (STEPS - 1))
            d = torch.clamp(d.detach() + step * (high - low) * g.sign(), low, high)
    return flipped.numpy()


def credit(data: Path) -> Source:
    table = datasets.credit_default(data / "credit_default")
    return Source(table.values, table.labels, table.features)


def heloc(data: Path) -> Source:
    """Home equity lines of credit; column 0 of the model's output is "good"."""
    table = read_csv(data / "heloc" / "heloc.csv.gz")
    features = tuple(name for name in table.column_names if name != "RiskPerformance")
    values = np.stack([table[name].to_numpy().astype(np.float64) for name in features], axis=1)
    return Source(values, 1 - table["RiskPerformance"].to_numpy().astype(np.int64), features)


def stays(data: Path) -> Source:
    """ICU stays as a table: the mean of each variable over 48 hours, the median of all where none was measured."""
    sequences = datasets.physionet2012(data / "physionet2012")
    with np.errstate(invalid="ignore"):
        means = np.stack([np.nansum(v, axis=0) / (~np.isnan(v)).sum(axis=0) for v in sequences.values])
    values = np.hstack([np.where(np.isnan(means), np.nanmedian(means, axis=0), means), sequences.static])
    return Source(values, sequences.labels, (*sequences.features, *sequences.static_features))


def cases(data: Path, samples: int) -> Iterator[Case]:
    """Networks trained until they are far from straight, and people whom they put in the unwanted class."""
    bills = tuple(f"BILL_AMT{month}" for month in range(1, 7))
    labs = ("BUN", "Creatinine", "Glucose", "HCO3", "HCT", "K", "Na", "Platelets", "WBC")
    lenders = heloc(data)
    asked: tuple[tuple[Any, ...], ...] = (
        ("credit, tanh", credit(data), nn.Tanh, 60, bills, {"BILL_AMT1": "down", "BILL_AMT2": "down"}, 0.5),
        ("HELOC, tanh", lenders, nn.Tanh, 60, lenders.features[-6:], {}, 0.9),
        ("HELOC, ReLU", lenders, nn.ReLU, 60, lenders.features[-6:], {}, 0.9),
        ("ICU, tanh", stays(data), nn.Tanh, 10, labs, {"BUN": "down", "Creatinine": "down"}, 0.8),
    )
    for name, source, activation, epochs, changeable, directions, margin in asked:
        spread = source.values.std(axis=0)
        x = (source.values - source.values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        net = trained(x[:TRAINED_ON], source.labels[:TRAINED_ON], activation, classes=2, epochs=epochs)
        yield Case(name, net, unwanted(net, x, samples), source.features, changeable, directions, margin)


def measured(case: Case, problem: Problem, can: Mask, searches: Mapping[str, Callable[[], Any]]) -> list[Row]:
    """A row for each solver, with and without the last resort."""
    rows = []
    for solver in (Nearest(), Prices()):
        for search, switched in searches.items():
            with switched():
                plan = solve(problem, solver)
            missed = np.array([fate == Fate.NOT_FOUND.value for fate in plan.fates])
            rows.append(
                {
                    "network": case.name,
                    "limits": not problem.is_boundless,
                    "solver": type(solver).__name__,
                    "search": search,
                    "samples": len(case.x),
                    "reachable": int(can.sum()),
                    "not_found": int(missed.sum()),
                    "missed": int((missed & can).sum()),
                    "beyond": int((~missed & ~can).sum()),
                    "flipped": plan.count,
                    "gradients": plan.trace["gradients"][-1] / len(case.x),
                    "forwards": plan.trace["forwards"][-1] / len(case.x),
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the public data sets")
    parser.add_argument("--samples", type=int, default=300)
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    patiently = replace(GRADIENT, climb_patience=GRADIENT.climb_steps)
    searches: dict[str, Callable[[], Any]] = {
        "without": lambda: patch.multiple(gradient, _resort=lambda *_, **__: None, GRADIENT=patiently),
        "with": nullcontext,
    }
    rows, began = [], time.monotonic()
    for case in cases(given.data, given.samples):
        rows += measured(case, problem_of(case, limits=True), reachable(case), searches)
        everyone = np.ones(len(case.x), dtype=bool)  # without limits, all can be flipped
        rows += measured(case, problem_of(case, limits=False), everyone, searches)
        tell(f"{case.name}: done")
    made = made_here("python -m research.benchmarks.reach --data DIR --keep", time.monotonic() - began, ("torch",))
    report({"reach": rows}, made, ["reach.limits", "reach.unlimited"], keep=given.keep)


if __name__ == "__main__":
    main()
