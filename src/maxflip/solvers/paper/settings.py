"""Options that all four algorithms have, and what each may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from maxflip.solvers.base import Solver
from maxflip.solvers.paper.options import NOT_NEGATIVE, POSITIVE, Interval
from maxflip.solvers.paper.search import UNITS, Units
from maxflip.solvers.paper.steps import OPTIMIZERS, Optimizer

Residual = Literal["raw", "relative"]
RESIDUALS: tuple[Residual, ...] = ("raw", "relative")


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


NUMBERS: dict[str, Interval] = {
    "beta": POSITIVE,
    "gamma": NOT_NEGATIVE,
    "eta": NOT_NEGATIVE,
    "start_lambda": NOT_NEGATIVE,
    "start_mu": NOT_NEGATIVE,
}
CHOICES: dict[str, tuple[str, ...]] = {"optimizer": OPTIMIZERS, "units": UNITS}


def wholes(options: Loops) -> list[str]:
    """Names of the options that count something."""
    return ["outer", "inner", *(["patience"] if options.patience is not None else [])]
