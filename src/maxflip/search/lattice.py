"""Lattice: which changes of some samples may be stored, as tensors: whole steps, smallest sizes and limits."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch

from maxflip._util.types import Floats
from maxflip.search.settings import GRID
from maxflip.search.surface import Surface


@dataclass(frozen=True, eq=False)
class Lattice:
    """Of b samples and some slots, (b, A) each.   spacing: 0 for values without steps   low, high: limits of the change

    base: base + d is a whole number of spacings where d is on the lattice
    least: the smallest size of a change that is not 0; 0 where there is none
    """

    base: torch.Tensor
    spacing: torch.Tensor
    least: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor

    @classmethod
    def of(cls, surface: Surface, at: torch.Tensor) -> Lattice:
        problem, start = surface.problem, surface.start[at.cpu().numpy()]

        def tensor(part: Floats) -> torch.Tensor:
            own = np.broadcast_to(part, start.shape)[:, problem.actionable]
            return torch.tensor(own, device=surface.low.device)

        base = tensor(start - problem.grid.origin(start))
        low, high = surface.low[at], surface.high[at]
        return cls(base, tensor(problem.grid.step), tensor(problem.grid.least), low, high)

    def those(self, who: torch.Tensor) -> Lattice:
        """Of some of the samples, or of them several times."""
        return Lattice(*(getattr(self, part.name)[who] for part in fields(self)))

    def slots(self, which: torch.Tensor) -> Lattice:
        """Of some slots of each sample.   which (b, c)"""
        return Lattice(*(getattr(self, part.name).gather(1, which) for part in fields(self)))

    def next(self, d: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
        """(b, A): the change to the next point in the direction `sign` (-1, 0, 1), NaN if there is none inside the box.

        A change never reverses its sign: it becomes 0 instead. So does one that would become too small; one from 0 is
        large enough.
        """
        unit = self.unit
        place = (self.base + d) / unit
        from_start = torch.where(sign > 0, (place + GRID.on_a_multiple).floor(), (place - GRID.on_a_multiple).ceil())
        there = (torch.where(d == 0, from_start, place.round()) + sign) * unit - self.base
        there = torch.where(self.spacing > 0, there, torch.where(d == 0, sign * self.least, 0.0))
        there = torch.where(there * d < 0, 0.0, there)
        there = torch.where(self._too_small(there), torch.where(d == 0, self.smallest(sign), 0.0), there)
        has_points = (sign != 0) & (there != d) & ((self.spacing > 0) | (self.least > 0))
        return self.inside(torch.where(has_points, there, torch.nan))

    def beyond(self, d: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
        """The first points at d or beyond it in the direction `sign`, whatever their size and the limits."""
        place = (self.base + d) / self.unit
        first = torch.where(sign > 0, (place - GRID.on_a_multiple).ceil(), (place + GRID.on_a_multiple).floor())
        return torch.where(self.spacing > 0, first * self.unit - self.base, d)

    def reaching(self, d: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
        """The same, large enough and on the side of `sign` or 0; NaN outside the limits."""
        there = self.beyond(d, sign)
        there = torch.where(there * sign < 0, 0.0, there)
        return self.inside(torch.where((there != 0) & self._too_small(there), self.smallest(sign), there))

    def around(self, d: torch.Tensor, sign: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The points around d, on the side `sign` of 0: at or beyond d, before it, and the smallest; NaN if there is
        none."""
        beyond = self.beyond(d, sign)
        points = beyond, beyond - sign * self.spacing, self.smallest(sign)
        return tuple(self.inside(torch.where(self._too_small(point), torch.nan, point)) for point in points)

    def smallest(self, sign: torch.Tensor) -> torch.Tensor:
        """The smallest change in the direction `sign` that is large enough."""
        return self.beyond(sign * self.least, sign)

    def _too_small(self, d: torch.Tensor) -> torch.Tensor:
        return d.abs() < self.least * (1 - GRID.on_a_multiple)

    @property
    def unit(self) -> torch.Tensor:
        return torch.where(self.spacing > 0, self.spacing, 1.0)

    def inside(self, d: torch.Tensor) -> torch.Tensor:
        """NaN where d is outside the limits"""
        room = GRID.on_a_multiple * self.unit
        return torch.where((d >= self.low - room) & (d <= self.high + room), d.clamp(self.low, self.high), torch.nan)
