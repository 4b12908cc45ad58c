"""What a gradient with respect to a batch costs: maxflip's networks beside torch's own GRU and LSTM, on one core.

    python -m research.benchmarks.networks [--keep]

Processor time, the best of several turns taken one after the other.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from maxflip.networks import GRUD, SequenceTransformer, SparseTimeLSTM
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows, began = [], time.monotonic()
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
            rows.append(
                {
                    "sequences": batch,
                    "steps": steps,
                    "inputs": inputs,
                    "hidden": hidden,
                    "network": name,
                    "ms": 1000 * took,
                    "of_gru": took / best["nn.GRU", "full"],
                    "of_lstm": took / best["nn.LSTM", "full"],
                    "mixed_ms": None if name.startswith("nn.") else 1000 * best[name, "mixed"],
                }
            )
            tell(str(rows[-1]))
    made = made_here("python -m research.benchmarks.networks --keep", time.monotonic() - began)
    report({"networks_speed": rows}, made, ["networks.speed"], keep=given.keep)


if __name__ == "__main__":
    main()
