"""Which features change, for how many and by how much."""

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

MOST_ROWS = 200
NONE = "–"


@dataclass(frozen=True)
class Row:
    """`strip`, `quarters`: where the changes of the feature lie, of each person the largest; None and dashes where they
    would give single people away"""

    name: Markup
    unit: Markup
    people: str
    share: str
    bar: Markup
    strip: Markup | None
    quarters: tuple[str, str, str]
    ways: str


@dataclass(frozen=True)
class Features:
    rows: Sequence[Row]
    more: int
    unchanged: int
    is_of_steps: bool
    has_hidden: bool


def features(plan: Plan, fewest: int = 1) -> Features:
    """Most people first; where equal, in the job's order. Of fewer than `fewest` people no amounts are given."""
    slots = [np.flatnonzero(plan.slot_features == i) for i in range(len(plan.features))]
    changed = np.array([np.count_nonzero(plan.moves[:, of_it].any(axis=1)) for of_it in slots])
    order = np.argsort(-changed, kind="stable")
    order = order[changed[order] > 0]
    rows = [_row(plan, plan.features[i], largest(plan.moves[:, slots[i]]), fewest) for i in order[:MOST_ROWS]]
    return Features(
        rows=rows,
        more=max(0, len(order) - MOST_ROWS),
        unchanged=len(plan.features) - len(order),
        is_of_steps=plan.places is not None,
        has_hidden=any(row.strip is None for row in rows),
    )


def _row(plan: Plan, name: str, change: Floats, fewest: int) -> Row:
    moved = change[change != 0]
    people = len(moved)
    spread, decimals = charts.Spread.of(moved), decimals_of(moved)
    quarters = tuple(change_of(0.0, q, decimals)[2] for q in (spread.p25, spread.p50, spread.p75))
    lowered, raised = int((moved < 0).sum()), int((moved > 0).sum())
    ways = [f"{whole(n)} {way}" for n, way in ((lowered, "lowered"), (raised, "raised")) if n]
    is_shown = people >= fewest
    return Row(
        name=isolated(name),
        unit=isolated(plan.units.get(name, "")),
        people=whole(people),
        share=percent(people, plan.count),
        bar=charts.bar(people, plan.count),
        strip=charts.strip(spread, max(abs(spread.p5), abs(spread.p95))) if is_shown else None,
        quarters=(quarters[0], quarters[1], quarters[2]) if is_shown else (NONE, NONE, NONE),
        ways=", ".join(ways),
    )


def largest(changes: Floats) -> Floats:
    """(count, slots of a feature) -> (count,): of each person the change that is farthest from 0"""
    if not changes.shape[1]:
        return np.zeros(len(changes))
    return np.take_along_axis(changes, np.abs(changes).argmax(axis=1)[:, None], axis=1)[:, 0]


def decimals_of(moved: Floats) -> int:
    """For all numbers of a feature: from its median change."""
    return decimals_for(float(np.median(np.abs(moved)))) if len(moved) else 0
