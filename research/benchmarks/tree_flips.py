"""Flips and plans through trees: `python -m research.benchmarks.tree_flips --data DIR [--flips] [--people 300,1000]`.

Clients of a bank (credit_default) and home equity loans (HELOC), whom LightGBM and a random forest, 300 trees of depth
6 each, put in the unwanted class. Budgets weigh changes in standard deviations, half of them squared and half absolute.

Flips: the cost of each sample's flip beside the best known one, of beam 64 with ten times the rounds of repair.
Plans: how many Prices and Nearest flip with a part of what everybody's nearest flips draw, and the estimate of Prices.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc

from maxflip import Budget, Nearest, Prices, Problem, TreeClassifier, solve
from maxflip._util.types import Floats, Rows
from maxflip.datasets import credit_default
from maxflip.search import FeaturePrices
from maxflip.search.settings import TREES
from maxflip.search.surface import Surface
from maxflip.search.trees import search

TREES_EACH, DEPTH, SAMPLES, BUDGETS = 300, 6, 60, 4
PARTS = (0.4, 0.1)
PERSONAL = {"SEX", "EDUCATION", "MARRIAGE", "AGE"}
BEST = {"restarts": 10 * TREES.restarts, "beam": 64}
EFFORTS: dict[str, dict[str, int]] = {
    "walk alone": {"restarts": 0, "beam": 0},
    "8 rounds": {"restarts": 8, "beam": 0},
    "default": {},
    "beam 64": {"restarts": TREES.restarts, "beam": 64},
}


@dataclass(frozen=True, eq=False)
class Source:
    """x (n, F), y (n,): all people and their classes, of which `wanted` is the wanted one"""

    name: str
    features: tuple[str, ...]
    x: Floats
    y: Rows
    wanted: int = 0

    @property
    def changing(self) -> list[str]:
        return [name for name in self.features if name not in PERSONAL]

    def budgets(self, amounts: Floats) -> dict[str, Budget]:
        """Each for every fourth feature; squared and absolute ones by turns."""
        spread = dict(zip(self.features, np.maximum(self.x.std(axis=0), 1e-9).tolist(), strict=True))
        found = {}
        for k, amount in enumerate(amounts.tolist()):
            cost, power = ("absolute", 1) if k % 2 else ("squared", 2)
            uses = {name: spread[name] ** -power for name in self.changing[k::BUDGETS]}
            found[f"b{k}"] = Budget(amount, uses, cost)
        return found


def clients(data: Path) -> Source:
    table = credit_default(data / "credit_default")
    return Source("credit_default", table.features, table.values, table.labels)


def loans(data: Path) -> Source:
    (path,) = (data / "heloc").glob("*.csv.gz")
    columns = pc.read_csv(path).to_pydict()
    labels = np.array(columns.pop("RiskPerformance")).astype(np.int64)
    return Source("heloc", tuple(columns), np.column_stack([np.array(c, float) for c in columns.values()]), labels)


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    how = {"num_leaves": 2**DEPTH - 1, "learning_rate": 0.05, "random_state": 0, "n_jobs": 1, "verbose": -1}
    return LGBMClassifier(n_estimators=TREES_EACH, max_depth=DEPTH, **how)


def random_forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(TREES_EACH, max_depth=DEPTH, random_state=0, n_jobs=1)


MODELS: dict[str, Callable[[], Any]] = {"LightGBM": lightgbm, "random forest": random_forest}


def problem(source: Source, classifier: TreeClassifier, people: int, amounts: Floats) -> Problem:
    """Some of those in the unwanted class."""
    failing = np.flatnonzero(classifier.forest.probabilities(source.x)[:, source.wanted] < 0.5)
    some = np.sort(np.random.default_rng(0).permutation(failing)[:people])
    return Problem(
        classifier=classifier,
        cohort=source.x[some],
        features=source.features,
        target=source.wanted,
        margin=0.0,
        limits="observed",
        budgets=source.budgets(amounts),
    )


def flips(asked: Problem) -> Iterator[dict[str, Any]]:
    """Costs beside the best known ones, at two price vectors: even, and skewed."""
    rows = np.arange(len(asked))
    for skew, prices in (("even", np.ones(BUDGETS)), ("skewed", np.array([1.0, 0.1, 5.0, 0.5]))):
        surface = Surface(asked, rows, FeaturePrices.at(asked, prices, rows))
        search(surface, restarts=1)  # compiled
        took, costs = {}, {}
        for name, effort in (EFFORTS | {"best": BEST}).items():
            began = time.process_time()
            costs[name] = search(
                surface, restarts=effort.get("restarts", TREES.restarts), beam=effort.get("beam", TREES.beam)
            ).cost.numpy()
            took[name] = time.process_time() - began
        best = np.min(list(costs.values()), axis=0)
        known = np.isfinite(best)
        for name in EFFORTS:
            ratio = costs[name][known] / best[known]
            yield {
                "prices": skew,
                "effort": name,
                "found": f"{int(np.isfinite(costs[name]).sum())} of {int(known.sum())}",
                "mean": f"{100 * (ratio.mean() - 1):.2f} %",
                "total": f"{100 * (costs[name][known].sum() / best[known].sum() - 1):.2f} %",
                "best": f"{100 * np.mean(ratio < 1 + 1e-9):.0f} %",
                "ms": f"{1e3 * took[name] / len(rows):.1f}",
            }


def plans(
    source: Source, classifier: TreeClassifier, people: int, parts: tuple[float, ...]
) -> Iterator[dict[str, Any]]:
    everybody = solve(problem(source, classifier, people, np.full(BUDGETS, 1e12)), Nearest(prices="unit"))
    drawn = np.array(list(everybody.spend.values()))
    for part in parts:
        asked = problem(source, classifier, people, part * drawn)
        for solver in (Nearest(prices="unit"), Nearest(), Prices()):
            began = time.process_time()
            plan = solve(asked, solver)
            yield {
                "people": len(asked),
                "budgets": part,
                "solver": type(solver).__name__,
                "flipped": plan.count,
                "estimate": None if plan.estimate is None else round(plan.estimate, 1),
                "seconds": round(time.process_time() - began, 1),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--flips", action="store_true")
    parser.add_argument("--people", default="", help="sizes of plans, such as 300,1000")
    parser.add_argument("--parts", default=",".join(map(str, PARTS)))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--sources", default="credit_default,heloc")
    given = parser.parse_args()
    for source in (clients(given.data), loans(given.data)):
        for name in given.models.split(","):
            if source.name not in given.sources.split(","):
                continue
            classifier = TreeClassifier(MODELS[name]().fit(source.x, source.y))
            if given.flips:
                for row in flips(problem(source, classifier, SAMPLES, np.ones(BUDGETS))):
                    print(source.name, name, row, flush=True)
            for people in map(int, filter(None, given.people.split(","))):
                for row in plans(source, classifier, people, tuple(map(float, given.parts.split(",")))):
                    print(source.name, name, row, flush=True)


if __name__ == "__main__":
    main()
