"""The Lagrangian multipliers: one lambda per budget, one mu per sample, never negative."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from maxflip._util.rng import Streams
from maxflip.solvers.paper.details import DETAILS


@dataclass(eq=False)
class Multipliers:
    """lambda (m,) and mu (n,), changed after every outer iteration t = 1, 2, ...:

    lambda <- (lambda - gamma / sqrt(t) grad_lambda L)^+        mu <- (mu - eta / sqrt(t) grad_mu L)^+

    and with + instead of - if L is maximised in them (KL).
    """

    of_budgets: torch.Tensor
    of_samples: torch.Tensor
    gamma: float
    eta: float
    t: int = 1

    @classmethod
    def first(
        cls, sizes: tuple[int, int], values: tuple[float, float], rates: tuple[float, float], streams: Streams
    ) -> Multipliers:
        """sizes (m, n)   values: (lambda, mu), which get white noise and are clipped at 0   rates: (gamma, eta)"""
        noisy = []
        for size, value, name in zip(sizes, values, ("paper.lambda", "paper.mu"), strict=True):
            noise = torch.randn(size, dtype=torch.float64, generator=streams.torch(name))
            noisy.append((value + DETAILS.multiplier_noise * value * noise).clamp_min(0))
        return cls(noisy[0], noisy[1], *rates)

    def to(self, device: torch.device) -> Multipliers:
        return Multipliers(self.of_budgets.to(device), self.of_samples.to(device), self.gamma, self.eta, self.t)

    def descend(self, slope_lambda: torch.Tensor, slope_mu: torch.Tensor) -> None:
        """slope_lambda (m,), slope_mu (n,): gradients of L"""
        rate = 1.0 / math.sqrt(self.t)
        self.of_budgets = (self.of_budgets - rate * self.gamma * slope_lambda).clamp_min(0.0)
        self.of_samples = (self.of_samples - rate * self.eta * slope_mu).clamp_min(0.0)
        self.t += 1

    def ascend(self, slope_lambda: torch.Tensor, slope_mu: torch.Tensor) -> None:
        self.descend(-slope_lambda, -slope_mu)
