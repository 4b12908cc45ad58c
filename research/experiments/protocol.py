"""The numbers of the study: how many samples, how long the algorithms run, how many gradients tuning may take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from maxflip import BCMS, CCMS, KL, MS, Nearest, Prices
from maxflip.solvers import Solver
from maxflip.study.tuning import Algorithm, Grid, scale_free_grid

KINDS: dict[str, type[Algorithm]] = {"MS": MS, "BCMS": BCMS, "CCMS": CCMS, "KL": KL}
OWN: dict[str, Solver] = {"Nearest": Nearest(), "Prices": Prices()}
SOLVERS = (*KINDS, *OWN)

# The paper's budgets are parts of what an unlimited KL consumes; ours, of what the cheapest flips do, one unit of every
# feature (a standard deviation) being as dear as one of any other.
SHARES = {"paper": {"small": 0.4, "middle": 0.6, "large": 0.8}, "binding": {"small": 0.1, "middle": 0.2, "large": 0.4}}
SOURCES = tuple(SHARES)
BUDGETS = ("small", "middle", "large")
TUNING_SEED = 1000  # of the draw that settings are chosen on; no result is taken from it
SMALL_STEP = 1e-4  # of CCMS's Pi, whose entries begin at 1/n: the paper's alphas are larger than all of them


@dataclass(frozen=True)
class Scale:
    """Of one dataset. n: samples drawn for each seed   tuning_n: drawn to choose settings on

    outer, inner: iterations of a tuned run   allowance: gradients per sample for tuning one algorithm
    paper_limit: gradients per sample after which a run with the paper's own settings is ended
    """

    n: int
    tuning_n: int
    outer: int
    inner: int
    allowance: int
    paper_limit: int
    groups: int = 5


@dataclass(frozen=True)
class Growth:
    """Of the scalability experiment."""

    sizes: tuple[int, ...]
    groups: int


FULL = {
    "icu": Scale(75, 75, 10, 60, 7200, 5000),
    "oulad": Scale(300, 300, 10, 100, 15000, 10000),
    "insurance": Scale(300, 300, 5, 20, 600, 300),
}
QUICK = {
    "icu": Scale(25, 25, 3, 20, 180, 200),
    "oulad": Scale(40, 40, 3, 20, 180, 200),
    "insurance": Scale(20, 20, 3, 10, 90, 60),
}
FULL_GROWTH = {"oulad": Growth((300, 600, 900), 15), "insurance": Growth((300, 600, 900), 15)}
QUICK_GROWTH = {"oulad": Growth((20, 40, 60), 3), "insurance": Growth((10, 20, 30), 3)}
FULL_SEEDS, QUICK_SEEDS = 5, 2

# Seconds on one core (x86-64, 2026) for a gradient of one sample, and for the noise of CCMS per pair of samples.
SECONDS_PER_GRADIENT = {"icu": 3.5e-4, "oulad": 4.0e-5, "insurance": 1.2e-3}
SECONDS_PER_PAIR = 1.3e-6
SECONDS_TO_PREPARE = 1.0
GRADIENTS_OF = {"Nearest": 110, "Prices": 220}  # with the forward passes, as so many gradients


def begun(name: str, scale: Scale) -> Algorithm:
    """What tuning starts from: no units, Adam, so many iterations."""
    options: dict[str, Any] = {"outer": scale.outer, "inner": scale.inner, "optimizer": "adam"}
    if name == "MS":
        options["keep_moving"] = True
    return KINDS[name].scale_free(**options)


def grid(name: str) -> Grid:
    chosen = scale_free_grid(KINDS[name])
    return {**chosen, "alpha": (SMALL_STEP, *chosen["alpha"])} if name == "CCMS" else chosen


def verbatim(name: str, limit: int) -> Algorithm:
    """The paper's settings and iterations, ended after so many gradients."""
    solver = KINDS[name].paper()
    if solver.outer * solver.inner <= limit:
        return solver
    if solver.inner > limit:
        return replace(solver, outer=1, inner=limit)
    return replace(solver, outer=limit // solver.inner)


def seconds_of(dataset: str, solver: str, n: int, gradients: float) -> float:
    """About what a run takes on one core."""
    per = n * SECONDS_PER_GRADIENT[dataset] + (n * n * SECONDS_PER_PAIR if solver == "CCMS" else 0.0)
    return SECONDS_TO_PREPARE + per * GRADIENTS_OF.get(solver, gradients)
