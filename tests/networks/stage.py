"""Random sequences with missing values, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from maxflip.networks import GRUD, SequenceNetwork, SequenceTransformer, SparseTimeLSTM

F, S, H = 5, 3, 8
NETS = ["GRUD", "SparseTimeLSTM", "SequenceTransformer", "a GRUD of three classes with names", "a plain LSTM"]


@dataclass(frozen=True)
class Batch:
    x: Tensor
    observed: Tensor
    time: Tensor
    length: Tensor
    static: Tensor

    def sample(self, j: int) -> Batch:
        """Sequence j alone, without padding."""
        n, one = int(self.length[j]), slice(j, j + 1)
        return Batch(
            self.x[one, :n], self.observed[one, :n], self.time[one, :n], self.length[one], self.static[one]
        )  # fmt: skip

    def padded(self, more: int) -> Batch:
        last = self.time[:, -1:].expand(-1, more)
        blank = self.x.new_zeros(len(self.x), more, self.x.shape[2])
        return Batch(
            torch.cat([self.x, blank], dim=1),
            torch.cat([self.observed, blank.bool()], dim=1),
            torch.cat([self.time, last], dim=1),
            self.length,
            self.static,
        )

    def double(self) -> Batch:
        return Batch(self.x.double(), self.observed, self.time.double(), self.length, self.static.double())

    def taken(self, rows: Sequence[int]) -> Batch:
        rows = list(rows)
        return Batch(self.x[rows], self.observed[rows], self.time[rows], self.length[rows], self.static[rows])


def ask(net: SequenceNetwork, batch: Batch) -> Tensor:
    result: Tensor = net(*(getattr(batch, name) for name in net.takes))
    return result


def random_batch(seed: int = 0, n: int = 7, steps: int = 6, dtype: torch.dtype = torch.float64) -> Batch:
    """Raw units far from 0 and 1; lengths from 1 to `steps`; the first sequence has no value at all."""
    draw = torch.Generator().manual_seed(seed)
    length = torch.randint(1, steps + 1, (n,), generator=draw)
    length[0], length[1] = 1, steps
    exists = torch.arange(steps) < length[:, None]
    observed = (torch.rand(n, steps, F, generator=draw) < 0.6) & exists[:, :, None]
    observed[0] = False
    x = 50 + 10 * torch.randn(n, steps, F, generator=draw, dtype=dtype)
    time = torch.rand(n, steps, generator=draw, dtype=dtype).mul(600).cumsum(dim=1)
    time = torch.where(exists, time, time.gather(1, length[:, None] - 1))
    static = 100 * torch.randn(n, S, generator=draw, dtype=dtype)
    return Batch(torch.where(observed, x, 0.0), observed, time, length, static)


def make(name: str, dtype: torch.dtype = torch.float64, seed: int = 0) -> SequenceNetwork:
    """A network with random numbers everywhere, its biases too."""
    raw: dict[str, Any] = {"shift": [48.0, 49.0, 50.0, 51.0, 52.0], "scale": [9.0, 10.0, 11.0, 12.0, 13.0]}
    still: dict[str, Any] = {"static_shift": [1.0, 2.0, 3.0], "static_scale": [90.0, 100.0, 110.0]}
    net: SequenceNetwork
    if name == "GRUD":
        net = GRUD(F, H, static=S, means=[50.0, 47.0, 53.0, 44.0, 56.0], time_scale=60.0, **raw, **still)
    elif name == "SparseTimeLSTM":
        net = SparseTimeLSTM(F, H, 3, S, sparse=[1, 3], time=[4], static_time=[2], **raw, **still)
    elif name == "SequenceTransformer":
        net = SequenceTransformer(F, H, 4, S, heads=2, time_scale=60.0, **raw, **still)
    elif name == "a plain LSTM":
        net = SparseTimeLSTM(F, H, **raw)
    else:
        net = GRUD(["a", "b", "c", "d", "é"], H, ["x", "y", "z"], time_scale=60.0, **raw)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=draw))
    return net.to(dtype).eval()
