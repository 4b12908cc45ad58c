"""FlipShard: a shard whose model has no gradients, so that its samples have known flips alone, and no planes.

The flips known so far stand for the surface: C_j(lambda) is at most the cost of the cheapest of them. So D with the
known flips is at most D, and meets it at the prices of the last searches, if these found the cheapest. The market
clears by it as by planes, and new flips are searched at the new prices, beginning from the cheapest known ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from maxflip._util.types import Floats, Rows
from maxflip.problem.problem import Problem
from maxflip.search import flat
from maxflip.search.prices import FeaturePrices
from maxflip.search.settings import Gait
from maxflip.search.surface import Surface
from maxflip.solvers.prices.clearing import DualPart
from maxflip.solvers.prices.settings import CLEARING, FLIPS, SHARD
from maxflip.solvers.prices.shard import FlipSet, Shard


def shard_of(
    problem: Problem, rows: Rows, prices: Floats, levers: Floats | None = None, paid: Floats | float = 0.0
) -> Shard:
    """A shard of the kind that the model needs."""
    kind = FlipShard if flat.applies(problem) else Shard
    return kind(problem, rows, prices, levers, paid)


@dataclass(frozen=True, eq=False)
class Known:
    """All known flips, each once.   sample (c,): its place in the shard   draws (c, m + Q): with quotas

    size: number of searches that they come from
    """

    sample: Rows
    draws: Floats
    size: int


class FlipShard(Shard):
    def __init__(
        self, problem: Problem, rows: Rows, prices: Floats, levers: Floats | None = None, paid: Floats | float = 0.0
    ) -> None:
        super().__init__(problem, rows, prices, levers, paid)
        self.has_kinks = False  # costs are not smoothed
        self._pool: Known | None = None

    def first_flips(self, again: tuple[Floats, ...], *, polished: bool, led: bool) -> None:  # noqa: ARG002
        """Search a first flip for each sample, and once more at the prices `again`, if flips are to be `polished`."""
        found = flat.search(self.surface, restarts=FLIPS.first)
        self.unreachable = found.unreachable
        self._store(found, torch.arange(len(self.rows)))

    def nearest(self, prices: Floats) -> FlipSet:
        found = flat.search(self._at(prices))
        at = torch.nonzero(found.found).flatten()
        return self._as_flips([self.rows[at.numpy()]], [found.change[at]])

    def lay_planes(self, prices: Floats, reach: float) -> None:
        """There are none."""

    def explore(self, rows: Rows) -> None:
        at = torch.as_tensor(np.flatnonzero(np.isin(self.rows, rows)))
        found = flat.search(self.surface, at)
        self.unreachable = found.unreachable & ~self.found
        self._store(found, at)

    def reprice(
        self, prices: Floats, reach: float, steps: int = SHARD.descents, without: torch.Tensor | None = None
    ) -> None:
        self._store(*self._searched(prices, reach, without, FLIPS.repriced * steps))

    def flips_at(self, prices: Floats, reach: float, taken: Rows) -> FlipSet:
        without = torch.as_tensor(np.isin(self.rows, taken))
        found, at = self._searched(prices, reach, without, FLIPS.repriced * SHARD.descents)
        at = at[found.found[at]]
        return self._as_flips([self.rows[at.numpy()]], [found.change[at]])

    def follow(self, prices: Floats, reach: float) -> None:
        """Flips of others are no help through trees."""

    def touch_up(self, prices: Floats, reach: float, gait: Gait) -> None:  # noqa: ARG002
        """Search longer, for the samples whose flip costs about their worth."""
        surface = self._at(prices)
        best = self._best(surface)
        at = self._contested(best.cost, prices)
        self._store(flat.search(surface, at, known=best.change, restarts=FLIPS.touched), at)

    def _searched(
        self, prices: Floats, reach: float, without: torch.Tensor | None, restarts: int
    ) -> tuple[flat.Found, torch.Tensor]:
        """The cheapest flips at these prices of samples whose known flip costs at most `reach` times their worth."""
        surface = self._at(prices)
        best = self._best(surface)
        known = torch.isfinite(best.cost)
        self.found = self.found | known
        at = self._competitive(best.cost, prices, reach)
        if without is not None:
            at = at[~without[at]]
        return flat.search(surface, at, known=best.change, restarts=restarts), at

    def dual_part(self, prices: Floats, softness: float) -> DualPart:
        """The part of these samples in the smoothed dual, as the known flips predict it.

        T log(1 + sum_c exp(gain_c / T)) over the flips c of a sample, without the 1 where it must be picked
        """
        known, size = self._known_flips(), len(self.rows)
        worth = self._worth_at(prices).numpy()
        gain = worth[known.sample] - known.draws[:, self.budgets] @ prices[self.budgets]
        must = self.must.numpy()
        best = np.where(must, -np.inf, 0.0)
        np.maximum.at(best, known.sample, gain)
        has = np.bincount(known.sample, minlength=size) > 0
        best[~has] = 0.0
        if softness == 0:
            top = (gain == best[known.sample]) & (must[known.sample] | (gain > 0))
            one = np.zeros(len(gain))
            one[np.flatnonzero(top)[np.unique(known.sample[top], return_index=True)[1]]] = 1.0
            zero = np.zeros((len(prices), len(prices)))
            return DualPart(float(best[has].sum()), -(one @ known.draws), zero)
        width = softness * np.maximum(self.worth.numpy(), 1e-300)
        each = np.exp((gain - best[known.sample]) / width[known.sample])
        idle = np.exp(np.where(must, -np.inf, -best / width))  # of not being picked
        total = np.bincount(known.sample, weights=each, minlength=size) + idle
        share = each / total[known.sample]
        value = (best + width * np.log(np.maximum(total, 1e-300)))[has].sum()
        mean = np.zeros((size, len(prices)))
        np.add.at(mean, known.sample, share[:, None] * known.draws)
        turn = share / width[known.sample]
        hessian = known.draws.T @ (turn[:, None] * known.draws) - mean.T @ (mean / width[:, None])
        return DualPart(float(value), -mean.sum(axis=0), hessian)

    def _known_flips(self) -> Known:
        size = len(self.seen) + len(self.told)
        if self._pool is None or self._pool.size != size:
            parts = [*self.seen, *self.told]
            at = torch.cat([self.must.nonzero().flatten()[:0], *(at for at, _ in parts)])
            changes = torch.cat([self.change[:0], *(change for _, change in parts)])
            both = torch.unique(torch.cat([at[:, None].to(changes), changes], dim=1), dim=0)
            sample = both[:, 0].long()
            flips = self._as_flips([self.rows[sample.numpy()]], [both[:, 1:]])
            draws = flips.bill(self.problem).consumption
            quotas = self.problem.quotas.coefficients[:, flips.rows].T
            self._pool = Known(sample.numpy(), np.hstack([draws, quotas]), size)
        return self._pool

    def _at(self, prices: Floats, softness: float = CLEARING.final) -> Surface:  # noqa: ARG002
        """The surface at these prices: no cost is bent."""
        return self.surface.repriced(FeaturePrices.at(self.problem, prices[self.budgets], self.rows))

    def _store(self, found: flat.Found, at: torch.Tensor) -> None:
        at = at[found.found[at]]
        self.change[at], self.found[at] = found.change[at], True
        self.seen.append((at, found.change[at].clone()))
