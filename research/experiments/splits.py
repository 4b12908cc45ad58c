"""Who is trained on, who is validated on, who is tested on."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, StratifiedKFold, train_test_split

from research.experiments.tasks import Rows


def stratified(rows: Rows, labels: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Two parts, the second with this share of the rows; classes as frequent in both. labels: of all the data"""
    first, second = train_test_split(rows, test_size=share, stratify=labels[rows], random_state=seed)
    return np.sort(first), np.sort(second)


def by_group(rows: Rows, groups: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Two parts, the second with this share of the groups; no group is in both. groups: of all the data"""
    splitter = GroupShuffleSplit(1, test_size=share, random_state=seed)
    first, second = next(splitter.split(rows, groups=groups[rows]))
    return rows[first], rows[second]


def folds(labels: Rows, number: int, seed: int) -> list[tuple[Rows, Rows]]:
    """Every row is in the second part of one fold; classes as frequent in all."""
    splitter = StratifiedKFold(number, shuffle=True, random_state=seed)
    return [(np.asarray(first), np.asarray(second)) for first, second in splitter.split(labels, labels)]
