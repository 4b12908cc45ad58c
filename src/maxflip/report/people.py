"""The people picked: the first ones as table rows, and all of them as JSON for the script of the page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from maxflip._util.types import Floats
from maxflip.plan.plan import Plan
from maxflip.report.answer import has_worths, required_confidence
from maxflip.report.features import decimals_of, largest
from maxflip.report.follows import Follows
from maxflip.report.numbers import change_of, fixed, number, percent
from maxflip.report.privacy import pseudonyms
from maxflip.report.switches import Switches
from maxflip.report.texts import isolated, shortened
from maxflip.study.insight import People

MOST_ROWS = 200  # table rows in the HTML itself, for printing and without JavaScript
MOST_PEOPLE = 10_000  # people in the JSON data
MOST_CHANGES = 3  # changes named per table row
LEAST_HELD = 30  # the data keep at least this many changes per person
ALL_HELD = 30_000  # the data keep all changes up to about this many in total
MOST_BUDGETS = 12  # with more budgets the data have no shares per person and budget
NONE = "–"


@dataclass(frozen=True)
class Row:
    id: Markup
    before: str
    after: str
    ahead: str | None
    cost: str
    of: Markup
    worth: str | None
    changes: Sequence[Markup]
    more: int
    follows: Sequence[Markup]


@dataclass(frozen=True)
class PeoplePicked:
    """`rows`: the first people   `data`: JSON for the script   `held`: most changes per person in `data`"""

    rows: Sequence[Row]
    data: Markup
    total: int
    listed: int
    held: int
    is_cut: bool
    has_worths: bool
    has_ahead: bool
    has_unlimited: bool
    asked: str


def people(plan: Plan, kind: People) -> PeoplePicked | None:
    """In cohort order, or shuffled with pseudonyms. The changes that use most of their budgets come first."""
    if kind == "none" or not plan.count:
        return None
    if kind == "full":
        order, names = np.arange(plan.count), [shortened(i, 60) for i in plan.ids[:MOST_PEOPLE]]
    else:
        order, names = pseudonyms(plan.count)
    order = order[:MOST_PEOPLE]
    picked = _Picked(plan, order, names[: len(order)])
    held = max(LEAST_HELD, ALL_HELD // plan.count)
    return PeoplePicked(
        rows=[picked.row(k) for k in range(min(MOST_ROWS, len(order)))],
        data=_as_json(picked.data(held)),
        total=plan.count,
        listed=len(order),
        held=held,
        is_cut=bool((np.count_nonzero(plan.moves[order], axis=1) > held).any()) or picked.follows.most(order) > held,
        has_worths=picked.has_worths,
        has_ahead=picked.asked is not None,
        has_unlimited=any(math.isinf(budget.amount) for budget in plan.budgets.values()),
        asked="" if picked.asked is None else number(picked.asked),
    )


class _Picked:
    """The numbers of everyone picked, in the order of the page."""

    def __init__(self, plan: Plan, order: NDArray[np.int64], names: Sequence[str]) -> None:
        self.plan, self.order, self.names = plan, order, names
        self.asked = required_confidence(plan)
        self.has_worths = has_worths(plan)
        self.rows = plan.selected[order]
        self.after = plan.confidence_after[order]
        self.of_slots = plan.slot_features
        self.with_time = plan.places.tell_times(plan.moves)
        self.decimals, self.reach = _looks(plan)
        self.follows, self.switches = Follows(plan), Switches(plan)
        for i, decimals in self.follows.decimals.items():
            self.decimals[i], self.reach[i] = decimals, self.follows.reach[i]
        self.shares = _shares(plan, order)
        self.budgets = list(plan.budgets)
        self.drawn = _drawn(plan, order)
        counted = np.array([plan.budgets[name].counts_people for name in self.budgets], dtype=bool)
        costs = np.where(counted | np.isnan(self.drawn), -1.0, self.drawn)
        self.of = costs.argmax(axis=1) if len(self.budgets) else np.zeros(len(order), dtype=np.int64)
        self.cost = costs.max(axis=1, initial=-1.0)

    def columns(self, k: int) -> NDArray[np.int64]:
        """Slots that change in row k, most expensive first."""
        changed = np.flatnonzero(self.plan.moves[self.order[k]])
        return changed[np.argsort(-self.shares[k, changed], kind="stable")]

    def row(self, k: int) -> Row:
        plan, j, columns = self.plan, self.rows[k], self.columns(k)
        after = float(self.after[k])
        return Row(
            id=isolated(self.names[k], 60),
            before=fixed(float(plan.confidence_before[j]), 3),
            after=fixed(after, 3),
            ahead=None if self.asked is None else number(after - self.asked, 2),
            cost=percent(float(self.cost[k]), 1.0) if self.cost[k] >= 0 else NONE,
            of=isolated(self.budgets[self.of[k]], 60) if self.cost[k] >= 0 else Markup(""),
            worth=number(float(plan.worths[j])) if self.has_worths else None,
            changes=[self._change(k, int(i)) for i in columns[:MOST_CHANGES]],
            more=max(0, len(columns) - MOST_CHANGES),
            follows=[self.follows.sentence(row) for row in self.follows.of(int(self.order[k]), MOST_CHANGES)],
        )

    def _change(self, k: int, slot: int) -> Markup:
        plan, c = self.plan, self.order[k]
        feature = plan.features[self.of_slots[slot]]
        if feature in plan.levers:
            return isolated(self.switches.words(feature, int(c)) or feature, 60)
        decimals = self.decimals[self.of_slots[slot]]
        before, after, change = change_of(float(plan.before[c, slot]), float(plan.moves[c, slot]), decimals)
        stands = plan.places.columns(c, slot)
        step = f", step {stands['step']:,}" if plan.places.has_steps else ""
        if self.with_time:
            step += f", time {number(float(stands['time']), 6)}"
        unit = Markup(" ") + isolated(plan.units[feature], 30) if plan.units.get(feature) else Markup("")
        return Markup("{}{} {} → {} <i>({}{})</i>").format(isolated(feature, 60), step, before, after, change, unit)

    def data(self, held: int) -> dict[str, Any]:
        plan = self.plan
        changed = [self.columns(k) for k in range(len(self.order))]
        used = sorted({int(i) for c in changed for i in self.of_slots[c[:held]]} | self.follows.decimals.keys())
        place: dict[int | str, int] = {feature: n for n, feature in enumerate(used)}
        switched = self._switched(changed, held)
        place |= {words: n for n, words in enumerate(switched, len(used))}
        return {
            "steps": plan.places.has_steps,
            "times": self.with_time,
            "features": [
                [
                    shortened(plan.features[i], 60),
                    shortened(plan.units.get(plan.features[i], ""), 30),
                    self.decimals[i],
                    _short(self.reach[i]),
                    plan.levers.get(plan.features[i]),
                ]
                for i in used
            ]
            + [[shortened(words, 60), "", 0, 1, does] for words, does in switched.items()],
            "budgets": [shortened(name, 60) for name in self.budgets],
            "asked": self.asked,
            "ids": list(self.names),
            "before": _shorts(plan.confidence_before[self.rows]),
            "after": _shorts(self.after),
            "ahead": None if self.asked is None else _shorts(self.after - self.asked),
            "cost": [_part(v) for v in self.cost.tolist()],
            "of": self.of.tolist(),
            "worth": _shorts(plan.worths[self.rows]) if self.has_worths else None,
            "drawn": [[_part(v) for v in row] for row in self.drawn.tolist()]
            if len(self.budgets) <= MOST_BUDGETS
            else None,
            "more": [max(0, len(c) - held) for c in changed],
            "changes": [self._numbers(k, c[:held], place) for k, c in enumerate(changed)],
            **({} if plan.implied is None else {"follows": self._following(held, place)}),
        }

    def _switched(self, changed: Sequence[NDArray[np.int64]], held: int) -> dict[str, str]:
        """{what categories become: what the switch does}, of all people"""
        found = {}
        for k, columns in enumerate(changed):
            for name in (self.plan.features[i] for i in self.of_slots[columns[:held]].tolist()):
                words = self.switches.words(name, int(self.order[k]))
                if words is not None:
                    found[words] = self.plan.levers[name]
        return found

    def _following(self, held: int, place: Mapping[int | str, int]) -> list[list[Any]]:
        """The same of what follows from them, without times."""
        people = [self.follows.of(int(c), held) for c in self.order]
        each = [[number for row in rows for number in self.follows.numbers(row, place)] for rows in people]
        return [[_short(v) if isinstance(v, float) else v for v in one] for one in each]

    def _numbers(self, k: int, columns: NDArray[np.int64], place: Mapping[int | str, int]) -> list[Any]:
        """(feature, [step, time,] before, change) of each change, flattened into one list per person to save space."""
        plan, c = self.plan, self.order[k]
        features = self.of_slots[columns].tolist()
        parts: list[list[Any]] = [[place[self.switches.words(plan.features[i], int(c)) or i] for i in features]]
        if plan.places.has_steps:
            stands = plan.places.columns(c, columns)
            parts += [stands["step"].tolist(), _shorts(stands["time"])]
        parts += [_shorts(plan.before[c, columns]), _shorts(plan.moves[c, columns])]
        return [number for change in zip(*parts, strict=True) for number in change]


def _looks(plan: Plan) -> tuple[list[int], list[float]]:
    """For each feature: the number of decimals shown, and the largest absolute change."""
    decimals, reach = [], []
    for i in range(len(plan.features)):
        moved = largest(plan.moves[:, plan.slot_features == i])
        slots = plan.slot_features == i
        decimals.append(decimals_of(moved[moved != 0], plan.before[:, slots][plan.moves[:, slots] != 0]))
        reach.append(float(np.abs(moved).max(initial=0.0)))
    return decimals, reach


def _amounts(plan: Plan) -> Floats:
    """(m,): amount of each budget; what was spent of it if it has no limit"""
    ledger = plan.ledger
    spent = np.array([plan.spend[name] for name in ledger.names])
    return np.asarray(np.where(np.isinf(ledger.amounts), spent, ledger.amounts))


def _shares(plan: Plan, picked: NDArray[np.int64]) -> Floats:
    """(rows, K): sum of the budget shares that each change uses"""
    moves, amounts = plan.moves[picked], _amounts(plan)
    weights = plan.ledger.weights(plan.selected[picked])
    with np.errstate(all="ignore"):
        weight = np.where(amounts > 0, 1 / amounts, 0.0)
        squared, absolute = (
            np.where(moves > 0, weight @ up, weight @ down) for up, down in zip(weights.up, weights.down, strict=True)
        )
        shares = squared * moves**2 + absolute * np.abs(moves)
    return _steady(np.nan_to_num(shares))


def _drawn(plan: Plan, picked: NDArray[np.int64]) -> Floats:
    """(rows, m): share of each budget that a person uses; NaN for budgets that are functions"""
    ledger, amounts = plan.ledger, _amounts(plan)
    unknown = np.full((len(picked), len(ledger.functions)), math.nan)
    drawn = ledger.consumption(plan.moves[picked], unknown, plan.selected[picked])
    with np.errstate(all="ignore"):
        return _steady(np.where(amounts > 0, drawn / amounts, 0.0))


def _steady(shares: Floats) -> Floats:
    """Rounded to nine digits: matrix products round differently between machines, but the page must be the same."""
    known = (np.abs(shares) > 1e-12) & (np.abs(shares) < 1e12)
    power = 10.0 ** (8 - np.floor(np.log10(np.where(known, np.abs(shares), 1.0))))
    return np.asarray(np.where(known, np.round(shares * power) / power, shares))


def _short(value: float, digits: int = 8) -> float | None:
    """Rounded to `digits` significant digits; None if not finite, which JSON cannot hold."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def _shorts(values: Floats, digits: int = 8) -> list[float | None]:
    return [_short(value, digits) for value in values.tolist()]


def _part(share: float) -> float | None:
    """Rounded to six digits; a share below 1 is never rounded to 1."""
    return min(float(f"{share:.6g}"), 0.9999) if 0 < share < 1 else _short(share)


def _as_json(data: Any) -> Markup:
    """JSON for a <script> element: <, > and & are escaped, so it cannot end the element or begin a comment."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
