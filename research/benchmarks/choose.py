"""How near to its bound choose comes, and how long that takes: `python -m research.benchmarks.choose [--keep]`.

Squared budgets of unlike size for parts of what all would draw, one candidate for each sample. *Unlike*: each needs
another mix of the budgets; *alike*: all need about the same. Beside it the 0/1 programs alone: swaps are replaced by
nothing from outside.
"""

from __future__ import annotations

import argparse
import math
import time
from unittest import mock

import numpy as np
from torch import nn

from maxflip import Problem, TorchClassifier
from maxflip._util.types import Floats
from maxflip.select import choose
from maxflip.select.relaxation import Candidates, relaxed
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report


def question(changes: Floats, rng: np.random.Generator) -> Problem:
    n, m = changes.shape
    amounts = (changes**2).sum(axis=0) * rng.uniform(0.05, 0.3, m)
    return Problem(
        classifier=TorchClassifier(nn.Linear(m, 2).double(), output="logits"),
        cohort=np.zeros((n, m)),
        target=1,
        margin=0.0,
        budgets={f"x{i}": float(amounts[i]) for i in range(m)},
    )


def timed(problem: Problem, changes: Floats) -> tuple[int, float]:
    began = time.process_time()
    chosen = choose.choose(problem, np.arange(len(changes)), changes)
    return len(chosen), time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_keep(parser)
    given = parser.parse_args()
    rows, start = [], time.monotonic()
    for n in (300, 2000, 13_000, 100_000):
        for m in (1, 5, 20):
            for kind in ("unlike", "alike"):
                rng = np.random.default_rng([n, m])
                mix = rng.normal(size=(n, m)) if kind == "unlike" else rng.uniform(0.7, 1.3, size=(n, m))
                changes = mix * rng.lognormal(size=(n, 1))
                problem = question(changes, rng)
                share = problem.ledger.consumption(changes) / problem.ledger.amounts
                nobody = np.zeros(n, dtype=bool)
                limit = relaxed(Candidates(np.ones(n), share, np.arange(n), nobody))
                bound = math.nan if limit is None else limit.bound
                count, seconds = timed(problem, changes)
                with mock.patch.object(choose, "tabu_search", return_value=None):
                    alone, longer = timed(problem, changes)
                rows.append(
                    {
                        "samples": n,
                        "budgets": m,
                        "flips": kind,
                        "bound": bound,
                        "chosen": count,
                        "seconds": seconds,
                        "programs_alone": alone,
                        "programs_seconds": longer,
                    }
                )
                tell(str(rows[-1]))
    made = made_here("python -m research.benchmarks.choose --keep", time.monotonic() - start)
    report({"choose": rows}, made, ["scale.choose"], keep=given.keep)


if __name__ == "__main__":
    main()
