"""The cheapest change into a convex set, with a proof: a batch of small programs, solved by `interior`.

The proof is weak duality. h_u lies below its tangents. So for tangents at ANY point and ANY multipliers nu >= 0

    min over the box of  cost(d) - sum_u nu_u tangent_u(d)

is a lower bound on the cheapest cost. If sum_u nu_u tangent_u(d) < 0 in the whole box, no feasible change exists.
Every iteration proves a bound; the best is kept.

If the set is empty, the iteration cannot converge, and its multipliers often prove nothing. So for samples in doubt a
program is solved that is always feasible: by how much must all h_u be relaxed for a feasible change to exist?

    min  cost(d) + price t    s.t.  h_u(z) + t >= 0,   t >= 0

The higher the price of t, the less the multipliers depend on the cost of d, until sum_u nu_u tangent_u(d) < 0 in the
whole box. For linear h_u this is Farkas' lemma: a class whose weights are a mean of the others' is never ahead of all
of them by more than it is ahead of that mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch.nn.functional import pad

from maxflip.search.interior import Concave, Constraints, ConvexFlip, ConvexProgram, improve, natural_units
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

    payable (B, A): largest changes that the budgets could pay for. If given, infeasibility is tested up to these.
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
    """(b,): for which of the samples `at` it is proved that the box contains no feasible change"""
    proved = torch.zeros_like(at, dtype=torch.bool)
    for price in LINEAR.relaxing_prices:
        open_ = torch.nonzero(~proved).flatten()
        if len(open_):
            own = at[open_]
            proved[open_] = _needs_relaxing(constraints, start[own], w[own], terms.of(own), own, price)
    return proved


def _needs_relaxing(
    constraints: Constraints, start: torch.Tensor, w: torch.Tensor, terms: Terms, at: torch.Tensor, price: float
) -> torch.Tensor:
    """(b,): whether it is proved that no change in the box is feasible

    Solves the relaxed program, whose changes have one more coordinate: what is spent on t.
    """
    forms, everyone = start.shape[1], torch.arange(len(at), device=at.device)

    def relaxed(z: torch.Tensor, mine: torch.Tensor) -> Concave:
        return _Relaxed.of(constraints(z[:, :forms], at[mine]), z[:, forms:])

    here = constraints(start, at)
    unit, typical = natural_units(here, w, terms)
    typical = price * typical  # buys the t that makes d = 0 feasible
    start, w = pad(start, (0, 1)), pad(w, (0, 1, 0, 1))
    w[:, -1, -1] = torch.where(torch.isfinite(here.h), -here.h, 0.0).amax(dim=1) / typical
    units = torch.cat([unit, typical[:, None]], dim=1), typical
    without_t = Terms(
        rates=terms.rates.with_another(squared=0.0, absolute=1.0),
        low=pad(terms.low, (0, 1)),
        high=pad(terms.high, (0, 1)),
    )
    with_t = replace(without_t, high=pad(terms.high, (0, 1), value=torch.inf))
    program = ConvexProgram.of(everyone, relaxed(start, everyone), start, w, units, terms=with_t, claim=without_t)
    best = ConvexFlip.none(without_t.low, torch.zeros_like(at, dtype=torch.bool))
    improve(best, program, relaxed)
    return torch.isinf(best.lower)


@dataclass(frozen=True, eq=False)
class _Relaxed(Concave):
    """h_u(z) + t: the constraints with t as a further form"""

    given: Concave = field(kw_only=True)

    @classmethod
    def of(cls, given: Concave, t: torch.Tensor) -> _Relaxed:
        slope = torch.cat([given.slope, torch.isfinite(given.h).to(given.slope)[:, :, None]], dim=2)
        return cls(given.h + t, slope, given=given)

    def curvature_root(self, nu: torch.Tensor) -> torch.Tensor:
        return pad(self.given.curvature_root(nu), (0, 1))
