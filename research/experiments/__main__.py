"""The study: the paper's experiments on public data, and what maxflip adds to them.

    python -m research.experiments budget|scalability|runtime|hold|figures|all --data DIR
                          [--quick] [--out FOLDER] [--seeds N] [--workers N] [--device cpu|cuda]
                          [--only icu,oulad,insurance] [--limit SECONDS]

What is finished is kept in --out, and a second run goes on from there. Result files go to --results
(docs/results/data, which takes whole ones alone: others go into --out), figures to --pictures (docs/pictures), those of
--quick into results-quick/ and pictures-quick/ of --out. docs/experiments.md says what each file holds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from research.cells import Cell
from research.experiments import budget, protocol, runtime, scalability
from research.experiments.budget import Plans
from research.experiments.carry import (
    NothingToDoError,
    Part,
    add_arguments,
    aside,
    carry_out,
    console,
    exit_code,
    one_thread,
    settle_folders,
    some_of,
    whole,
)
from research.experiments.cohorts import DATASETS, FOLDERS
from research.experiments.hold import program as hold
from research.experiments.hold.cases import PARTS
from research.experiments.hold.cells import SOURCES
from research.experiments.protocol import Growth, Scale
from research.experiments.public_data import those_with_data

EXPERIMENTS = ("budget", "scalability", "runtime")
HELP = {
    "budget": "how many are flipped, with two kinds and three sizes of budgets",
    "scalability": "the same with more and more samples",
    "runtime": "what an iteration takes, each solver alone on the machine",
    "figures": "draw what there are result files for; nothing is run",
    "all": "everything, one after the other",
    "hold": "do the flips hold in retrained models?",
}
ALONE = ("runtime",)  # what takes the time has the machine for itself
FILES = {"budget": budget.FILES, "scalability": scalability.FILES, "runtime": runtime.FILES}
ABOUT = {"budget": DATASETS, "scalability": tuple(protocol.FULL_GROWTH), "runtime": (runtime.DATASET,)}
OUT = Path(__file__).parent / "out"
GPU_PROCESSES = 4  # the networks step through time: one process leaves most of a GPU idle


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    return exit_code(lambda: hold.run(given) if given.what == "hold" else run(given))


def run(given: argparse.Namespace) -> int:
    """Returns how many cells failed. Raises NothingToDoError where nothing can be run or drawn."""
    asked_seeds = given.seeds
    given.seeds = given.seeds or (protocol.QUICK_SEEDS if given.quick else protocol.FULL_SEEDS)
    settle_folders(given)
    one_thread()
    ends = None if given.limit is None else time.monotonic() + given.limit
    faults = 0
    if given.what in EXPERIMENTS or given.what == "all":
        names = _that_have_some(EXPERIMENTS if given.what == "all" else (given.what,), given.only)
        wanted = [dataset for dataset in given.only if any(dataset in ABOUT[name] for name in names)]
        chosen = those_with_data(wanted, FOLDERS, given.data, console)
        if not chosen:
            raise NothingToDoError(f"Nothing was run: the data of {' and '.join(wanted)} are not there.")
        together = [name for name in names if name not in ALONE]
        for some in ([together] if together else []) + [[name] for name in names if name in ALONE]:
            faults += _carry_out(some, given, chosen, _left(ends))
    if given.what in ("figures", "all"):
        from research.experiments.figures import draw_all

        drawn = draw_all(given.results, given.pictures)
        for path in drawn:
            console.print(f"drawn: {path}")
        if not drawn and given.what == "figures":
            raise NothingToDoError(f"Nothing was drawn: {given.results} holds no result file that a figure is made of.")
    if given.what == "all":
        faults += _hold_too(given, asked_seeds, _left(ends))
    return faults


def _that_have_some(names: Sequence[str], only: Sequence[str]) -> list[str]:
    """The experiments that are about some of these datasets; of the others it is said what they are about."""
    found = [name for name in names if set(ABOUT[name]) & set(only)]
    for name in names:
        absent = [dataset for dataset in only if dataset not in ABOUT[name]]
        if absent and only != DATASETS:  # else nobody has named them
            console.print(
                f"{name} is not about {' and '.join(absent)}, but about {' and '.join(ABOUT[name])}.", soft_wrap=True
            )
    if not found:
        raise NothingToDoError("Nothing was run: choose other datasets with --only, or leave it out.")
    return found


def _hold_too(given: argparse.Namespace, seeds: int | None, limit: float | None) -> int:
    """`hold` with what it has of the datasets asked for, and as many cohorts as draws, as far as there are so many."""
    only = tuple(SOURCES) if given.only == DATASETS else tuple(name for name in given.only if name in SOURCES)
    if not only:
        console.print(
            f"hold is left out: it is not about {' and '.join(given.only)}, but about {' and '.join(SOURCES)}."
        )
        return 0
    also = {"out": given.out / "hold", "only": only, "seeds": seeds and min(seeds, PARTS), "limit": limit}
    try:
        return hold.run(argparse.Namespace(**vars(given) | also))
    except NothingToDoError as error:
        console.print(str(error), soft_wrap=True, markup=False)  # the others were run
        return 0


def _left(ends: float | None) -> float | None:
    return None if ends is None else max(0.0, ends - time.monotonic())


def _carry_out(names: Sequence[str], given: argparse.Namespace, datasets: Sequence[str], limit: float | None) -> int:
    """Experiments side by side. Returns how many cells failed."""
    alone = all(name in ALONE for name in names)
    devices = ["cpu"] * given.workers + ([given.device] * GPU_PROCESSES if given.device != "cpu" else [])
    faults, _ = carry_out(
        [part_of(name, given, datasets) for name in names],
        out=given.out,
        results=given.results,
        aside=aside(given, "results"),
        devices=[given.device] if alone else devices,
        limit=limit,
    )
    return faults


def part_of(name: str, given: argparse.Namespace, datasets: Sequence[str]) -> Part:
    words = f"python -m research.experiments {name}" + (" --data DIR" if set(datasets) & FOLDERS.keys() else "")
    words += (" --quick" if given.quick else "") + f" --seeds {given.seeds}"
    return Part(
        name,
        cells_of(name, datasets, given.data, given.seeds, is_quick=given.quick),
        cells_of(name, DATASETS, given.data, protocol.FULL_SEEDS),
        FILES[name],
        words,
    )


def cells_of(name: str, datasets: Sequence[str], data: str | None, seeds: int, *, is_quick: bool = False) -> list[Cell]:
    scales: dict[str, Scale] = protocol.QUICK if is_quick else protocol.FULL
    growth: dict[str, Growth] = protocol.QUICK_GROWTH if is_quick else protocol.FULL_GROWTH
    plans = {dataset: Plans(dataset, data, scales[dataset]) for dataset in datasets}
    if name == "budget":
        return [cell for one in plans.values() for cell in one.cells(seeds)]
    if name == "scalability":
        return [cell for one in growth if one in plans for cell in scalability.cells(plans[one], growth[one], seeds)]
    return runtime.cells(plans["insurance"]) if "insurance" in plans else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m research.experiments", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    whats = parser.add_subparsers(dest="what", required=True)
    for name, said in HELP.items():
        add = hold.add_arguments if name == "hold" else _add_arguments
        add(whats.add_parser(name, help=said))
    return parser


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OUT)
    parser.add_argument("--seeds", type=whole, help="draws of samples; 5, or 2 with --quick")
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu", help="cuda: for the long sequences and CCMS"
    )
    parser.add_argument("--only", type=some_of(DATASETS), default=DATASETS, help="some of icu,oulad,insurance")


if __name__ == "__main__":
    sys.exit(main())
