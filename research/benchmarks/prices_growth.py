"""One size of the growth in prices.py, in a process of its own: `python -m research.benchmarks.prices_growth SAMPLES`.

Normal samples of 20 features through a 64-64 tanh network (as in scale.py), one squared budget per feature,
their amounts lognormal; two threads. Prints a JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

from maxflip import Prices, Problem, TorchClassifier, solve
from maxflip import solving as pipeline
from maxflip._util.engine import Local
from maxflip._util.events import silent
from maxflip._util.types import Rows
from maxflip.judge import standing
from maxflip.select.choose import choose
from maxflip.solvers.prices import column_generation

FEATURES, CHUNK, PASSES = 20, 4096, 5
THREADS = 2


def problem_of(samples: int) -> tuple[Problem, nn.Module]:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(samples, FEATURES))
    net = nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    for parameter in net.parameters():
        parameter.data *= 2  # a freshly initialised network is nearly flat
    amounts = samples / 200 * np.random.default_rng(1).lognormal(size=FEATURES)
    budgets = {f"x{i}": float(a) for i, a in enumerate(amounts)}
    classifier = TorchClassifier(net.eval(), output="logits")
    return Problem(classifier=classifier, cohort=x, target=1, margin=0.1, budgets=budgets), net


def one_pass(net: nn.Module, x: torch.Tensor) -> tuple[float, float]:
    """Seconds, and seconds of processor time, of a forward and a backward pass, in chunks on the same threads."""

    def work(rows: Rows) -> torch.Tensor:
        part = x[torch.as_tensor(rows)].requires_grad_(True)
        z = net(part)
        return torch.autograd.grad((z[:, 1] - z[:, 0]).sum(), part)[0]

    wall, own = time.monotonic(), time.process_time()
    chunks = [np.arange(begin, min(begin + CHUNK, len(x))) for begin in range(0, len(x), CHUNK)]
    Local().map(work, chunks, stage="", watch=silent)
    return time.monotonic() - wall, time.process_time() - own


@contextmanager
def choosing() -> Iterator[list[float]]:
    """Seconds of processor time that choosing whole samples takes."""
    spent: list[float] = []

    def timed(*given: Any, **named: Any) -> Any:
        began = time.process_time()
        chosen = choose(*given, **named)
        spent.append(time.process_time() - began)
        return chosen

    with patch.object(pipeline, "choose", timed), patch.object(column_generation, "choose", timed):
        yield spent


def main() -> None:
    samples = int(sys.argv[1])
    torch.set_num_threads(THREADS)
    problem, net = problem_of(samples)
    is_open = standing(problem, Local(), silent).open
    x = torch.tensor(problem.cohort.values[is_open], dtype=torch.float32)
    solve(problem_of(200)[0], Prices())  # so that nothing is paid for the first time below
    before = [one_pass(net, x) for _ in range(PASSES + 1)][1:]
    wall, own = time.monotonic(), time.process_time()
    with choosing() as spent:
        plan = solve(problem, Prices())
    wall, own = time.monotonic() - wall, time.process_time() - own
    after = [one_pass(net, x) for _ in range(PASSES)]
    pass_wall, pass_own = np.median([*before, *after], axis=0).tolist()
    answer = {
        "samples": samples,
        "open": int(is_open.sum()),
        "count": plan.count,
        "estimate": plan.estimate,
        "seconds": wall,
        "processor_seconds": own,
        "pass_seconds": pass_wall,
        "pass_processor_seconds": pass_own,
        "gradients": plan.trace["gradients"][-1] / int(is_open.sum()),
        "choosing_processor_seconds": sum(spent),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
