"""Labelled sequences as float32 tensors, one under the other, from which batches are padded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maxflip.data.inputs import Batch, similar
from maxflip.datasets import Sequences
from maxflip.networks import SequenceNetwork

MOST_STEPS = 50_000  # in a batch that is only looked at, padding included
POOL = 16  # batches whose sequences are sorted by length before they are cut


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and standard deviation of what was measured, (F,), and of the static features, (S,); none of them 0."""

    mean: Tensor
    spread: Tensor
    static_mean: Tensor
    static_spread: Tensor


@dataclass(frozen=True, eq=False)
class Packed:
    """values (N, F): NaN where missing   times (N,)   begin, lengths (n,)   static (n, S)   labels (n,)"""

    values: Tensor
    times: Tensor
    begin: Tensor
    lengths: Tensor
    static: Tensor
    labels: Tensor

    @classmethod
    def of(cls, data: Sequences) -> Packed:
        lengths = torch.tensor([len(steps) for steps in data.values])
        return cls(
            values=torch.tensor(np.concatenate(data.values), dtype=torch.float32),
            times=torch.tensor(np.concatenate(data.times), dtype=torch.float32),
            begin=torch.cumsum(lengths, 0) - lengths,
            lengths=lengths,
            static=torch.tensor(data.static, dtype=torch.float32),
            labels=torch.tensor(data.labels),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: Tensor) -> Packed:
        """Some of the sequences, in the order of `rows`."""
        lengths = self.lengths[rows]
        begin = torch.cumsum(lengths, 0) - lengths
        at = torch.repeat_interleave(self.begin[rows] - begin, lengths) + torch.arange(int(lengths.sum()))
        return Packed(self.values[at], self.times[at], begin, lengths, self.static[rows], self.labels[rows])

    def moments(self) -> Moments:
        mean = self.values.nanmean(0)
        spread = (self.values - mean).square().nanmean(0).sqrt()
        return Moments(mean, _some(spread), self.static.mean(0), _some(self.static.std(0)))

    def batch(self, rows: Tensor) -> Batch:
        """These sequences as maxflip gives them to a model: padded to the longest of them."""
        length = self.lengths[rows]
        step = torch.arange(int(length.max()))
        at = self.begin[rows][:, None] + torch.minimum(step, length[:, None] - 1)
        x = self.values[at]
        observed = ~x.isnan() & (step < length[:, None])[:, :, None]
        return Batch(torch.where(observed, x, 0.0), observed, self.times[at], length, self.static[rows])

    def shuffled(self, rows: Tensor, size: int, chance: torch.Generator) -> Iterator[Tensor]:
        """All of `rows`, in random batches of sequences of similar lengths."""
        order = rows[torch.randperm(len(rows), generator=chance)]
        pools = [pool[torch.argsort(self.lengths[pool], stable=True)] for pool in torch.split(order, size * POOL)]
        cut = [part for pool in pools for part in torch.split(pool, size)]
        for i in torch.randperm(len(cut), generator=chance).tolist():
            yield cut[i]


def _some(spread: Tensor) -> Tensor:
    """A column that never varies is divided by 1."""
    return torch.where(spread > 0, spread, 1.0)


def logits_of(net: SequenceNetwork, data: Packed, rows: Tensor) -> NDArray[np.float64]:
    """(rows, k), by the network as it stands in eval mode."""
    was_training = net.training
    net.eval()
    parts = similar(data.lengths[rows].numpy(), MOST_STEPS)
    with torch.no_grad():
        found = [called(net, data.batch(rows[torch.as_tensor(part)])) for part in parts]
    net.train(was_training)
    out = torch.empty(len(rows), found[0].shape[1], dtype=torch.float64)
    out[torch.as_tensor(np.concatenate(parts))] = torch.cat(found).double()
    return out.numpy()


def called(net: SequenceNetwork, batch: Batch) -> Tensor:
    """The network's answer: it says itself what of a batch it takes."""
    answer: Tensor = net(*(getattr(batch, name) for name in net.takes))
    return answer
