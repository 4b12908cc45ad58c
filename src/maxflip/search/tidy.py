"""Flips with fewer changes that cost about as much: trifles are dropped.

At a flip d with the tangent plane g . d = r and its multiplier nu, a flip without the change of slot i costs more by

    nu g_i d_i - cost_i(d_i)

to first order. The changes of which these sums stay within `TIDY.dearer` of the cost are dropped together, and all
others become longer by one factor. If that makes no flip that costs little enough, only the cheaper half of them is
dropped, and so on.
"""

from __future__ import annotations

import numpy as np
import torch

from maxflip._util.types import Floats, Rows
from maxflip.problem.problem import Problem
from maxflip.search import flat
from maxflip.search.grid import onto_grid
from maxflip.search.prices import FeaturePrices
from maxflip.search.settings import TIDY
from maxflip.search.surface import Surface


def tidied(problem: Problem, rows: Rows, changes: Floats, prices: Floats) -> Floats:
    """Flips (c, K) of the samples near these with fewer changes; the same ones where there are none.

    prices (m,): of budgets
    """
    fewer, levers = changes.copy(), np.where(problem.is_lever, changes, 0.0)
    first = levers if problem.is_lever.any() else None
    surface = Surface(problem, rows, FeaturePrices.at(problem, prices, rows), levers=first)
    free = problem.actionable
    d = torch.tensor((changes - levers)[:, free], device=surface.low.device)
    done = _one_by_one(surface, d) if flat.applies(problem) else _Tidy(surface, d).run()
    fewer[:, free] = levers[:, free] + done.cpu().numpy()
    return problem.settle(rows, fewer)


def _one_by_one(surface: Surface, d: torch.Tensor) -> torch.Tensor:
    """The same without gradients: the cheapest change is dropped, and a flip is searched among the others."""
    at, best = torch.arange(len(d)), d.clone()
    enough = (1 + TIDY.dearer) * surface.cost(d, at)
    kept = best != 0  # changes that were not tried yet
    for _ in range(TIDY.turns):
        at = at[((best[at] != 0).sum(dim=1) > 1) & kept[at].any(dim=1)]
        if not len(at):
            break
        least = torch.where(kept[at], surface.rates.of(at).of_each(best[at]), torch.inf).argmin(dim=1)
        kept[at, least] = False
        rest = best.clone()
        rest[at, least] = 0.0
        found = flat.search(surface.within(at, rest[at] != 0), at, known=rest, limit=enough, restarts=TIDY.restarts)
        some = at[found.cost[at] <= enough[at]]
        best[some] = found.change[some]
        kept &= best != 0
    return best


class _Tidy:
    """best (B, A): the flips so far   enough (B,): what they may cost

    most (B,): how many changes may be dropped at a time
    """

    def __init__(self, surface: Surface, d: torch.Tensor) -> None:
        self.surface, self.best = surface, d.clone()
        self.at = torch.arange(len(d), device=d.device)
        self.enough = (1 + TIDY.dearer) * surface.cost(d, self.at)
        self.most = (d != 0).sum(dim=1) - 1

    def run(self) -> torch.Tensor:
        at = self.at
        for _ in range(TIDY.turns):
            dropped = self._trifles(at)
            some = dropped.any(dim=1)
            at, dropped = at[some], dropped[some]
            if not len(at):
                break
            change, passes = self._without(at, dropped)
            self.best[at[passes]] = change[passes]
            self.most[at[~passes]] = dropped[~passes].sum(dim=1) // 2
            at = at[self.most[at] > 0]
        return self.best

    def _trifles(self, at: torch.Tensor) -> torch.Tensor:
        """(b, A): which changes of `at` to drop"""
        d, rates = self.best[at], self.surface.rates.of(at)
        m, g = self.surface.margin_and_gradient(d, at)
        own = torch.where(d != 0, g, 0.0)
        nu = self.surface.into_halfspace(own, (g * d).sum(dim=1) - m, at).nu
        more = (nu[:, None] * g * d - rates.of_each(d)).clamp_min(0.0)
        more, order = torch.where(d != 0, more, torch.inf).sort(dim=1, stable=True)
        few = torch.arange(d.shape[1], device=d.device) < self.most[at][:, None]
        cheap = (more.cumsum(dim=1) <= (self.enough[at] - rates.cost(d))[:, None]) & few
        return torch.zeros_like(cheap).scatter(1, order, cheap)

    def _without(self, at: torch.Tensor, dropped: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Flips of `at` without these changes, (b, A); and which of them are flips and cost little enough, (b,)"""
        rest = torch.where(dropped, 0.0, self.best[at])
        change, passes = self._longer(at, rest)
        if not self.surface.is_smooth:
            own = torch.nonzero(passes).flatten()
            within = self.surface.within(at, rest != 0)
            change[own], passes[own] = onto_grid(within, change[own], at[own])
        passes &= (self.surface.cost(change, at) <= self.enough[at]) & (change != 0).any(dim=1)
        return change, passes

    def _longer(self, at: torch.Tensor, rest: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The shortest multiples >= 1 of the changes `rest` (b, A) that flip, and which do at what may be spent."""
        low, high = self.surface.low[at], self.surface.high[at]
        shortest, longest = torch.ones_like(self.enough[at]), self._most_paid(at, rest)
        change = (longest[:, None] * rest).clamp(low, high)
        passes = self.surface.margin(change, at) >= 0
        for _ in range(TIDY.halvings):
            middle = (shortest + longest) / 2
            point = (middle[:, None] * rest).clamp(low, high)
            flips = passes & (self.surface.margin(point, at) >= 0)
            change = torch.where(flips[:, None], point, change)
            longest, shortest = torch.where(flips, middle, longest), torch.where(flips, shortest, middle)
        return change, passes

    def _most_paid(self, at: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        """(b,): t >= 1 where t^2 squared + t absolute is what may be spent, if the changes `rest` cost these"""
        rate = self.surface.rates.of(at).along(rest)
        squared, absolute = (rate.squared * rest**2).sum(dim=1), (rate.absolute * rest.abs()).sum(dim=1)
        enough = self.enough[at]
        root = (absolute**2 + 4 * squared * enough).sqrt()
        return (2 * enough / (absolute + root).clamp_min(1e-300)).clamp(1.0, TIDY.longest)
