"""Cheap flips of a differentiable model, for a batch of samples. Every change returned is a flip, none proved cheapest.

    min cost(d)   s.t.  m(d) >= 0,  low <= d <= high          cost(d) = sum_i s_i d_i^2 + l_i |d_i|

Stages:

1. Walk: steps of a normalised length along the gradient of m, on a sphere around the start. The sphere shrinks if the
   sample has crossed the surface m = 0 and grows if not (DDN, in the metric of the prices). A full Newton step from the
   start lands in a far basin; a walk finds near ones.
2. Samples that have not crossed climb: they raise m from the end of the walk. Then they try other samples' flips. Those
   still without a flip walk and climb again as if every feature cost the same per spread.
3. Samples without a flip, and those with limits that had to climb, try the values at which others end. Those still
   without one try the corners of their limits, and climb from the best of these (last_resort). Then bisect between
   start and flip.
4. Follow: try the directions of other samples' flips, and walk again from the most promising point. Such a direction
   often leads to a basin that no local method finds from the sample's own start.
5. Refine: walk once more from the flip, with small steps. Then descend: SQP steps onto the linearised surface, damped
   by a merit function. Then bisect.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from maxflip.search.last_resort import LastResort
from maxflip.search.settings import GRADIENT, Gait
from maxflip.search.surface import Surface


@dataclass(eq=False)
class Best:
    """The cheapest known flip of each sample: change (B, A), cost (B,); cost inf without a flip."""

    change: torch.Tensor
    cost: torch.Tensor

    @classmethod
    def none(cls, like: torch.Tensor) -> Best:
        return cls(torch.zeros_like(like), torch.full((len(like),), torch.inf, dtype=like.dtype, device=like.device))

    def record(self, at: torch.Tensor, d: torch.Tensor, price: torch.Tensor, m: torch.Tensor) -> None:
        better = (m >= 0) & (price < self.cost[at])
        self.change[at[better]] = d[better]
        self.cost[at[better]] = price[better]

    @property
    def found(self) -> torch.Tensor:
        return torch.isfinite(self.cost)


def search(surface: Surface, start: torch.Tensor | None = None) -> Best:
    """The cheapest flips found. Deterministic: the same batch gives the same flips.

    start (B, A): changes to begin from, such as flips at other prices; samples that pass there are only refined.
    """
    best = Best.none(surface.low)
    everyone = torch.arange(len(surface.low), device=surface.low.device)
    if start is not None:
        point = start.clamp(surface.low, surface.high)
        best.record(everyone, point, surface.cost(point, everyone), surface.margin(point, everyone))
    new = everyone[~best.found]
    explore(surface, best, new)
    follow(surface, best, new[best.found[new]], among=everyone[best.found])
    refine(surface, best, everyone[best.found])
    return best


def explore(surface: Surface, best: Best, at: torch.Tensor) -> None:
    """A first flip for each of `at`: stages 1 to 3."""
    climbed = _first(surface, best, at)
    try_leaders(surface, best, at[~best.found[at]], among=torch.nonzero(best.found).flatten())
    lost = at[~best.found[at]]
    if len(lost):  # at very unequal prices walks move the cheap features only, also if only a dear one flips the sample
        other = Best.none(surface.low)
        _first(surface.neutral, other, lost)
        found = lost[other.found[lost]]
        change = other.change[found]
        best.record(found, change, surface.cost(change, found), torch.zeros_like(best.cost[found]))
        try_leaders(surface, best, lost[~best.found[lost]], among=found)
    climbed = climbed[_is_limited(surface)[climbed] | ~best.found[climbed]]
    if len(climbed):
        _resort(surface, best, climbed, searched=len(at))
    _bisect(surface, best, at[best.found[at]], GRADIENT.rough_bisections)


def refine(surface: Surface, best: Best, at: torch.Tensor) -> None:
    """Cheaper flips for `at`, which have one each: stage 5."""
    _bisect(surface, best, at, GRADIENT.rough_bisections)
    flip = best.change[at] * (1 - GRADIENT.refine.rate[0])
    _walk(surface, best, at, flip, surface.metric(flip, at), GRADIENT.refine)
    _descend(surface, best, best.change.clone(), at, GRADIENT.descents)
    _bisect(surface, best, at, GRADIENT.close_bisections)


def touch_up(surface: Surface, best: Best, at: torch.Tensor, gait: Gait) -> None:
    """Cheaper flips for those of `at` whose flip lies in a crease of the surface, where descents stall."""
    flat = _onto_tangent_plane(surface, best.change[at], at)
    at = at[surface.cost(flat, at) < (1 - GRADIENT.creased) * best.cost[at]]
    _bisect(surface, best, at, GRADIENT.brief_bisections)
    flip = best.change[at] * (1 - gait.rate[0])
    _walk(surface, best, at, flip, surface.metric(flip, at), gait)
    _bisect(surface, best, at, GRADIENT.rough_bisections)


def track(surface: Surface, best: Best, at: torch.Tensor, start: torch.Tensor, steps: int) -> None:
    """Flips of `at` near start (B, A), a prediction: descend, then lengthen the change until it crosses the surface."""
    d = start.clone()
    d[at] = d[at].clamp(surface.low[at], surface.high[at])
    _descend(surface, best, d, at, steps)
    _stretch(surface, best, d, at)


def _first(surface: Surface, best: Best, at: torch.Tensor) -> torch.Tensor:
    """Walk from the start; samples that have not crossed lengthen their change, then climb. Returns those that had to
    climb."""
    if not len(at):
        return at
    origin = torch.zeros_like(surface.low[at])
    m, g = surface.margin_and_gradient(origin, at)
    away = (-m).clamp_min(GRADIENT.smallest).nan_to_num(posinf=1.0)
    low, high = surface.low[at], surface.high[at]
    flat = surface.into_halfspace(g, away, at)
    weight = surface.metric(g, at, typical_cost=surface.cost(flat.change, at))
    pull = g / weight
    size = pull.norm(dim=1, keepdim=True).clamp_min(GRADIENT.smallest)
    first = GRADIENT.first_radius * away[:, None] * (pull / weight) / size**2
    d = torch.zeros_like(surface.low)
    d[at] = _walk(surface, best, at, first.clamp(low, high), weight, GRADIENT.explore)
    _stretch(surface, best, d, at[~best.found[at]])
    climbed = at[~best.found[at]]
    _climb(surface, best, d, climbed)
    return climbed


def _is_limited(surface: Surface) -> torch.Tensor:
    """(B,): whether some feature that may change has a limit."""
    ends = surface.low.isfinite() | surface.high.isfinite()
    return (ends & ~surface.pinned).any(dim=1)


def _resort(surface: Surface, best: Best, climbed: torch.Tensor, searched: int) -> None:
    """Flips by the last resort, for samples without one or whose climb found a dearer one."""
    flipped = torch.nonzero(best.found).flatten()
    flipped = flipped[torch.argsort(best.cost[flipped], stable=True)]
    search = LastResort.of(surface, climbed, best.change[climbed], best.cost[climbed])
    search.run(flipped, best.change[flipped], searched)
    best.record(climbed, search.change, search.cost, torch.zeros_like(search.cost))


def _walk(
    surface: Surface, best: Best, at: torch.Tensor, d: torch.Tensor, weight: torch.Tensor, gait: Gait
) -> torch.Tensor:
    """(b, A): the end of the walk from d (b, A).   weight (b, A): the length of d is |weight d|"""
    low, high = surface.low[at], surface.high[at]
    for k in range(gait.steps):
        m, g = surface.margin_and_gradient(d, at)
        best.record(at, d, surface.cost(d, at), m)
        stride, rate = gait.at(k)
        length = (weight * d).norm(dim=1, keepdim=True)
        shortest = torch.minimum((weight * best.change[at]).norm(dim=1, keepdim=True), length)
        radius = torch.where((m >= 0)[:, None], shortest * (1 - rate), length * (1 + rate))
        pull = g / weight
        d = d + stride * radius * (pull / weight) / pull.norm(dim=1, keepdim=True).clamp_min(GRADIENT.smallest)
        d = d * (radius / (weight * d).norm(dim=1, keepdim=True).clamp_min(GRADIENT.smallest))
        d = d.clamp(low, high)
    best.record(at, d, surface.cost(d, at), surface.margin(d, at))
    return d


def try_leaders(surface: Surface, best: Best, at: torch.Tensor, among: torch.Tensor) -> None:
    """Samples `at` without a flip try multiples of the flips of `among`."""
    if not len(at) or not len(among):
        return
    for leader in _leaders(best, among):
        for factor in GRADIENT.leader_multiples:
            point = (factor * best.change[leader]).expand(len(at), -1).clamp(surface.low[at], surface.high[at])
            best.record(at, point, surface.cost(point, at), surface.margin(point, at))
        at = at[~best.found[at]]
        if not len(at):
            return


def _leaders(best: Best, among: torch.Tensor) -> torch.Tensor:
    """Some of the flipped samples, spaced evenly from the cheapest flip to the dearest."""
    by_cost = among[torch.argsort(best.cost[among], stable=True)]
    return by_cost[torch.linspace(0, len(among) - 1, min(GRADIENT.leaders, len(among))).long()]


def follow(
    surface: Surface, best: Best, at: torch.Tensor, among: torch.Tensor, worth: torch.Tensor | None = None
) -> None:
    """Stage 4 for `at`: walk from the most promising point in the directions of the flips of `among`.

    worth (B,): the highest cost at which a flip is useful. If given, directions are tried up to this cost, and a sample
    walks only if the tangent plane there promises a flip that costs less than its worth and clearly less than its own.
    """
    if not len(at) or len(among) < 2:
        return
    everyone = torch.arange(len(best.cost), device=at.device)
    weight = surface.metric(best.change, everyone, typical_cost=best.cost[among].median()[None])
    enough = best.cost if worth is None else torch.minimum(best.cost, worth)
    start = most_promising(surface, best, at, among, weight, enough)
    if worth is not None:
        promised = surface.cost(_onto_tangent_plane(surface, start, at), at)
        pays = promised < torch.minimum(GRADIENT.promising * best.cost, worth)[at]
        at, start = at[pays], start[pays]
    own = Best.none(surface.low)  # with the flips of this walk alone: `best` would soon pull the radius to the old flip
    _walk(surface, own, at, start, weight[at] if len(weight) > 1 else weight.expand(len(at), -1), GRADIENT.follow)
    best.record(at, own.change[at], own.cost[at], torch.where(own.found[at], 0.0, -1.0))


def most_promising(
    surface: Surface, best: Best, at: torch.Tensor, among: torch.Tensor, weight: torch.Tensor, enough: torch.Tensor
) -> torch.Tensor:
    """(b, A): the point with the highest m among those in the directions of leaders' flips whose cost is a little below
    enough (B,)."""
    length = (weight * best.change).norm(dim=1, keepdim=True)
    unit = best.change / length.clamp_min(GRADIENT.smallest)
    length = length * (enough / best.cost.clamp_min(GRADIENT.smallest)).sqrt()[:, None]
    highest = torch.full((len(at),), -torch.inf, dtype=unit.dtype, device=unit.device)
    start = torch.zeros_like(unit[at])
    for leader in _leaders(best, among):
        point = (GRADIENT.leader_length * length[at] * unit[leader]).clamp(surface.low[at], surface.high[at])
        m = surface.margin(point, at)
        best.record(at, point, surface.cost(point, at), m)
        promising = (m > highest) & (at != leader)
        highest = torch.where(promising, m, highest)
        start = torch.where(promising[:, None], point, start)
    return start


def _onto_tangent_plane(surface: Surface, d: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """(b, A): the cheapest changes onto the tangent plane of the surface at d (b, A)."""
    m, g = surface.margin_and_gradient(d, at)
    return surface.into_halfspace(g, (g * d).sum(dim=1) - m, at).change


def _descend(surface: Surface, best: Best, d: torch.Tensor, at: torch.Tensor, steps: int) -> None:
    """SQP steps from d[at], in place, until a sample has converged or no step lowers its merit."""
    weight = torch.zeros(len(d), dtype=d.dtype, device=d.device)  # of the merit function cost + weight max(0, -m)
    for _ in range(steps):
        if not len(at):
            return
        here = d[at]
        m, g = surface.margin_and_gradient(here, at)
        price = surface.cost(here, at)
        best.record(at, here, price, m)
        r = torch.where(torch.isfinite(m), (g * here).sum(dim=1) - m, 0.0)
        step = surface.into_halfspace(g, r, at)
        goal_price = surface.cost(step.change, at)
        beyond = GRADIENT.merit_weight_beyond * goal_price / m.abs().clamp_min(GRADIENT.smallest)
        steep = torch.where(step.reachable, GRADIENT.merit_weight * step.nu, beyond)
        weight[at] = torch.maximum(weight[at], torch.where(torch.isfinite(steep), steep, 0.0))
        merit = price + weight[at] * (-m).clamp_min(0.0)

        moved = _line_search(surface, best, at, here, step.change - here, merit, weight[at])
        d[at] = torch.where(moved.accepted[:, None], moved.point, here)
        change = (moved.price - price).abs()
        converged = (change <= GRADIENT.converged * price) & (moved.margin >= 0)
        at = at[moved.accepted & ~converged & torch.isfinite(m)]


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
    for _ in range(GRADIENT.halvings + 1):
        point = here[open_] + length * move[open_]
        m = surface.margin(point, at[open_])
        price = surface.cost(point, at[open_])
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
    """Lengthen changes d[at] that end just before the surface, as long as they cost less than the known flip."""
    for factor in GRADIENT.stretches:
        point = ((1.0 + factor) * d[at]).clamp(surface.low[at], surface.high[at])
        pays = surface.cost(point, at) < best.cost[at]
        at, point = at[pays], point[pays]
        if not len(at):
            return
        m = surface.margin(point, at)
        best.record(at, point, surface.cost(point, at), m)
        at = at[m < 0]


def _climb(surface: Surface, best: Best, d: torch.Tensor, at: torch.Tensor) -> None:
    """Raise m from d[at], in place: each step is the cheapest one beyond the tangent plane.

    With limits, a sample whose m does not rise for a few steps oscillates between corners; it ends there.
    """
    highest = torch.full_like(best.cost, -torch.inf)
    rose = torch.where(_is_limited(surface), 0.0, torch.inf)  # the last step at which m rose
    for k in range(GRADIENT.climb_steps):
        if not len(at):
            return
        here = d[at]
        m, g = surface.margin_and_gradient(here, at)
        best.record(at, here, surface.cost(here, at), m)
        low, high = surface.low[at] - here, surface.high[at] - here
        step = surface.into_halfspace(g, -GRADIENT.climb_overshoot * m, at, low, high)
        d[at] = (here + step.change).clamp(surface.low[at], surface.high[at])
        moves = (step.change != 0).any(dim=1) & torch.isfinite(d[at]).all(dim=1)
        rose[at] = torch.where(m > highest[at], rose[at].clamp_min(k), rose[at])
        highest[at] = torch.maximum(highest[at], m)
        at = at[~best.found[at] & moves & (k - rose[at] < GRADIENT.climb_patience)]
    if len(at):
        best.record(at, d[at], surface.cost(d[at], at), surface.margin(d[at], at))


def _bisect(surface: Surface, best: Best, at: torch.Tensor, times: int) -> None:
    """Shorten each flip by bisection between the start, which fails, and the flip, which passes."""
    if not len(at):
        return
    flip = best.change[at].clone()
    fails = torch.zeros(len(at), dtype=flip.dtype, device=flip.device)
    passes = torch.ones_like(fails)
    for _ in range(times):
        middle = (fails + passes) / 2
        point = middle[:, None] * flip
        m = surface.margin(point, at)
        best.record(at, point, surface.cost(point, at), m)
        passes = torch.where(m >= 0, middle, passes)
        fails = torch.where(m >= 0, fails, middle)
