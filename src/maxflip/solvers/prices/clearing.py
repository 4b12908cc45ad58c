"""Clear the market: Newton's method for the prices at which the predicted dual is least.

    D(lambda) = sum_r lambda_r B_r + sum_j max(0, v_j - C_j(lambda)),      lambda >= 0

C_j is predicted by the tangent plane of each sample. D is convex in the prices; its gradient is B minus the total draw.
The kink of max(0, u) is smoothed to T log(1 + e^(u / T)); T, the softness, is a decreasing part of each worth. The
second derivatives of C_j have a closed form. So Newton's method needs about a dozen evaluations, for any number of
samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maxflip._util.types import Floats
from maxflip.solvers.prices.settings import CLEARING


@dataclass(frozen=True, eq=False)
class DualPart:
    """The smoothed dual of some samples, without the term sum_r lambda_r B_r:

    sum_j T log(1 + e^((v_j - C_j) / T))    and its derivatives in the prices: gradient (m,), hessian (m, m)
    """

    value: float
    gradient: Floats
    hessian: Floats

    @classmethod
    def total(cls, parts: list[DualPart], m: int) -> DualPart:
        """The sum of the parts, in their order."""
        value, gradient, hessian = 0.0, np.zeros(m), np.zeros((m, m))
        for part in parts:
            value, gradient, hessian = value + part.value, gradient + part.gradient, hessian + part.hessian
        return cls(value, gradient, hessian)


@dataclass(frozen=True, eq=False)
class Cleared:
    """prices (m,)   value: D at these, without smoothing   curvature (m, m): Hessian of the smoothed D"""

    prices: Floats
    value: float
    curvature: Floats


Evaluate = Callable[[Floats, float], DualPart]


def clear(
    evaluate: Evaluate,
    amounts: Floats,
    start: Floats,
    typical_worth: float,
    softness: tuple[float, ...] = CLEARING.annealed,
    patience: int = CLEARING.small_gains,
    right: Floats | None = None,
) -> Cleared:
    """evaluate(prices (m,), softness) -> DualPart   amounts (m,)   start (m,): prices of 0 stay 0
    right (m,): right sides of the rows, as parts of their amounts; None: 1 each, as those of budgets are
    patience: consecutive halved steps that hardly lower D, after which Newton's method has stalled

    If demand stays far from the budgets at one softness, a softness between this one and the one before is inserted.
    """
    traded = start > 0
    prices = np.zeros(len(amounts))
    lowest = CLEARING.lowest * typical_worth
    sides = (np.ones(len(amounts)) if right is None else right)[traded]

    def at(q: Floats, softness: float) -> DualPart:
        """The whole dual as a function of q_r = price_r amount_r."""
        prices[traded] = q / amounts[traded]
        dual = evaluate(prices, softness)
        scale = 1.0 / amounts[traded]
        with np.errstate(over="ignore", invalid="ignore"):
            inside = scale[:, None] * dual.hessian[np.ix_(traded, traded)] * scale
        return DualPart(float((sides * q).sum()) + dual.value, sides + dual.gradient[traded] * scale, inside)

    q = np.maximum(start[traded] * amounts[traded], lowest)
    ahead, last, extra = list(softness), np.inf, CLEARING.insertions
    while ahead:
        soft = ahead.pop(0)
        reached = _descended(at, q, soft, lowest, patience)
        if not reached.converged and extra and last > CLEARING.insertion_factor * soft and math.isfinite(last):
            ahead, extra = [(soft * last) ** 0.5, soft, *ahead], extra - 1
            continue
        q, here, last = reached.q, reached.dual, soft
    hard = at(q, 0.0)
    curvature = np.zeros((len(amounts), len(amounts)))
    curvature[np.ix_(traded, traded)] = amounts[traded][:, None] * here.hessian * amounts[traded]
    return Cleared(prices.copy(), hard.value, curvature)


@dataclass(frozen=True, eq=False)
class _Reached:
    """q (m,)   converged: False if Newton's method stalled while demand was far from the budgets"""

    q: Floats
    dual: DualPart
    converged: bool


def _descended(
    at: Callable[[Floats, float], DualPart], q: Floats, softness: float, lowest: float, patience: int
) -> _Reached:
    """Newton steps at one softness."""
    here, small = at(q, softness), 0
    for _ in range(CLEARING.steps):
        # D < 0 means infeasible: the samples that must be picked do not fit, and prices would rise without bound.
        if here.value < 0 or _imbalance(q, here, lowest) <= CLEARING.converged * here.value:
            return _Reached(q, here, converged=True)
        moved = _newton_step(at, q, here, softness, lowest)
        if moved is None:
            break
        there, dual, halved = moved
        small = small + 1 if halved and here.value - dual.value < CLEARING.small_gain * here.value else 0
        q, here = there, dual
        if small >= patience:
            break
    return _Reached(q, here, converged=_imbalance(q, here, lowest) <= CLEARING.nearly_converged * here.value)


def _imbalance(q: Floats, here: DualPart, lowest: float) -> float:
    """L1 length of a projected gradient step of size D / m; 0 if the market clears."""
    step = here.gradient * max(here.value, 0.0) / len(q)
    return float(np.abs(np.maximum(q - step, lowest) - q).sum())


def _newton_step(
    at: Callable[[Floats, float], DualPart], q: Floats, here: DualPart, softness: float, lowest: float
) -> tuple[Floats, DualPart, bool] | None:
    """A step that lowers D, and whether it was halved; None if there is none.

    Steps are taken in log q, so that no price reaches 0 or changes much in one step. D is not convex in log q: its
    Hessian is Q H Q + diag(g q). |g q| / 2 in place of g q makes it positive definite, and exact at the solution.
    """
    free = (q > lowest) | (here.gradient < 0)
    slope = here.gradient * q
    with np.errstate(over="ignore", invalid="ignore"):
        inside = q[:, None] * here.hessian * q + np.diag(0.5 * np.abs(slope) + 1e-12 * here.value)
    if not np.isfinite(inside).all():
        return None
    direction = np.zeros_like(q)
    direction[free] = -_solution(inside[np.ix_(free, free)], slope[free])
    length = min(1.0, CLEARING.longest_step / max(float(np.abs(direction).max()), 1e-300))
    for halvings in range(CLEARING.halvings):
        there = np.maximum(q * np.exp(length * direction), lowest)
        dual = at(there, softness)
        if dual.value < here.value + CLEARING.sufficient_fall * length * min(0.0, float(slope @ direction)):
            return there, dual, halvings > 0
        length /= 2
    return None


def _solution(matrix: Floats, right: Floats) -> Floats:
    """Of the linear equations; the shortest one if the matrix is singular, as with a quota of exactly half."""
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right)[0])
