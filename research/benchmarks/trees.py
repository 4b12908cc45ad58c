"""Whether TreeClassifier gives each library's probabilities on 100,000 rows of real data, and how fast it answers.

    python -m research.benchmarks.trees --data DIR [--rows 100000] [--trees 300] [--only LIBRARY]

Models of 300 trees with 6 levels are trained on credit_default, HELOC, Give Me Some Credit and on OULAD's aggregates
(four classes). Half of the rows mix the columns of two people. In the other half one value each lies at a threshold of
the model or next to it, in float64 or in float32: there a rule that is off by one bit shows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pa_csv

from maxflip import TreeClassifier
from maxflip._util.types import Floats
from maxflip.datasets import aggregates, credit_default, oulad
from maxflip.models.trees.forest import Forest

SEED = 0
TRAINED_ON = 20_000
DEPTH = 6
COLUMNS = ("task", "library", "rows", "largest difference", "rows that differ", "rows/s", "library's rows/s")


def tables(data: Path) -> Iterator[tuple[str, Floats, Any]]:
    credit = credit_default(data / "credit_default")
    yield "credit_default", credit.values, credit.labels
    for folder, file, label in (
        ("heloc", "heloc.csv.gz", "RiskPerformance"),
        ("give_me_some_credit", "give_me_some_credit_part.csv.gz", "SeriousDlqin2yrs"),
    ):
        frame = pa_csv.read_csv(data / folder / file)
        names = [name for name in frame.column_names if name != label]
        columns = [frame[name].to_numpy().astype(np.float64) for name in names]
        yield folder, np.column_stack(columns), frame[label].to_numpy()
    students = oulad(data / "oulad")
    scored = [j for j, steps in enumerate(students.values) if not np.isnan(steps[:, 0]).all()]
    courses = aggregates(students.take(scored))
    yield "OULAD, four classes", courses.values, courses.labels


def lightgbm(trees: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=trees, max_depth=DEPTH, num_leaves=2**DEPTH, n_jobs=1, verbose=-1)


def xgboost(trees: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=trees, max_depth=DEPTH, n_jobs=1)


def catboost(trees: int) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(iterations=trees, depth=DEPTH, thread_count=1, verbose=0, allow_writing_files=False)


def random_forest(trees: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, max_depth=DEPTH, random_state=SEED)


def histograms(trees: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=trees, max_depth=DEPTH, early_stopping=False, random_state=SEED)


LIBRARIES: dict[str, Callable[[int], Any]] = {
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "CatBoost": catboost,
    "random forest": random_forest,
    "HistGradientBoosting": histograms,
}


def tried(forest: Forest, x: Floats, number: int) -> Floats:
    """(number, F)"""
    rng = np.random.default_rng(SEED)
    rows, others = (x[rng.integers(0, len(x), number)] for _ in range(2))
    half = number // 2
    swapped = rng.random((half, x.shape[1])) < 0.5
    rows[:half][swapped] = others[:half][swapped]
    node = rng.choice(np.flatnonzero((forest.feature >= 0) & np.isfinite(forest.threshold)), number - half)
    t = forest.threshold[node]
    single = t.astype(np.float32)
    beside = [np.nextafter(single, np.float32(way)).astype(np.float64) for way in (-np.inf, np.inf)]
    near = np.array([np.nextafter(t, -np.inf), t, np.nextafter(t, np.inf), single.astype(np.float64), *beside])
    each = np.arange(number - half)
    rows[half + each, forest.feature[node]] = near[rng.integers(0, len(near), number - half), each]
    return rows


def seconds_of(call: Callable[[], Floats]) -> tuple[Floats, float]:
    began = time.process_time()
    found = call()
    return found, time.process_time() - began


def measured(x: Floats, labels: Any, make: Callable[[int], Any], trees: int, number: int) -> list[str]:
    first = np.random.default_rng(SEED).permutation(len(x))[:TRAINED_ON]
    with warnings.catch_warnings(action="ignore"):  # about names of columns
        model = make(trees).fit(x[first], labels[first])
        forest = TreeClassifier(model).forest
        rows = tried(forest, x, number)
        forest.probabilities(rows[:1])  # compiles
        told, theirs = seconds_of(lambda: np.asarray(model.predict_proba(rows), np.float64))
    found, ours = seconds_of(lambda: forest.probabilities(rows))
    apart = np.abs(found - told).max(axis=1)
    differ = (apart > (1e-6 if forest.precision == "float32" else 1e-12)).sum()
    return [f"{number:,}", f"{apart.max():.1e}", str(differ), f"{number / ours:,.0f}", f"{number / theirs:,.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--only", choices=LIBRARIES)
    given = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|")
    for task, x, labels in tables(given.data):
        for library, make in LIBRARIES.items():
            if given.only in (None, library):
                row = measured(x, labels, make, given.trees, given.rows)
                print("| " + " | ".join([task, library, *row]) + " |", flush=True)


if __name__ == "__main__":
    main()
