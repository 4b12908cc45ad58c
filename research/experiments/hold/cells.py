"""The cells of `hold`: each network that is learned, each cohort, and each solver and margin of a cohort."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from maxflip import solve
from maxflip.solvers import Solver
from research.cells import Cell, Payload
from research.experiments.hold.cases import ENSEMBLE, MARGINS, PARTS, Case, Row, Source, Spec, base_lines, flips
from research.experiments.hold.credit import Credit
from research.experiments.hold.icu import Stays
from research.experiments.hold.points import name_of

SOURCES: dict[str, Callable[[Path, Path], Source[Any]]] = {"credit": Credit, "icu": Stays}
FOLDERS = {"credit": "credit_default", "icu": "physionet2012"}  # in the folder of public data


@dataclass(frozen=True)
class Place:
    """Of one dataset: the folder of public data and that of weights, which a finished cell is not known by."""

    dataset: str
    data: Path = field(repr=False)
    weights: Path = field(repr=False)

    @classmethod
    def of(cls, dataset: str, data: Path, out: Path) -> Place:
        return cls(dataset, data, out / dataset / "weights")


@lru_cache(maxsize=len(SOURCES))  # cells of both datasets may come by turns
def source_of(place: Place) -> Source[Any]:
    return SOURCES[place.dataset](place.data, place.weights)


@dataclass(frozen=True)
class Learning:
    place: Place
    spec: Spec


def learn(task: Learning, _needs: Sequence[Payload], _device: str) -> Payload:
    """Weights, in a file of their own."""
    task.place.weights.mkdir(parents=True, exist_ok=True)
    source_of(task.place).learn(task.spec)
    return {}


@dataclass(frozen=True)
class Cohort:
    """seed: its number   size: people   share: budgets, as a part of what everyone's nearest flip draws

    judges: named so that a cell of other judges is another one
    """

    place: Place
    seed: int
    size: int
    share: float
    margins: tuple[float, ...]
    judges: tuple[Spec, ...]

    def placed(self, rows: Sequence[Row], seconds: float) -> Payload:
        """As they stand in the dataset's result file. seconds: of the processor"""
        dataset = self.place.dataset
        return {
            name_of(dataset): [
                {"dataset": dataset, "seed": self.seed, **row, "seconds": round(seconds, 2)} for row in rows
            ]
        }


@lru_cache(maxsize=PARTS)  # cells of several cohorts come by turns
def case_of(cohort: Cohort) -> Case[Any]:
    return source_of(cohort.place).case(cohort.seed, cohort.size)


def draw(cohort: Cohort, _needs: Sequence[Payload], _device: str) -> Payload:
    """Budgets, and the rows of the base lines, which need no plan."""
    case = case_of(cohort)
    budgets = case.budgets(cohort.share)
    began = time.process_time()
    rows = base_lines(case, cohort.margins)
    return {"budgets": budgets, **cohort.placed(rows, time.process_time() - began)}


@dataclass(frozen=True)
class Run:
    """planned: against what; "network" or "ensemble" """

    cohort: Cohort
    name: str
    solver: Solver
    planned: str
    margin: float


def judge(task: Run, needs: Sequence[Payload], _device: str) -> Payload:
    """The rows of a plan, one per judge."""
    case = case_of(task.cohort)
    began = time.process_time()
    problem = case.problem(case.cohort, case.planned[task.planned], needs[0]["budgets"], task.margin)
    plan = solve(problem, task.solver, seed=task.cohort.seed)
    rows = [{"solver": task.name, "margin": task.margin, **row} for row in flips(case, problem, plan, task.margin)]
    return task.cohort.placed(rows, time.process_time() - began)


def cells(place: Place, seeds: int, *, is_quick: bool = False) -> list[Cell]:
    """Cohorts first, then their plans: the order of the rows in the result file."""
    source = source_of(place)
    size = source.quick_size if is_quick else source.size
    cohorts = [_drawn(place, source, seed, size) for seed in range(seeds)]
    return cohorts + [
        _judged(cohort, name, solver, planned, margin, source.seconds_to_solve)
        for cohort in cohorts
        for margin in MARGINS
        for name, solver, planned in (
            *((name, solver, "network") for name, solver in source.solvers.items()),
            (ENSEMBLE, source.solvers["Prices"], "ensemble"),
        )
    ]


def _learned(place: Place, source: Source[Any], spec: Spec) -> Cell:
    return Cell(
        f"learned-{place.dataset}-{spec.file}",
        learn,
        Learning(place, spec),
        seconds=source.seconds_to_learn,
        leaves=source.path(spec),
    )


def _drawn(place: Place, source: Source[Any], seed: int, size: int) -> Cell:
    return Cell(
        f"cohort-{place.dataset}-s{seed}",
        draw,
        Cohort(place, seed, size, source.share, MARGINS, tuple(source.judging())),
        tuple(_learned(place, source, spec) for spec in source.learned(seed)),
        source.seconds_to_solve,
    )


def _judged(cohort: Cell, name: str, solver: Solver, planned: str, margin: float, seconds: float) -> Cell:
    about: Cohort = cohort.arguments
    return Cell(
        f"hold-{about.place.dataset}-s{about.seed}-{name}-{margin:g}",
        judge,
        Run(about, name, solver, planned, margin),
        (cohort,),
        seconds,
    )
