"""What larger or smaller budgets reach."""

from __future__ import annotations

import math
from dataclasses import dataclass

from maxflip.plan.plan import Plan
from maxflip.report import charts
from maxflip.report.answer import has_worths, whole_bound
from maxflip.report.numbers import number, whole
from maxflip.study.insight import Outlook

_MULTIPLES = {0.25: "a quarter of", 0.5: "half of", 2.0: "double", 3.0: "triple"}


@dataclass(frozen=True)
class FrontierSection:
    chart: charts.Chart
    sentence: str


def frontier(plan: Plan, outlook: Outlook) -> FrontierSection | None:
    """None with fewer than two scales."""
    if len(outlook.scales) < 2:
        return None
    weighted = has_worths(plan)
    reached = [float(v) for v in (outlook.worths if weighted else outlook.counts)]
    what = "worth reached" if weighted else "people picked"
    ceilings = [
        charts.Line(name, look, outlook.scales, values)
        for name, look, values in (
            ("upper bound (proved)", "bound", [whole_bound(plan, v) for v in _numbers(outlook.bounds)]),
            ("estimated maximum (not proved)", "estimate", _estimates(outlook, reached, weighted)),
        )
        if any(map(math.isfinite, values))
    ]
    sentence = _sentence(outlook.scales, reached, weighted)
    here = float(plan.worth if weighted else plan.count)
    picture = charts.lines(
        "frontier",
        "What larger or smaller budgets reach",
        sentence,
        [charts.Line(what, "reached", outlook.scales, reached), *ceilings],
        x_name="multiple of the given budgets",
        mark=(1.0, here, "this plan"),
        x_marks=outlook.scales if len(outlook.scales) <= 7 else None,
    )
    heads = ("Multiple of the budgets", what.capitalize(), *(line.name.capitalize() for line in ceilings))
    rows = [
        (number(scale), _shown(reached[i]), *(_shown(line.y[i], up=line.look == "bound") for line in ceilings))
        for i, scale in enumerate(outlook.scales)
    ]
    return FrontierSection(charts.Chart(picture, heads, rows), sentence)


def _sentence(scales: tuple[float, ...], reached: list[float], weighted: bool) -> str:
    """What the smallest and the largest scale reach."""
    parts: list[str] = []
    for i in (0, -1):
        if scales[i] != 1.0:
            amount = f"a worth of {number(reached[i], 6)}" if weighted else whole(round(reached[i]))
            words = _MULTIPLES.get(scales[i], f"{number(scales[i])} times")
            parts.append(f"{words}{'' if parts else ' the budgets'} reaches {amount}")
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _numbers(values: tuple[float | None, ...]) -> list[float]:
    return [math.nan if v is None else float(v) for v in values]


def _estimates(outlook: Outlook, reached: list[float], weighted: bool) -> list[float]:
    """Estimates clipped to [reached, proved bound], rounded to whole people unless weighted."""
    most = [math.inf if bound is None else bound for bound in outlook.bounds]
    return [
        math.nan if not math.isfinite(e) else max(there, min(e if weighted else round(e), bound))
        for e, there, bound in zip(_numbers(outlook.estimates), reached, most, strict=True)
    ]


def _shown(value: float, *, up: bool = False) -> str:
    return number(value, 6, up=up) if math.isfinite(value) else "–"
