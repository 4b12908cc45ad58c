"""Outlook: what more or less of all budgets buys."""

from __future__ import annotations

from collections.abc import Iterable

from maxflip._util.events import Advanced, Finished, Started, Watch, silent
from maxflip.errors import ProblemError
from maxflip.plan.plan import Plan
from maxflip.problem.problem import Problem
from maxflip.solvers import Solver
from maxflip.study.frontier import along, ascending_scales
from maxflip.study.insight import Outlook

SCALES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def outlook_of(
    problem: Problem,
    plan: Plan,
    scales: Iterable[float],
    *,
    solver: Solver | None = None,
    watch: Watch | None = None,
) -> tuple[Outlook, Plan]:
    """What each scale buys, and the plan at scale 1: the one given, or a better one that the others showed. Scales at
    which the budgets do not suffice for those who must be picked, or whom quotas ask for, are left out."""
    tell, stage = watch or silent, "Asking what other budgets buy"
    ascending = ascending_scales(scales)
    tell(Started(stage, sum(scale != 1.0 for scale in ascending)))
    while True:
        try:
            found = along(problem, ascending, solver, plan, seed=plan.seed, after_each=lambda: tell(Advanced(stage, 1)))
            break
        except ProblemError:  # so little of the budgets is not enough for those who must be picked
            if ascending[0] >= 1.0 or not (len(problem.include) or problem.quotas.demanding):
                raise
            tell(Advanced(stage, 1))
            ascending = ascending[1:]
    tell(Finished(stage))
    plans = found.plans
    outlook = Outlook(
        scales=found.scales,
        counts=tuple(p.count for p in plans),
        worths=tuple(p.worth for p in plans),
        bounds=tuple(p.bound for p in plans),
        estimates=tuple(p.estimate for p in plans),
    )
    return outlook, plans[ascending.index(1.0)] if 1.0 in ascending else plan
