"""Problem: what is asked. Immutable, validated once with every fault listed, independent of solvers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip._util.faults import Fault, about, wrong
from maxflip._util.frozen import Frozen, read_only
from maxflip._util.messages import counted
from maxflip._util.parallel import filled
from maxflip._util.types import Floats, Mask, Rows
from maxflip.data.cohort import Cohort, as_cohort
from maxflip.data.derived import Derived
from maxflip.data.inputs import Inputs
from maxflip.data.layout import Layout
from maxflip.data.slots import Slots
from maxflip.errors import ProblemError
from maxflip.models import Classifier, LinearForm, Rounding, guard_of, probe
from maxflip.problem.actions import Action
from maxflip.problem.arguments import (
    check_classifier,
    overflow_faults,
    read_functions,
    read_picks,
    read_target,
    read_worth,
    rows_to_try,
    spread_for,
)
from maxflip.problem.bill import Bill
from maxflip.problem.budget_functions import FunctionCost, as_squares
from maxflip.problem.budgets import Budget
from maxflip.problem.describe import html_of
from maxflip.problem.facts import Facts
from maxflip.problem.few import Few, most_changes_faults, tidy_faults
from maxflip.problem.goal import Goal
from maxflip.problem.grid import Grid
from maxflip.problem.ledger import Ledger, Weights
from maxflip.problem.limit import Limit, are_observed
from maxflip.problem.limits import Limits, read_limits
from maxflip.problem.menu import Menu, read_menu
from maxflip.problem.must_hold import Requirement, Scenarios, read_must_hold, scenarios_of, steps_of, twice_stepped
from maxflip.problem.quotas import Quota, Quotas, read_quotas
from maxflip.problem.relations import notices_of
from maxflip.problem.sanity import input_notices
from maxflip.problem.terms import Terms, read_terms, with_replaced
from maxflip.problem.through_trees import faults_of_trees

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
            "observed" for all: the cohort's own range; {feature: Limit(...)}: these, a direction, whole steps and the
            smallest change; None: none. An action that would lead a feature out of its limits is closed to that person.
        directions: {feature: "up" or "down"}: the only way it may go; None: both.
        steps: of sequences, where a value may change: "all"; "last 3" (or another number) of each; or a mask per
            sample, (T_j,) or (T_j, F). What was not measured never changes. None: all, and a notice says so.
        worth: one number >= 0 per sample, (n,), or {id: number}; None: 1 each.
        thrift: {budget: weight >= 0}: among plans of equal worth, the one with the least sum of weight x share spent is
        sought. The sum is over the finite budgets; budgets that are not named have weight 1.
        tidy: whether changes are dropped that a flip can do without, for at most 1 % more of its cost in all, as far as
            the budgets pay for that. The same samples are picked.
        include: ids that must be picked; those in the wanted class already are left alone.
        exclude: ids that must never be picked.
        quotas: a list of Quota((column, value), at_least=..., at_most=...): how many of those picked belong to a group,
            as people (int) or as a share of those picked (float). None: any number.
        actions: a list of Action(...): what can be done to a person as a whole.
        most_actions: so many actions at most per person; None: 1.
        choices: {category: {value: distance}}: a switch to another value, which draws weight x distance from the
            budgets that use the category; "basic -> pro" as the value: a switch from this one alone. A category is a
            feature that holds numbers as codes, or a name of `one_hot`.
        one_hot: {category: [features]}, of which one is 1 and the others are 0; made from a column of texts as
            Cohort.table makes them. None: those of the Cohort.
        most_changes: features of a sample that may change, at most; None: all of them. A category counts as one and
            actions do not count. Of sequences, a feature may change in any number of steps.
        must_hold: a list of Uptake(share) and Rounded({feature: step}), at most one of each: flips must also pass when
            changes are carried out like that. None: the full change alone counts.
        derived: {feature: expression}, such as {"pulse_pressure": "systolic - diastolic"}: features that follow from
            others and are computed anew after every change. They have no budget and no limits of their own.

    The program, for n samples of K slots each (the features of a table, or those values of a sequence that may change):

        max sum_j v_j z_j   s.t.  sum_j z_j a_r(d_j) <= B_r,   confidence(x_j + d_j) >= required where z_j = 1,
                                  x_j + d_j inside its limits and on its grid,   z_j in {0, 1}
                                  d_j changes at most `most_changes` features,
                                  sum_j c_qj z_j <= b_q for every quota q
                                  the same confidence at x_j + c(d_j) for every scenario c of `must_hold`

    Actions and switches are levers: slots behind those of the features, with d = 1 where they are on. They act on x_j
    before the changes of features are added, and these must stay inside the limits too.

        d_j: the change of sample j, (K,)   x: start, (n, K)   v: worth, (n,)   B, a: ledger
        x_j + d_j: with derived features as they follow from the others then
        confidence, required: goal   include, exclude: row numbers   c, b: coefficients and amounts of quotas
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
    menu: Menu
    grid: Grid  # steps of `limits` and of `must_hold`, and smallest changes
    few: Few  # most_changes
    observed: bool  # limits are "observed" for all features that draw on a budget, whichever these are
    worth: Floats
    thrift: Mapping[str, float]  # by budget; 1 where it is not named
    tidy: bool
    include: Rows
    exclude: Rows
    quotas: Quotas
    scenarios: Scenarios  # of must_hold
    derived: Derived
    rounding: tuple[Rounding, ...]  # of each member, as the probe saw it
    guard: float  # a flip must pass by this much more than asked: rounding differs between batch sizes
    notices: tuple[str, ...]
    lasting_notices: tuple[str, ...]  # those of them that hold for any budgets, margin and threshold
    facts: Facts

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
        tidy: bool = True,
        include: Iterable[str | int] | None = None,
        exclude: Iterable[str | int] | None = None,
        quotas: Quota | Sequence[Quota] | None = None,
        most_changes: int | None = None,
        must_hold: Requirement | Sequence[Requirement] | None = None,
        actions: Sequence[Action] | None = None,
        most_actions: int | None = None,
        choices: Mapping[str, Mapping[Any, float]] | None = None,
        one_hot: Mapping[str, Sequence[str]] | None = None,
        derived: Mapping[str, str] | None = None,
    ) -> None:
        check_classifier(classifier)
        people = as_cohort(cohort, features, units, one_hot)
        classifier.check_features(people.features)
        following, derived_faults = Derived.read(derived, people.features)
        names = derived.keys() if isinstance(derived, Mapping) else ()
        menu, menu_faults = read_menu(actions, most_actions, choices, one_hot, people, budgets=budgets, derived=names)
        with_levers = menu.with_levers(people)
        terms, faults = read_terms(
            classifier,
            with_levers,
            menu,
            budgets=budgets,
            thrift=thrift,
            margin=margin,
            threshold=threshold,
            derived=names,
        )
        faults = [*menu_faults, *([] if menu_faults else faults)]
        faults += [*derived_faults, *following.start_faults(people.values, people.features, people.where_in)]
        # An action that is wrong may be the one that a feature was to be changed by.
        changeable = frozenset(people.features) if menu_faults else terms.changeable & set(people.features)
        boundaries, asked, more = read_limits(
            limits, directions, people, changeable, names, by_actions=menu.changed_by_actions
        )
        faults += more
        values, of_worth = read_worth(worth, people)
        faults += of_worth
        picked, barred, more = read_picks(include, exclude, people)
        faults += more
        groups, more = read_quotas(quotas, people, barred)
        faults += more
        allowed, more = people.layout.read_steps(steps, people.where)
        faults += [*more, *people.layout.classifier_faults(classifier)]
        requirements, more = read_must_hold(must_hold, people.features, changeable, names)
        stepped = {name for name, limit in asked.items() if limit.step is not None}
        faults += [*more, *twice_stepped(requirements, stepped), *most_changes_faults(most_changes), *tidy_faults(tidy)]
        faults += overflow_faults(people, classifier)
        faults += faults_of_trees(classifier, people.features, terms.drawing - menu.names, names, requirements)
        if faults:
            raise ProblemError(faults)

        doubts = input_notices(classifier, people)
        people, features_only = with_levers, people
        slots = people.layout.slots([people.features.index(name) for name in terms.drawing], allowed)
        sample = people.layout.trial(slots, people.order, classifier.batch_size)
        probed = probe(classifier, sample, people.where, terms.required)
        wanted, distributions, target_faults = read_target(target, people, probed.classes, classifier.classes)
        set_field = partial(object.__setattr__, self)
        set_field("classifier", classifier)
        set_field("cohort", people)
        set_field("slots", slots)
        set_field("steps", people.layout.steps_in_words(steps))
        set_field("menu", menu)
        set_field("limits", slots.by_slot(boundaries.with_columns(len(people.features) - len(features_only.features))))
        set_field("grid", slots.by_slot(_grid(asked, requirements, people.features)))
        set_field("few", Few.of(most_changes, slots, menu))
        set_field("tidy", bool(tidy))
        set_field("observed", are_observed(limits))
        set_field("worth", read_only(values))
        set_field("include", read_only(picked))
        set_field("exclude", read_only(barred))
        set_field("quotas", groups)
        set_field("scenarios", scenarios_of(requirements, people.features, slots.feature, slots.is_lever))
        set_field("rounding", probed.rounding)
        set_field("derived", following)
        set_field("facts", Facts(classifier, people, following))
        set_field("lasting_notices", (*_notices(self, steps, terms), *probed.notices, *doubts))
        self._set_terms(terms, Goal(wanted, 0.0, False, distributions, classifier.is_decision), [*target_faults])

    def changed(
        self,
        *,
        budgets: Mapping[str, float | Budget] | None = None,
        margin: float | None = None,
        threshold: float | None = None,
    ) -> Problem:
        """The same question with these budgets replaced, or another margin or threshold. The model is not probed again.

        A budget keeps all but its amount where only a number is given. What is new is checked as in a new
        Problem. Limits that are "observed" for all are those of the features that draw on the new budgets.
        """
        if margin is None and threshold is None:
            required = self.goal.required
            margin, threshold = (None, required) if self.goal.is_threshold else (required, None)
        replaced, faults = with_replaced(self.budgets, budgets)
        terms, more = read_terms(
            self.classifier,
            self.cohort,
            self.menu,
            budgets=replaced,
            thrift=self.thrift,
            margin=margin,
            threshold=threshold,
            derived=self.derived.texts.keys(),
        )
        faults += more
        faults += [
            about(
                "budgets",
                f"the feature {name!r} draws on no budget of this problem, so it has no place for changes. Make a new "
                "Problem.",
            )
            for name in sorted(terms.drawing)
            if not self.slots.has_room_for(self.cohort.features.index(name))
        ]
        limits = self.limits
        if self.observed:
            changeable = terms.drawing - self.levers
            boundaries, _, unmeasured = read_limits(
                "observed", None, self.cohort, changeable, by_actions=self.menu.changed_by_actions
            )
            faults += unmeasured
            limits = replace(self.slots.by_slot(boundaries), direction=limits.direction)
        if faults:
            raise ProblemError(faults)
        other = self._copy()
        object.__setattr__(other, "limits", limits)
        other._set_terms(terms, self.goal, [])
        return other

    def restricted(self, rows: Rows, share: float) -> Problem:
        """The same question about these rows alone, with a share of every budget."""
        other = self.changed(budgets={name: replace(b, amount=share * b.amount) for name, b in self.budgets.items()})
        outside = np.setdiff1d(np.arange(len(self)), rows)
        object.__setattr__(other, "exclude", read_only(np.union1d(self.exclude, outside)))
        object.__setattr__(other, "include", read_only(np.intersect1d(self.include, rows)))
        return other

    def after_levers(self, rows: Rows, levers: Floats | None) -> Floats:
        """(B, K): where the samples `rows` stand after changes (B, K) of levers alone; None: at their start"""
        if levers is None:
            return self.start[rows]
        base, width = self.slots.base(rows, levers), self.cohort.layout.width
        base[:, :width] = self.derived.after(self.cohort.values[rows, :width], base[:, :width])
        return base

    def _copy(self) -> Problem:
        """A copy without the cached properties, some of which depend on the budgets and the goal."""
        other = object.__new__(Problem)
        for part in fields(self):
            object.__setattr__(other, part.name, getattr(self, part.name))
        return other

    def _set_terms(self, terms: Terms, goal: Goal, faults: list[str | Fault]) -> None:
        """Set these terms (budgets, thrift, required confidence): the last step of building a problem.

        goal: its wanted classes   faults: those known so far; with those found here they become one ProblemError
        """
        guard, rounding_notices = guard_of(self.rounding, terms.required)
        if not self.classifier.is_decision and terms.required + 2 * guard >= 1.0:
            name = "threshold" if terms.is_threshold else "margin"
            says = f"is too close to 1: the model's rounding needs a guard of {guard:.2g}. Ask for less."
            faults.append(wrong(name, terms.required, says))
        if faults:
            raise ProblemError(faults)
        functions = read_functions(terms.budgets, self.cohort, self.limits)
        set_field = partial(object.__setattr__, self)
        set_field("goal", replace(goal, required=terms.required, is_threshold=terms.is_threshold))
        set_field("budgets", terms.budgets)
        set_field("ledger", self.slots.by_slot(Ledger.compile(terms.budgets, self.cohort.features)))
        set_field("functions", functions)
        set_field("thrift", terms.thrift)
        set_field("guard", guard)
        own = _notices_of_changeable(self, terms.drawing), rounding_notices, _function_notices(functions)
        set_field("notices", (*self.lasting_notices, *chain(*own)))

    def __repr__(self) -> str:
        people = counted(len(self), self.cohort.layout.noun)
        size = f"{people} x {counted(self.cohort.layout.width, 'feature')}"
        return f"Problem({size}, budgets: {', '.join(self.budgets)})"

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

    @property
    def thrift_prices(self) -> Floats:
        """(m,): thrift weight / amount, at which a change costs its weighted sum of shares; 0 for budgets without an
        amount"""
        has_amount = np.isfinite(self.ledger.amounts) & (self.ledger.amounts > 0)
        return np.where(has_amount, self.thrift_weights / np.where(has_amount, self.ledger.amounts, 1.0), 0.0)

    @cached_property
    def actionable(self) -> NDArray[np.int64]:
        """Slots that may change."""
        return np.flatnonzero(self.may_move)

    @cached_property
    def may_move(self) -> NDArray[np.bool_]:
        """(K,): features that draw on a budget, and levers; but for those that draw on an empty one"""
        return self.ledger.actionable | (self.slots.is_lever & ~self.ledger.forbidden)

    @property
    def limited(self) -> NDArray[np.int64]:
        """Slots of features for which limits count: of those that may change by amounts, and of those of actions."""
        features, changed = self.cohort.features, self.menu.changed_by_actions
        by_actions = np.array([features[i] in changed for i in self.slots.feature.tolist()], dtype=bool)
        return np.flatnonzero((self.may_move & ~self.is_lever) | by_actions)

    @property
    def is_lever(self) -> NDArray[np.bool_]:
        """(K,)"""
        return self.slots.is_lever

    @property
    def levers(self) -> frozenset[str]:
        """Names of the actions and switches"""
        return self.menu.names

    @property
    def has_free_changes(self) -> bool:
        """Whether some feature may change by any amount, and not by levers alone."""
        return bool((self.may_move & ~self.is_lever).any())

    @cached_property
    def spread(self) -> Floats:
        """(A,): spread (standard deviation) over the cohort of the feature of each actionable slot"""
        return self.spread_over(self.cohort.order)

    def spread_over(self, rows: Rows) -> Floats:
        """(A,): the same over some samples"""
        return self.cohort.layout.spread(rows, self.slots.feature[self.actionable])

    def inputs(
        self,
        rows: Rows,
        device: torch.device,
        columns: Rows,
        size: int | None = None,
        levers: Floats | None = None,
    ) -> Inputs:
        """What the model sees of these rows as a function of changes of the slots `columns`.

        size: rows of a table that it is asked about at a time; None: all. Of sequences: a batch of them.
        levers (B, K): changes of levers, which come first; None: none
        """
        layout = self.cohort.layout
        if levers is not None:
            layout, rows = replace(layout, values=self.after_levers(rows, levers)), np.arange(len(rows))
        return layout.inputs(
            self.slots,
            rows,
            columns,
            device,
            size=size,
            batch_size=self.classifier.batch_size,
            derived=self.derived,
        )

    def after(self, rows: Rows, changes: Floats) -> Layout:
        """The samples `rows` alone after these changes (c, K), with what follows from them: what the model sees.

        Its `values` are (c, F) of a table; of sequences they have a row per step, NaN where nothing was measured.
        """
        places = self.cohort.layout.places(self.slots, rows)
        return self.cohort.layout.moved(rows, places.whole(changes, len(self.cohort.features)), self.derived)

    def follows(self, rows: Rows, changes: Floats) -> Mask:
        """(c,): whether all that follows from these changes (c, K) of the samples `rows` is finite"""
        found, columns = np.ones(len(rows), dtype=bool), self.derived.columns
        if len(columns) and len(rows):
            after = self.after(rows, changes)
            before = self.cohort.values[self.cohort.layout.rows_of(rows)]
            lost = ~np.isfinite(after.values[:, columns]) & ~np.isnan(before[:, columns])
            whose, _ = after.owners(np.flatnonzero(lost.any(axis=1)))
            found[whose] = False
        return found

    def batches(self, rows: Rows) -> Sequence[Rows | slice]:
        """Positions in `rows`, as many at a time as the model is asked about."""
        return self.cohort.layout.batches(rows, self.classifier.batch_size)

    def chunks(self, rows: Rows, size: int) -> list[Rows]:
        """Consecutive rows in chunks of at most `size`; for sequences (sorted by length) of at most one batch."""
        return self.cohort.layout.chunks(rows, size, self.classifier.batch_size)

    @property
    def linear(self) -> tuple[LinearForm, ...] | None:
        """The linear form of each member, if all members have a linear structure and their outputs agree with it."""
        return self.facts.linear

    @cached_property
    def as_squares(self) -> Floats:
        """(m, F): for budgets that are functions, weights with which squared changes approximate the function; else 0.
        The search for cheap flips uses these weights; what a flip draws is computed by the function."""
        weights = np.zeros(self.ledger.draws.shape)
        if self.functions:
            rows = rows_to_try(self.cohort)
            both, ways = np.tile(rows, 2), np.repeat([1.0, -1.0], len(rows))[:, None]
            spread = spread_for(self.functions, self.cohort)
            coarse = np.maximum(np.where(self.grid.is_rule, self.grid.step, 0.0), self.grid.smallest)
            trials = self._each_settled(both, ways * np.where(spread > 0, np.maximum(spread, coarse), 0.0))
            for r, function in zip(self.ledger.functions, self.functions, strict=True):
                weights[r] = as_squares(function, self.cohort.values[both], trials)
        return weights

    def weights(self, rows: Rows | None = None) -> Weights:
        """With which the search for flips prices changes of the actionable slots of these samples; None: of any, where
        all draw alike. Of a function, the squared budget most like it (`as_squares`)."""
        return self.ledger.weights(rows, self.as_squares).at(self.actionable)

    def bill(self, rows: Rows, changes: Floats) -> Bill:
        """What each of these changes (c, F) of the samples `rows` draws."""
        called = np.zeros((len(rows), len(self.functions)))
        for k, (r, function) in enumerate(zip(self.ledger.functions.tolist(), self.functions, strict=True)):
            inside = self.ledger.own.inside.get(r)
            own = slice(None) if inside is None else inside[rows]
            called[own, k] = function.alone(self.cohort.values[rows[own]], changes[own])
            for c in np.flatnonzero(called[:, k] < 0)[:1]:
                raise ProblemError(
                    f"{function.where} said {float(called[c, k])!r} for a change of "
                    f"{self.cohort.where(int(rows[c]))}; it must be >= 0."
                )
        return Bill(self.ledger, rows, changes, called)

    @property
    def is_boundless(self) -> bool:
        """Whether every actionable slot of every sample may change by any amount."""
        return self.limits.none and self.slots.are_all_filled and not self.ledger.closes and not self.is_lever.any()

    @cached_property
    def must_be_few(self) -> bool:
        """Whether fewer features may change at a time than may change at all."""
        return self.must_be_fewer_than_all(self.few.most)

    def must_be_fewer_than_all(self, most: int | None) -> bool:
        return most is not None and most < len(np.unique(self.slots.feature[self.actionable]))

    @property
    def is_smooth(self) -> bool:
        """Whether changes within the limits need not go by steps, be large or be few."""
        return self.grid.is_free and not self.must_be_few

    @property
    def has_rules(self) -> bool:
        """Whether some changes within the limits are not lawful: by steps, size or number of features."""
        return self.grid.has_rules or self.must_be_few

    @cached_property
    def per_spread(self) -> Floats:
        """(K,): 1 / spread of the slots that may change; inf for levers, 0 for others"""
        weight = np.where(self.is_lever, np.inf, 0.0)
        weight[self.actionable] = 1.0 / self.spread
        return weight

    def box(self, rows: Rows, levers: Floats | None = None) -> tuple[Floats, Floats]:
        """(B, K) smallest and largest change of each slot: 0 for frozen and absent ones, and low <= 0 <= high.

        Levers are 0 too: no search changes them by amounts.   levers (B, K): those that come first; None: none
        """
        return self._box_from(self.after_levers(rows, levers), rows)

    def _box_from(self, base: Floats, rows: Rows) -> tuple[Floats, Floats]:
        low, high = self.limits.box(base, rows)
        frozen = ~self.may_move | self.is_lever
        low[:, frozen] = high[:, frozen] = 0.0
        if self.ledger.closes:
            up, down = self.closed(rows)
            high[up] = low[down] = 0.0
        self.slots.clear_absent(rows, low, high)
        return low, high

    def closed(self, rows: Rows) -> tuple[Mask, Mask]:
        """(B, K) twice: what these samples may not change upwards, and downwards, because of their budgets"""
        up, down = self.ledger.closed(rows)
        is_free = self.is_lever & ~self.ledger.draws.any(axis=0)  # an action that draws on nothing
        return up & ~is_free, down & ~is_free

    def settle(self, rows: Rows, changes: Floats) -> Floats:
        """Changes as they may be stored: x + change inside the limits and on the grid, frozen ones exactly +0.0.

        Values that `must_hold` rounds become the multiples of their steps that they would be rounded to.
        """
        return filled(lambda part: self._settled(rows[part], changes[part]), changes.shape)

    def _settled(self, rows: Rows, changes: Floats) -> Floats:
        return self.few.settled(self._each_settled(rows, changes), self.per_spread)

    def _each_settled(self, rows: Rows, changes: Floats) -> Floats:
        """The same of each slot, however many features change."""
        if self.is_boundless and self.grid.is_free:
            return np.where(self.may_move, changes, 0.0) + 0.0  # -0.0 becomes 0.0
        base = self.slots.base(rows, changes)
        low, high = self._box_from(base, rows)
        inside = self.limits.settle(base, np.clip(changes, low, high), rows)
        if not self.grid.is_free:
            inside = self.grid.settled(base, inside, low, high, lambda d: self.limits.settle(base, d, rows))
        return np.where(self.is_lever & self.may_move, changes, inside) + 0.0


def _grid(limits: Mapping[str, Limit], requirements: Sequence[Requirement], features: Sequence[str]) -> Grid:
    steps = {name: float(limit.step) for name, limit in limits.items() if limit.step is not None}
    smallest = {name: float(limit.smallest) for name, limit in limits.items() if limit.smallest is not None}
    return Grid.of(features, steps, smallest, steps_of(requirements))


def _function_notices(functions: Sequence[FunctionCost]) -> list[str]:
    return [
        f"Budget {cost.budget!r} counts what {cost.name} says of each sample alone, in float64; the sum of these "
        "numbers is decided exactly."
        for cost in functions
    ]


def _notices_of_changeable(problem: Problem, drawing: Collection[str]) -> list[str]:
    """drawing: features that draw on a budget"""
    notices, cohort = [], problem.cohort
    stepped = {cohort.features[i] for i in problem.slots.feature[problem.grid.step > 0].tolist()}
    whole = [n for n in cohort.whole_features if n in drawing and n not in stepped]
    if whole:
        notices.append(
            f"Whole-number columns may change by fractions: {', '.join(whole)}. If only whole numbers make sense, say "
            f"so: limits={{{whole[0]!r}: Limit(step=1)}} in Python, step = 1 in [limits.{whole[0]}] of a job."
        )
    free = [name for name in problem.menu.order if name not in drawing]
    if free:
        notices.append(
            f"Draw on no budget, so they are free: {', '.join(free)}. An action says in its `draws` what it takes; a "
            "switch draws on the budgets whose `uses` name its category."
        )
    without = sorted(set(drawing) - {cohort.features[i] for i in problem.slots.feature.tolist()})
    if without:
        notices.append(f"Nothing that may change was measured of: {', '.join(without)}.")
    moving = frozenset([*map(cohort.features.index, drawing), *problem.derived.columns.tolist()])
    notices += notices_of(problem.facts.relations(moving), cohort.features, moving)
    return notices


def _notices(problem: Problem, steps: Any, terms: Terms) -> list[str]:
    notices, cohort, features = [], problem.cohort, problem.cohort.features
    used = {column for budget in terms.budgets.values() for column in budget.columns}
    ignored = [name for name in cohort.ignored if name not in {*used, *problem.quotas.columns}]
    if ignored:
        notices.append(f"{cohort.source}: columns that are no features are ignored: {', '.join(ignored)}.")
    notices += cohort.layout.notices(steps, problem.classifier.dtype)
    outside = problem.limits.outside(problem.start)
    problem.slots.clear_absent(np.arange(len(cohort)), outside)
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
