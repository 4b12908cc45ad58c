"""Plan: the complete answer, independent of model and solver. It can be read, saved and loaded on its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.messages import did_you_mean, shown
from maxflip._util.types import Floats, Rows
from maxflip.data.places import FullPlaces
from maxflip.errors import InputError
from maxflip.plan.bracket import Bracket, Ceiling, Offers, most_allowed, most_payable
from maxflip.plan.holds import Holds
from maxflip.plan.implied import Implied
from maxflip.plan.kept import KeptQuota, quotas_of
from maxflip.plan.pool import Pool, no_rows
from maxflip.plan.used import SolverUsed
from maxflip.problem.budgets import Budget
from maxflip.problem.ledger import Ledger
from maxflip.problem.menu import levers_in_words
from maxflip.problem.must_hold import Requirement
from maxflip.problem.question import Question

if TYPE_CHECKING:
    import pyarrow as pa

    from maxflip.problem.problem import Problem
    from maxflip.study.insight import Insight, People

Columns = Mapping[str, Sequence[Any]]
NUMBERS = (int, float, np.integer, np.floating)


class Fate(StrEnum):
    """The result for one sample; `meaning` states it in words."""

    ALREADY = "already"
    FLIPPED = "flipped"
    LEFT_OUT = "left_out"
    NOT_FOUND = "not_found"
    UNREACHABLE = "unreachable"
    UNUSABLE = "unusable"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Fate.ALREADY: "passes at the start",
    Fate.FLIPPED: "picked by the plan; passes after its change",
    Fate.LEFT_OUT: "a flip is known, but the plan does not pick it",
    Fate.NOT_FOUND: "no flip was found; there may be one",
    Fate.UNREACHABLE: "proved: no change within the limits and budgets flips it",
    Fate.UNUSABLE: "the model's output was not finite for it",
}


class Status(StrEnum):
    """How good the plan is known to be; `sentence` says it in words."""

    OPTIMAL = "optimal"
    OPEN = "open"
    FEASIBLE = "feasible"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Status.OPTIMAL: "Valid plan, and no plan can be worth more.",
    Status.OPEN: ("Valid plan; not proved to be the best. plan.gap is its distance to the bound or estimate."),
    Status.FEASIBLE: "Valid plan; its distance from the best possible is not known.",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """Which of n samples with F features to change, and how; `count` of them are flipped.

    Attributes:
        features: names, (F,).
        units: {feature: unit}.
        all_ids: ids (n,), in the order of the cohort.
        selected: row numbers of the samples flipped, ascending, (count,).
        moves: changes, (count, K); a table has one slot per feature, so K = F.
        before: values before the change, NaN where nothing changes, (count, K).
        fates: the Fate of each sample, (n,).
        worths: worth of each sample, (n,).
        confidence_before: confidence of each sample before any change, (n,).
        confidence_after: confidence of each flipped sample after its change, (count,).
        below_margin: number of samples whose most likely class is wanted at the start, but that do not pass.
        budgets: {name: Budget}, as given in the problem; fees and weights of each sample's own as arrays, (n,).
        spend: {budget: consumption of the plan}.
        prices: {budget: worth that one more unit would bring}; None if the solver has no prices.
        bound: proved upper bound of every plan's worth, or None.
        estimate: estimated worth of the best plan, not proved, or None.
        status: how good the plan is known to be.
        solver: the solver used: name, options, groups.
        seed: seed of the run.
        seconds: duration of the run.
        guard: every flip exceeds the required confidence by at least this much.
        places: where the slots lie: feature (K,); for sequences also step (count, K), -1 where one has no such slot,
            time (count, K), and lengths (count,), the numbers of steps.
        price_ranges: {budget: (lowest, highest amount at which its price is valid)}, for budgets where this is known.
        notices: warnings about the question, data or model.
        trace: solver progress, as columns.
        versions: of maxflip, Python, torch and numpy.
        question: wanted classes, required confidence, features that may change; None: not known.
        made: time of creation, ISO 8601.
        inputs: {"cohort", "model", "job": SHA-256 of the file}.
        include: row numbers of samples that must be picked.
        exclude: row numbers of samples that must not be picked.
        ceilings: bound or estimate as a function of the budgets, for `what_if`.
        needs: {budget: draw}: if nobody is picked, what the known flip that comes nearest to fitting draws of each
            budget that is too small for it; otherwise empty.
        pool: all flips that were found, including the picked ones; None for a plan saved without them.
        must_hold: scenarios in which flips must pass, besides the full change.
        quotas: each quota, how many of those picked belong to its group, and what it costs.
        holds: number of flips that still pass if changes are carried out in part or rounded; None: not known.
        implied: values of derived features that follow from the changes; None: there are no derived features.
    """

    features: tuple[str, ...]
    units: Mapping[str, str]
    all_ids: NDArray[np.object_]
    selected: NDArray[np.int64]
    moves: Floats
    before: Floats
    fates: NDArray[np.object_]
    worths: Floats
    confidence_before: Floats
    confidence_after: Floats
    below_margin: int
    budgets: Mapping[str, Budget]
    spend: Mapping[str, float]
    prices: Mapping[str, float] | None
    bound: float | None
    estimate: float | None
    status: Status
    solver: SolverUsed
    seed: int
    seconds: float
    guard: float
    places: FullPlaces
    price_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    trace: Columns = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    question: Question | None = None
    made: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    include: Rows = field(default_factory=no_rows)
    exclude: Rows = field(default_factory=no_rows)
    ceilings: tuple[Ceiling, ...] = ()
    needs: Mapping[str, float] = field(default_factory=dict)
    pool: Pool | None = field(default=None, repr=False)
    must_hold: tuple[Requirement, ...] = ()
    quotas: tuple[KeptQuota, ...] = ()
    holds: Holds | None = None
    implied: Implied | None = None

    def __post_init__(self) -> None:
        """Make arrays and mappings read-only; set the price of budgets without a limit to 0, if there are prices."""
        if self.prices is not None:
            free = {name: 0.0 for name, budget in self.budgets.items() if budget.amount == math.inf}
            object.__setattr__(self, "prices", {**self.prices, **free})
        for name, value in vars(self).copy().items():
            if isinstance(value, np.ndarray):
                view = value.view()
                view.setflags(write=False)
                object.__setattr__(self, name, view)
            elif isinstance(value, Mapping):
                object.__setattr__(self, name, MappingProxyType(dict(value)))

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy, which cannot handle read-only mappings."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain: dict[str, Any] = {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}
        return partial(Plan, **plain), ()

    @property
    def count(self) -> int:
        """Number of samples flipped."""
        return len(self.selected)

    @cached_property
    def worth(self) -> float:
        """Total worth of the samples flipped."""
        return math.fsum(self.worths[self.selected])

    @property
    def ids(self) -> NDArray[np.object_]:
        """Ids of the samples flipped, in the order of `selected`."""
        return self.all_ids[self.selected]

    @cached_property
    def changes(self) -> Any:  # an array, or a list of them
        """(count, F) over ALL features, 0 where nothing changes; for sequences, a list of (T_j, F)."""
        return self.places.whole(self.moves, len(self.features))

    @cached_property
    def levers(self) -> Mapping[str, str]:
        """{name of each action and switch among `features`: what it does, in words}"""
        return {} if self.question is None else levers_in_words(self.question.menu)

    @property
    def slot_features(self) -> NDArray[np.int64]:
        """(K,): the feature of each slot"""
        return self.places.feature

    @property
    def picked(self) -> Pool:
        """The flips of the selected samples."""
        return Pool(self.selected, self.moves, self.places)

    @cached_property
    def flips(self) -> Pool:
        """The flips of `picked`, followed by all others of the pool."""
        return self.picked if self.pool is None else Pool.union([self.picked, self.pool])

    def answers(self, problem: Problem) -> bool:
        """Whether the plan is of this problem, apart from the amounts of the budgets.

        Compares samples, worths, include, exclude, must_hold, goal and limits.
        """
        include, exclude = problem.include, problem.exclude
        return (
            np.array_equal(self.all_ids, problem.cohort.ids)
            and np.array_equal(self.worths, problem.worth)
            and np.array_equal(self.include, include)
            and np.array_equal(self.exclude, exclude)
            and self.must_hold == problem.scenarios.requirements
            and self.question == Question.of(problem)
        )

    def moves_in(self, problem: Problem) -> tuple[Rows, Floats]:
        """The plan's flips in the rows (c,) and slots (c, K) of the problem; samples are matched by id.

        Samples whose change needs a slot that the problem lacks are left out.
        """
        found, _ = self.picked.in_problem(problem, self.all_ids, self.features)
        return found.rows, found.changes

    @property
    def gap(self) -> float | None:
        """Upper bound (or estimate) minus this plan's worth; None without either."""
        ceiling = self.bound if self.bound is not None else self.estimate
        return None if ceiling is None else max(0.0, ceiling - self.worth)

    def what_if(self, more: Mapping[str, float]) -> Bracket:
        """Lower and upper bound of the best plan's worth if these budgets change by `more` (negative: less).

            at_least   worth of a feasible plan for the new budgets, built from known flips; 0 if none is known
            at_most    D(B + more) = rest + sum_r price_r (B_r + more_r), the bound (or the estimate) there, capped by
                       the total worth of all samples that can be flipped, and by fees and count budgets

        Neither falls when a budget grows; quotas stay as they are. Without changes, at_least is the plan's worth or
        more, and at_most its bound or estimate. `resolve` finds a plan worth at_least or more. All samples share every
        budget here, even if the plan was made with a proportional allocation.
        """
        amounts = self._amounts_with(more)
        at_least = math.fsum(self.worths[self.flips.rows[self.fitting(amounts)]])
        return Bracket(at_least, max(at_least, self.at_most(amounts)))

    def _amounts_with(self, more: Mapping[str, float]) -> dict[str, float]:
        if not isinstance(more, Mapping):
            raise InputError(f"what_if: got {shown(more)}; wanted {{budget: so much more}}.")
        unknown = [name for name in more if name not in self.budgets]
        if unknown:
            raise InputError([f"what_if: no budget is called {n!r}.{did_you_mean(n, self.budgets)}" for n in unknown])
        faults = [
            f"what_if.{n} = {shown(a)}: must be a finite number, and leave at least 0 of {self.budgets[n].amount:g}."
            for n, a in more.items()
            if isinstance(a, bool)
            or not isinstance(a, NUMBERS)
            or not math.isfinite(a)
            or self.budgets[n].amount + float(a) < 0
        ]
        if faults:
            raise InputError(faults)
        return {name: budget.amount + float(more.get(name, 0.0)) for name, budget in self.budgets.items()}

    def fitting(self, amounts: Mapping[str, float]) -> Rows:
        """Positions in `flips` of a plan within these amounts. Its worth never falls when an amount grows."""
        functions = [name for name, budget in self.budgets.items() if budget.is_function]
        # What a function draws for one flip is not known here. A subset of the picked flips draws no more than all.
        if any(amounts[name] < self.spend[name] or amounts[name] == 0 for name in functions):
            return no_rows()
        offers, orders = self._offers
        return offers.fitting(orders, np.array([amounts[name] for name in offers.ledger.names], dtype=np.float64))

    @cached_property
    def _offers(self) -> tuple[Offers, tuple[Rows, ...]]:
        """The flips, and the orders in which `fitting` takes them. Neither depends on the amounts."""
        plain = {name: budget for name, budget in self.budgets.items() if not budget.is_function}
        flips = self.flips if len(plain) == len(self.budgets) else self.flips.those(np.arange(self.count))
        ledger = Ledger.compile(plain, self.features)
        offers = Offers(
            flips.places.by_slot(ledger),
            flips.rows,
            self.worths[flips.rows],
            flips.changes,
            np.arange(len(flips)) < self.count,
            np.isin(flips.rows, self.include),
            quotas_of(self.quotas, len(self.fates)),
        )
        prices = self.prices
        return offers, offers.orders(None if prices is None else np.array([prices[name] for name in plain]))

    def at_most(self, amounts: Mapping[str, float]) -> float:
        """The bound for these amounts of the budgets; the estimate if there is no bound."""
        most = most_allowed(self.ceilings, amounts, self.worths)
        # A feature that a budget of 0 froze may change if this grows; an action may need a larger budget.
        thawed = any(
            amounts[name] > budget.amount and (budget.amount == 0 or bool(self.levers))
            for name, budget in self.budgets.items()
        )
        return max(0.0, min(most, self._worth_within_caps(amounts, everyone=thawed)))

    def _worth_within_caps(self, amounts: Mapping[str, float], *, everyone: bool) -> float:
        """Total worth of the samples that can be flipped, limited to what fees and count budgets allow.

        everyone: include samples unreachable at the plan's budgets, which larger ones may reach
        """
        lost = self.fates == Fate.ALREADY
        if not everyone:
            lost |= self.fates == Fate.UNREACHABLE
        lost[self.exclude] = True
        rows = np.flatnonzero(~lost)
        return most_payable(self.ledger, np.array([amounts[name] for name in self.budgets]), self.worths[rows], rows)

    def fate_counts(self) -> dict[Fate, int]:
        """Number of samples with each fate, zeros included."""
        seen = Counter(self.fates.tolist())
        return {fate: seen[fate] for fate in Fate}

    @cached_property
    def ledger(self) -> Ledger:
        return self.places.by_slot(Ledger.compile(self.budgets, self.features))

    def table(self) -> pa.Table:
        """A pyarrow Table with a row per non-zero change: id, feature, unit, before, change, after, cost.

        For sequences also the step, counted from 0, and its time.

        `cost` is the consumption of the feature's budget, in that budget's units; null if the feature draws on several
        budgets, whose units may differ, or if the budget is a function of the whole change.
        """
        import pyarrow as pa

        picked, slot = self.places.changed(self.moves)
        change, before = self.moves[picked, slot], self.before[picked, slot]
        cost, budgets = self.ledger.by_slot(self.selected[picked], slot, change)
        names = np.array(self.features, dtype=object)[self.slot_features[slot]]
        return pa.table(
            {
                "id": pa.array(self.ids[picked], pa.string()),
                **{name: pa.array(cells) for name, cells in self.places.columns(picked, slot).items()},
                "feature": pa.array(names, pa.string()),
                "unit": pa.array([self.units.get(n, "") for n in names], pa.string()),
                "before": pa.array(before, pa.float64()),
                "change": pa.array(change, pa.float64()),
                "after": pa.array(before + change, pa.float64()),
                "cost": pa.array(cost, pa.float64(), mask=budgets > 1),
            }
        )

    def implied_table(self) -> pa.Table:
        """A pyarrow Table with a row per value that follows from the changes: id, step, feature, unit, before, after.

        step: of sequences, counted from 0; of a table 0. Without derived features there are no rows.
        """
        import pyarrow as pa

        nothing = np.empty(0, dtype=np.int64)
        found = self.implied or Implied(nothing, nothing, nothing, np.empty(0), np.empty(0))
        names = [self.features[i] for i in found.feature.tolist()]
        return pa.table(
            {
                "id": pa.array(self.ids[found.picked], pa.string()),
                "step": pa.array(found.step, pa.int32()),
                "feature": pa.array(names, pa.string()),
                "unit": pa.array([self.units.get(n, "") for n in names], pa.string()),
                "before": pa.array(found.before, pa.float64()),
                "after": pa.array(found.after, pa.float64()),
            }
        )

    def __repr__(self) -> str:
        counts = self.fate_counts()
        others = ", ".join(f"{counts[f]} {f.value}" for f in Fate if f is not Fate.FLIPPED and counts[f])
        return f"Plan({self.count} of {len(self.fates)} flipped; {others or 'no others'}; {self.status.value})"

    def save(
        self,
        folder: str | Path,
        *,
        inputs: Mapping[str, str | Path] | None = None,
        problem: Problem | None = None,
        model: str | Path | None = None,
        insight: Insight | None = None,
        people: People = "full",
        pool: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write the plan folder of docs/formats.md.

        For the audit, `inputs` names the files of cohort, model and job. Alternatively, give the `problem` and the path
        of its `model` as a .pt2, .skops or .safetensors file; then cohort and job are written too. `insight` (the
        result of `look`) and `people` are for the report, as in `plan.report`. `pool`: also save all flips that were
        found, so that `resolve` can start from them when the plan is loaded again.
        """
        from maxflip.io.of_plans import save_asked, save_plan

        page: Any = {"insight": insight, "people": people, "pool": pool}
        if problem is None and model is None:
            save_plan(self, folder, inputs=inputs, overwrite=overwrite, **page)
        elif problem is None or model is None or inputs is not None:
            raise InputError("save: give `problem` and `model` together, or `inputs` instead of them.")
        else:
            save_asked(self, folder, problem=problem, model=model, overwrite=overwrite, **page)

    @classmethod
    def load(cls, folder: str | Path) -> Plan:
        """Load a saved plan from its folder. Model and cohort are not needed."""
        from maxflip.io.of_plans import load_plan

        return load_plan(folder)

    def to_csv(self, path: str | Path) -> None:
        """Write `table()` as CSV. Numbers are exact; texts that a spreadsheet might run get a leading '."""
        from maxflip.io.of_plans import write_csv

        write_csv(self.table(), path)

    def report(self, path: str | Path, *, insight: Insight | None = None, people: People = "full") -> None:
        """Write one self-contained HTML page.

        insight  result of `look`; None: the page has no such sections
        people   "full": everyone picked, by id; "pseudonyms": with made-up names in random order; "none": no individual
                 people, and groups of fewer than five are merged
        """
        from maxflip.io.of_plans import write_report

        write_report(self, path, insight, people)

    def _repr_html_(self) -> str:
        from maxflip.io.of_plans import html_of

        return html_of(self)
