"""Cheapest flips of linear models: exact, with a proof.

For linear logits z the set that passes is convex. For a wanted class y and margin m it is where, for every unwanted u,

    h_u(z) = z_y - log(e^{z_u} + m sum_c e^{z_c}) >= 0     (threshold t:  z_y - log sum_{u != y} e^{z_u} - logit t >= 0)

and each h_u is concave: a convex program of few constraints, whose multipliers prove how cheap a flip can be at best.
Two classes need one half-space and no iteration. Several wanted classes are as many convex sets; the cheapest counts.

Of decision values z the set is a polyhedron: z_y - z_u - m >= 0. Of several models it is what their sets have in
common; where several classes are wanted each model may choose its own, and every combination is one more convex set.

Uptake(u) asks the same of u d: z(u d) has the slope u times as large, so it is one more model. For two classes and one
model, g . d >= r and u g . d >= r are one half-space, g . d >= r / u where r > 0. Between u d and d the convex set is
passed anyway. Rounded has no convex set: its flips are taken to the grid afterwards (`grid`), and proofs do without it;
rounding only removes flips, so what they prove stays true.

Proofs are about the floats: about every change that the model, the sum x + d and the box, each with its own rounding,
could let pass. All of that is at most `_slack`, by which a proof asks for less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import torch

from maxflip.models import LinearForm
from maxflip.problem.goal import Goal
from maxflip.search import halfspace
from maxflip.search.convex import cheapest_into_convex
from maxflip.search.grid import onto_grid
from maxflip.search.halfspace import EPS, cheapest_into_halfspace, cost, dual_value
from maxflip.search.interior import Bent
from maxflip.search.prices import FeaturePrices
from maxflip.search.settings import INTERIOR, LINEAR, PRICING
from maxflip.search.surface import Surface
from maxflip.search.terms import Terms

Forms = tuple[LinearForm, ...]


@dataclass(frozen=True, eq=False)
class Exact:
    """change (B, A)   lower (B,): no cheaper flip exists, proved; inf where there is none at all, proved too

    inside (B,): whether the change is a flip; if not it is the last one tried
    pull (B, A), offset (B,): flips of the set that `change` belongs to have pull . d >= offset, which proves it
    """

    change: torch.Tensor
    lower: torch.Tensor
    inside: torch.Tensor
    pull: torch.Tensor
    offset: torch.Tensor


def applies(forms: Forms | None, goal: Goal) -> bool:
    """Whether the set that passes is a union of few convex ones: not for the summed probability of several classes."""
    if forms is None:
        return False
    most_wanted = int(goal.wanted.sum(axis=1).max())
    if len(forms[0].weight) > 2 and goal.is_threshold:
        return most_wanted == 1
    return len(forms) == 1 or most_wanted ** len(forms) <= LINEAR.sets


@dataclass(frozen=True, eq=False)
class Searched:
    """change (B, A)   found (B,)
    pull (B, A), offset (B,): the plane pull . d = offset that touches the set of flips at the change"""

    change: torch.Tensor
    found: torch.Tensor
    pull: torch.Tensor
    offset: torch.Tensor


def search_and_prove(surface: Surface, forms: Forms) -> tuple[Searched, torch.Tensor]:
    """The cheapest flips, and (B,): which samples are out of reach, proved.

    Who is not flipped soon is hardly ever within reach; only those of whom that is not proved are searched at length.
    Prices that differ by many orders of magnitude can defeat that too: then any flip will do, at neutral prices.
    """
    known = search(surface, forms, torch.arange(len(surface.x), device=surface.x.device), INTERIOR.hasty)
    unreachable = out_of_reach(surface, forms, torch.nonzero(~known.found).flatten())
    for priced in (surface, _neutral(surface)):
        late = search(priced, forms, torch.nonzero(~known.found & ~unreachable).flatten())
        for part in fields(Searched):
            getattr(known, part.name)[late.found] = getattr(late, part.name)[late.found]
    return known, unreachable


def _neutral(surface: Surface) -> Surface:
    """At prices that depend on no budget: a spread of each feature costs the same."""
    spread = surface.problem.spread
    return surface.repriced(FeaturePrices(1.0 / spread**2, np.zeros_like(spread)))


def search(surface: Surface, forms: Forms, at: torch.Tensor, patience: int = INTERIOR.patient) -> Searched:
    """The cheapest flips of the samples `at`."""
    model = _Logits.of(surface, forms)
    nothing, never = torch.zeros_like(surface.low), torch.zeros_like(surface.broken)
    known = Searched(nothing, never, nothing.clone(), torch.zeros_like(nothing[:, 0]))
    for ahead in LINEAR.aims if len(at) else ():
        flip = cheapest(surface, model, at, guards=PRICING.guards, ahead=ahead, patience=patience)
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
    if surface.problem.scenarios.step is not None:
        _take_to_grid(surface, known)
    return known


def _take_to_grid(surface: Surface, known: Searched) -> None:
    """In place. The planes go through the flips on the grid, so that they say what these cost."""
    at = torch.nonzero(known.found).flatten()
    known.change[at], known.found[at] = onto_grid(surface, known.change[at], at)
    known.offset[at] = (known.pull[at] * known.change[at]).sum(dim=1)


def provable(forms: Forms) -> bool:
    """Whether it is known how far rounding may take the models from their forms."""
    return all(form.noise is not None for form in forms)


def out_of_reach(surface: Surface, forms: Forms, at: torch.Tensor) -> torch.Tensor:
    """(B,): which of `at` nothing flips that the budgets could pay for; proved, whatever the prices."""
    proved = torch.zeros_like(surface.broken)
    if len(at) and provable(forms):
        proved[at] = torch.isinf(lower_bounds(_neutral(surface), forms, at))
    return proved


def lower_bounds(surface: Surface, forms: Forms, at: torch.Tensor) -> torch.Tensor:
    """(b,): no flip of `at` that the budgets could pay for costs less; inf where there is none"""
    slack = _slack(surface, forms, at)
    lower = torch.zeros_like(slack[:, 0])
    bounded = torch.isfinite(slack).all(dim=1)
    if bool(bounded.any()):
        model = _Logits.of(surface, forms)
        lower[bounded] = cheapest(surface, model, at[bounded], guards=-1.0, proof=slack[bounded]).lower
    return lower


def _payable(surface: Surface, at: torch.Tensor) -> torch.Tensor:
    """(b, A): no plan changes a value by more; limits allow no more, or some budget does not last for it."""
    ledger, columns = surface.problem.ledger, surface.problem.actionable
    squared, absolute, amounts = ledger.squared[:, columns], ledger.absolute[:, columns], ledger.amounts[:, None]
    endless = np.full_like(squared, np.inf)
    with np.errstate(over="ignore"):
        by_square = np.sqrt(np.divide(amounts, squared, out=endless.copy(), where=squared > 0))
        by_size = np.divide(amounts, absolute, out=endless, where=absolute > 0)
    affordable = torch.as_tensor(np.minimum(by_square, by_size).min(axis=0) * (1 + 1e-12), device=surface.x.device)
    return torch.minimum(affordable, torch.maximum(-surface.low[at], surface.high[at]))


def _slack(surface: Surface, forms: Forms, at: torch.Tensor) -> torch.Tensor:
    """(b, M), in logits: what rounding alone may add to h of a model, at any change that the budgets could pay for.

    Relative to sum_i |w_i| (|x_i| + |d_i|) + |b| that is: the model's own; that of `start` and `slope`; half a unit of
    the last place of x + d, by which a value may move further than d; as much again in the limits of d, and in a share
    of d. A share has the slack of its model.
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
        parts.append(2 * off.amax(dim=1))  # no h grows by more than two logits do
    return torch.stack(parts * len(_shares(surface, forms)), dim=1) / surface.unit


def _shares(surface: Surface, forms: Forms) -> tuple[float, ...]:
    """Of a change, that are asked to pass as models of their own: the whole, and the least that Uptake asks for.

    Where a half-space says both, or there would be too many choices of classes, the least alone: its flips are judged
    by all shares in the end, and a proof that asks for less holds.
    """
    least = float(surface.shares[0])
    most_wanted = int(surface.problem.goal.wanted.sum(axis=1).max())
    if least == 1.0 or is_one_half_space(forms) or most_wanted ** (2 * len(forms)) > LINEAR.sets:
        return (least,)
    return (1.0, least)


def is_one_half_space(forms: Forms) -> bool:
    """Whether what passes lies beyond one plane: one model, two classes."""
    return len(forms) == 1 and len(forms[0].weight) == 2


@dataclass(frozen=True, eq=False)
class _Logits:
    """z(d) = start + slope d over the actionable features, of M models.   start (B, M, k)   slope (M, k, A)

    Every share of d has models of its own, except of one half-space.   least: the smallest share, for that one
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
    model: _Logits,
    at: torch.Tensor,
    guards: float,
    ahead: float = 0.0,
    proof: torch.Tensor | None = None,
    patience: int = INTERIOR.hasty,
) -> Exact:
    """For the samples `at`, over all wanted classes: confidence >= required + guards * guard, and beyond that
    h >= ahead * scale of each model.

    proof (b, M): asked for what is proved of changes that the budgets could pay for, if h is so much less
    """
    aim = (surface.problem.goal.required + guards * surface.problem.guard) / surface.unit
    aim = max(aim, 1e-12) if surface.problem.goal.is_threshold else aim
    nothing, never = torch.zeros_like(surface.low[at]), torch.full_like(model.start[at, 0, 0], torch.inf)
    best = Exact(nothing, never, torch.zeros_like(never, dtype=torch.bool), nothing.clone(), torch.zeros_like(never))
    price = best.lower.clone()
    extra = ahead * (1.0 + model.start[at].abs().amax(dim=2))
    extra = extra if proof is None else extra - proof
    payable = None if proof is None else _payable(surface, at)
    for choice in _choices(surface.wanted[at], len(model.slope)):
        mine = torch.nonzero(surface.wanted[at][:, list(choice)].all(dim=1)).flatten()
        most = None if payable is None else payable[mine]
        flip = _into_one_set(surface, model, at[mine], choice, aim, extra[mine], most, patience)
        own_price = cost(flip.change, surface.squared, surface.absolute)
        own_price = torch.where(torch.isfinite(flip.lower), own_price, torch.inf)
        known = best.inside[mine]
        cheaper = (flip.inside & ~known) | ((flip.inside == known) & (own_price < price[mine]))
        best.inside[mine[cheaper]], price[mine[cheaper]] = flip.inside[cheaper], own_price[cheaper]
        best.change[mine[cheaper]] = flip.change[cheaper]
        best.pull[mine[cheaper]], best.offset[mine[cheaper]] = flip.pull[cheaper], flip.offset[cheaper]
        best.lower[mine] = torch.minimum(best.lower[mine], flip.lower)
    return best


def _choices(wanted: torch.Tensor, models: int) -> Iterator[tuple[int, ...]]:
    """Which wanted class each of the models may choose: every combination that is open to some sample."""
    kinds = [torch.nonzero(mask).flatten().tolist() for mask in torch.unique(wanted, dim=0)]
    yield from sorted({choice for kind in kinds for choice in itertools.product(kind, repeat=models)})


def _into_one_set(
    surface: Surface,
    model: _Logits,
    at: torch.Tensor,
    choice: tuple[int, ...],
    aim: float,
    extra: torch.Tensor,
    payable: torch.Tensor | None,
    patience: int,
) -> Exact:
    """Model m is to pass by the wanted class choice[m], with h >= extra (b, M)."""
    prices, box = (surface.squared, surface.absolute), (surface.low[at], surface.high[at])
    goal, unwanted = surface.problem.goal, ~surface.wanted[at]
    models, classes = model.slope.shape[:2]
    # All logits of a model count from that of its wanted class from here on.
    start = model.start[at] - model.start[at][:, range(models), choice][:, :, None]
    w = model.slope - model.slope[range(models), choice][:, None, :]
    if classes == 2 and models == 1:
        other = 1 - choice[0]
        g, r = -w[0, other].expand(len(at), -1), start[:, 0, other] + _line(goal, aim) + extra[:, 0]
        r = torch.where(r > 0, r / model.least, r)
        one = cheapest_into_halfspace(g, r, *prices, *box)
        lower = dual_value(one.nu, g, r, *prices, *box).nan_to_num(nan=0.0, posinf=0.0).clamp_min(0.0)
        lower = torch.where(halfspace.out_of_reach(g, r, *box), torch.inf, lower)
        return Exact(one.change, lower, one.reachable, g, r)

    def constraints(z: torch.Tensor, mine: torch.Tensor) -> Bent:
        own_z = torch.split(z, classes, dim=1)
        each = [_one_model(goal, own_z[m], choice[m], unwanted[mine], aim) for m in range(models)]
        each = [replace(bent, h=bent.h - extra[mine, m, None]) for m, bent in enumerate(each)]
        return each[0] if models == 1 else _Together.of(each)

    terms = Terms(*prices, *box)
    flip = cheapest_into_convex(constraints, start.flatten(1), w.flatten(0, 1), terms, payable, patience)
    return Exact(flip.change, flip.lower, flip.inside, flip.pull, flip.offset)


def _one_model(goal: Goal, z: torch.Tensor, wanted: int, unwanted: torch.Tensor, aim: float) -> Bent:
    """What one model asks of its logits z (B, k), which count from the wanted one."""
    if goal.is_decision or z.shape[1] == 2:
        return _by_half_spaces(z, unwanted, _line(goal, aim))
    return _by_threshold(z, wanted, aim) if goal.is_threshold else _by_margin(z, unwanted, aim)


def _line(goal: Goal, aim: float) -> float:
    """By how much the wanted score must lead: decision values, or the logits of two classes."""
    if goal.is_decision:
        return aim
    return _log_odds(aim) if goal.is_threshold else 2 * math.atanh(aim)


@dataclass(frozen=True, eq=False)
class _Together(Bent):
    """The constraints of several models, each on logits of its own."""

    each: tuple[Bent, ...] = ()

    @classmethod
    def of(cls, each: list[Bent]) -> _Together:
        return cls(torch.cat([b.h for b in each], dim=1), _diagonal([b.slope for b in each]), each=tuple(each))

    def bend(self, nu: torch.Tensor) -> torch.Tensor:
        own = torch.split(nu, [b.h.shape[1] for b in self.each], dim=1)
        return _diagonal([bent.bend(part) for bent, part in zip(self.each, own, strict=True)])


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


def _by_half_spaces(z: torch.Tensor, unwanted: torch.Tensor, line: float) -> Bent:
    """h_u = -z_u - line for the unwanted classes u; z counts from the wanted class."""
    return Bent(torch.where(unwanted, -z - line, torch.inf), -torch.diag_embed(unwanted.to(z)))


def _by_margin(z: torch.Tensor, unwanted: torch.Tensor, aim: float) -> Bent:
    """h_u = -log(e^{z_u} + aim sum_c e^{z_c}) for the unwanted classes u; z counts from the wanted class.

    Far away, where aim * e^{z_c} outweighs e^{z_u}, the tangent of h_u knows nothing of u. So k more rows, which follow
    from the first: p_y - p_u >= aim and p_y + p_u <= 1, hence -z_u >= log((1 + aim) / (1 - aim)).
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
    return Bent(torch.cat([h, plain], dim=1), torch.cat([slope, flat], dim=1), share, rest, mean)


def _by_threshold(z: torch.Tensor, wanted: int, aim: float) -> Bent:
    """h = -log sum_{u != y} e^{z_u} - logit aim, in the row of y; z counts from y.

    The other rows, -z_u >= logit aim, follow from it; they show the solver what hides in the sum.
    """
    own = torch.arange(z.shape[1], device=z.device) == wanted
    others = torch.where(own, -torch.inf, z)
    mean = torch.softmax(others, dim=1)
    h = torch.where(own, -others.logsumexp(dim=1, keepdim=True), LINEAR.guide_distance - z) - _log_odds(aim)
    slope = -torch.where(own[:, None], mean[:, None, :], torch.eye(len(own), dtype=z.dtype, device=z.device))
    rest = own.to(z).expand_as(z)
    return Bent(h, slope, torch.zeros_like(z), rest, mean)
