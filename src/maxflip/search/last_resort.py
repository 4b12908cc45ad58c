"""The last resort for samples that no walk has flipped: many distant starts, and ascents of m from the best of them.

    starts    values at which flips of other samples end, and corners of the limits
    screen    compute m at every start, without gradients
    ascend    d <- clip(d + t w sign(grad m)) to the limits, with falling t, from one start of a sample after another

w is the width of the limits, so units do not matter. Corners are chosen at random with a fixed seed, the same for all
samples, so the order of samples does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from maxflip.search.settings import LAST_RESORT
from maxflip.search.surface import Surface


@dataclass(eq=False)
class LastResort:
    """at (b,): samples of the surface   x (b, A): their values   low, high (b, A): limits of the change
    far (A,): distance of a corner in a feature without a limit
    change (b, A), cost (b,): the cheapest known flip of each sample; cost inf if none
    """

    surface: Surface
    at: torch.Tensor
    x: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    far: torch.Tensor
    change: torch.Tensor
    cost: torch.Tensor

    @classmethod
    def of(cls, surface: Surface, at: torch.Tensor, change: torch.Tensor, price: torch.Tensor) -> LastResort:
        far = torch.as_tensor(LAST_RESORT.far * surface.problem.spread, device=at.device)
        return cls(surface, at, _values(surface, at), surface.low[at], surface.high[at], far, change, price)

    def run(self, flipped: torch.Tensor, flips: torch.Tensor, searched: int) -> None:
        """Try other samples' ends for all; corners and ascents for samples without a flip.

        flipped (p,): samples that have a flip, from the cheapest to the dearest   flips (p, A): their changes
        searched: number of samples in the whole search, which limits the number of gradients
        """
        broken = self.surface.broken.clone()
        ends = _evenly(_values(self.surface, flipped) + flips, LAST_RESORT.others)
        everyone = torch.arange(len(self.at), device=self.at.device)
        by_others = self.screen(ends, everyone)
        corners = _corners(self.low)
        by_corners = self.screen(corners, self.lost)
        kinds = ((ends, by_others), (corners, by_corners))
        turns = [(ends, order[k]) for k in range(LAST_RESORT.ascents) for ends, order in kinds if k < len(ends)]
        spent = self.surface.evaluations
        room = spent.gradients + LAST_RESORT.gradients_per_lost * len(self.lost)
        room += LAST_RESORT.gradients_per_sample * searched
        for ends, start in turns[: LAST_RESORT.ascents]:
            lost = self.lost
            if not len(lost) or spent.gradients + LAST_RESORT.steps * len(lost) > room:
                break
            self.ascend(self.toward(ends[start[lost]], lost), lost)
            new = lost[torch.isfinite(self.cost[lost])]
            self.screen(_evenly(self.x[new] + self.change[new], LAST_RESORT.others), self.lost)
        self.surface.broken = broken  # outputs that are not finite at a far corner do not count

    @property
    def lost(self) -> torch.Tensor:
        """Positions in `at` of the samples without a flip."""
        return torch.nonzero(~torch.isfinite(self.cost)).flatten()

    def toward(self, end: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        """(s, A): changes that bring the values as near to `end`, (A,) or (s, A), as the limits allow.

        An infinite end means the limit; without a limit, a change of `far`.
        """
        change = (end - self.x[some]).clamp(self.low[some], self.high[some])
        return torch.where(change.isinf(), change.sign() * self.far, change)

    def record(self, d: torch.Tensor, m: torch.Tensor, some: torch.Tensor) -> None:
        price = self.surface.cost(d, self.at[some])
        better = (m >= 0) & (price < self.cost[some])
        self.change[some[better]] = d[better]
        self.cost[some[better]] = price[better]

    def screen(self, ends: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        """(e, b): for each of `some` samples, the indices of `ends` (e, A) from the highest m to the lowest."""
        m = torch.full((len(ends), len(self.at)), -torch.inf, dtype=ends.dtype, device=ends.device)
        for k, end in enumerate(ends):
            d = self.toward(end, some)
            m[k, some] = self.surface.margin(d, self.at[some])
            self.record(d, m[k, some], some)
        return m.argsort(dim=0, descending=True, stable=True)

    def ascend(self, d: torch.Tensor, some: torch.Tensor) -> None:
        """Raise the margin m of these samples by steps from the changes d (s, A), until each sample passes."""
        width = torch.minimum(self.high - self.low, 2 * self.far)
        first, last = LAST_RESORT.stride
        for k in range(LAST_RESORT.steps):
            m, g = self.surface.margin_and_gradient(d, self.at[some])
            self.record(d, m, some)
            fails = m < 0
            some, d, g = some[fails], d[fails], g[fails]
            if not len(some):
                return
            stride = first * (last / first) ** (k / (LAST_RESORT.steps - 1))
            d = (d + stride * width[some] * g.sign()).clamp(self.low[some], self.high[some])
        self.record(d, self.surface.margin(d, self.at[some]), some)


def _values(surface: Surface, at: torch.Tensor) -> torch.Tensor:
    """(b, A): start values of the actionable features; 0 for missing ones, which cannot change."""
    start = surface.start[at.cpu().numpy()][:, surface.problem.actionable]
    return torch.as_tensor(start, device=at.device).nan_to_num()


def _evenly(ends: torch.Tensor, most: int) -> torch.Tensor:
    """At most `most` evenly spaced rows, including the first and the last."""
    if len(ends) <= most:
        return ends
    return ends[torch.linspace(0, len(ends) - 1, most).long().to(ends.device)]


def _corners(like: torch.Tensor) -> torch.Tensor:
    """(c, A): corners of the limits as infinite ends; all corners if they are few.   like (b, A)"""
    width = like.shape[1]
    if 2**width <= LAST_RESORT.corners:
        numbers = torch.arange(2**width)[:, None]
        is_high = (numbers >> torch.arange(width)) % 2 == 1
    else:
        is_high = torch.rand(LAST_RESORT.corners, width, generator=torch.Generator().manual_seed(0)) < 0.5
    return torch.where(is_high, torch.inf, -torch.inf).to(like)
