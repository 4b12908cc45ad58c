"""Shared by BCMS and CCMS: chance constraints on the budgets, estimated from relaxed random selections.

    Pr_r = Pr(sum_j z_j a_jr <= B_r)  ~  1/N sum_n P(x_nr),      x_nr = sum_j v_nj a_jr - B_r

P is the soft indicator, v_nj the relaxed selection (N, n).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from maxflip.solvers.paper.confidence import hinge
from maxflip.solvers.paper.indicator import beyond, soft_indicator
from maxflip.solvers.paper.loop import Setting, Slopes, check_finite
from maxflip.solvers.paper.settings import Chances
from maxflip.solvers.paper.steps import Ascent


@dataclass(frozen=True, eq=False)
class Selections:
    """Random selections v (N, n)   picked (n,): weights of samples in the objective   saturated: part of v cut at 1"""

    v: torch.Tensor
    picked: torch.Tensor
    saturated: float | None = None


Select = Callable[[torch.Tensor, Callable[[], torch.Generator]], Selections]


class ChanceAlgorithm:
    """L = sum_j p_j (v_j - mu_j h_j) + sum_r lambda_r (1/N sum_n P(x_nr) - (1 - epsilon))

    p_j: pi_j (Bernoulli) or the mean of v_nj (Categorical)   v_j: worth

    Inner iteration: new noise; gradient ascent on Pi and X, with both gradients at the same point; projection of Pi.
    """

    def __init__(
        self,
        solver: Chances,
        setting: Setting,
        pi: torch.Tensor,
        draw: Select,
        project: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        self.solver, self.search, self.multipliers, self.u = solver, setting.search, setting.multipliers, setting.u
        self.streams, self.pi, self.draw, self.project = setting.run.streams, pi, draw, project
        self.ascent = Ascent(solver.beta, solver.optimizer)

    def begin(self) -> None:
        """Nothing to reset: Pi and X continue."""

    def iterate(self, t: int, k: int) -> bool:
        of_pi, of_u = self.uphill(t, k)
        self.pi = self.project(self.pi + self.solver.alpha * of_pi)
        self.u = self.search.inside(self.ascent.step(self.u, of_u))
        return True

    def uphill(self, t: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The gradients of L in Pi (n,) and in u (n, A), with the noise of inner iteration k"""
        h, slope = hinge(*self.search.shortfall(self.u))
        leaves = [part.detach().clone().requires_grad_(True) for part in (self.pi, self.search.consumption(self.u), h)]
        with torch.enable_grad():
            value, _, _ = self.lagrangian(leaves[0], leaves[1], leaves[2], t, k)
            of_pi, of_a, of_h = torch.autograd.grad(value, leaves)
        of_u = self.search.consumption_slope(self.u, of_a) + of_h[:, None] * slope
        check_finite("the gradient of Pi", of_pi)
        check_finite("the gradient of the samples", of_u)
        return of_pi, of_u

    def lagrangian(
        self, pi: torch.Tensor, a: torch.Tensor, h: torch.Tensor, t: int, k: int
    ) -> tuple[torch.Tensor, torch.Tensor, Selections]:
        """pi (n,), a (n, m), h (n,) -> L, the probabilities Pr_r (m,), and the selections"""
        selected = self.draw(pi, lambda: self.streams.torch("paper.noise", t, k, device=pi.device))
        x = beyond(selected.v @ a, self.search.amounts, self.solver.indicator == "relative")
        chance = soft_indicator(x, self.solver.kappa, self.solver.tau).mean(dim=0)
        gain = self.search.worth - self.multipliers.of_samples * h
        kept = self.multipliers.of_budgets @ (chance - (1.0 - self.solver.epsilon))
        return selected.picked @ gain + kept, chance, selected

    def slopes(self, t: int) -> Slopes:
        """The multipliers' gradients, with separate noise."""
        h = self.search.shortfall_only(self.u).clamp_min(0.0)
        with torch.no_grad():
            value, chance, selected = self.lagrangian(self.pi, self.search.consumption(self.u), h, t, 0)
        more = {"picked": float(selected.picked.sum())}
        if selected.saturated is not None:
            more["saturated"] = selected.saturated
        return Slopes(float(value), chance - (1.0 - self.solver.epsilon), -selected.picked * h, more)
