"""Steps of gradient ascent, and projections onto the sets of probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from maxflip.solvers.paper.details import DETAILS
from maxflip.solvers.paper.settings import Optimizer


@dataclass(eq=False)
class Ascent:
    """sgd:  u <- u + beta g          adam:  u <- u + beta m^ / (sqrt(s^) + floor)

    with m^, s^ the bias-corrected decaying means of g and g^2. Steps are counted per sample.
    """

    beta: float
    optimizer: Optimizer
    mean: torch.Tensor | None = None  # (n, A)
    squares: torch.Tensor | None = None
    taken: torch.Tensor | None = None  # (n, 1)

    def step(self, u: torch.Tensor, g: torch.Tensor, moves: torch.Tensor | None = None) -> torch.Tensor:
        """u, g (n, A) -> u (n, A).   moves (n,): the samples that change; None: all"""
        if self.optimizer == "sgd":
            there = u + self.beta * g
            return there if moves is None else torch.where(moves[:, None], there, u)
        if self.mean is None or self.squares is None or self.taken is None:
            self.mean, self.squares, self.taken = torch.zeros_like(u), torch.zeros_like(u), torch.zeros_like(u[:, :1])
        mask = torch.ones_like(u[:, :1], dtype=torch.bool) if moves is None else moves[:, None]
        self.taken = self.taken + mask
        keep, keep_squares = DETAILS.adam_mean, DETAILS.adam_squares
        self.mean = torch.where(mask, keep * self.mean + (1 - keep) * g, self.mean)
        self.squares = torch.where(mask, keep_squares * self.squares + (1 - keep_squares) * g**2, self.squares)
        m = self.mean / (1 - keep**self.taken)
        s = self.squares / (1 - keep_squares**self.taken)
        return torch.where(mask, u + self.beta * m / (s.sqrt() + DETAILS.adam_floor), u)


def into_unit_interval(pi: torch.Tensor) -> torch.Tensor:
    """min{1, (pi)^+}"""
    return pi.clamp(0.0, 1.0)


def renormalised(pi: torch.Tensor) -> torch.Tensor:
    """(pi)^+ / sum (pi)^+; uniform if nothing is left"""
    positive = pi.clamp_min(0.0)
    total = positive.sum()
    return torch.where(total > 0, positive / torch.where(total > 0, total, 1.0), 1.0 / len(pi))


def onto_simplex(pi: torch.Tensor) -> torch.Tensor:
    """argmin_q |q - pi|  s.t.  q >= 0, sum q = 1:  q = (pi - c)^+ with the c that makes the sum 1"""
    descending = pi.sort(descending=True).values
    rank = torch.arange(1, len(pi) + 1, dtype=pi.dtype, device=pi.device)
    level = (descending.cumsum(0) - 1.0) / rank
    last = int((descending > level).nonzero()[-1])
    return (pi - level[last]).clamp_min(0.0)
