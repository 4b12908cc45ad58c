"""Do the flips hold? Of those planned against one network, how many stand in ten retrained ones?

    python -m research.experiments hold --data DIR [--only credit,icu] [--seeds 5] [--workers N] [--out FOLDER]
                               [--quick] [--limit SECONDS]

For each solver and margin: plans for several cohorts, each against a network of its own, with the same budgets for all
solvers and margins and values within the range seen in the cohort; and what ten other models say of the people picked,
after their changes: four of other seeds, four learned from bootstraps, two of another kind. Beside them `Prices` for an
ensemble, none of whose members judges; and, as base lines, people whom nobody changed. Every network, cohort, and
solver and margin of a cohort is a cell in --out: a run that was ended goes on where it was. A full run that is finished
writes docs/results/data/hold_NAME.parquet and, from these files alone, docs/pictures/hold.svg and the marked parts of
docs/results/hold.md; others write their result files and their picture to --out (those of --quick into results-quick/
and pictures-quick/). A finished one prints the table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from research.evidence.pages import rewrite
from research.evidence.results import Results
from research.experiments.carry import (
    NothingToDoError,
    Part,
    aside,
    carry_out,
    console,
    exit_code,
    is_published,
    one_thread,
    settle_folders,
    some_of,
)
from research.experiments.carry import add_arguments as add_common_arguments
from research.experiments.hold import page, picture, points
from research.experiments.hold.cases import PARTS
from research.experiments.hold.cells import FOLDERS, SOURCES, Place, cells
from research.experiments.public_data import those_with_data

QUICK_SEEDS = 2
OUT = Path(__file__).parents[1] / "out" / "hold"
PACKAGES = ("torch", "numpy", "scikit-learn")


def part_of(name: str, given: argparse.Namespace) -> Part:
    """One dataset."""
    place = Place.of(name, Path(given.data), given.out)
    seeds = given.seeds or (QUICK_SEEDS if given.quick else PARTS)
    quick = " --quick" if given.quick else ""
    return Part(
        name,
        cells(place, seeds, is_quick=given.quick),
        cells(place, PARTS),
        (points.name_of(name),),
        f"python -m research.experiments.hold --data DIR --only {name} --seeds {seeds}{quick}",
        PACKAGES,
    )


def run(given: argparse.Namespace) -> int:
    """Returns how many cells failed. Raises NothingToDoError where no data are there."""
    settle_folders(given)
    one_thread()
    datasets = those_with_data(given.only, FOLDERS, given.data, console)
    if not datasets:
        raise NothingToDoError("Nothing was run: of no dataset that hold was asked for the data are there.")
    faults, collected = carry_out(
        [part_of(name, given) for name in datasets],
        out=given.out,
        results=given.results,
        aside=aside(given, "results"),
        devices=["cpu"] * given.workers,
        limit=given.limit,
    )
    done = [one.path for one in collected if one.is_done]
    for folder in dict.fromkeys(path.parent for path in done):
        names = {path.stem for path in done}
        found = [one for one in points.read(folder) if is_published(folder) or points.name_of(one.dataset) in names]
        print(page.table(found))
        pictures = given.pictures if folder == given.results else aside(given, "pictures")
        pictures.mkdir(parents=True, exist_ok=True)
        picture.draw(found, pictures / picture.PICTURE.name)
        if is_published(folder):
            rewrite(Results())
    return faults


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_arguments(parser, OUT)
    parser.add_argument("--only", type=some_of(SOURCES), default=tuple(SOURCES), help="some of credit,icu")
    parser.add_argument("--seeds", type=_cohorts, help=f"cohorts, 1 to {PARTS}; {PARTS}, or {QUICK_SEEDS} with --quick")


def _cohorts(text: str) -> int:
    if not (text.isdigit() and 1 <= int(text) <= PARTS):
        raise argparse.ArgumentTypeError(f"got {text!r}; wanted 1 to {PARTS}: people are cut into as many parts")
    return int(text)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m research.experiments.hold",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    given = parser.parse_args()
    return exit_code(lambda: run(given))
