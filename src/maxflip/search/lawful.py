"""Flips that may be stored, near the cheapest flips within the limits: of few features, by whole steps."""

from __future__ import annotations

import torch

from maxflip.search import gradient
from maxflip.search.exchange import exchanged
from maxflip.search.few import to_few
from maxflip.search.grid import onto_grid
from maxflip.search.plane import onto_plane
from maxflip.search.surface import Surface


def lawful_flips(
    surface: Surface, d: torch.Tensor, at: torch.Tensor, *, flat: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Flips near d (b, A) of the samples `at` that may be stored: changes (b, A), and whether one was found (b,).

    flat: m is linear in d, so that its tangent plane at any flip is the surface
    """
    if not surface.has_rules:
        return onto_grid(surface, d, at)
    change, found = _lawful(surface, d, at, flat=flat)
    lost = torch.nonzero(~found).flatten()
    if len(lost):
        neutral, known = surface.neutral, gradient.Best.none(surface.low)
        gradient.explore(neutral, known, at[lost])
        lost = lost[known.found[at[lost]]]
        change[lost], found[lost] = _lawful(neutral, known.change[at[lost]], at[lost], flat=flat)
    return change, found


def _lawful(surface: Surface, d: torch.Tensor, at: torch.Tensor, *, flat: bool) -> tuple[torch.Tensor, torch.Tensor]:
    problem = surface.problem
    found, within = torch.ones_like(at, dtype=torch.bool), surface
    if surface.must_be_few:
        d, found = to_few(surface, d, at)
        within = surface.within(at, d != 0)
    if problem.grid.is_free:
        return d, found
    change = torch.zeros_like(d)
    open_ = torch.nonzero(found).flatten()
    change[open_], found[open_] = onto_grid(within, d[open_], at[open_])
    if flat or not surface.must_be_few:  # `to_few` has begun from planes already
        m, g = surface.margin_and_gradient(d, at)
        start = onto_plane(surface, at, g, (g * d).sum(dim=1) - m)
        other, passes = onto_grid(surface.within(at, start != 0), start, at)
        cheaper = passes & (~found | (surface.cost(other, at) < surface.cost(change, at)))
        change[cheaper], found = other[cheaper], found | passes
    change[found] = exchanged(surface, change[found], at[found])
    return change, found
