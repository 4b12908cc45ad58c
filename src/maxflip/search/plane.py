"""The cheapest change onto a tangent plane that may be stored: by whole steps, large enough, of few features.

    min  cost(d)   s.t.  g . d >= r,   d on its lattice,   at most `most_changes` features change

For a multiplier nu of the plane each slot has its own best change y_i, of the points around the unrestricted best one,
and gains nu |g_i| y_i - cost_i(y_i). The features whose slots gain most change, the others do not. Of the changes at
several multipliers, the cheapest that reaches the plane is taken: it is optimal but for a gap of about one step.
"""

from __future__ import annotations

import numpy as np
import torch

from maxflip.search.halfspace import cheapest_into_halfspace
from maxflip.search.lattice import Lattice
from maxflip.search.settings import GRID, PLANE
from maxflip.search.surface import Surface


def onto_plane(
    surface: Surface, at: torch.Tensor, g: torch.Tensor, r: torch.Tensor, most: int | None = None
) -> torch.Tensor:
    """(b, A): changes of the samples `at` (b,), 0 where none reaches the plane.   g (b, A)   r (b,)

    most: features that change, at most; None: as many as the problem allows
    """
    return _Plane(surface, at, g, r, most or surface.most).cheapest()


class _Plane:
    def __init__(self, surface: Surface, at: torch.Tensor, g: torch.Tensor, r: torch.Tensor, most: int | None) -> None:
        self.surface, self.g, self.r, self.most = surface, g, r, most
        self.lattice = None if surface.problem.grid.is_free else Lattice.of(surface, at)
        self.low, self.high, self.rates = surface.low[at], surface.high[at], surface.rates.of(at)
        self.rate = self.rates.along(g)
        self.size = g.abs()
        cap = torch.where(g > 0, self.high, -self.low)
        self.longest = torch.minimum(cap, r.clamp_min(0.0)[:, None] / self.size.clamp_min(1e-300))

    def cheapest(self) -> torch.Tensor:
        found, price = torch.zeros_like(self.g), torch.full_like(self.r, torch.inf)
        for nu in self._multipliers():
            change = self._at(nu)
            own = self.rates.cost(change)
            better = ((self.g * change).sum(dim=1) >= self.r - GRID.rounding * self.r.abs()) & (own < price)
            found, price = torch.where(better[:, None], change, found), torch.where(better, own, price)
        return found

    def _multipliers(self) -> torch.Tensor:
        """(n, b, 1): from where the first slot gains anything to where all change as far as can be needed"""
        (s, l), size = self.rate, self.size.clamp_min(1e-300)  # noqa: E741
        first = torch.where(self.size > 0, l / size, torch.inf).amin(dim=1)
        last = torch.where(self.size > 0, (l + 2 * s * self.longest) / size, 0.0).amax(dim=1).clamp_min(1e-300)
        first = torch.minimum(torch.maximum(first, PLANE.least_multiplier * last), last)
        parts = torch.linspace(0, 1, PLANE.multipliers, dtype=self.g.dtype, device=self.g.device)[:, None]
        return (first * (PLANE.beyond * last / first) ** parts)[:, :, None]

    def _at(self, nu: torch.Tensor) -> torch.Tensor:
        """(b, A): the change at the multipliers nu (b, 1)"""
        s, l = self.rate  # noqa: E741
        y = torch.where(s > 0, ((nu * self.size - l) / (2 * s).clamp_min(1e-300)).clamp_min(0.0), torch.inf)
        y = torch.where(nu * self.size > l, torch.minimum(y, self.longest), 0.0)
        y, gain = self._best_points(y, nu)
        free = self._that_gain_most(gain)
        if self.lattice is not None:
            return torch.where(free, self.g.sign() * y, 0.0)
        own = torch.where(free, self.g, 0.0)
        flip = cheapest_into_halfspace(own, self.r, s, l, self.low, self.high)
        return torch.where(free & flip.reachable[:, None], flip.change, 0.0)

    def _best_points(self, y: torch.Tensor, nu: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Of the lattice's points around sign(g) y (b, A), those that gain most: their sizes, and what they gain"""
        sign = self.g.sign()
        points = [y]
        if self.lattice is not None:
            points = [sign * point for point in self.lattice.around(sign * y, sign)]
        best, most = torch.zeros_like(y), torch.zeros_like(y)
        for point in points:
            own = nu * self.size * point - self.rates.of_each(sign * point)
            better = (own > most) & (point > 0)
            best, most = torch.where(better, point, best), torch.where(better, own, most)
        return best, most

    def _that_gain_most(self, gains: torch.Tensor) -> torch.Tensor:
        """(b, A): the slots of the features whose slots together gain most, as many as may change.   gains (b, A)"""
        if self.most is None:
            return gains > 0
        features = of_features(self.surface)
        by_feature = gains @ features
        top = by_feature.topk(min(self.most, by_feature.shape[1]), dim=1)
        chosen = torch.zeros_like(by_feature).scatter(1, top.indices, 1.0)
        return (chosen @ features.T > 0) & (gains > 0)


def of_features(surface: Surface) -> torch.Tensor:
    """(A, features): 1 where a slot is the feature's"""
    problem = surface.problem
    own = np.unique(problem.slots.feature[problem.actionable], return_inverse=True)[1]
    return torch.nn.functional.one_hot(torch.tensor(own)).to(surface.low)
