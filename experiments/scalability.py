"""The scalability experiment: insurance-like sequences, each set of samples part of the next larger one.

Random start, or warm: from the plan of the next smaller set. The middle budget of the smallest set, fixed or as much
more as there are more samples. One pool for all, or the paper's groups by length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.budget import Plans, allotted, asked, tuned
from experiments.cells import Cell, Payload
from experiments.measures import measured
from experiments.protocol import KINDS, OWN, Growth
from maxflip import Plan

FILES = ("scalability",)
DATASET, SOURCE = "insurance", "binding"
ALGORITHMS = ("BCMS", "CCMS", "KL")  # the paper leaves MS out


@dataclass(frozen=True)
class Chain:
    """All sizes, one after the other, with one solver. scaling: "fixed" or "scaled"   start: "random" or "warm" """

    plans: Plans
    growth: Growth
    seed: int
    solver: str
    allocation: str
    scaling: str
    start: str


def grow(task: Chain, needs: Sequence[Payload], device: str) -> Payload:
    solver = tuned(task.solver, needs[1]) if task.solver in KINDS else OWN[task.solver]
    rows, before = [], None
    for n in task.growth.sizes:
        times = n / task.growth.sizes[0] if task.scaling == "scaled" else 1.0
        problem = asked(task.plans.draw(task.seed, n), needs[0], SOURCE, "middle", device, times)
        earlier: Plan | None = before if task.start == "warm" else None
        before = allotted(problem, solver, task.seed, task.allocation, task.growth.groups, earlier)
        rows.append(
            {
                "dataset": DATASET,
                "seed": task.seed,
                "budget": "middle",
                "budget_source": SOURCE,
                "scaling": task.scaling,
                "start": task.start,
                "allocation": task.allocation,
                "groups": task.growth.groups if task.allocation == "proportional" else 1,
                "solver": task.solver,
                "protocol": "tuned" if task.solver in KINDS else "own",
                "options": repr(solver),
                "device": device,
                **measured(problem, before),
            }
        )
    return {"scalability": rows}


def cells(plans: Plans, growth: Growth) -> list[Cell]:
    found = []
    for seed in range(growth.seeds):
        for scaling in ("fixed", "scaled"):
            for solver in (*ALGORITHMS, *OWN):
                found.append(_cell(plans, growth, Chain(plans, growth, seed, solver, "joint", scaling, "random")))
                if solver != "Nearest":  # it begins nowhere
                    found.append(_cell(plans, growth, Chain(plans, growth, seed, solver, "joint", scaling, "warm")))
        for start in ("random", "warm"):
            for solver in ALGORITHMS:
                chain = Chain(plans, growth, seed, solver, "proportional", "scaled", start)
                found.append(_cell(plans, growth, chain))
    return found


def _cell(plans: Plans, growth: Growth, chain: Chain) -> Cell:
    chosen = (plans.tuning(SOURCE, chain.solver),) if chain.solver in KINDS else ()
    return Cell(
        f"scalability-s{chain.seed}-{chain.solver}-{chain.allocation}-{chain.scaling}-{chain.start}",
        grow,
        chain,
        (plans.sizing(chain.seed), *chosen),
        sum(plans.seconds(chain.solver, n, plans.length) for n in growth.sizes),
        chain.allocation == "joint",
    )
