"""The questions of research/benchmarks/kinds.py: models, cohorts of any size, and kinds of budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from maxflip import Budget, Problem, TorchClassifier
from maxflip.search import FeaturePrices, cheapest_flips
from research.benchmarks.flips import TARGET, credit_default, synthetic, trained
from research.benchmarks.prices_cases import PERSONAL, Floats, Rows, logistic

MARGIN, THRESHOLD = 0.1, 0.7
NOISE = 0.1  # standard deviations: how far a sample that is drawn again lies from where it was first
SIZED = 2000  # samples whose nearest flips say how large budgets are
GROUP = 4  # features that share a budget


@dataclass(frozen=True, eq=False)
class Model:
    """x (N, F): samples that the net puts in another class than the wanted one   changeable: features with budgets"""

    name: str
    net: nn.Module
    x: Floats
    changeable: Rows

    def cohort(self, size: int, seed: int) -> Floats:
        """(size, F): a random subset; where there are too few, samples drawn again and again with a little noise."""
        rng = np.random.default_rng([seed, 17])
        if size <= len(self.x):
            return np.asarray(self.x[np.sort(rng.permutation(len(self.x))[:size])])
        drawn = self.x[rng.integers(len(self.x), size=2 * size)]
        drawn = drawn + NOISE * self.x.std(axis=0) * rng.normal(size=drawn.shape)
        kept = drawn[predicted(self.net, drawn) != TARGET][:size]
        if len(kept) < size:
            raise SystemExit(f"{self.name}: noise leaves only {len(kept)} of {2 * size} samples in unwanted classes")
        return np.asarray(kept)


def predicted(net: nn.Module, x: Floats) -> Rows:
    with torch.no_grad():
        return np.asarray(net(torch.tensor(x, dtype=next(net.parameters()).dtype)).argmax(1).numpy())


def _unwanted(net: nn.Module, x: Floats) -> Floats:
    return np.asarray(x[predicted(net, x) != TARGET])


@cache
def _people(data: Path | None) -> tuple[Floats, Rows, Rows]:
    """Values, labels, and the features that can change: of credit_default, or generated."""
    if data is None:
        x, y = synthetic(2)
        return x, y, np.arange(x.shape[1])
    x, y = credit_default(data)
    return x, y, np.setdiff1d(np.arange(x.shape[1]), PERSONAL)


def _network(name: str, activation: type[nn.Module]) -> Callable[[Path | None], Model]:
    def make(data: Path | None) -> Model:
        x, y, changeable = _people(data)
        net = trained(x, y, activation, 2)
        return Model(name, net, _unwanted(net, x), changeable)

    return make


def _five_classes(_: Path | None) -> Model:
    x, y = synthetic(5)
    net = trained(x, y, nn.Tanh, 5)
    return Model("5 classes", net, _unwanted(net, x), np.arange(x.shape[1]))


def _linear(data: Path | None) -> Model:
    x, y, changeable = _people(data)
    net = logistic(x, y)
    return Model("linear", net, _unwanted(net, x), changeable)


def _held_out(_: Path | None) -> Model:
    """Other data, another activation, depth and number of features and classes; nothing is tuned on it."""
    rng = np.random.default_rng(2024)
    x = rng.standard_t(5, size=(20_000, 12)) * rng.uniform(0.5, 3.0, size=12)
    scores = np.sin(x @ rng.normal(size=(12, 3)) / 3) + x @ rng.normal(size=(12, 3)) / 8
    y = (scores - scores.mean(axis=0)).argmax(axis=1)
    torch.manual_seed(2024)
    net = nn.Sequential(
        nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 3)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    for step in range(8 * len(x) // 256):
        batch = torch.arange(256 * step, 256 * step + 256) % len(x)
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(net(inputs[batch]), labels[batch]))
        optimizer.step()
    net = net.eval()
    return Model(HELD_OUT, net, _unwanted(net, x), np.arange(12))


HELD_OUT = "held out"
MODELS: dict[str, Callable[[Path | None], Model]] = {
    "tanh": _network("tanh", nn.Tanh),
    "ReLU": _network("ReLU", nn.ReLU),
    "5 classes": _five_classes,
    "linear": _linear,
    HELD_OUT: _held_out,
}


@dataclass(frozen=True, eq=False)
class Draws:
    """What everyone's nearest flip (least squared length) draws of each changeable feature, (m,), in all: of squared
    change, of absolute change; and how many samples there are."""

    squared: Floats
    absolute: Floats
    samples: int


def draws(model: Model, cohort: Floats) -> Draws:
    """Of many samples, estimated from the first."""
    some = cohort[:SIZED]
    ones = np.ones(len(model.changeable))
    problem = _problem(model, some, {f"x{i}": 1.0 for i in model.changeable}, {"margin": MARGIN})
    flips = cheapest_flips(problem, np.arange(len(some)), FeaturePrices(ones, 0 * ones))
    moved = np.abs(flips.changes[flips.found][:, model.changeable])
    times = len(cohort) / len(some)
    return Draws(times * (moved**2).sum(axis=0), times * moved.sum(axis=0), len(cohort))


def _problem(model: Model, cohort: Floats, budgets: Mapping[str, Any], goal: Mapping[str, Any]) -> Problem:
    classifier = TorchClassifier(model.net, output="logits")
    return Problem(classifier=classifier, cohort=cohort, target=TARGET, budgets=budgets, **goal)


@dataclass(frozen=True, eq=False)
class Asked:
    """What makes budgets: the names of the features, what nearest flips draw, and chance."""

    names: list[str]
    drawn: Draws
    rng: np.random.Generator

    def scarcity(self, part: float) -> Floats:
        """(m,): about this part of what is drawn; of some features far less than of others."""
        return np.asarray(part * self.rng.lognormal(0.0, 0.7, len(self.names)))

    def squared(self, part: float) -> dict[str, Budget]:
        amounts = self.scarcity(part) * self.drawn.squared
        return {f"{n} squared": Budget(float(a), uses={n: 1.0}) for n, a in zip(self.names, amounts, strict=True)}

    def absolute(self, part: float) -> dict[str, Budget]:
        amounts = self.scarcity(part) * self.drawn.absolute
        return {
            f"{n} absolute": Budget(float(a), uses={n: 1.0}, cost="absolute")
            for n, a in zip(self.names, amounts, strict=True)
        }

    def shared(self, part: float) -> dict[str, Budget]:
        """A budget for every few features, squared and absolute in turn, and one of absolute changes for all."""
        weights = self.rng.uniform(0.5, 2.0, len(self.names))
        budgets = {}
        for number, begin in enumerate(range(0, len(self.names), GROUP)):
            some = slice(begin, begin + GROUP)
            uses = dict(zip(self.names[some], weights[some].tolist(), strict=True))
            drawn = (self.drawn.squared, self.drawn.absolute)[number % 2]
            amount = part * self.rng.lognormal(0.0, 0.5) * float(weights[some] @ drawn[some])
            budgets[f"group {number}"] = Budget(amount, uses=uses, cost=("squared", "absolute")[number % 2])
        every = dict(zip(self.names, weights.tolist(), strict=True))
        return budgets | {"hours": Budget(0.8 * part * float(weights @ self.drawn.absolute), every, "absolute")}

    def mixed(self, part: float) -> dict[str, Budget]:
        """A third of the features have squared budgets, a third absolute ones, and a third both."""
        squared, absolute = list(self.squared(part).items()), list(self.absolute(part).items())
        third = len(self.names) // 3
        return dict(squared[: 2 * third] + absolute[third:])

    def count(self, part: float) -> dict[str, Budget]:
        return {"people": Budget(round(part * self.drawn.samples), cost="count")}


PART = 0.25
KINDS: dict[str, Callable[[Asked], dict[str, Budget]]] = {
    "squared": lambda a: a.squared(PART),
    "absolute": lambda a: a.absolute(PART),
    "shared": lambda a: a.shared(PART),
    "mixed": lambda a: a.mixed(0.1) | a.count(0.45),
    "capped, ample": lambda a: a.mixed(4.0) | a.count(0.4),
    "capped, binding": lambda a: a.absolute(PART) | a.count(0.42),
    "threshold": lambda a: a.absolute(0.4),
    "money": lambda a: a.mixed(PART),
    "decades": lambda a: a.squared(PART),
}


def _worth(kind: str, samples: int, rng: np.random.Generator) -> Floats | None:
    if kind == "money":  # whole euros, some thousands
        return np.asarray(np.ceil(rng.lognormal(8.0, 1.2, samples)))
    if kind == "decades":
        return np.asarray(10.0 ** rng.uniform(0.0, 6.0, samples))
    return None


def question(model: Model, kind: str, samples: int, seed: int) -> Problem:
    cohort = model.cohort(samples, seed)
    place = list(KINDS).index(kind)
    asked = Asked([f"x{i}" for i in model.changeable], draws(model, cohort), np.random.default_rng([seed, place, 5]))
    goal: dict[str, Any] = {"threshold": THRESHOLD} if kind == "threshold" else {"margin": MARGIN}
    worth = _worth(kind, samples, np.random.default_rng([seed, place, 7]))
    return _problem(model, cohort, KINDS[kind](asked), goal | ({} if worth is None else {"worth": worth}))
