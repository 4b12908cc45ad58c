"""Options of all four algorithms, and their valid values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from maxflip.solvers.base import Solver
from maxflip.solvers.paper.options import NOT_NEGATIVE, POSITIVE, Interval

Units = Literal["raw", "standard"]
UNITS: tuple[Units, ...] = ("raw", "standard")
Optimizer = Literal["sgd", "adam"]
OPTIMIZERS: tuple[Optimizer, ...] = ("sgd", "adam")
Residual = Literal["raw", "relative"]
RESIDUALS: tuple[Residual, ...] = ("raw", "relative")
Indicator = Literal["raw", "relative"]
INDICATORS: tuple[Indicator, ...] = ("raw", "relative")
Projection = Literal["renormalise", "simplex"]
PROJECTIONS: tuple[Projection, ...] = ("renormalise", "simplex")


@dataclass(frozen=True, kw_only=True)
class Loops(Solver):
    """Options of all four algorithms.

    Args:
        outer: outer iterations; each changes the multipliers once.
        inner: inner iterations in each, at most.
        beta: step length of the samples.
        gamma: step length of lambda, divided by the square root of the outer iteration.
        eta: step length of mu, likewise.
        start_lambda: first value of lambda, before 10 % white noise.
        start_mu: first value of mu, likewise.
        optimizer: "sgd" (the paper), or "adam": steps of about beta in every feature, however flat the model.
        units: units of steps: "raw" (the paper) or "standard" deviations of each feature.
        patience: stop after so many outer iterations without a better plan, or if all samples are won; None: never.
    """

    outer: int
    inner: int
    beta: float = 0.05
    gamma: float = 1.0
    eta: float = 1.0
    start_lambda: float = 1.0
    start_mu: float = 1.0
    optimizer: Optimizer = "sgd"
    units: Units = "raw"
    patience: int | None = 4


@dataclass(frozen=True, kw_only=True)
class Chances(Loops):
    """Options of BCMS and CCMS, besides those of Loops.

    Args:
        alpha: step length of Pi.
        kappa: steepness of the soft indicator.
        tau: its midpoint: the overspending at which P = 1/2.
        indicator: "raw" (the paper): tau in a budget's own units; "relative": in percent of each budget.
        omega: temperature of the relaxed selection, which becomes hard as omega tends to 0.
        draws: N, random selections per inner iteration.
        epsilon: probability with which a budget may be overspent (not stated in the paper).
    """

    alpha: float = 0.05
    kappa: float = 2.0
    tau: float = 30.0
    indicator: Indicator = "raw"
    omega: float = 1.0
    draws: int = 100
    epsilon: float = 0.1


NUMBERS: dict[str, Interval] = {
    "beta": POSITIVE,
    "gamma": NOT_NEGATIVE,
    "eta": NOT_NEGATIVE,
    "start_lambda": NOT_NEGATIVE,
    "start_mu": NOT_NEGATIVE,
}
CHOICES: dict[str, tuple[str, ...]] = {"optimizer": OPTIMIZERS, "units": UNITS}
CHANCE_NUMBERS: dict[str, Interval] = NUMBERS | {
    "alpha": POSITIVE,
    "kappa": POSITIVE,
    "tau": Interval(1.0, math.inf, why="; at 1 or below, the soft indicator would rise with what is spent"),
    "omega": POSITIVE,
    "epsilon": Interval(0.0, 1.0, low_closed=True),
}
CHANCE_CHOICES: dict[str, tuple[str, ...]] = CHOICES | {"indicator": INDICATORS}


def wholes(options: Loops) -> list[str]:
    """Names of the options that count something."""
    return ["outer", "inner", *(["patience"] if options.patience is not None else [])]
