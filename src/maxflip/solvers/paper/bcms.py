"""BCMS, Algorithm 2: every sample is picked with its own probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from maxflip.problem.problem import Problem
from maxflip.solvers.base import Proposal, Run
from maxflip.solvers.paper.chance import CHANCE_CHOICES, CHANCE_NUMBERS, ChanceAlgorithm, Chances, Selections
from maxflip.solvers.paper.details import DETAILS
from maxflip.solvers.paper.loop import Setting, run_loops
from maxflip.solvers.paper.options import check_options, preset
from maxflip.solvers.paper.selection import bernoulli
from maxflip.solvers.paper.settings import wholes
from maxflip.solvers.paper.steps import into_unit_interval


@dataclass(frozen=True, kw_only=True)
class BCMS(Chances):
    """BCMS of the paper: pick each sample with its own probability; keep each budget with a high probability.

        max_{Pi, X} sum_j v_j pi_j   s.t.  Pr(sum_j z_j a_jr <= B_r) >= 1 - epsilon,   pi_j h_j <= 0,
        z_j ~ Bernoulli(pi_j)

        L = sum_j pi_j (v_j - mu_j h_j) + sum_r lambda_r (1/N sum_n P(sum_j v_nj a_jr - B_r) - (1 - epsilon))

        Inner iteration: N selections v_nj = sigmoid((logit pi_j + logistic noise) / omega);
        Pi <- min{1, (Pi + alpha grad_Pi L)^+},  X <- X + beta grad_X L. Outer: gradient descent on lambda and mu.
        v_j: worth / mean worth (1 if all are equal)   h: hinge of the confidence constraint
        a: consumption   P: soft indicator

    Options: see `maxflip.solvers.paper.settings.Loops` and `maxflip.solvers.paper.chance.Chances`.
    """

    outer: int = 10
    inner: int = 100

    def __post_init__(self) -> None:
        check_options(self, numbers=CHANCE_NUMBERS, wholes=[*wholes(self), "draws"], choices=CHANCE_CHOICES)

    @classmethod
    def paper(cls, **options: Any) -> BCMS:
        """The settings of the paper, including its numbers of iterations; options replace them."""
        return preset(cls, {"outer": 10, "inner": 100, "patience": None}, options)

    @classmethod
    def scale_free(cls, **options: Any) -> BCMS:
        """Settings that do not depend on the units of features and budgets, with multipliers to match; options replace
        them."""
        return preset(cls, {"units": "standard", "indicator": "relative", "start_lambda": 0.1}, options)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        return run_loops(self, problem, run, self.algorithm, is_max=False)

    def algorithm(self, setting: Setting) -> ChanceAlgorithm:
        pi = torch.full_like(setting.search.worth, DETAILS.first_probability)
        return ChanceAlgorithm(self, setting, pi, self._draw, into_unit_interval)

    def _draw(self, pi: torch.Tensor, noise: Callable[[], torch.Generator]) -> Selections:
        return Selections(bernoulli(pi, self.omega, self.draws, noise()), picked=pi)
