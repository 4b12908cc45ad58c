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
    """judged: whether results of other models are included   was_asked: whether the problem has `must_hold`"""

    sentence: str
    rows: Sequence[Row]
    judged: bool
    was_asked: bool


def headline(plan: Plan) -> str:
    """How many flips still pass, in one line for a terminal; empty if nothing is known or nobody is picked."""
    if plan.holds is None or not plan.count:
        return ""
    held = plan.holds.uptake[0.9]
    return (
        f"If 90% of each change is carried out, {whole(held)} of {whole(plan.count)} still {_pass(held)}; if "
        f"values are rounded to their usual digits, {whole(plan.holds.rounded)}."
    )


def holding(plan: Plan, judges: tuple[Judged, ...] | None) -> Holding | None:
    if plan.holds is None or not plan.count:
        return None
    rows = [
        _row(
            plan, Markup("In full") if share == 1.0 else Markup("{}% of each change").format(round(100 * share)), count
        )
        for share, count in plan.holds.uptake.items()
    ]
    rows.append(_row(plan, Markup("Values rounded to their usual digits"), plan.holds.rounded, _digits(plan.holds)))
    for judge in judges or ():
        note = Markup("{} of them {} in it before any change").format(whole(judge.before), _pass(judge.before))
        rows.append(_row(plan, Markup("Other model: {}").format(isolated(judge.name, 60)), judge.after, note))
    return Holding(headline(plan), rows, bool(judges), bool(plan.must_hold))


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
