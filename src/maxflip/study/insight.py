"""Insight: additional results about a plan.

What other budgets would reach, whether changed samples look like real ones, which groups are picked, and how many flips
pass in other models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from maxflip._util.frozen import Frozen
from maxflip._util.messages import counted
from maxflip._util.types import Floats, Mask
from maxflip.plan.holds import Judged
from maxflip.plan.plan import Fate, Plan
from maxflip.study.groups import Groups

People = Literal["none", "pseudonyms", "full"]  # what a report shows of single samples

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FAR = 0.95  # quantile of distances among real samples above which a changed sample is implausible


@dataclass(frozen=True)
class Outlook:
    """Plans with all budgets multiplied by each scale (ascending): count, worth, bound, estimate."""

    scales: tuple[float, ...]
    counts: tuple[int, ...]
    worths: tuple[float, ...]
    bounds: tuple[float | None, ...]
    estimates: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Plausibility(Frozen):
    """Nearest-neighbour distances from the samples picked to real samples of the wanted class.

    before, after (count,): distance before and after the change, in the order of `plan.selected`; NaN if there are too
        few real samples
    typical: {quantile: nearest-neighbour distance among the real samples of the wanted class}
    references: number of real samples   source: where they come from   measure: the distance, in words
    """

    before: Floats = field(repr=False)
    after: Floats = field(repr=False)
    typical: Mapping[float, float]
    references: int
    source: str
    measure: str

    @property
    def far(self) -> Mask:
        """(count,): whether the distance after the change exceeds the 95th percentile among real samples"""
        return np.asarray(self.after > self.typical[FAR])

    @property
    def far_share(self) -> float | None:
        """Share of the samples picked that are far; None if no distance is known."""
        known = np.isfinite(self.after)
        return float(self.far[known].mean()) if known.any() else None


@dataclass(frozen=True, eq=False)
class Insight:
    """Additional results about a plan. A field is None if it was not requested or not possible; `notices` says why.

    plan: the plan that the results describe: the given one, or a better one for the same budgets found on the way
    """

    frontier: Outlook | None = None
    plausibility: Plausibility | None = None
    groups: Groups | None = None
    notices: tuple[str, ...] = ()
    plan: Plan | None = None
    judges: tuple[Judged, ...] | None = None

    @classmethod
    def load(cls, folder: str | Path) -> Insight | None:
        """Load from a plan folder; None if it has none."""
        from maxflip.io.of_plans import load_insight

        return load_insight(folder)


def for_people(insight: Insight | None, people: People) -> Insight | None:
    """The insight for a page that shows individual samples as `people` says: small groups are merged unless "full".

    A group of one would identify its member by its name, if the column holds ids, or by its mean confidence.
    """
    if insight is None or insight.groups is None or people == "full":
        return insight
    return replace(insight, groups=insight.groups.merged())


def misfits(insight: Insight, plan: Plan) -> list[str]:
    """Contradictions between insight and plan, as sentences: the insight then belongs to another plan."""
    faults = []
    ahead, near, groups = insight.frontier, insight.plausibility, insight.groups
    if ahead is not None:
        if ahead.scales != tuple(sorted(set(ahead.scales))) or not ahead.scales:
            faults.append(f"frontier: the scales are {list(ahead.scales)}; wanted at least one, ascending.")
        for scale, count, worth in zip(ahead.scales, ahead.counts, ahead.worths, strict=True):
            if scale == 1.0 and (count, worth) != (plan.count, plan.worth):
                faults.append(f"frontier: at scale 1 it has {counted(count, 'sample')}; the plan has {plan.count}.")
    for judge in insight.judges or ():
        if not max(judge.before, judge.after) <= plan.count:
            passing = f"{counted(judge.after, 'flip')} {'passes' if judge.after == 1 else 'pass'}"
            faults.append(f"judges: {judge.name}: {passing} in it; the plan has {plan.count}.")
    if near is not None and not len(near.before) == len(near.after) == plan.count:
        faults.append(f"plausibility: has {counted(len(near.after), 'sample')}; the plan has {plan.count}.")
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
