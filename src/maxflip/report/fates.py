"""The fate of everyone in the cohort, and their confidence before the change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip._util.types import Floats
from maxflip.plan.plan import Fate, Plan
from maxflip.report import charts
from maxflip.report.answer import required_confidence
from maxflip.report.numbers import number, percent, whole

BINS = 24  # of the histograms
FEW_BINS = 10  # bins if bars of few people are left out
FEWEST = 5  # with fewer people picked or not picked there is no histogram: individuals could be identified

_NAMES = {
    Fate.ALREADY: "Already there",
    Fate.FLIPPED: "Picked",
    Fate.LEFT_OUT: "Left out",
    Fate.NOT_FOUND: "No change found",
    Fate.UNREACHABLE: "Unreachable",
    Fate.UNUSABLE: "Unusable",
}
_MEANINGS = {
    Fate.ALREADY: "Predicted in the wanted class from the start, with the required confidence. Nothing is changed.",
    Fate.FLIPPED: "The plan changes them; afterwards the model predicts the wanted class with the required confidence.",
    Fate.LEFT_OUT: "A change that moves them is known, but the budgets do not pay for it, or they were excluded.",
    Fate.NOT_FOUND: "No change was found that moves them; one may exist.",
    Fate.UNREACHABLE: "Proved: no change within the limits and budgets moves them.",
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
    bar = charts.stacked("fates", "Everyone in the cohort", [(r.key, r.name, r.count) for r in rows])
    return Fates(rows, bar)


@dataclass(frozen=True)
class Risk:
    """Confidence before the change: people picked against people not picked, and a sentence about it.

    `is_cut`: bars of few people are left out"""

    chart: charts.Chart
    sentence: str
    is_cut: bool


def risk(plan: Plan, fewest: int = 1) -> Risk | None:
    """None if either side has fewer than FEWEST people. No bar is for fewer than `fewest` people."""
    kinds, before = plan.fates.astype(str), plan.confidence_before
    is_picked = kinds == Fate.FLIPPED
    known = np.isfinite(before)
    picked = before[is_picked & known]
    others = before[~is_picked & (kinds != Fate.ALREADY) & known]
    if min(len(picked), len(others)) < FEWEST:
        return None
    low, high = float(min(picked.min(), others.min())), float(max(picked.max(), others.max()))
    required = required_confidence(plan)
    if not low < high:
        return None
    sentence = _sentence(float(np.median(picked)), float(np.median(others)))
    if fewest > 1:
        low, high = _rounded(low, high)
    last = high if required is None else max(high, min(required, high + (high - low)))
    edges = np.linspace(low, last, (BINS if fewest == 1 else FEW_BINS) + 1)
    shares = [_shares(values, edges, fewest) for values in (picked, others)]
    picture = charts.mirrored(
        "risk",
        "Confidence before the change: people picked and people not picked",
        sentence,
        edges,
        ("flipped", f"{whole(len(picked))} picked", shares[0]),
        ("left_out", f"{whole(len(others))} not picked", shares[1]),
        x_name="confidence before the change",
        at=None if required is None else (required, "required"),
    )
    rows = [
        (f"{number(float(a), 3)} to {number(float(b), 3)}", percent(p, 1.0), percent(o, 1.0))
        for a, b, p, o in zip(edges[:-1], edges[1:], *shares, strict=True)
        if p or o
    ]
    chart = charts.Chart(picture, ("Confidence before", "Share of people picked", "Share of people not picked"), rows)
    return Risk(chart, sentence, is_cut=fewest > 1)


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Round numbers below `low` and above `high`: the exact ones are values of individual people."""
    step = 10.0 ** math.floor(math.log10(high - low)) / 2
    return step * math.floor(low / step), step * math.ceil(high / step)


def _shares(values: Floats, edges: Floats, fewest: int) -> Floats:
    counts = np.histogram(values, edges)[0]
    return np.where(counts >= fewest, counts, 0) / len(values)


def _sentence(picked: float, others: float) -> str:
    medians = (
        f"The median confidence before the change is {number(picked, 2)} for people picked and {number(others, 2)} for "
        "people not picked."
    )
    if picked > others:
        return f"{medians} The plan mostly picked people who were closer to the wanted class."
    return f"{medians} Here the plan did not simply pick the people closest to the wanted class."
