"""The algorithms of the paper with their options, which are known before torch is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from maxflip.solvers.base import Proposal, Run
from maxflip.solvers.paper.options import NOT_NEGATIVE, POSITIVE, check_options, preset
from maxflip.solvers.paper.settings import (
    CHANCE_CHOICES,
    CHANCE_NUMBERS,
    CHOICES,
    NUMBERS,
    PROJECTIONS,
    RESIDUALS,
    Chances,
    Loops,
    Projection,
    Residual,
    wholes,
)

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem


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
        """The paper's own settings, all of its iterations included; options given replace them."""
        return preset(cls, {"outer": 10, "inner": 10_000, "patience": None}, options)

    @classmethod
    def scale_free(cls, **options: Any) -> MS:
        """Settings under which no unit of any feature or budget matters, and multipliers to match; options given
        replace them."""
        return preset(cls, {"units": "standard", "residual": "relative", "start_lambda": 0.1}, options)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        from maxflip.solvers.paper.loop import run_loops
        from maxflip.solvers.paper.ms import MSAlgorithm

        return run_loops(self, problem, run, partial(MSAlgorithm, self), is_max=False)


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

    Options: see `Loops` and `Chances` in `maxflip.solvers.paper.settings`.
    """

    outer: int = 10
    inner: int = 100

    def __post_init__(self) -> None:
        check_options(self, numbers=CHANCE_NUMBERS, wholes=[*wholes(self), "draws"], choices=CHANCE_CHOICES)

    @classmethod
    def paper(cls, **options: Any) -> BCMS:
        """The paper's own settings, all of its iterations included; options given replace them."""
        return preset(cls, {"outer": 10, "inner": 100, "patience": None}, options)

    @classmethod
    def scale_free(cls, **options: Any) -> BCMS:
        """Settings that do not depend on the units of features and budgets, with multipliers to match; options given
        replace them."""
        return preset(cls, {"units": "standard", "indicator": "relative", "start_lambda": 0.1}, options)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        from maxflip.solvers.paper.bcms import algorithm
        from maxflip.solvers.paper.loop import run_loops

        return run_loops(self, problem, run, partial(algorithm, self), is_max=False)


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

    All other options: see `Loops` and `Chances` in `maxflip.solvers.paper.settings`. Each inner iteration uses N n K
    random numbers, generated in blocks.
    """

    outer: int = 20
    inner: int = 100
    choices: float = 1.0
    projection: Projection = "renormalise"

    def __post_init__(self) -> None:
        check_options(
            self,
            numbers=CHANCE_NUMBERS | {"choices": POSITIVE},
            wholes=[*wholes(self), "draws"],
            choices=CHANCE_CHOICES | {"projection": PROJECTIONS},
        )

    @classmethod
    def paper(cls, **options: Any) -> CCMS:
        """The paper's own settings, all of its iterations included; options given replace them."""
        return preset(cls, {"outer": 20, "inner": 100, "patience": None}, options)

    @classmethod
    def scale_free(cls, **options: Any) -> CCMS:
        """Settings under which no unit of any feature or budget matters, and multipliers to match; options given
        replace them."""
        return preset(cls, {"units": "standard", "indicator": "relative", "start_lambda": 0.1}, options)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        from maxflip.solvers.paper.ccms import algorithm
        from maxflip.solvers.paper.loop import run_loops

        return run_loops(self, problem, run, partial(algorithm, self), is_max=False)


@dataclass(frozen=True, kw_only=True)
class KL(Loops):
    """KL of the paper: move all samples towards the wanted label; in the end, select from those that pass.

        min_X sum_j v_j l_j   s.t.  sum_j a_jr <= B_r,   s_j <= 0
        l_j = KL(label_j || f(x^_j)) + a |x^_j - x_j|^2

        L = sum_j v_j l_j + sum_r lambda_r (sum_j a_jr - B_r) + sum_j mu_j s_j

        Inner iteration: X <- X - beta grad_X L. Outer iteration: gradient ascent on lambda and mu.
        v: worth (1, as a part of the mean worth)   s: signed confidence constraint, so that mu can fall
        a_jr: consumption

    Without a selection, count budgets and fees are ignored; unlimited budgets have no lambda.

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
        """The paper's own settings, all of its iterations included; options given replace them."""
        return preset(cls, {"outer": 10, "inner": 5_000, "patience": None}, options)

    @classmethod
    def scale_free(cls, **options: Any) -> KL:
        """Settings under which no unit of any feature or budget matters, and multipliers to match; options given
        replace them."""
        return preset(cls, {"units": "standard", "residual": "relative", "start_lambda": 0.1}, options)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        from maxflip.solvers.paper.kl import KLAlgorithm
        from maxflip.solvers.paper.loop import run_loops

        return run_loops(self, problem, run, partial(KLAlgorithm, self), is_max=True, flats=False)
