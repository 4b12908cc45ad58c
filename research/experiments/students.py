"""A Sparse Time LSTM on OULAD: how students of the Open University end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxflip.datasets import Sequences, aggregates, oulad
from maxflip.networks import SparseTimeLSTM
from research.experiments.fitting import Recipe
from research.experiments.metrics import accuracy
from research.experiments.packed import Packed
from research.experiments.splits import by_group
from research.experiments.tasks import Rows, Task, Tell, keep

HIDDEN = 48
RECIPE = Recipe(rate=3e-3, averaging=0.98, batch=128)
TEST_SHARE = 0.2
INNER_SHARE = 0.15
SPLIT_SEED = 0  # who is tested on is the same for all networks
GAP = "days_since"
CHECKED = 1000  # of the test part, the first ones, on which a test measures the kept weights again


def with_gaps(data: Sequences) -> Sequences:
    """One more variable: days since the assessment before was due, 0 for the first; the network reads no timestamps."""
    gaps = [np.diff(times, prepend=times[:1]) for times in data.times]
    values = tuple(np.column_stack([steps, gap]) for steps, gap in zip(data.values, gaps, strict=True))
    return replace(data, values=values, features=(*data.features, GAP))


def students_of(data: Sequences) -> Rows:
    """(n,): whose sequence each is. 'AAA/2013J/11391' is one of student 11391, who may have others."""
    return np.array([int(name.rsplit("/", 1)[1]) for name in data.ids])


def task(root: str | Path) -> Task:
    data = with_gaps(oulad(root))
    students = students_of(data)

    def build(part: Packed) -> SparseTimeLSTM:
        moments = part.moments()
        return SparseTimeLSTM(
            *(data.features, HIDDEN, data.classes, data.static_features),
            time=[GAP],
            shift=moments.mean,
            scale=moments.spread,
            static_shift=moments.static_mean,
            static_scale=moments.static_spread,
        )

    def split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
        return by_group(rows, students, INNER_SHARE, seed)

    return Task(data, build, RECIPE, accuracy, split)


def outer_split(data: Sequences) -> tuple[Rows, Rows]:
    """To learn from, to test on; no student is in both."""
    return by_group(np.arange(len(data)), students_of(data), TEST_SHARE, SPLIT_SEED)


def train(root: Path, out: Path, seeds: int, tell: Tell) -> None:
    """Networks of several seeds, measured on the same students; the first is kept."""
    courses = task(root)
    rest, test = outer_split(courses.data)
    runs = []
    for seed in range(seeds):
        made = courses.trained(rest, seed, tell, f"seed {seed}")
        runs.append({"seed": seed, **courses.measured(made.net, test), **made.story})
        tell(f"seed {seed}: {runs[-1]}")
        if seed == 0:
            first = made.net
    each = [run["accuracy"] for run in runs]
    record = {
        "inputs": f"{', '.join(courses.data.features)}; {', '.join(courses.data.static_features)}",
        "test": len(test),
        "accuracy_mean": round(float(np.mean(each)), 4),
        "accuracy_of_logistic_regression": round(baseline(courses.data, rest, test), 4),
        "seed": 0,
        "runs": runs,
        "checked": courses.measured(first, test[:CHECKED]),
    }
    tell(f"{record}")
    keep(first, out, "oulad", f"oulad --data DIR --seeds {seeds}", RECIPE, record)


def baseline(data: Sequences, rest: Rows, test: Rows) -> float:
    """Accuracy of logistic regression on seven aggregates of each sequence, on the same split."""
    table = aggregates(data)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(table.values[rest], table.labels[rest])
    return float(model.score(table.values[test], table.labels[test]))
