"""Flips that keep the rules of single changes (`problem.grid`: steps and smallest sizes), near the cheapest flips d
without them.

1. Round each value to its nearest multiple, and each change that is too small to 0 or to the smallest one. For squared
   prices this is the best rounding of value i if the others can compensate: at the optimum nu |g_i| = 2 s_i d_i, so
   cost - nu m changes by s_i (z_i - d_i)^2.
2. While the sample fails, raise m at least cost: move coarse values to their next multiple, or all others together to
   the tangent plane of m. A value is coarse if its spacing changes m by more than a tenth of what is missing. If that
   finds no flip, round longer changes in the same direction.
3. While the sample passes with m > 0, lower the cost: of all values that are not coarse together, and of the one coarse
   value that saves most.

Only changes with m >= 0, but for the rounding of m, are kept. A cheaper flip on the grid may exist.
"""

from __future__ import annotations

import torch

from maxflip.search.lattice import Lattice
from maxflip.search.settings import GRID
from maxflip.search.surface import Surface


def onto_grid(surface: Surface, d: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Flips on the grid near d (b, A) of the samples `at`: changes (b, A), and whether one was found (b,)."""
    grid = _Grid(surface, at)
    open_ = torch.arange(len(at), device=d.device)
    point = grid.stored(d, open_)
    found = torch.zeros_like(open_, dtype=torch.bool)
    for _ in range(GRID.raises):
        m, g = surface.margin_and_gradient(point[open_], at[open_])
        passes = m >= -GRID.rounding
        found[open_[passes]] = True
        open_, m, g = open_[~passes], m[~passes], g[~passes]
        if not len(open_):
            break
        moved = grid.raised(point[open_], open_, m, g)
        moves = (moved != point[open_]).any(dim=1)
        point[open_] = moved
        open_ = open_[moves]
    for factor in GRID.longer:
        lost = torch.nonzero(~found).flatten()
        if not len(lost):
            break
        point[lost] = grid.stored(factor * d[lost], lost)
        found[lost] = surface.margin(point[lost], at[lost]) >= 0
    if not surface.problem.grid.has_rules:  # else flips are exchanged, which lowers their cost too
        grid.lower(point, torch.nonzero(found).flatten())
    return torch.where(found[:, None], point, 0.0), found


class _Grid:
    """The moves of the samples `at` on their lattice."""

    def __init__(self, surface: Surface, at: torch.Tensor) -> None:
        self.surface, self.at, self.lattice = surface, at, Lattice.of(surface, at)
        self.rates = surface.rates.of(at)

    def stored(self, d: torch.Tensor, who: torch.Tensor) -> torch.Tensor:
        """d (b, A) of the samples `who`, as it would be stored."""
        return self.surface.moved(d, self.at[who])

    def _cost(self, d: torch.Tensor, who: torch.Tensor) -> torch.Tensor:
        return self.rates.of(who).of_each(d)

    def raised(self, d: torch.Tensor, who: torch.Tensor, m: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        """d (b, A) moved towards the tangent plane of m, each coarse value to its next multiple at most."""
        lacks = (-m).nan_to_num(posinf=1.0).clamp_min(1e-300)
        there = self.lattice.those(who).next(d, g.sign())
        gain = (g * (there - d)).nan_to_num(nan=0.0)
        extra = torch.where(gain > 0, self._cost(there, who) - self._cost(d, who), torch.inf)
        rate = extra / torch.minimum(gain, lacks[:, None])  # cost of one unit of m
        rate, order = torch.where(gain > 0, rate, torch.inf).sort(dim=1, stable=True)
        before = gain.gather(1, order).cumsum(dim=1) - gain.gather(1, order)
        takes = torch.zeros_like(gain, dtype=torch.bool).scatter(
            1, order, (before < lacks[:, None]) & torch.isfinite(rate)
        )
        stepped = torch.where(takes, there, d)
        filled, price = self._filled(d, who, GRID.overshoot * lacks, g)
        cheaper = price / lacks <= rate[:, 0]
        return torch.where(cheaper[:, None], filled, stepped)

    def _filled(
        self, d: torch.Tensor, who: torch.Tensor, more_m: torch.Tensor, g: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Change m by more_m (b,), moving only values that are not coarse: the changes (b, A), and the additional cost,
        inf if they cannot."""
        free = (g.abs() * self.lattice.spacing[who] <= GRID.fine * more_m.abs()[:, None]) & (
            (d != 0) | (self.lattice.least[who] == 0)
        )
        own = torch.where(free, g, 0.0)
        if not bool((own != 0).any()):
            return d, torch.full_like(more_m, torch.inf)
        wanted = more_m + (own * d).sum(dim=1)
        flip = self.surface.into_halfspace(own, wanted, self.at[who])
        filled = self.stored(torch.where(free, flip.change, d), who)
        rates = self.rates.of(who)
        more = rates.cost(filled) - rates.cost(d)
        return filled, torch.where(flip.reachable & (own != 0).any(dim=1), more, torch.inf)

    def lower(self, d: torch.Tensor, who: torch.Tensor) -> None:
        """Stage 3 for the samples `who`, in place."""
        for _ in range(GRID.lowers):
            if not len(who):
                return
            m, g = self.surface.margin_and_gradient(d[who], self.at[who])
            relaxed, more = self._filled(d[who], who, -m, g)
            shed = (more < 0) & (self.surface.margin(relaxed, self.at[who]) >= 0)
            d[who[shed]] = relaxed[shed]
            if bool(shed.any()):
                m, g = self.surface.margin_and_gradient(d[who], self.at[who])
            there = self.lattice.those(who).next(d[who], -d[who].sign())
            loses = (g * (d[who] - there)).nan_to_num(nan=torch.inf)
            saves = (self._cost(d[who], who) - self._cost(there, who)).nan_to_num(nan=0.0)
            saves = torch.where(loses <= m[:, None], saves, 0.0)
            most, which = saves.max(dim=1)
            less = d[who].scatter(1, which[:, None], there.gather(1, which[:, None]))
            less = torch.where((most > 0)[:, None], less, d[who])
            kept = (most > 0) & (self.surface.margin(less, self.at[who]) >= 0)
            d[who[kept]] = less[kept]
            who = who[kept | shed]
