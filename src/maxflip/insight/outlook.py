"""Outlook: what more or less of all budgets buys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maxflip.budgets import Budget
from maxflip.pipeline import solve
from maxflip.plan import Plan
from maxflip.problem import Problem
from maxflip.solvers import Solver
from maxflip.study import checked_scales
from maxflip.watch import Advanced, Finished, Started, Watch, silent

SCALES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Outlook:
    """What more or less of all budgets buys: scales ascending, and of each the plan's count, worth, bound, estimate."""

    scales: tuple[float, ...]
    counts: tuple[int, ...]
    worths: tuple[float, ...]
    bounds: tuple[float | None, ...]
    estimates: tuple[float | None, ...]


def outlook_of(
    problem: Problem,
    plan: Plan,
    scales: Iterable[float],
    *,
    solver: Solver | None = None,
    watch: Watch | None = None,
) -> Outlook:
    """Ascending, each from the one before; at scale 1 stands the plan itself."""
    tell, stage = watch or silent, "Asking what other budgets buy"
    ascending = sorted(set(checked_scales(scales)))
    tell(Started(stage, sum(scale != 1.0 for scale in ascending)))
    plans: list[Plan] = []
    for scale in ascending:
        if scale == 1.0:
            plans.append(plan)
            continue
        scaled = {n: Budget(b.amount * scale, b.uses, b.cost) for n, b in problem.budgets.items()}
        start = plans[-1] if plans else plan if scale > 1.0 else None
        plans.append(solve(problem.changed(budgets=scaled), solver, seed=plan.seed, start=start))
        tell(Advanced(stage, 1))
    tell(Finished(stage))
    return Outlook(
        scales=tuple(ascending),
        counts=tuple(p.count for p in plans),
        worths=tuple(p.worth for p in plans),
        bounds=tuple(p.bound for p in plans),
        estimates=tuple(p.estimate for p in plans),
    )
