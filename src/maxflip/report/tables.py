"""The tables of the page, row by row, as texts that are ready to be shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from maxflip.budgets import Budget
from maxflip.exact import Floats
from maxflip.plan import Fate, Plan
from maxflip.report.answer import has_worths, price_of
from maxflip.report.numbers import change_of, decimals_for, fixed, number, percent, whole
from maxflip.report.texts import isolated

MOST_PEOPLE = 1000
MOST_CHANGES = 6  # per person
MOST_ROWS = 200  # of budgets, of features
MOST_USES = 6  # features named per budget
NONE = "–"

_NAMES = {
    Fate.ALREADY: "There already",
    Fate.FLIPPED: "Flipped",
    Fate.LEFT_OUT: "Left out",
    Fate.NOT_FOUND: "Not found",
    Fate.UNREACHABLE: "Unreachable",
    Fate.UNUSABLE: "Unusable",
}


@dataclass(frozen=True)
class BudgetRow:
    """`width`: of the bar in percent, None where nothing limits it."""

    name: Markup
    pays_for: Markup
    width: str | None
    share: str
    spent: str
    amount: str
    unit: Markup
    price: str


@dataclass(frozen=True)
class Budgets:
    rows: Sequence[BudgetRow]
    more: int
    has_prices: bool
    example: Markup | None  # what a squared budget counts, for the first one there is


def budgets(plan: Plan) -> Budgets:
    names = list(plan.budgets)
    if len(names) > MOST_ROWS:
        names = sorted(names, key=lambda name: -_used(plan, name))[:MOST_ROWS]
    return Budgets(
        rows=[_budget_row(plan, name) for name in names],
        more=len(plan.budgets) - len(names),
        has_prices=plan.prices is not None,
        example=_example(plan, names),
    )


def _used(plan: Plan, name: str) -> float:
    amount = plan.budgets[name].amount
    return plan.spend[name] / amount if amount > 0 else 0.0


def _budget_row(plan: Plan, name: str) -> BudgetRow:
    budget, spent = plan.budgets[name], plan.spend[name]
    limited = math.isfinite(budget.amount)
    price = price_of(plan, name)
    return BudgetRow(
        name=isolated(name),
        pays_for=_pays_for(name, budget, plan.units),
        width=f"{min(100.0, 100 * _used(plan, name)):.1f}" if limited else None,
        share=percent(spent, budget.amount),
        spent=number(spent),
        amount=number(budget.amount) if limited else "no limit",
        unit=_unit(name, budget, plan.units),
        price=NONE if price is None else number(price, 2),
    )


def _uses(name: str, budget: Budget) -> dict[str, float]:
    return {f: w for f, w in (budget.weights or {name: 1.0}).items() if w > 0}


def _unit(name: str, budget: Budget, units: Mapping[str, str]) -> Markup:
    """In words, where the budget is in the unit of one feature; else it is in units of its own."""
    if budget.cost == "count":
        return Markup("people")
    uses = _uses(name, budget)
    if list(uses.values()) != [1.0] or budget.is_function:
        return Markup("")
    return _cost_unit(next(iter(uses)), budget, units)


def _cost_unit(feature: str, budget: Budget, units: Mapping[str, str], plain: str = "units") -> Markup:
    unit = units.get(feature)
    shown = isolated(unit) if unit else Markup(plain)
    return Markup("squared {}").format(shown) if budget.cost == "squared" else shown


def _pays_for(name: str, budget: Budget, units: Mapping[str, str]) -> Markup:
    if budget.cost == "count":
        return Markup("each person picked")
    uses = _uses(name, budget)
    if not uses:
        return Markup("nothing")
    if budget.is_function:
        said = isolated(budget.cost_name.removeprefix("function "))
        return Markup("what {} says of changes: {}").format(said, _listed([isolated(f) for f in uses], MOST_USES))
    if list(uses) == [name] and uses[name] == 1.0:
        return Markup("changes of this feature")
    if set(uses.values()) == {1.0}:
        parts = [isolated(f) for f in uses]
    else:
        parts = [
            Markup("{} per {} of {}").format(number(w, 3), _cost_unit(f, budget, units, "unit"), isolated(f))
            for f, w in uses.items()
        ]
    return Markup("{}changes: {}").format("squared " if budget.cost == "squared" else "", _listed(parts, MOST_USES))


def _listed(parts: Sequence[Markup], most: int) -> Markup:
    rest = len(parts) - most
    text = Markup(", ").join(parts[:most])
    return text + Markup(" and {} more").format(whole(rest)) if rest > 0 else text


def _example(plan: Plan, names: Sequence[str]) -> Markup | None:
    squared = [n for n in names if plan.budgets[n].cost == "squared"]
    if not squared:
        return None
    for name in squared:
        feature = next(iter(_uses(name, plan.budgets[name])), "")
        if plan.units.get(feature):
            unit = isolated(plan.units[feature])
            return Markup("a change of 3 {} costs 9 squared {}").format(unit, unit)
    return Markup("a change of 3 costs 9")


@dataclass(frozen=True)
class FateRow:
    """`start`, `width`: of its part of the bar, in percent."""

    key: str
    name: str
    count: str
    share: str
    meaning: str
    start: str
    middle: str
    width: str
    is_wide: bool


def fates(plan: Plan) -> list[FateRow]:
    rows, start, n = [], 0, len(plan.fates)
    for fate, count in plan.fate_counts().items():
        meaning = fate.meaning[:1].upper() + fate.meaning[1:]
        if fate is Fate.LEFT_OUT:
            meaning += " (the budgets do not pay for it, or the person was excluded)"
        rows.append(
            FateRow(
                key=fate.value,
                name=_NAMES[fate],
                count=whole(count),
                share=percent(count, n),
                meaning=meaning,
                start=f"{100 * start / max(n, 1):.2f}",
                middle=f"{100 * (start + count / 2) / max(n, 1):.2f}",
                width=f"{100 * count / max(n, 1):.2f}",
                is_wide=count > 0.13 * n,
            )
        )
        start += count
    return rows


@dataclass(frozen=True)
class Direction:
    people: str
    median: str
    largest: str


@dataclass(frozen=True)
class FeatureRow:
    name: Markup
    unit: Markup
    people: str
    width: str
    down: Direction
    up: Direction


@dataclass(frozen=True)
class Features:
    rows: Sequence[FeatureRow]
    more: int
    unchanged: int


def features(plan: Plan) -> Features:
    """Most people first; where equal, in the job's order."""
    slots = [np.flatnonzero(plan.slot_features == i) for i in range(len(plan.features))]
    changed = np.array([np.count_nonzero(plan.moves[:, of_it].any(axis=1)) for of_it in slots])
    order = np.argsort(-changed, kind="stable")
    order = order[changed[order] > 0]
    return Features(
        rows=[_feature_row(plan, int(i), slots[i]) for i in order[:MOST_ROWS]],
        more=max(0, len(order) - MOST_ROWS),
        unchanged=len(plan.features) - len(order),
    )


def _feature_row(plan: Plan, i: int, slots: NDArray[np.int64]) -> FeatureRow:
    change = plan.moves[:, slots]
    moved, people = change[change != 0], int(change.any(axis=1).sum())
    decimals = _decimals(moved)
    return FeatureRow(
        name=isolated(plan.features[i]),
        unit=isolated(plan.units.get(plan.features[i], "")),
        people=whole(people),
        width=f"{100 * people / plan.count:.1f}",
        down=_direction(moved[moved < 0], decimals),
        up=_direction(moved[moved > 0], decimals),
    )


def _direction(moved: Floats, decimals: int) -> Direction:
    if not len(moved):
        return Direction(NONE, NONE, NONE)
    median, largest = float(np.median(moved)), float(moved[np.abs(moved).argmax()])
    return Direction(whole(len(moved)), _signed(median, decimals), _signed(largest, decimals))


def _signed(change: float, decimals: int) -> str:
    return change_of(0.0, change, decimals)[2]


def _decimals(moved: Floats) -> int:
    """For all numbers of a feature: from its median change."""
    return decimals_for(float(np.median(np.abs(moved)))) if len(moved) else 0


@dataclass(frozen=True)
class PersonRow:
    id: Markup
    before: str
    after: str
    worth: str | None
    changes: Sequence[Markup]
    more: int


@dataclass(frozen=True)
class People:
    rows: Sequence[PersonRow]
    more: int
    has_worths: bool


def people(plan: Plan) -> People:
    """In cohort order. Of each person the changes that take the largest share of their budgets, largest first."""
    shares = _shares(plan)
    of_slots = [plan.features[i] for i in plan.slot_features.tolist()]
    names = [isolated(f, 60) for f in of_slots]
    units = [Markup(" ") + isolated(u, 30) if (u := plan.units.get(f)) else Markup("") for f in of_slots]
    decimals = _decimals_of_slots(plan)
    with_time = _has_times(plan)
    weighted = has_worths(plan)
    rows = []
    for c, j in enumerate(plan.selected[:MOST_PEOPLE]):
        columns = np.flatnonzero(plan.moves[c])
        columns = columns[np.argsort(-shares[c, columns], kind="stable")]
        changes = []
        for i in columns[:MOST_CHANGES]:
            before, after, change = change_of(float(plan.before[c, i]), float(plan.moves[c, i]), decimals[i])
            step = "" if plan.places is None else f", step {whole(int(plan.places.step[c, i]))}"
            if with_time and plan.places is not None:
                step += f", time {number(float(plan.places.time[c, i]), 6)}"
            changes.append(Markup("{}{} {} → {} <i>({}{})</i>").format(names[i], step, before, after, change, units[i]))
        rows.append(
            PersonRow(
                id=isolated(plan.all_ids[j], 60),
                before=fixed(float(plan.confidence_before[j]), 3),
                after=fixed(float(plan.confidence_after[c]), 3),
                worth=number(float(plan.worths[j])) if weighted else None,
                changes=changes,
                more=max(0, len(columns) - MOST_CHANGES),
            )
        )
    return People(rows, max(0, plan.count - MOST_PEOPLE), weighted)


def _decimals_of_slots(plan: Plan) -> list[int]:
    """The same for all slots of a feature."""
    decimals = {}
    for i in np.unique(plan.slot_features).tolist():
        moved = plan.moves[:, plan.slot_features == i]
        decimals[i] = _decimals(moved[moved != 0])
    return [decimals[i] for i in plan.slot_features.tolist()]


def _has_times(plan: Plan) -> bool:
    """Whether times say more than the numbers of the steps, where something changes."""
    if plan.places is None:
        return False
    changed = plan.moves != 0
    return bool((plan.places.time[changed] != plan.places.step[changed]).any())


def _shares(plan: Plan) -> Floats:
    """(rows, K): the part of its budgets that a change takes; of what was spent, where a budget has no limit."""
    ledger, shown = plan.ledger, plan.moves[:MOST_PEOPLE]
    spent = np.array([plan.spend[name] for name in ledger.names])
    whole_of_it = np.where(np.isinf(ledger.amounts), spent, ledger.amounts)
    with np.errstate(all="ignore"):
        weight = np.where(whole_of_it > 0, 1 / whole_of_it, 0.0)
        shares = (weight @ ledger.squared) * shown**2 + (weight @ ledger.absolute) * np.abs(shown)
    return np.nan_to_num(shares)
