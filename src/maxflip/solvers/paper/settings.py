"""Options that the algorithms share, and what each may be."""

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
    """Options that all four have.

    Args:
        outer: changes of the multipliers.
        inner: steps between two of them.
        beta: length of the steps of the samples.
        gamma: steps of lambda, divided by the square root of the outer iteration.
        eta: steps of mu, likewise.
        start_lambda: where lambda starts, before 10 % white noise.
        start_mu: where mu starts, likewise.
        optimizer: "sgd" (the paper), or "adam": steps of about beta in every feature, however flat the model.
        units: in what steps are counted: "raw" (the paper) or "standard" deviations of each feature.
        patience: stop when so many outer iterations brought no better plan, or nobody is left to win; None: never.
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
    """Options that BCMS and CCMS share, beside those of Loops.

    Args:
        alpha: length of the steps of Pi.
        kappa: steepness of the soft indicator.
        tau: its midpoint: what may be spent beyond a budget at P = 1/2.
        indicator: "raw" (the paper): tau in a budget's own units; "relative": in percent of each budget.
        omega: temperature of the relaxed selection; towards 0 it becomes hard.
        draws: N, selections drawn per inner iteration.
        epsilon: with what chance a budget may be overspent (the paper does not say).
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
