"""Notices for silent mistakes: values in other units than the model's, columns in another order, outputs that tell
nobody apart, a cohort that is already there.

Each rule leaves wide room for an ordinary cohort, which was chosen for being unlike the rest: a notice is for what
hardly ever happens without a mistake. Of fewer than ENOUGH samples nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from maxflip._util.messages import counted
from maxflip._util.types import Floats, Mask
from maxflip.data.cohort import Cohort
from maxflip.models import Classifier
from maxflip.models.fitted_on import FittedOn, fitted_on, names_of
from maxflip.problem.goal import Goal

ENOUGH = 20  # samples
MANY = 100_000  # rows: of more than twice as many, every so many count
ROWS = 8  # that a model is called with to see which of its parts gets raw values
FAR = 10.0  # spreads between a column's median and the model's centre
SCALED = (0.05, 3.0)  # scaled values have means between -3 and 3, and spreads between these
SHIFTED, SHRUNK = 1.5, 0.2  # spreads between the means, and the ratio of spreads: both, of half of the columns
MISPLACED, AMISS, FITS = 3.0, 1.5, 1.0  # misfits of columns in a wrong place: their root mean square and the least
# beside their own statistics, and the most beside those that they fit
ALIKE = 0.95  # of all samples
SAME = 1e-6  # confidences that differ by no more are one
SATURATED = 1e-12  # ... and one that is so near the end of its range cannot say more
NAMED = 5  # pairs of columns
REMEDY = "Check that values are in the units that the model was trained on: a scaler may be missing."


def input_notices(classifier: Classifier, cohort: Cohort) -> list[str]:
    """What the model's own names and statistics say about the cohort's columns."""
    notices = []
    some = cohort.layout.as_rows(slice(None, None, max(1, len(cohort) // ROWS)))
    rows = None if some is None else torch.tensor(some)
    for member in classifier.members:
        notices += _order_by_names(names_of(member), cohort.features)
        known = fitted_on(member, rows) if len(cohort) >= ENOUGH else None
        if known is not None and len(known.centre) == len(cohort.features):
            notices += _by_statistics(known, cohort)
    return list(dict.fromkeys(notices))


def _order_by_names(names: Sequence[str] | None, features: Sequence[str]) -> list[str]:
    if names is None or list(names) == list(features) or sorted(names) != sorted(features):
        return []
    wrong = [f"{mine!r} where the model has {own!r}" for mine, own in zip(features, names, strict=True) if mine != own]
    return [
        f"Columns are in another order than the model's own names: {_some(wrong)}. The model reads them by place, so "
        "its predictions are about other values. Put the columns in its order."
    ]


def _some(parts: Iterable[str]) -> str:
    known = list(parts)
    return ", ".join(known[:NAMED]) + (f" and {len(known) - NAMED} more" if len(known) > NAMED else "")


@dataclass(frozen=True, eq=False)
class _Columns:
    """The cohort's own mean, median and standard deviation of each column, (F,) each; NaN where it has no value"""

    mean: Floats
    median: Floats
    spread: Floats

    @classmethod
    def of(cls, values: Floats) -> _Columns:
        """values (n, F), NaN where missing"""
        some = [column[~np.isnan(column)] for column in values.T]
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = [(c.mean(), np.median(c), c.std()) if len(c) else (np.nan,) * 3 for c in some]
        return cls(*(np.array(kind, dtype=float) for kind in zip(*numbers, strict=True)))


def _by_statistics(known: FittedOn, cohort: Cohort) -> list[str]:
    """Columns that fit another's statistics far better; else, columns far from their own."""
    own = _Columns.of(cohort.values[:: max(1, len(cohort.values) // MANY)])
    swapped = _misplaced(known, own)
    if swapped:
        pairs = _some(f"{cohort.features[i]!r} fits {cohort.features[k]!r}" for i, k in swapped)
        return [
            f"Columns seem to be in another order than the model's: by the means and spreads of {known.what}, {pairs}. "
            "The model reads columns by place, so its predictions would be about other values. Check their order."
        ]
    with np.errstate(invalid="ignore"):
        away = np.abs(own.median - known.centre) / known.spread
    far = away > FAR
    wrong = far if far.any() else _scaled_already(known, own)
    if not wrong.any():
        return []
    worst = int(np.nanargmax(np.where(wrong, away, -np.inf)))
    lie = "lies" if wrong.sum() == 1 else "lie"
    return [
        f"{int(wrong.sum())} of {counted(len(wrong), 'column')} {lie} far from what {known.what} expects. The worst is "
        f"{cohort.features[worst]!r}: its median is {own.median[worst]:.4g}; the model has a centre of "
        f"{known.centre[worst]:.4g} and a spread of {known.spread[worst]:.4g}. Predictions so far from the "
        "training data mean little. Give values in the units that the model was trained on; do not scale them twice."
    ]


def _scaled_already(known: FittedOn, own: _Columns) -> Mask:
    """(F,): columns that the model's scaler would shrink to nothing, if they are many and all look scaled."""
    columns = np.isfinite(known.centre) & ~known.is_range & np.isfinite(own.mean)
    with np.errstate(invalid="ignore"):
        looks_scaled = (np.abs(own.mean) < SCALED[1]) & (own.spread > SCALED[0]) & (own.spread < SCALED[1])
        moved = (np.abs(own.mean - known.centre) > SHIFTED * known.spread) & (own.spread < SHRUNK * known.spread)
    is_so = columns.sum() >= 2 and looks_scaled[columns].all() and moved[columns].mean() > 0.5
    return np.asarray(moved & columns & is_so)


def _misplaced(known: FittedOn, own: _Columns) -> list[tuple[int, int]]:
    """Pairs (column, the column whose statistics it fits), where all that are out of place fit somewhere else."""
    columns = np.flatnonzero(np.isfinite(known.centre) & ~known.is_range & np.isfinite(own.mean) & (own.spread > 0))
    if len(columns) < 2:
        return []
    misfit = _misfit(own.mean[columns], own.spread[columns], known.centre[columns], known.spread[columns])
    own_place = np.eye(len(columns), dtype=bool)
    _, best = linear_sum_assignment(np.minimum(misfit, FAR) ** 2 + np.where(own_place, 0.0, FITS))
    moved = np.flatnonzero(best != np.arange(len(columns)))
    here, there = np.diag(misfit)[moved], misfit[moved, best[moved]]
    if not len(moved) or here.min() < AMISS or np.sqrt((here**2).mean()) < MISPLACED or there.max() > FITS:
        return []
    return [(int(columns[i]), int(columns[best[i]])) for i in moved]


def _misfit(mean: Floats, spread: Floats, centre: Floats, size: Floats) -> Floats:
    """(c, c): sqrt(z^2 + log(ratio of spreads)^2) of each column (rows) beside the statistics of each (columns)."""
    z = (mean[:, None] - centre) / size
    return np.hypot(z, np.log(spread[:, None] / size))


def outcome_notices(
    cohort: Cohort, goal: Goal, confidence: Floats, already: Mask, not_found: Mask, flips: int
) -> list[str]:
    """What the model's outputs and the search say about the whole cohort.

    confidence (n,): before any change, NaN where it is not finite   already, not_found (n,)
    flips: samples that a flip is known of
    """
    told = confidence[np.isfinite(confidence)]
    if len(told) < ENOUGH or cohort.layout.is_one_row:
        return []
    if already[np.isfinite(confidence)].all():
        return [
            f"All {len(told)} samples are in the wanted class already, so there is nothing to change. If that is a "
            "surprise, check that `target` is the class you want, and that columns are in the order and values in the "
            "units that the model was trained on."
        ]
    notices = _hardly_varies(told, goal)
    if not notices and not already.any() and not flips and not_found.mean() >= ALIKE:
        notices.append(
            f"Nobody is in the wanted class at the start, and no flip was found for any of {int(not_found.sum())} "
            f"samples: a sign of a mistake. {REMEDY} Check also the order of columns, `target`, the limits, and "
            "that the budgets are for features that the model uses."
        )
    return notices


def _hardly_varies(told: Floats, goal: Goal) -> list[str]:
    """told (n,): finite confidences"""
    middle = float(np.median(told))
    size = max(1.0, abs(middle)) if not goal.is_decision else np.abs(told).max() or 1.0
    alike = int((np.abs(told - middle) <= SAME * size).sum())
    lowest = 0.0 if goal.is_threshold else -1.0
    at_the_end = np.minimum(np.abs(told - lowest), np.abs(told - 1.0)) <= SATURATED
    stuck = 0 if goal.is_decision else int(at_the_end.sum())
    if stuck >= ALIKE * len(told):
        return [
            f"The model is saturated: {stuck} of {len(told)} samples have probability 0 or 1 to the last digit, so it "
            f"tells them hardly apart and a search has no slope to follow. {REMEDY}"
        ]
    near_the_end = min(abs(middle - lowest), abs(middle - 1.0)) <= SAME and not goal.is_decision
    if alike >= ALIKE * len(told) and not near_the_end:
        return [
            f"The model says nearly the same of everyone: {alike} of {len(told)} samples have confidence {middle:.6g}, "
            f"though their values differ. Whom to pick can then hardly be told. {REMEDY}"
        ]
    return []
