"""Do the flips hold? Of those planned against one network, how many stand in ten that were learned anew?

    python -m experiments.hold --data DIR [--only credit,icu] [--seeds 5] [--workers 2] [--out FOLDER] [--quick]

For each solver and margin: plans for several cohorts, each against a network of its own, with the same budgets for all
solvers and margins and values within the range seen in the cohort; and what ten other models say of the people picked,
after their changes: four of other seeds, four learned from bootstraps, two of another kind. Beside them `Prices` for an
ensemble, none of whose members judges; and, as base lines, people whom nobody changed. Every cell (cohort, solver,
margin) is a file in --out: a run that was ended goes on where it was. A full run writes
docs/results/data/hold_NAME.parquet and, from these files alone, docs/pictures/hold.svg and the marked parts of
docs/hold.md; a quick one writes its result file and its picture to --out. Both print the table.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from evidence import files
from evidence.pages import rewrite
from evidence.results import Results
from experiments.hold import page, picture, points
from experiments.hold.cases import PARTS
from experiments.hold.cells import FOLDERS, SOURCES, Done, Place, cells, compared, learned, measured, source_of
from experiments.public_data import those_with_data

QUICK_SEEDS = 2
OUT = Path(__file__).parents[1] / "out" / "hold"
PACKAGES = ("torch", "numpy", "scikit-learn")
Piece = Callable[[], Done]


def one_thread() -> None:
    torch.set_num_threads(1)  # processes work side by side; and other numbers of threads add in another order


def finished(pieces: Sequence[Piece], workers: int) -> Iterator[tuple[int, Done]]:
    """Each with its number, as they come."""
    if workers == 1:
        yield from ((number, piece()) for number, piece in enumerate(pieces))
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), one_thread) as pool:
        numbers = {pool.submit(piece): number for number, piece in enumerate(pieces)}
        try:
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def all_done(pieces: Sequence[Piece], workers: int) -> list[Any]:
    """What was found, in the order of the pieces; of each a line is printed when it is done."""
    found = {}
    for k, (number, (line, result)) in enumerate(finished(pieces, workers), 1):
        print(f"[{k}/{len(pieces)}] {line}", flush=True)
        found[number] = result
    return [found[number] for number in range(len(pieces))]


def measure(place: Place, seeds: int, workers: int, folder: Path) -> None:
    """The result file of one dataset."""
    all_done([partial(learned, place, k) for k in range(len(source_of(place).models()))], workers)
    found = all_done([partial(compared, place, seed) for seed in range(seeds)], workers)
    found += all_done([partial(measured, place, cell) for cell in cells(place, seeds)], workers)
    rows = [row for part in found for row in part]
    # Processor time of all cells, whenever they were made: a run that was ended and taken up again says what a whole
    # one takes.
    seconds = sum(part[0]["seconds"] for part in found)
    quick = " --quick" if place.is_quick else ""
    command = f"python -m experiments.hold --data DIR --only {place.dataset} --seeds {seeds}{quick}"
    files.write(points.name_of(place.dataset), rows, files.made_here(command, seconds, PACKAGES), folder)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("MAXFLIP_DATA"),
        help="folder that holds credit_default/, physionet2012/ (MAXFLIP_DATA)",
    )
    parser.add_argument("--only", default=",".join(SOURCES), help="of these, divided by commas (default: all)")
    parser.add_argument(
        "--seeds", type=int, help=f"cohorts (default: {PARTS}, which is the most; of a quick run {QUICK_SEEDS})"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes, with one thread each (default: 1)")
    parser.add_argument(
        "--out",
        type=Path,
        default=OUT,
        help="folder for weights and cells, to be deleted when the code of either changes",
    )
    parser.add_argument("--quick", action="store_true", help="few and small cohorts; leaves the pages as they are")


def run(given: argparse.Namespace) -> None:
    one_thread()
    datasets = given.only.split(",")
    for name in datasets:
        if name not in SOURCES:
            raise SystemExit(f"--only: there is no {name!r}; there are {', '.join(SOURCES)}.")
    seeds = (QUICK_SEEDS if given.quick else PARTS) if given.seeds is None else given.seeds
    if not 1 <= seeds <= PARTS:
        raise SystemExit(f"--seeds: got {seeds}; wanted 1 to {PARTS}: people are cut into as many parts.")
    folder = given.out if given.quick else files.FOLDER
    datasets = those_with_data(datasets, FOLDERS, given.data, Console(stderr=True))
    if not datasets:
        return
    for name in datasets:
        place = Place(name, given.data, given.out, given.quick)
        measure(place, seeds, given.workers, folder)
    results = points.read(folder)
    print(page.table(results))
    if given.quick:
        picture.draw(results, given.out / "hold.svg")
    else:
        picture.draw(results, picture.PICTURE)
        rewrite(Results())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    run(parser.parse_args())
