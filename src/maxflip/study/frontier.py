"""What is made of several solves: the same question with other budgets, warm-started from the answer at hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip._util.engine import Engine
from maxflip._util.events import Watch
from maxflip._util.messages import shown
from maxflip.errors import InputError
from maxflip.plan.plan import Plan
from maxflip.problem.budgets import Budget
from maxflip.problem.problem import Problem
from maxflip.solvers import Grouped, Solver
from maxflip.solving import choose_again, pooled, solve

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

    It chooses from all flips that `plan` keeps as well. With larger budgets it is never worth less than `plan`; with
    any others, never less than `plan.what_if` says that there is at least. With a smaller margin nobody whom `plan`
    moves is lost, but those who pass at the start now are `already` there and count no more.

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
        plans: one for each scale; none is worth less than the one before.
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
    plan: Plan | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    watch: Watch | None = None,
) -> Frontier:
    """Solve with every budget multiplied by each of the scales; more of all budgets is never worth less.

    From the smallest up, each from the one before. Then every plan is chosen again from the flips of all, and the plan
    of a smaller scale takes the place of a larger one's where it is worth more.

    Args:
        problem: what is asked.
        scales: finite numbers > 0, in any order.
        solver: an object such as Prices(); None: Prices().
        plan: of the problem, if it was solved already: it stands at scale 1, or makes way there for a better one.
        seed: as of `solve`, like engine and watch.
        engine: who does the work.
        watch: who is told.
    """

    def solved(scaled: Problem, start: Plan | None) -> Plan:
        return solve(scaled, solver, seed=seed, start=start, engine=engine, watch=watch)

    ascending = sorted(set(checked_scales(scales)))
    if plan is not None:
        _check_plan(problem, plan)
    is_joint = not isinstance(solver, Grouped)
    return Frontier(tuple(ascending), along(problem, ascending, solved, plan, is_joint=is_joint, engine=engine))


def _check_plan(problem: Problem, plan: Plan) -> None:
    """A plan of another question would bring false bounds."""
    amounts = {name: budget.amount for name, budget in problem.budgets.items()}
    if not plan.answers(problem) or {name: budget.amount for name, budget in plan.budgets.items()} != amounts:
        raise InputError(
            "plan: it answers another question than the problem: other samples, budgets, worths, goal or limits. "
            "Give the plan of this very problem, or none."
        )


def along(
    problem: Problem,
    scales: Sequence[float],
    solved: Callable[[Problem, Plan | None], Plan],
    plan: Plan | None,
    *,
    is_joint: bool,
    engine: Engine | None = None,
) -> tuple[Plan, ...]:
    """A plan for each of the scales, which ascend, none worth less than the one before.

    solved: makes a plan of a problem, from an earlier one   plan: of the problem itself, if there is one
    is_joint: whether all samples share every budget, so that a plan may be made up of flips of any others
    """
    asked = [_scaled(problem, scale) for scale in scales]
    found: list[Plan] = []
    for scale, one in zip(scales, asked, strict=True):
        known = found[-1] if found else plan
        found.append(plan if plan is not None and scale == 1.0 else solved(one, known))
    given = [] if plan is None else [plan]
    if len({id(known) for known in (*found, *given)}) == 1:
        return tuple(found)
    pool = pooled(problem, [*found, *given]) if is_joint else None
    ceilings = [ceiling for known in (*found, *given) for ceiling in known.ceilings]
    plans: list[Plan] = []
    for one, known in zip(asked, found, strict=True):
        others = [*plans[-1:], *given]
        plans.append(choose_again(one, known, pool, others=others, ceilings=ceilings, engine=engine))
    return tuple(plans)


def _scaled(problem: Problem, scale: float) -> Problem:
    return problem.changed(budgets={n: Budget(b.amount * scale, b.uses, b.cost) for n, b in problem.budgets.items()})


def checked_scales(scales: Any) -> list[float]:
    if not isinstance(scales, Iterable):
        raise InputError(f"scales: got {shown(scales)}; wanted a list of finite numbers > 0.")
    listed = list(scales)
    bad = [s for s in listed if isinstance(s, bool) or not isinstance(s, NUMBERS) or not 0 < s < math.inf]
    if bad or not listed:
        raise InputError(f"scales: got {shown(bad[0]) if bad else 'none'}; wanted finite numbers > 0.")
    return [float(s) for s in listed]
