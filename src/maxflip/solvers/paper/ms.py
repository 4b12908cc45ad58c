"""MS, Algorithm 1: binary selection by the sign of what each sample adds to the Lagrangian."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from maxflip.solvers.paper.confidence import hinge
from maxflip.solvers.paper.loop import Setting, Slopes, check_finite
from maxflip.solvers.paper.steps import Ascent

if TYPE_CHECKING:
    from maxflip.solvers.paper.solvers import MS


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
