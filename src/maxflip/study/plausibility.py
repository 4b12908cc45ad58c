"""Plausibility: whether changed samples look like real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip import judge
from maxflip._util.engine import Local
from maxflip._util.events import silent
from maxflip._util.frozen import FrozenMap, read_only
from maxflip._util.messages import listed
from maxflip._util.types import Floats, Rows
from maxflip.data.cohort import Cohort
from maxflip.data.layout import Layout
from maxflip.data.scale import spread_of
from maxflip.errors import InputError
from maxflip.plan.plan import Fate, Plan
from maxflip.problem.problem import Problem
from maxflip.study.insight import QUANTILES, Plausibility

LEAST_REAL = 10  # real samples of the wanted class needed for a comparison
MOST_REAL = 10_000  # at most this many real samples are used, evenly spaced
AT_A_TIME = 4_000_000  # distances computed per block


def read_reference(reference: Any, cohort: Cohort) -> Cohort:
    """The reference as a Cohort with the features of `cohort`."""
    if not isinstance(reference, Cohort):
        faults = cohort.layout.frame_faults("reference", reference)
        if faults:
            raise InputError(faults)
        return Cohort.table(reference, features=cohort.features, source="reference")
    if reference.features != cohort.features or not reference.layout.is_like(cohort.layout):
        raise InputError(
            f"reference: {reference.source} has the features {listed(reference.features)}; wanted those of the cohort, "
            f"{listed(cohort.features)}, in this order, and of the same kind, a table or sequences."
        )
    return reference


def plausibility_of(
    problem: Problem, plan: Plan, reference: Cohort | None
) -> tuple[Plausibility | None, tuple[str, ...]]:
    if not plan.count:
        return None, ("Nobody is picked, so there is no changed sample to compare with real ones.",)
    origin = problem.cohort if reference is None else reference
    scale = _Scale.of(problem.cohort.layout)
    real = scale.points(origin.layout)
    before = scale.points(problem.cohort.layout)[plan.selected]
    after = scale.points(problem.after(plan.selected, plan.moves))
    wanted, kind = np.unique(problem.goal.wanted, axis=0, return_inverse=True)
    kind = np.broadcast_to(kind.reshape(-1), len(problem))
    distances, among, used = np.full((2, plan.count), np.nan), [], 0
    for k, classes in enumerate(wanted):
        rows = _passing(problem, plan, kind == k) if reference is None else _passing_of(problem, reference, classes)
        if len(rows) < LEAST_REAL:
            continue
        chosen = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_REAL)).astype(int))]
        there, own = real[chosen], kind[plan.selected] == k
        distances[0, own], distances[1, own] = nearest(before[own], there), nearest(after[own], there)
        among.append(nearest(there))
        used += len(chosen)
    if not among:
        return None, (
            f"{origin.source}: has fewer than {LEAST_REAL} samples in the wanted class, too few to compare the changed "
            "ones with.",
        )
    typical = dict(zip(QUANTILES, np.quantile(np.concatenate(among), QUANTILES).tolist(), strict=True))
    return Plausibility(
        before=read_only(distances[0].copy()),
        after=read_only(distances[1].copy()),
        typical=FrozenMap(typical),
        references=used,
        source=origin.source,
        measure=scale.words,
    ), ()


def _passing(problem: Problem, plan: Plan, of_this_kind: NDArray[np.bool_]) -> Rows:
    there = of_this_kind & (plan.fates == Fate.ALREADY)
    return np.asarray(problem.cohort.order[there[problem.cohort.order]])


def _passing_of(problem: Problem, reference: Cohort, classes: NDArray[np.bool_]) -> Rows:
    """Rows of the reference that the model puts into the wanted classes with the required confidence."""
    goal = problem.goal
    asked = Problem(
        classifier=problem.classifier,
        cohort=reference,
        target=frozenset(np.flatnonzero(classes).tolist()),
        budgets=problem.budgets,
        steps=reference.layout.any_steps,
        threshold=goal.required if goal.is_threshold else None,
        margin=None if goal.is_threshold else goal.required,
    )
    with problem.classifier.borrowed():
        there = judge.standing(asked, Local(1), silent).already
    return reference.order[there[reference.order]]


@dataclass(frozen=True, eq=False)
class _Scale:
    """Standardises samples: each entry minus its mean in the cohort, divided by its standard deviation there."""

    centre: Floats
    deviation: Floats
    words: str

    @classmethod
    def of(cls, cohort: Layout) -> _Scale:
        known = [column[~np.isnan(column)] for column in cohort.points.T]
        return cls(
            centre=np.array([values.mean() if len(values) else 0.0 for values in known]),
            deviation=np.array([float(spread_of(values[:, None])[0]) if len(values) else 1.0 for values in known]),
            words=cohort.points_in_words,
        )

    def points(self, samples: Layout) -> Floats:
        return np.nan_to_num((samples.points - self.centre) / self.deviation, nan=0.0)


def nearest(points: Floats, among: Floats | None = None) -> Floats:
    """(c,): distance from each point to its nearest neighbour in `among`; None: among the other points.

    A matrix product finds the neighbour, block by block; the distance is then computed directly from the two points.
    """
    others = points if among is None else among
    size, square = max(1, AT_A_TIME // len(others)), (others**2).sum(axis=1)
    found = np.empty(len(points))
    for begin in range(0, len(points), size):
        block = points[begin : begin + size]
        apart = square - 2.0 * (block @ others.T)
        if among is None:
            apart[np.arange(len(block)), begin + np.arange(len(block))] = np.inf
        found[begin : begin + size] = np.sqrt(((block - others[apart.argmin(axis=1)]) ** 2).sum(axis=1))
    return found
