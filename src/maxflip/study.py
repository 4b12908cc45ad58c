"""What is made of several solves: the same question with other budgets, warm-started from the answer at hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip.budgets import Budget
from maxflip.engine import Engine
from maxflip.errors import InputError
from maxflip.pipeline import solve
from maxflip.plan import Plan
from maxflip.problem import Problem
from maxflip.solvers import Solver
from maxflip.suggest import shown
from maxflip.watch import Watch

NUMBERS = (int, float, np.integer, np.floating)

if TYPE_CHECKING:
    import pyarrow as pa


def resolve(
    problem: Problem,
    plan: Plan,
    solver: Solver | None = None,
    *,
    budgets: Mapping[str, float | Budget] | None = None,
    margin: float | None = None,
    threshold: float | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    watch: Watch | None = None,
) -> Plan:
    """The problem again, with these budgets replaced and this margin or threshold, starting from its plan.

    With larger budgets it is never worth less than `plan`. With a smaller margin nobody whom `plan` moves is lost, but
    those who pass at the start now are `already` there and count no more.

    Args:
        problem: what was asked.
        plan: an answer to it, to start from.
        solver: an object such as Prices(); None: Prices().
        budgets: {name: amount or Budget} of those that are others; a plain amount keeps cost and uses.
        margin: another one, or:
        threshold: another one. None of the two: as it was.
        seed: as of `solve`, like engine and watch.
        engine: who does the work.
        watch: who is told.
    """
    if not isinstance(plan, Plan):
        raise InputError(f"plan: got {shown(plan)}; wanted the plan to start from. Without one, use solve(problem).")
    asked = problem.changed(budgets=budgets, margin=margin, threshold=threshold)
    return solve(asked, solver, seed=seed, start=plan, engine=engine, watch=watch)


@dataclass(frozen=True, eq=False)
class Frontier:
    """What more or less of all budgets buys.

    Attributes:
        scales: what all budgets were multiplied by, ascending.
        plans: one for each scale.
    """

    scales: tuple[float, ...]
    plans: tuple[Plan, ...]

    def table(self) -> pa.Table:
        """scale, count, worth, bound, estimate (a pyarrow Table)"""
        import pyarrow as pa

        return pa.table(
            {
                "scale": pa.array(self.scales, pa.float64()),
                "count": pa.array([p.count for p in self.plans], pa.int64()),
                "worth": pa.array([p.worth for p in self.plans], pa.float64()),
                "bound": pa.array([p.bound for p in self.plans], pa.float64()),
                "estimate": pa.array([p.estimate for p in self.plans], pa.float64()),
            }
        )


def frontier(
    problem: Problem,
    scales: Iterable[float],
    solver: Solver | None = None,
    *,
    seed: int = 0,
    engine: Engine | None = None,
    watch: Watch | None = None,
) -> Frontier:
    """Solve with every budget multiplied by each of the scales, from the smallest up, each from the one before.

    Args:
        problem: what is asked.
        scales: finite numbers > 0, in any order.
        solver: an object such as Prices(); None: Prices().
        seed: as of `solve`, like engine and watch.
        engine: who does the work.
        watch: who is told.
    """
    ascending = sorted(set(checked_scales(scales)))
    plans: list[Plan] = []
    for scale in ascending:
        scaled = {n: Budget(b.amount * scale, b.uses, b.cost) for n, b in problem.budgets.items()}
        start = plans[-1] if plans else None
        asked = problem.changed(budgets=scaled)
        plans.append(solve(asked, solver, seed=seed, start=start, engine=engine, watch=watch))
    return Frontier(tuple(ascending), tuple(plans))


def checked_scales(scales: Any) -> list[float]:
    if not isinstance(scales, Iterable):
        raise InputError(f"scales: got {shown(scales)}; wanted a list of finite numbers > 0.")
    listed = list(scales)
    bad = [s for s in listed if isinstance(s, bool) or not isinstance(s, NUMBERS) or not 0 < s < math.inf]
    if bad or not listed:
        raise InputError(f"scales: got {shown(bad[0]) if bad else 'none'}; wanted finite numbers > 0.")
    return [float(s) for s in listed]
