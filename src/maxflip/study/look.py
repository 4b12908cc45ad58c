"""look: additional results about a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from maxflip._util.events import Watch
from maxflip._util.messages import shown
from maxflip.errors import InputError
from maxflip.models import Classifier
from maxflip.plan.holding import judged_by, read_judges
from maxflip.plan.plan import Plan
from maxflip.problem.problem import Problem
from maxflip.solvers import Solver
from maxflip.study.groups import groups_of, read_group
from maxflip.study.insight import Insight, Outlook
from maxflip.study.outlook import SCALES, outlook_of
from maxflip.study.plausibility import plausibility_of, read_reference


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
    """Additional results about a plan, for `insight.plan.report(path, insight=insight)`.

    Solving with other budgets may find a better plan for the same budgets. Then `insight.plan` is that plan, and all
    results describe it.

    Args:
        problem: the problem of the plan.
        plan: its plan.
        scales: factors of all budgets for the frontier, each a solve of its own; None: no frontier.
        group: column for the results by group: the name of a feature (for sequences: a static one), a list with one
            value per sample, or {"name": list}. More than 12 different numbers are cut into quarters; None: no groups.
        reference: a Cohort or table of real samples with the same features. Changed samples are compared with those in
            the wanted class with the required confidence. None: the cohort.
        judges: other models, in a list or by name, each a classifier or the path of a .pt2, .skops or .safetensors
            file. Counts the flips that pass in each. A .pt2 returns the same kind of output as the problem's model.
            None: no other models.
        solver: solver for the scales; None: Prices().
        watch: function called with progress events (maxflip.Event); None: no reports.
    """
    _check(problem, plan, same=scales is not None)
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


def _check(problem: Any, plan: Any, *, same: bool) -> None:
    """same: whether it must be the very question, and not one with another margin, say"""
    if not isinstance(problem, Problem):
        raise InputError(f"problem: got {shown(problem)}; wanted the Problem(...) that the plan was made for.")
    if not isinstance(plan, Plan):
        raise InputError(f"plan: got {shown(plan)}; wanted a Plan of the problem.")
    cohort = problem.cohort
    if cohort.features != plan.features or not np.array_equal(cohort.ids, plan.all_ids):
        raise InputError("plan: has other samples or features than the problem. Give the problem it was made for.")
    if {name: b.detached() for name, b in problem.budgets.items()} != dict(plan.budgets):
        raise InputError(
            "problem: has other budgets than the plan. Give the one that the plan was made for; after `resolve` or "
            "`frontier` that is problem.changed(budgets=...)."
        )
    if same and not plan.answers(problem):
        raise InputError(
            "plan: it answers another question than the problem: other worths, goal, limits or ids to pick. "
            "Give the problem it was made for."
        )
