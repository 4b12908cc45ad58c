"""Whether a rebuilt house gives the same plans: python -m tests.golden save DIR, and later compare DIR.

The questions are those of the sweep (tests/sweep), which do not depend on the library. `save` writes the bytes of
plan.parquet and fates.parquet; `compare` solves again and names every plan that differs. Floating point sums differ
between machines, so both are run on one machine, and DIR is not kept in the repository.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch

from maxflip import BCMS, CCMS, KL, MS, Nearest, Prices, resolve, solve
from maxflip.errors import ProblemError
from maxflip.plan.plan import Plan
from maxflip.solvers import Solver
from tests.sweep.questions import ask

FILES = ("plan.parquet", "fates.parquet")
SEEDS = range(24)  # tables, sequences, linear models, groups, worths, counts, includes and own functions are among them


def plans() -> Iterator[tuple[str, Plan]]:
    """Left out are questions whose budgets do not suffice for those that must be picked."""
    for seed in SEEDS:
        with suppress(ProblemError):
            yield from plans_of(seed)


def plans_of(seed: int) -> Iterator[tuple[str, Plan]]:
    question = ask(seed)
    problem = question.problem()
    solvers: dict[str, Solver] = {"nearest": Nearest(), "ms": MS(), "bcms": BCMS(), "ccms": CCMS(), "kl": KL()}
    for name in ("nearest", ("ms", "bcms", "ccms", "kl")[seed % 4]):
        yield f"{seed}-{name}", solve(problem, solvers[name], seed=seed, **question.allocation())
    if not question.has_function:
        plan = solve(problem, Prices(), seed=seed, **question.allocation())
        yield f"{seed}-prices", plan
        if question.groups is None:
            half = {name: budget.amount / 2 for name, budget in problem.budgets.items()}
            yield f"{seed}-resolved", resolve(problem, plan, budgets=half)


def written() -> Iterator[tuple[str, bytes]]:
    for name, plan in plans():
        with tempfile.TemporaryDirectory() as folder:
            plan.save(Path(folder) / "plan")
            for file in FILES:
                yield f"{name}-{file}", (Path(folder) / "plan" / file).read_bytes()


def main(what: str, where: str) -> int:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    folder = Path(where)
    folder.mkdir(parents=True, exist_ok=True)
    different = []
    for count, (name, data) in enumerate(written(), start=1):
        if what == "save":
            (folder / name).write_bytes(data)
        elif (folder / name).read_bytes() != data:
            different.append(name)
        sys.stdout.write(f"\r{count} files, {len(different)} differ")
    sys.stdout.write("\n" + "".join(f"{name}\n" for name in different))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
