"""Rates: what changes of a batch of samples cost, as tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch.nn.functional import pad

from maxflip.search.halfspace import cost
from maxflip.search.prices import FeaturePrices


class Rate(NamedTuple):
    """Prices >= 0 of squared and of absolute changes: (A,) where all samples pay the same, else (B, A)"""

    squared: torch.Tensor
    absolute: torch.Tensor


@dataclass(frozen=True, eq=False)
class Rates:
    """cost(d) = sum_i s_i d_i^2 + l_i |d_i|, with the s and l of the way that d_i goes.

    up, down: of changes up and down; the very same where both ways cost the same
    """

    up: Rate
    down: Rate

    @classmethod
    def both(cls, squared: torch.Tensor, absolute: torch.Tensor) -> Rates:
        """The same up and down."""
        rate = Rate(squared, absolute)
        return cls(rate, rate)

    @classmethod
    def at(cls, prices: FeaturePrices, device: torch.device) -> Rates:
        up = Rate(*(torch.as_tensor(part, device=device) for part in prices.up))
        return cls(up, up if prices.is_two_way else Rate(*(torch.as_tensor(p, device=device) for p in prices.down)))

    @property
    def is_two_way(self) -> bool:
        return self.up is self.down

    @property
    def is_shared(self) -> bool:
        """Whether all samples pay the same."""
        return self.up.squared.dim() == 1

    @property
    def has_absolute(self) -> bool:
        return any(bool((rate.absolute > 0).any()) for rate in (self.up, self.down))

    @property
    def has_squared(self) -> bool:
        return any(bool((rate.squared > 0).any()) for rate in (self.up, self.down))

    def of(self, samples: torch.Tensor) -> Rates:
        """Of some of the samples."""
        return self if self.is_shared else self.mapped(lambda part: part[samples])

    def mapped(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Rates:
        """With every tensor replaced by the function of it."""
        up = Rate(*map(function, self.up))
        return Rates(up, up if self.is_two_way else Rate(*map(function, self.down)))

    def along(self, way: torch.Tensor) -> Rate:
        """The rates of changes in the direction of the signs `way` (B, A)"""
        if self.is_two_way:
            return self.up
        return Rate(*(torch.where(way > 0, up, down) for up, down in zip(self.up, self.down, strict=True)))

    @property
    def least(self) -> Rate:
        """Of the cheaper way"""
        if self.is_two_way:
            return self.up
        return Rate(*(torch.minimum(up, down) for up, down in zip(self.up, self.down, strict=True)))

    def cost(self, change: torch.Tensor) -> torch.Tensor:
        """(B, A) -> (B,)"""
        return cost(change, *self.along(change))

    def of_each(self, change: torch.Tensor) -> torch.Tensor:
        """(B, A): what the change of each slot costs"""
        squared, absolute = self.along(change)
        return squared * change**2 + absolute * change.abs()

    def with_another(self, squared: float, absolute: float) -> Rates:
        """With one more coordinate."""
        up = Rate(pad(self.up.squared, (0, 1), value=squared), pad(self.up.absolute, (0, 1), value=absolute))
        if self.is_two_way:
            return Rates(up, up)
        down = Rate(pad(self.down.squared, (0, 1), value=squared), pad(self.down.absolute, (0, 1), value=absolute))
        return replace(self, up=up, down=down)
