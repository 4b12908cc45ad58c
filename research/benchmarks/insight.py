"""What a report's insight costs beside the solve; writes docs/results/data/insight.parquet.

Seconds of processor time, so that a busy machine does not show in them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from maxflip import Problem, TorchClassifier, look, solve
from maxflip._util.events import silent
from maxflip.cli.demo import write_demo_inputs
from maxflip.io.job.read import LARGE, read_job
from maxflip.study.outlook import SCALES, outlook_of
from maxflip.study.plausibility import MOST_REAL, nearest
from research.evidence.files import made_here, write

FEATURES = 20


def seconds_of(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def demo() -> Problem:
    with tempfile.TemporaryDirectory() as folder:
        job = read_job(write_demo_inputs(Path(folder)))
        return job.problem(job.read_cohort(), job.load_classifier(silent))


def largest_by_default() -> Problem:
    """As many samples as a job may have and still gets a frontier without asking, and a small network."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, 2))
    x = np.random.default_rng(0).normal(size=(LARGE, FEATURES))
    budgets = {f"x{i}": LARGE / 100 for i in range(FEATURES)}
    classifier = TorchClassifier(net, output="logits")
    return Problem(classifier=classifier, cohort=x, target=1, margin=0.1, budgets=budgets)


def measured(name: str, problem: Problem) -> dict[str, Any]:
    plan, solving = seconds_of(lambda: solve(problem))
    _, looking = seconds_of(lambda: look(problem, plan, scales=None))
    (ahead, _), scaling = seconds_of(lambda: outlook_of(problem, plan, SCALES))
    sizes = {"case": name, "samples": len(problem), "features": len(problem.cohort.features), "picked": plan.count}
    times = {"solve_seconds": solving, "plausibility_seconds": looking, "frontier_seconds": scaling}
    return sizes | times | {"frontier_counts": list(ahead.counts)}


def distances() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    points, among = rng.normal(size=(2, MOST_REAL, FEATURES))
    _, took = seconds_of(lambda: nearest(points, among))
    sizes = {"case": "distances alone", "samples": MOST_REAL, "features": FEATURES, "picked": MOST_REAL}
    return sizes | {"plausibility_seconds": took}


def main() -> None:
    began = time.monotonic()
    rows = [measured("demo", demo()), measured("small network", largest_by_default())]
    rows.append(dict.fromkeys(rows[0]) | distances())
    made = made_here("python -m research.benchmarks.insight", time.monotonic() - began)
    write("insight", rows, made)


if __name__ == "__main__":
    main()
