"""The paper's four algorithms, what they cost and what they find.

    python -m research.benchmarks.paper_solvers --data DIR

speed    processor seconds per inner iteration for 300 to 3,000 samples, and how they grow
memory   peak memory of CCMS, each size in a process of its own
runs     one run of each with the paper's own settings, all iterations
credit   credit_default: all four, tuned with the same allowance of gradients, beside Nearest and Prices
longer   the same with more settings and iterations, without CCMS

`--only speed,memory` for some of them; `--keep` writes the result files and renders docs/results/paper_solvers.md.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import BCMS, CCMS, KL, MS, Nearest, Plan, Prices, Problem, TorchClassifier, Tuned, solve, tune
from maxflip.solvers import Solver
from maxflip.solvers.paper import loop
from maxflip.study.sizing import SHARES, size_budgets
from research.benchmarks.flips import MARGIN, TARGET, credit_default, synthetic, trained, unwanted
from research.benchmarks.prices_cases import PERSONAL
from research.benchmarks.sections import Section, parser_of, run, tell
from research.evidence.report import Files

FOUR: tuple[Any, ...] = (MS, BCMS, CCMS, KL)
SIZES = (300, 600, 900, 3_000)
FEATURES = 19  # that may change
ROUNDS, INNER = 5, 60
TRAINED, SAMPLES = 24_000, 300
OTHERS: dict[str, Solver] = {
    "Nearest, unit prices": Nearest(prices="unit"),
    "Nearest, 1/B": Nearest(),
    "Prices": Prices(),
}
MORE_SHARES = (0.1, *SHARES)  # at 40 % and above nearly everyone can be flipped; a tenth tells more


@dataclass(frozen=True)
class Asked:
    data: Path
    workers: int


def speed(asked: Asked) -> Files:  # noqa: ARG001
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
        tell(f"CCMS {n}: {seconds['CCMS', n]}")
    rows = []
    for kind in FOUR:
        of_size = [float(np.median(seconds[kind.__name__, n])) for n in SIZES]
        rows.append(
            {
                "algorithm": kind.__name__,
                "samples": list(SIZES),
                "milliseconds": [1000 * s for s in of_size],
                "exponent": math.log(of_size[-1] / of_size[0]) / math.log(SIZES[-1] / SIZES[0]),
                "exponent_of_the_last_two": math.log(of_size[-1] / of_size[-2]) / math.log(SIZES[-1] / SIZES[-2]),
            }
        )
    began, own = time.monotonic(), time.process_time()
    plan = solve(growing_problem(SIZES[0]), BCMS.paper())
    clock, own = time.monotonic() - began, time.process_time() - own
    one = {"samples": SIZES[0], "features": FEATURES, "count": plan.count, "processor_seconds": own, "seconds": clock}
    return {"paper_speed": rows, "paper_one_run": [one]}


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


def memory(asked: Asked) -> Files:  # noqa: ARG001
    rows = []
    for n in (300, 900, 3_000):
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawn) as pool:
            before, after, seconds = pool.submit(_peak, n).result()
        rows.append({"samples": n, "draws": 100, "before_gb": before, "peak_gb": after, "processor_seconds": seconds})
        tell(str(rows[-1]))
    return {"paper_memory": rows}


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


def runs(asked: Asked) -> Files:
    credit = credit_problem(asked.data)
    problem = credit.problem.changed(budgets=size_budgets(credit.problem).budgets[0.6])
    rows = []
    for kind in (BCMS, KL, MS, CCMS):
        began, own = time.monotonic(), time.process_time()
        plan = solve(problem, kind.paper())
        clock, own = time.monotonic() - began, time.process_time() - own
        rows.append(_run_row(kind.paper(), plan, own, clock))
        tell(str(rows[-1]))
    return {"paper_runs": rows}


def _run_row(solver: Any, plan: Plan, own: float, clock: float) -> dict[str, Any]:
    return {
        "algorithm": type(solver).__name__,
        "outer": solver.outer,
        "inner": solver.inner,
        "made": sum(plan.trace["inner"]),
        "count": plan.count,
        "selected": [int(count) for count in plan.trace["selected"]],
        "diverged": next((n for n in plan.notices if "diverged" in n), None),
        "processor_seconds": own,
        "seconds": clock,
    }


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


def credit(asked: Asked) -> Files:
    return _tuned(asked, Tuning(FOUR, settings=10, outer=5, inner=60), "paper_credit")


def longer(asked: Asked) -> Files:
    """Without CCMS, which would take most of an hour."""
    return _tuned(asked, Tuning((MS, BCMS, KL), settings=20, outer=10, inner=100), "paper_longer")


def _tuned(asked: Asked, tuning: Tuning, name: str) -> Files:
    made = credit_problem(asked.data)
    sizing = size_budgets(made.problem, MORE_SHARES)
    rows: list[dict[str, Any]] = []
    for share in MORE_SHARES:
        problem = made.problem.changed(budgets=sizing.budgets[share])
        for kind in tuning.kinds:
            began = _processor_seconds()
            given = kind(outer=tuning.outer, inner=tuning.inner)
            one = tune(problem, given, grid="scale_free", allowance=tuning.allowance, workers=asked.workers)
            rows.append(_tried_row(share, one, _processor_seconds() - began))
            tell(str(rows[-1]))
        for solver, other in OTHERS.items():
            rows.append({"share": share, "solver": solver, "count": solve(problem, other).count})
            tell(str(rows[-1]))
    setting = {
        "accuracy": made.accuracy,
        "recognised": made.found,
        "samples": SAMPLES,
        "unlimited_a": sizing.a,
        "unlimited_count": sizing.plan.count,
        "unlimited_drawn": sum(sizing.plan.spend.values()),
        "settings": tuning.settings,
        "outer": tuning.outer,
        "inner": tuning.inner,
    }
    return {name: rows, f"{name}_setting": [setting]}


def _processor_seconds() -> float:
    """Of this process and of workers that are done."""
    return sum(os.times()[:4])


def _tried_row(share: float, one: Tuned, seconds: float) -> dict[str, Any]:
    best = next(t for t in one.trials if t.solver == one.solver)
    return {
        "share": share,
        "solver": type(one.solver).__name__,
        "count": one.plan.count,
        "tried": [t.count for t in one.trials],
        "best": ", ".join(f"{name} {getattr(one.solver, name)}" for name in one.options),
        "spent": best.spent,
        "processor_seconds": seconds,
    }


SECTIONS = {
    "speed": Section(speed, "paper.speed"),
    "memory": Section(memory, "paper.memory"),
    "runs": Section(runs, "paper.runs"),
    "credit": Section(credit, "paper.credit"),
    "longer": Section(longer, "paper.longer"),
}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the public data sets")
    parser.add_argument("--workers", type=int, default=1, help="processes that tune")
    run("paper_solvers", parser, SECTIONS, lambda given: Asked(given.data, given.workers))


if __name__ == "__main__":
    main()
