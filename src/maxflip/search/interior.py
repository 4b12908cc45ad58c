"""An interior point method for a batch of small convex programs, with a proved lower bound for each.

    min  sum_i s_i d_i^2 + l_i |d_i|    s.t.  h_u(z) >= 0,   z = start + W d,   low <= d <= high      (low <= 0 <= high)

Every h_u is concave in the k linear forms z: linear too (a polyhedron), or curved (from a softmax). With d = p - q,
p and q >= 0, the cost is smooth and separable: s y^2 + l y over y = (p, q). An iteration of Mehrotra's
predictor-corrector solves one small linear system per sample (`_solver`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch

from maxflip.search.halfspace import rounding_of
from maxflip.search.settings import INTERIOR
from maxflip.search.terms import Terms, dual_bound


@dataclass(frozen=True, eq=False)
class Concave:
    """Concave functions h_u at z.   h (B, C)   slope (B, C, k): dh_u / dz   share, rest, mean (B, k)

    -d^2 h_u / dz^2 = rest_u (diag(mean) - mean mean') + share_u rest_u (e_u - mean)(e_u - mean)' in the first k rows; 0
    in the others. mean is a softmax over z. In the curved rows -dh_u / dz = share_u e_u + rest_u mean.
    If all rows are linear, share, rest and mean are None. Unused rows have h = inf and slope 0.
    """

    h: torch.Tensor
    slope: torch.Tensor
    share: torch.Tensor | None = None
    rest: torch.Tensor | None = None
    mean: torch.Tensor | None = None

    def curvature_root(self, nu: torch.Tensor) -> torch.Tensor:
        """R (B, L, k) with R' R = sum_u nu_u (-d^2 h_u / dz^2)."""
        if self.share is None or self.rest is None or self.mean is None:
            return self.slope[:, :0]
        root = self.mean.sqrt()
        unit = torch.eye(root.shape[1], dtype=root.dtype, device=root.device)
        nu = nu[:, : self.rest.shape[1]]
        together = (nu * self.rest).sum(dim=1).sqrt()[:, None, None]
        within = together * (unit - root[:, :, None] * root[:, None, :]) * root[:, None, :]
        between = (nu * self.rest * self.share).sqrt()[:, :, None] * (unit - self.mean[:, None, :])
        return torch.cat([within, between], dim=1)


# (z (b, k), samples (b,) of its rows) -> the constraints at z
Constraints = Callable[[torch.Tensor, torch.Tensor], Concave]


@dataclass(frozen=True, eq=False)
class ConvexFlip:
    """change (B, A)   lower (B,): proved lower bound of the cost; inf if it is proved that no feasible change exists

    inside (B,): whether the change is feasible (h >= 0); if not, it is the last point tried
    pull (B, A), offset (B,): the half-space pull . d >= offset that contains the feasible set and proves `lower`
    """

    change: torch.Tensor
    lower: torch.Tensor
    inside: torch.Tensor
    pull: torch.Tensor
    offset: torch.Tensor

    @classmethod
    def none(cls, like: torch.Tensor, inside: torch.Tensor) -> ConvexFlip:
        """The change 0 for every sample, with the lower bound 0.   like (B, A): sets shape and device"""
        nothing = torch.zeros_like(like)
        return cls(nothing, nothing[:, 0].clone(), inside, nothing.clone(), nothing[:, 0].clone())


T = TypeVar("T", "ConvexProgram", "Point")


def _take(batch: T, keep: torch.Tensor) -> T:
    """The batch of the samples `keep` (b,) alone."""
    parts = {f.name: getattr(batch, f.name) for f in fields(batch)}
    kept: Any = {name: v.of(keep) if isinstance(v, Terms) else v[keep] for name, v in parts.items()}
    return replace(batch, **kept)


@dataclass(frozen=True, eq=False)
class ConvexProgram:
    """min squared . y^2 + linear . y   s.t.  h(start + w (y_1 - y_2)) / size >= 0,   0 <= y <= cap.     y (B, 2A)

    Changes are in units of `unit` (B, A) and costs in units of `typical` (B,), so that all numbers are near 1.
    Stacked tensors have one entry per constraint: first the rows h, then y >= 0, then y <= cap.
    at (B,): row numbers of the samples   live: which stacked constraints exist
    terms: prices and limits as given   claim: the prices and limits for which `lower` is proved
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
    terms: Terms
    claim: Terms

    @classmethod
    def of(
        cls,
        at: torch.Tensor,
        here: Concave,
        start: torch.Tensor,
        w: torch.Tensor,
        units: tuple[torch.Tensor, torch.Tensor],
        terms: Terms,
        claim: Terms,
    ) -> ConvexProgram:
        """here: the constraints at d = 0   start (B, k)   w (B, k, A)   units: (`unit`, `typical`)"""
        unit, typical = units
        two_unit = torch.cat([unit, unit], dim=1)
        cap = torch.cat([terms.high, -terms.low], dim=1) / two_unit
        fixed = cap <= 0
        w = w * unit[:, None, :]
        steep = (here.slope @ w).abs().amax(dim=2)
        row = torch.isfinite(here.h)
        ways = (terms.rates.up, terms.rates.down)
        squared = torch.cat([way.squared for way in ways], dim=-1) * two_unit**2
        linear = torch.cat([way.absolute for way in ways], dim=-1) * two_unit
        return cls(
            at=at,
            start=start,
            noise=INTERIOR.rounding * (1.0 + start.abs().amax(dim=1)),
            w=w,
            unit=unit,
            typical=typical,
            size=torch.where(row & (steep > 0), steep, 1.0),
            squared=torch.where(fixed, 0.0, squared / typical[:, None]),
            linear=torch.where(fixed, 1.0, linear / typical[:, None]),
            cap=torch.where(fixed, 0.0, cap),
            live=torch.cat([row, ~fixed, ~fixed & torch.isfinite(cap)], dim=1),
            terms=terms,
            claim=claim,
        )

    def parts(self, stacked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        count, width = self.size.shape[1], self.cap.shape[1]
        return stacked[:, :count], stacked[:, count : count + width], stacked[:, count + width :]

    def change(self, y: torch.Tensor) -> torch.Tensor:
        up, down = y.chunk(2, dim=1)
        return ((up - down) * self.unit).clamp(self.terms.low, self.terms.high)

    def forms(self, y: torch.Tensor) -> torch.Tensor:
        """W (y_1 - y_2), (B, k)"""
        up, down = y.chunk(2, dim=1)
        return torch.einsum("bka,ba->bk", self.w, up - down)

    def transposed(self, v: torch.Tensor) -> torch.Tensor:
        """(W' v, -W' v) (B, 2A) of v (B, k); 0 where y is fixed"""
        pull = torch.einsum("bka,bk->ba", self.w, v)
        return torch.where(self.movable, torch.cat([pull, -pull], dim=1), 0.0)

    def rows(self, here: Concave, point: Point) -> tuple[torch.Tensor, torch.Tensor]:
        """h and its multipliers, (B, C) each, unscaled; 0 in unused rows"""
        row, _, _ = self.parts(self.live)
        nu = self.parts(point.duals)[0] * self.typical[:, None] / self.size
        return torch.where(row, here.h, 0.0), torch.where(row, nu, 0.0)

    def rounding(self, here: Concave, point: Point, nu: torch.Tensor) -> torch.Tensor:
        """(B,): bound on the rounding error of sum_u nu_u tangent_u(0), large if the tangents are taken far from 0"""
        up, down = point.y.chunk(2, dim=1)
        z = 1.0 + self.start.abs() + torch.einsum("bka,ba->bk", self.w.abs(), (up - down).abs())
        size = torch.einsum("bck,bk->bc", here.slope.abs(), z) + torch.where(torch.isfinite(here.h), here.h, 0.0).abs()
        return rounding_of((nu * size).sum(dim=1), sum(self.w.shape[1:]))

    @property
    def movable(self) -> torch.Tensor:
        return self.cap > 0


@dataclass(frozen=True, eq=False)
class Point:
    """y (B, 2A), slack and duals stacked"""

    y: torch.Tensor
    slack: torch.Tensor
    duals: torch.Tensor


def natural_units(here: Concave, w: torch.Tensor, terms: Terms) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, A): how much of each coordinate alone a typical cost buys; (B,): that cost.

    It is the cost of the most expensive constraint alone, linearised at d = 0 and without limits: h^2 / sum slope^2 / s
    for squared prices, h / max |slope| / l for absolute ones, the smaller of the two if there are both.
    here: the constraints at d = 0   w (B, k, A)
    """
    h, slopes = here.h, here.slope @ w
    squared, absolute = terms.rates.least
    each_squared, each_absolute = (part if part.dim() == 1 else part[:, None] for part in (squared, absolute))
    need = torch.where(torch.isfinite(h), -h, 0.0).clamp_min(0.0)
    able = ((terms.low < 0) | (terms.high > 0))[:, None, :] & (slopes != 0)
    by_square = torch.where(able, slopes**2 / each_squared, 0.0).nan_to_num(posinf=0.0).sum(dim=2)
    by_size = torch.where(able, slopes.abs() / each_absolute, 0.0).nan_to_num(posinf=0.0).amax(dim=2)
    by_square, by_size = need**2 / by_square.clamp_min(INTERIOR.least), need / by_size.clamp_min(INTERIOR.least)
    alone = by_square if not terms.rates.has_absolute else by_size
    if terms.rates.has_squared and terms.rates.has_absolute:
        alone = torch.minimum(by_square, by_size)
    typical = alone.amax(dim=1).clamp(1e-150, 1e150)
    unit = torch.minimum((typical[:, None] / squared).sqrt(), typical[:, None] / absolute)
    return unit, typical


def improve(
    best: ConvexFlip,
    program: ConvexProgram,
    constraints: Constraints,
    out_of_reach: Callable[[torch.Tensor], torch.Tensor] | None = None,
    patience: int = INTERIOR.hasty,
) -> None:
    """Iterate; record the best changes and the proved bounds in `best`.

    out_of_reach: called once, after `INTERIOR.doubt` iterations, with the samples (b,) without a feasible point;
    returns which of them provably have none, (b,). These are dropped.
    patience: iterations after which a sample without a feasible point is dropped
    """
    y = torch.where(program.movable, torch.minimum(torch.ones_like(program.cap), program.cap / 2), 0.0)
    here = constraints(program.start + program.forms(y), program.at)
    row = torch.where(here.h > 0, here.h / program.size, 1.0).clamp_min(1e-3)
    slack = torch.where(program.live, torch.cat([row, y, program.cap - y], dim=1), 1.0)
    point = Point(y, slack, program.live.double())
    upper = torch.full_like(best.lower, torch.inf)
    for iteration in range(1, patience + INTERIOR.onward + 1):
        here = constraints(program.start + program.forms(point.y), program.at)
        open_ = ~_record(program, here, point, best, upper)
        doubted = program.at[open_ & ~best.inside[program.at]]
        if iteration == INTERIOR.doubt and len(doubted) and out_of_reach is not None:
            best.lower[doubted[out_of_reach(doubted)]] = torch.inf
            open_ &= torch.isfinite(best.lower[program.at])
        if iteration >= patience:
            open_ &= best.inside[program.at]
        if not bool(open_.any()):
            break
        if iteration % INTERIOR.pause == 0 or 2 * int(open_.sum()) <= len(open_):
            keep = torch.nonzero(open_).flatten()
            program, point = _take(program, keep), _take(point, keep)
            here = constraints(program.start + program.forms(point.y), program.at)
        point = _iterate(program, here, point)


def _record(program: ConvexProgram, here: Concave, point: Point, best: ConvexFlip, upper: torch.Tensor) -> torch.Tensor:
    """Update the best changes and bounds by this point. Returns (b,): which samples are done."""
    at, change = program.at, program.change(point.y)
    price = program.terms.cost(change)
    h, nu = program.rows(here, point)
    inside = h.amin(dim=1) >= -program.noise
    better = torch.where(best.inside[at], inside & (price < upper[at]), torch.isfinite(price))
    best.change[at[better]] = change[better]
    best.inside[at] |= inside
    upper[at] = torch.where(inside, torch.minimum(upper[at], price), upper[at])
    pull = torch.einsum("bka,bk->ba", program.w, torch.einsum("bck,bc->bk", here.slope, nu)) / program.unit
    offset = (pull * change).sum(dim=1) - (nu * h).sum(dim=1) - program.rounding(here, point, nu)
    bound = dual_bound(pull, offset, program.claim)
    higher = bound > best.lower[at]
    best.lower[at[higher]], best.pull[at[higher]], best.offset[at[higher]] = bound[higher], pull[higher], offset[higher]
    is_close = upper[at] - best.lower[at] <= INTERIOR.closed_gap * upper[at]
    return torch.isinf(best.lower[at]) | (best.inside[at] & is_close)


# right sides (B, n, m) -> solutions (B, n, m)
LinearSolve = Callable[[torch.Tensor], torch.Tensor]


def _factored(matrix: torch.Tensor) -> LinearSolve:
    """Solves matrix x = need for positive definite, possibly badly scaled matrices (B, n, n)."""
    scale = matrix.diagonal(dim1=1, dim2=2).rsqrt()[:, :, None]
    even = matrix * scale * scale.transpose(1, 2)
    factor, failed = torch.linalg.cholesky_ex(even)
    if bool((failed > 0).any()):  # numerically singular, e.g. if more rows bind than there are features
        nudge = INTERIOR.jitter * torch.eye(even.shape[1], dtype=even.dtype, device=even.device)
        again = torch.nonzero(failed > 0).flatten()
        factor[again] = torch.linalg.cholesky_ex(even[again] + nudge).L
    return lambda need: scale * torch.cholesky_solve(scale * need, factor)


def _solver(rows: torch.Tensor, ease: torch.Tensor, w: torch.Tensor, inverse: torch.Tensor) -> LinearSolve:
    """Solves (R E R' + diag(ease)) x = need, R = rows w, E = diag(inverse).

    rows (B, N, k)   ease (B, N)   w (B, k, A)   inverse (B, A)

    The smaller the ease of a row, the more it binds. Solving the full system is accurate however tightly rows bind. If
    there are many more rows than features, only the rows that bind most are solved in this way. The others are
    eliminated first: with v = E R' x, x = (need - R v) / ease, which leaves A equations. Iterative refinement then
    removes the rounding error of the elimination.
    """
    few = 2 * w.shape[2] + INTERIOR.spare_rows
    if rows.shape[1] <= few:
        inner = (w * inverse[:, None, :]) @ w.transpose(1, 2)
        return _factored(rows @ inner @ rows.transpose(1, 2) + torch.diag_embed(ease))
    rows = torch.where(inverse[:, None, :] > 0, rows @ w, 0.0)
    heavy = ((rows**2 * inverse[:, None, :]).sum(dim=2) / ease).topk(few, dim=1).indices[:, :, None]
    own = rows.gather(1, heavy.expand(-1, -1, rows.shape[2]))
    ease = ease[:, :, None]
    lightly = (1.0 / ease).scatter(1, heavy, 0.0)
    stiff = torch.diag_embed(torch.where(inverse > 0, 1.0 / inverse, 1.0))
    features = _factored(stiff + (lightly * rows).transpose(1, 2) @ rows)
    reach = features(own.transpose(1, 2))
    rest = _factored(own @ reach + torch.diag_embed(ease.gather(1, heavy)[:, :, 0]))

    def solve_roughly(need: torch.Tensor) -> torch.Tensor:
        lift = features(rows.transpose(1, 2) @ (lightly * need))
        x = rest(need.gather(1, heavy) - own @ lift)
        return (lightly * (need - rows @ (lift + reach @ x))).scatter_add(1, heavy, x)

    def solve(need: torch.Tensor) -> torch.Tensor:
        x = solve_roughly(need)
        for _ in range(INTERIOR.refinements):
            x = x + solve_roughly(need - rows @ (inverse[:, :, None] * (rows.transpose(1, 2) @ x)) - ease * x)
        return x

    return solve


def _iterate(program: ConvexProgram, here: Concave, point: Point) -> Point:
    """One iteration of Mehrotra's predictor-corrector."""
    live = program.live
    y, slack, duals = point.y, point.slack, point.duals
    number = live.sum(dim=1)
    row_duals, zero_duals, cap_duals = program.parts(duals)
    slope_rows = here.slope / program.size[:, :, None]
    values = torch.cat([torch.where(torch.isfinite(here.h), here.h, 0.0) / program.size, y, program.cap - y], dim=1)
    missing = torch.where(live, values - slack, 0.0)
    gap = (slack * duals).sum(dim=1) / number
    tilt = torch.where(
        program.movable,
        2 * program.squared * y
        + program.linear
        - program.transposed(torch.einsum("bck,bc->bk", slope_rows, row_duals))
        - zero_duals
        + cap_duals,
        0.0,
    )
    weights = torch.where(live, duals / slack, 0.0).clamp_min(INTERIOR.least)
    row_weight, zero_weight, cap_weight = program.parts(weights)
    inverse = torch.where(program.movable, 1.0 / (2 * program.squared + zero_weight + cap_weight), 0.0)
    # Curvature is added as further rows, so that the system is positive definite and accurate for huge weights.
    root = here.curvature_root(row_duals / program.size)
    rows = torch.cat([slope_rows, root], dim=1)
    up, down = inverse.chunk(2, dim=1)
    ease = torch.cat([1.0 / row_weight, torch.ones_like(root[:, :, 0])], dim=1)
    solve = _solver(rows, ease, program.w, up + down)

    def newton(aim: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The Newton step towards slack * duals = aim and primal and dual feasibility."""
        push = torch.where(live, aim / slack - duals - weights * missing, 0.0)
        row_push, zero_push, cap_push = program.parts(push)
        rest = -tilt + zero_push - cap_push
        need = -torch.einsum("bck,bk->bc", rows, program.forms(inverse * rest))
        need[:, : row_push.shape[1]] += row_push / row_weight
        x = solve(need[:, :, None])[:, :, 0]
        d_y = inverse * (rest + program.transposed(torch.einsum("bck,bc->bk", rows, x)))
        d_rows = torch.einsum("bck,bk->bc", slope_rows, program.forms(d_y))
        d_values = torch.cat([d_rows, d_y, -d_y], dim=1)
        d_duals = push - weights * d_values
        d_duals = torch.cat([x[:, : d_rows.shape[1]], d_duals[:, d_rows.shape[1] :]], dim=1)
        return d_y, torch.where(live, d_values + missing, 0.0), torch.where(live, d_duals, 0.0)

    _, d_slack, d_duals = newton(torch.zeros_like(slack))
    length = _length(slack, d_slack, duals, d_duals)
    ahead = ((slack + length * d_slack) * (duals + length * d_duals)).sum(dim=1) / number
    centre = (gap * (ahead / gap.clamp_min(INTERIOR.least)).clamp(0.0, 1.0) ** 3)[:, None]
    centre = torch.maximum(centre, INTERIOR.central * (missing * duals).abs().amax(dim=1, keepdim=True))
    d_y, d_slack, d_duals = newton(centre - d_slack * d_duals)
    back_off = 1.0 - gap.clamp(1.0 - INTERIOR.back_off[1], 1.0 - INTERIOR.back_off[0])[:, None]
    length = back_off * _length(slack, d_slack, duals, d_duals)
    slack = torch.where(live, (slack + length * d_slack).clamp_min(INTERIOR.least), slack)
    duals = torch.where(live, (duals + length * d_duals).clamp_min(INTERIOR.least), duals)
    mean = torch.where(live, slack * duals, 0.0).sum(dim=1, keepdim=True) / number[:, None]
    is_row = torch.arange(slack.shape[1], device=slack.device) < row_duals.shape[1]
    slack = torch.where(live & is_row, torch.maximum(slack, INTERIOR.least_share * mean / duals), slack)
    return Point(y + length * d_y, slack, duals)


def _length(slack: torch.Tensor, d_slack: torch.Tensor, duals: torch.Tensor, d_duals: torch.Tensor) -> torch.Tensor:
    """(B, 1): largest step length <= 1 that keeps slack and duals >= 0. Both use it, because the cost is quadratic."""
    value, move = torch.cat([slack, duals], dim=1), torch.cat([d_slack, d_duals], dim=1)
    ratio = torch.where(move < 0, -value / move, torch.inf)
    return ratio.amin(dim=1, keepdim=True).clamp_max(1.0)
