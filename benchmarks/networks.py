"""What a gradient with respect to a batch costs: maxflip's networks beside torch's own GRU and LSTM, on one core.

    python -m benchmarks.networks

Processor time, the best of several turns taken one after the other. Prints a table in Markdown.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from maxflip.networks import GRUD, SequenceTransformer, SparseTimeLSTM

SIZES = [(16, 75, 33, 48), (300, 75, 33, 48), (300, 75, 169, 128), (2000, 48, 33, 48)]
TURNS = 7


def contenders(batch: int, steps: int, inputs: int, hidden: int) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """What maps x and lengths to one output per sequence."""
    draw = torch.Generator().manual_seed(0)
    observed = torch.rand(batch, steps, inputs, generator=draw) < 0.3
    times = torch.rand(batch, steps, generator=draw).cumsum(dim=1)
    gru = torch.nn.GRU(inputs, hidden, batch_first=True).requires_grad_(False)
    lstm = torch.nn.LSTM(inputs, hidden, batch_first=True).requires_grad_(False)
    gru_d = GRUD(inputs, hidden).requires_grad_(False)
    plain = SparseTimeLSTM(inputs, hidden).requires_grad_(False)
    kinds = SparseTimeLSTM(inputs, hidden, sparse=[0, 1, 2], time=[3]).requires_grad_(False)
    transformer = SequenceTransformer(inputs, hidden).requires_grad_(False)
    return {
        "nn.GRU": lambda x, _: gru(x)[0][:, -1],
        "nn.LSTM": lambda x, _: lstm(x)[0][:, -1],
        "GRUD": lambda x, length: gru_d(x, observed, times, length),
        "SparseTimeLSTM, dense columns": lambda x, length: plain(x, observed, length),
        "SparseTimeLSTM, all kinds": lambda x, length: kinds(x, observed, length),
        "SequenceTransformer": lambda x, length: transformer(x, observed, times, length),
    }


def seconds(call: Callable[[Tensor, Tensor], Tensor], x: Tensor, length: Tensor) -> float:
    begin = time.process_time()
    torch.autograd.grad(call(x, length).sum(), x)
    return time.process_time() - begin


def main() -> None:
    torch.set_num_threads(1)
    print("| sequences x steps x features, hidden | network | ms | of nn.GRU | of nn.LSTM | ms, lengths 1 to all |")
    print("| --- | --- | --- | --- | --- | --- |")
    for batch, steps, inputs, hidden in SIZES:
        draw = torch.Generator().manual_seed(1)
        x = torch.randn(batch, steps, inputs, generator=draw, requires_grad=True)
        full, mixed = torch.full((batch,), steps), torch.randint(1, steps + 1, (batch,), generator=draw)
        calls = contenders(batch, steps, inputs, hidden)
        best = {(name, which): float("inf") for name in calls for which in ("full", "mixed")}
        for _ in range(TURNS):
            for name, call in calls.items():
                for which, length in (("full", full), ("mixed", mixed)):
                    best[name, which] = min(best[name, which], seconds(call, x, length))
        for name in calls:
            took = best[name, "full"]
            ratios = " | ".join(f"{took / best[other, 'full']:.1f}" for other in ("nn.GRU", "nn.LSTM"))
            unlike = "" if name.startswith("nn.") else f"{1000 * best[name, 'mixed']:.0f}"
            print(f"| {batch} x {steps} x {inputs}, {hidden} | {name} | {1000 * took:.0f} | {ratios} | {unlike} |")


if __name__ == "__main__":
    main()
