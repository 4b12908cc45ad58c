"""Problem: what is asked. Frozen, validated once with every fault listed, ignorant of solvers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip._util.frozen import Frozen, FrozenMap, read_only
from maxflip._util.messages import counted, did_you_mean
from maxflip._util.parallel import filled
from maxflip._util.types import Floats, Rows
from maxflip.data.cohort import Cohort, as_cohort
from maxflip.data.inputs import Inputs, SequenceInputs, TableInputs, as_tensor, similar
from maxflip.data.scale import spread_of
from maxflip.data.sequences import Ragged
from maxflip.data.slots import Slots, read_steps, steps_in_words
from maxflip.errors import ProblemError
from maxflip.models import Classifier, LinearForm, Sample, chosen_rows, probe
from maxflip.problem.arguments import (
    check_classifier,
    features_that_draw,
    overflow_faults,
    read_budgets,
    read_functions,
    read_ids,
    read_target,
    read_thrift,
    read_worth,
    rows_to_try,
    size_faults,
    spread_for,
)
from maxflip.problem.budget_functions import FunctionCost, as_squares
from maxflip.problem.budgets import Bill, Budget, Ledger
from maxflip.problem.describe import html_of
from maxflip.problem.goal import Goal
from maxflip.problem.limits import Limits, read_limits
from maxflip.problem.must_hold import Requirement, Scenarios, read_must_hold, scenarios_of
from maxflip.problem.sanity import input_notices
from maxflip.problem.target import requirement_faults

AGREE_ON = 256  # samples on which a linear form is compared with the model
STEPS_PER_ROW = 4  # a batch of sequences has so many times as many steps as one of a table has rows
SAFE_RATIO = 1e8  # beyond this, columns of such different size make gradient steps ill-conditioned


@dataclass(frozen=True, eq=False, init=False)
class Problem(Frozen):
    """What is asked. All by keyword; every fault is listed in one ProblemError (or InputError, for the cohort's own).

    Args:
        classifier: TorchClassifier, SklearnClassifier, or an Ensemble or Tempered of them.
        cohort: a Cohort, or what Cohort.table takes: an array (n, F), tensor, nested list or frame.
        target: the wanted output column (1) or class name ("good"); a set: any of these; a list, array or Series:
            one per sample, (n,); an (n, k) array: label distributions, whose likeliest class is wanted.
        budgets: {name: amount or Budget}: a plain amount is the squared change of the feature of that name.
        features: names that pick and order a frame's columns, or name an array's (x0, x1, ...); None: all columns.
        units: {feature: unit}, for reports.
        margin: in [0, 1): p(wanted) - p(best other) must reach it; give this or threshold. Of decision values: any
            finite number >= 0, in their units.
        threshold: in (0, 1): p(wanted) must reach it.
        limits: {feature: (low, high)}, either side None, a number or one per sample, (n,); {feature: "observed"} or
            "observed" for all: the cohort's own range; None: none.
        directions: {feature: "up" or "down"}: the only way it may go; None: both.
        steps: of sequences, where a value may change: "all"; "last 3" (or another number) of each; or a mask per
            sample, (T_j,) or (T_j, F). What was not measured never changes. None: all, and a notice says so.
        worth: one number >= 0 per sample, (n,), or {id: number}; None: 1 each.
        thrift: {budget: weight >= 0}: of plans worth the same, the one with the least sum over finite budgets of
            weight x share spent is sought; budgets that are not named weigh 1.
        include: ids that must be picked; those in the wanted class already are left alone.
        exclude: ids that must never be picked.
        must_hold: a list of Uptake(share) and Rounded({feature: step}), at most one of each: flips must also pass when
            changes are carried out like that. None: the full change alone counts.

    The program, for n samples of K slots each (the features of a table, or those values of a sequence that may change):

        max sum_j v_j z_j   s.t.  sum_j z_j a_r(d_j) <= B_r,   confidence(x_j + d_j) >= required where z_j = 1,
                                  x_j + d_j inside its limits,   z_j in {0, 1}
                                  the same confidence at x_j + c(d_j) for every scenario c of `must_hold`

        d_j: the change of sample j, (K,)   x: start, (n, K)   v: worth, (n,)   B, a: ledger
        confidence, required: goal   include, exclude: row numbers
    """

    classifier: Classifier
    cohort: Cohort
    slots: Slots
    steps: str  # of sequences, which of them may change, in words; of a table, nothing
    goal: Goal
    budgets: Mapping[str, Budget]
    ledger: Ledger
    functions: tuple[FunctionCost, ...]  # of the budgets `ledger.functions`
    limits: Limits
    worth: Floats
    thrift: Mapping[str, float]  # by budget; 1 where it is not named
    include: Rows
    exclude: Rows
    scenarios: Scenarios  # of must_hold
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
        steps: Any = None,
        worth: Any = None,
        thrift: Mapping[str, float] | None = None,
        include: Iterable[str | int] | None = None,
        exclude: Iterable[str | int] | None = None,
        must_hold: Requirement | Sequence[Requirement] | None = None,
    ) -> None:
        check_classifier(classifier)
        people = as_cohort(cohort, features, units)
        classifier.check_features(people.features)
        faults = requirement_faults(margin, threshold, classifier.is_decision)
        settled, budget_faults = read_budgets(budgets, people.features)
        weighed = features_that_draw(settled)
        # A budget that is wrong may be the one that a feature was to draw on.
        changeable = set(people.features) if budget_faults else weighed
        boundaries, limit_faults = read_limits(limits, directions, people, changeable)
        values, worth_faults = read_worth(worth, people)
        weights, thrift_faults = read_thrift(thrift, settled)
        faults += budget_faults + limit_faults + worth_faults + ([] if budget_faults else thrift_faults)
        faults += classifier.frozen_faults(people.features, weighed)
        picked, pick_faults = read_ids("include", include, people)
        barred, bar_faults = read_ids("exclude", exclude, people)
        faults += pick_faults + bar_faults
        faults += [
            f"include, exclude: id {people.ids[j]!r} is in both. Keep it in one."
            for j in np.intersect1d(picked, barred)
        ]
        allowed, step_faults = read_steps(steps, people)
        faults += step_faults
        if people.ragged is not None:
            faults += classifier.sequence_faults(
                some_missing=bool(np.isnan(people.values).any()), static_features=people.ragged.static_features
            )
        requirements, hold_faults = read_must_hold(must_hold, people.features, changeable)
        faults += hold_faults
        faults += overflow_faults(people, classifier)
        faults += size_faults(people, weighed)
        if not budget_faults and not weighed:
            faults.append(
                "budgets: no feature draws on a budget, so nothing can change. Give at least one feature a budget."
            )
        if faults:
            raise ProblemError(faults)
        functions = read_functions(settled, people, boundaries)

        if people.ragged is None or allowed is None:
            slots = Slots.of_table(people)
        else:
            slots = Slots.of_sequences(people, people.ragged, weighed, allowed)
        settle = object.__setattr__
        settle(self, "classifier", classifier)
        settle(self, "cohort", people)
        settle(self, "slots", slots)
        settle(self, "steps", "" if people.ragged is None else steps_in_words(steps))
        required = float(threshold if threshold is not None else margin or 0.0)
        probed = probe(classifier, self._sample(), people.where, required)
        wanted, distributions, target_faults = read_target(target, people, probed.classes, classifier.classes)
        if not classifier.is_decision and required + 2 * probed.guard >= 1.0:
            target_faults.append(
                f"{required} is too close to 1: the model's rounding needs a guard of {probed.guard:.2g}."
            )
        if target_faults:
            raise ProblemError(target_faults)

        settle(self, "goal", Goal(wanted, required, threshold is not None, distributions, classifier.is_decision))
        settle(self, "budgets", FrozenMap(settled))
        settle(self, "ledger", self._ledger(settled))
        settle(self, "functions", functions)
        settle(self, "limits", boundaries if people.ragged is None else boundaries.at(slots.feature))
        settle(self, "worth", read_only(values))
        settle(self, "thrift", FrozenMap(weights))
        settle(self, "include", read_only(picked))
        settle(self, "exclude", read_only(barred))
        settle(self, "scenarios", scenarios_of(requirements, people.features, slots.feature))
        settle(self, "guard", probed.guard)
        doubts = input_notices(classifier, people)
        told = (*_notices(self, weighed, steps), *probed.notices, *doubts, *_function_notices(functions))
        settle(self, "notices", told)

    def changed(
        self,
        *,
        budgets: Mapping[str, float | Budget] | None = None,
        margin: float | None = None,
        threshold: float | None = None,
    ) -> Problem:
        """The same question with these budgets replaced, or another margin or threshold. The model is not probed again.

        A budget keeps its cost and what uses it where only a number is given.
        """
        faults = []
        known = dict(self.budgets)
        for name, given in (budgets or {}).items():
            if name not in known and not isinstance(given, Budget):
                faults.append(f"budgets: the problem has no budget {name!r}.{did_you_mean(str(name), known)}")
            elif isinstance(given, Budget):
                known[name] = given
            else:
                known[name] = Budget(given, known[name].uses, known[name].cost)
        settled, budget_faults = read_budgets(known, self.cohort.features)
        faults += budget_faults
        if self.cohort.ragged is not None:  # whose slots are those of features that may change
            faults += [
                f"budgets: the feature {name!r} draws on no budget of this problem, so it has no place for changes. "
                "Make a new Problem."
                for name in sorted(features_that_draw(settled) - features_that_draw(self.budgets))
            ]
        goal = self.goal
        if margin is not None or threshold is not None:
            faults += requirement_faults(margin, threshold, goal.is_decision)
            if not faults:
                required = float(threshold if threshold is not None else margin or 0.0)
                goal = replace(goal, required=required, is_threshold=threshold is not None)
        if faults:
            raise ProblemError(faults)
        functions = read_functions(settled, self.cohort, self.limits)
        other = object.__new__(Problem)
        for part in fields(self):
            object.__setattr__(other, part.name, getattr(self, part.name))
        object.__setattr__(other, "goal", goal)
        object.__setattr__(other, "budgets", FrozenMap(settled))
        object.__setattr__(other, "ledger", self._ledger(settled))
        object.__setattr__(other, "functions", functions)
        told = [notice for notice in self.notices if notice not in _function_notices(self.functions)]
        object.__setattr__(other, "notices", (*told, *_function_notices(functions)))
        return other

    def restricted(self, rows: Rows, share: float) -> Problem:
        """The same question about these rows alone, with a share of every budget."""
        other = self.changed(budgets={name: replace(b, amount=share * b.amount) for name, b in self.budgets.items()})
        outside = np.setdiff1d(np.arange(len(self)), rows)
        object.__setattr__(other, "exclude", read_only(np.union1d(self.exclude, outside)))
        object.__setattr__(other, "include", read_only(np.intersect1d(self.include, rows)))
        return other

    def _ledger(self, budgets: Mapping[str, Budget]) -> Ledger:
        ledger = Ledger.compile(budgets, self.cohort.features)
        return ledger if self.cohort.ragged is None else ledger.at(self.slots.feature)

    def _sample(self) -> Sample:
        """What the model is tried on."""
        if self.cohort.ragged is None:
            return Sample.of_table(self.cohort.values, self.cohort.order)
        # By length, the shortest and the longest among them: else it may happen that padding is never tried.
        rows = self.cohort.order[chosen_rows(len(self))]
        everywhere = np.arange(self.width)
        size = float(np.nanmax(np.abs(self.cohort.values), initial=0.0))
        step = self._spread_of_features(self.cohort.ragged, self.cohort.order)[self.slots.feature]
        return Sample(lambda device: self.inputs(rows, device, everywhere), rows, step, size)

    def __repr__(self) -> str:
        budgets = ", ".join(self.budgets)
        kind = "samples" if self.cohort.ragged is None else "sequences"
        return f"Problem({len(self.cohort)} {kind} x {len(self.cohort.features)} features, budgets: {budgets})"

    def _repr_html_(self) -> str:
        return html_of(self)

    def __len__(self) -> int:
        return len(self.cohort)

    @property
    def start(self) -> Floats:
        """(n, K): the values in the slots, before any change"""
        return self.slots.start

    @property
    def width(self) -> int:
        """K"""
        return len(self.slots)

    @cached_property
    def thrift_weights(self) -> Floats:
        """(m,): of the budgets"""
        return np.array([self.thrift.get(name, 1.0) for name in self.ledger.names])

    @cached_property
    def actionable(self) -> NDArray[np.int64]:
        """Slots that may change."""
        return np.flatnonzero(self.ledger.actionable)

    @cached_property
    def spread(self) -> Floats:
        """(A,): over the cohort, of the feature of each actionable slot"""
        return self.spread_over(self.cohort.order)

    def spread_over(self, rows: Rows) -> Floats:
        """(A,): the same over some samples"""
        if self.cohort.ragged is None:
            return spread_of(self.cohort.values[np.ix_(rows, self.actionable)])
        return self._spread_of_features(self.cohort.ragged, rows)[self.slots.feature[self.actionable]]

    def _spread_of_features(self, ragged: Ragged, rows: Rows) -> Floats:
        """(F,): over all values measured in these sequences"""
        values = self.cohort.values[ragged.rows_of(rows)]
        measured = (values[~np.isnan(values[:, i]), i] for i in range(values.shape[1]))
        return np.array([float(spread_of(v[:, None])[0]) if len(v) else 1.0 for v in measured])

    def inputs(self, rows: Rows, device: torch.device, columns: Rows, size: int | None = None) -> Inputs:
        """What the model sees of these rows as a function of changes of the slots `columns`.

        size: rows of a table that it is asked about at a time; None: all. Of sequences: a batch of them.
        """
        if self.cohort.ragged is None:
            values = self.cohort.values
            x = filled(lambda part: values[rows[part]], (len(rows), values.shape[1]))
            return TableInputs(as_tensor(x, device), torch.as_tensor(columns, device=device), size)
        return SequenceInputs(
            self.cohort.values, self.cohort.ragged, self.slots, rows, columns, device, self._steps_of_a_batch
        )

    @property
    def _steps_of_a_batch(self) -> int:
        return STEPS_PER_ROW * self.classifier.batch_size

    def batches(self, rows: Rows) -> Sequence[Rows | slice]:
        """Positions in `rows`, as many at a time as the model is asked about."""
        if self.cohort.ragged is not None:
            return similar(self.cohort.ragged.lengths[rows], self._steps_of_a_batch)
        size = self.classifier.batch_size
        return [slice(begin, begin + size) for begin in range(0, len(rows), size)]

    def chunks(self, rows: Rows, size: int) -> list[Rows]:
        """Consecutive rows, at most `size` together; of sequences, which come by length, as many as make a batch."""
        if self.cohort.ragged is None:
            return [rows[begin : begin + size] for begin in range(0, len(rows), size)]
        lengths, found, end = self.cohort.ragged.lengths[rows], [], len(rows)
        while end:
            begin = max(0, end - min(size, max(1, self._steps_of_a_batch // int(lengths[end - 1]))))
            found.append(rows[begin:end])
            end = begin
        return found[::-1]

    @cached_property
    def linear(self) -> tuple[LinearForm, ...] | None:
        """The linear form of each member, where the structure of all shows one and their answers agree with it."""
        if self.cohort.ragged is not None:
            return None
        forms = []
        x = torch.tensor(self.cohort.values[self.cohort.order[:: max(1, len(self) // AGREE_ON)]])
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
            # A model in another dtype rounds its input, by any amount for large values.
            forms.append(form if member.dtype == torch.float64 else replace(form, noise=None))
        return tuple(forms)

    @cached_property
    def as_squares(self) -> Floats:
        """(m, F): weights under which squared changes draw about what the function of a budget says, 0 for others. A
        search for cheap flips goes by these; what a flip draws is decided by the function."""
        weights = np.zeros(self.ledger.draws.shape)
        if self.functions:
            rows = rows_to_try(self.cohort)
            both, ways = np.tile(rows, 2), np.repeat([1.0, -1.0], len(rows))[:, None]
            steps = self.settle(both, ways * spread_for(self.functions, self.cohort))
            for r, function in zip(self.ledger.functions, self.functions, strict=True):
                weights[r] = as_squares(function, self.cohort.values[both], steps)
        return weights

    def bill(self, rows: Rows, changes: Floats) -> Bill:
        """What each of these changes (c, F) of the samples `rows` draws."""
        called = np.zeros((len(rows), len(self.functions)))
        for k, function in enumerate(self.functions):
            called[:, k] = function.alone(self.cohort.values[rows], changes)
            for c in np.flatnonzero(called[:, k] < 0)[:1]:
                raise ProblemError(
                    f"{function.where} said {float(called[c, k])!r} for a change of "
                    f"{self.cohort.where(int(rows[c]))}; it must be >= 0."
                )
        return Bill(self.ledger, changes, called)

    @property
    def is_boundless(self) -> bool:
        """Whether every actionable slot of every sample may change by any amount."""
        return self.limits.none and self.slots.step is None

    def box(self, rows: Rows) -> tuple[Floats, Floats]:
        """(B, K) smallest and largest change of each slot: 0 for frozen and absent ones, and low <= 0 <= high."""
        low, high = self.limits.box(self.start[rows], rows)
        frozen = ~self.ledger.actionable
        low[:, frozen] = high[:, frozen] = 0.0
        absent = self.slots.absent(rows)
        if absent is not None:
            low[absent] = high[absent] = 0.0
        return low, high

    def settle(self, rows: Rows, changes: Floats) -> Floats:
        """Changes as they may be stored: x + change inside the limits in float64, frozen ones exactly +0.0.

        Values that `must_hold` rounds become the multiples of their steps that they would be rounded to.
        """
        return filled(lambda part: self._settled(rows[part], changes[part]), changes.shape)

    def _settled(self, rows: Rows, changes: Floats) -> Floats:
        if self.is_boundless and self.scenarios.step is None:
            return np.where(self.ledger.actionable, changes, 0.0) + 0.0  # -0.0 becomes 0.0
        low, high = self.box(rows)
        inside = self.limits.settle(self.start[rows], np.clip(changes, low, high), rows)
        if self.scenarios.step is None:
            return inside
        on_grid = self.scenarios.onto_grid(self.start[rows], inside, low, high)
        return self.limits.settle(self.start[rows], on_grid, rows)


def _function_notices(functions: Sequence[FunctionCost]) -> list[str]:
    return [
        f"Budget {cost.budget!r} counts what {cost.name} says of each sample alone, in float64; the sum of these "
        "numbers is decided exactly."
        for cost in functions
    ]


def _notices(problem: Problem, weighed: set[str], steps: Any) -> list[str]:
    notices, cohort, features = [], problem.cohort, problem.cohort.features
    if cohort.ignored:
        notices.append(f"{cohort.source}: columns that are no features are ignored: {', '.join(cohort.ignored)}.")
    whole = [n for n in cohort.whole_features if n in weighed]
    if whole:
        notices.append(f"Whole-number columns may change by fractions: {', '.join(whole)}.")
    outside = problem.limits.outside(problem.start)
    absent = problem.slots.absent(np.arange(len(cohort)))
    if absent is not None:
        outside &= ~absent
        notices += _sequence_notices(problem, weighed, steps)
    if outside.any():
        counts = np.bincount(problem.slots.feature, weights=outside.sum(axis=0), minlength=len(features))
        cells = ", ".join(f"{features[i]} {int(counts[i])}" for i in np.flatnonzero(counts))
        notices.append(f"Start values outside their limits widen them for that sample: {cells}.")
    with np.errstate(over="ignore"):  # the range of a frozen column may be beyond float64: that is far enough
        spread = cohort.values.max(axis=0, initial=-np.inf, where=~np.isnan(cohort.values))
        spread = np.maximum(spread - cohort.values.min(axis=0, initial=np.inf, where=~np.isnan(cohort.values)), 0.0)
    moving = spread[spread > 0]
    if len(moving) and moving.max() / SAFE_RATIO > moving.min():
        small, large = (cohort.features[int(np.flatnonzero(spread == v)[0])] for v in (moving.min(), moving.max()))
        notices.append(
            f"Ranges differ by more than 1e8 ({small!r}: {moving.min():.2g}, {large!r}: {moving.max():.2g}); "
            "flips of the smaller ones may be found less exactly. Consider other units."
        )
    return notices


def _sequence_notices(problem: Problem, weighed: set[str], steps: Any) -> list[str]:
    notices, cohort = [], problem.cohort
    if steps is None:
        notices.append(
            "Values of all steps may change, those of the past too. Say steps='last 3', or whichever part can change; "
            "or steps='all'."
        )
    if cohort.ragged is not None:
        notices += _time_notices(cohort.ragged, problem.classifier.dtype)
    without = sorted(weighed - {cohort.features[i] for i in problem.slots.feature.tolist()})
    if without:
        notices.append(f"Nothing that may change was measured of: {', '.join(without)}.")
    return notices


def _time_notices(ragged: Ragged, dtype: torch.dtype) -> list[str]:
    """Steps whose times are one and the same once the model has rounded them, as seconds since 1970 are in float32."""
    rounded = torch.tensor(ragged.times).to(dtype).double().numpy()
    goes_on = ragged.owner[1:] == ragged.owner[:-1]
    lost = int((goes_on & (np.diff(ragged.times) > 0) & (np.diff(rounded) == 0)).sum())
    if not lost:
        return []
    return [
        f"Times as large as {np.abs(ragged.times).max():.6g} are rounded by the model's "
        f"{str(dtype).removeprefix('torch.')}: {counted(lost, 'step')} cannot be told in time from the one before. "
        "Count time from the beginning of each sequence."
    ]
