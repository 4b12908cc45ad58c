"""Solver progress, from the plan's trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from markupsafe import Markup

from maxflip.plan.plan import Plan
from maxflip.report import charts
from maxflip.report.numbers import number
from maxflip.report.texts import isolated

MOST_ROWS = 30  # rounds in the table
MOST_COLUMNS = 8  # of the trace in the table
MOST_POINTS = 400  # per curve
_CURVES = {"worth": ("worth of the plan so far", "reached"), "dual": ("dual value at the current prices", "estimate")}
_UNSEEN = ("spent: ", "drawn: ")  # prefixes of columns per budget, which are not shown


@dataclass(frozen=True)
class Convergence:
    """`picture`: None if there is nothing to draw   `rows`: the last rounds"""

    picture: Markup | None
    heads: Sequence[Markup]
    rows: Sequence[Sequence[Markup]]
    total: int


def convergence(plan: Plan) -> Convergence | None:
    total = max((len(column) for column in plan.trace.values()), default=0)
    if not total:
        return None
    names = [name for name in plan.trace if not name.startswith(_UNSEEN)][:MOST_COLUMNS]
    first = max(0, total - MOST_ROWS)
    rows = [[_cell(plan.trace[name], i) for name in names] for i in range(first, total)]
    return Convergence(_picture(plan, total), [isolated(name, 40) for name in names], rows, total)


def _picture(plan: Plan, total: int) -> Markup | None:
    """The curves of _CURVES that have at least two finite values; None without any."""
    every = max(1, math.ceil(total / MOST_POINTS))
    rounds = sorted({*range(0, total, every), total - 1})
    drawn = []
    for name, (words, look) in _CURVES.items():
        values = [_value(plan.trace.get(name, ()), i) for i in rounds]
        if sum(map(math.isfinite, values)) > 1:
            drawn.append(charts.Line(words, look, [float(i + 1) for i in rounds], values))
    if not drawn:
        return None
    ends = [float(rounds[0] + 1), float(rounds[-1] + 1)]
    plan_line = charts.Line("worth of this plan", "plan", ends, [plan.worth, plan.worth])
    described = ". ".join(f"{line.name}: from {number(line.y[0])} to {number(line.y[-1])}" for line in drawn)
    return charts.lines(
        "convergence", "Solver progress", described, [*drawn, plan_line], x_name="round", from_zero=False
    )


def _value(column: Sequence[Any], i: int) -> float:
    value = column[i] if i < len(column) else None
    return float(value) if isinstance(value, Real) else math.nan


def _cell(column: Sequence[Any], i: int) -> Markup:
    value = column[i] if i < len(column) else None
    if value is None:
        return Markup("–")
    return Markup.escape(number(_value(column, i))) if isinstance(value, Real) else isolated(value, 60)
