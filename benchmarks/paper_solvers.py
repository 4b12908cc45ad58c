"""The paper's four algorithms, what they cost and what they find: `python -m benchmarks.paper_solvers --data DIR`.

speed    processor seconds per inner iteration for 300 to 3,000 samples, and how they grow
memory   peak memory of CCMS, each size in a process of its own
runs     one run of each with the paper's own settings, all iterations
credit   credit_default: all four, tuned with the same allowance of gradients, beside Nearest and Prices
longer   the same with more settings and iterations, without CCMS

`--only speed,memory` for some of them; `--page docs/results/paper_solvers.md` writes them between their marks there.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.flips import MARGIN, TARGET, credit_default, synthetic, trained, unwanted
from benchmarks.page import put
from benchmarks.prices_cases import PERSONAL, table
from maxflip import BCMS, CCMS, KL, MS, Nearest, Plan, Prices, Problem, TorchClassifier, Tuned, solve, tune
from maxflip.sizing import SHARES, size_budgets
from maxflip.solvers.paper import loop

FOUR: tuple[Any, ...] = (MS, BCMS, CCMS, KL)
SIZES = (300, 600, 900, 3_000)
FEATURES = 19  # that may change
ROUNDS, INNER = 5, 60
TRAINED, SAMPLES = 24_000, 300
MORE_SHARES = (0.1, *SHARES)  # at 40 % and above nearly everyone can be flipped; a tenth tells more


@dataclass(frozen=True)
class Asked:
    data: Path
    workers: int


def speed(asked: Asked) -> str:  # noqa: ARG001
    """Sizes take turns, so that what else the machine does touches all of them alike."""
    seconds: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for kind in (MS, BCMS, KL):
            for n in SIZES:
                seconds.setdefault((kind.__name__, n), []).append(
                    _per_inner_iteration(kind.paper(outer=1, inner=INNER), n)
                )
    for n in SIZES:
        seconds["CCMS", n] = [_per_inner_iteration(CCMS.paper(outer=1, inner=3 if n < SIZES[-1] else 1), n)]
        _tell(f"CCMS {n}: {seconds['CCMS', n]}")
    lines = []
    for kind in FOUR:
        of_size = [float(np.median(seconds[kind.__name__, n])) for n in SIZES]
        whole = math.log(of_size[-1] / of_size[0]) / math.log(SIZES[-1] / SIZES[0])
        last = math.log(of_size[-1] / of_size[-2]) / math.log(SIZES[-1] / SIZES[-2])
        lines.append([kind.__name__, *(f"{1000 * s:,.2f}" for s in of_size), f"{whole:.2f}", f"{last:.2f}"])
    head = ["algorithm", *(f"n = {n:,}" for n in SIZES), "exponent, 300 to 3,000", "exponent, 900 to 3,000"]
    began, own = time.monotonic(), time.process_time()
    plan = solve(growing_problem(SIZES[0]), BCMS.paper())
    clock, own = time.monotonic() - began, time.process_time() - own
    said = (
        f"One run of `BCMS.paper()` on {SIZES[0]} x {FEATURES} (10 x 100 iterations, {plan.count} flipped): "
        f"**{own:.1f} s of processor time**, {clock:.1f} s by the clock (bar: 10 s on two cores).\n"
    )
    return "Milliseconds of processor time per inner iteration:\n\n" + table(head, lines) + "\n" + said


def _per_inner_iteration(solver: Any, n: int) -> float:
    with patch.object(loop, "time", SimpleNamespace(monotonic=time.process_time)):
        plan = solve(growing_problem(n), solver)
    return float(plan.trace["seconds_inner"][0])


@cache
def growing_problem(n: int) -> Problem:
    """Budgets that grow with the number of samples."""
    net, x = _growing_net()
    budgets = {f"x{i}": 0.1 * n for i in range(FEATURES)}
    classifier = TorchClassifier(net, output="logits")
    return Problem(classifier=classifier, cohort=unwanted(net, x, n), target=TARGET, margin=MARGIN, budgets=budgets)


@cache
def _growing_net() -> tuple[nn.Module, NDArray[np.float64]]:
    x, y = synthetic(2)
    return trained(x, y, nn.Tanh, 2), x


def memory(asked: Asked) -> str:  # noqa: ARG001
    lines = []
    for n in (300, 900, 3_000):
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawn) as pool:
            before, after, seconds = pool.submit(_peak, n).result()
        lines.append([f"{n:,}", f"{n * n * 100:,}", f"{before:.2f} GB", f"{after:.2f} GB", f"{seconds:.1f}"])
        _tell(" | ".join(lines[-1]))
    head = [
        "n = K",
        "noise numbers per inner iteration",
        "peak before",
        "peak",
        "processor seconds per inner iteration",
    ]
    return table(head, lines)


def _peak(n: int) -> tuple[float, float, float]:
    torch.set_num_threads(1)
    growing_problem(n)
    before = _peak_gb()
    seconds = _per_inner_iteration(CCMS.paper(outer=1, inner=2 if n < SIZES[-1] else 1), n)
    return before, _peak_gb(), seconds


def _peak_gb() -> float:
    """Of this process alone: getrusage would also count what its parent had when it was forked off."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024 / 1e9  # type: ignore[index]


@dataclass(frozen=True, eq=False)
class Credit:
    """problem: amounts do not matter   accuracy: on rows the network was not trained on   found: those to pick from"""

    problem: Problem
    accuracy: float
    found: int


def credit_problem(data: Path) -> Credit:
    """Of the rows that the network was not trained on, defaulters whom it recognises."""
    x, y = credit_default(data)
    order = np.random.default_rng(0).permutation(len(x))
    known, rest = order[:TRAINED], order[TRAINED:]
    net = trained(x[known], y[known], nn.Tanh, 2)
    with torch.no_grad():
        predicted = net(torch.tensor(x[rest], dtype=torch.float32)).argmax(1).numpy()
    rows = rest[(predicted == y[rest]) & (y[rest] != TARGET)]
    changeable = [i for i in range(x.shape[1]) if i not in PERSONAL]
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=x[rows[:SAMPLES]],
        target=TARGET,
        margin=MARGIN,
        budgets={f"x{i}": 1.0 for i in changeable},
    )
    return Credit(problem, float((predicted == y[rest]).mean()), len(rows))


def runs(asked: Asked) -> str:
    credit = credit_problem(asked.data)
    problem = credit.problem.changed(budgets=size_budgets(credit.problem).budgets[0.6])
    lines = []
    for kind in (BCMS, KL, MS, CCMS):
        began, own = time.monotonic(), time.process_time()
        plan = solve(problem, kind.paper())
        clock, own = time.monotonic() - began, time.process_time() - own
        lines.append(_run_line(kind.paper(), plan, own, clock))
        _tell(" | ".join(lines[-1]))
    head = ["algorithm", "iterations", "made", "flipped", "after each outer iteration", "how it ended"]
    head += ["processor seconds", "seconds by the clock"]
    return table(head, lines)


def _run_line(solver: Any, plan: Plan, own: float, clock: float) -> list[str]:
    trace = plan.trace
    counts = " ".join(str(c) for c in trace["selected"])
    said = next((n for n in plan.notices if "diverged" in n), "ran to its end")
    return [
        type(solver).__name__,
        f"{solver.outer} x {solver.inner:,}",
        f"{sum(trace['inner']):,}",
        str(plan.count),
        counts,
        said,
        f"{own:,.1f}",
        f"{clock:,.0f}",
    ]


@dataclass(frozen=True)
class Tuning:
    """Settings of outer x inner iterations each, drawn from the grid, for some of the four."""

    kinds: tuple[Any, ...]
    settings: int
    outer: int
    inner: int

    @property
    def allowance(self) -> int:
        return self.settings * self.outer * self.inner


def credit(asked: Asked) -> str:
    return _tuned(asked, Tuning(FOUR, settings=10, outer=5, inner=60))


def longer(asked: Asked) -> str:
    """Without CCMS, which would take most of an hour."""
    return _tuned(asked, Tuning((MS, BCMS, KL), settings=20, outer=10, inner=100))


def _tuned(asked: Asked, tuning: Tuning) -> str:
    made = credit_problem(asked.data)
    sizing = size_budgets(made.problem, MORE_SHARES)
    rows, tried = [], []
    for share in MORE_SHARES:
        problem = made.problem.changed(budgets=sizing.budgets[share])
        counts = []
        for kind in tuning.kinds:
            began = _processor_seconds()
            given = kind(outer=tuning.outer, inner=tuning.inner)
            one = tune(problem, given, grid="scale_free", allowance=tuning.allowance, workers=asked.workers)
            counts.append(one.plan.count)
            tried.append(_tried_line(share, one, _processor_seconds() - began))
            _tell(" | ".join(tried[-1]))
        counts += [solve(problem, Nearest(prices=prices)).count for prices in ("unit", "budgets")]
        rows.append([f"{100 * share:.0f} %", *map(str, counts), str(solve(problem, Prices()).count)])
        _tell(" | ".join(rows[-1]))
    head = ["budgets", *(kind.__name__ for kind in tuning.kinds), "Nearest, unit prices", "Nearest, 1/B", "Prices"]
    said = (
        f"Accuracy of the network on the rows it was not trained on: {100 * made.accuracy:.1f} %; {made.found} of them "
        f"are defaulters whom it recognises, {SAMPLES} are the cohort. Unlimited KL (a = {sizing.a:g}) flips "
        f"{sizing.plan.count} of {SAMPLES} and draws {sum(sizing.plan.spend.values()):,.0f} squared standard "
        f"deviations in all. Allowance: {tuning.allowance:,} gradients per sample for each algorithm and budget: "
        f"{tuning.settings} settings of {tuning.outer} x {tuning.inner} iterations, drawn from the grid (seed 0).\n"
    )
    head_tried = ["budgets", "algorithm", "flipped by each setting", "the best setting"]
    head_tried += ["mean share of the budgets it spends", "processor seconds"]
    return said + "\n" + table(head, rows) + "\n" + table(head_tried, tried)


def _processor_seconds() -> float:
    """Of this process and of workers that are done."""
    return sum(os.times()[:4])


def _tried_line(share: float, one: Tuned, seconds: float) -> list[str]:
    best = next(t for t in one.trials if t.solver == one.solver)
    options = ", ".join(f"{name} {getattr(one.solver, name)}" for name in one.options)
    counts = " ".join(str(t.count) for t in one.trials)
    kind = type(one.solver).__name__
    return [f"{100 * share:.0f} %", kind, counts, options, f"{100 * best.spent:.0f} %", f"{seconds:,.0f}"]


SECTIONS: dict[str, Callable[[Asked], str]] = {
    "speed": speed,
    "memory": memory,
    "runs": runs,
    "credit": credit,
    "longer": longer,
}


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the public data sets")
    parser.add_argument("--only", default=",".join(SECTIONS), help="some of " + ", ".join(SECTIONS))
    parser.add_argument("--workers", type=int, default=1, help="processes that tune")
    parser.add_argument("--page", type=Path, help="a page with the sections' marks")
    given = parser.parse_args()
    unknown = set(given.only.split(",")) - set(SECTIONS)
    if unknown:
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, check=True, capture_output=True, text=True).stdout.strip()
    for name in given.only.split(","):
        began = time.monotonic()
        text = SECTIONS[name](Asked(given.data, given.workers))
        text = f"*{date.today():%Y-%m-%d}, commit {commit}; {time.monotonic() - began:,.0f} s.*\n\n{text}"
        sys.stdout.write(f"## {name}\n\n{text}\n")
        if given.page:
            put(given.page, "paper_solvers.py", name, text)


if __name__ == "__main__":
    main()
