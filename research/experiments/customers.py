"""A Sparse Time LSTM with 128 units on the made-up sequences of an insurer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxflip.datasets import Sequences, insurance
from maxflip.datasets.insurer import KINDS
from maxflip.networks import SparseTimeLSTM
from research.experiments.fitting import Recipe
from research.experiments.metrics import accuracy
from research.experiments.packed import Packed
from research.experiments.splits import stratified
from research.experiments.tasks import Rows, Task, Tell, keep

HIDDEN = 128
RECIPE = Recipe(rate=2e-3, decay=0.1, dropout=0.5, averaging=0.98, batch=128, epochs=20, patience=3)
LEARNED, TESTED = (16000, 0), (2000, 1)  # n and seed of the generator
INNER_SHARE = 0.15
CHECKED = 300  # of those tested, the first ones, on which a test measures the kept weights again


def task(data: Sequences) -> Task:
    def build(part: Packed) -> SparseTimeLSTM:
        moments = part.moments()
        sparse = [name for name in data.features if KINDS[name] == "sparse"]
        is_sparse = torch.tensor([name in sparse for name in data.features])
        return SparseTimeLSTM(
            *(data.features, HIDDEN, data.classes, data.static_features),
            sparse=sparse,
            time=[name for name in data.features if KINDS[name] == "time"],
            static_time=[name for name in data.static_features if KINDS[name] == "static_time"],
            shift=torch.where(is_sparse, 0.0, moments.mean),  # 0 means that nothing happened, and stays 0
            scale=moments.spread,
            static_shift=moments.static_mean,
            static_scale=moments.static_spread,
        )

    def split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
        return stratified(rows, data.labels, INNER_SHARE, seed)

    return Task(data, build, RECIPE, accuracy, split)


def train(out: Path, seed: int, tell: Tell) -> None:
    """One network, learned from one data set of the generator and measured on another."""
    learned = task(insurance(*LEARNED))
    made = learned.trained(np.arange(len(learned.data)), seed, tell, "insurance")
    tested = task(insurance(*TESTED))
    everyone = np.arange(len(tested.data))
    record = {
        "inputs": "all 169 features",
        "learned_from": learned.data.source,
        "tested_on": tested.data.source,
        "seed": seed,
        **made.story,
        "tested": tested.measured(made.net, everyone),
        "share_of_the_commonest_class": round(float(np.bincount(tested.data.labels).max() / len(everyone)), 4),
        "accuracy_of_logistic_regression": round(baseline(learned.data, tested.data), 4),
        "checked": tested.measured(made.net, everyone[:CHECKED]),
    }
    tell(f"{record}")
    keep(made.net, out, "insurance", f"insurance --seed {seed}", RECIPE, record)


def baseline(learned: Sequences, tested: Sequences) -> float:
    """Accuracy of logistic regression on the means over time and the static features."""

    def summaries(data: Sequences) -> Any:
        return np.column_stack([np.stack([steps.mean(axis=0) for steps in data.values]), data.static])

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500, C=0.01))
    model.fit(summaries(learned), learned.labels)
    return float(model.score(summaries(tested), tested.labels))
