"""Prices from tensors to judged plan, on any device: `python -m benchmarks.prices_scale SAMPLES [--device cuda]`.

A tanh network 20-64-64-2 of float32 with random weights, 20 normal features, a squared budget each of unlike size. One
solve warms up (kernels are loaded, caches filled); the second is measured: from a Problem to a judged Plan. Its
time is also given in forward+backward passes over the samples that are open, measured in the same run.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import torch
from torch import nn

from maxflip import Prices, Problem, TorchClassifier, solve
from maxflip.watch import Event, Finished, Started

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
    parser = argparse.ArgumentParser()
    parser.add_argument("samples", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--chunk", type=int, default=4096)
    given = parser.parse_args()
    net = network().to(given.device)
    problem = problem_of(given.samples, net, batch_size=max(8192, given.chunk))
    solver = Prices(chunk=given.chunk)
    if given.device != "cpu":
        solve(problem, solver)
        torch.cuda.reset_peak_memory_stats()
    stages = Stages()
    began = synchronised()
    plan = solve(problem, solver, watch=stages)
    seconds = synchronised() - began
    is_open = plan.fates != "already"
    x = torch.tensor(problem.cohort.values[is_open], dtype=torch.float32, device=given.device)
    single = one_pass(net, x, given.chunk)
    gradients, forwards = plan.trace["gradients"][-1] / len(x), plan.trace["forwards"][-1] / len(x)
    estimate = plan.estimate or float("nan")
    print(f"{given.samples:,} samples on {given.device}, {len(x):,} of them open: {plan.count:,} flipped")
    print(f"{plan.count / estimate:.5f} of the estimate {estimate:,.1f}")
    print(f"{seconds:.2f} s = {seconds / single:.0f} passes of {single:.4f} s over those that are open")
    print(f"per open sample: {gradients:.1f} gradients, {forwards:.1f} forwards")
    for stage, spent in stages.seconds.items():
        print(f"  {stage}: {spent:.2f} s")
    main_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    own_memory = torch.cuda.max_memory_allocated() / 1024**3 if given.device != "cpu" else 0.0
    print(f"peak: {main_memory:.2f} GiB of main memory, {own_memory:.2f} GiB of the GPU's")


if __name__ == "__main__":
    main()
