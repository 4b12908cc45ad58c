"""The steps of a batch without its padding, for networks that walk through time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Steps:
    """Those steps that exist, all sequences' first ones, then all second ones, and so on; longest sequences first.

    So a network makes everything that does not depend on its state for all N steps at once, then walks with fewer
    and fewer rows, each a view: `split` has one backward for all steps, where indexing would fill a batch per step.
    """

    rows: Tensor  # (N,) which row of the flattened (B * T) batch each step is
    counts: list[int]  # how many sequences have a first step, a second, ...
    place: Tensor  # (B,) where each sequence stands when the longest come first

    @classmethod
    def of(cls, length: Tensor, width: int) -> Steps:
        """The steps of sequences that are padded to `width`."""
        order = torch.argsort(length, descending=True, stable=True)
        exists = torch.arange(width, device=length.device)[:, None] < length[order]
        step, sequence = exists.nonzero(as_tuple=True)
        counts = [count for count in exists.sum(dim=1).tolist() if count]
        return cls(order[sequence] * width + step, counts, torch.argsort(order))

    def packed(self, padded: Tensor) -> Tensor:
        """(B, T, D) -> (N, D)"""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def split(self, packed: Tensor) -> tuple[Tensor, ...]:
        """One piece per time: the first steps, the second ones, ..."""
        return torch.split(packed, self.counts)

    def final(self, states: list[Tensor]) -> Tensor:
        """The (B, H) states at each sequence's end, from those that were set aside whenever some ended."""
        return torch.cat(states[::-1]).index_select(0, self.place)
