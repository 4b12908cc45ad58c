"""Cheaper flips by sequential linearisation in trust regions, for costs with kinks (absolute prices).

    d' = argmin cost(d')   s.t.  g . (d' - d) >= -m,   |d'_i - d_i| <= t unit_i,   low <= d' <= high

m, g: m(d) of `Surface` and its gradient. unit_i: how much of feature i alone the sample's whole worth buys. Near a kink
of the cost, the cheapest point of the tangent plane jumps from one feature to another; the trust region prevents that.
For each gradient, steps are computed for several t, and the one with the least merit is taken,

    merit(d) = cost(d) + weight max(0, -m(d))

t grows if the merit fell, else it shrinks. The cheapest change that passes is kept. A descent ends in the nearest local
minimum after a few gradients, so a search is many short descents from different starts. The best starts are flips of
similar samples, scaled to cost a little less than the sample's own; finding them needs no gradients.
"""

from __future__ import annotations

import torch

from maxflip.search.gradient import Best
from maxflip.search.rates import Rates
from maxflip.search.settings import TRUST
from maxflip.search.surface import Surface


def descend(
    surface: Surface,
    best: Best,
    at: torch.Tensor,
    start: torch.Tensor,
    worth: torch.Tensor,
    steps: int = TRUST.steps,
    first: float = TRUST.first_radius,
) -> None:
    """Cheaper flips of `at` from start (b, A).   worth (B,): cost of one unit of each feature, > 0   first: first t"""
    unit = _units(surface, at, worth[at])
    d = start.clone()
    t = torch.full_like(d[:, 0], first)
    weight = torch.zeros_like(t)
    for k in range(steps + 1):
        if not len(at):
            return
        if k == steps:
            best.record(at, d, surface.cost(d, at), surface.margin(d, at))
            return
        m, g = surface.margin_and_gradient(d, at)
        s, l = surface.rates.of(at).along(g)  # noqa: E741
        price = surface.cost(d, at)
        best.record(at, d, price, m)
        weight = torch.maximum(TRUST.weight_kept * weight, TRUST.weight * _least_price(surface, g, d, at))
        lacks = torch.where(torch.isfinite(m), (-m).clamp_min(0.0), 0.0)
        beyond = torch.maximum(TRUST.beyond * lacks, TRUST.inside * (g.abs() * unit).amax(dim=1))
        wanted = (g * d).sum(dim=1) - m + beyond
        merit, point, radius = torch.full_like(price, torch.inf), d, t
        for part in TRUST.radii:
            reach = (part * t)[:, None] * unit
            low, high = torch.maximum(surface.low[at], d - reach), torch.minimum(surface.high[at], d + reach)
            tried = _cheapest(g, wanted, torch.maximum(s, TRUST.curvature * l / unit), l, low, high)
            there, tried_price = surface.margin(tried, at), surface.cost(tried, at)
            best.record(at, tried, tried_price, there)
            tried_merit = tried_price + weight * (-there).clamp_min(0.0)
            is_less = tried_merit < merit
            merit = torch.where(is_less, tried_merit, merit)
            point = torch.where(is_less[:, None], tried, point)
            radius = torch.where(is_less, part * t, radius)
        fell = merit < price + weight * lacks
        d, t = point, torch.where(fell, TRUST.wider, TRUST.narrower) * radius
        on = torch.isfinite(m) & (t > TRUST.last_radius)
        at, d, t, weight, unit = at[on], d[on], t[on], weight[on], unit[on]


def begin(surface: Surface, best: Best, at: torch.Tensor, steps: int) -> None:
    """First flips of `at`, from no change. Samples whose tangent plane at the start promises no flip are skipped."""
    start = torch.zeros_like(surface.low[at])
    m, g = surface.margin_and_gradient(start, at)
    flat = surface.into_halfspace(g, (-m).clamp_min(0.0), at)
    promised = surface.cost(flat.change, at)
    likely = flat.reachable & torch.isfinite(m) & torch.isfinite(promised) & (promised > 0)
    worth = torch.ones_like(surface.low[:, 0])
    worth[at] = torch.where(likely, TRUST.first_unit * promised, 1.0)
    descend(surface, best, at[likely], start[likely], worth, steps)


def follow(
    surface: Surface, best: Best, at: torch.Tensor, among: torch.Tensor, worth: torch.Tensor, turn: int = 0
) -> None:
    """Descents of `at` from the most promising flip of other samples `among`.   turn: number of earlier calls; each
    call tries partly different samples"""
    if not len(at) or len(among) < 2:
        return
    start = _most_promising(surface, best, at, _leaders(surface, best, at, among, turn), worth)
    descend(surface, best, at, start, worth)


def _leaders(surface: Surface, best: Best, at: torch.Tensor, among: torch.Tensor, turn: int) -> torch.Tensor:
    """(b, L): the nearest neighbours of each of `at` in `among`, and some of `among` evenly spaced by cost"""
    values = surface.start
    scale = values.std(axis=0)
    near = torch.as_tensor(values / (scale + (scale == 0)), dtype=torch.float32, device=at.device).nan_to_num()
    by_cost = among[torch.argsort(best.cost[among], stable=True)]
    step = max(1, len(among) // TRUST.others)
    others = by_cost[turn % step :: step][: TRUST.others].expand(len(at), -1)
    nearest = torch.cdist(near[at], near[among]).topk(min(TRUST.neighbours + 1, len(among)), largest=False).indices
    return torch.cat([among[nearest], others], dim=1)


def _most_promising(
    surface: Surface, best: Best, at: torch.Tensor, leaders: torch.Tensor, worth: torch.Tensor
) -> torch.Tensor:
    """(b, A): of the leaders' flips, scaled to cost a little less than the sample's own, the one with the highest m"""
    rates = surface.rates.of(at)
    enough = TRUST.leader_cost * torch.minimum(best.cost, worth)[at]
    highest = torch.full_like(enough, -torch.inf)
    start = torch.zeros_like(best.change[at])
    for leader in leaders.T:
        change = best.change[leader]
        squared, absolute = _both_parts(rates, change)
        factor = 2 * enough / (absolute + (absolute**2 + 4 * squared * enough).sqrt()).clamp_min(1e-300)
        point = (factor[:, None] * change).clamp(surface.low[at], surface.high[at])
        m = surface.margin(point, at)
        best.record(at, point, rates.cost(point), m)
        is_higher = (m > highest) & (leader != at)
        highest = torch.where(is_higher, m, highest)
        start = torch.where(is_higher[:, None], point, start)
    return start


def _both_parts(rates: Rates, change: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(b,) each: the squared and the absolute part of what a change costs"""
    s, l = rates.along(change)  # noqa: E741
    if s.dim() == 1:
        return change**2 @ s, change.abs() @ l
    return (change**2 * s).sum(dim=1), (change.abs() * l).sum(dim=1)


def _units(surface: Surface, at: torch.Tensor, worth: torch.Tensor) -> torch.Tensor:
    """(b, A): how much of each feature alone costs v = worth (b,): the y with s y^2 + l y = v, of the cheaper way"""
    (s, l), v = surface.rates.of(at).least, worth[:, None]  # noqa: E741
    spread = torch.as_tensor(surface.problem.spread, device=v.device)
    return torch.minimum(2 * v / (l + (l**2 + 4 * s * v).sqrt()), TRUST.longest_unit * spread)


def _least_price(surface: Surface, g: torch.Tensor, d: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """(b,): least cost of raising m by one unit, min_i (l_i + 2 s_i |d_i|) / |g_i|; 0 if no feature raises it"""
    squared, absolute = surface.rates.of(at).along(g)
    each = (absolute + 2 * squared * d.abs()) / g.abs()
    least = torch.where((g == 0) | surface.pinned[at], torch.inf, each).min(dim=1).values
    return torch.where(torch.isfinite(least), least, 0.0)


def _cheapest(
    g: torch.Tensor,
    r: torch.Tensor,
    squared: torch.Tensor,
    absolute: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> torch.Tensor:
    """(B, A): argmin sum_i s_i d_i^2 + l_i |d_i|  s.t.  g . d >= r, low <= d <= high; the furthest corner if none is.

    The box is finite and need not contain 0. With y_i = sign(g_i) d_i, y(nu) = clip((nu |g| - l) / 2s) never falls with
    nu. Bisection of log nu brackets the solution; between the ends of the bracket, y is interpolated linearly.
    """
    size = g.abs()
    most = torch.where(g > 0, high, -low)
    least = torch.minimum(torch.where(g > 0, low, -high).clamp_min(0.0), most)
    slope, offset = size / (2 * squared), -absolute / (2 * squared)

    def at(nu: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(offset, nu[:, None], slope).clamp(least, most)

    def reached(y: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bi,bi->b", size, y)

    moves = (size > 0) & (most > least)
    begins = torch.where(moves, (absolute + 2 * squared * least.clamp_min(0.0)) / size, torch.inf).amin(dim=1)
    ends = torch.where(moves, (absolute + 2 * squared * most.clamp_min(0.0)) / size, 0.0).amax(dim=1)
    enough = (2 * ends).clamp_min(1e-300)
    short = torch.maximum(torch.minimum(begins, enough), 1e-20 * enough)
    for _ in range(TRUST.bisections):
        middle = (enough * short).sqrt()
        is_enough = reached(at(middle)) >= r
        enough, short = torch.where(is_enough, middle, enough), torch.where(is_enough, short, middle)
    before, after = at(short), at(enough)
    behind, ahead = reached(before), reached(after)
    part = torch.where(ahead > behind, (r - behind) / (ahead - behind), 1.0).clamp(0.0, 1.0)
    y = before + part[:, None] * (after - before)
    return torch.where(g == 0, torch.zeros_like(g).clamp(low, high), torch.sign(g) * y)
