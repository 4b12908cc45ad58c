"""Prices with one of its parts taken out, for research/benchmarks/prices.py. The product has no switches for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from maxflip import Problem
from maxflip import solving as pipeline
from maxflip.search import gradient
from maxflip.solvers import Prices
from maxflip.solvers.prices import column_generation
from maxflip.solvers.prices import market as market_module
from maxflip.solvers.prices.clearing import Cleared, Evaluate
from maxflip.solvers.prices.column_generation import ColumnGeneration
from maxflip.solvers.prices.market import Market
from maxflip.solvers.prices.shard import Shard
from research.benchmarks.prices_cases import markets

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


def subgradient(
    evaluate: Evaluate, amounts: Floats, start: Floats, typical_worth: float, *_: Any, **__: Any
) -> Cleared:
    """In place of clear(): one step against B - bought, as long as all budgets together are worth, over their number.

    The market itself shortens it where it leads astray.
    """
    traded = np.isfinite(amounts) & (amounts > 0)
    bought = -evaluate(start, 0.0).gradient
    q = start[traded] * amounts[traded]
    step = (bought[traded] / amounts[traded] - 1.0) * q.sum() / len(q)
    prices = np.zeros_like(start)
    prices[traded] = np.maximum(q + step, 1e-7 * typical_worth) / amounts[traded]
    return Cleared(prices, 0.0, np.zeros((len(start), len(start))))


def greedy(problem: Problem, rows: Rows, changes: Floats, prices: Floats) -> Rows:
    """In place of choose(): from the least cost per worth up, whoever still fits."""
    drawn = problem.ledger.consumption(changes)
    left = problem.ledger.amounts.copy()
    taken: dict[int, int] = {}
    for c in np.argsort(drawn @ prices / problem.worth[rows], kind="stable"):
        if int(rows[c]) not in taken and (drawn[c] <= left * (1 - 1e-9)).all():
            taken[int(rows[c])] = int(c)
            left -= drawn[c]
    return np.sort(np.array(list(taken.values()), dtype=np.int64))


@contextmanager
def without_band() -> Iterator[None]:
    with markets() as seen:

        def choose(problem: Problem, rows: Rows, changes: Floats, *_: Any, **__: Any) -> Rows:
            return greedy(problem, rows, changes, seen[-1].prices)

        with patch.object(pipeline, "choose", choose), patch.object(column_generation, "choose", choose):
            yield


def nothing(*_: Any, **__: Any) -> None:
    pass


@dataclass(frozen=True, eq=False)
class Ablation:
    """inside: a context in which the solver lacks a part"""

    name: str
    solver: Prices
    inside: Callable[[], AbstractContextManager[object]] = nullcontext


def replaced(where: Any, name: str, instead: Any) -> Callable[[], AbstractContextManager[object]]:
    return lambda: patch.object(where, name, instead)


ABLATIONS = [
    Ablation("whole", Prices()),
    Ablation("1 round", Prices(rounds=1)),
    Ablation("2 rounds", Prices(rounds=2)),
    Ablation("3 rounds", Prices(rounds=3)),
    Ablation("no surface model: subgradient, 12 rounds", Prices(), replaced(market_module, "clear", subgradient)),
    Ablation(
        "no surface model: subgradient, 100 rounds", Prices(rounds=100), replaced(market_module, "clear", subgradient)
    ),
    Ablation("no bisection", Prices(), replaced(gradient, "_bisect", nothing)),
    Ablation("no following of others", Prices(), replaced(Market, "follow", nothing)),
    Ablation("no touching up", Prices(), replaced(Shard, "touch_up", nothing)),
    Ablation("no band: greedy by price", Prices(), without_band),
    Ablation("no merge", Prices(), replaced(ColumnGeneration, "_average", nothing)),
    Ablation("no filling of what is left over", Prices(), replaced(ColumnGeneration, "fill", nothing)),
    Ablation("no column generation, no merge", Prices(), replaced(ColumnGeneration, "run", nothing)),
]
