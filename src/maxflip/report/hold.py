"""How many flips still pass if changes are carried out in part or rounded, and in other models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from maxflip.plan.holds import Holds, Judged
from maxflip.plan.plan import Plan
from maxflip.report import charts
from maxflip.report.numbers import counted, number, percent, whole
from maxflip.report.texts import isolated

MOST_NAMED = 12  # features whose rounding is listed


@dataclass(frozen=True)
class Row:
    case: Markup
    count: str
    share: str
    bar: Markup
    note: Markup | None


@dataclass(frozen=True)
class Holding:
    """judged: whether results of other models are included   was_asked: whether the problem has `must_hold`
    has_amounts: whether anything changes that could be carried out in part
    """

    sentence: str
    rows: Sequence[Row]
    judged: bool
    was_asked: bool
    has_amounts: bool


def headline(plan: Plan) -> str:
    """How many flips still pass, in one line for a terminal; empty if nothing is known or nobody is picked."""
    if plan.holds is None or not plan.count:
        return ""
    if not _has_amounts(plan):
        return "Actions are carried out as a whole, so nothing of this plan can be carried out in part."
    held = plan.holds.uptake[0.9]
    return (
        f"If 90% of each change is carried out, {whole(held)} of {whole(plan.count)} still {_pass(held)}; if "
        f"values are rounded to their usual digits, {whole(plan.holds.rounded)}."
    )


def holding(plan: Plan, judges: tuple[Judged, ...] | None) -> Holding | None:
    if plan.holds is None or not plan.count:
        return None
    has_amounts = _has_amounts(plan)
    rows = [
        _row(
            plan, Markup("In full") if share == 1.0 else Markup("{}% of each change").format(round(100 * share)), count
        )
        for share, count in plan.holds.uptake.items()
        if has_amounts or (share == 1.0 and judges)
    ]
    if has_amounts:
        rows.append(_row(plan, Markup("Values rounded to their usual digits"), plan.holds.rounded, _digits(plan.holds)))
    for judge in judges or ():
        note = Markup("{} of them {} in it before any change").format(whole(judge.before), _pass(judge.before))
        rows.append(_row(plan, Markup("Other model: {}").format(isolated(judge.name, 60)), judge.after, note))
    return Holding(headline(plan), rows, bool(judges), bool(plan.must_hold), has_amounts)


def _has_amounts(plan: Plan) -> bool:
    """Whether any feature changes by an amount, and not by actions and switches alone."""
    amounts = [plan.features[i] not in plan.levers for i in plan.slot_features.tolist()]
    return bool(plan.moves[:, amounts].any())


def _row(plan: Plan, case: Markup, count: int, note: Markup | None = None) -> Row:
    return Row(case, whole(count), percent(count, plan.count), charts.bar(count, plan.count), note)


def _digits(holds: Holds) -> Markup:
    """The unit to which each feature is rounded."""
    named = [
        Markup("{} to {}").format(isolated(name, 40), number(10.0**-decimals))
        for name, decimals in list(holds.digits.items())[:MOST_NAMED]
    ]
    more = len(holds.digits) - len(named)
    rest = Markup(" and {}").format(counted(more, "more feature", "more features")) if more > 0 else Markup("")
    return Markup(", ").join(named) + rest


def _pass(n: int) -> str:
    return "passes" if n == 1 else "pass"
