"""The questions of `peers`: networks and cohorts, and problems so small that their optimum is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip.search import FeaturePrices, cheapest_flips
from research.benchmarks.flips import MARGIN, credit_default, synthetic, trained
from research.benchmarks.peer_tools.problems import of_shape, problem_of
from research.benchmarks.peer_tools.question import TARGET, Floats, Question
from research.benchmarks.peer_tools.torch_model import ACTIVATIONS, network
from research.benchmarks.prices_cases import PERSONAL, Model, shapes

BEYOND = 10.0  # standard deviations that values may go beyond the furthest in the data
REFERENCE = 1000
SPLITS = 10


@dataclass(frozen=True, eq=False)
class AskedCohort:
    """One network and cohort. few: the first of everyone, with budgets of the same shapes made for them alone
    features, network: in words"""

    name: str
    features: str
    network: str
    everyone: Question
    few: Question


def cohorts(data: Path | None, samples: int, few: int) -> list[AskedCohort]:
    """Customers of a bank, where there is data, and rows of a generated table."""
    found = []
    if data is not None:
        everyone = _everyone("credit_default", *credit_default(data), PERSONAL, "tanh", samples)
        said = "public data; sex, education, marriage and age stay as they are"
        found.append(AskedCohort("credit_default", said, "tanh, 64-64", everyone, _few_of(everyone, few)))
    everyone = _everyone("generated", *synthetic(2), (), "relu", samples)
    said = "drawn from a normal distribution, classes by a random network"
    return [*found, AskedCohort("generated", said, "ReLU, 64-64", everyone, _few_of(everyone, few))]


def _everyone(
    name: str, x: Floats, y: NDArray[np.int64], frozen: tuple[int, ...], activation: str, samples: int
) -> Question:
    """A random subset of those whom the network rightly puts in the unwanted class."""
    net = trained(x, y, ACTIVATIONS[activation], 2)
    with torch.no_grad():
        predicted = net(torch.tensor(x, dtype=torch.float32)).argmax(1).numpy()
    changeable = np.setdiff1d(np.arange(x.shape[1]), frozen)
    model = Model(name, net, x[(predicted == y) & (y != TARGET)], changeable)
    reference = x[np.random.default_rng(2).permutation(len(x))[:REFERENCE]]
    return _with_shapes(model, model.cohort(samples, 0), reference, float(np.abs(x).max()) + BEYOND, activation)


def _few_of(question: Question, samples: int) -> Question:
    model = Model("", network(question), question.x, np.flatnonzero(~question.frozen))
    return _with_shapes(model, question.x[:samples], question.reference, question.high, question.activation)


def _with_shapes(model: Model, cohort: Floats, reference: Floats, furthest: float, activation: str) -> Question:
    every = shapes(model, cohort, SPLITS)
    amounts = np.zeros((len(every), cohort.shape[1]))
    amounts[:, model.changeable] = [shape.amounts for shape in every]
    asked = Question(
        x=cohort,
        frozen=~np.isin(np.arange(cohort.shape[1]), model.changeable),
        low=-furthest,
        high=furthest,
        margin=MARGIN,
        spare=0.0,
        layers=_layers(model.net),
        activation=activation,
        reference=reference,
        shapes=tuple(shape.kind for shape in every),
        amounts=amounts,
        members=np.ones((len(every), len(cohort)), dtype=bool),
    )
    return replace(asked, spare=_spare(asked))


def _spare(question: Question) -> float:
    """Twice the guard that the judge asks for beyond the margin, so that nobody fails by rounding."""
    problems = [problem_of(question, question.x, np.ones(question.x.shape[1]))]
    problems += [of_shape(question, s) for s in range(len(question.shapes))]
    return 2.0 * max(problem.guard for problem in problems)


def _layers(net: nn.Module) -> tuple[tuple[Floats, Floats], ...]:
    linear = [part for part in net.modules() if isinstance(part, nn.Linear)]
    return tuple((p.weight.detach().double().numpy(), p.bias.detach().double().numpy()) for p in linear)


def linear_question(draws: int, samples: int = 8, width: int = 5) -> Question:
    """Draws of a few samples each, whose budgets are a part of what their nearest flips take, split at random."""
    rng = np.random.default_rng(3)
    w = rng.normal(size=width).astype(np.float32).astype(np.float64)
    layers = ((np.stack([w, np.zeros(width)]), np.zeros(2)),)
    x = rng.normal(size=(40 * draws * samples, width))
    return _small(x, layers, "tanh", draws, samples, rng)


def relu_question(draws: int, samples: int = 8, width: int = 4, hidden: int = 8) -> Question:
    """The same with a ReLU network of one layer that learned a ring."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(4000, width))
    inside = torch.tensor((x**2).sum(axis=1) < width)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, 2))
    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.where(inside, TARGET, 1 - TARGET)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(net(inputs), labels))
        optimizer.step()
    return _small(x, _layers(net), "relu", draws, samples, rng)


def _small(
    x: Floats,
    layers: tuple[tuple[Floats, Floats], ...],
    activation: str,
    draws: int,
    samples: int,
    rng: np.random.Generator,
) -> Question:
    n, width = draws * samples, x.shape[1]
    furthest = float(np.abs(x).max()) + BEYOND
    members = np.repeat(np.eye(draws, dtype=bool), samples, axis=1)
    asked = Question(
        x=x,
        frozen=np.zeros(width, dtype=bool),
        low=-furthest,
        high=furthest,
        margin=MARGIN,
        spare=0.0,
        layers=layers,
        activation=activation,
        reference=x[-REFERENCE:],
        shapes=tuple(f"draw {d + 1}" for d in range(draws)),
        amounts=np.ones((draws, width)),
        members=members,
    )
    h = asked.logits(x)
    asked = replace(asked, x=x[h[:, TARGET] < h[:, 1 - TARGET]][:n])
    ones = np.ones(width)
    flips = cheapest_flips(problem_of(asked, asked.x, ones), np.arange(n), FeaturePrices(ones, 0 * ones))
    for d in range(draws):
        drawn = (flips.changes[members[d]] ** 2).sum()
        asked.amounts[d] = 0.3 * drawn * rng.dirichlet(ones)
    return replace(asked, spare=_spare(asked))


@dataclass(frozen=True, eq=False)
class Small:
    """optimum (S,): the most that any plan flips; or none, where a tool is asked to prove it"""

    name: str
    question: Question
    optimum: list[int] | None


def small_questions(draws: int) -> list[Small]:
    linear = linear_question(draws)
    return [Small("linear", linear, linear_optimum(linear)), Small("ReLU network", relu_question(draws), None)]


def linear_optimum(question: Question) -> list[int]:
    """Of a linear model, where no limit is in the way.

    Sample j passes when w.d_j >= t_j. A set S can pass together when some d has sum_j d_ji^2 <= B_i for every i; let
    D_i = (sum_j d_ji^2)^(1/2) <= B_i^(1/2). Then  |t_S| <= |(w.d_j)_j| <= sum_i |w_i| D_i <= sum_i |w_i| B_i^(1/2), and
    d_ji = t_j sign(w_i) B_i^(1/2) / sum_k |w_k| B_k^(1/2) attains it. So the samples with the least t_j are the most.
    """
    ((weights, biases),) = question.layers
    w = weights[TARGET] - weights[1 - TARGET]
    asked = np.log((1 + question.margin) / (1 - question.margin))
    lacking = asked - (question.x @ w + biases[TARGET] - biases[1 - TARGET])
    found = []
    for members, amounts in zip(question.members, question.amounts, strict=True):
        reach = (np.abs(w) * np.sqrt(amounts)).sum()
        together = np.sqrt(np.cumsum(np.sort(lacking[members]) ** 2))
        found.append(int((together <= reach).sum()))
    return found
