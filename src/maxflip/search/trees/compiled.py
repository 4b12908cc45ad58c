"""Compiled: the trees of some models and what is asked of their scores, as the arrays that the search works on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxflip._util.types import Floats, Mask
from maxflip.models.trees.forest import Forest
from maxflip.search.trees.arrays import LINEAR, MEAN, SOFTMAX, SOFTMAX_MASS, Trees, Wanted

CODES = {"exact": 0, "floor": 1, "truncated": 2}


@dataclass(frozen=True)
class Asked:
    """What is asked of one model's probabilities: wanted (k,) classes, and the margin or threshold.

    lift: by how much flips must pass beyond what is required
    """

    wanted: Mask
    required: float
    lift: float
    is_threshold: bool


@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores of one model that decide.   weight (K, C): scores = raw @ weight   others: see Wanted"""

    weight: Floats
    kind: int
    aim: float
    wanted: Mask


def compiled(forests: Sequence[Forest], asked: Asked) -> tuple[Trees, Wanted]:
    """All trees of the models as one list, and what is asked of their scores. Every model must give what is asked.

    A condition that is linear in the raw scores becomes one score: of two classes, and of a mean of probabilities.
    """
    aim = asked.required + asked.lift
    parts = [_scores(forest, asked, aim) for forest in forests]
    ends = np.cumsum([0, *(part.weight.shape[1] for part in parts)]).astype(np.int32)
    wanted = Wanted(
        np.array([part.kind for part in parts], np.int32),
        ends[:-1],
        ends[1:],
        np.array([part.aim for part in parts]),
        np.array([_scores(forest, asked, asked.required).aim for forest in forests]),
        np.concatenate([part.wanted for part in parts]),
    )
    return _trees(forests, parts, ends), wanted


def _scores(forest: Forest, asked: Asked, aim: float) -> _Scores:
    count, wanted = len(forest.base), np.asarray(asked.wanted, dtype=bool)
    each = np.eye(count) / forest.divisor
    yes = np.ones(1, dtype=bool)
    if forest.link == "sigmoid":
        sign = 1.0 if wanted[1] else -1.0
        line = _logit(aim) if asked.is_threshold else 2.0 * math.atanh(aim)
        return _Scores(sign * each, LINEAR, line, yes)
    if forest.link == "mean":
        if asked.is_threshold:
            return _Scores(each @ wanted[:, None].astype(float), LINEAR, aim, yes)
        if count == 2:
            return _Scores(each @ np.where(wanted, 1.0, -1.0)[:, None], LINEAR, aim, yes)
        return _Scores(each, MEAN, aim, wanted)
    if count == 2:
        line = _logit(aim) if asked.is_threshold else 2.0 * math.atanh(aim)
        return _Scores(each @ np.where(wanted, 1.0, -1.0)[:, None], LINEAR, line, yes)
    if asked.is_threshold:
        return _Scores(each, SOFTMAX_MASS, _logit(aim), wanted)
    return _Scores(each, SOFTMAX, aim, wanted)


def _logit(p: float) -> float:
    return math.log(p / (1.0 - p))


def _trees(forests: Sequence[Forest], parts: Sequence[_Scores], ends: np.ndarray) -> Trees:
    begins = np.cumsum([0, *(len(forest.feature) for forest in forests)])[:-1]
    feature = np.concatenate([forest.feature for forest in forests]).astype(np.int32)
    threshold = np.concatenate([forest.threshold for forest in forests])
    cats = np.cumsum([0, *(len(forest.cats) for forest in forests)])[:-1]
    numeric = np.concatenate([(f.feature >= 0) & (f.cat_begin < 0) for f in forests])
    begin, thresholds, rank = _ranked(feature, threshold, numeric, max(forest.width for forest in forests))
    value = np.zeros((len(feature), ends[-1]))
    first, last = [], []
    for forest, part, start, end in zip(forests, parts, begins, ends, strict=False):
        size = part.weight.shape[1]
        value[start : start + len(forest.feature), end : end + size] = forest.value @ part.weight
        alone = (forest.output >= 0) & (size == len(forest.base)) & (size > 1)
        first.append(np.where(alone, end + forest.output, end))
        last.append(np.where(alone, end + forest.output + 1, end + size))

    def moved(name: str, by: np.ndarray) -> np.ndarray:
        return np.concatenate([getattr(f, name) + b for f, b in zip(forests, by, strict=True)]).astype(np.int32)

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(forest, name) for forest in forests])

    is_category = np.concatenate([forest.cat_begin >= 0 for forest in forests])
    return Trees(
        feature=feature,
        rank=rank,
        threshold=threshold,
        left=moved("left", begins),
        right=moved("right", begins),
        roots=moved("roots", begins),
        missing_left=joined("missing_left"),
        cat_begin=np.where(is_category, moved("cat_begin", cats), -1).astype(np.int32),
        cat_end=moved("cat_end", cats),
        cats=joined("cats"),
        cat_other_left=joined("cat_other_left"),
        codes=np.concatenate([np.full(len(f.feature), CODES[f.codes]) for f in forests]).astype(np.int32),
        value=value,
        first=np.concatenate(first).astype(np.int32),
        last=np.concatenate(last).astype(np.int32),
        base=np.concatenate([f.base @ part.weight for f, part in zip(forests, parts, strict=True)]),
        begin=begin,
        thresholds=thresholds,
    )


def _ranked(feature: np.ndarray, threshold: Floats, numeric: Mask, width: int) -> tuple[np.ndarray, Floats, np.ndarray]:
    """Where each feature's thresholds begin, (F + 1,); the different ones, ascending; and each node's place there."""
    begin, found, rank = np.zeros(width + 1, np.int32), [np.empty(0)], np.zeros(len(feature), np.int32)
    for i in range(width):
        mine = np.flatnonzero((feature == i) & numeric)
        values, rank[mine] = np.unique(threshold[mine], return_inverse=True)
        found.append(values)
        begin[i + 1] = begin[i] + len(values)
    return begin, np.concatenate(found), rank
