"""The smooth approximation of the indicator of a kept budget, 1{x <= 0}.

    P(x) = 1 / (1 + exp(-kappa (x - tau) / (1 - tau)))         x: overspending

Requires tau > 1: then 1 - tau < 0 and P falls as x grows. P = 1/2 at x = tau, not 0, and as kappa grows P tends to
1{x < tau}: it tolerates tau units of overspending. P(0) = 0.888 for kappa = 2, tau = 30.

    raw        x = spend - B, in the budget's own units (the paper)
    relative   x = 100 (spend - B) / B, in percent of the budget: independent of units; tau = 30 tolerates 30 %
"""

from __future__ import annotations

import torch

PERCENT = 100.0


def soft_indicator(x: torch.Tensor, kappa: float, tau: float) -> torch.Tensor:
    """x (...) -> P (...), in (0, 1)"""
    return torch.sigmoid(kappa * (x - tau) / (1.0 - tau))


def beyond(spend: torch.Tensor, amounts: torch.Tensor, is_relative: bool) -> torch.Tensor:
    """spend (N, m), amounts (m,) -> x (N, m)"""
    over = spend - amounts
    return PERCENT * over / amounts if is_relative else over
