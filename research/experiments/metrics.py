"""How good a classifier is: area under the ROC curve, accuracy, cross entropy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from scipy.stats import rankdata

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def auc(logits: Floats, labels: Labels) -> float:
    """Of two classes: how often a sample of class 1 scores higher than one of class 0; a tie counts half."""
    ranks = rankdata(logits[:, 1] - logits[:, 0])
    ones = int(labels.sum())
    zeros = len(labels) - ones
    return float((ranks[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def accuracy(logits: Floats, labels: Labels) -> float:
    return float((logits.argmax(axis=1) == labels).mean())


def cross_entropy(logits: Floats, labels: Labels) -> float:
    chosen: Any = log_softmax(logits, axis=1)[np.arange(len(labels)), labels]
    return float(-chosen.mean())


def rightly_predicted(logits: Floats, labels: Labels, label: int) -> int:
    """Samples of a class that are predicted in it: the cohort of an experiment, where the class is unwanted."""
    return int(((labels == label) & (logits.argmax(axis=1) == label)).sum())
