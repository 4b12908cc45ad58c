"""What changes of a batch of samples draw on the budgets, as tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from maxflip._util.types import Floats
from maxflip.problem.ledger import Pair, Weights


@dataclass(frozen=True, eq=False)
class Draws:
    """a(d) = flat + sum_i squared_i d_i^2 + absolute_i |d_i|, with the weights of the way that d_i goes.

    squared, absolute (m, A) where all samples weigh alike, else (B, m, A): of changes up
    squared_down, absolute_down: of changes down, the very same where both ways weigh alike
    flat (m,), or (B, m)
    """

    squared: torch.Tensor
    absolute: torch.Tensor
    squared_down: torch.Tensor
    absolute_down: torch.Tensor
    flat: torch.Tensor

    @classmethod
    def of(cls, weights: Weights, flat: Floats, device: torch.device) -> Draws:
        def tensors(pair: Pair) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.tensor(pair.squared, device=device), torch.tensor(pair.absolute, device=device)

        up = tensors(weights.up)
        squared, absolute = up if weights.down is weights.up else tensors(weights.down)
        return cls(*up, squared, absolute, torch.tensor(flat, device=device))

    @property
    def is_two_way(self) -> bool:
        return self.squared is self.squared_down and self.absolute is self.absolute_down

    def along(self, way: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Squared and absolute weights of changes in the direction of the signs `way` (B, A)"""
        if self.is_two_way:
            return self.squared, self.absolute
        is_up = (way > 0)[:, None]
        return (
            torch.where(is_up, self.squared, self.squared_down),
            torch.where(is_up, self.absolute, self.absolute_down),
        )

    def drawn(self, d: torch.Tensor) -> torch.Tensor:
        """d (B, A) -> a (B, m)"""
        squared, absolute = self.along(d)
        if squared.dim() == 2:
            return d**2 @ squared.T + d.abs() @ absolute.T + self.flat
        return torch.einsum("ba,bma->bm", d**2, squared) + torch.einsum("ba,bma->bm", d.abs(), absolute) + self.flat

    def slope(self, d: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """(B, A): the gradient in d of sum_jr weight_jr a_jr; weight (B, m), or (m,) if equal for all samples"""
        squared, absolute = self.along(d)
        if squared.dim() == 2:
            return 2.0 * d * (weight @ squared) + d.sign() * (weight @ absolute)
        weight = weight.expand(len(d), -1)
        by_square, by_size = (torch.einsum("bm,bma->ba", weight, part) for part in (squared, absolute))
        return 2.0 * d * by_square + d.sign() * by_size

    def bent(self, by: Draws, factor: float) -> Draws:
        """With the squared weights of another, times a factor, added."""
        squared = self.squared + factor * by.squared
        is_alike = self.is_two_way and by.is_two_way
        down = squared if is_alike else self.squared_down + factor * by.squared_down
        return replace(self, squared=squared, squared_down=down)
