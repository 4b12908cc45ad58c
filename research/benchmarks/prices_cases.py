"""Models, cohorts and shapes of budgets for research/benchmarks/prices.py, and what one solve is measured by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import Plan, Problem, TorchClassifier, solve
from maxflip.search import FeaturePrices, cheapest_flips
from maxflip.solvers import Solver
from maxflip.solvers.prices import solver as prices_solver
from maxflip.solvers.prices.market import Market
from research.benchmarks.flips import MARGIN, TARGET, credit_default, synthetic, trained

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
PERSONAL = (1, 2, 3, 4)  # sex, education, marriage, age: the columns of credit_default that nobody can change


@dataclass(frozen=True, eq=False)
class Model:
    """x (N, F), all correctly predicted in another class than the wanted one; changeable: columns with a budget"""

    name: str
    net: nn.Module
    x: Floats
    changeable: Rows

    def cohort(self, size: int, seed: int) -> Floats:
        """A random subset."""
        rows = np.random.default_rng([seed, 17]).permutation(len(self.x))[:size]
        return np.asarray(self.x[np.sort(rows)])

    def problem(self, cohort: Floats, amounts: Floats) -> Problem:
        budgets = {f"x{i}": float(amount) for i, amount in zip(self.changeable, amounts, strict=True)}
        return Problem(
            classifier=TorchClassifier(self.net, output="logits"),
            cohort=cohort,
            target=TARGET,
            margin=MARGIN,
            budgets=budgets,
        )


def logistic(x: Floats, y: NDArray[np.int64]) -> nn.Module:
    """Logistic regression in float64, by LBFGS."""
    torch.manual_seed(0)
    net = nn.Linear(x.shape[1], 2, dtype=torch.float64)
    inputs, labels = torch.tensor(x), torch.tensor(y)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(net(inputs), labels)
        torch.autograd.backward(value)
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return net.eval()


def _correct(net: nn.Module, x: Floats, y: NDArray[np.int64]) -> Floats:
    with torch.no_grad():
        predicted = net(torch.tensor(x, dtype=next(net.parameters()).dtype)).argmax(1).numpy()
    return np.asarray(x[(predicted == y) & (y != TARGET)])


def linear_model(data: Path) -> Model:
    x, y = credit_default(data)
    net = logistic(x, y)
    return Model("credit_default, logistic", net, _correct(net, x, y), _changeable(x))


def networks(data: Path) -> Iterator[Model]:
    x, y = credit_default(data)
    for name, activation in (("tanh", nn.Tanh), ("ReLU", nn.ReLU)):
        net = trained(x, y, activation, 2)
        yield Model(f"credit_default, {name} 64-64", net, _correct(net, x, y), _changeable(x))
    x, y = synthetic(5)
    net = trained(x, y, nn.Tanh, 5)
    yield Model("synthetic, 5 classes, tanh 64-64", net, _correct(net, x, y), np.arange(x.shape[1]))


def _changeable(x: Floats) -> Rows:
    return np.setdiff1d(np.arange(x.shape[1]), PERSONAL)


@dataclass(frozen=True, eq=False)
class Shape:
    """kind: shapes of one kind are averaged   amounts (m,)"""

    kind: str
    amounts: Floats


def shapes(model: Model, cohort: Floats, splits: int) -> list[Shape]:
    """From what everyone's nearest flip (least squared length) draws of each feature, in all."""
    ones = np.ones(len(model.changeable))
    problem = model.problem(cohort, ones)
    flips = cheapest_flips(problem, np.arange(len(cohort)), FeaturePrices(ones, 0 * ones))
    drawn = (flips.changes[flips.found][:, model.changeable] ** 2).sum(axis=0)
    whole, m = 0.2 * drawn.sum(), len(drawn)
    rng = np.random.default_rng(5)
    return [
        Shape("40 %", 0.4 * drawn),
        Shape("10 %", 0.1 * drawn),
        Shape("20 %, even", np.full(m, whole / m)),
        *(Shape("20 %, Dirichlet", whole * rng.dirichlet(np.ones(m))) for _ in range(splits)),
    ]


@dataclass(frozen=True, eq=False)
class Solved:
    """seconds: of processor time   gradients, forwards: evaluations per sample"""

    plan: Plan
    seconds: float
    gradients: float
    forwards: float
    markets: list[Market]


def solved(problem: Problem, solver: Solver) -> Solved:
    began = time.process_time()
    with markets() as seen:
        plan = solve(problem, solver)
    seconds = time.process_time() - began
    if not seen:
        counts = plan.trace["gradients"][-1], plan.trace["forwards"][-1]
    else:  # the trace ends before the last flips are looked for
        made = seen[-1].held.ask(lambda shard: (shard.evaluations.gradients, shard.evaluations.forwards))
        counts = sum(g for g, _ in made), sum(f for _, f in made)
    return Solved(plan, seconds, counts[0] / len(problem), counts[1] / len(problem), seen)


@contextmanager
def markets(kind: type[Market] | None = None) -> Iterator[list[Market]]:
    """The markets of the solves inside, to be asked afterwards."""
    seen: list[Market] = []
    base: Any = kind or vars(prices_solver)["Market"]

    class Seen(base):  # type: ignore[misc]
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            seen.append(self)

    with patch.object(prices_solver, "Market", Seen):
        yield seen
