"""Cheapest flips of linear models: exact, with a proof.

For linear logits z the set that passes is convex. For a wanted class y and margin m it is where, for every unwanted u,

    h_u(z) = z_y - log(e^{z_u} + m sum_c e^{z_c}) >= 0     (threshold t:  z_y - log sum_{u != y} e^{z_u} - logit t >= 0)

and each h_u is concave: a convex program of few constraints, whose multipliers prove how cheap a flip can be at best.
Two classes need one half-space and no iteration. Several wanted classes are as many convex sets; the cheapest counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from maxflip.classifiers import LinearForm
from maxflip.flips.convex import Bent, cheapest_into_convex
from maxflip.flips.halfspace import cheapest_into_halfspace, cost, dual_value
from maxflip.flips.surface import LIFT, Surface
from maxflip.goal import Goal

APART = 1.0  # in logits: how far the half-spaces that only guide the solver keep from the flip itself
# The model computes in its own dtype; where that rounds a flip back over the line, aim a little further.
FURTHER = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)


@dataclass(frozen=True, eq=False)
class Exact:
    """change (B, A)   lower (B,): no cheaper flip exists, proved; inf where there is none at all, proved too"""

    change: torch.Tensor
    lower: torch.Tensor

    @property
    def reachable(self) -> torch.Tensor:
        return torch.isfinite(self.lower)


def applies(form: LinearForm | None, goal: Goal) -> bool:
    """Whether the set that passes is a union of convex ones: not for the summed probability of several classes."""
    if form is None:
        return False
    return len(form.weight) == 2 or not goal.is_threshold or bool((goal.wanted.sum(axis=1) == 1).all())


def search(surface: Surface, form: LinearForm) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """change (B, A), found (B,), unreachable (B,): proved, with a guard to spare against rounding"""
    model = _Logits.of(surface, form)
    everyone = torch.arange(len(surface.low), device=surface.low.device)
    change = torch.zeros_like(surface.low)
    found = torch.zeros(len(change), dtype=torch.bool, device=change.device)
    at = everyone
    for ahead in FURTHER:
        flip = cheapest(surface, model, at, guards=LIFT, ahead=ahead)
        passes = flip.reachable & (surface.margin(flip.change, at, guards=1.0) >= 0)
        change[at[passes]] = flip.change[passes]
        found[at[passes]] = True
        at = at[~passes & flip.reachable]
        if not len(at):
            break
    unreachable = torch.zeros_like(found)
    rest = everyone[~found]
    # In another dtype the model rounds its input, by any amount for large values: nothing is proved then.
    if len(rest) and surface.problem.classifier.dtype == torch.float64:
        unreachable[rest] = ~cheapest(surface, model, rest, guards=-1.0).reachable
    return change, found, unreachable


def lower_bounds(surface: Surface, form: LinearForm) -> torch.Tensor:
    """(B,): no flip costs less, with a guard to spare against rounding; inf where there is none"""
    everyone = torch.arange(len(surface.low), device=surface.low.device)
    return cheapest(surface, _Logits.of(surface, form), everyone, guards=-1.0).lower


@dataclass(frozen=True, eq=False)
class _Logits:
    """z(d) = start + slope d over the actionable features.   start (B, k)   slope (k, A)"""

    start: torch.Tensor
    slope: torch.Tensor

    @classmethod
    def of(cls, surface: Surface, form: LinearForm) -> _Logits:
        weight, bias = form.weight.to(surface.x.device), form.bias.to(surface.x.device)
        return cls(surface.x @ weight.T + bias, weight[:, surface.columns])


def cheapest(surface: Surface, model: _Logits, at: torch.Tensor, guards: float, ahead: float = 0.0) -> Exact:
    """For the samples `at`, over all wanted classes: confidence >= required + guards * guard, h >= ahead * scale."""
    aim = surface.problem.goal.required + guards * surface.problem.guard
    aim = max(aim, 1e-12) if surface.problem.goal.is_threshold else aim
    best = Exact(torch.zeros_like(surface.low[at]), torch.full_like(model.start[at, 0], torch.inf))
    price = best.lower.clone()
    for wanted in torch.nonzero(surface.wanted[at].any(dim=0)).flatten().tolist():
        mine = torch.nonzero(surface.wanted[at, wanted]).flatten()
        flip = _into_one_class(surface, model, at[mine], wanted, aim, ahead)
        own_price = torch.where(flip.reachable, cost(flip.change, surface.squared, surface.absolute), torch.inf)
        cheaper = own_price < price[mine]
        best.change[mine[cheaper]] = flip.change[cheaper]
        price[mine] = torch.minimum(price[mine], own_price)
        best.lower[mine] = torch.minimum(best.lower[mine], flip.lower)
    return best


def _into_one_class(surface: Surface, model: _Logits, at: torch.Tensor, wanted: int, aim: float, ahead: float) -> Exact:
    prices = (surface.squared, surface.absolute)
    box = (surface.low[at], surface.high[at])
    start = model.start[at] - model.start[at, wanted, None]  # all logits from here on count from the wanted one
    w = model.slope - model.slope[wanted]
    unwanted = ~surface.wanted[at]
    extra = (ahead * (1.0 + model.start[at].abs().amax(dim=1)))[:, None]
    threshold = surface.problem.goal.is_threshold
    if start.shape[1] == 2:
        line = _log_odds(aim) if threshold else 2 * math.atanh(aim)
        g, r = -w[1 - wanted].expand(len(at), -1), start[:, 1 - wanted] + line + extra[:, 0]
        one = cheapest_into_halfspace(g, r, *prices, *box)
        lower = dual_value(one.nu, g, r, *prices, *box).clamp_min(0.0)
        return Exact(one.change, torch.where(one.reachable, lower, torch.inf))

    def constraints(z: torch.Tensor, mine: torch.Tensor) -> Bent:
        bent = _by_threshold(z, wanted, aim) if threshold else _by_margin(z, unwanted[mine], aim)
        return replace(bent, h=bent.h - extra[mine])

    flip = cheapest_into_convex(constraints, start, w, *prices, *box)
    return Exact(flip.change, flip.lower)


def _log_odds(p: float) -> float:
    return math.log(p / (1 - p))


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
    plain = torch.where(unwanted, APART - z - 2 * math.atanh(aim), torch.inf)
    flat = -torch.diag_embed(unwanted.to(z))
    return Bent(torch.cat([h, plain], dim=1), torch.cat([slope, flat], dim=1), share, rest, mean)


def _by_threshold(z: torch.Tensor, wanted: int, aim: float) -> Bent:
    """h = -log sum_{u != y} e^{z_u} - logit aim, in the row of y; z counts from y.

    The other rows, -z_u >= logit aim, follow from it; they show the solver what hides in the sum.
    """
    own = torch.arange(z.shape[1], device=z.device) == wanted
    others = torch.where(own, -torch.inf, z)
    mean = torch.softmax(others, dim=1)
    h = torch.where(own, -others.logsumexp(dim=1, keepdim=True), APART - z) - _log_odds(aim)
    slope = -torch.where(own[:, None], mean[:, None, :], torch.eye(len(own), dtype=z.dtype, device=z.device))
    rest = own.to(z).expand_as(z)
    return Bent(h, slope, torch.zeros_like(z), rest, mean)
