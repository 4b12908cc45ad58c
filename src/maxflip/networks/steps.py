"""The steps of a batch without its padding, for networks that walk through time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

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
    first: Tensor  # (N,) which of the N is the first step of the same sequence
    previous: Tensor  # (N,) which is the step before; of a first step itself
    place: Tensor  # (B,) where each sequence stands when the longest come first

    @classmethod
    def of(cls, length: Tensor, width: int) -> Steps:
        """The steps of sequences that are padded to `width`."""
        order = torch.argsort(length, descending=True, stable=True)
        exists = torch.arange(width, device=length.device)[:, None] < length[order]
        step, first = exists.nonzero(
            as_tuple=True
        )  # the first steps stand in front, so the sequence's number is theirs
        many = exists.sum(dim=1)
        before = torch.cat([many.new_zeros(1), many[:-1]])[step]
        previous = torch.arange(len(step), device=length.device) - before
        counts = [count for count in many.tolist() if count]
        return cls(order[first] * width + step, counts, first, previous, torch.argsort(order))

    def packed(self, padded: Tensor) -> Tensor:
        """(B, T, D) -> (N, D)"""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def split(self, packed: Tensor) -> tuple[Tensor, ...]:
        """One piece per time: the first steps, the second ones, ..."""
        return torch.split(packed, self.counts)

    def latest(self, mask: Tensor) -> Tensor:
        """(N, D) flags -> (N, D): 1 + the step of the same sequence at which the flag was last set; 0 where never."""
        found = mask * torch.arange(1, len(mask) + 1, device=mask.device)[:, None]
        for earlier, later in pairwise(self.split(found)):
            torch.maximum(later, earlier[: len(later)], out=later)
        return found

    def final(self, states: list[Tensor]) -> Tensor:
        """The (B, H) states at each sequence's end, from those that were set aside whenever some ended."""
        return torch.cat(states[::-1]).index_select(0, self.place)
