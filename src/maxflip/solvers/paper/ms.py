"""MS, Algorithm 1: binary selection by the sign of what each sample adds to the Lagrangian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from maxflip.problem.problem import Problem
from maxflip.solvers.base import Proposal, Run
from maxflip.solvers.paper.confidence import hinge
from maxflip.solvers.paper.loop import Setting, Slopes, check_finite, run_loops
from maxflip.solvers.paper.options import check_options, preset
from maxflip.solvers.paper.settings import CHOICES, NUMBERS, RESIDUALS, Loops, Residual, wholes
from maxflip.solvers.paper.steps import Ascent


@dataclass(frozen=True, kw_only=True)
class MS(Loops):
    """MS of the paper: alternately select and move samples, with multipliers for the budgets and for each sample.

        max_{z, X} sum_j v_j z_j   s.t.  sum_j z_j a_jr <= B_r,   z_j h_j <= 0,   z in {0, 1}

        L = sum_j c_j z_j + sum_r lambda_r B_r,    c_j = v_j - sum_r lambda_r a_jr - mu_j h_j

        Inner iteration: end the loop if z = 0; X <- X + beta grad_X L; z_j = 1 where c_j >= 0.
        Outer iteration: gradient descent on lambda and mu, then z = 1.
        v: worth (1, as a part of the mean worth)   h: hinge of the confidence constraint   a: consumption

    Args:
        steps: gradient steps per inner iteration (the paper's argmax is one).
        keep_moving: whether samples with z_j = 0 go on moving; in the paper they pause until the next outer iteration.
        residual: "raw" (the paper): lambda_r is the price of a unit; "relative": of the whole budget (a / B, 1).

    All other options: see `maxflip.solvers.paper.settings.Loops`.
    """

    outer: int = 10
    inner: int = 500
    steps: int = 1
    keep_moving: bool = False
    residual: Residual = "raw"

    def __post_init__(self) -> None:
        choices = CHOICES | {"residual": RESIDUALS}
        check_options(self, numbers=NUMBERS, wholes=[*wholes(self), "steps"], choices=choices, flags=["keep_moving"])

    @classmethod
    def paper(cls, **options: Any) -> MS:
        """The settings of the paper, including its numbers of iterations; options replace them."""
        return preset(cls, {"outer": 10, "inner": 10_000, "patience": None}, options)

    @classmethod
    def scale_free(cls, **options: Any) -> MS:
        """Settings that do not depend on the units of features and budgets, with multipliers to match; options replace
        them."""
        return preset(cls, {"units": "standard", "residual": "relative", "start_lambda": 0.1}, options)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        return run_loops(self, problem, run, lambda setting: MSAlgorithm(self, setting), is_max=False)


class MSAlgorithm:
    def __init__(self, solver: MS, setting: Setting) -> None:
        self.solver, self.search, self.multipliers, self.u = solver, setting.search, setting.multipliers, setting.u
        self.ascent = Ascent(solver.beta, solver.optimizer)
        self.unit = self.search.amounts if solver.residual == "relative" else torch.ones_like(self.search.amounts)
        self.h, self.slope = hinge(*self.search.shortfall(self.u))
        self.z = torch.ones_like(self.h, dtype=torch.bool)

    def begin(self) -> None:
        self.z = torch.ones_like(self.z)

    def iterate(self, t: int, k: int) -> bool:  # noqa: ARG002
        if not bool(self.z.any()):
            return False
        moves = None if self.solver.keep_moving else self.z
        for _ in range(self.solver.steps):
            self.u = self.search.inside(self.ascent.step(self.u, self.uphill(), moves))
            self.h, self.slope = hinge(*self.search.shortfall(self.u))
        self.z = self.worth_picking() >= 0
        return True

    def uphill(self) -> torch.Tensor:
        """(n, A): the gradient of c_j by u_j, which is that of L where z_j = 1"""
        paid = self.search.consumption_slope(self.u, self.multipliers.of_budgets / self.unit)
        uphill = -paid - self.multipliers.of_samples[:, None] * self.slope
        check_finite("the gradient of the samples", uphill)
        return uphill

    def worth_picking(self) -> torch.Tensor:
        """c (n,)"""
        price = self.multipliers.of_budgets / self.unit
        paid = self.search.consumption(self.u) @ price
        return self.search.worth - paid - self.multipliers.of_samples * self.h

    def slopes(self, t: int) -> Slopes:  # noqa: ARG002
        z, amounts = self.z.double(), self.search.amounts / self.unit
        of_lambda = amounts - z @ self.search.consumption(self.u) / self.unit
        value = z @ self.worth_picking() + self.multipliers.of_budgets @ amounts
        return Slopes(float(value), of_lambda, -z * self.h, {"picked": float(z.sum())})
