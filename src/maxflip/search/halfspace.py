"""The cheapest change into a half-space, exactly: any mix of squared and absolute prices, inside a box.

    min  sum_i s_i d_i^2 + l_i |d_i|    s.t.  g . d >= r,   low <= d <= high          (low <= 0 <= high)

For a multiplier nu >= 0 the minimiser of the Lagrangian is d_i = sign(g_i) clip((nu |g_i| - l_i) / (2 s_i), 0, cap_i),
where cap_i is the limit of |d_i| in the direction of g_i. g . d(nu) is non-decreasing in nu and piecewise linear, with
jumps where s_i = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from maxflip.search.settings import LINEAR

EPS = torch.finfo(torch.float64).eps


@dataclass(frozen=True, eq=False)
class HalfspaceFlip:
    """change (B, F)   nu (B,): the multiplier   reachable (B,): False if the box does not meet the half-space

    If not reachable, `change` is the corner of the box that comes nearest to the half-space.
    """

    change: torch.Tensor
    nu: torch.Tensor
    reachable: torch.Tensor


def cost(change: torch.Tensor, squared: torch.Tensor, absolute: torch.Tensor) -> torch.Tensor:
    """(B, F) -> (B,): sum_i s_i d_i^2 + l_i |d_i|"""
    return (squared * change**2 + absolute * change.abs()).sum(dim=1)


def cheapest_into_halfspace(
    g: torch.Tensor,
    r: torch.Tensor,
    squared: torch.Tensor,
    absolute: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> HalfspaceFlip:
    """g, low, high (B, F)   r (B,)   squared, absolute: prices >= 0 of changes in the direction of g, (F,) or (B, F)"""
    if bool((absolute > 0).any()) or bool((squared == 0).any()):
        return _by_breakpoints(g, r, squared, absolute, low, high)
    plain = _without_limits(g, r, squared)
    limited = ~((plain.change >= low) & (plain.change <= high)).all(dim=1) | ~plain.reachable
    if bool(limited.any()):
        at = torch.nonzero(limited).flatten()
        s, l = (part if part.dim() == 1 else part[at] for part in (squared, absolute))  # noqa: E741
        rest = _by_breakpoints(g[at], r[at], s, l, low[at], high[at])
        plain.change[at], plain.nu[at], plain.reachable[at] = rest.change, rest.nu, rest.reachable
    return plain


def _without_limits(g: torch.Tensor, r: torch.Tensor, squared: torch.Tensor) -> HalfspaceFlip:
    """For squared prices alone, ignoring limits: d_i = nu g_i / (2 s_i), nu = 2 r / sum_i g_i^2 / s_i."""
    pull = g / squared
    room = (g * pull).sum(dim=1)
    half_nu = torch.where(r > 0, r / room, 0.0)
    reachable = torch.isfinite(half_nu)
    return HalfspaceFlip(torch.where(reachable[:, None], half_nu[:, None] * pull, 0.0), 2 * half_nu, reachable)


def _by_breakpoints(
    g: torch.Tensor,
    r: torch.Tensor,
    squared: torch.Tensor,
    absolute: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> HalfspaceFlip:
    """Finds the nu with g . d(nu) = r by sorting the at most 2F breakpoints of g . d(nu)."""
    size = g.abs()
    cap = torch.where(g > 0, high, -low)
    moves = (size > 0) & (cap > 0)
    cap = torch.where(moves, cap, 0.0)
    longest = torch.minimum(cap, r.clamp_min(0.0)[:, None] / size)  # all g_i d_i >= 0 and g . d = r
    is_smooth = (
        moves & (squared > 0) & ((absolute == 0) | (2 * squared * longest > LINEAR.negligible_square * absolute))
    )
    slope = torch.where(is_smooth, size**2 / (2 * squared), 0.0)
    start = torch.where(moves, absolute / size, torch.inf)
    end = torch.where(is_smooth, (absolute + 2 * squared * cap) / size, torch.inf)
    jump = torch.where(moves & ~is_smooth, size * cap, 0.0)

    event, order = torch.cat([start, end], dim=1).sort(dim=1, stable=True)
    change_of_slope = torch.cat([slope, -slope], dim=1).gather(1, order)
    free = torch.cat([is_smooth.long(), -is_smooth.long()], dim=1).gather(1, order).cumsum(dim=1)
    leap = torch.cat([jump, torch.zeros_like(jump)], dim=1).gather(1, order)
    # Slope after each event; exactly 0 if no coordinate is free: rounding errors times an infinite width are infinite.
    slope_after = torch.where(free > 0, change_of_slope.cumsum(dim=1), 0.0)
    width = event[:, 1:] - event[:, :-1]
    gain = torch.where((slope_after[:, :-1] > 0) & (width > 0), slope_after[:, :-1] * width, 0.0)
    gain = torch.cat([torch.zeros_like(gain[:, :1]), gain], dim=1).nan_to_num(posinf=torch.inf)
    after = (gain + leap).cumsum(dim=1)  # g . d just after each event

    reached = after >= r[:, None]
    reachable = reached.any(dim=1)
    at = torch.where(reachable, reached.long().argmax(dim=1), event.shape[1] - 1)[:, None]
    previous = (at - 1).clamp_min(0)
    before = torch.where(at > 0, after.gather(1, previous) + gain.gather(1, at), 0.0)[:, 0]
    in_jump = before < r
    nu_line = event.gather(1, previous) + (r[:, None] - after.gather(1, previous)) / slope_after.gather(1, previous)
    nu = torch.where(in_jump, event.gather(1, at)[:, 0], nu_line[:, 0])

    nothing = r <= 0
    nu = torch.where(nothing, 0.0, nu)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(order.shape[1], device=g.device).expand_as(order))
    own = rank[:, : g.shape[1]]  # place of the event at which each coordinate starts to move
    filled = torch.where(own < at, cap, 0.0)
    filled = torch.where((own == at) & in_jump[:, None], ((r - before)[:, None] / size).clamp(max=cap), filled)
    smooth = _smooth_part(nu, size, squared, absolute, cap)
    moved = torch.where(is_smooth, smooth, torch.where(moves, filled, 0.0))

    # One Newton correction on the free coordinates removes the rounding error of the sums.
    inside = is_smooth & (smooth > 0) & (smooth < cap)
    missing = r - (size * moved).sum(dim=1)
    room = torch.where(inside, slope, 0.0).sum(dim=1)
    nu = torch.where((room > 0) & ~nothing, nu + missing / room, nu)
    moved = torch.where(inside, _smooth_part(nu, size, squared, absolute, cap), moved)

    # An unlimited coordinate without a squared price needs nu <= l / |g|: a nu rounded above that proves nothing.
    unlimited = moves & ~is_smooth & torch.isinf(cap)
    ceiling = torch.where(unlimited, (absolute / size) * (1.0 - 1e-15), torch.inf).amin(dim=1)
    nu = torch.minimum(nu, ceiling)

    moved = torch.where(reachable[:, None], moved, cap)
    moved = torch.where(nothing[:, None], 0.0, moved)
    return HalfspaceFlip(torch.sign(g) * moved, nu, reachable | nothing)


def _smooth_part(
    nu: torch.Tensor, size: torch.Tensor, squared: torch.Tensor, absolute: torch.Tensor, cap: torch.Tensor
) -> torch.Tensor:
    pull = (nu[:, None] * size - absolute) / (2 * squared)
    return torch.minimum(pull.clamp_min(0.0), cap)


def dual_value(
    nu: torch.Tensor,
    g: torch.Tensor,
    r: torch.Tensor,
    squared: torch.Tensor,
    absolute: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> torch.Tensor:
    """(B,): by weak duality, a lower bound on the cheapest cost for ANY nu >= 0:

    min over the box of sum_i s_i d_i^2 + l_i |d_i| - nu (g . d - r), less a bound on its rounding error
    """
    size = g.abs()
    cap = torch.where(g > 0, high, -low)
    smooth = torch.where(squared > 0, _smooth_part(nu, size, squared, absolute, cap), 0.0)
    pays = nu[:, None] * size > absolute
    best = torch.where(squared > 0, smooth, torch.where(pays, cap, 0.0))
    pull = torch.where(best > 0, (absolute - nu[:, None] * size) * best, 0.0)
    squares = torch.where((best > 0) & (squared > 0), squared * best**2, 0.0)
    terms = torch.where(best > 0, (absolute + nu[:, None] * size) * best, 0.0) + squares
    rounding = rounding_of(terms.sum(dim=1) + (nu * r).abs(), g.shape[1])
    return (squares + pull).sum(dim=1) + nu * r - rounding


def out_of_reach(g: torch.Tensor, r: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """(B,): whether it is proved, rounding included, that the box does not meet the half-space."""
    cap = torch.where(g > 0, high, -low)
    furthest = torch.where((g != 0) & (cap > 0), g.abs() * cap, 0.0).sum(dim=1)
    return furthest < r - rounding_of(furthest + r.abs(), g.shape[1])


def rounding_of(size: torch.Tensor, terms: int) -> torch.Tensor:
    """Bound on the rounding error of a sum of `terms` terms, each of a few operations.   size: sum of their sizes"""
    return EPS * (terms + 8) * size
