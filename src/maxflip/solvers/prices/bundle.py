"""Prices for linear models with kinked costs: D minimised by cutting planes in a box.

    D(lambda) >= D(lambda_k) + (B - A_k) . (lambda - lambda_k)          for every k

A_k is the total draw of the samples picked at lambda_k. With absolute costs D is nearly piecewise linear: at prices
that clear the budgets several features are equally cheap, and flips jump between them. Smooth methods stall there.

The maximum of the planes is a lower approximation of D. Its minimum in a box around the best prices is tried next. The
box shrinks after a step that does not lower D enough (a null step of a bundle method).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from maxflip._util.types import Floats
from maxflip.select.milp import Program, relax
from maxflip.solvers.prices.settings import PLANES

Dual = Callable[[Floats], tuple[float, Floats]]


def minimise(evaluate: Dual, start: Floats) -> tuple[Floats, Floats]:
    """(K, m), (K, m): the q tried, the best first, and the shares drawn at them, A_k / B.

    q_r = price_r amount_r.   evaluate: q (m,) -> D, and its slope 1 - A / B (m,)   start (m,): first q
    """
    center, width = start, PLANES.width
    value, slope = evaluate(center)
    tried, values, slopes = [center], [value], [slope]
    best = 0
    for _ in range(PLANES.rounds):
        rise = PLANES.rise * values[best] / len(center)
        found = _minimum_of_planes(np.array(tried), np.array(values), np.array(slopes), center, width, rise)
        if found is None:
            break
        there, promised = found[0], values[best] - found[1]
        if promised <= PLANES.closed_gap * values[best] and width >= PLANES.open_width:
            break
        value, slope = evaluate(there)
        tried.append(there)
        values.append(value)
        slopes.append(slope)
        if values[best] - value >= PLANES.serious * promised:
            best, center, width = len(values) - 1, there, min(width**PLANES.wider, PLANES.widest)
        else:
            width = max(width**PLANES.narrower, PLANES.narrowest)
    order = np.argsort(values, kind="stable")
    return np.array(tried)[order], 1.0 - np.array(slopes)[order]


def _minimum_of_planes(
    tried: Floats, values: Floats, slopes: Floats, center: Floats, width: float, rise: float
) -> tuple[Floats, float] | None:
    """min t   s.t.  t >= D_k + slope_k . (q - q_k),   center / width <= q <= center x width"""
    m = len(center)
    scale = float(values.min())
    constant = (values - (slopes * tried).sum(axis=1)) / scale
    answer = relax(
        Program(
            worth=np.append(np.zeros(m), -1.0),
            matrix=sp.csc_matrix(np.hstack([slopes, -np.ones((len(values), 1))])),
            row_lower=np.full(len(values), -np.inf),
            row_upper=-constant,
            lower=np.append(center / width / scale, -np.inf),
            upper=np.append(np.maximum(center * width, rise) / scale, np.inf),
        )
    )
    return None if answer is None else (answer.x[:m] * scale, float(answer.x[m]) * scale)


def weights(share: Floats, worth_all: Floats) -> Floats:
    """(K,): the weights theta with which the average draw exceeds the budgets least.

    min  sum_r q_r s_r    s.t.  sum_k theta_k share_kr <= 1 + s_r,   sum_k theta_k = 1,   theta, s >= 0

    share (K, m): A_k / B   worth_all (m,): q
    """
    k, m = share.shape
    dear = np.maximum(worth_all, PLANES.overdrawn * worth_all.sum() / m)
    answer = relax(
        Program(
            worth=np.append(np.zeros(k), -dear / dear.sum()),
            matrix=sp.csc_matrix(np.block([[share.T, -np.eye(m)], [np.ones((1, k)), np.zeros((1, m))]])),
            row_lower=np.append(np.full(m, -np.inf), 1.0),
            row_upper=np.ones(m + 1),
            lower=np.zeros(k + m),
            upper=np.full(k + m, np.inf),
        )
    )
    theta = np.full(k, 1.0) if answer is None else np.where(answer.x[:k] > 1e-9, answer.x[:k], 0.0)
    return np.asarray(theta / theta.sum())
