"""How near the optimum Prices comes for every kind of budget and size: `python -m research.benchmarks.kinds [--keep]`.

A grid of models, kinds of budgets and sizes (kinds_cases.py). Each cell is solved by Prices, by Nearest, and once more
by `resolve` with the same budgets; kinds_reference.py then looks for what the best plan is worth. Networks are solved
once more with three times the effort. Cells are kept in build/kinds, so that the run can be stopped and go on:
`--seconds 600` begins no cell after that time.
With MAXFLIP_DATA the networks are those of credit_default, without it of a generated cohort. Every part of a cell runs
in a process of its own, on one thread, and is stopped after `--limit` seconds of processor time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from maxflip import Nearest, Plan, Prices, Problem, resolve, solve
from maxflip.search.surface import Evaluations, Surface
from research.benchmarks.kinds_cases import HELD_OUT, KINDS, MODELS, Model, question
from research.benchmarks.kinds_reference import FULL, QUICK, reference
from research.benchmarks.sections import add_keep, parser_of, tell
from research.evidence.files import ROOT, commit, made_here
from research.evidence.report import report

CELLS = ROOT / "build" / "kinds"
SIZES = (300, 3000, 30_000)
HELD_OUT_SEED = 7  # no other cell has it
THOROUGH = 3.0  # effort of the second solve
Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    model: str
    kind: str
    samples: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.model}, {self.kind}, {self.samples}, {self.seed}".replace(" ", "_")

    @property
    def file(self) -> Path:
        return CELLS / f"{self.name}.json"

    def flips(self, of: str) -> Path:
        return CELLS / f"{self.name}.{of}.npz"


@cache
def model_of(name: str) -> Model:
    data = os.environ.get("MAXFLIP_DATA")
    return MODELS[name](Path(data) if data else None)


def problem_of(cell: Cell) -> Problem:
    seed = HELD_OUT_SEED if cell.model == HELD_OUT else cell.seed
    return question(model_of(cell.model), cell.kind, cell.samples, seed)


@contextmanager
def counted() -> Iterator[Evaluations]:
    """All samples that are evaluated with a gradient and without, whoever asks."""
    seen = Evaluations()
    with_gradient, without = Surface.margin_and_gradient, Surface.margin

    def gradient(self: Surface, d: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.gradients += len(at)
        return with_gradient(self, d, at)

    def margin(self: Surface, d: torch.Tensor, at: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
        seen.forwards += len(at)
        return without(self, d, at, *given, **named)

    with patch.object(Surface, "margin_and_gradient", gradient), patch.object(Surface, "margin", margin):
        yield seen


def measured(problem: Problem, work: Callable[[], Plan]) -> tuple[Plan, Row]:
    began = time.process_time()
    with counted() as seen:
        plan = work()
    seconds = time.process_time() - began
    return plan, {
        "count": plan.count,
        "worth": plan.worth,
        "seconds": seconds,
        "gradients": seen.gradients / len(problem),
        "forwards": seen.forwards / len(problem),
    }


def _keep_flips(cell: Cell, of: str, plan: Plan) -> None:
    np.savez(cell.flips(of), rows=plan.selected, changes=plan.moves)


def by_prices(cell: Cell) -> Iterator[Row]:
    problem = problem_of(cell)
    plan, row = measured(problem, lambda: solve(problem, Prices()))
    _keep_flips(cell, "prices", plan)
    shares = {name: plan.spend[name] / budget.amount for name, budget in plan.budgets.items()}
    yield row | {
        "estimate": plan.estimate,
        "bound": plan.bound,
        # Not those shown, which are 0 for budgets that hold nothing back.
        "prices": json.dumps(dict(plan.ceilings[0].prices) if plan.ceilings else {}),
        "spent": json.dumps(shares),
        "budgets": len(shares),
        "used_up": sum(share > 0.99 for share in shares.values()),
        "notices": " ".join(plan.notices),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    _, again = measured(problem, lambda: resolve(problem, plan))
    yield {"resolved": again["worth"], "resolved_seconds": again["seconds"], "resolved_gradients": again["gradients"]}


def thoroughly(cell: Cell) -> Iterator[Row]:
    """By Prices with more effort. Flips of linear models are exact at any effort."""
    if cell.model != "linear":
        problem = problem_of(cell)
        plan, row = measured(problem, lambda: solve(problem, Prices(effort=THOROUGH)))
        _keep_flips(cell, "thorough", plan)
        yield {f"thorough_{name}": row[name] for name in ("worth", "gradients", "seconds")}
        yield {"thorough_estimate": plan.estimate}


def by_nearest(cell: Cell) -> Iterator[Row]:
    problem = problem_of(cell)
    for name, solver in {"nearest": Nearest(), "unit": Nearest(prices="unit")}.items():
        plan, row = measured(problem, partial(solve, problem, solver))
        _keep_flips(cell, name, plan)
        yield {name: row["worth"]}


def by_reference(cell: Cell, *, quick: bool) -> Iterator[Row]:
    problem = problem_of(cell)
    known, told = [], None
    for of in ("prices", "thorough", "nearest", "unit"):
        if cell.flips(of).exists():
            flips = np.load(cell.flips(of))
            known.append((flips["rows"], flips["changes"]))
    if cell.file.exists():
        told = json.loads(json.loads(cell.file.read_text()).get("prices") or "null")
    yield {f"reference_{k}": v for k, v in vars(reference(problem, known, told, QUICK if quick else FULL)).items()}


STAGES = ("prices", "thorough", "nearest", "reference")
COLUMNS = (
    *("count", "worth", "estimate", "bound", "seconds", "gradients", "forwards", "peak_mib", "budgets", "used_up"),
    *("spent", "prices", "notices", "nearest", "unit", "resolved", "resolved_seconds", "resolved_gradients"),
    *("thorough_worth", "thorough_gradients", "thorough_seconds", "thorough_estimate"),
    *("reference_value", "reference_error", "reference_least", "reference_shaved", "reference_whole"),
)


def run_stage(cell: Cell, stage: str, limit: int, quick: bool) -> tuple[Row, bool]:
    """What it found, in a process of its own, and whether it was done in time."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        stages: dict[str, Callable[[Cell], Iterator[Row]]] = {
            "prices": by_prices,
            "thorough": thoroughly,
            "nearest": by_nearest,
            "reference": partial(by_reference, quick=quick),
        }
        for found in stages[stage](cell):
            send.send(found)

    process = context.Process(target=work)
    process.start()
    send.close()
    row: Row = {}
    with suppress(EOFError):
        while True:
            row |= receive.recv()
    process.join()
    if process.exitcode not in (0, -signal.SIGXCPU, -signal.SIGKILL):
        raise SystemExit(f"{cell.name}: {stage} ended with an error, {process.exitcode}")
    return row, process.exitcode == 0


def _untouched(cell: Cell) -> Row:
    return {**vars(cell), "held_out": cell.model == HELD_OUT, **dict.fromkeys(COLUMNS), "done": [], "stopped": []}


def run_cell(cell: Cell, limits: dict[str, int], quick: bool) -> Row:
    """One stage after the other, each kept; those that are there already are not repeated."""
    row = json.loads(cell.file.read_text()) if cell.file.exists() else _untouched(cell)
    for stage, limit in limits.items():
        if stage in row["done"]:
            continue
        found, in_time = run_stage(cell, stage, limit, quick)
        row |= found
        row["done"].append(stage)
        row["commit"] = commit()
        if not in_time:
            row["stopped"].append(f"{stage} after {limit} s")
        cell.file.write_text(json.dumps(row))
    return dict(row)


def cells(given: argparse.Namespace) -> Iterator[Cell]:
    for samples in given.sizes:
        for model in given.models:
            for kind in given.kinds:
                yield from (Cell(model, kind, samples, seed) for seed in given.seeds)


def _listed(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        """Names hold commas themselves, so they are parted by semicolons."""
        wanted = [name.strip() for name in text.split(";")]
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown {'; '.join(unknown)}: wanted some of {'; '.join(known)}")
        return wanted

    return read


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--models", type=_listed(tuple(MODELS)), default=list(MODELS), help="; ".join(MODELS))
    parser.add_argument("--kinds", type=_listed(tuple(KINDS)), default=list(KINDS), help="; ".join(KINDS))
    parser.add_argument("--sizes", type=_numbers, default=list(SIZES), help="300,3000,30000")
    parser.add_argument("--seeds", type=_numbers, default=[0], help="of cohort and budgets: 0,1,2")
    parser.add_argument("--only", type=_listed(STAGES), default=list(STAGES), help="; ".join(STAGES))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no cell after so many seconds")
    parser.add_argument("--limit", type=int, default=600, help="processor seconds of one solver or reference")
    parser.add_argument("--quick", action="store_true", help="a shorter search in the reference")
    parser.add_argument("--fresh", action="store_true", help="forget the cells that are there")
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    CELLS.mkdir(parents=True, exist_ok=True)
    began, rows = time.monotonic(), []
    for cell in cells(given):
        if given.fresh:
            cell.file.unlink(missing_ok=True)
        if time.monotonic() - began > given.seconds and not cell.file.exists():
            tell(f"left for later: {cell.name}")
            continue
        row = run_cell(cell, dict.fromkeys(given.only, given.limit), given.quick)
        tell(brief(row))
        rows.append(row)
    made = made_here("python -m research.benchmarks.kinds --keep", time.monotonic() - began)
    report({"kinds": rows}, made, ["kinds.short", "kinds.table"], keep=given.keep)


def brief(row: Row) -> str:
    """One line while it runs."""
    if row["worth"] is None:
        return f"{row['model']}, {row['kind']}, {row['samples']}: stopped ({', '.join(row['stopped'])})"
    ceiling = row["bound"] if row["bound"] is not None else row["estimate"]
    share = row["worth"] / row["reference_value"] if row["reference_value"] else float("nan")
    return (
        f"{row['model']}, {row['kind']}, {row['samples']}: {row['worth']:.6g} of {ceiling or 0:.6g}, reference "
        f"{row['reference_value'] or 0:.6g} ({share:.4f}), {row['gradients']:.0f} gradients, {row['seconds']:.1f} s"
    )


if __name__ == "__main__":
    main()
