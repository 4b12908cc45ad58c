"""Cheaper flips by sequential linearisation in a shrinking trust region, made for costs with kinks (absolute prices).

    d' = argmin cost(d')   s.t.  g . (d' - d) >= -m,   |d'_i - d_i| <= t_k unit_i,   low <= d' <= high

m, g: margin and its gradient at d. unit_i is how much of feature i alone the sample's whole worth buys. t_k falls
geometrically. Every step is taken; the cheapest change that passes is kept. At a kink of the cost a step along the
tangent plane alone would jump from one feature to another; the trust region lets it settle between them.
"""

from __future__ import annotations

import torch

from maxflip.flips.gradient import Best, most_promising
from maxflip.flips.halfspace import cheapest_into_halfspace, cost
from maxflip.flips.surface import Surface

FAR = 0.5  # t_k in the first step of a search that begins at others' flips
LAST = 1e-3  # t_k in the last step
AFRESH, AFRESH_LAST = 0.1, 3e-3  # t_k in the first and last step of a search that begins at no change ...
GENEROUS = 8.0  # ... and what its unit buys, in multiples of the flip that the tangent plane at the start promises
FLAT = 1e-6  # of an absolute price per unit: the curvature that makes the step unique
FURTHEST = 10.0  # spreads of a feature: no unit is longer
BISECTIONS = 45
LIFTED = 1.2  # of what a failed step lacked: every second step aims that much beyond the plane
FADING = 0.5  # of that extra is kept from step to step


def shrink(
    surface: Surface,
    best: Best,
    at: torch.Tensor,
    start: torch.Tensor,
    worth: torch.Tensor,
    steps: int,
    first: float,
    last: float = LAST,
) -> None:
    """Cheaper flips of `at` from start (b, A), with t_k from `first` down to `last`.   worth (B,): what the unit buys,
    > 0"""
    if not len(at):
        return
    s, l = surface.squared, surface.absolute  # noqa: E741
    v = worth[at, None]
    spread = torch.as_tensor(surface.problem.spread, device=v.device)
    unit = torch.minimum(2 * v / (l + (l**2 + 4 * s * v).sqrt()), FURTHEST * spread)
    bent = torch.where(s > FLAT * l / unit, s.expand_as(unit), FLAT * l / unit)
    low, high = surface.low[at], surface.high[at]
    d, lift = start.clone(), torch.zeros_like(worth[at])
    for k in range(steps):
        m, g = surface.margin_and_gradient(d, at)
        best.record(at, d, cost(d, s, l), m)
        missed = (m < 0) & torch.isfinite(m) & (k > 0)
        lift = torch.where(missed, torch.maximum(FADING * lift, -LIFTED * m), FADING * lift)
        reach = first * (last / first) ** (k / steps) * unit
        wanted = (g * d).sum(dim=1) - m + (lift if k % 2 else 0.0)
        d = _cheapest(g, wanted, bent, l, torch.maximum(low, d - reach), torch.minimum(high, d + reach))
    best.record(at, d, cost(d, s, l), surface.margin(d, at))


def begin(surface: Surface, best: Best, at: torch.Tensor, steps: int) -> None:
    """First flips of `at`, from no change. Where the tangent plane at the start promises no flip, none is searched."""
    start = torch.zeros_like(surface.low[at])
    m, g = surface.margin_and_gradient(start, at)
    low, high = surface.low[at], surface.high[at]
    flat = cheapest_into_halfspace(g, (-m).clamp_min(0.0), surface.squared, surface.absolute, low, high)
    promised = cost(flat.change, surface.squared, surface.absolute)
    likely = flat.reachable & torch.isfinite(m) & torch.isfinite(promised) & (promised > 0)
    worth = torch.ones_like(surface.low[:, 0])
    worth[at] = torch.where(likely, GENEROUS * promised, 1.0)
    shrink(surface, best, at[likely], start[likely], worth, steps, AFRESH, AFRESH_LAST)


def follow(
    surface: Surface, best: Best, at: torch.Tensor, among: torch.Tensor, worth: torch.Tensor, steps: int
) -> None:
    """Cheaper flips of `at` from where the most promising direction of others `among` the flipped leads."""
    if not len(at) or len(among) < 2:
        return
    typical = best.cost[among].median()[None]
    weight = surface.metric(torch.zeros_like(surface.low[:1]), typical_cost=typical)
    start = most_promising(surface, best, at, among, weight, torch.minimum(best.cost, worth))
    shrink(surface, best, at, start, worth, steps, FAR)


def _cheapest(
    g: torch.Tensor,
    r: torch.Tensor,
    squared: torch.Tensor,
    absolute: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> torch.Tensor:
    """(b, A): min sum_i s_i d_i^2 + l_i |d_i|  s.t.  g . d >= r, low <= d <= high; the furthest corner where none is.

    The box need not contain 0. With y_i = sign(g_i) d_i, y(nu) = clip((nu |g| - l) / 2s) grows with nu, which is found
    by bisection of its logarithm.
    """
    size = g.abs()
    least = torch.where(g > 0, low, -high).clamp_min(0.0)
    most = torch.where(g > 0, high, -low)

    def at(nu: torch.Tensor) -> torch.Tensor:
        return torch.minimum(torch.maximum((nu[:, None] * size - absolute) / (2 * squared), least), most)

    end = torch.where(size > 0, (absolute + 2 * squared * most.clamp_min(0.0)) / size, 0.0)
    enough = 2 * end.amax(dim=1).clamp_min(1e-300)
    short = 1e-20 * enough
    for _ in range(BISECTIONS):
        middle = (enough * short).sqrt()
        reached = (size * at(middle)).sum(dim=1) >= r
        enough, short = torch.where(reached, middle, enough), torch.where(reached, short, middle)
    return torch.where(g == 0, torch.zeros_like(g).clamp(low, high), torch.sign(g) * at(enough))
