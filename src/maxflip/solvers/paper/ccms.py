"""CCMS, Algorithm 3: samples are picked by K random choices from one distribution over all samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from maxflip.problem.problem import Problem
from maxflip.solvers.base import Proposal, Run
from maxflip.solvers.paper.chance import CHANCE_CHOICES, CHANCE_NUMBERS, ChanceAlgorithm, Chances, Selections
from maxflip.solvers.paper.loop import Setting, run_loops
from maxflip.solvers.paper.options import POSITIVE, check_options, preset
from maxflip.solvers.paper.selection import categorical, hits
from maxflip.solvers.paper.settings import wholes
from maxflip.solvers.paper.steps import onto_simplex, renormalised

PROJECTIONS = {"renormalise": renormalised, "simplex": onto_simplex}


@dataclass(frozen=True, kw_only=True)
class CCMS(Chances):
    """CCMS of the paper: pick by K choices from one distribution over all samples; keep budgets with high probability.

        max_{Pi, X} E sum_j v_j z_j   s.t.  Pr(sum_j z_j a_jr <= B_r) >= 1 - epsilon,   E z_j h_j <= 0,
        z = min(1, sum of K choices ~ Cat(Pi)),   sum_j pi_j = 1

        L = 1/N sum_n sum_j v_nj (v_j - mu_j h_j)
            + sum_r lambda_r (1/N sum_n P(sum_j v_nj a_jr - B_r) - (1 - epsilon))

        Inner iteration: N selections v_nj = min(1, sum_xi softmax_j((log Pi + Gumbel noise) / omega));
        Pi <- (Pi + alpha grad_Pi L)^+, made to sum to 1;  X <- X + beta grad_X L.
        Outer iteration: gradient descent on lambda and mu.
        v_j: worth (1, as a part of the mean worth)   h: hinge of the confidence constraint
        a: consumption   P: soft indicator

    Args:
        choices: K, as a part of the number of samples: K = n (1.0), n/2 (0.5), ...
        projection: "renormalise": Pi / sum Pi (the paper), uniform if all are 0; "simplex": the nearest distribution.

    All other options: see `maxflip.solvers.paper.settings.Loops` and `maxflip.solvers.paper.chance.Chances`. Each inner
    iteration uses N n K random numbers, generated in blocks.
    """

    outer: int = 20
    inner: int = 100
    choices: float = 1.0
    projection: Literal["renormalise", "simplex"] = "renormalise"

    def __post_init__(self) -> None:
        check_options(
            self,
            numbers=CHANCE_NUMBERS | {"choices": POSITIVE},
            wholes=[*wholes(self), "draws"],
            choices=CHANCE_CHOICES | {"projection": tuple(PROJECTIONS)},
        )

    @classmethod
    def paper(cls, **options: Any) -> CCMS:
        """The settings of the paper, including its numbers of iterations; options replace them."""
        return preset(cls, {"outer": 20, "inner": 100, "patience": None}, options)

    @classmethod
    def scale_free(cls, **options: Any) -> CCMS:
        """Settings that do not depend on the units of features and budgets, with multipliers to match; options replace
        them."""
        return preset(cls, {"units": "standard", "indicator": "relative", "start_lambda": 0.1}, options)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        return run_loops(self, problem, run, self.algorithm, is_max=False)

    def algorithm(self, setting: Setting) -> ChanceAlgorithm:
        pi = torch.full_like(setting.search.worth, 1.0 / len(setting.search.worth))
        return ChanceAlgorithm(self, setting, pi, self._draw, PROJECTIONS[self.projection])

    def _draw(self, pi: torch.Tensor, noise: Callable[[], torch.Generator]) -> Selections:
        count = math.ceil(self.choices * len(pi))
        summed = categorical(pi, self.omega, self.draws, count, noise)
        v = hits(summed)
        return Selections(v, picked=v.mean(dim=0), saturated=float((summed >= 1.0).double().mean()))
