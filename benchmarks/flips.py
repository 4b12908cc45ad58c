"""Cheapest flips side by side with attack libraries: `python benchmarks/flips.py --data DIR [--samples 500] [--quick]`.

The same networks (64-64, tanh and ReLU, on credit_default and on synthetic data, 2 and 5 classes, and a steep one), the
same samples, the same margin of 0.1, one thread. For every method: the share of samples flipped, the mean squared
length of its flips over the best known (the least that anything in this run found, per sample), and samples per
second. "Best known" includes long runs of DDN and FMN and restarts of our own search from random points.

Needs `pip install foolbox` (extra `bench`).
"""

from __future__ import annotations

import argparse
import gzip
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import Problem, TorchClassifier
from maxflip.flips import FeaturePrices, cheapest_flips
from maxflip.flips.gradient import search
from maxflip.flips.surface import Surface

Floats = NDArray[np.float64]
MARGIN, TARGET = 0.1, 0
RESTARTS = 20


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    net: nn.Module
    x: Floats


class Steep(nn.Module):
    """Logits eight times as large: log-margins near -20."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = 8.0 * self.net(x)
        return logits


class WithMargin(nn.Module):
    """Scores whose largest is the target's exactly where the margin is kept: how a library without margins gets one."""

    def __init__(self, net: nn.Module, margin: float) -> None:
        super().__init__()
        self.net, self.margin = net, margin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        log_p = torch.log_softmax(self.net(x), dim=1)
        others = torch.log(log_p.exp() + self.margin)
        return torch.cat([log_p[:, :1], others[:, 1:]], dim=1)  # the target is column 0


def credit_default(data: Path) -> tuple[Floats, NDArray[np.int64]]:
    with gzip.open(data / "credit_default" / "default_credit_card.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    x = table[:, 1:-1]
    return (x - x.mean(axis=0)) / x.std(axis=0), table[:, -1].astype(np.int64)


def synthetic(classes: int) -> tuple[Floats, NDArray[np.int64]]:
    """20 normal features, classes drawn by a random tanh network."""
    x = np.random.default_rng(0).normal(size=(20_000, 20))
    torch.manual_seed(100)
    teacher = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, classes))
    with torch.no_grad():
        for parameter in teacher.parameters():
            parameter.mul_(2.5)
        z = teacher(torch.tensor(x, dtype=torch.float32))
        return x, ((z - z.mean(0)) / z.std(0)).argmax(1).numpy()


def trained(x: Floats, y: NDArray[np.int64], activation: type[nn.Module], classes: int) -> nn.Module:
    torch.manual_seed(0)
    width = x.shape[1]
    layers = [nn.Linear(width, 64), activation(), nn.Linear(64, 64), activation(), nn.Linear(64, classes)]
    net = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    for _ in range(8):
        for start in range(0, len(x), 256):
            batch = torch.arange(start, min(start + 256, len(x)))
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(net(inputs[batch]), labels[batch]))
            optimizer.step()
    return net.eval()


def unwanted(net: nn.Module, x: Floats, samples: int) -> Floats:
    """Samples that the net puts in another class than the target."""
    with torch.no_grad():
        predicted = net(torch.tensor(x, dtype=torch.float32)).argmax(1).numpy()
    rows = np.random.default_rng(1).permutation(np.flatnonzero(predicted != TARGET))
    return np.asarray(x[rows[:samples]])


def cases(data: Path, samples: int) -> list[Case]:
    found = []
    sources = [("credit", credit_default(data), 2), ("synthetic", synthetic(2), 2), ("synthetic", synthetic(5), 5)]
    for source, (x, y), classes in sources:
        for name, activation in (("tanh", nn.Tanh), ("ReLU", nn.ReLU)):
            net = trained(x, y, activation, classes)
            found.append(Case(f"{source}, {classes} classes, {name}", net, unwanted(net, x, samples)))
            if (source, classes, name) == ("synthetic", 2, "tanh"):
                found.append(Case("the same, steep", Steep(net).eval(), unwanted(net, x, samples)))
    return found


def problem_of(case: Case) -> Problem:
    width = case.x.shape[1]
    budgets = {f"x{i}": 1.0 for i in range(width)}
    classifier = TorchClassifier(case.net, output="logits")
    return Problem(classifier=classifier, cohort=case.x, target=TARGET, margin=MARGIN, budgets=budgets)


def ours(case: Case) -> tuple[Floats, float, str]:
    """Squared lengths (inf where none was found), seconds of processor time, and evaluations per sample."""
    problem, width = problem_of(case), case.x.shape[1]
    began = time.process_time()
    flips = cheapest_flips(problem, np.arange(len(case.x)), FeaturePrices(np.ones(width), np.zeros(width)))
    seconds = time.process_time() - began
    length = np.where(flips.found, (flips.changes**2).sum(axis=1), np.inf)
    count = flips.evaluations
    return (
        length,
        seconds,
        f"{count.gradients / len(length):.0f} gradients, {count.forwards / len(length):.0f} forwards",
    )


def restarts(case: Case, times: int) -> Floats:
    """The least of our own searches from random flips of up to three times the length."""
    problem, width = problem_of(case), case.x.shape[1]
    prices = FeaturePrices(np.ones(width), np.zeros(width))
    surface = Surface(problem, np.arange(len(case.x)), prices)
    best = search(surface)
    generator = torch.Generator().manual_seed(0)
    for _ in range(times):
        noise = torch.randn(best.change.shape, generator=generator, dtype=torch.float64)
        noise = noise / noise.norm(dim=1, keepdim=True) * best.cost.sqrt()[:, None]
        again = search(surface, start=best.change + 1.5 * noise)
        best.record(torch.arange(len(case.x)), again.change, again.cost, torch.where(again.found, 0.0, -1.0))
    return best.cost.numpy()


def foolbox(case: Case, attack: Any) -> tuple[Floats, float]:
    import foolbox as fb

    # The guard that our flips keep is asked of everyone.
    model = fb.PyTorchModel(WithMargin(case.net, MARGIN + 2e-6).eval(), bounds=(-1000, 1000))
    x = torch.tensor(case.x, dtype=torch.float32)
    criterion = fb.criteria.TargetedMisclassification(torch.full((len(x),), TARGET))
    began = time.process_time()
    _, flipped, _ = attack(model, x, criterion, epsilons=None)
    seconds = time.process_time() - began
    passes = (model(flipped).argmax(1) == TARGET).numpy()
    return np.where(passes, ((flipped.double() - x.double()) ** 2).sum(1).detach().numpy(), np.inf), seconds


def rivals(quick: bool) -> dict[str, Callable[[], Any]]:
    import foolbox.attacks as fa

    short = {
        "foolbox DDN, 100 steps": lambda: fa.DDNAttack(init_epsilon=1.0, steps=100),
        "foolbox FMN, 100 steps": lambda: fa.L2FMNAttack(steps=100),
        "foolbox DeepFool": lambda: fa.L2DeepFoolAttack(steps=50),
    }
    if quick:
        return short
    return short | {
        "foolbox DDN, 1,000 steps": lambda: fa.DDNAttack(init_epsilon=1.0, steps=1000, gamma=0.02),
        "foolbox FMN, 1,000 steps": lambda: fa.L2FMNAttack(steps=1000),
        "foolbox C&W, 9 x 1,000": lambda: fa.L2CarliniWagnerAttack(binary_search_steps=9, steps=1000),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the public data sets")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="without the long runs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for case in cases(given.data, given.samples):
        length, seconds, evaluations = ours(case)
        results = {"maxflip": (length, seconds)}
        for name, attack in rivals(given.quick).items():
            results[name] = foolbox(case, attack())
        known = [r[0] for r in results.values()] + [restarts(case, 2 if given.quick else RESTARTS)]
        best = np.min(known, axis=0)
        print(f"\n{case.name}: {len(case.x)} samples; maxflip: {evaluations} per sample\n")
        print(
            "| method | flipped | mean cost / best known | samples per second, one thread |\n| --- | --- | --- | --- |"
        )
        for name, (cost, spent) in results.items():
            both = np.isfinite(cost) & np.isfinite(best)
            ratio = cost[both].mean() / best[both].mean()
            print(f"| {name} | {np.isfinite(cost).mean():.3f} | {ratio:.4f} | {len(cost) / spent:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
