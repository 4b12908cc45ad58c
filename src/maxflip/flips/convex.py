"""The cheapest change into a convex set: a batch of small programs, by an interior point method, each with a proof.

    min  sum_i s_i d_i^2 + l_i |d_i|    s.t.  h_u(z) >= 0,   z = start + W d,   low <= d <= high      (low <= 0 <= high)

where every h_u is concave in the few forms z: linear (a polyhedron), or bent as the margins of a softmax are. With
d = p - q, p and q >= 0, the cost is smooth and separable: s y^2 + l y over y = (p, q). Mehrotra's predictor-corrector
then needs one small system per sample and step, whatever the number of features and the mix of prices.

The proof is weak duality. h_u lies below its tangents, so at ANY point and for ANY multipliers nu >= 0

    min over the box of  cost(d) - sum_u nu_u tangent_u(d)

is a lower bound on the cheapest cost; and if sum_u nu_u tangent_u(d) < 0 in the whole box, there is no such change.
Every step of the iteration proves something; the best counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch

from maxflip.flips.halfspace import rounding_of

STEPS = 60
CLOSE = 3e-12  # relative gap between the cost and what is proved at which a sample is done
BACK_OFF = (0.995, 0.999)  # of the way to the boundary: far from the solution, and near it
CENTRAL = 0.1  # products slack * dual aim for at least this share of the largest |missing| * dual
LEAST_SHARE = 1e-3  # and none falls below this share of their mean
LEAST = 1e-200
PAUSE = 8  # steps after which samples that are done are left out
ROUNDING = 1e-15  # of h, relative to 1 + |z|: what is short by no more is inside
SURE = 1e-9  # relative room that a proof of unreachability leaves for rounding


@dataclass(frozen=True, eq=False)
class Bent:
    """Concave functions h_u at z.   h (B, C)   slope (B, C, k)   share, rest, mean (B, k)

    slope is dh_u / dz; -d^2 h_u / dz^2 = rest_u (diag(mean) - mean mean') + share_u rest_u (e_u - mean)(e_u - mean)'.
    That is for the first k rows; the others are linear. If all are, there are no share, rest and mean.
    A row that is no constraint has h = inf and slope 0.
    """

    h: torch.Tensor
    slope: torch.Tensor
    share: torch.Tensor | None = None
    rest: torch.Tensor | None = None
    mean: torch.Tensor | None = None

    def bend(self, nu: torch.Tensor) -> torch.Tensor:
        """(B, L, k) such that bend' bend = sum_u nu_u (-d^2 h_u / dz^2)."""
        if self.share is None or self.rest is None or self.mean is None:
            return self.slope[:, :0]
        root = self.mean.sqrt()
        unit = torch.eye(root.shape[1], dtype=root.dtype, device=root.device)
        nu = nu[:, : self.rest.shape[1]]
        together = (nu * self.rest).sum(dim=1).sqrt()[:, None, None]
        within = together * (unit - root[:, :, None] * root[:, None, :]) * root[:, None, :]
        between = (nu * self.rest * self.share).sqrt()[:, :, None] * (unit - self.mean[:, None, :])
        return torch.cat([within, between], dim=1)


# From z (b, k) and the samples it belongs to, (b,), to the constraints there.
Constraints = Callable[[torch.Tensor, torch.Tensor], Bent]


@dataclass(frozen=True, eq=False)
class ConvexFlip:
    """change (B, A)   lower (B,): no cheaper change exists, proved; inf where there is none at all, proved too

    inside (B,): whether h >= 0 at the change. Where no such point was found the change is the last one tried.
    pull (B, A), offset (B,): the half-space pull . d >= offset that all of the set lies in and `lower` is proved by
    """

    change: torch.Tensor
    lower: torch.Tensor
    inside: torch.Tensor
    pull: torch.Tensor
    offset: torch.Tensor


def cheapest_into_convex(
    constraints: Constraints,
    start: torch.Tensor,
    w: torch.Tensor,
    squared: torch.Tensor,
    absolute: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
    payable: torch.Tensor | None = None,
) -> ConvexFlip:
    """start (B, k)   w (k, A) or (B, k, A)   squared, absolute (A,)   low, high (B, A)

    payable (B, A): larger changes are none of our business; proofs of unreachability may leave them out of account
    """
    payable = torch.full_like(high, torch.inf) if payable is None else payable
    here = constraints(start, torch.arange(len(start), device=start.device))
    done = (here.h >= 0).all(dim=1)
    none = torch.zeros_like(low[:, 0])
    best = ConvexFlip(torch.zeros_like(low), none, done.clone(), torch.zeros_like(low), none.clone())
    at = torch.nonzero(~done).flatten()
    if len(at):
        slopes = here.slope[at] @ (w if w.dim() == 2 else w[at])
        program = _Program.of(at, here.h[at], slopes, start[at], w, squared, absolute, low[at], high[at], payable[at])
        _interior_point(program, constraints, best)
    return best


def dual_bound(
    pull: torch.Tensor,
    offset: torch.Tensor,
    squared: torch.Tensor,
    absolute: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> torch.Tensor:
    """(B,): at least 0 and at most the cost of any d in the box with pull . d >= offset; inf if there is none.

    pull (B, A), offset (B,): a sum of half-spaces with weights >= 0. The bound is the minimum over the box of
    cost(d) - pull . d + offset: coordinate by coordinate, at sign(pull) max(0, |pull| - l) / (2 s), clipped.
    """
    cap = torch.where(pull > 0, high, -low)
    furthest = torch.where(pull != 0, pull.abs() * cap, 0.0).sum(dim=1)
    impossible = furthest < offset - SURE * (offset.abs() + furthest)
    # Where an unlimited coordinate pays without end the bound would be minus infinity: weigh all half-spaces less.
    endless = torch.isinf(cap) & (squared == 0)
    fits = torch.where(endless & (pull.abs() > absolute), absolute / pull.abs(), 1.0).amin(dim=1)
    excess = torch.where(endless, 0.0, (pull.abs() * fits[:, None] - absolute).clamp_min(0.0))
    most = torch.where(squared > 0, torch.minimum(excess / (2 * squared), cap), cap)
    gain = torch.where((excess > 0) & (most > 0), excess * most - squared * most**2, 0.0)
    terms = torch.where((excess > 0) & (most > 0), (pull.abs() + absolute) * most + squared * most**2, 0.0)
    rounding = rounding_of(offset.abs() * fits + terms.sum(dim=1), pull.shape[1])
    bound = (offset * fits - gain.sum(dim=1) - rounding).nan_to_num(nan=0.0, neginf=0.0).clamp_min(0.0)
    return torch.where(impossible, torch.inf, bound)


T = TypeVar("T", bound="_Program | _Point")


def _take(of: T, keep: torch.Tensor) -> T:
    """The samples `keep` (b,) of everything that has one row per sample."""
    return replace(of, **{f.name: getattr(of, f.name)[keep] for f in fields(of) if f.name not in SHARED})


SHARED = ("price_squared", "price_absolute")


@dataclass(frozen=True, eq=False)
class _Program:
    """min squared . y^2 + linear . y   s.t.  h(start + w (y_1 - y_2)) / size >= 0,   0 <= y <= cap.     y (B, 2A)

    In units, `unit` (B, A) and `typical` (B,), in which all sizes are near 1. at (B,): which samples these are.
    What is stacked belongs to the rows h, to y >= 0 and to y <= cap, in that order.
    """

    at: torch.Tensor
    start: torch.Tensor
    noise: torch.Tensor
    w: torch.Tensor
    unit: torch.Tensor
    typical: torch.Tensor
    size: torch.Tensor
    squared: torch.Tensor
    linear: torch.Tensor
    cap: torch.Tensor
    live: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    payable: torch.Tensor
    price_squared: torch.Tensor
    price_absolute: torch.Tensor

    @classmethod
    def of(
        cls,
        at: torch.Tensor,
        h: torch.Tensor,
        slopes: torch.Tensor,
        start: torch.Tensor,
        w: torch.Tensor,
        squared: torch.Tensor,
        absolute: torch.Tensor,
        low: torch.Tensor,
        high: torch.Tensor,
        payable: torch.Tensor,
    ) -> _Program:
        unit, typical = _units(slopes, -h, squared, absolute, low, high)
        cap = torch.cat([high, -low], dim=1) / torch.cat([unit, unit], dim=1)
        fixed = cap <= 0
        two_unit = torch.cat([unit, unit], dim=1)
        steep = (slopes.abs() * unit[:, None, :]).amax(dim=2)
        row = torch.isfinite(h)
        return cls(
            at=at,
            start=start,
            noise=ROUNDING * (1.0 + start.abs().amax(dim=1)),
            w=(w if w.dim() == 2 else w[at]) * unit[:, None, :],
            unit=unit,
            typical=typical,
            size=torch.where(row & (steep > 0), steep, 1.0),
            squared=torch.where(fixed, 0.0, torch.cat([squared, squared]) * two_unit**2 / typical[:, None]),
            linear=torch.where(fixed, 1.0, torch.cat([absolute, absolute]) * two_unit / typical[:, None]),
            cap=torch.where(fixed, 0.0, cap),
            live=torch.cat([row, ~fixed, ~fixed & torch.isfinite(cap)], dim=1),
            low=low,
            high=high,
            payable=payable,
            price_squared=squared,
            price_absolute=absolute,
        )

    def parts(self, stacked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        count, width = self.size.shape[1], self.cap.shape[1]
        return stacked[:, :count], stacked[:, count : count + width], stacked[:, count + width :]

    def change(self, y: torch.Tensor) -> torch.Tensor:
        up, down = y.chunk(2, dim=1)
        return ((up - down) * self.unit).clamp(self.low, self.high)

    def forms(self, y: torch.Tensor) -> torch.Tensor:
        """w y, (B, k)"""
        up, down = y.chunk(2, dim=1)
        return torch.einsum("bka,ba->bk", self.w, up - down)

    def back(self, of_forms: torch.Tensor) -> torch.Tensor:
        """w' of_forms, (B, 2A)"""
        pull = torch.einsum("bka,bk->ba", self.w, of_forms)
        return torch.where(self.movable, torch.cat([pull, -pull], dim=1), 0.0)

    def rows(self, bent: Bent, point: _Point) -> tuple[torch.Tensor, torch.Tensor]:
        """h and its multipliers, (B, C) each, 0 in rows that are no constraint; in the problem's own units"""
        row, _, _ = self.parts(self.live)
        nu = self.parts(point.duals)[0] * self.typical[:, None] / self.size
        return torch.where(row, bent.h, 0.0), torch.where(row, nu, 0.0)

    def rounding(self, bent: Bent, point: _Point, nu: torch.Tensor) -> torch.Tensor:
        """(B,): by how much sum_u nu_u tangent_u(0) may be off, where the tangents touch far from 0"""
        up, down = point.y.chunk(2, dim=1)
        z = 1.0 + self.start.abs() + torch.einsum("bka,ba->bk", self.w.abs(), (up - down).abs())
        size = torch.einsum("bck,bk->bc", bent.slope.abs(), z) + torch.where(torch.isfinite(bent.h), bent.h, 0.0).abs()
        return rounding_of((nu * size).sum(dim=1), sum(self.w.shape[1:]))

    @property
    def movable(self) -> torch.Tensor:
        return self.cap > 0


@dataclass(frozen=True, eq=False)
class _Point:
    """y (B, 2A), slack and duals stacked"""

    y: torch.Tensor
    slack: torch.Tensor
    duals: torch.Tensor


def _units(
    g: torch.Tensor,
    r: torch.Tensor,
    squared: torch.Tensor,
    absolute: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """How much of each coordinate a typical cost buys, (B, A), and that cost, (B,).

    It is that of the dearest half-space g . d >= r alone, without limits: r^2 / sum g^2/s, or r / max |g|/l.
    """
    need = torch.where(torch.isfinite(r), r, 0.0).clamp_min(0.0)
    able = ((low < 0) | (high > 0))[:, None, :] & (g != 0)
    by_square = need**2 / torch.where(able, g**2 / squared, 0.0).nan_to_num(posinf=0.0).sum(dim=2).clamp_min(LEAST)
    by_size = need / torch.where(able, g.abs() / absolute, 0.0).nan_to_num(posinf=0.0).amax(dim=2).clamp_min(LEAST)
    alone = by_square if not bool((absolute > 0).any()) else by_size
    if bool((squared > 0).any()) and bool((absolute > 0).any()):
        alone = torch.minimum(by_square, by_size)
    typical = alone.amax(dim=1).clamp(1e-150, 1e150)
    unit = torch.minimum((typical[:, None] / squared).sqrt(), typical[:, None] / absolute)
    return unit, typical


def _interior_point(program: _Program, constraints: Constraints, best: ConvexFlip) -> None:
    """Improves `best` in place."""
    y = torch.where(program.movable, torch.minimum(torch.ones_like(program.cap), program.cap / 2), 0.0)
    bent = constraints(program.start + program.forms(y), program.at)
    row = torch.where(bent.h > 0, bent.h / program.size, 1.0).clamp_min(1e-3)
    slack = torch.where(program.live, torch.cat([row, y, program.cap - y], dim=1), 1.0)
    point = _Point(y, slack, program.live.double())
    upper = torch.full_like(best.lower, torch.inf)
    for step in range(1, STEPS + 1):
        bent = constraints(program.start + program.forms(point.y), program.at)
        open_ = ~_record(program, bent, point, best, upper)
        if step >= PAUSE and not bool(best.inside[program.at].all()):
            out = open_ & ~best.inside[program.at] & _out_of_reach(program, bent, point)
            best.lower[program.at[out]] = torch.inf
            open_ &= ~out
        if not bool(open_.any()):
            break
        if step % PAUSE == 0 or 2 * int(open_.sum()) <= len(open_):
            keep = torch.nonzero(open_).flatten()
            program, point = _take(program, keep), _take(point, keep)
            bent = constraints(program.start + program.forms(point.y), program.at)
        point = _step(program, bent, point)


def _record(program: _Program, bent: Bent, point: _Point, best: ConvexFlip, upper: torch.Tensor) -> torch.Tensor:
    """Notes what this point achieves and proves; returns (b,): the samples that are done."""
    at, change = program.at, program.change(point.y)
    price = (program.price_squared * change**2 + program.price_absolute * change.abs()).sum(dim=1)
    h, nu = program.rows(bent, point)
    inside = h.amin(dim=1) >= -program.noise
    better = torch.where(best.inside[at], inside & (price < upper[at]), torch.isfinite(price))
    best.change[at[better]] = change[better]
    best.inside[at] |= inside
    upper[at] = torch.where(inside, torch.minimum(upper[at], price), upper[at])
    pull = torch.einsum("bka,bk->ba", program.w, torch.einsum("bck,bc->bk", bent.slope, nu)) / program.unit
    offset = (pull * change).sum(dim=1) - (nu * h).sum(dim=1) - program.rounding(bent, point, nu)
    bound = dual_bound(pull, offset, program.price_squared, program.price_absolute, program.low, program.high)
    higher = bound > best.lower[at]
    best.lower[at[higher]], best.pull[at[higher]], best.offset[at[higher]] = bound[higher], pull[higher], offset[higher]
    is_close = upper[at] - best.lower[at] <= CLOSE * upper[at]
    return torch.isinf(best.lower[at]) | (best.inside[at] & is_close)


def _out_of_reach(program: _Program, bent: Bent, point: _Point) -> torch.Tensor:
    """(b,): whether the multipliers, turned a little so that they pull at no unlimited coordinate, prove it."""
    h, nu = program.rows(bent, point)
    size = nu.amax(dim=1, keepdim=True)
    nu = torch.where(torch.isfinite(size) & (size > 0), nu / size, 0.0)
    slopes = bent.slope @ program.w
    pull = torch.einsum("bca,bc->ba", slopes, nu)
    endless = torch.isinf(torch.where(pull > 0, program.high, -program.low))
    held = nu[:, :, None] * torch.where(endless[:, None, :], slopes, 0.0)
    usable = torch.isfinite(held).all(dim=2).all(dim=1)
    u, size, _ = torch.linalg.svd(torch.where(usable[:, None, None], held, 0.0), full_matrices=False)
    u = torch.where((size > 1e-9 * size[:, :1])[:, None, :], u, 0.0)
    nu = nu * (1.0 - torch.einsum("bcr,br->bc", u, u.sum(dim=1)))
    pull = torch.einsum("bca,bc->ba", slopes, nu)
    rounding = torch.einsum("bca,bc->ba", slopes.abs(), nu.abs()) * 1e-13
    y = (program.change(point.y) / program.unit).nan_to_num()
    offset = (pull * y).sum(dim=1) - (nu * h).sum(dim=1) - program.rounding(bent, point, nu)
    cap = torch.where(pull > 0, program.high, -program.low) / program.unit
    free = torch.isinf(cap) & (pull.abs() <= rounding)
    # What is left of a pull that should be 0 still moves, as far as anyone can pay.
    left = torch.where(free & (rounding > 0), 2 * rounding * program.payable / program.unit, 0.0)
    furthest = torch.where((pull != 0) & ~free, pull.abs() * cap, left).sum(dim=1)
    noise = (rounding * y.abs()).sum(dim=1) + SURE * (offset.abs() + furthest)
    return usable & (nu >= 0).all(dim=1) & (furthest < offset - noise)


def _step(program: _Program, bent: Bent, point: _Point) -> _Point:
    live = program.live
    y, slack, duals = point.y, point.slack, point.duals
    number = live.sum(dim=1)
    row_duals, zero_duals, cap_duals = program.parts(duals)
    slope_rows = bent.slope / program.size[:, :, None]
    values = torch.cat([torch.where(torch.isfinite(bent.h), bent.h, 0.0) / program.size, y, program.cap - y], dim=1)
    missing = torch.where(live, values - slack, 0.0)
    gap = (slack * duals).sum(dim=1) / number
    tilt = torch.where(
        program.movable,
        2 * program.squared * y
        + program.linear
        - program.back(torch.einsum("bck,bc->bk", slope_rows, row_duals))
        - zero_duals
        + cap_duals,
        0.0,
    )
    weights = torch.where(live, duals / slack, 0.0).clamp_min(LEAST)
    row_weight, zero_weight, cap_weight = program.parts(weights)
    inverse = torch.where(program.movable, 1.0 / (2 * program.squared + zero_weight + cap_weight), 0.0)
    # The curvature enters as rows of their own: all is one positive definite system, accurate for enormous weights.
    bend = bent.bend(row_duals / program.size)
    rows = torch.cat([slope_rows, bend], dim=1)
    up, down = inverse.chunk(2, dim=1)
    inner = (program.w * (up + down)[:, None, :]) @ program.w.transpose(1, 2)
    matrix = rows @ inner @ rows.transpose(1, 2)
    ease = torch.cat([1.0 / row_weight, torch.ones_like(bend[:, :, 0])], dim=1)
    matrix = matrix + torch.diag_embed(ease)
    scale = matrix.diagonal(dim1=1, dim2=2).rsqrt()
    factor, _ = torch.linalg.cholesky_ex(matrix * scale[:, :, None] * scale[:, None, :])

    def newton(aim: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The step to slack * duals = aim with both feasibilities."""
        push = torch.where(live, aim / slack - duals - weights * missing, 0.0)
        row_push, zero_push, cap_push = program.parts(push)
        rest = -tilt + zero_push - cap_push
        need = -torch.einsum("bck,bk->bc", rows, program.forms(inverse * rest))
        need[:, : row_push.shape[1]] += row_push / row_weight
        x = scale * torch.cholesky_solve((scale * need)[:, :, None], factor)[:, :, 0]
        d_y = inverse * (rest + program.back(torch.einsum("bck,bc->bk", rows, x)))
        d_rows = torch.einsum("bck,bk->bc", slope_rows, program.forms(d_y))
        d_values = torch.cat([d_rows, d_y, -d_y], dim=1)
        d_duals = push - weights * d_values
        d_duals = torch.cat([x[:, : d_rows.shape[1]], d_duals[:, d_rows.shape[1] :]], dim=1)
        return d_y, torch.where(live, d_values + missing, 0.0), torch.where(live, d_duals, 0.0)

    _, d_slack, d_duals = newton(torch.zeros_like(slack))
    length = _length(slack, d_slack, duals, d_duals)
    ahead = ((slack + length * d_slack) * (duals + length * d_duals)).sum(dim=1) / number
    centre = (gap * (ahead / gap.clamp_min(LEAST)).clamp(0.0, 1.0) ** 3)[:, None]
    centre = torch.maximum(centre, CENTRAL * (missing * duals).abs().amax(dim=1, keepdim=True))
    d_y, d_slack, d_duals = newton(centre - d_slack * d_duals)
    back_off = 1.0 - gap.clamp(1.0 - BACK_OFF[1], 1.0 - BACK_OFF[0])[:, None]
    length = back_off * _length(slack, d_slack, duals, d_duals)
    slack = torch.where(live, (slack + length * d_slack).clamp_min(LEAST), slack)
    duals = torch.where(live, (duals + length * d_duals).clamp_min(LEAST), duals)
    mean = torch.where(live, slack * duals, 0.0).sum(dim=1, keepdim=True) / number[:, None]
    is_row = torch.arange(slack.shape[1], device=slack.device) < row_duals.shape[1]
    slack = torch.where(live & is_row, torch.maximum(slack, LEAST_SHARE * mean / duals), slack)
    return _Point(y + length * d_y, slack, duals)


def _length(slack: torch.Tensor, d_slack: torch.Tensor, duals: torch.Tensor, d_duals: torch.Tensor) -> torch.Tensor:
    """(B, 1): how much of the step keeps both >= 0, at most all of it. One length for both: the cost is quadratic."""
    value, move = torch.cat([slack, duals], dim=1), torch.cat([d_slack, d_duals], dim=1)
    ratio = torch.where(move < 0, -value / move, torch.inf)
    return ratio.amin(dim=1, keepdim=True).clamp_max(1.0)
