"""How good a classifier is, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from research.experiments.metrics import accuracy, auc, cross_entropy, rightly_predicted


def test_auc_by_hand() -> None:
    """Of six pairs of a 1 and a 0, the 1 scores higher in four, and one is a tie: 4.5 of 6."""
    scores = np.array([0.9, 0.4, 0.5, 0.4, 0.1])
    labels = np.array([1, 1, 0, 0, 0])
    assert auc(np.column_stack([np.zeros(5), scores]), labels) == pytest.approx(4.5 / 6)


def test_auc_is_scikit_learns() -> None:
    chance = np.random.default_rng(0)
    logits, labels = chance.normal(size=(200, 2)).round(1), chance.integers(0, 2, 200)
    assert auc(logits, labels) == pytest.approx(roc_auc_score(labels, logits[:, 1] - logits[:, 0]))


def test_the_others_by_hand() -> None:
    logits = np.log([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.7, 0.2, 0.1]])
    labels = np.array([0, 1, 1, 0])
    assert accuracy(logits, labels) == 0.75
    assert cross_entropy(logits, labels) == pytest.approx(-np.log([0.5, 0.8, 0.2, 0.7]).mean())
    assert [rightly_predicted(logits, labels, label) for label in range(3)] == [2, 1, 0]
