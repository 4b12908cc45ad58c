"""KL, Algorithm 4, the paper's benchmark: all samples as near to the wanted label as the multipliers allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from maxflip.problem.problem import Problem
from maxflip.solvers.base import Proposal, Run
from maxflip.solvers.paper.loop import Setting, Slopes, check_finite, run_loops
from maxflip.solvers.paper.options import NOT_NEGATIVE, check_options, preset
from maxflip.solvers.paper.settings import CHOICES, NUMBERS, RESIDUALS, Loops, Residual, wholes
from maxflip.solvers.paper.steps import Ascent


@dataclass(frozen=True, kw_only=True)
class KL(Loops):
    """KL of the paper: move all samples towards the wanted label; in the end, select from those that pass.

        min_X sum_j v_j l_j   s.t.  sum_j a_jr <= B_r,   s_j <= 0
        l_j = KL(label_j || f(x^_j)) + a |x^_j - x_j|^2

        L = sum_j v_j l_j + sum_r lambda_r (sum_j a_jr - B_r) + sum_j mu_j s_j

        Inner iteration: X <- X - beta grad_X L. Outer iteration: gradient ascent on lambda and mu.
        v: worth (1, as a part of the mean worth)   s: signed confidence constraint, so that mu can fall
        a_jr: consumption

    Without a selection, count budgets are ignored; unlimited budgets have no lambda.

    Args:
        a: weight of the squared distance (in `units`).
        steps: gradient steps per inner iteration.
        residual: "raw" (the paper): lambda_r is the price of a unit; "relative": of the whole budget (a / B, 1).

    All other options: see `maxflip.solvers.paper.settings.Loops`.
    """

    outer: int = 10
    inner: int = 500
    a: float = 0.1
    steps: int = 1
    residual: Residual = "raw"

    def __post_init__(self) -> None:
        numbers, choices = NUMBERS | {"a": NOT_NEGATIVE}, CHOICES | {"residual": RESIDUALS}
        check_options(self, numbers=numbers, wholes=[*wholes(self), "steps"], choices=choices)

    @classmethod
    def paper(cls, **options: Any) -> KL:
        """The settings of the paper, including its numbers of iterations; options replace them."""
        return preset(cls, {"outer": 10, "inner": 5_000, "patience": None}, options)

    @classmethod
    def scale_free(cls, **options: Any) -> KL:
        """Settings that do not depend on the units of features and budgets, with multipliers to match; options replace
        them."""
        return preset(cls, {"units": "standard", "residual": "relative", "start_lambda": 0.1}, options)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        return run_loops(self, problem, run, lambda setting: KLAlgorithm(self, setting), is_max=True, counts=False)


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
