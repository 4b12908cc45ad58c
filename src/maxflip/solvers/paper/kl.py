"""KL, Algorithm 4, the paper's benchmark: all samples as near to the wanted label as the multipliers allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from maxflip.solvers.paper.loop import Setting, Slopes, check_finite
from maxflip.solvers.paper.steps import Ascent

if TYPE_CHECKING:
    from maxflip.solvers.paper.solvers import KL


class KLAlgorithm:
    def __init__(self, solver: KL, setting: Setting) -> None:
        self.solver, self.search, self.multipliers, self.u = solver, setting.search, setting.multipliers, setting.u
        self.ascent = Ascent(solver.beta, solver.optimizer)
        self.unit = self.search.amounts if solver.residual == "relative" else torch.ones_like(self.search.amounts)

    def begin(self) -> None:
        """Nothing to reset: X continues."""

    def iterate(self, t: int, k: int) -> bool:  # noqa: ARG002
        for _ in range(self.solver.steps):
            self.u = self.search.inside(self.ascent.step(self.u, -self.slope()))
        return True

    def slope(self) -> torch.Tensor:
        """The gradient of L by u, (n, A)"""
        _, _, of_model = self.search.divergence_and_shortfall(self.u, self.multipliers.of_samples)
        of_distance = 2.0 * self.solver.a * self.search.worth[:, None] * self.u
        of_budgets = self.search.consumption_slope(self.u, self.multipliers.of_budgets / self.unit)
        slope = of_model + of_distance + of_budgets
        check_finite("the gradient of the samples", slope)
        return slope

    def slopes(self, t: int) -> Slopes:  # noqa: ARG002
        distance, s, _ = self.search.divergence_and_shortfall(self.u, self.multipliers.of_samples)
        loss = self.search.worth @ (distance + self.solver.a * (self.u**2).sum(dim=1))
        of_lambda = (self.search.consumption(self.u).sum(dim=0) - self.search.amounts) / self.unit
        value = loss + self.multipliers.of_budgets @ of_lambda + self.multipliers.of_samples @ s
        return Slopes(float(value), of_lambda, s, {})
