"""The budget experiment: how many are flipped, by which algorithm, with how much of every budget.

For each dataset and seed: a draw of samples, budgets of two kinds in three sizes, six solvers. The paper's four are
tuned once per kind of budget, on a draw of their own, all with the same number of gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from maxflip import KL, Budget, Nearest, Plan, Problem, solve
from maxflip.solvers import Solver
from maxflip.study.sizing import WEIGHTS, size_budgets
from maxflip.study.tuning import tune
from research.cells import Cell, Payload
from research.experiments.cohorts import problem_of
from research.experiments.measures import measured, of_iterations, of_prices, spreads
from research.experiments.protocol import (
    BUDGETS,
    KINDS,
    OWN,
    SHARES,
    SOLVERS,
    SOURCES,
    TUNING_SEED,
    Scale,
    begun,
    grid,
    seconds_of,
    verbatim,
)

FILES = ("budget", "tuning", "iterations", "prices", "sizing")


@dataclass(frozen=True)
class Draw:
    """Some samples of a dataset. data: the folder of public data, which a finished cell is not known by"""

    dataset: str
    data: str | None = field(repr=False)
    n: int
    seed: int

    def problem(self, device: str) -> Problem:
        return problem_of(self.dataset, self.data, self.n, self.seed, device)

    @property
    def row(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "seed": self.seed}


@dataclass(frozen=True)
class Sizing:
    draw: Draw
    scale: Scale


def size(task: Sizing, needs: Sequence[Payload], device: str) -> Payload:
    """Budgets of both kinds. KL's weight of the distance is chosen on the draw for tuning, and kept for the others."""
    problem = task.draw.problem(device)
    weights = [needs[0]["a"]] if needs else list(WEIGHTS)
    base = begun("KL", task.scale)
    assert isinstance(base, KL)
    unlimited = size_budgets(problem, list(SHARES["paper"].values()), base, weights=weights, seed=task.draw.seed)
    dear = Nearest(prices={name: 1.0 / spread**2 for name, spread in spreads(problem).items()})
    nearest = solve(problem.changed(budgets=dict.fromkeys(problem.budgets, math.inf)), dear, seed=task.draw.seed)
    amounts = {"paper": unlimited.plan.spend, "binding": nearest.spend}
    return {
        "a": unlimited.a,
        "amounts": {
            source: {
                size: {name: share * total for name, total in amounts[source].items()} for size, share in of.items()
            }
            for source, of in SHARES.items()
        },
        "sizing": [
            {**task.draw.row, "n": task.draw.n, "solver": name, "count": plan.count, "feature": feature, "spend": spend}
            for name, plan in (("KL", unlimited.plan), ("Nearest", nearest))
            for feature, spend in plan.spend.items()
        ],
    }


def asked(draw: Draw, sizing: Payload, source: str, budget: str, device: str, times: float = 1.0) -> Problem:
    """The draw with these budgets. times: how much more of each"""
    amounts = sizing["amounts"][source][budget]
    return draw.problem(device).changed(budgets={name: Budget(times * amount) for name, amount in amounts.items()})


@dataclass(frozen=True)
class Tuning:
    draw: Draw
    scale: Scale
    source: str
    solver: str


def choose_settings(task: Tuning, needs: Sequence[Payload], device: str) -> Payload:
    problem = asked(task.draw, needs[0], task.source, "middle", device)
    base = begun(task.solver, task.scale)
    found = tune(problem, base, grid=grid(task.solver), allowance=task.scale.allowance, seed=task.draw.seed)
    about = {**task.draw.row, "n": task.draw.n, "budget_source": task.source, "solver": task.solver}
    trials = [
        {
            **about,
            "options": repr(trial.solver),
            "count": trial.count,
            "worth": trial.worth,
            "spent": trial.spent,
            "gradients": trial.gradients,
            "seconds": trial.seconds,
            "chosen": trial.solver == found.solver,
            "notices": " ".join(trial.notices),
        }
        for trial in found.trials
    ]
    return {"options": asdict(found.solver), "tuning": trials}


@dataclass(frozen=True)
class Run:
    """protocol: "tuned", "paper" (its own settings) or "own" (of solvers that have nothing to tune)"""

    draw: Draw
    scale: Scale
    source: str
    budget: str
    solver: str
    protocol: str
    allocation: str

    def algorithm(self, needs: Sequence[Payload]) -> Solver:
        if self.protocol == "own":
            return OWN[self.solver]
        if self.protocol == "paper":
            return verbatim(self.solver, self.scale.paper_limit)
        return tuned(self.solver, needs[1])


def tuned(solver: str, tuning: Payload) -> Solver:
    return KINDS[solver](**tuning["options"])


def allotted(
    problem: Problem, solver: Solver, seed: int, allocation: str, groups: int, start: Plan | None = None
) -> Plan:
    parts: dict[str, Any] = {"allocation": allocation} | ({"groups": groups} if allocation == "proportional" else {})
    return solve(problem, solver, seed=seed, start=start, **parts)


def compare(task: Run, needs: Sequence[Payload], device: str) -> Payload:
    problem = asked(task.draw, needs[0], task.source, task.budget, device)
    solver = task.algorithm(needs)
    plan = allotted(problem, solver, task.draw.seed, task.allocation, task.scale.groups)
    about = {
        **task.draw.row,
        "budget": task.budget,
        "budget_source": task.source,
        "allocation": task.allocation,
        "solver": task.solver,
        "protocol": task.protocol,
    }
    rows = of_iterations(plan) if task.allocation == "joint" else []
    return {
        "budget": [{**about, "options": repr(solver), "device": device, **measured(problem, plan)}],
        "iterations": [{**about, **row} for row in rows],
        "prices": [{**about, **row} for row in of_prices(plan)],
    }


@dataclass(frozen=True)
class Plans:
    """The cells of one dataset, those that others need among them. data: as of Draw"""

    dataset: str
    data: str | None = field(repr=False)
    scale: Scale

    def suits_gpu(self, solver: str, allocation: str = "joint") -> bool:
        """Long sequences do, and the noise of CCMS, n^2 numbers for each selection drawn; groups are too small."""
        return allocation == "joint" and (self.dataset == "insurance" or solver == "CCMS")

    def draw(self, seed: int, n: int | None = None) -> Draw:
        return Draw(self.dataset, self.data, n or self.scale.n, seed)

    def seconds(self, solver: str, n: int, gradients: float) -> float:
        return seconds_of(self.dataset, solver, n, gradients)

    @property
    def length(self) -> int:
        return self.scale.outer * self.scale.inner

    def sizing(self, seed: int) -> Cell:
        is_first = seed == TUNING_SEED
        n = self.scale.tuning_n if is_first else self.scale.n
        runs = self.length * (len(WEIGHTS) if is_first else 1)
        return Cell(
            f"sizing-{self.dataset}-s{seed}",
            size,
            Sizing(self.draw(seed, n), self.scale),
            () if is_first else (self.sizing(TUNING_SEED),),
            self.seconds("KL", n, runs) + self.seconds("Nearest", n, 0),
            self.suits_gpu("KL"),
        )

    def tuning(self, source: str, solver: str) -> Cell:
        n = self.scale.tuning_n
        return Cell(
            f"tuning-{self.dataset}-{source}-{solver}",
            choose_settings,
            Tuning(self.draw(TUNING_SEED, n), self.scale, source, solver),
            (self.sizing(TUNING_SEED),),
            self.seconds(solver, n, self.scale.allowance),
            self.suits_gpu(solver),
        )

    def run(self, seed: int, source: str, budget: str, solver: str, protocol: str, allocation: str = "joint") -> Cell:
        chosen = (self.tuning(source, solver),) if protocol == "tuned" else ()
        shown = verbatim(solver, self.scale.paper_limit) if protocol == "paper" else self.scale
        length = shown.outer * shown.inner
        return Cell(
            f"budget-{self.dataset}-s{seed}-{source}-{budget}-{solver}-{protocol}-{allocation}",
            compare,
            Run(self.draw(seed), self.scale, source, budget, solver, protocol, allocation),
            (self.sizing(seed), *chosen),
            self.seconds(solver, self.scale.n, length),
            self.suits_gpu(solver, allocation),
        )

    def cells(self, seeds: int) -> list[Cell]:
        """Everything joint; of the paper's four, groups at the middle budget, and one run with its own settings."""
        found = [
            self.run(seed, source, budget, solver, "tuned" if solver in KINDS else "own")
            for seed in range(seeds)
            for source in SOURCES
            for budget in BUDGETS
            for solver in SOLVERS
        ]
        found += [
            self.run(seed, source, "middle", solver, "tuned", "proportional")
            for seed in range(seeds)
            for source in SOURCES
            for solver in KINDS
        ]
        found += [self.run(0, "paper", "middle", solver, "paper") for solver in KINDS]
        return found
