"""Flips that change at most `most_changes` features, near the cheapest flips d of all features.

1. Which features: those of the cheapest change onto the tangent plane at d that changes so few (`plane`).
2. Descend to the surface by these features alone. The plane there may name others: then once more, with these.
3. Samples without a flip drop features by and by, half of those that are too many at a time, with a descent each time.
4. Then they try the flips of others, which change few features already. The rest search from their start, with the
   features that were tried last.
"""

from __future__ import annotations

import torch

from maxflip.search import gradient
from maxflip.search.plane import of_features, onto_plane
from maxflip.search.settings import FEW
from maxflip.search.surface import Surface


def to_few(surface: Surface, d: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Flips of few features near d (b, A) of the samples `at`: changes (b, A), and whether one was found (b,)."""
    search = _Few(surface)
    search.take(d, at)
    search.by_planes(search.lost(at))
    search.by_dropping(search.lost(at))
    search.by_others(search.lost(at), among=search.found(at))
    search.from_start(search.lost(at))
    search.follow(search.found(at))
    return search.best.change[at], search.best.found[at]


class _Few:
    """most: features that may change   best: the cheapest lawful flips so far

    point (B, A): where planes are laid   free (B, A): the features tried last
    """

    def __init__(self, surface: Surface) -> None:
        self.surface, self.most = surface, surface.most or len(surface.columns)
        self.best = gradient.Best.none(surface.low)
        self.given = torch.zeros_like(surface.low)
        self.point = torch.zeros_like(surface.low)
        self.free = torch.zeros_like(surface.low, dtype=torch.bool)

    def lost(self, at: torch.Tensor) -> torch.Tensor:
        return at[~self.best.found[at]]

    def found(self, at: torch.Tensor) -> torch.Tensor:
        return at[self.best.found[at]]

    def counts(self, d: torch.Tensor) -> torch.Tensor:
        """(b,): features that d (b, A) changes"""
        return ((d != 0).to(d) @ of_features(self.surface) > 0).sum(dim=1)

    def take(self, d: torch.Tensor, at: torch.Tensor) -> None:
        """Begin with flips d (b, A) of the samples `at`."""
        self.given[at] = d
        known = gradient.Best.none(self.surface.low)
        known.change[at], known.cost[at] = d, self.surface.cost(d, at)
        self._record(known, at)

    def by_planes(self, at: torch.Tensor) -> None:
        self.point[at] = self.given[at]
        for _ in range(FEW.rounds):
            at = self._onto_plane(at, self.most)
            if not len(at):
                return
            self._descend(at)

    def by_dropping(self, at: torch.Tensor) -> None:
        self.point[at] = self.given[at]
        many = int(self.counts(self.given[at]).max()) if len(at) else 0
        while many > self.most and len(at):
            many = (many + self.most) // 2
            at = self._onto_plane(at, many, within=True)
            self._descend(at)

    def by_others(self, at: torch.Tensor, among: torch.Tensor) -> None:
        gradient.try_leaders(self.surface, self.best, at, among)
        at = self.found(at)
        self.point[at], self.free[at] = self.best.change[at], self.best.change[at] != 0
        self._descend(at)

    def from_start(self, at: torch.Tensor) -> None:
        self.point[at], self.free[at] = 0.0, False
        at = self._onto_plane(at, self.most)
        if not len(at):
            return
        own = gradient.Best.none(self.surface.low)
        gradient.explore(self.surface.within(at, self.free[at]), own, at)
        self._record(own, at)

    def follow(self, at: torch.Tensor) -> None:
        """Try the features of others' flips, in the most promising of their directions."""
        if len(at) < 2:
            return
        everyone = torch.arange(len(self.surface.low), device=at.device)
        typical = self.best.cost[at].median()[None]
        weight = self.surface.metric(self.best.change, everyone, typical_cost=typical)
        start = gradient.most_promising(self.surface, self.best, at, at, weight, self.best.cost)
        new = ((start != 0) != (self.best.change[at] != 0)).any(dim=1)
        self.point[at[new]], self.free[at[new]] = start[new], start[new] != 0
        self._descend(at[new])

    def _onto_plane(self, at: torch.Tensor, most: int, *, within: bool = False) -> torch.Tensor:
        """Move the points of `at` onto their planes with at most so many features; those whose features are new."""
        if not len(at):
            return at
        m, g = self.surface.margin_and_gradient(self.point[at], at)
        wanted = (g * self.point[at]).sum(dim=1) - m
        own = torch.where(self.point[at] != 0, g, 0.0) if within else g
        start = onto_plane(self.surface, at, own, wanted, most)
        new = (start != 0).any(dim=1) & ((start != 0) != self.free[at]).any(dim=1)
        at = at[new]
        self.point[at], self.free[at] = start[new], start[new] != 0
        return at

    def _descend(self, at: torch.Tensor) -> None:
        """From the points of `at`, by the features that are free. The points move to the flips found."""
        if not len(at):
            return
        own = gradient.Best.none(self.surface.low)
        gradient.track(self.surface.within(at, self.free[at]), own, at, self.point, FEW.descents)
        found = at[own.found[at]]
        self.point[found] = own.change[found]
        self._record(own, at)

    def _record(self, own: gradient.Best, at: torch.Tensor) -> None:
        """Those of these flips of `at` that change few enough features."""
        lawful = own.found[at] & (self.counts(own.change[at]) <= self.most)
        at = at[lawful]
        self.best.record(at, own.change[at], own.cost[at], torch.zeros_like(own.cost[at]))
