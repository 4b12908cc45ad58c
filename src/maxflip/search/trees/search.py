"""From a batch of samples at prices to the compiled search, and back.

A flip sits just across a threshold, in the value that is stored: x + d as float64 computes it is the next float, or the
first multiple of a step. The model rounds its sums in its own way, so the flips are asked to pass by more where they
fail in the model itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import cast

import numpy as np
import torch

from maxflip._util.types import Floats, Rows
from maxflip.errors import ModelError
from maxflip.models.trees.known import NEEDS_NUMBA, forests_of
from maxflip.search.settings import TREES, TreeSearch
from maxflip.search.surface import Surface
from maxflip.search.trees.arrays import Costs, Effort, Lattices
from maxflip.search.trees.compiled import Asked, compiled


@dataclass(eq=False)
class Found:
    """change (B, A): of the actionable slots   cost (B,): inf where no flip was found   unreachable (B,): proved"""

    change: torch.Tensor
    cost: torch.Tensor
    unreachable: torch.Tensor

    @property
    def found(self) -> torch.Tensor:
        return torch.isfinite(self.cost)


def search(
    surface: Surface,
    at: torch.Tensor | None = None,
    *,
    known: torch.Tensor | None = None,
    limit: torch.Tensor | None = None,
    restarts: int = TREES.restarts,
    beam: int = TREES.beam,
) -> Found:
    """The cheapest flips of the samples `at` of the surface (all, if None).

    known (B, A): flips at other prices to begin from, 0 where there are none   limit (B,): flips that cost more are of
    no use   restarts, beam: see TreeSearch
    """
    if find_spec("numba") is None:
        raise ModelError(NEEDS_NUMBA)
    effort = replace(TREES, restarts=restarts, beam=beam)
    best = Found(
        torch.zeros_like(surface.low),
        torch.full(surface.low.shape[:1], torch.inf, dtype=torch.float64),
        torch.zeros(len(surface.low), dtype=torch.bool),
    )
    lost = torch.arange(len(surface.low)) if at is None else at
    for guards in TREES.guards:
        if not len(lost):
            break
        for some, asked in _alike(surface, lost, guards):
            _search(surface, some, asked, best, known, limit, effort)
        tried = lost[best.found[lost]]
        fails = surface.margin(best.change[tried], tried, guards=1.0) < 0
        lost = tried[fails]
        best.cost[lost], best.change[lost] = torch.inf, 0.0
    return best


def _alike(surface: Surface, at: torch.Tensor, guards: float) -> list[tuple[torch.Tensor, Asked]]:
    """The samples in groups with the same wanted classes."""
    goal = surface.problem.goal
    patterns, group = torch.unique(surface.wanted[at], dim=0, return_inverse=True)
    lift = guards * surface.problem.guard
    return [
        (at[group == k], Asked(pattern.numpy(), goal.required, lift, goal.is_threshold))
        for k, pattern in enumerate(patterns)
    ]


def _search(
    surface: Surface,
    at: torch.Tensor,
    asked: Asked,
    best: Found,
    known: torch.Tensor | None,
    limit: torch.Tensor | None,
    effort: TreeSearch,
) -> None:
    from maxflip.search.trees import kernel

    problem, forests = surface.problem, forests_of(surface.problem.classifier)
    x = cast(torch.Tensor, surface.inputs.at(at, torch.zeros_like(surface.low[at]))).numpy()
    places = np.flatnonzero(~problem.is_lever[problem.actionable])
    columns = problem.slots.feature[problem.actionable[places]]
    low, high = (side[at][:, places].numpy() for side in (surface.low, surface.high))
    trees, wanted = compiled(forests, asked)
    shape = (len(at), len(places))
    begin = np.zeros(shape) if known is None else known[at][:, places].numpy()
    most = np.full(len(at), np.inf) if limit is None else limit[at].numpy()
    moved, cost, highest, _ = kernel.search(
        trees,
        wanted,
        _whole(x, x.shape),
        columns.astype(np.int32),
        _lattices(surface, x[:, columns], problem.actionable[places], low, high),
        _costs(surface, at, places),
        _whole(begin, shape),
        _whole(most, most.shape),
        _effort(surface, len(places), effort),
    )
    surface.evaluations.gradients += len(at) * (1 + effort.restarts)  # walks
    change = np.zeros((len(at), len(problem.actionable)))
    change[:, places] = moved
    best.change[at], best.cost[at] = torch.from_numpy(change), torch.from_numpy(cost)
    best.unreachable[at] = torch.from_numpy(highest < -_room(trees.value, wanted.line))


def _room(value: Floats, aim: Floats) -> float:
    """How far below 0 an upper bound must be to prove anything: far more than sums round, in float32 too."""
    return float(TREES.sure * (1.0 + np.abs(value).max(initial=0.0) + np.abs(aim).max(initial=0.0)))


def _lattices(surface: Surface, start: Floats, slots: Rows, low: Floats, high: Floats) -> Lattices:
    """start (B, A): values before the change   slots (A,): of the problem"""
    grid = surface.problem.grid.at(slots)
    parts = (grid.step, grid.top, grid.bottom, start - grid.origin(start), grid.smallest)
    return Lattices(*(_whole(part, start.shape) for part in (low, high, *parts)))


def _costs(surface: Surface, at: torch.Tensor, places: Rows) -> Costs:
    rates, shape = surface.rates.of(at), (len(at), len(places))
    parts = (*rates.up, *rates.down)
    return Costs(*(_whole(part.numpy()[..., places], shape) for part in parts))


def _whole(part: Floats, shape: tuple[int, ...]) -> Floats:
    """A copy of its own, of this shape: views and read-only arrays would each be compiled for anew."""
    return np.array(np.broadcast_to(part, shape), order="C")


def _effort(surface: Surface, slots: int, effort: TreeSearch) -> Effort:
    most = surface.most
    return Effort(
        restarts=effort.restarts,
        beam=effort.beam,
        most=slots if most is None else most,
        pad=effort.pad,
        dearer=effort.dearer,
        fewest=effort.taken_back[0],
        most_taken=effort.taken_back[1],
        anew=effort.anew,
        lost=effort.lost,
    )
