"""What became of everyone, and how near the line those picked were before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip._util.types import Floats
from maxflip.plan.plan import Fate, Plan
from maxflip.report import charts
from maxflip.report.answer import asked_confidence
from maxflip.report.numbers import number, percent, whole

BINS = 24
FEW_BINS = 10  # where bars of few people are left out
FEWEST = 5  # people on either side: fewer make no picture, and would be told apart in it

_NAMES = {
    Fate.ALREADY: "There already",
    Fate.FLIPPED: "Picked",
    Fate.LEFT_OUT: "Left out",
    Fate.NOT_FOUND: "Not found",
    Fate.UNREACHABLE: "Unreachable",
    Fate.UNUSABLE: "Unusable",
}
_MEANINGS = {
    Fate.ALREADY: "Predicted as wanted from the start, with the confidence asked for; nothing is changed.",
    Fate.FLIPPED: "The plan changes them, and after the change they are predicted as wanted.",
    Fate.LEFT_OUT: "A change that does it is known, but the budgets do not pay for it, or they were excluded.",
    Fate.NOT_FOUND: "No change was found that does it; there may be one.",
    Fate.UNREACHABLE: "Proved: no change within the limits and budgets does it.",
    Fate.UNUSABLE: "The model gives no finite answer for them.",
}


@dataclass(frozen=True)
class Row:
    key: str
    name: str
    count: int
    share: str
    meaning: str


@dataclass(frozen=True)
class Fates:
    rows: Sequence[Row]
    bar: Markup


def fates(plan: Plan) -> Fates:
    counts = plan.fate_counts()
    rows = [Row(f.value, _NAMES[f], n, percent(n, len(plan.fates)), _MEANINGS[f]) for f, n in counts.items()]
    bar = charts.stacked("fates", "What became of everyone", [(r.key, r.name, r.count) for r in rows])
    return Fates(rows, bar)


@dataclass(frozen=True)
class Risk:
    """The confidence before of those picked beside those who were not, and a sentence about it.

    `is_cut`: bars of few people are left out"""

    chart: charts.Chart
    sentence: str
    is_cut: bool


def risk(plan: Plan, fewest: int = 1) -> Risk | None:
    """None where one of the sides has next to nobody. No bar stands for fewer than `fewest` people."""
    kinds, before = plan.fates.astype(str), plan.confidence_before
    is_picked = kinds == Fate.FLIPPED
    known = np.isfinite(before)
    picked = before[is_picked & known]
    others = before[~is_picked & (kinds != Fate.ALREADY) & known]
    if min(len(picked), len(others)) < FEWEST:
        return None
    low, high = float(min(picked.min(), others.min())), float(max(picked.max(), others.max()))
    asked = asked_confidence(plan)
    if not low < high:
        return None
    sentence = _sentence(float(np.median(picked)), float(np.median(others)))
    if fewest > 1:
        low, high = _rounded(low, high)
    last = high if asked is None else max(high, min(asked, high + (high - low)))
    edges = np.linspace(low, last, (BINS if fewest == 1 else FEW_BINS) + 1)
    shares = [_shares(values, edges, fewest) for values in (picked, others)]
    picture = charts.mirrored(
        "risk",
        "Confidence before the change, of those picked and of those not picked",
        sentence,
        edges,
        ("flipped", f"{whole(len(picked))} picked", shares[0]),
        ("left_out", f"{whole(len(others))} not picked", shares[1]),
        x_name="confidence before the change",
        at=None if asked is None else (asked, "asked for"),
    )
    rows = [
        (f"{number(float(a), 3)} to {number(float(b), 3)}", percent(p, 1.0), percent(o, 1.0))
        for a, b, p, o in zip(edges[:-1], edges[1:], *shares, strict=True)
        if p or o
    ]
    chart = charts.Chart(picture, ("Confidence before", "Of those picked", "Of those not picked"), rows)
    return Risk(chart, sentence, is_cut=fewest > 1)


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Round numbers around both: they themselves are those of single people."""
    step = 10.0 ** math.floor(math.log10(high - low)) / 2
    return step * math.floor(low / step), step * math.ceil(high / step)


def _shares(values: Floats, edges: Floats, fewest: int) -> Floats:
    people = np.histogram(values, edges)[0]
    return np.where(people >= fewest, people, 0) / len(values)


def _sentence(picked: float, others: float) -> str:
    halves = (
        f"Half of those picked were above {number(picked, 2)} before, half of those not picked above "
        f"{number(others, 2)}."
    )
    if picked > others:
        return f"{halves} The plan took mostly those nearer the line."
    return f"{halves} Here the plan did not simply take those nearer the line."
