"""Prices from tensors to judged plan, on any device.

    python -m research.benchmarks.prices_scale SAMPLES ... [--device cuda]

A tanh network 20-64-64-2 of float32 with random weights, 20 normal features, a squared budget each of unlike size. One
solve warms up (kernels are loaded, caches filled); the second is measured: from a Problem to a judged Plan. Its
time is also given in forward+backward passes over the samples that are open, measured in the same run.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from maxflip import Prices, Problem, TorchClassifier, solve
from maxflip._util.events import Event, Finished, Started
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report

FEATURES = 20


def network() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    for parameter in net.parameters():
        parameter.data *= 2  # a freshly initialised network is nearly flat
    return net.eval()


def problem_of(samples: int, net: nn.Module, batch_size: int) -> Problem:
    x = np.random.default_rng(0).normal(size=(samples, FEATURES))
    amounts = np.random.default_rng(1).lognormal(0, 1, FEATURES) * samples / 200
    return Problem(
        classifier=TorchClassifier(net, output="logits", batch_size=batch_size),
        cohort=x,
        target=1,
        margin=0.1,
        budgets={f"x{i}": float(amounts[i]) for i in range(FEATURES)},
    )


def synchronised() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.monotonic()


def one_pass(net: nn.Module, x: torch.Tensor, chunk: int) -> float:
    """Seconds of a forward and a backward pass over the rows, the best of three."""
    seconds = []
    for _ in range(3):
        began = synchronised()
        for begin in range(0, len(x), chunk):
            part = x[begin : begin + chunk]
            leaf = part.clone().requires_grad_(True)
            out = net(leaf)
            torch.autograd.grad((out[:, 1] - out[:, 0]).sum(), leaf)
        seconds.append(synchronised() - began)
    return min(seconds)


class Stages:
    """When each stage began and ended."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.seconds: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self.began[event.stage] = time.monotonic()
        if isinstance(event, Finished):
            self.seconds[event.stage] = time.monotonic() - self.began[event.stage]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", type=int, nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--chunk", type=int, default=4096)
    add_keep(parser)
    given = parser.parse_args()
    if given.keep and given.device == "cpu":
        parser.error("--keep is for a GPU; research.benchmarks.prices measures how Prices grows on processors")
    began = time.monotonic()
    rows = [measured(samples, given.device, given.chunk) for samples in given.samples]
    options = f"{' '.join(map(str, given.samples))} --device {given.device} --chunk {given.chunk} --keep"
    made = made_here(f"python -m research.benchmarks.prices_scale {options}", time.monotonic() - began)
    if given.device != "cpu":
        made = replace(made, machine=f"one {torch.cuda.get_device_name(given.device)}, {made.machine}")
    report({"prices_gpu": rows}, made, ["prices.gpu"], keep=given.keep)


def measured(samples: int, device: str, chunk: int) -> dict[str, Any]:
    net = network().to(device)
    problem = problem_of(samples, net, batch_size=max(8192, chunk))
    solver = Prices(chunk=chunk)
    if device != "cpu":
        solve(problem, solver)
        torch.cuda.reset_peak_memory_stats()
    stages = Stages()
    began = synchronised()
    plan = solve(problem, solver, watch=stages)
    seconds = synchronised() - began
    is_open = plan.fates != "already"
    x = torch.tensor(problem.cohort.values[is_open], dtype=torch.float32, device=device)
    row = {
        "samples": samples,
        "open": len(x),
        "count": plan.count,
        "of_estimate": plan.count / (plan.estimate or float("nan")),
        "seconds": seconds,
        "passes": seconds / one_pass(net, x, chunk),
        "gradients": plan.trace["gradients"][-1] / len(x),
        "forwards": plan.trace["forwards"][-1] / len(x),
        "gpu_gib": torch.cuda.max_memory_allocated() / 1024**3 if device != "cpu" else 0.0,
        "main_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
        "stages": stages.seconds,
    }
    tell(str(row))
    return row


if __name__ == "__main__":
    main()
