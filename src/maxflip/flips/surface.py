"""The flip surface of a batch of samples: margins and gradients as functions of the change, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from maxflip.engine import Rows
from maxflip.flips.prices import FeaturePrices
from maxflip.problem import Problem

LIFT = 2.0  # searches aim for this many guards beyond what is asked; one is what the judge wants


@dataclass
class Evaluations:
    """Samples evaluated with a gradient, and without."""

    gradients: int = 0
    forwards: int = 0


@dataclass(eq=False)
class Surface:
    """m(d) >= 0 where the sample passes with LIFT guards; d (B, A) over the actionable features, float64.

    `at` selects samples of the batch, so that those that are done cost nothing.
    """

    problem: Problem
    rows: Rows
    prices: FeaturePrices
    evaluations: Evaluations = field(default_factory=Evaluations)

    def __post_init__(self) -> None:
        device = self.problem.classifier.device
        self.columns = torch.as_tensor(self.problem.actionable, device=device)
        self.x = torch.tensor(self.problem.cohort.values[self.rows], device=device)
        low, high = self.problem.box(self.rows)
        self.low = torch.as_tensor(low, device=device)[:, self.columns]
        self.high = torch.as_tensor(high, device=device)[:, self.columns]
        self.squared = torch.as_tensor(self.prices.squared, device=device)
        self.absolute = torch.as_tensor(self.prices.absolute, device=device)
        self.wanted = self.problem.goal.wanted_for(self.rows, device)
        # Which samples ever gave an output that is not finite.
        self.broken = torch.zeros(len(self.rows), dtype=torch.bool, device=device)

    def _margin(self, d: torch.Tensor, at: torch.Tensor, guards: float = LIFT) -> torch.Tensor:
        x = self.x[at].index_add(1, self.columns, d)
        log_p = self.problem.classifier.log_probabilities(x)
        return self.problem.goal.log_margin(log_p, self.wanted[at], guards * self.problem.guard)

    def margin(self, d: torch.Tensor, at: torch.Tensor, guards: float = LIFT) -> torch.Tensor:
        """(b,); -inf where the model's output is not finite"""
        self.evaluations.forwards += len(at)
        with torch.no_grad():
            m = self._margin(d, at, guards)
        self.broken[at] |= torch.isnan(m)
        return m.nan_to_num(nan=-torch.inf)

    def margin_and_gradient(self, d: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(b,), (b, A); a gradient that is not finite becomes 0: from there the sample does not move"""
        self.evaluations.gradients += len(at)
        leaf = d.detach().clone().requires_grad_(True)
        with torch.enable_grad():
            m = self._margin(leaf, at)
            (g,) = torch.autograd.grad(m.sum(), leaf)
        m = m.detach()
        bad = torch.isnan(m) | ~torch.isfinite(g).all(dim=1)
        self.broken[at] |= bad
        return torch.where(bad, -torch.inf, m), torch.where(bad[:, None], 0.0, g)
