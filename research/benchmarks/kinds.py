"""How near the optimum Prices comes for every kind of budget and size: `python -m research.benchmarks.kinds [--keep]`.

A grid of models, kinds of budgets and sizes (kinds_cases.py). Each place is solved by Prices, by Nearest, and once
more by `resolve` with the same budgets; kinds_reference.py then looks for what the best plan is worth. Networks are
solved once more with three times the effort. With MAXFLIP_DATA the networks are those of credit_default, without it of
a generated cohort.

Every stage of a place is a cell (research/cells.py): it runs in a process of its own, on one thread, and is stopped
after `--limit` seconds of processor time. Cells are kept in build/kinds, so that the run can be stopped and go on:
`--seconds 600` begins no place of the grid after that time.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from research.cells import MADE, Cell, Payload, made_of, run_cells
from research.evidence.files import ROOT
from research.evidence.report import report

OUT = ROOT / "build" / "kinds"
SIZES = (300, 3000, 30_000)
HELD_OUT_SEED = 7  # no other cell has it
THOROUGH = 3.0  # effort of the second solve
MOST_FULL = 3000  # samples; references of more make the shorter search
Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Of the grid."""

    model: str
    kind: str
    samples: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.model}, {self.kind}, {self.samples}, {self.seed}"


@dataclass(frozen=True)
class Task:
    """A stage of a place. limit: seconds of processor time   quick: of the reference   is_real: of public data"""

    place: Place
    stage: str
    limit: int
    quick: bool
    is_real: bool


@cache
def model_of(name: str) -> Model:
    data = os.environ.get("MAXFLIP_DATA")
    return MODELS[name](Path(data) if data else None)


def problem_of(place: Place) -> Problem:
    seed = HELD_OUT_SEED if place.model == HELD_OUT else place.seed
    return question(model_of(place.model), place.kind, place.samples, seed)


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


def _flips(of: str, plan: Plan) -> Row:
    return {f"{FLIPS} {of}": {"rows": plan.selected.tolist(), "changes": plan.moves.tolist()}}


def by_prices(task: Task, _needs: Sequence[Payload]) -> Iterator[Row]:
    problem = problem_of(task.place)
    plan, row = measured(problem, lambda: solve(problem, Prices()))
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
        **_flips("prices", plan),
    }
    _, again = measured(problem, lambda: resolve(problem, plan))
    yield {"resolved": again["worth"], "resolved_seconds": again["seconds"], "resolved_gradients": again["gradients"]}


def thoroughly(task: Task, _needs: Sequence[Payload]) -> Iterator[Row]:
    """By Prices with more effort. Flips of linear models are exact at any effort."""
    if task.place.model != "linear":
        problem = problem_of(task.place)
        plan, row = measured(problem, lambda: solve(problem, Prices(effort=THOROUGH)))
        found = {f"thorough_{name}": row[name] for name in ("worth", "gradients", "seconds")}
        yield found | {"thorough_estimate": plan.estimate, **_flips("thorough", plan)}


def by_nearest(task: Task, _needs: Sequence[Payload]) -> Iterator[Row]:
    problem = problem_of(task.place)
    for name, solver in {"nearest": Nearest(), "unit": Nearest(prices="unit")}.items():
        plan, row = measured(problem, partial(solve, problem, solver))
        yield {name: row["worth"], **_flips(name, plan)}


def by_reference(task: Task, needs: Sequence[Payload]) -> Iterator[Row]:
    """needs: what the other stages found"""
    problem = problem_of(task.place)
    before = {name: value for need in needs for name, value in need["found"].items()}
    known = [
        (np.array(flips["rows"], np.int64), np.array(flips["changes"]).reshape(-1, problem.width))
        for name, flips in before.items()
        if name.startswith(FLIPS)
    ]
    told = json.loads(before.get("prices") or "null")
    effort = QUICK if task.quick else FULL
    yield {f"reference_{k}": v for k, v in vars(reference(problem, known, told, effort)).items()}


FLIPS = "flips of"  # ... a solver, in what is kept of a stage
STAGES = ("prices", "thorough", "nearest", "reference")
COLUMNS = (
    *("count", "worth", "estimate", "bound", "seconds", "gradients", "forwards", "peak_mib", "budgets", "used_up"),
    *("spent", "prices", "notices", "nearest", "unit", "resolved", "resolved_seconds", "resolved_gradients"),
    *("thorough_worth", "thorough_gradients", "thorough_seconds", "thorough_estimate"),
    *("reference_value", "reference_error", "reference_least", "reference_shaved", "reference_whole"),
)


def run_stage(task: Task, needs: Sequence[Payload], _device: str = "cpu") -> Payload:
    """What it found, in a process of its own, and whether it was done in time."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (task.limit, task.limit + 5))
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        stages = {"prices": by_prices, "thorough": thoroughly, "nearest": by_nearest, "reference": by_reference}
        for found in stages[task.stage](task, needs):
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
        raise RuntimeError(f"it ended with an error, {process.exitcode}")
    return {"found": row, "in_time": process.exitcode == 0}


def cells_of(place: Place, limit: int, *, quick: bool) -> dict[str, Cell]:
    """By stage. The reference begins at what the others found."""
    is_real = "MAXFLIP_DATA" in os.environ
    found: dict[str, Cell] = {}
    for stage in STAGES:
        is_last = stage == "reference"
        task = Task(place, stage, limit, (quick or place.samples > MOST_FULL) and is_last, is_real)
        needs = tuple(found.values()) if is_last else ()
        found[stage] = Cell(f"{place.name}, {stage}".replace(" ", "_"), run_stage, task, needs)
    return found


def row_of(place: Place, cells: Mapping[str, Cell]) -> Row:
    """Of all stages that are done."""
    row: Row = {**vars(place), "held_out": place.model == HELD_OUT, **dict.fromkeys(COLUMNS), "done": [], "stopped": []}
    for stage, cell in cells.items():
        if (kept := cell.kept(OUT)) is not None:
            row |= {name: value for name, value in kept["found"].items() if not name.startswith(FLIPS)}
            row["done"].append(stage)
            row["commit"] = kept[MADE]["commit"]
            if not kept["in_time"]:
                row["stopped"].append(f"{stage} after {cell.arguments.limit} s")
    return row


def places(given: argparse.Namespace) -> Iterator[Place]:
    for samples in given.sizes:
        for model in given.models:
            for kind in given.kinds:
                yield from (Place(model, kind, samples, seed) for seed in given.seeds)


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
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no place after so many seconds")
    parser.add_argument("--known", action="store_true", help="leave out places of which nothing is measured")
    parser.add_argument("--limit", type=int, default=600, help="processor seconds of one solver or reference")
    parser.add_argument("--quick", action="store_true", help="a shorter search in the reference")
    parser.add_argument("--fresh", action="store_true", help="forget the cells that are there")
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    began, rows, kept, left = time.monotonic(), [], [], 0
    for place in places(given):
        cells = cells_of(place, given.limit, quick=given.quick)
        for cell in cells.values() if given.fresh else ():
            cell.forget(OUT)
        if given.known and not any(cell.is_done(OUT) for cell in cells.values()):
            continue
        if time.monotonic() - began > given.seconds and not any(cell.is_done(OUT) for cell in cells.values()):
            tell(f"left for later: {place.name}")
            left += 1
            continue
        outcome = run_cells([cells[stage] for stage in given.only], OUT)
        if outcome.failed:
            raise SystemExit("; ".join(f"{label}: {fault}" for label, fault in outcome.failed.items()))
        rows.append(row_of(place, cells))
        kept += [found for cell in cells.values() if (found := cell.kept(OUT)) is not None]
        tell(brief(rows[-1]))
    if left and given.keep:
        tell(f"Not kept: {left} places are left for later. Run the same again, and it goes on from here.")
    made = made_of("python -m research.benchmarks.kinds --keep", kept)
    report({"kinds": rows}, made, ["kinds.short", "kinds.table"], keep=given.keep and not left)


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
