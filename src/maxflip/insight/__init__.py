"""Insight: what a plan alone does not know. What other budgets would buy, whether changed samples look like real ones,
which groups those come from who are picked, and what other models say of the flips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from maxflip.classifiers import Classifier
from maxflip.errors import InputError
from maxflip.holds import Judged, judged_by, read_judges
from maxflip.insight.groups import Group, Groups, groups_of, read_group
from maxflip.insight.outlook import SCALES, Outlook, outlook_of
from maxflip.insight.plausibility import QUANTILES, Plausibility, plausibility_of, read_reference
from maxflip.plan import Fate, Plan
from maxflip.problem import Problem
from maxflip.solvers import Solver
from maxflip.suggest import shown
from maxflip.watch import Watch

__all__ = [
    "QUANTILES",
    "SCALES",
    "Group",
    "Groups",
    "Insight",
    "Judged",
    "Outlook",
    "People",
    "Plausibility",
    "for_people",
    "look",
    "misfits",
    "outlook_of",
]

People = Literal["none", "pseudonyms", "full"]  # what a report shows of single samples


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
        from maxflip.files.plan_folder import load_insight

        return load_insight(folder)


def look(
    problem: Problem,
    plan: Plan,
    *,
    scales: Iterable[float] | None = SCALES,
    group: Any = None,
    reference: Any = None,
    judges: Iterable[Classifier | str | Path] | Mapping[str, Classifier | str | Path] | None = None,
    solver: Solver | None = None,
    watch: Watch | None = None,
) -> Insight:
    """What the plan alone does not know of itself, for `insight.plan.report(path, insight=insight)`.

    Solving with other budgets may show a better plan for these. Then all is about that one, which is `insight.plan`.

    Args:
        problem: the one that the plan was made for.
        plan: its plan.
        scales: what every budget is multiplied by to see what more or less of them buys; None: not asked, as each of
            them is a solve of its own.
        group: who is picked, by group: the name of a feature (of sequences: a static one), a list with one value per
            sample, or {"name": list}. Numbers of more than 12 kinds are cut into quarters; None: not asked.
        reference: a Cohort or table of real samples with the same features; those that the model puts into the wanted
            class as confidently as asked are what changed samples are compared with. None: those of the cohort.
        judges: other models, in a list or by name, each a classifier or the path of a .pt2, .skops or .safetensors
            file: how many flips pass in each of them. A .pt2 returns what the problem's model does. None: not asked.
        solver: for the scales; None: Prices().
        watch: function that is told what happens (maxflip.watch.Event); None: nobody.
    """
    _check(problem, plan)
    grouping = None if group is None else read_group(group, problem.cohort)
    real = None if reference is None else read_reference(reference, problem.cohort)
    named = None if judges is None else read_judges(judges, problem)
    ahead: Outlook | None = None
    if scales is not None:
        ahead, plan = outlook_of(problem, plan, scales, solver=solver, watch=watch)
    plausibility, notices = plausibility_of(problem, plan, real)
    judged = None if named is None else judged_by(problem, *plan.moves_in(problem), named)
    groups = None if grouping is None else groups_of(plan, *grouping)
    return Insight(ahead, plausibility, groups, notices, plan, judged)


def _check(problem: Any, plan: Any) -> None:
    if not isinstance(problem, Problem):
        raise InputError(f"problem: got {shown(problem)}; wanted the Problem(...) that the plan was made for.")
    if not isinstance(plan, Plan):
        raise InputError(f"plan: got {shown(plan)}; wanted a Plan of the problem.")
    people = problem.cohort
    if people.features != plan.features or not np.array_equal(people.ids, plan.all_ids):
        raise InputError("plan: has other samples or features than the problem. Give the problem it was made for.")
    if {name: b.amount for name, b in problem.budgets.items()} != {name: b.amount for name, b in plan.budgets.items()}:
        raise InputError(
            "problem: has other budgets than the plan. Give the one that the plan was made for; after `resolve` or "
            "`frontier` that is problem.changed(budgets=...)."
        )


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
