"""Clear the market: the prices at which the modelled dual is least.

    D(lambda) = sum_r lambda_r B_r + sum_j max(0, v_j - C_j(lambda)),      lambda >= 0

D is convex in the prices; its gradient is B minus what is bought. The kinks of max(0, .) are rounded off
(T log(1 + e^(u / T)), T a falling part of each worth) and Newton's method does the rest: with the curvature of every
C_j known in closed form, a dozen evaluations settle it for any number of samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maxflip.exact import Floats

FINAL = 0.01
ANNEALED, WARM = (0.3, 0.1, 0.03, FINAL), (FINAL,)
NEAR = (0.03, FINAL)  # from prices that were right for other budgets
SHARP = (FINAL, 2e-3, 4e-4)  # where D itself matters: at FINAL a count is priced half a per cent too high
STEPS = 30  # Newton steps at each softness
SETTLED = 1e-6  # ... which end when what is bought differs from the budgets by less than this, in parts of D
SMALL, MANY_SMALL = 1e-5, 3  # ... or after so many halved steps in a row that lower D by less than this part of it
NEARLY = 1e-2  # ... and with less than this the next softness is tried; else one between it and the last comes first
EXTRA, CLOSE = 6, 1.05  # so many of those in all, and none where the last was closer than by this factor
HALVINGS = 12
MOST = 2.0  # a price changes by at most a factor of e^2 in a step
NOTHING = 1e-7  # no price is lower than what makes all of its budget worth so many samples


@dataclass(frozen=True, eq=False)
class Terms:
    """sum_j T log(1 + e^((v_j - C_j) / T)) and its derivatives in the prices: gradient (m,), hessian (m, m)"""

    value: float
    gradient: Floats
    hessian: Floats

    @classmethod
    def total(cls, parts: list[Terms], m: int) -> Terms:
        """Added up in the order of the parts."""
        value, gradient, hessian = 0.0, np.zeros(m), np.zeros((m, m))
        for part in parts:
            value, gradient, hessian = value + part.value, gradient + part.gradient, hessian + part.hessian
        return cls(value, gradient, hessian)


@dataclass(frozen=True, eq=False)
class Cleared:
    """prices (m,)   value: D there, kinks included   curvature (m, m): of D, rounded off"""

    prices: Floats
    value: float
    curvature: Floats


Evaluate = Callable[[Floats, float], Terms]


def clear(
    evaluate: Evaluate,
    amounts: Floats,
    start: Floats,
    typical_worth: float,
    softness: tuple[float, ...] = ANNEALED,
    patience: int = MANY_SMALL,
) -> Cleared:
    """evaluate(prices (m,), softness) -> Terms   amounts (m,)   start (m,): budgets without a price keep having none
    patience: steps in a row that may win next to nothing"""
    traded = start > 0
    prices = np.zeros(len(amounts))
    lowest = NOTHING * typical_worth

    def at(q: Floats, softness: float) -> Terms:
        """The whole dual as a function of q_r = price_r amount_r, what all of a budget is worth."""
        prices[traded] = q / amounts[traded]
        terms = evaluate(prices, softness)
        scale = 1.0 / amounts[traded]
        with np.errstate(over="ignore", invalid="ignore"):
            inside = scale[:, None] * terms.hessian[np.ix_(traded, traded)] * scale
        return Terms(float(q.sum()) + terms.value, 1.0 + terms.gradient[traded] * scale, inside)

    q = np.maximum(start[traded] * amounts[traded], lowest)
    ahead, last, extra = list(softness), np.inf, EXTRA
    while ahead:
        soft = ahead.pop(0)
        reached = _descended(at, q, soft, lowest, patience)
        if not reached.settled and extra and last > CLOSE * soft and math.isfinite(last):
            ahead, extra = [(soft * last) ** 0.5, soft, *ahead], extra - 1
            continue
        q, here, last = reached.q, reached.terms, soft
    hard = at(q, 0.0)
    curvature = np.zeros((len(amounts), len(amounts)))
    curvature[np.ix_(traded, traded)] = amounts[traded][:, None] * here.hessian * amounts[traded]
    return Cleared(prices.copy(), hard.value, curvature)


@dataclass(frozen=True, eq=False)
class _Reached:
    """settled: False where steps hardly lower D, though what is bought is far from the budgets: corners too sharp"""

    q: Floats
    terms: Terms
    settled: bool


def _descended(
    at: Callable[[Floats, float], Terms], q: Floats, softness: float, lowest: float, patience: int
) -> _Reached:
    """Newton steps at one softness."""
    here, small = at(q, softness), 0
    for _ in range(STEPS):
        # Below 0 no plan exists, so that prices would rise for ever: those who must be picked do not fit.
        if here.value < 0 or _imbalance(q, here, lowest) <= SETTLED * here.value:
            return _Reached(q, here, settled=True)
        moved = _newton_step(at, q, here, softness, lowest)
        if moved is None:
            break
        there, terms, halved = moved
        small = small + 1 if halved and here.value - terms.value < SMALL * here.value else 0
        q, here = there, terms
        if small >= patience:
            break
    return _Reached(q, here, settled=_imbalance(q, here, lowest) <= NEARLY * here.value)


def _imbalance(q: Floats, here: Terms, lowest: float) -> float:
    """How far a gradient step of the whole market's size would go."""
    step = here.gradient * max(here.value, 0.0) / len(q)
    return float(np.abs(np.maximum(q - step, lowest) - q).sum())


def _newton_step(
    at: Callable[[Floats, float], Terms], q: Floats, here: Terms, softness: float, lowest: float
) -> tuple[Floats, Terms, bool] | None:
    """A step that lowers D, and whether it had to be halved; None if there is none.

    In log q, where D is not convex but a price cannot run to 0 or far away in one step: the Hessian there is
    Q H Q + diag(g q), and taking |g q| / 2 for its last part keeps it positive, and exact where the market clears.
    """
    free = (q > lowest) | (here.gradient < 0)
    slope = here.gradient * q
    with np.errstate(over="ignore", invalid="ignore"):
        inside = q[:, None] * here.hessian * q + np.diag(0.5 * np.abs(slope) + 1e-12 * here.value)
    if not np.isfinite(inside).all():
        return None
    direction = np.zeros_like(q)
    direction[free] = -np.linalg.solve(inside[np.ix_(free, free)], slope[free])
    length = min(1.0, MOST / max(float(np.abs(direction).max()), 1e-300))
    for halvings in range(HALVINGS):
        there = np.maximum(q * np.exp(length * direction), lowest)
        terms = at(there, softness)
        if terms.value < here.value + 1e-4 * length * min(0.0, float(slope @ direction)):
            return there, terms, halvings > 0
        length /= 2
    return None
