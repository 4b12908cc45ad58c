"""Prices and limits of changes, and the lower bound that a half-space proves for the cheapest change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from maxflip.search.halfspace import rounding_of
from maxflip.search.rates import Rates
from maxflip.search.settings import LINEAR


@dataclass(frozen=True, eq=False)
class Terms:
    """rates: prices   low <= 0 <= high (B, A): the box"""

    rates: Rates
    low: torch.Tensor
    high: torch.Tensor

    def of(self, samples: torch.Tensor) -> Terms:
        return Terms(self.rates.of(samples), self.low[samples], self.high[samples])

    def within(self, most: torch.Tensor) -> Terms:
        """With changes limited to [-most, most] too.   most (B, A)"""
        return replace(self, low=torch.maximum(self.low, -most), high=torch.minimum(self.high, most))

    def cost(self, change: torch.Tensor) -> torch.Tensor:
        """(B, A) -> (B,)"""
        return self.rates.cost(change)


def dual_bound(pull: torch.Tensor, offset: torch.Tensor, terms: Terms) -> torch.Tensor:
    """(B,): at least 0 and at most the cost of any d in the box with pull . d >= offset; inf if there is none.

    pull (B, A), offset (B,). The bound is the minimum over the box of cost(d) - pull . d + offset, which is at
    d_i = sign(pull_i) min(max(0, |pull_i| - l_i) / (2 s_i), cap_i), less rounding.
    """
    squared, absolute = terms.rates.along(pull)
    cap = torch.where(pull > 0, terms.high, -terms.low)
    furthest = torch.where(pull != 0, pull.abs() * cap, 0.0).sum(dim=1)
    impossible = furthest < offset - LINEAR.sure * (offset.abs() + furthest)
    # An unlimited coordinate with |pull| > l makes the bound minus infinity: scale the half-space down until none has.
    endless = torch.isinf(cap) & (squared == 0)
    fits = torch.where(endless & (pull.abs() > absolute), absolute / pull.abs(), 1.0).amin(dim=1)
    excess = torch.where(endless, 0.0, (pull.abs() * fits[:, None] - absolute).clamp_min(0.0))
    most = torch.where(squared > 0, torch.minimum(excess / (2 * squared), cap), cap)
    gain = torch.where((excess > 0) & (most > 0), excess * most - squared * most**2, 0.0)
    sizes = torch.where((excess > 0) & (most > 0), (pull.abs() + absolute) * most + squared * most**2, 0.0)
    rounding = rounding_of(offset.abs() * fits + sizes.sum(dim=1), pull.shape[1])
    bound = (offset * fits - gain.sum(dim=1) - rounding).nan_to_num(nan=0.0, neginf=0.0).clamp_min(0.0)
    return torch.where(impossible, torch.inf, bound)
