"""The study: the paper's experiments on public data, and what maxflip adds to them.

    python -m experiments budget|scalability|runtime|figures|all --data DIR [--quick] [--out FOLDER] [--seeds N]
                          [--workers N] [--device cpu|cuda] [--only icu,oulad,insurance] [--limit SECONDS]

What is finished is kept in --out, and a second run goes on from there. Result files go to --results
(docs/results/data), figures to --pictures (docs/pictures), those of --quick into --out. docs/experiments.md says what
each file holds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from evidence.files import FOLDER, ROOT, write
from experiments import budget, protocol, runtime, scalability
from experiments.budget import Plans
from experiments.cells import Cell, Outcome, made_of, run_cells, with_needs
from experiments.cohorts import DATASETS, FOLDERS
from experiments.hold import program as hold
from experiments.protocol import Growth, Scale
from experiments.public_data import those_with_data

EXPERIMENTS = ("budget", "scalability", "runtime")
ALONE = ("runtime",)  # what takes the time has the machine for itself
FILES = {"budget": budget.FILES, "scalability": scalability.FILES, "runtime": runtime.FILES}
OUT = Path(__file__).parent / "out"
GPU_PROCESSES = 4  # the networks step through time: one process leaves most of a GPU idle
WORTH = {"cpu": 1.0, "cuda": 2.0}  # cores that a process is reckoned as, for the estimate of the time
console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.what == "hold":
        hold.run(given)
        return 0
    given.seeds = given.seeds or (protocol.QUICK_SEEDS if given.quick else protocol.FULL_SEEDS)
    given.results = given.results or (given.out / "results" if given.quick else FOLDER)
    given.pictures = given.pictures or (given.out / "pictures" if given.quick else ROOT / "docs" / "pictures")
    began = time.monotonic()
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the processes that are started: as many as there are cores
    faults = 0
    if given.what in EXPERIMENTS or given.what == "all":
        chosen = those_with_data(given.only, FOLDERS, given.data, console)
        names = EXPERIMENTS if given.what == "all" else (given.what,)
        together = [name for name in names if name not in ALONE]
        for part in ([together] if together else []) + [[name] for name in names if name in ALONE]:
            faults += carry_out(part, given, chosen, began)
    if given.what in ("figures", "all"):
        from experiments.figures import draw_all

        for path in draw_all(given.results, given.pictures):
            console.print(f"drawn: {path}")
    if given.what == "all":
        words = ["hold", "--workers", str(given.workers), "--out", str(given.out / "hold")]
        words += ["--data", given.data] if given.data else []
        words += ["--quick"] if given.quick else []
        hold.run(_parser().parse_args(words))
    return 1 if faults else 0


def carry_out(names: Sequence[str], given: argparse.Namespace, datasets: Sequence[str], began: float) -> int:
    """Experiments side by side, and their result files. Returns how many cells failed."""
    cells = {name: with_needs(cells_of(name, given, datasets)) for name in names}
    alone = all(name in ALONE for name in names)
    devices = ["cpu"] * given.workers + ([given.device] * GPU_PROCESSES if given.device != "cpu" else [])
    left = None if given.limit is None else max(0.0, given.limit - (time.monotonic() - began))
    everything = [cell for each in cells.values() for cell in each]
    outcome = _with_progress(" and ".join(names), everything, given, left, [given.device] if alone else devices)
    for name, each in cells.items():
        words = f"python -m experiments {name}" + (" --data DIR" if set(datasets) & FOLDERS.keys() else "")
        words += (" --quick" if given.quick else "") + f" --seeds {given.seeds}"
        kept = [payload for cell in each if (payload := cell.kept(given.out)) is not None]
        for file in FILES[name]:
            rows = [row for payload in kept for row in payload.get(file, [])]
            if rows:
                path = write(file, rows, made_of(words, kept), given.results)
                console.print(f"written: {path} ({len(rows)} rows)")
    for label, fault in outcome.failed.items():
        console.print(f"{label} failed: {fault}", style="red", markup=False)
    if outcome.left:
        console.print(
            f"{len(outcome.left)} cells are not done, such as {outcome.left[0]}: run the same again, and it "
            "goes on from here."
        )
    return len(outcome.failed)


def cells_of(name: str, given: argparse.Namespace, datasets: Sequence[str]) -> list[Cell]:
    scales: dict[str, Scale] = protocol.QUICK if given.quick else protocol.FULL
    growth: dict[str, Growth] = protocol.QUICK_GROWTH if given.quick else protocol.FULL_GROWTH
    plans = {dataset: Plans(dataset, given.data, scales[dataset]) for dataset in datasets}
    if name == "budget":
        return [cell for one in plans.values() for cell in one.cells(given.seeds)]
    if name == "scalability":
        return [cell for one in growth if one in plans for cell in scalability.cells(plans[one], growth[one])]
    return runtime.cells(plans["insurance"]) if "insurance" in plans else []


def _with_progress(
    name: str, cells: Sequence[Cell], given: argparse.Namespace, limit: float | None, devices: Sequence[str]
) -> Outcome:
    """Cells under way at the limit are given up. devices: of the processes"""
    once = with_needs(cells)
    todo = [cell for cell in once if cell.kept(given.out) is None]
    each = [cell.seconds for cell in todo]
    expected = max(sum(each) / sum(WORTH[device] for device in devices), max(each, default=0.0))
    console.print(
        f"{name}: {len(todo)} cells to do, {len(once) - len(todo)} done before; about "
        f"{timedelta(seconds=round(expected))} in {len(devices)} process(es), "
        "reckoned from what one core takes for a gradient"
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task(name, total=len(todo))

        def tell(cell: Cell, fault: str | None) -> None:
            progress.update(bar, advance=1)
            if not console.is_terminal:
                console.print(f"{'failed' if fault else 'done'}: {cell.label}", markup=False)

        return run_cells(cells, given.out, devices=devices, limit=limit, tell=tell)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    whats = parser.add_subparsers(dest="what", required=True)
    for name in (*EXPERIMENTS, "figures", "all"):
        _add_arguments(whats.add_parser(name))
    hold.add_arguments(whats.add_parser("hold"))
    return parser


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default=os.environ.get("MAXFLIP_DATA"), help="folder of public data (MAXFLIP_DATA)")
    parser.add_argument("--quick", action="store_true", help="small: to see that everything runs")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of finished cells")
    parser.add_argument("--results", type=Path, help="folder of result files; with --quick: in --out")
    parser.add_argument("--pictures", type=Path, help="folder of figures; with --quick: in --out")
    parser.add_argument("--seeds", type=_whole, help="draws of samples; 5, or 2 with --quick")
    parser.add_argument("--workers", type=_whole, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu", help="cuda: for the long sequences and CCMS"
    )
    parser.add_argument("--only", type=_datasets, default=DATASETS, help="some of icu,oulad,insurance")
    parser.add_argument("--limit", type=float, help="seconds after which cells under way are given up")


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; wanted a whole number >= 1")
    return int(text)


def _datasets(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    unknown = [name for name in names if name not in DATASETS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no dataset is called {unknown[0]!r}; there are {', '.join(DATASETS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
