"""Insight: what a plan alone does not know. What other budgets would buy, whether changed samples look like real ones,
which groups those come from who are picked, and what other models say of the flips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from maxflip._util.frozen import Frozen
from maxflip._util.types import Floats, Mask
from maxflip.plan.holds import Judged
from maxflip.plan.plan import Fate, Plan
from maxflip.study.groups import Groups

People = Literal["none", "pseudonyms", "full"]  # what a report shows of single samples

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FAR = 0.95  # a sample farther from real ones than this part of them are from each other is far from all of them


@dataclass(frozen=True)
class Outlook:
    """What more or less of all budgets buys: scales ascending, and of each the plan's count, worth, bound, estimate."""

    scales: tuple[float, ...]
    counts: tuple[int, ...]
    worths: tuple[float, ...]
    bounds: tuple[float | None, ...]
    estimates: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Plausibility(Frozen):
    """How far those picked are from the nearest real sample of the wanted class, before and after their change.

    before, after (count,), in the order of `plan.selected`; NaN where there is no such real sample
    typical: quantile -> how far real samples of the wanted class are from the nearest other one
    references: how many real samples that is   source: whose they are   measure: how it is measured, in words
    """

    before: Floats = field(repr=False)
    after: Floats = field(repr=False)
    typical: Mapping[float, float]
    references: int
    source: str
    measure: str

    @property
    def far(self) -> Mask:
        """(count,): who ends farther from every real sample than 95 % of those are from each other"""
        return np.asarray(self.after > self.typical[FAR])

    @property
    def far_share(self) -> float | None:
        """Their share of those picked; None where there is nobody to say it of."""
        known = np.isfinite(self.after)
        return float(self.far[known].mean()) if known.any() else None


@dataclass(frozen=True, eq=False)
class Insight:
    """What a plan alone does not know; None where it was not asked for or could not be said, and then `notices` may
    say why.

    plan: the one that all this is about: the plan given, or a better one for the same budgets that was found on the way
    """

    frontier: Outlook | None = None
    plausibility: Plausibility | None = None
    groups: Groups | None = None
    notices: tuple[str, ...] = ()
    plan: Plan | None = None
    judges: tuple[Judged, ...] | None = None

    @classmethod
    def load(cls, folder: str | Path) -> Insight | None:
        """Of a plan folder; None where it has none."""
        from maxflip.io.of_plans import load_insight

        return load_insight(folder)


def for_people(insight: Insight | None, people: People) -> Insight | None:
    """What a page that shows so much of single samples may know.

    A group of one would name its member: by its own name, where the column is one of ids, or by the mean confidence.
    """
    if insight is None or insight.groups is None or people == "full":
        return insight
    return replace(insight, groups=insight.groups.merged())


def misfits(insight: Insight, plan: Plan) -> list[str]:
    """What it says of the plan that is not so: then it is one of another plan."""
    faults = []
    ahead, near, groups = insight.frontier, insight.plausibility, insight.groups
    if ahead is not None:
        if ahead.scales != tuple(sorted(set(ahead.scales))) or not ahead.scales:
            faults.append(f"frontier: the scales are {list(ahead.scales)}; wanted some, ascending.")
        for scale, count, worth in zip(ahead.scales, ahead.counts, ahead.worths, strict=True):
            if scale == 1.0 and (count, worth) != (plan.count, plan.worth):
                faults.append(f"frontier: at scale 1 it has {count} samples; the plan has {plan.count}.")
    for judge in insight.judges or ():
        if not max(judge.before, judge.after) <= plan.count:
            faults.append(f"judges: {judge.name}: {judge.after} flips pass in it; the plan has {plan.count}.")
    if near is not None and not len(near.before) == len(near.after) == plan.count:
        faults.append(f"plausibility: has {len(near.after)} samples; the plan has {plan.count}.")
    if groups is not None:
        fates = plan.fate_counts()
        known = {"size": len(plan.fates), "picked": plan.count, "already": fates[Fate.ALREADY]}
        known["reachable"] = plan.count + fates[Fate.LEFT_OUT]
        sums = {name: sum(getattr(group, name) for group in groups.groups) for name in known}
        faults += [
            f"groups: their {name} add up to {sums[name]}; of the plan it is {known[name]}."
            for name in known
            if sums[name] != known[name]
        ]
    return faults
