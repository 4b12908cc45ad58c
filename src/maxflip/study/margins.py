"""suggest_margin: the smallest margin whose flips hold in other models too.

In the other models, a flip must reach the margin or threshold of the problem. The plan is made for a larger one. It is
found in two steps: margins increase until a plan holds, then the last interval is bisected. Each plan starts from the
plan with the next larger margin, whose flips all pass at the smaller one; if there is none, from the previous plan.

Steps are measured in log-odds: for a margin m, artanh m (two classes differ by 2 artanh m in logits); for a threshold
t, artanh(2 t - 1); for decision values, the margin in standard deviations of the cohort's confidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxflip._util.engine import Engine
from maxflip._util.events import Watch
from maxflip._util.faults import Fault
from maxflip._util.frozen import FrozenMap
from maxflip._util.messages import shown
from maxflip.errors import InputError, ProblemError
from maxflip.models import Classifier
from maxflip.plan.holding import judged_by, read_judges
from maxflip.plan.plan import Plan
from maxflip.problem.problem import Problem
from maxflip.solvers import Solver
from maxflip.solving import solve
from maxflip.study.frontier import NUMBERS, resolve

FIRST = 0.1  # first step, in log-odds or in standard deviations of decision values; each step doubles
GREATEST = 0.999  # largest margin or threshold tried
FURTHEST = 100.0  # largest increase tried for decision values, in standard deviations


@dataclass(frozen=True)
class Tried:
    """A margin that was tried.

    Attributes:
        margin: margin of the plan; for a problem with a threshold, the threshold.
        count: number of samples it flips.
        shares: {judge: share of these flips that pass in it}; 0 if nobody is flipped.
    """

    margin: float
    count: int
    shares: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class SuggestedMargin:
    """A margin whose flips hold in other models.

    Attributes:
        margin: the smallest margin found; for a problem with a threshold, the threshold. If none suffices: the margin
            tried with the largest share in the worst judge.
        reached: whether the required share of flips holds in every judge.
        plan: the plan of this margin.
        shares: {judge: share of the plan's flips that pass in it}; 0 if nobody is flipped.
        trail: all margins tried, in order, each with its margin, count and shares.
    """

    margin: float
    reached: bool
    plan: Plan
    shares: Mapping[str, float]
    trail: tuple[Tried, ...]


def suggest_margin(
    problem: Problem,
    judges: Iterable[Classifier | str | Path] | Mapping[str, Classifier | str | Path],
    hold: float = 0.9,
    *,
    plan: Plan | None = None,
    precision: float = 0.01,
    solver: Solver | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    watch: Watch | None = None,
) -> SuggestedMargin:
    """The smallest margin, starting from the problem's own, at which enough flips hold in every judge.

    A flip holds in a judge if it passes in it by the problem's own margin or threshold. The larger margin applies to
    the problem's model only. The search assumes that larger margins make more flips hold; if that is not so, a smaller
    margin than the one found may suffice.

    Args:
        problem: the problem.
        judges: other models, as in `look`: a list, or a mapping by name, of classifiers or model files.
        hold: share of the plan's flips that must pass in each judge, in (0, 1].
        plan: plan of the problem, if it is solved already.
        precision: largest distance between the margin found and a smaller one that does not suffice; for decision
            values, in standard deviations of the cohort's confidence before any change.
        solver: an object such as Prices(); None: Prices().
        seed: as in `solve`.
        engine: as in `solve`.
        watch: as in `solve`.
    """
    _check(problem, hold, precision, plan)
    named = _named(judges, problem)
    first = plan if plan is not None else solve(problem, solver, seed=seed, engine=engine, watch=watch)
    scale = _Scale.of(problem, first)

    def tried(place: float, start: Plan) -> _Step:
        required = scale.margin(place)
        margin, threshold = (None, required) if problem.goal.is_threshold else (required, None)
        other: Plan | None
        try:
            other = resolve(
                problem, start, solver, margin=margin, threshold=threshold, seed=seed, engine=engine, watch=watch
            )
        except ProblemError as error:
            told = {fault.places[0][0] if isinstance(fault, Fault) and fault.places else "" for fault in error.faults}
            if not told <= {"include", "quotas"}:
                raise
            other = None  # a sample that must be picked, or that a quota asks for, cannot reach this margin
        return _Step(place, other, _judged(problem, named, required, other), hold)

    below = _Step(scale.first, first, _judged(problem, named, problem.goal.required, first), hold)
    steps = [below]
    above: _Step | None = None
    for place in scale.rungs() if below.is_short else ():
        steps.append(tried(place, below.known))
        if not steps[-1].is_short:
            above = steps[-1]
            break
        below = steps[-1]
    while above is not None and scale.apart(below.place, above.place) > precision:
        start = above.known if above.tried.count else below.known
        steps.append(tried((below.place + above.place) / 2, start))
        below, above = (steps[-1], above) if steps[-1].is_short else (below, steps[-1])
    best = min((step for step in steps if step.holds), key=lambda step: step.place, default=None)
    if best is None:
        best = max(steps, key=lambda step: (min(step.tried.shares.values()), -step.place))
    trail = tuple(step.tried for step in steps)
    return SuggestedMargin(best.tried.margin, best.holds, best.known, best.tried.shares, trail)


@dataclass(frozen=True, eq=False)
class _Step:
    """place: of the margin, see _Scale   plan: None if there is none with this margin"""

    place: float
    plan: Plan | None
    tried: Tried
    hold: float

    @property
    def holds(self) -> bool:
        return self.tried.count > 0 and min(self.tried.shares.values()) >= self.hold

    @property
    def is_short(self) -> bool:
        """Some samples are flipped, but too few of the flips hold: a larger margin may suffice."""
        return self.tried.count > 0 and not self.holds

    @property
    def known(self) -> Plan:
        if self.plan is None:
            raise ValueError("there is no plan with this margin")
        return self.plan


@dataclass(frozen=True)
class _Scale:
    """Maps margins (or thresholds) to places on a line.   first: the problem's own   last: the largest to try
    unit: for decision values, the length of 1 on the line; None for probabilities
    """

    first: float
    last: float
    unit: float | None
    is_threshold: bool

    @classmethod
    def of(cls, problem: Problem, plan: Plan) -> _Scale:
        required, is_threshold = problem.goal.required, problem.goal.is_threshold
        if problem.goal.is_decision:
            known = plan.confidence_before[np.isfinite(plan.confidence_before)]
            unit = float(known.std()) if len(known) and known.std() > 0 else 1.0
            return cls(required / unit, required / unit + FURTHEST, unit, is_threshold)
        as_margin = (2 * required - 1, 2 * GREATEST - 1) if is_threshold else (required, GREATEST)
        return cls(math.atanh(as_margin[0]), math.atanh(as_margin[1]), None, is_threshold)

    def margin(self, place: float) -> float:
        if self.unit is not None:
            return self.unit * place
        return (1 + math.tanh(place)) / 2 if self.is_threshold else math.tanh(place)

    def apart(self, low: float, high: float) -> float:
        """Distance between two places in the unit of `precision`."""
        return high - low if self.unit is not None else self.margin(high) - self.margin(low)

    def rungs(self) -> Iterator[float]:
        """Places to try, ascending, without the first."""
        place, step = self.first, FIRST
        while place < self.last:
            place, step = min(place + step, self.last), 2 * step
            yield place


def _judged(problem: Problem, named: Sequence[tuple[str, Classifier]], margin: float, plan: Plan | None) -> Tried:
    """Count flips that pass by the problem's own margin or threshold."""
    if plan is None or not plan.count:
        return Tried(margin, 0, FrozenMap({name: 0.0 for name, _ in named}))
    judged = judged_by(problem, *plan.moves_in(problem), named)
    return Tried(margin, plan.count, FrozenMap({judge.name: judge.after / plan.count for judge in judged}))


def _named(judges: Any, problem: Problem) -> list[tuple[str, Classifier]]:
    named = read_judges(judges, problem)
    if not named:
        raise InputError("judges: got none; wanted at least one classifier or path of a model file.")
    names = [name for name, _ in named]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"judges: two are called {shown(twice[0])}. Name them: {{'first': ..., 'second': ...}}.")
    judged_by(
        problem, np.arange(len(problem))[:1], np.zeros((1, problem.width)), named
    )  # fail early if a judge does not work
    return named


def _check(problem: Any, hold: Any, precision: Any, plan: Any) -> None:
    faults = []
    if not isinstance(problem, Problem):
        faults.append(f"problem: got {shown(problem)}; wanted a Problem(...).")
    if isinstance(hold, bool) or not isinstance(hold, NUMBERS) or not 0 < hold <= 1:
        faults.append(f"hold = {shown(hold)}: must be a number above 0 and at most 1.")
    if isinstance(precision, bool) or not isinstance(precision, NUMBERS) or not 0 < precision < math.inf:
        faults.append(f"precision = {shown(precision)}: must be a finite number > 0.")
    if plan is not None and not isinstance(plan, Plan):
        faults.append(f"plan: got {shown(plan)}; wanted a Plan of the problem, or None.")
    if faults:
        raise InputError(faults)
