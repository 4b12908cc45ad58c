"""What more or less of all budgets buys."""

from __future__ import annotations

import math
from dataclasses import dataclass

from maxflip.plan.plan import Plan
from maxflip.report import charts
from maxflip.report.answer import has_worths, whole_bound
from maxflip.report.numbers import counted, number
from maxflip.study.insight import Outlook


@dataclass(frozen=True)
class Frontier:
    chart: charts.Chart
    sentence: str


def frontier(plan: Plan, outlook: Outlook) -> Frontier | None:
    """None where there is but one point."""
    if len(outlook.scales) < 2:
        return None
    weighted = has_worths(plan)
    reached = [float(v) for v in (outlook.worths if weighted else outlook.counts)]
    what = "worth reached" if weighted else "people picked"
    ceilings = [
        charts.Line(name, look, outlook.scales, values)
        for name, look, values in (
            ("no plan can reach more (proved)", "bound", [whole_bound(plan, v) for v in _numbers(outlook.bounds)]),
            ("estimate of the most possible (not proved)", "estimate", _estimates(outlook, reached, weighted)),
        )
        if any(map(math.isfinite, values))
    ]
    sentence = _sentence(outlook.scales, reached, weighted)
    here = float(plan.worth if weighted else plan.count)
    picture = charts.lines(
        "frontier",
        "What more or less of all budgets buys",
        sentence,
        [charts.Line(what, "reached", outlook.scales, reached), *ceilings],
        x_name="times the budgets given",
        mark=(1.0, here, "this plan"),
        x_marks=outlook.scales if len(outlook.scales) <= 7 else None,
    )
    heads = ("Budgets times", what.capitalize(), *(line.name.capitalize() for line in ceilings))
    rows = [
        (number(scale), _said(reached[i]), *(_said(line.y[i], up=line.look == "bound") for line in ceilings))
        for i, scale in enumerate(outlook.scales)
    ]
    return Frontier(charts.Chart(picture, heads, rows), sentence)


def _sentence(scales: tuple[float, ...], reached: list[float], weighted: bool) -> str:
    """About the smallest and the largest."""
    parts = [
        f"with {number(scales[i])} times all budgets "
        + (f"a worth of {number(reached[i], 6)}" if weighted else counted(round(reached[i]), "person", "people"))
        for i in (0, -1)
        if scales[i] != 1.0
    ]
    return f"{' and '.join(parts)} would be reached.".capitalize()


def _numbers(values: tuple[float | None, ...]) -> list[float]:
    return [math.nan if v is None else float(v) for v in values]


def _estimates(outlook: Outlook, reached: list[float], weighted: bool) -> list[float]:
    """Never below what is reached nor above what is proved, and in whole people: more digits would say more than is
    known."""
    most = [math.inf if bound is None else bound for bound in outlook.bounds]
    return [
        math.nan if not math.isfinite(e) else max(there, min(e if weighted else round(e), bound))
        for e, there, bound in zip(_numbers(outlook.estimates), reached, most, strict=True)
    ]


def _said(value: float, *, up: bool = False) -> str:
    return number(value, 6, up=up) if math.isfinite(value) else "–"
