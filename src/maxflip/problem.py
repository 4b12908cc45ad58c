"""Problem: what is asked. Frozen, validated once with every fault listed, ignorant of solvers."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip.budgets import COSTS, Budget, Ledger
from maxflip.classifiers import Classifier, LinearForm, probe
from maxflip.cohort import Cohort, as_cohort, in_cohort_order
from maxflip.errors import ProblemError
from maxflip.exact import Floats
from maxflip.goal import Goal, requirement_faults, resolve_target
from maxflip.limits import Limits, read_limits
from maxflip.suggest import did_you_mean, shown

Rows = NDArray[np.int64]

AGREE_ON = 256  # samples on which a linear form is compared with the model
SAFE_RATIO = 1e8  # beyond this, columns of such different size make gradient steps ill-conditioned


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    """max sum_j v_j z_j   s.t.  sum_j z_j a_r(d_j) <= B_r,   confidence(x_j + d_j) >= required where z_j = 1,
                                 x_j + d_j inside its limits,   z_j in {0, 1}

    x: cohort.values (n, F)   v: worth (n,)   B, a: ledger   confidence, required: goal
    include, exclude: row numbers that must / must never be picked
    """

    classifier: Classifier
    cohort: Cohort
    goal: Goal
    budgets: Mapping[str, Budget]
    ledger: Ledger
    limits: Limits
    worth: Floats
    include: Rows
    exclude: Rows
    guard: float  # a flip must pass by this much more than asked: rounding differs between batch sizes
    notices: tuple[str, ...]

    def __init__(
        self,
        *,
        classifier: Classifier,
        cohort: Any,
        target: Any,
        budgets: Mapping[str, float | Budget],
        features: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        margin: float | None = None,
        threshold: float | None = None,
        limits: Any = None,
        directions: Mapping[str, str] | None = None,
        worth: Any = None,
        include: Iterable[str | int] | None = None,
        exclude: Iterable[str | int] | None = None,
    ) -> None:
        people = as_cohort(cohort, features, units)
        classifier.check_features(people.features)
        faults = requirement_faults(margin, threshold, classifier.is_decision)
        settled, budget_faults = _read_budgets(budgets, people.features)
        weighed = {name for b in settled.values() for name, weight in (b.uses or {}).items() if weight > 0}
        boundaries, limit_faults = read_limits(limits, directions, people, weighed)
        values, worth_faults = _read_worth(worth, people)
        faults += budget_faults + limit_faults + worth_faults
        faults += classifier.frozen_faults(people.features, weighed)
        picked, pick_faults = _read_ids("include", include, people)
        barred, bar_faults = _read_ids("exclude", exclude, people)
        faults += pick_faults + bar_faults
        faults += [
            f"include, exclude: id {people.ids[j]!r} is in both. Keep it in one."
            for j in np.intersect1d(picked, barred)
        ]
        faults += _overflow_faults(people, classifier)
        if not budget_faults and not weighed:
            faults.append(
                "budgets: no feature draws on a budget, so nothing can change. Give at least one feature a budget."
            )
        if faults:
            raise ProblemError(faults)

        probed = probe(classifier, people.values, people.where)
        wanted, distributions, target_faults = resolve_target(
            in_cohort_order(target, people), len(people), probed.classes, classifier.classes
        )
        required = float(threshold if threshold is not None else margin or 0.0)
        if not classifier.is_decision and required + 2 * probed.guard >= 1.0:
            target_faults.append(
                f"{required} is too close to 1: the model's rounding needs a guard of {probed.guard:.2g}."
            )
        if target_faults:
            raise ProblemError(target_faults)

        settle = object.__setattr__
        settle(self, "classifier", classifier)
        settle(self, "cohort", people)
        settle(self, "goal", Goal(wanted, required, threshold is not None, distributions, classifier.is_decision))
        settle(self, "budgets", settled)
        settle(self, "ledger", Ledger.compile(settled, people.features))
        settle(self, "limits", boundaries)
        settle(self, "worth", values)
        settle(self, "include", picked)
        settle(self, "exclude", barred)
        settle(self, "guard", probed.guard)
        settle(self, "notices", (*_notices(people, weighed, boundaries), *probed.notices))

    def __repr__(self) -> str:
        budgets = ", ".join(self.budgets)
        return f"Problem({len(self.cohort)} samples x {len(self.cohort.features)} features, budgets: {budgets})"

    def __len__(self) -> int:
        return len(self.cohort)

    @cached_property
    def actionable(self) -> NDArray[np.int64]:
        """Columns that may change."""
        return np.flatnonzero(self.ledger.actionable)

    @cached_property
    def linear(self) -> tuple[LinearForm, ...] | None:
        """The linear form of each member, where the structure of all shows one and their answers agree with it."""
        forms = []
        x = torch.tensor(self.cohort.values[:: max(1, len(self) // AGREE_ON)])
        x = torch.cat([x, x.flip(0) * 1.5 - x * 0.5])  # also between and beyond the samples
        for member in self.classifier.members:
            form = member.linear(len(self.cohort.features))
            if form is None:
                return None
            with member.borrowed(), torch.no_grad():
                said = member.scores(x).cpu()
            values = x @ form.weight.T + form.bias
            shown = values if member.is_decision else torch.softmax(values, dim=1)
            size = said.abs().max() if member.is_decision else 1.0
            if not bool(((said - shown).abs() <= size * torch.finfo(member.dtype).eps ** 0.5).all()):
                return None
            forms.append(form)
        return tuple(forms)

    def box(self, rows: Rows) -> tuple[Floats, Floats]:
        """(B, F) smallest and largest change of each value: 0 for frozen features, and low <= 0 <= high."""
        low, high = self.limits.box(self.cohort.values[rows], rows)
        frozen = ~self.ledger.actionable
        low[:, frozen] = high[:, frozen] = 0.0
        return low, high

    def settle(self, rows: Rows, changes: Floats) -> Floats:
        """Changes as they may be stored: x + change inside the limits in float64, frozen ones exactly +0.0."""
        low, high = self.box(rows)
        return self.limits.settle(self.cohort.values[rows], np.clip(changes, low, high), rows)


def _read_budgets(budgets: Any, features: tuple[str, ...]) -> tuple[dict[str, Budget], list[str]]:
    if not isinstance(budgets, Mapping) or not budgets:
        return {}, [f"budgets: got {shown(budgets)}; wanted at least one, as {{name: amount or Budget(...)}}."]
    settled: dict[str, Budget] = {}
    faults: list[str] = []
    for name, given in budgets.items():
        budget = given if isinstance(given, Budget) else Budget(given)
        problems = _budget_faults(name, budget, features)
        faults += [f"budgets.{name}{p}" for p in problems]
        if not problems:
            own = None if budget.cost == "count" else {name: 1.0}
            settled[name] = Budget(float(budget.amount), dict(budget.uses) if budget.uses else own, budget.cost)
    return settled, faults


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _budget_faults(name: str, budget: Budget, features: tuple[str, ...]) -> list[str]:
    faults = []
    if not _is_number(budget.amount) or (isinstance(budget.amount, int) and budget.amount > sys.float_info.max):
        faults.append(f" = {shown(budget.amount)}: must be a number >= 0; inf for no limit.")
    elif math.isnan(budget.amount) or budget.amount < 0:
        faults.append(f" = {budget.amount}: must be >= 0. Use 0 to freeze the feature, inf for no limit.")
    if budget.cost not in COSTS:
        return [*faults, f".cost = {shown(budget.cost)}: must be 'squared', 'absolute' or 'count'."]
    if budget.cost == "count":
        if budget.uses:
            faults.append(".uses: a count budget counts people and uses no features. Leave `uses` out.")
        return faults
    if not budget.uses:
        if name not in features:
            faults.append(
                f": no feature is called {name!r}.{did_you_mean(name, features)} A budget of another name says which "
                "features use it."
            )
        return faults
    for feature, weight in budget.uses.items():
        if feature not in features:
            faults.append(f".uses.{feature}: no feature is called {feature!r}.{did_you_mean(feature, features)}")
        if not _is_number(weight) or not 0 <= weight < math.inf:
            faults.append(f".uses.{feature} = {shown(weight)}: must be a finite number >= 0.")
    return faults


def _read_worth(worth: Any, cohort: Cohort) -> tuple[Floats, list[str]]:
    n = len(cohort)
    if worth is None:
        return np.ones(n), []
    try:
        listed_worth = [worth[i] for i in cohort.ids] if isinstance(worth, Mapping) else in_cohort_order(worth, cohort)
        values = np.array(listed_worth, dtype=np.float64)
    except (TypeError, ValueError, KeyError) as error:
        return np.ones(n), [f"worth: {error!r}; wanted one number >= 0 per sample."]
    if values.shape != (n,):
        return np.ones(n), [f"worth: shape {values.shape}; wanted one number per sample, ({n},)."]
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    return values, [f"worth: {cohort.where(j)}: {values[j]}; must be a finite number >= 0." for j in bad.tolist()]


def _read_ids(name: str, ids: Iterable[str | int] | None, cohort: Cohort) -> tuple[Rows, list[str]]:
    if isinstance(ids, str):
        return np.empty(0, np.int64), [f"{name}: got the text {ids!r}; wanted a list of ids."]
    texts = [] if ids is None else [str(i) for i in ids]
    unknown = [t for t in texts if t not in cohort.row_of] if texts else []
    faults = [f"{name}: no sample has the id {t!r}.{did_you_mean(t, cohort.ids[:1000])}" for t in unknown]
    rows = sorted({cohort.row_of[t] for t in texts if t not in unknown}) if texts else []
    return np.array(rows, dtype=np.int64), faults


def _overflow_faults(cohort: Cohort, classifier: Classifier) -> list[str]:
    largest = torch.finfo(classifier.dtype).max
    cells = np.argwhere(np.abs(cohort.values) > largest)
    return [
        f"{cohort.source}: column {cohort.features[i]!r}, {cohort.where(int(j))}: {cohort.values[j, i]:.6g} "
        f"is beyond the model's {str(classifier.dtype).removeprefix('torch.')}, whose largest number is {largest:.6g}."
        for j, i in cells
    ]


def _notices(cohort: Cohort, weighed: set[str], limits: Limits) -> list[str]:
    notices = []
    if cohort.ignored:
        notices.append(f"{cohort.source}: columns that are no features are ignored: {', '.join(cohort.ignored)}.")
    whole = [n for n in cohort.whole_features if n in weighed]
    if whole:
        notices.append(f"Whole-number columns may change by fractions: {', '.join(whole)}.")
    widened = limits.widened(cohort.values)
    if widened:
        cells = ", ".join(f"{cohort.features[i]} {count}" for i, count in widened.items())
        notices.append(f"Start values outside their limits widen them for that sample: {cells}.")
    spread = np.ptp(cohort.values, axis=0)
    moving = spread[spread > 0]
    if len(moving) and moving.max() > SAFE_RATIO * moving.min():
        small, large = (cohort.features[int(np.flatnonzero(spread == v)[0])] for v in (moving.min(), moving.max()))
        notices.append(
            f"Ranges differ by more than 1e8 ({small!r}: {moving.min():.2g}, {large!r}: {moving.max():.2g}); "
            "flips of the smaller ones may be found less exactly. Consider other units."
        )
    return notices
