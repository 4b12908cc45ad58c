"""Which features change, for how many people and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip._util.types import Floats
from maxflip.plan.plan import Plan
from maxflip.report import charts
from maxflip.report.numbers import change_of, decimals_for, percent, whole
from maxflip.report.texts import isolated

MOST_ROWS = 200  # features in the table
NONE = "–"


@dataclass(frozen=True)
class Row:
    """`strip`, `quarters`: distribution of each person's largest change of the feature; None and dashes if it would
    reveal individual people   `directions`: how many are lowered and raised"""

    name: Markup
    unit: Markup
    count: str
    share: str
    bar: Markup
    strip: Markup | None
    quarters: tuple[str, str, str]
    directions: str


@dataclass(frozen=True)
class Features:
    rows: Sequence[Row]
    more: int
    unchanged: int
    is_of_steps: bool
    has_hidden: bool


def features(plan: Plan, fewest: int = 1) -> Features:
    """Sorted by people changed, ties in the job's order. Amounts of fewer than `fewest` people are hidden."""
    slots = [np.flatnonzero(plan.slot_features == i) for i in range(len(plan.features))]
    changed = np.array([np.count_nonzero(plan.moves[:, of_it].any(axis=1)) for of_it in slots])
    amounts = np.array([name not in plan.levers for name in plan.features])
    order = np.argsort(-changed, kind="stable")
    order = order[(changed > 0)[order] & amounts[order]]
    following = [] if plan.implied is None else plan.implied.feature.tolist()
    rows = [_row(plan, plan.features[i], largest(plan.moves[:, slots[i]]), fewest) for i in order[:MOST_ROWS]]
    return Features(
        rows=rows,
        more=max(0, len(order) - MOST_ROWS),
        unchanged=int(amounts.sum()) - len({*order.tolist(), *following}),
        is_of_steps=plan.places.has_steps,
        has_hidden=any(row.strip is None for row in rows),
    )


def _row(plan: Plan, name: str, change: Floats, fewest: int) -> Row:
    moved = change[change != 0]
    count = len(moved)
    quantiles = charts.Quantiles.of(moved)
    three = np.array([quantiles.p25, quantiles.p50, quantiles.p75])
    quarters = tuple(change_of(0.0, q, decimals_of(moved, three))[2] for q in three.tolist())
    lowered, raised = int((moved < 0).sum()), int((moved > 0).sum())
    directions = [f"{whole(n)} {verb}" for n, verb in ((lowered, "lowered"), (raised, "raised")) if n]
    is_shown = count >= fewest
    return Row(
        name=isolated(name),
        unit=isolated(plan.units.get(name, "")),
        count=whole(count),
        share=percent(count, plan.count),
        bar=charts.bar(count, plan.count),
        strip=charts.strip(quantiles, max(abs(quantiles.p5), abs(quantiles.p95))) if is_shown else None,
        quarters=(quarters[0], quarters[1], quarters[2]) if is_shown else (NONE, NONE, NONE),
        directions=", ".join(directions),
    )


def largest(changes: Floats) -> Floats:
    """(count, slots of a feature) -> (count,): each person's change with the largest absolute value"""
    if not changes.shape[1]:
        return np.zeros(len(changes))
    return np.take_along_axis(changes, np.abs(changes).argmax(axis=1)[:, None], axis=1)[:, 0]


def decimals_of(moved: Floats, before: Floats | float = 0.0) -> int:
    """Number of decimals shown for a feature, from its median absolute change; none where all numbers are whole.

    before: other numbers that are shown with the changes, where there are any
    """
    if np.array_equal(moved, np.rint(moved)) and np.array_equal(before, np.rint(before)):
        return 0
    return decimals_for(float(np.median(np.abs(moved)))) if len(moved) else 0
