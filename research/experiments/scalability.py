"""The scalability experiment: students and insurance-like sequences, each set of samples part of the next larger one.

Random start, or warm: from the plan of the next smaller set. The middle budget of the smallest set, fixed or as much
more as there are more samples. One pool for all, or the paper's groups by length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from maxflip import Plan
from research.cells import Cell, Payload
from research.experiments.budget import Plans, allotted, asked, tuned
from research.experiments.measures import measured
from research.experiments.protocol import KINDS, OWN, Growth

FILES = ("scalability",)
SOURCE = "binding"
SCALINGS = ("fixed", "scaled")
ALGORITHMS = ("BCMS", "CCMS", "KL")  # the paper leaves MS out


@dataclass(frozen=True)
class Chain:
    """Some sizes, one after the other, with one solver.

    scaling: "fixed" or "scaled"; of the smallest set both are the same, and one run stands for "both"
    start: "random", or "warm", from the plan of the size before
    """

    plans: Plans
    growth: Growth
    sizes: tuple[int, ...]
    seed: int
    solver: str
    allocation: str
    scaling: str
    start: str


def grow(task: Chain, needs: Sequence[Payload], device: str) -> Payload:
    solver = tuned(task.solver, needs[1]) if task.solver in KINDS else OWN[task.solver]
    rows: list[dict[str, Any]] = []
    before: Plan | None = None
    for n in task.sizes:
        held = n if task.scaling == "scaled" else task.growth.sizes[0]
        times = held / task.plans.scale.n
        problem = asked(task.plans.draw(task.seed, n), needs[0], SOURCE, "middle", device, times)
        before = allotted(problem, solver, task.seed, task.allocation, task.growth.groups, before)
        row = {
            "dataset": task.plans.dataset,
            "seed": task.seed,
            "budget": "middle",
            "budget_source": SOURCE,
            "start": task.start,
            "allocation": task.allocation,
            "groups": task.growth.groups if task.allocation == "proportional" else 1,
            "solver": task.solver,
            "protocol": "tuned" if task.solver in KINDS else "own",
            "options": repr(solver),
            "device": device,
            **measured(problem, before),
        }
        scalings = SCALINGS if task.scaling == "both" else (task.scaling,)
        rows += [row | {"scaling": scaling} for scaling in scalings]
    return {"scalability": rows}


def cells(plans: Plans, growth: Growth, seeds: int) -> list[Cell]:
    """In one pool, everything; in the paper's groups, its own algorithms, with budgets that grow."""
    found: list[Cell] = []
    for seed in range(seeds):
        for solver in (*ALGORITHMS, *OWN):
            found += _in_one_pool(plans, growth, seed, solver)
            if solver in ALGORITHMS:
                found += [
                    _cell(Chain(plans, growth, (n,), seed, solver, "proportional", "scaled", "random"))
                    for n in growth.sizes
                ]
    return found


def _in_one_pool(plans: Plans, growth: Growth, seed: int, solver: str) -> Iterator[Cell]:
    smallest, *others = growth.sizes
    about: dict[str, Any] = {"plans": plans, "growth": growth, "seed": seed, "solver": solver, "allocation": "joint"}
    yield _cell(Chain(**about, sizes=(smallest,), scaling="both", start="random"))
    for scaling in SCALINGS:
        for n in others:
            yield _cell(Chain(**about, sizes=(n,), scaling=scaling, start="random"))
        if solver != "Nearest":  # it begins nowhere
            yield _cell(Chain(**about, sizes=growth.sizes, scaling=scaling, start="warm"))


def _cell(chain: Chain) -> Cell:
    plans = chain.plans
    chosen = (plans.tuning(SOURCE, chain.solver),) if chain.solver in KINDS else ()
    sizes = "-".join(map(str, chain.sizes))
    return Cell(
        f"scalability-{plans.dataset}-s{chain.seed}-{chain.solver}-{chain.allocation}-{chain.scaling}-{chain.start}-{sizes}",
        grow,
        chain,
        (plans.sizing(chain.seed), *chosen),
        sum(plans.seconds(chain.solver, n, plans.length) for n in chain.sizes),
        plans.suits_gpu(chain.solver, chain.allocation),
    )
