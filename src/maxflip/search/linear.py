"""Cheapest flips of linear models: exact, with a proof.

For linear logits z, the flips form a convex set. For a wanted class y and margin m it is, for all unwanted u,

    h_u(z) = z_y - log(e^{z_u} + m sum_c e^{z_c}) >= 0     (threshold t:  z_y - log sum_{u != y} e^{z_u} - logit t >= 0)

Each h_u is concave. So the cheapest flip is a convex program of few constraints, and its multipliers prove a lower
bound of the cost. Two classes need one half-space and no iteration. Several wanted classes give as many convex sets;
the cheapest flip into any of them is taken.

For decision values z the set is a polyhedron: z_y - z_u - m >= 0. For several models it is the intersection of their
sets. If several classes are wanted, every combination of one class per model is a convex set.

Uptake(u) requires that u d passes too. z(u d) has u times the slope, so u d is handled as one more model. For two
classes and one model, g . d >= r and u g . d >= r with r > 0 are one half-space, g . d >= r / u. Points between u d and
d are in the convex set anyway. Rounded has no convex set: flips are moved to the grid afterwards (`grid`). Proofs
ignore Rounded; they stay valid, because rounding only removes flips.

Proofs cover every change that could pass in floating point: the model, the sum x + d and the box are all rounded. The
effect of that on h is at most `_slack`; proofs require that much less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from maxflip._util.types import Floats
from maxflip.models import LinearForm
from maxflip.problem.goal import Goal
from maxflip.problem.ledger import Pair
from maxflip.search import halfspace
from maxflip.search.convex import cheapest_into_convex
from maxflip.search.halfspace import EPS, cheapest_into_halfspace, dual_value
from maxflip.search.interior import Concave
from maxflip.search.lawful import lawful_flips
from maxflip.search.settings import INTERIOR, LINEAR, PRICING
from maxflip.search.surface import Surface
from maxflip.search.terms import Terms

Forms = tuple[LinearForm, ...]


@dataclass(frozen=True, eq=False)
class Exact:
    """change (B, A)   lower (B,): proved lower bound of a flip's cost; inf if it is proved that no flip exists

    inside (B,): whether the change is a flip; if not, it is the last point tried
    pull (B, A), offset (B,): the half-space pull . d >= offset that contains the convex set of `change`
    """

    change: torch.Tensor
    lower: torch.Tensor
    inside: torch.Tensor
    pull: torch.Tensor
    offset: torch.Tensor


def applies(forms: Forms | None, goal: Goal) -> bool:
    """Whether the flips form a union of few convex sets. Not so for a threshold on the sum of several classes."""
    if forms is None:
        return False
    most_wanted = int(goal.wanted.sum(axis=1).max())
    if len(forms[0].weight) > 2 and goal.is_threshold:
        return most_wanted == 1
    return len(forms) == 1 or most_wanted ** len(forms) <= LINEAR.sets


@dataclass(frozen=True, eq=False)
class Searched:
    """change (B, A)   found (B,)   pull (B, A), offset (B,): the plane pull . d = offset that touches the set of flips
    at the change"""

    change: torch.Tensor
    found: torch.Tensor
    pull: torch.Tensor
    offset: torch.Tensor


def search_and_prove(surface: Surface, forms: Forms) -> tuple[Searched, torch.Tensor]:
    """The cheapest flips, and (B,): which samples are proved unreachable.

    A sample that is not flipped by a short search is nearly always unreachable. Only samples for which that is not
    proved are searched for long. If prices differ by many orders of magnitude, the long search can fail too; then flips
    at neutral prices are taken.
    """
    known = search(surface, forms, torch.arange(len(surface.x), device=surface.x.device), INTERIOR.hasty)
    unreachable = out_of_reach(surface, forms, torch.nonzero(~known.found).flatten())
    for priced in (surface, surface.neutral):
        late = search(priced, forms, torch.nonzero(~known.found & ~unreachable).flatten())
        for part in fields(Searched):
            getattr(known, part.name)[late.found] = getattr(late, part.name)[late.found]
    return known, unreachable


def search(surface: Surface, forms: Forms, at: torch.Tensor, patience: int = INTERIOR.patient) -> Searched:
    """The cheapest flips of the samples `at`."""
    logits = _Logits.of(surface, forms)
    nothing, none = torch.zeros_like(surface.low), torch.zeros_like(surface.broken)
    known = Searched(nothing, none, nothing.clone(), torch.zeros_like(nothing[:, 0]))
    for ahead in LINEAR.aims if len(at) else ():
        flip = cheapest(surface, logits, at, guards=PRICING.guards, ahead=ahead, patience=patience)
        passes = torch.isfinite(flip.lower) & (surface.margin(flip.change, at, guards=1.0) >= 0)
        own = at[passes]
        known.change[own], known.pull[own], known.offset[own] = (
            flip.change[passes],
            flip.pull[passes],
            flip.offset[passes],
        )
        known.found[own] = True
        at = at[~passes & flip.inside]
        if not len(at):
            break
    if not surface.is_smooth:
        _take_to_grid(surface, known, flat=is_one_half_space(forms))
    return known


def _take_to_grid(surface: Surface, known: Searched, *, flat: bool) -> None:
    """In place. The planes are shifted to the flips on the grid, so that they predict the costs of these."""
    at = torch.nonzero(known.found).flatten()
    known.change[at], known.found[at] = lawful_flips(surface, known.change[at], at, flat=flat)
    known.offset[at] = (known.pull[at] * known.change[at]).sum(dim=1)


def provable(forms: Forms) -> bool:
    """Whether a bound on the models' rounding is known."""
    return all(form.noise is not None for form in forms)


def out_of_reach(surface: Surface, forms: Forms, at: torch.Tensor) -> torch.Tensor:
    """(B,): for which of `at` it is proved that no change that the budgets could pay for is a flip."""
    proved = torch.zeros_like(surface.broken)
    if len(at) and provable(forms):
        proved[at] = torch.isinf(lower_bounds(surface.neutral, forms, at))
    return proved


def lower_bounds(surface: Surface, forms: Forms, at: torch.Tensor) -> torch.Tensor:
    """(b,): lower bound of the cost of flips that the budgets could pay for; inf if none exists; 0 if not provable"""
    slack = _slack(surface, forms, at)
    lower = torch.zeros_like(slack[:, 0])
    bounded = torch.isfinite(slack).all(dim=1)
    if bool(bounded.any()):
        logits = _Logits.of(surface, forms)
        lower[bounded] = cheapest(surface, logits, at[bounded], guards=-1.0, proof=slack[bounded]).lower
    return lower


def _payable(surface: Surface, at: torch.Tensor) -> torch.Tensor:
    """(b, A): largest |d_i| that the limits allow and every budget could pay for."""
    problem = surface.problem
    weights = problem.ledger.weights(surface.rows[at.cpu().numpy()]).at(problem.actionable)
    up, down = (_affordable(pair, problem.ledger.amounts[:, None]) for pair in (weights.up, weights.down))
    affordable = torch.as_tensor(np.maximum(up, down) * (1 + 1e-12), device=surface.x.device)
    return torch.minimum(affordable, torch.maximum(-surface.low[at], surface.high[at]))


def _affordable(weights: Pair, amounts: Floats) -> Floats:
    """(A,) or (b, A): largest change one way that every budget could pay for"""
    squared, absolute = weights
    endless = np.full_like(squared, np.inf)
    with np.errstate(over="ignore"):
        by_square = np.sqrt(np.divide(amounts, squared, out=endless.copy(), where=squared > 0))
        by_size = np.divide(amounts, absolute, out=endless, where=absolute > 0)
    return np.asarray(np.minimum(by_square, by_size).min(axis=-2))


def _slack(surface: Surface, forms: Forms, at: torch.Tensor) -> torch.Tensor:
    """(b, M), in logits: bound on what rounding adds to h of each model, at any change that the budgets could pay for.

    Sum of errors, each relative to sum_i |w_i| (|x_i| + |d_i|) + |b|: of the model; of `start` and `slope`; of x + d
    (half a unit in the last place); and as much again of the limits of d and of a share of d. A share has the slack of
    its model.
    """
    moved = surface.x[at].abs().index_add(1, surface.columns, _payable(surface, at))
    endless = torch.isinf(moved)
    parts = []
    for form in forms:
        if form.noise is None:
            raise ValueError("nothing is known of the rounding of this model")
        own = EPS * (form.weight.shape[1] + 16)
        weight = (form.noise.weight + own * form.weight.abs()).to(moved.device)
        bias = (form.noise.bias + own * form.bias.abs()).to(moved.device)
        off = torch.where(endless, 0.0, moved) @ weight.T + bias
        off = torch.where(endless.to(weight) @ (weight > 0).to(weight).T > 0, torch.inf, off)
        parts.append(2 * off.amax(dim=1))  # h changes by at most twice the largest change of a logit
    return torch.stack(parts * len(_shares(surface, forms)), dim=1) / surface.unit


def _shares(surface: Surface, forms: Forms) -> tuple[float, ...]:
    """The shares of a change that must pass, each handled as one more model: 1 and the smallest share of Uptake.

    The smallest alone, if one half-space covers both or there would be too many combinations of classes. In the end
    flips are judged by all shares, and a proof that requires less stays valid.
    """
    least = float(surface.shares[0])
    most_wanted = int(surface.problem.goal.wanted.sum(axis=1).max())
    if least == 1.0 or is_one_half_space(forms) or most_wanted ** (2 * len(forms)) > LINEAR.sets:
        return (least,)
    return (1.0, least)


def is_one_half_space(forms: Forms) -> bool:
    """Whether the flips form one half-space: one model, two classes."""
    return len(forms) == 1 and len(forms[0].weight) == 2


@dataclass(frozen=True, eq=False)
class _Logits:
    """z(d) = start + slope d over the actionable features, for M models.   start (B, M, k)   slope (M, k, A)

    Each share of d counts as a further model, unless the flips form one half-space.   least: the smallest share
    """

    start: torch.Tensor
    slope: torch.Tensor
    least: float

    @classmethod
    def of(cls, surface: Surface, forms: Forms) -> _Logits:
        weights = [form.weight.to(surface.x.device) / surface.unit for form in forms]
        offsets = [form.bias.to(surface.x.device) / surface.unit for form in forms]
        starts = [surface.x @ w.T + b for w, b in zip(weights, offsets, strict=True)]
        shares, slope = _shares(surface, forms), torch.stack(weights)[:, :, surface.columns]
        if is_one_half_space(forms):
            return cls(torch.stack(starts, dim=1), slope, shares[0])
        return cls(torch.stack(starts * len(shares), dim=1), torch.cat([share * slope for share in shares]), shares[-1])


def cheapest(
    surface: Surface,
    logits: _Logits,
    at: torch.Tensor,
    guards: float,
    ahead: float = 0.0,
    proof: torch.Tensor | None = None,
    patience: int = INTERIOR.hasty,
) -> Exact:
    """The cheapest flips of the samples `at` into any wanted class, with confidence >= required + guards * guard and,
    to allow for the model's rounding, h >= ahead * (1 + max |z|) for each model.

    proof (b, M): for lower bounds. Requires only h >= -proof, and tests whether a payable change reaches that.
    """
    aim = (surface.problem.goal.required + guards * surface.problem.guard) / surface.unit
    aim = max(aim, 1e-12) if surface.problem.goal.is_threshold else aim
    nothing, none = torch.zeros_like(surface.low[at]), torch.full_like(logits.start[at, 0, 0], torch.inf)
    best = Exact(nothing, none, torch.zeros_like(none, dtype=torch.bool), nothing.clone(), torch.zeros_like(none))
    price = best.lower.clone()
    extra = ahead * (1.0 + logits.start[at].abs().amax(dim=2))
    extra = extra if proof is None else extra - proof
    payable = None if proof is None else _payable(surface, at)
    for choice in _choices(surface.wanted[at], len(logits.slope)):
        mine = torch.nonzero(surface.wanted[at][:, list(choice)].all(dim=1)).flatten()
        most = None if payable is None else payable[mine]
        flip = _into_one_set(surface, logits, at[mine], choice, aim, extra[mine], most, patience)
        own_price = surface.cost(flip.change, at[mine])
        own_price = torch.where(torch.isfinite(flip.lower), own_price, torch.inf)
        known = best.inside[mine]
        cheaper = (flip.inside & ~known) | ((flip.inside == known) & (own_price < price[mine]))
        best.inside[mine[cheaper]], price[mine[cheaper]] = flip.inside[cheaper], own_price[cheaper]
        best.change[mine[cheaper]] = flip.change[cheaper]
        best.pull[mine[cheaper]], best.offset[mine[cheaper]] = flip.pull[cheaper], flip.offset[cheaper]
        best.lower[mine] = torch.minimum(best.lower[mine], flip.lower)
    return best


def _choices(wanted: torch.Tensor, models: int) -> Iterator[tuple[int, ...]]:
    """All combinations of one class per model that are wanted for some sample."""
    kinds = [torch.nonzero(mask).flatten().tolist() for mask in torch.unique(wanted, dim=0)]
    yield from sorted({choice for kind in kinds for choice in itertools.product(kind, repeat=models)})


def _into_one_set(
    surface: Surface,
    logits: _Logits,
    at: torch.Tensor,
    choice: tuple[int, ...],
    aim: float,
    extra: torch.Tensor,
    payable: torch.Tensor | None,
    patience: int,
) -> Exact:
    """The cheapest flips for which each model m predicts the class choice[m], with h >= extra (b, M)."""
    rates, box = surface.rates.of(at), (surface.low[at], surface.high[at])
    goal, unwanted = surface.problem.goal, ~surface.wanted[at]
    models, classes = logits.slope.shape[:2]
    # From here on, logits are differences to the logit of the wanted class.
    start = logits.start[at] - logits.start[at][:, range(models), choice][:, :, None]
    w = logits.slope - logits.slope[range(models), choice][:, None, :]
    if classes == 2 and models == 1:
        other = 1 - choice[0]
        g, r = -w[0, other].expand(len(at), -1), start[:, 0, other] + _lead(goal, aim) + extra[:, 0]
        r = torch.where(r > 0, r / logits.least, r)
        prices = rates.along(g)
        one = cheapest_into_halfspace(g, r, *prices, *box)
        lower = dual_value(one.nu, g, r, *prices, *box).nan_to_num(nan=0.0, posinf=0.0).clamp_min(0.0)
        lower = torch.where(halfspace.out_of_reach(g, r, *box), torch.inf, lower)
        return Exact(one.change, lower, one.reachable, g, r)

    def constraints(z: torch.Tensor, mine: torch.Tensor) -> Concave:
        own_z = torch.split(z, classes, dim=1)
        each = [_one_model(goal, own_z[m], choice[m], unwanted[mine], aim) for m in range(models)]
        each = [replace(one, h=one.h - extra[mine, m, None]) for m, one in enumerate(each)]
        return each[0] if models == 1 else _Together.of(each)

    terms = Terms(rates, *box)
    flip = cheapest_into_convex(constraints, start.flatten(1), w.flatten(0, 1), terms, payable, patience)
    return Exact(flip.change, flip.lower, flip.inside, flip.pull, flip.offset)


def _one_model(goal: Goal, z: torch.Tensor, wanted: int, unwanted: torch.Tensor, aim: float) -> Concave:
    """The constraints of one model.   z (B, k): logits minus the wanted one"""
    if goal.is_decision or z.shape[1] == 2:
        return _by_half_spaces(z, unwanted, _lead(goal, aim))
    return _by_threshold(z, wanted, aim) if goal.is_threshold else _by_margin(z, unwanted, aim)


def _lead(goal: Goal, aim: float) -> float:
    """Required lead of the wanted class, in decision values or, for two classes, in logits."""
    if goal.is_decision:
        return aim
    return _log_odds(aim) if goal.is_threshold else 2 * math.atanh(aim)


@dataclass(frozen=True, eq=False)
class _Together(Concave):
    """The constraints of several models, each on its own logits"""

    each: tuple[Concave, ...] = ()

    @classmethod
    def of(cls, each: list[Concave]) -> _Together:
        return cls(torch.cat([b.h for b in each], dim=1), _diagonal([b.slope for b in each]), each=tuple(each))

    def curvature_root(self, nu: torch.Tensor) -> torch.Tensor:
        own = torch.split(nu, [b.h.shape[1] for b in self.each], dim=1)
        return _diagonal([one.curvature_root(part) for one, part in zip(self.each, own, strict=True)])


def _diagonal(blocks: list[torch.Tensor]) -> torch.Tensor:
    """(B, r_m, c_m) each -> (B, sum r, sum c)"""
    width = sum(block.shape[2] for block in blocks)
    begin, rows = 0, []
    for block in blocks:
        end = begin + block.shape[2]
        rows.append(torch.nn.functional.pad(block, (begin, width - end)))
        begin = end
    return torch.cat(rows, dim=1)


def _log_odds(p: float) -> float:
    return math.log(p / (1 - p))


def _by_half_spaces(z: torch.Tensor, unwanted: torch.Tensor, lead: float) -> Concave:
    """h_u = -z_u - lead for the unwanted classes u.   z (B, k): logits minus the wanted one"""
    return Concave(torch.where(unwanted, -z - lead, torch.inf), -torch.diag_embed(unwanted.to(z)))


def _by_margin(z: torch.Tensor, unwanted: torch.Tensor, aim: float) -> Concave:
    """h_u = -log(e^{z_u} + aim sum_c e^{z_c}) for the unwanted classes u.   z (B, k): logits minus the wanted one

    If aim * e^{z_c} far exceeds e^{z_u}, the tangent of h_u hardly depends on z_u. So k implied rows are added:
    p_y - p_u >= aim and p_y + p_u <= 1, hence -z_u >= log((1 + aim) / (1 - aim)).
    """
    total = z.logsumexp(dim=1, keepdim=True) + math.log(aim) if aim > 0 else torch.full_like(z[:, :1], -torch.inf)
    blend = torch.logaddexp(z, total)
    share = torch.where(unwanted, torch.exp(z - blend), 0.0)
    rest = torch.where(unwanted, torch.exp(total - blend), 0.0)
    mean = torch.softmax(z, dim=1)
    slope = -torch.diag_embed(share) - rest[:, :, None] * mean[:, None, :]
    h = torch.where(unwanted, -blend, torch.inf)
    plain = torch.where(unwanted, LINEAR.guide_distance - z - 2 * math.atanh(aim), torch.inf)
    flat = -torch.diag_embed(unwanted.to(z))
    return Concave(torch.cat([h, plain], dim=1), torch.cat([slope, flat], dim=1), share, rest, mean)


def _by_threshold(z: torch.Tensor, wanted: int, aim: float) -> Concave:
    """h = -log sum_{u != y} e^{z_u} - logit aim, in the row of y.   z (B, k): logits minus that of y

    The other rows, -z_u >= logit aim, are implied. Their tangents guide the solver where one term dominates the sum.
    """
    own = torch.arange(z.shape[1], device=z.device) == wanted
    others = torch.where(own, -torch.inf, z)
    mean = torch.softmax(others, dim=1)
    h = torch.where(own, -others.logsumexp(dim=1, keepdim=True), LINEAR.guide_distance - z) - _log_odds(aim)
    slope = -torch.where(own[:, None], mean[:, None, :], torch.eye(len(own), dtype=z.dtype, device=z.device))
    rest = own.to(z).expand_as(z)
    return Concave(h, slope, torch.zeros_like(z), rest, mean)
