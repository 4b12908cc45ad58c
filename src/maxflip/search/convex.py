"""The cheapest change into a convex set, with a proof: a batch of small programs, solved by `interior`.

The proof is weak duality. h_u lies below its tangents, so at ANY point and for ANY multipliers nu >= 0

    min over the box of  cost(d) - sum_u nu_u tangent_u(d)

is a lower bound on the cheapest cost; and if sum_u nu_u tangent_u(d) < 0 in the whole box, there is no such change.
Every step of the iteration proves something; the best counts.

Where the set is empty that iteration has nowhere to go, and the multipliers it leaves often prove nothing. Samples in
doubt are asked something that always has an answer: how much must all h_u be eased for a change to exist,

    min  cost(d) + price t    s.t.  h_u(z) + t >= 0,   t >= 0

The dearer t is, the less the multipliers of its solution care what d costs: in the end sum_u nu_u grad h_u pulls at
nothing that may move freely, and sum_u nu_u h_u < 0 is left. For linear h_u that is Farkas' lemma: a class whose
weights are a mean of the others' is never ahead of all of them by more than it is ahead of that mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch.nn.functional import pad

from maxflip.search.interior import Bent, Constraints, ConvexFlip, ConvexProgram, improve, natural_units
from maxflip.search.settings import INTERIOR, LINEAR
from maxflip.search.terms import Terms


def cheapest_into_convex(
    constraints: Constraints,
    start: torch.Tensor,
    w: torch.Tensor,
    terms: Terms,
    payable: torch.Tensor | None = None,
    patience: int = INTERIOR.hasty,
) -> ConvexFlip:
    """start (B, k)   w (k, A) or (B, k, A)

    payable (B, A): given where it matters whether there is a change at all; larger ones are none of our business
    """
    w = w if w.dim() == 3 else w.expand(len(start), -1, -1)
    passes = (constraints(start, torch.arange(len(start), device=start.device)).h >= 0).all(dim=1)
    best = ConvexFlip.none(terms.low, passes)
    at = torch.nonzero(~passes).flatten()
    if not len(at):
        return best
    here, own = constraints(start[at], at), terms.of(at)
    program = ConvexProgram.of(at, here, start[at], w[at], natural_units(here, w[at], own), terms=own, claim=own)

    def is_out_of_reach(doubted: torch.Tensor) -> torch.Tensor:
        if payable is None:
            return torch.zeros_like(doubted, dtype=torch.bool)
        return _is_empty(constraints, start, w, terms.within(payable), doubted)

    improve(best, program, constraints, is_out_of_reach, patience)
    return best


def _is_empty(
    constraints: Constraints, start: torch.Tensor, w: torch.Tensor, terms: Terms, at: torch.Tensor
) -> torch.Tensor:
    """(b,): for which of the samples `at` it is proved that there is no such change in the box"""
    proved = torch.zeros_like(at, dtype=torch.bool)
    for dearer in LINEAR.easing_prices:
        open_ = torch.nonzero(~proved).flatten()
        if len(open_):
            own = at[open_]
            proved[open_] = _must_be_eased(constraints, start[own], w[own], terms.of(own), own, dearer)
    return proved


def _must_be_eased(
    constraints: Constraints, start: torch.Tensor, w: torch.Tensor, terms: Terms, at: torch.Tensor, dearer: float
) -> torch.Tensor:
    """(b,): whether no change will do unless the constraints are eased

    A change has one more coordinate here: what is spent on easing them.
    """
    forms, everyone = start.shape[1], torch.arange(len(at), device=at.device)

    def eased(z: torch.Tensor, mine: torch.Tensor) -> Bent:
        return _Eased.of(constraints(z[:, :forms], at[mine]), z[:, forms:])

    here = constraints(start, at)
    unit, typical = natural_units(here, w, terms)
    typical = dearer * typical  # buys all that is missing
    start, w = pad(start, (0, 1)), pad(w, (0, 1, 0, 1))
    w[:, -1, -1] = torch.where(torch.isfinite(here.h), -here.h, 0.0).amax(dim=1) / typical
    units = torch.cat([unit, typical[:, None]], dim=1), typical
    without = Terms(
        squared=pad(terms.squared, (0, 1)),
        absolute=pad(terms.absolute, (0, 1), value=1.0),
        low=pad(terms.low, (0, 1)),
        high=pad(terms.high, (0, 1)),
    )
    with_ease = replace(without, high=pad(terms.high, (0, 1), value=torch.inf))
    program = ConvexProgram.of(everyone, eased(start, everyone), start, w, units, terms=with_ease, claim=without)
    best = ConvexFlip.none(without.low, torch.zeros_like(at, dtype=torch.bool))
    improve(best, program, eased)
    return torch.isinf(best.lower)


@dataclass(frozen=True, eq=False)
class _Eased(Bent):
    """Constraints with one more form, which is added to all of them."""

    given: Bent = field(kw_only=True)

    @classmethod
    def of(cls, given: Bent, ease: torch.Tensor) -> _Eased:
        slope = torch.cat([given.slope, torch.isfinite(given.h).to(given.slope)[:, :, None]], dim=2)
        return cls(given.h + ease, slope, given=given)

    def bend(self, nu: torch.Tensor) -> torch.Tensor:
        return pad(self.given.bend(nu), (0, 1))
