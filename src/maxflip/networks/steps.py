"""The steps of a batch without padding, for recurrent networks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class Steps:
    """The N existing steps, sorted by time: the first steps of all sequences, then the second ones; longest first.

    A network computes everything that does not depend on its state for all N steps at once, then iterates over time
    with a decreasing number of rows. `split` gives views with one backward pass for all steps; indexing would allocate
    a batch per step.
    """

    rows: Tensor  # (N,) row of each step in the flattened (B * T) batch
    counts: list[int]  # number of sequences with a first step, a second step, ...
    first: Tensor  # (N,) index of the first step of the same sequence
    previous: Tensor  # (N,) index of the previous step; a first step is its own
    place: Tensor  # (B,) position of each sequence in the order by length, longest first

    @classmethod
    def of(cls, length: Tensor, width: int) -> Steps:
        """The steps of sequences padded to `width`."""
        order = torch.argsort(length, descending=True, stable=True)
        exists = torch.arange(width, device=length.device)[:, None] < length[order]
        step, first = exists.nonzero(
            as_tuple=True
        )  # first steps come first, so their index is the number of the sequence
        many = exists.sum(dim=1)
        before = torch.cat([many.new_zeros(1), many[:-1]])[step]
        previous = torch.arange(len(step), device=length.device) - before
        counts = [count for count in many.tolist() if count]
        return cls(order[first] * width + step, counts, first, previous, torch.argsort(order))

    def packed(self, padded: Tensor) -> Tensor:
        """(B, T, D) -> (N, D)"""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def split(self, packed: Tensor) -> tuple[Tensor, ...]:
        """One view per time: the first steps, the second steps, ..."""
        return torch.split(packed, self.counts)

    def latest(self, mask: Tensor) -> Tensor:
        """(N, D) flags -> (N, D): 1 + index of the step of the sequence at which the flag was last set; 0 if never."""
        found = mask * torch.arange(1, len(mask) + 1, device=mask.device)[:, None]
        for earlier, later in pairwise(self.split(found)):
            torch.maximum(later, earlier[: len(later)], out=later)
        return found

    def final(self, states: list[Tensor]) -> Tensor:
        """(B, H): final state of each sequence, from the states stored when sequences ended."""
        return torch.cat(states[::-1]).index_select(0, self.place)
