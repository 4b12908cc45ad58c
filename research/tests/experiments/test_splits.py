"""Parts of the data do not overlap, and no student is on both sides."""

from __future__ import annotations

import numpy as np

from research.experiments.splits import by_group, folds, stratified


def test_classes_are_as_frequent_in_both_parts() -> None:
    labels = np.repeat([0, 1], [80, 20])
    rows = np.arange(0, 100, 2)  # 40 and 10 of them
    first, second = stratified(rows, labels, 0.2, seed=0)
    assert sorted([*first, *second]) == rows.tolist()
    assert labels[second].sum() == 2
    assert len(second) == 10
    assert stratified(rows, labels, 0.2, seed=1)[1].tolist() != second.tolist()


def test_no_group_is_in_both_parts() -> None:
    groups = np.arange(100) // 3
    first, second = by_group(np.arange(10, 100), groups, 0.2, seed=0)
    assert sorted([*first, *second]) == list(range(10, 100))
    assert not set(groups[first]) & set(groups[second])
    assert 0.1 < len(second) / 90 < 0.3


def test_every_row_is_tested_once() -> None:
    labels = np.repeat([0, 1], [80, 20])
    parts = folds(labels, 5, seed=0)
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(100))
    for rest, test in parts:
        assert not set(rest) & set(test)
        assert labels[test].sum() == 4
