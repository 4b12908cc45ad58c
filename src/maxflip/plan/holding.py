"""How many flips still pass if changes are carried out in part or rounded, or in other models. Forward passes only.

A flip passes here if its confidence reaches the required one; the guard is not added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from maxflip._util.frozen import FrozenMap
from maxflip._util.messages import shown
from maxflip._util.types import Floats, Rows
from maxflip.data.scale import spread_of
from maxflip.errors import InputError, MaxflipError, ModelError
from maxflip.judge import confidence_after, scores_after
from maxflip.models import Classifier, Ensemble
from maxflip.models.files import load_judge
from maxflip.plan.holds import Holds, Judged
from maxflip.problem.must_hold import rounded
from maxflip.problem.problem import Problem

SHARES = (1.0, 0.9, 0.8, 0.5)  # shares of each change that are evaluated
TRIED = 10_000  # values of a feature, evenly spaced, that determine its usual decimals
MOST_DECIMALS = 6  # largest number of usual decimals
NEARLY_ALL = 0.95  # share of the values that must have at most the usual decimals
PRECISION = 1e-6  # relative distance below which a value counts as having fewer decimals
SMALLEST_STEP = 100  # limit of decimals for features with tiny values
FINEST = 1e-3  # smallest last digit, as a share of the feature's standard deviation


def holds_of(problem: Problem, rows: Rows, changes: Floats) -> Holds:
    """rows (c,), changes (c, K): flips of the problem's own classifier, all of which pass in full."""
    digits = usual_digits(problem)
    step = np.array([10.0 ** -digits[name] if name in digits else 0.0 for name in problem.cohort.features])
    part = np.where(problem.is_lever, 0.0, changes)  # levers are carried out as a whole
    uptake = {1.0: len(rows)}
    uptake |= {share: _passing(problem, rows, changes - part + share * part) for share in SHARES[1:]}
    done = rounded(problem.slots.base(rows, changes), changes, step[problem.slots.feature])
    return Holds(FrozenMap(uptake), _passing(problem, rows, done), FrozenMap(digits))


def _passing(problem: Problem, rows: Rows, changes: Floats) -> int:
    return int((confidence_after(problem, rows, changes) >= problem.goal.required).sum())


def usual_digits(problem: Problem) -> dict[str, int]:
    """{feature that may change: decimals}.

    The fewest decimals, 0 to 6, that suffice for 95 % of the cohort's values (of at most 10,000). The last digit is
    never below a thousandth of the feature's standard deviation: values with more digits are computed, not measured.
    """
    names = problem.cohort.features
    free = problem.may_move & ~problem.is_lever
    changing = np.unique(problem.slots.feature[free]).tolist()
    return {names[i]: _decimals(problem.cohort.measured(i)[0]) for i in changing}


def _decimals(values: Floats) -> int:
    if not len(values):
        return 0
    some = values[np.unique(np.linspace(0, len(values) - 1, TRIED).astype(np.int64))]
    finest = min(max(0, math.floor(-math.log10(FINEST * float(spread_of(values[:, None])[0])))), SMALLEST_STEP)
    for decimals in range(min(finest, MOST_DECIMALS + 1)):
        scaled = np.abs(some) * 10.0**decimals
        if (np.abs(scaled - np.rint(scaled)) <= PRECISION * np.maximum(scaled, 1.0)).mean() >= NEARLY_ALL:
            return decimals
    return finest


def read_judges(judges: Any, problem: Problem) -> list[tuple[str, Classifier]]:
    """(name, classifier) of each judge. The name is the given one, that of its file, or its number."""
    if isinstance(judges, (str, Path)) or not isinstance(judges, Iterable):
        raise InputError(f"judges: got {shown(judges)}; wanted a list of classifiers or paths of model files.")
    named = judges.items() if isinstance(judges, Mapping) else enumerate(judges, 1)
    found: list[tuple[str, Classifier]] = []
    for key, judge in named:
        is_file = isinstance(judge, (str, Path))
        if not is_file and (isinstance(judge, type) or not hasattr(judge, "members")):
            raise InputError(f"judges: got {shown(judge)}; wanted classifiers or paths of model files.")
        name = key if isinstance(key, str) else Path(judge).name if is_file else f"model {key}"
        found.append((name, load_judge(Path(judge), problem.classifier, problem.cohort) if is_file else judge))
    return found


def judged_by(
    problem: Problem, rows: Rows, changes: Floats, judges: Iterable[tuple[str, Classifier]]
) -> tuple[Judged, ...]:
    """How many of the flips rows (c,), changes (c, K) pass in each model before and after the change."""
    found = []
    for name, judge in judges:
        try:
            found.append(_judged_by(problem, rows, changes, name, judge))
        except MaxflipError as error:
            raise type(error)([f"judges: {name}: {sentence}" for sentence in error.problems]) from error
    return tuple(found)


def _judged_by(problem: Problem, rows: Rows, changes: Floats, name: str, judge: Classifier) -> Judged:
    other = _asked_of(problem, judge)
    classes = problem.goal.wanted.shape[1]
    with judge.borrowed():
        columns = scores_after(other, rows[:1], changes[:1]).shape[2] if len(rows) else classes
        if columns != classes:
            raise ModelError(f"has {columns} output columns; the problem's model has {classes}.")
        before = _passing(other, rows, np.zeros_like(changes))
        return Judged(name, before, _passing(other, rows, changes))


def _asked_of(problem: Problem, judge: Classifier) -> Problem:
    """The same problem with another model."""
    judge.check_features(problem.cohort.features)
    Ensemble([problem.classifier, judge])  # the same classes, and scores of the same kind
    other = object.__new__(Problem)
    for part in fields(problem):
        object.__setattr__(other, part.name, getattr(problem, part.name))
    object.__setattr__(other, "classifier", judge)
    return other
