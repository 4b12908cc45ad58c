"""Cheapest flips of a differentiable model: a whole batch at a time, no proof, but never a flip that is none.

    min cost(d)   s.t.  m(d) >= 0,  low <= d <= high

1. Descend: move to the cheapest point of the linearised surface (cheapest_into_halfspace), damped by a merit function.
2. Samples that have not crossed climb m from where they stand.
3. Bisect from the start to the flip found, and descend again from there: a first step may land far behind a steep
   surface, where gradients say nothing about where the surface lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from maxflip.flips.halfspace import cheapest_into_halfspace, cost
from maxflip.flips.surface import Surface

ROUNDS = 3
STEPS = 12
CLIMBS = 40
BISECTIONS = 12
HALVINGS = 4
OVERSHOOT = 1.2
SETTLED = 1e-4  # a sample whose cost changes by less than this, relative, has arrived
STRETCHES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0)


@dataclass(eq=False)
class Best:
    """The cheapest passing change of each sample so far: change (B, A), cost (B,), inf where there is none."""

    change: torch.Tensor
    cost: torch.Tensor

    def record(self, at: torch.Tensor, d: torch.Tensor, price: torch.Tensor, m: torch.Tensor) -> None:
        better = (m >= 0) & (price < self.cost[at])
        self.change[at[better]] = d[better]
        self.cost[at[better]] = price[better]

    @property
    def found(self) -> torch.Tensor:
        return torch.isfinite(self.cost)


def search(surface: Surface) -> Best:
    """The cheapest flips found; needs no state and no chance, so the same batch gives the same answer."""
    d = torch.zeros_like(surface.low)
    best = Best(torch.zeros_like(d), torch.full((len(d),), torch.inf, dtype=d.dtype, device=d.device))
    everyone = torch.arange(len(d), device=d.device)
    _descend(surface, best, d, everyone)
    _stretch(surface, best, d, everyone[~best.found])
    _climb(surface, best, d, everyone[~best.found])
    for _ in range(ROUNDS):
        at = everyone[best.found]
        _bisect(surface, best, at)
        d[at] = best.change[at]
        _descend(surface, best, d, at)
    _bisect(surface, best, everyone[best.found])
    return best


def _price(surface: Surface, d: torch.Tensor) -> torch.Tensor:
    return cost(d, surface.squared, surface.absolute)


def _descend(surface: Surface, best: Best, d: torch.Tensor, at: torch.Tensor) -> None:
    """SQP steps from d[at], in place. A sample leaves when it has arrived or no step helps."""
    weight = torch.zeros(len(d), dtype=d.dtype, device=d.device)  # of the merit function cost + weight max(0, -m)
    for _ in range(STEPS):
        if not len(at):
            return
        here = d[at]
        m, g = surface.margin_and_gradient(here, at)
        price = _price(surface, here)
        best.record(at, here, price, m)
        r = torch.where(torch.isfinite(m), (g * here).sum(dim=1) - m, 0.0)
        step = cheapest_into_halfspace(g, r, surface.squared, surface.absolute, surface.low[at], surface.high[at])
        goal_price = _price(surface, step.change)
        steep = torch.where(step.reachable, 2.0 * step.nu, 10.0 * goal_price / m.abs().clamp_min(1e-12))
        weight[at] = torch.maximum(weight[at], torch.where(torch.isfinite(steep), steep, 0.0))
        merit = price + weight[at] * (-m).clamp_min(0.0)

        moved = _line_search(surface, best, at, here, step.change - here, merit, weight[at])
        d[at] = torch.where(moved.accepted[:, None], moved.point, here)
        change = (moved.price - price).abs()
        arrived = (change <= SETTLED * price) & (moved.margin >= 0)
        at = at[moved.accepted & ~arrived & torch.isfinite(m)]


@dataclass(eq=False)
class _Moved:
    point: torch.Tensor
    price: torch.Tensor
    margin: torch.Tensor
    accepted: torch.Tensor


def _line_search(
    surface: Surface,
    best: Best,
    at: torch.Tensor,
    here: torch.Tensor,
    move: torch.Tensor,
    merit: torch.Tensor,
    weight: torch.Tensor,
) -> _Moved:
    """The first of 1, 1/2, 1/4, ... times the move that lowers the merit."""
    moved = _Moved(
        here.clone(),
        torch.zeros_like(merit),
        torch.zeros_like(merit),
        torch.zeros_like(merit, dtype=torch.bool),
    )
    open_ = torch.arange(len(at), device=at.device)
    length = 1.0
    for _ in range(HALVINGS + 1):
        point = here[open_] + length * move[open_]
        m = surface.margin(point, at[open_])
        price = _price(surface, point)
        best.record(at[open_], point, price, m)
        ok = price + weight[open_] * (-m).clamp_min(0.0) < merit[open_]
        taken = open_[ok]
        moved.point[taken], moved.price[taken], moved.margin[taken] = point[ok], price[ok], m[ok]
        moved.accepted[taken] = True
        open_ = open_[~ok]
        if not len(open_):
            break
        length /= 2
    return moved


def _stretch(surface: Surface, best: Best, d: torch.Tensor, at: torch.Tensor) -> None:
    """A descent may end a hair in front of the surface: reach a little further along the same line."""
    for factor in STRETCHES:
        if not len(at):
            return
        point = ((1.0 + factor) * d[at]).clamp(surface.low[at], surface.high[at])
        best.record(at, point, _price(surface, point), surface.margin(point, at))
        at = at[~best.found[at]]


def _climb(surface: Surface, best: Best, d: torch.Tensor, at: torch.Tensor) -> None:
    """Raise m from d[at], in place: each time the cheapest step that would cross if the surface were flat."""
    for _ in range(CLIMBS):
        if not len(at):
            return
        here = d[at]
        m, g = surface.margin_and_gradient(here, at)
        best.record(at, here, _price(surface, here), m)
        low, high = surface.low[at] - here, surface.high[at] - here
        step = cheapest_into_halfspace(g, -OVERSHOOT * m, surface.squared, surface.absolute, low, high)
        d[at] = (here + step.change).clamp(surface.low[at], surface.high[at])
        moves = (step.change != 0).any(dim=1) & torch.isfinite(d[at]).all(dim=1)
        at = at[~best.found[at] & moves]
    if len(at):
        best.record(at, d[at], _price(surface, d[at]), surface.margin(d[at], at))


def _bisect(surface: Surface, best: Best, at: torch.Tensor) -> None:
    """On the segment from the start (which fails) to the flip (which passes), the passing end closest to the start."""
    if not len(at):
        return
    flip = best.change[at].clone()
    fails = torch.zeros(len(at), dtype=flip.dtype, device=flip.device)
    passes = torch.ones_like(fails)
    for _ in range(BISECTIONS):
        middle = (fails + passes) / 2
        point = middle[:, None] * flip
        m = surface.margin(point, at)
        best.record(at, point, _price(surface, point), m)
        passes = torch.where(m >= 0, middle, passes)
        fails = torch.where(m >= 0, fails, middle)
