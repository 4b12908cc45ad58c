"""The runtime table: what one iteration of each algorithm takes on the 169-feature network, and what a run would.

Cells of this experiment run one after the other, with nothing beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxflip import Plan, solve
from research.cells import Cell, Payload
from research.experiments.budget import Plans, asked
from research.experiments.measures import gradients
from research.experiments.protocol import KINDS, OWN, seconds_of

FILES = ("runtime",)
DATASET, SOURCE = "insurance", "paper"
OUTER, INNER = 2, 5  # iterations that are timed; the first outer one warms up


@dataclass(frozen=True)
class Timing:
    plans: Plans
    solver: str


def take_time(task: Timing, needs: Sequence[Payload], device: str) -> Payload:
    problem = asked(task.plans.draw(0), needs[0], SOURCE, "middle", device)
    about = {"dataset": DATASET, "n": len(problem), "features": 169, "solver": task.solver, "device": device}
    if task.solver in OWN:
        plan = solve(problem, OWN[task.solver])
        return {"runtime": [{**about, **whole(plan, len(problem))}]}
    kind = KINDS[task.solver]
    plan = solve(problem, kind.paper(outer=OUTER, inner=INNER))
    full = kind.paper()
    return {"runtime": [{**about, **per_iteration(plan, len(problem), full.outer, full.inner)}]}


def whole(plan: Plan, n: int) -> dict[str, Any]:
    """Of a solver that is run to its end"""
    return {
        "seconds_inner": None,
        "seconds_outer": None,
        "gradients_inner": None,
        "gradients_outer": None,
        "outer": None,
        "inner": None,
        "gradients_total": gradients(plan) / n,
        "seconds_total": plan.seconds,
        "is_measured": True,
    }


def per_iteration(plan: Plan, n: int, outer: int, inner: int) -> dict[str, Any]:
    """Of the last outer iteration. outer, inner: those of the paper, whose total is reckoned from it, not measured

    seconds_outer: what comes on top of the inner iterations: multipliers and the final solution
    """
    trace = {name: np.asarray(column, dtype=float) for name, column in plan.trace.items()}
    made = trace["inner"][-1]
    seconds_inner = trace["seconds_inner"][-1]
    seconds_outer = trace["seconds"][-1] - made * seconds_inner
    drawn = np.diff(trace["gradients"])[-1] / n  # in a whole one: one per inner one, and one for multipliers
    gradients_outer = drawn - made
    return {
        "seconds_inner": float(seconds_inner),
        "seconds_outer": float(seconds_outer),
        "gradients_inner": 1.0,
        "gradients_outer": float(gradients_outer),
        "outer": outer,
        "inner": inner,
        "gradients_total": float(outer * (inner + gradients_outer)),
        "seconds_total": float(outer * (inner * seconds_inner + seconds_outer)),
        "is_measured": False,
    }


def cells(plans: Plans) -> list[Cell]:
    n = plans.scale.n
    return [
        Cell(
            f"runtime-{solver}",
            take_time,
            Timing(plans, solver),
            (plans.sizing(0),),
            seconds_of(DATASET, solver, n, OUTER * INNER),
            True,
        )
        for solver in (*KINDS, *OWN)
    ]
