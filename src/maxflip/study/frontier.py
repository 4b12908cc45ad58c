"""Solve the same problem with other budgets, once or several times, warm-started from an existing plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip._util.engine import Engine
from maxflip._util.events import Watch
from maxflip._util.messages import counted, shown
from maxflip.errors import InputError
from maxflip.plan.plan import Plan
from maxflip.problem.budgets import Budget
from maxflip.problem.problem import Problem
from maxflip.solvers import Solver
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
    any others, never less than the lower bound of `plan.what_if`. With a smaller margin nobody whom `plan`
    moves is lost, but those who pass at the start now are `already` there and count no more.

    Args:
        problem: what was asked.
        plan: an answer to it, to start from.
        solver: an object such as Prices(); None: Prices().
        budgets: {name: amount or Budget} of the budgets to replace; with an amount, the budget keeps all else.
        margin: the new margin.
        threshold: the new threshold, instead of a margin. If neither is given, the requirement stays as it is.
        seed: as in `solve`.
        engine: as in `solve`: runs the work, e.g. on several threads.
        watch: as in `solve`: function called with progress events.
    """
    if not isinstance(plan, Plan):
        raise InputError(f"plan: got {shown(plan)}; wanted the plan to start from. Without one, use solve(problem).")
    _check_problem(problem)
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

    Scales are solved in ascending order, each starting from the plan before. Then every plan is chosen again from the
    flips of all plans. If the plan of a smaller scale is worth more, it replaces that of the larger scale.

    Args:
        problem: what is asked.
        scales: finite numbers > 0, in any order.
        solver: an object such as Prices(); None: Prices().
        plan: a plan of the problem, if there is one. It is used at scale 1, unless a better one is found.
        seed: as of `solve`, like engine and watch.
        engine: who does the work.
        watch: who is told.
    """
    _check_problem(problem)
    ascending = ascending_scales(scales)
    if plan is not None:
        if not isinstance(plan, Plan):
            raise InputError(f"plan: got {shown(plan)}; wanted a Plan of the problem.")
        _check_plan(problem, plan)
    return along(problem, ascending, solver, plan, seed=seed, engine=engine, watch=watch)


def _check_problem(problem: Any) -> None:
    if not isinstance(problem, Problem):
        raise InputError(f"problem: got {shown(problem)}; wanted a Problem(...).")


def _check_plan(problem: Problem, plan: Plan) -> None:
    """Raise InputError for a plan of another problem: its bounds would be wrong here."""
    asked = {name: budget.detached() for name, budget in problem.budgets.items()}
    if not plan.answers(problem) or dict(plan.budgets) != asked:
        raise InputError(
            "plan: it answers another question than the problem: other samples, budgets, worths, goal or limits. "
            "Give the plan of this very problem, or none."
        )


def along(
    problem: Problem,
    scales: Sequence[float],
    solver: Solver | None,
    plan: Plan | None,
    *,
    seed: int,
    engine: Engine | None = None,
    watch: Watch | None = None,
    after_each: Callable[[], None] | None = None,
) -> Frontier:
    """The one loop of `frontier` and `outlook_of`. None of its plans is worth less than the one before.

    1. Solve each scale from the plan of the one before, the smallest first. At scale 1, the given plan is used.
    2. Pool the flips of all plans.
    3. Choose each plan again from the pool. The plan of a smaller scale takes its place if that is worth more.

    Samples in groups share no budget, so a plan cannot be made up of flips of others: then there is no pool.

    Args:
        problem: what is asked.
        scales: ascending.
        solver: None: Prices().
        plan: of the problem itself, if there is one.
        seed: as of `solve`, like engine and watch.
        engine: who does the work.
        watch: who is told of each solve.
        after_each: called after each solve.
    """
    is_joint = not isinstance(solver, Solver) or solver.is_joint  # Prices() if it is None
    if plan is not None and plan.solver.groups is not None and is_joint:
        raise InputError(
            f"plan: its budgets were divided among {counted(plan.solver.groups, 'group')}. Give the solver too, "
            "Grouped(Prices(), groups), so that they are divided at other scales as well."
        )
    scaled = [_scaled(problem, scale) for scale in scales]
    found: list[Plan] = []
    for scale, one in zip(scales, scaled, strict=True):
        if plan is not None and scale == 1.0:
            found.append(plan)
            continue
        start = found[-1] if found else plan
        found.append(solve(one, solver, seed=seed, start=start, engine=engine, watch=watch))
        if after_each is not None:
            after_each()
    given = [] if plan is None else [plan]
    known = [*found, *given]
    if len({id(one) for one in known}) == 1:
        return Frontier(tuple(scales), tuple(found))
    pool = pooled(problem, known) if is_joint else None
    ceilings = [ceiling for one in known for ceiling in one.ceilings]
    plans: list[Plan] = []
    for one, own in zip(scaled, found, strict=True):
        others = [*plans[-1:], *given]
        plans.append(choose_again(one, own, pool, others=others, ceilings=ceilings, engine=engine))
    return Frontier(tuple(scales), tuple(plans))


def _scaled(problem: Problem, scale: float) -> Problem:
    return problem.changed(budgets={name: replace(b, amount=b.amount * scale) for name, b in problem.budgets.items()})


def ascending_scales(scales: Any) -> list[float]:
    """Each scale once, ascending; InputError if one is no finite number > 0."""
    if not isinstance(scales, Iterable):
        raise InputError(f"scales: got {shown(scales)}; wanted a list of finite numbers > 0.")
    listed = list(scales)
    bad = [s for s in listed if isinstance(s, bool) or not isinstance(s, NUMBERS) or not 0 < s < math.inf]
    if bad or not listed:
        raise InputError(f"scales: got {shown(bad[0]) if bad else 'none'}; wanted finite numbers > 0.")
    return sorted({float(s) for s in listed})
