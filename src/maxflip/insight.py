"""Insight: what a plan alone does not know. What other budgets would buy, whether changed samples look like real ones,
and which groups those come from who are picked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maxflip import judge
from maxflip.budgets import Budget
from maxflip.cohort import Cohort, in_cohort_order, is_listing
from maxflip.engine import Local
from maxflip.errors import InputError
from maxflip.exact import Floats
from maxflip.frozen import Frozen, FrozenMap, read_only
from maxflip.pipeline import solve
from maxflip.plan import Fate, Plan
from maxflip.problem import Problem, Rows, spread_of
from maxflip.ragged import Ragged
from maxflip.solvers import Solver
from maxflip.study import checked_scales
from maxflip.suggest import counted, did_you_mean, listed, shown
from maxflip.watch import Advanced, Finished, Started, Watch, silent

People = Literal["none", "pseudonyms", "full"]  # what a report shows of single samples

SCALES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FAR = 0.95  # a sample farther from real ones than this part of them are from each other is far from all of them
LEAST_REAL = 10  # rows of the wanted class: of fewer, nothing is typical
MOST_REAL = 10_000  # rows that distances are taken to
AT_A_TIME = 4_000_000  # distances
MOST_GROUPS = 12
SMALL_GROUP = 10  # samples: shares of fewer say little
PRIVATE_GROUP = 5  # samples: fewer are not told apart in a report without names
MISSING, SMALL_ONES = "missing", "small groups"


@dataclass(frozen=True)
class Outlook:
    """What more or less of all budgets buys: scales ascending, and of each the plan's count, worth, bound, estimate."""

    scales: tuple[float, ...]
    counts: tuple[int, ...]
    worths: tuple[float, ...]
    bounds: tuple[float | None, ...]
    estimates: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Plausibility(Frozen):
    """How far those picked are from the nearest real sample of the wanted class, before and after their change.

    before, after (count,), in the order of `plan.selected`; NaN where there is no such real sample
    typical: quantile -> how far real samples of the wanted class are from the nearest other one
    references: how many real samples that is   source: whose they are   measure: how it is measured, in words
    """

    before: Floats = field(repr=False)
    after: Floats = field(repr=False)
    typical: Mapping[float, float]
    references: int
    source: str
    measure: str

    @property
    def far(self) -> NDArray[np.bool_]:
        """(count,): who ends farther from every real sample than 95 % of those are from each other"""
        return np.asarray(self.after > self.typical[FAR])

    @property
    def far_share(self) -> float | None:
        """Their share of those picked; None where there is nobody to say it of."""
        known = np.isfinite(self.after)
        return float(self.far[known].mean()) if known.any() else None


@dataclass(frozen=True)
class Group:
    """size: all of them   reachable: of whom a flip is known, picked or not   confidence: their mean before any change,
    None where it is not known of any"""

    name: str
    size: int
    already: int
    reachable: int
    picked: int
    confidence: float | None

    @property
    def is_small(self) -> bool:
        return self.size < SMALL_GROUP


@dataclass(frozen=True)
class Groups:
    """The cohort divided by a column."""

    column: str
    groups: tuple[Group, ...]

    def merged(self, least: int = PRIVATE_GROUP) -> Groups:
        """With the groups of fewer than so many samples as one.

        Where they are too few even together, the smallest of the others joins them: left out, they would be what the
        others lack of the whole.
        """
        by_size = sorted(self.groups, key=lambda group: group.size)
        small = [group for group in by_size if group.size < least]
        while small and sum(group.size for group in small) < least and len(small) < len(by_size):
            small.append(by_size[len(small)])
        if not small:
            return self
        kept = tuple(group for group in self.groups if group not in small)
        return Groups(self.column, (*kept, _together(small)) if sum(g.size for g in small) >= least else kept)


def _together(groups: list[Group]) -> Group:
    known = [(g.size, g.confidence) for g in groups if g.confidence is not None]
    return Group(
        name=SMALL_ONES,
        size=sum(g.size for g in groups),
        already=sum(g.already for g in groups),
        reachable=sum(g.reachable for g in groups),
        picked=sum(g.picked for g in groups),
        confidence=sum(n * c for n, c in known) / sum(n for n, _ in known) if known else None,
    )


@dataclass(frozen=True, eq=False)
class Insight:
    """What a plan alone does not know; None where it was not asked for or could not be said, and then `notices` may
    say why."""

    frontier: Outlook | None = None
    plausibility: Plausibility | None = None
    groups: Groups | None = None
    notices: tuple[str, ...] = ()

    @classmethod
    def load(cls, folder: str | Path) -> Insight | None:
        """Of a plan folder; None where it has none."""
        from maxflip.files.plan_folder import load_insight

        return load_insight(folder)


def look(
    problem: Problem,
    plan: Plan,
    *,
    scales: Iterable[float] | None = SCALES,
    group: Any = None,
    reference: Any = None,
    solver: Solver | None = None,
    watch: Watch | None = None,
) -> Insight:
    """What the plan alone does not know of itself, for `plan.report(path, insight=...)`.

    Args:
        problem: the one that the plan was made for.
        plan: its plan.
        scales: what every budget is multiplied by to see what more or less of them buys; None: not asked, as each of
            them is a solve of its own.
        group: who is picked, by group: the name of a feature (of sequences: a static one), a list with one value per
            sample, or {"name": list}. Numbers of more than 12 kinds are cut into quarters; None: not asked.
        reference: a Cohort or table of real samples with the same features; those that the model puts into the wanted
            class as confidently as asked are what changed samples are compared with. None: those of the cohort.
        solver: for the scales; None: Prices().
        watch: function that is told what happens (maxflip.watch.Event); None: nobody.
    """
    _check(problem, plan)
    groups = None if group is None else _groups(plan, *read_group(group, problem.cohort))
    real = None if reference is None else read_reference(reference, problem.cohort)
    plausibility, notices = _plausibility(problem, plan, real)
    ahead = None if scales is None else outlook(problem, plan, scales, solver=solver, watch=watch)
    return Insight(ahead, plausibility, groups, notices)


def _check(problem: Any, plan: Any) -> None:
    if not isinstance(problem, Problem):
        raise InputError(f"problem: got {shown(problem)}; wanted the Problem(...) that the plan was made for.")
    if not isinstance(plan, Plan):
        raise InputError(f"plan: got {shown(plan)}; wanted a Plan of the problem.")
    people = problem.cohort
    if people.features != plan.features or not np.array_equal(people.ids, plan.all_ids):
        raise InputError("plan: has other samples or features than the problem. Give the problem it was made for.")
    if {name: b.amount for name, b in problem.budgets.items()} != {name: b.amount for name, b in plan.budgets.items()}:
        raise InputError(
            "problem: has other budgets than the plan. Give the one that the plan was made for; after `resolve` or "
            "`frontier` that is problem.changed(budgets=...)."
        )


# What other budgets buy


def outlook(
    problem: Problem,
    plan: Plan,
    scales: Iterable[float],
    *,
    solver: Solver | None = None,
    watch: Watch | None = None,
) -> Outlook:
    """Ascending, each from the one before; at scale 1 stands the plan itself."""
    tell, stage = watch or silent, "Asking what other budgets buy"
    ascending = sorted(set(checked_scales(scales)))
    tell(Started(stage, sum(scale != 1.0 for scale in ascending)))
    plans: list[Plan] = []
    for scale in ascending:
        if scale == 1.0:
            plans.append(plan)
            continue
        scaled = {n: Budget(b.amount * scale, b.uses, b.cost) for n, b in problem.budgets.items()}
        start = plans[-1] if plans else plan if scale > 1.0 else None
        plans.append(solve(problem.changed(budgets=scaled), solver, seed=plan.seed, start=start))
        tell(Advanced(stage, 1))
    tell(Finished(stage))
    return Outlook(
        scales=tuple(ascending),
        counts=tuple(p.count for p in plans),
        worths=tuple(p.worth for p in plans),
        bounds=tuple(p.bound for p in plans),
        estimates=tuple(p.estimate for p in plans),
    )


# Whether changed samples look like real ones


def read_reference(reference: Any, cohort: Cohort) -> Cohort:
    """As a Cohort with the features of the other one."""
    if not isinstance(reference, Cohort):
        if cohort.ragged is not None:
            raise InputError(f"reference: got {shown(reference)}; wanted sequences, as Cohort.sequences(...).")
        return Cohort.table(reference, features=cohort.features, source="reference")
    kinds = [(c.features, c.ragged is None, c.ragged and c.ragged.static_features) for c in (reference, cohort)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"reference: {reference.source} has the features {listed(reference.features)}; wanted those of the cohort, "
            f"{listed(cohort.features)}, in this order, and of the same kind, a table or sequences."
        )
    return reference


def _plausibility(
    problem: Problem, plan: Plan, reference: Cohort | None
) -> tuple[Plausibility | None, tuple[str, ...]]:
    if not plan.count:
        return None, ("Nobody is picked, so there is no changed sample to compare with real ones.",)
    people = problem.cohort if reference is None else reference
    scale = _Scale.of(problem.cohort)
    real = scale.points(people.values, people.ragged)
    before = scale.points(problem.cohort.values, problem.cohort.ragged)[plan.selected]
    after = scale.points(*_changed(problem.cohort, plan))
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
            f"{people.source}: has fewer than {LEAST_REAL} samples in the wanted class, so nothing can be said about "
            "how much the changed ones look like real ones.",
        )
    typical = dict(zip(QUANTILES, np.quantile(np.concatenate(among), QUANTILES).tolist(), strict=True))
    return Plausibility(
        before=read_only(distances[0].copy()),
        after=read_only(distances[1].copy()),
        typical=FrozenMap(typical),
        references=used,
        source=people.source,
        measure=scale.words,
    ), ()


def _passing(problem: Problem, plan: Plan, of_this_kind: NDArray[np.bool_]) -> Rows:
    there = of_this_kind & (plan.fates == Fate.ALREADY.value)
    return np.asarray(problem.cohort.order[there[problem.cohort.order]])


def _passing_of(problem: Problem, reference: Cohort, classes: NDArray[np.bool_]) -> Rows:
    """Which of these the model puts into the wanted classes as confidently as asked."""
    goal = problem.goal
    asked = Problem(
        classifier=problem.classifier,
        cohort=reference,
        target=frozenset(np.flatnonzero(classes).tolist()),
        budgets=problem.budgets,
        steps=None if reference.ragged is None else "all",
        threshold=goal.required if goal.is_threshold else None,
        margin=None if goal.is_threshold else goal.required,
    )
    with problem.classifier.borrowed():
        there = judge.standing(asked, Local(1), silent).already
    return reference.order[there[reference.order]]


def _changed(cohort: Cohort, plan: Plan) -> tuple[Floats, Ragged | None]:
    """The values of those picked after their changes."""
    if cohort.ragged is None:
        return cohort.values[plan.selected] + plan.changes, None
    lengths = cohort.ragged.lengths[plan.selected]
    rows = cohort.ragged.rows_of(plan.selected)
    begin = np.concatenate([[0], np.cumsum(lengths)])
    static = cohort.ragged.static[plan.selected]
    picked = Ragged(begin, cohort.ragged.times[rows], static, cohort.ragged.static_features)
    return cohort.values[rows] + np.concatenate(plan.changes), picked


@dataclass(frozen=True, eq=False)
class _Scale:
    """Samples as points: each entry in units of its spread in the cohort, counted from its mean there."""

    centre: Floats
    spread: Floats
    words: str

    @classmethod
    def of(cls, cohort: Cohort) -> _Scale:
        entries = _entries(cohort.values, cohort.ragged)
        known = [column[~np.isnan(column)] for column in entries.T]
        words = "Euclidean distance over all features, frozen ones too, each in units of its spread in the cohort"
        if cohort.ragged is not None:
            words = (
                "Euclidean distance over the last and the mean measured value of each feature, and the static "
                "features, each in units of its spread in the cohort; what was never measured counts as the mean"
            )
        return cls(
            centre=np.array([values.mean() if len(values) else 0.0 for values in known]),
            spread=np.array([float(spread_of(values[:, None])[0]) if len(values) else 1.0 for values in known]),
            words=words,
        )

    def points(self, values: Floats, ragged: Ragged | None) -> Floats:
        return np.nan_to_num((_entries(values, ragged) - self.centre) / self.spread, nan=0.0)


def _entries(values: Floats, ragged: Ragged | None) -> Floats:
    """(n, D): what a sample is compared by; of sequences with NaN where nothing was ever measured"""
    if ragged is None:
        return values
    first, measured = ragged.begin[:-1], ~np.isnan(values)
    count = np.add.reduceat(measured.astype(np.float64), first)
    total = np.add.reduceat(np.where(measured, values, 0.0), first)
    mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    row = np.maximum.reduceat(np.where(measured, np.arange(len(values))[:, None], -1), first)
    last = np.where(row >= 0, values[row, np.arange(values.shape[1])], np.nan)
    return np.hstack([last, mean, ragged.static])


def nearest(points: Floats, among: Floats | None = None) -> Floats:
    """(c,): how far each point is from the nearest of these; None: from the nearest other one of its own kind.

    A matrix product finds who that is, a few thousand at a time; the distance itself is taken between the two.
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


# Which groups those come from who are picked


def read_group(group: Any, cohort: Cohort) -> tuple[str, NDArray[np.object_]]:
    """The column's name, and each sample's label or number; None where it is missing."""
    if isinstance(group, str):
        return group, _column(group, cohort)
    name = str(getattr(group, "name", None) or "group")
    if isinstance(group, Mapping):
        if len(group) != 1 or not isinstance(next(iter(group)), str):
            raise InputError(f"group: got {shown(dict(group))}; wanted one column, as {{'name': values}}.")
        name, group = next(iter(group.items()))
    if not is_listing(group):
        raise InputError(
            f"group: got {shown(group)}; wanted the name of a feature, or a list with one value per sample."
        )
    cells = [_plain(cell) for cell in in_cohort_order(group, cohort)]
    if len(cells) != len(cohort):
        raise InputError(f"group: got {counted(len(cells), 'value')}; the cohort has {len(cohort):,} samples.")
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return name, values


def _column(name: str, cohort: Cohort) -> NDArray[np.object_]:
    names = cohort.features if cohort.ragged is None else cohort.ragged.static_features
    if name not in names:
        kind = "feature" if cohort.ragged is None else "static feature"
        raise InputError(
            f"group: the cohort has no {kind} {name!r}.{did_you_mean(name, names)} Of a column that is none, give the "
            "values: group={'name': values}."
        )
    values = cohort.values if cohort.ragged is None else cohort.ragged.static
    return values[:, names.index(name)].astype(object)


def _plain(cell: Any) -> str | float | None:
    """A text, a number, or None for what is missing, whatever kind of table it comes from."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or str(cell) in ("", "nan", "NaT", "<NA>"):
        return None
    return float(cell) if isinstance(cell, (int, float)) and not isinstance(cell, bool) else str(cell)


def _groups(plan: Plan, column: str, values: NDArray[np.object_]) -> Groups:
    missing = np.array([value is None for value in values], dtype=bool)
    known = values[~missing]
    is_number = len(known) > 0 and all(isinstance(value, float) for value in known)
    place = np.full(len(values), -1)
    place[~missing], names = _quarters(known.astype(np.float64)) if is_number else _kinds(known.astype(str))
    found = [_group(plan, name, place == k) for k, name in enumerate(names)]
    return Groups(column, (*found, *([_group(plan, MISSING, missing)] if missing.any() else [])))


def _quarters(numbers: Floats) -> tuple[NDArray[np.int64], list[str]]:
    """Each number's place, and names: every number on its own, or a quarter of the samples together."""
    kinds, place = np.unique(numbers, return_inverse=True)
    if len(kinds) <= MOST_GROUPS:
        return place.reshape(-1), [f"{kind:.15g}" for kind in kinds]
    quarter = np.searchsorted(np.quantile(numbers, (0.25, 0.5, 0.75)), numbers, side="left")
    there, place = np.unique(quarter, return_inverse=True)
    parts = [numbers[quarter == q] for q in there]
    return place.reshape(-1), [f"{part.min():.6g} to {part.max():.6g}" for part in parts]


def _kinds(texts: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Each text's place, and names in the order of the alphabet; of very many texts the rarer ones stand together."""
    kinds, place, sizes = np.unique(texts, return_inverse=True, return_counts=True)
    names, place = kinds.tolist(), place.reshape(-1)
    if len(kinds) <= MOST_GROUPS:
        return place, names
    common = np.sort(np.argsort(-sizes, kind="stable")[: MOST_GROUPS - 1])
    new = np.full(len(kinds), MOST_GROUPS - 1)
    new[common] = np.arange(len(common))
    return new[place], [*(names[k] for k in common), f"{len(kinds) - len(common):,} others"]


def _group(plan: Plan, name: str, inside: NDArray[np.bool_]) -> Group:
    fates, confidence = plan.fates[inside], plan.confidence_before[inside]
    known = confidence[np.isfinite(confidence)]
    picked = int((fates == Fate.FLIPPED.value).sum())
    return Group(
        name=name,
        size=int(inside.sum()),
        already=int((fates == Fate.ALREADY.value).sum()),
        reachable=picked + int((fates == Fate.LEFT_OUT.value).sum()),
        picked=picked,
        confidence=math.fsum(known) / len(known) if len(known) else None,
    )


def for_people(insight: Insight | None, people: People) -> Insight | None:
    """What a page that shows so much of single samples may know.

    A group of one would name its member: by its own name, where the column is one of ids, or by the mean confidence.
    """
    if insight is None or insight.groups is None or people == "full":
        return insight
    return replace(insight, groups=insight.groups.merged())


def misfits(insight: Insight, plan: Plan) -> list[str]:
    """What it says of the plan that is not so: then it is one of another plan."""
    faults = []
    ahead, near, groups = insight.frontier, insight.plausibility, insight.groups
    if ahead is not None:
        if ahead.scales != tuple(sorted(set(ahead.scales))) or not ahead.scales:
            faults.append(f"frontier: the scales are {list(ahead.scales)}; wanted some, ascending.")
        for scale, count, worth in zip(ahead.scales, ahead.counts, ahead.worths, strict=True):
            if scale == 1.0 and (count, worth) != (plan.count, plan.worth):
                faults.append(f"frontier: at scale 1 it has {count} samples; the plan has {plan.count}.")
    if near is not None and not len(near.before) == len(near.after) == plan.count:
        faults.append(f"plausibility: has {len(near.after)} samples; the plan has {plan.count}.")
    if groups is not None:
        fates = plan.fate_counts()
        known = {"size": len(plan.fates), "picked": plan.count, "already": fates[Fate.ALREADY]}
        known["reachable"] = plan.count + fates[Fate.LEFT_OUT]
        sums = {name: sum(getattr(group, name) for group in groups.groups) for name in known}
        faults += [
            f"groups: their {name} add up to {sums[name]}; of the plan it is {known[name]}."
            for name in known
            if sums[name] != known[name]
        ]
    return faults
