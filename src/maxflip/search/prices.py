"""What changes cost: prices of features, from prices of budgets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxflip._util.types import Floats, Mask, Rows
from maxflip.problem.ledger import Pair, Weights
from maxflip.problem.problem import Problem
from maxflip.search.settings import PRICING


@dataclass(frozen=True, eq=False)
class FeaturePrices:
    """cost(d) = sum_i squared_i d_i^2 + absolute_i |d_i| over the problem's actionable features.

    (A,) each where all samples pay the same, else (B, A). squared_down, absolute_down: of changes down; None: the same
    """

    squared: Floats
    absolute: Floats
    squared_down: Floats | None = None
    absolute_down: Floats | None = None

    @classmethod
    def of(cls, weights: Weights, prices: Floats) -> FeaturePrices:
        """squared_i = sum_r prices_r U_ri over the squared budgets, absolute_i the same over the absolute ones.

        prices (m,): of the budgets, >= 0
        """
        up = prices @ weights.up.squared, prices @ weights.up.absolute
        if weights.down is weights.up:
            return cls(*up)
        return cls(*up, prices @ weights.down.squared, prices @ weights.down.absolute)

    @classmethod
    def at(cls, problem: Problem, prices: Floats, rows: Rows | None = None) -> FeaturePrices:
        """For these samples, of which none may be given where all pay the same; what is free costs next to nothing."""
        return cls.of(problem.weights(rows), prices).floored(problem.spread)

    @classmethod
    def neutral(cls, problem: Problem) -> FeaturePrices:
        """1 / spread^2, which depend on no budget."""
        return cls(1.0 / problem.spread**2, np.zeros_like(problem.spread))

    @property
    def is_two_way(self) -> bool:
        """Whether changes up and down of the same size cost the same."""
        return self.squared_down is None

    @property
    def up(self) -> Pair:
        return Pair(self.squared, self.absolute)

    @property
    def down(self) -> Pair:
        if self.squared_down is None or self.absolute_down is None:
            return self.up
        return Pair(self.squared_down, self.absolute_down)

    @property
    def free(self) -> tuple[Mask, Mask]:
        """Whether changes up, and changes down, cost nothing: of the shape of the prices"""
        return _is_free(self.up), _is_free(self.down)

    @property
    def all_free(self) -> Mask:
        """Whether nothing costs anything: one, or one for each sample (B,)"""
        up, down = self.free
        return np.asarray((up & down).all(axis=-1))

    def floored(self, spread: Floats) -> FeaturePrices:
        """With the least price for what is free, so that changes stay finite.   spread (A,)"""
        dearest = np.maximum(_dearest(self.up, spread), _dearest(self.down, spread))
        floor = np.where(self.all_free[..., None], 1.0, PRICING.free * np.maximum(dearest, np.finfo(float).tiny))
        up, down = (np.where(_is_free(pair), floor / spread**2, pair.squared) for pair in (self.up, self.down))
        return FeaturePrices(up, self.absolute, *(() if self.is_two_way else (down, self.down.absolute)))

    def bent(self, by: FeaturePrices, factor: float) -> FeaturePrices:
        """With the squared prices of another, times a factor, added."""
        up = self.squared + factor * by.squared
        if self.is_two_way:
            return FeaturePrices(up, self.absolute)
        return FeaturePrices(up, self.absolute, self.down.squared + factor * by.down.squared, self.down.absolute)


def _is_free(pair: Pair) -> Mask:
    return np.asarray((pair.squared == 0) & (pair.absolute == 0))


def _dearest(pair: Pair, spread: Floats) -> Floats:
    """(1,) or (B, 1): the highest price of a change of one spread"""
    return np.asarray((pair.squared * spread**2 + pair.absolute * spread).max(axis=-1, keepdims=True, initial=0.0))
