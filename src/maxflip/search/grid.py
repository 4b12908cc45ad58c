"""Flips whose values are multiples of the steps of `Rounded`, near the cheapest flips d without that.

1. Round every value to its nearest multiple. For squared prices that is also the best rounding of a sample whose other
   values can make up for it: at the optimum nu |g_i| = 2 s_i d_i, so cost - nu m differs by s_i (z_i - d_i)^2.
2. While the sample fails, move what raises m at least cost: values with a coarse step by one step, or all others
   together to where the tangent plane of m passes. A step is coarse if it makes up for more than a tenth of what m
   lacks. Where that ends without a flip, round longer changes in the same direction.
3. While it passes with room to spare, give that room back: values without a coarse step all together, the others by the
   one step that saves most.

Only points at which m >= 0 was seen are kept. No proof: a cheaper flip on the grid may exist.
"""

from __future__ import annotations

import torch

from maxflip.search.halfspace import cheapest_into_halfspace, cost
from maxflip.search.settings import GRID
from maxflip.search.surface import Surface


def onto_grid(surface: Surface, d: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Flips on the grid near d (b, A) of the samples `at`: changes (b, A), and whether one was found (b,)."""
    grid = _Grid(surface, at)
    open_ = torch.arange(len(at), device=d.device)
    point = grid.nearest(d, open_)
    found = torch.zeros_like(open_, dtype=torch.bool)
    for _ in range(GRID.raises):
        m, g = surface.margin_and_gradient(point[open_], at[open_])
        found[open_[m >= 0]] = True
        open_, m, g = open_[m < 0], m[m < 0], g[m < 0]
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
        point[lost] = grid.nearest(factor * d[lost], lost)
        found[lost] = surface.margin(point[lost], at[lost]) >= 0
    grid.lower(point, torch.nonzero(found).flatten())
    return torch.where(found[:, None], point, 0.0), found


class _Grid:
    """Where the values of the samples `at` are multiples of steps.   start, low, high (b, A)   step (A,): 0 for none"""

    def __init__(self, surface: Surface, at: torch.Tensor) -> None:
        problem, rows = surface.problem, surface.rows[at.cpu().numpy()]
        device, columns = surface.low.device, problem.actionable
        if problem.scenarios.step is None:
            raise ValueError("no value is to be rounded")
        self.surface, self.at, self.rows = surface, at, rows
        self.start = torch.tensor(problem.start[rows][:, columns], device=device)
        self.step = torch.tensor(problem.scenarios.step[columns], device=device)
        self.low, self.high = surface.low[at], surface.high[at]

    def nearest(self, d: torch.Tensor, who: torch.Tensor) -> torch.Tensor:
        """d (b, A) of the samples `who`, as it would be stored."""
        problem, columns = self.surface.problem, self.surface.problem.actionable
        full = torch.zeros(len(d), problem.width, dtype=d.dtype)
        full[:, torch.as_tensor(columns)] = d.cpu()
        return torch.tensor(problem.settle(self.rows[who.cpu().numpy()], full.numpy())[:, columns], device=d.device)

    def _next(self, d: torch.Tensor, who: torch.Tensor, way: torch.Tensor) -> torch.Tensor:
        """(b, A): the change to the next multiple in the direction `way` (-1, 0, 1), NaN where the box has none.

        From a changed value back past the start means no change.
        """
        step = torch.where(self.step > 0, self.step, 1.0)
        place = (self.start[who] + d) / step
        from_start = torch.where(way > 0, (place + GRID.on_a_multiple).floor(), (place - GRID.on_a_multiple).ceil())
        there = (torch.where(d == 0, from_start, place.round()) + way) * step - self.start[who]
        there = torch.where(there * d < 0, 0.0, there)
        room = GRID.on_a_multiple * step
        inside = (there >= self.low[who] - room) & (there <= self.high[who] + room) & (self.step > 0) & (way != 0)
        return torch.where(inside, there.clamp(self.low[who], self.high[who]), torch.nan)

    def _cost(self, d: torch.Tensor) -> torch.Tensor:
        """(b, A): of each value"""
        return self.surface.squared * d**2 + self.surface.absolute * d.abs()

    def raised(self, d: torch.Tensor, who: torch.Tensor, m: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        """d (b, A) moved so that the tangent plane passes, as far as one step of each value takes it."""
        lacks = (-m).nan_to_num(posinf=1.0).clamp_min(1e-300)
        there = self._next(d, who, g.sign())
        gain = (g * (there - d)).nan_to_num(nan=0.0)
        extra = torch.where(gain > 0, self._cost(there) - self._cost(d), torch.inf)
        rate = extra / torch.minimum(gain, lacks[:, None])  # what one unit of m costs
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
        """Values without a coarse step raise m by so much (b,), or lower it: the changes (b, A), and what that costs
        more, inf where they cannot."""
        surface = self.surface
        free = g.abs() * self.step <= GRID.fine * more_m.abs()[:, None]
        own = torch.where(free, g, 0.0)
        if not bool((own != 0).any()):
            return d, torch.full_like(more_m, torch.inf)
        wanted = more_m + (own * d).sum(dim=1)
        flip = cheapest_into_halfspace(own, wanted, surface.squared, surface.absolute, self.low[who], self.high[who])
        filled = self.nearest(torch.where(free, flip.change, d), who)
        more = cost(filled, surface.squared, surface.absolute) - cost(d, surface.squared, surface.absolute)
        return filled, torch.where(flip.reachable & (own != 0).any(dim=1), more, torch.inf)

    def lower(self, d: torch.Tensor, who: torch.Tensor) -> None:
        """Step 3 of the samples `who`, in place."""
        for _ in range(GRID.lowers):
            if not len(who):
                return
            m, g = self.surface.margin_and_gradient(d[who], self.at[who])
            relaxed, more = self._filled(d[who], who, -m, g)
            shed = (more < 0) & (self.surface.margin(relaxed, self.at[who]) >= 0)
            d[who[shed]] = relaxed[shed]
            if bool(shed.any()):
                m, g = self.surface.margin_and_gradient(d[who], self.at[who])
            there = self._next(d[who], who, -d[who].sign())
            loses = (g * (d[who] - there)).nan_to_num(nan=torch.inf)
            saves = (self._cost(d[who]) - self._cost(there)).nan_to_num(nan=0.0)
            saves = torch.where(loses <= m[:, None], saves, 0.0)
            most, which = saves.max(dim=1)
            less = d[who].scatter(1, which[:, None], there.gather(1, which[:, None]))
            less = torch.where((most > 0)[:, None], less, d[who])
            kept = (most > 0) & (self.surface.margin(less, self.at[who]) >= 0)
            d[who[kept]] = less[kept]
            who = who[kept | shed]
