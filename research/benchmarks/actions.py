"""A menu of named actions for a large cohort, with a boosted-tree model: time, memory, and how near the proved bound.

    python -m research.benchmarks.actions [--samples 100000] [--actions 30] [--most 2] [--keep]

The cohort is generated. The model is scikit-learn's HistGradientBoostingClassifier, asked as a black box. Every
combination of actions is gone through; one that draws at least as much as another one that suffices is not tried.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from maxflip import Action, BlackBoxClassifier, Problem, solve
from maxflip._util.types import Floats
from research.benchmarks.sections import add_keep
from research.evidence.files import made_here
from research.evidence.report import report

FEATURES = 20
TRAINED_ON = 20_000
SEED = 0
BUDGETS = ("hours", "visits", "euro")


def cohort(samples: int) -> tuple[Floats, Floats]:
    """x (n, F), and the direction (F,) in which features raise the wanted class"""
    rng = np.random.default_rng(SEED)
    return rng.normal(size=(max(samples, TRAINED_ON), FEATURES)), rng.normal(size=FEATURES) * 0.6


def trained(x: Floats, way: Floats) -> HistGradientBoostingClassifier:
    rng = np.random.default_rng(SEED + 1)
    score = x @ way + np.sin(2 * x[:, 0]) * x[:, 1] + rng.normal(size=len(x))
    return HistGradientBoostingClassifier(max_iter=100, random_state=SEED).fit(x, score > 0)


def menu(actions: int, way: Floats) -> list[Action]:
    """Each changes two features by up to a spread, and draws on one or two of the budgets."""
    rng = np.random.default_rng(SEED + 2)
    found = []
    for number in range(actions):
        two = rng.choice(FEATURES, 2, replace=False)
        effects = {f"x{i}": float(np.sign(way[i]) * rng.uniform(0.3, 1.2)) for i in two}
        draws = {
            str(name): float(rng.integers(1, 9)) for name in rng.choice(BUDGETS, rng.integers(1, 3), replace=False)
        }
        found.append(Action(f"action {number + 1}", effects, draws))
    return found


def measured(samples: int, actions: int, most: int) -> dict[str, Any]:
    x, way = cohort(samples)
    model = trained(x[:TRAINED_ON], way)
    began, processor = time.monotonic(), time.process_time()
    problem = Problem(
        classifier=BlackBoxClassifier(model.predict_proba),
        cohort=x[:samples],
        target=1,
        margin=0.1,
        budgets=dict.fromkeys(BUDGETS, 0.2 * samples),
        actions=menu(actions, way),
        most_actions=most,
    )
    plan = solve(problem)
    return {
        "samples": samples,
        "actions": actions,
        "combinations": sum(math.comb(actions, k) for k in range(most + 1)),
        "asked": plan.trace["forwards"][0],
        "count": plan.count,
        "bound": plan.bound,
        "unreachable": plan.fate_counts()["unreachable"],  # type: ignore[index]
        "seconds": time.monotonic() - began,
        "processor_seconds": time.process_time() - processor,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--actions", type=int, default=30)
    parser.add_argument("--most", type=int, default=2)
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(2)
    began = time.monotonic()
    row = measured(given.samples, given.actions, given.most)
    command = f"python -m research.benchmarks.actions --samples {given.samples} --actions {given.actions} --keep"
    report({"actions": [row]}, made_here(command, time.monotonic() - began), ["actions.menu"], keep=given.keep)


if __name__ == "__main__":
    main()
