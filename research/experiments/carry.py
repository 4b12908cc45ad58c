"""Parts of the study, carried out: their cells side by side, with progress, and the result files of what is finished.

The folder of the repository's result files takes whole ones alone: those of a run that was ended, that failed in places
or that was asked for less go to --out, and what is there stays as it is. Those of --quick have a folder of their own.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from research.cells import PACKAGES, Cell, Outcome, made_of, run_cells, with_needs
from research.evidence import files

PICTURES = files.ROOT / "docs" / "pictures"
WORTH = {"cpu": 1.0, "cuda": 2.0}  # cores that a process is reckoned as, for the estimate of the time
console = Console(stderr=True)


class NothingToDoError(Exception):
    """What was asked for leaves nothing to run or to draw: wrong input, not a success."""


@dataclass(frozen=True)
class Part:
    """cells: those asked for   protocol: all that there are in a full run   files: what their rows are collected in

    command: what makes these files again   packages: whose versions they name
    """

    name: str
    cells: Sequence[Cell]
    protocol: Sequence[Cell]
    files: Sequence[str]
    command: str
    packages: Sequence[str] = PACKAGES


@dataclass(frozen=True)
class Collected:
    """A result file. is_done: of all cells that were asked for"""

    path: Path
    is_done: bool


def carry_out(
    parts: Sequence[Part], *, out: Path, results: Path, aside: Path, devices: Sequence[str], limit: float | None
) -> tuple[int, list[Collected]]:
    """How many cells failed, and the files of what is finished, by this run or an earlier one.

    aside: where files go that `results` does not take   devices, limit: as of `run_cells`
    """
    cells = [cell for part in parts for cell in part.cells]
    outcome = _with_progress(" and ".join(part.name for part in parts), cells, out, devices, limit)
    collected = [found for part in parts for found in _collect(part, out, results, aside)]
    _tell_faults(outcome)
    if outcome.left:
        console.print(
            f"{len(outcome.left)} cells are not done, such as {outcome.left[0]}: run the same again, and it "
            "goes on from here."
        )
    return len(outcome.failed), collected


def _tell_faults(outcome: Outcome) -> None:
    """One that many cells share, such as data that are not there, once; and who waits for whom."""
    sharing: dict[str, list[str]] = {}
    for label, fault in outcome.failed.items():
        sharing.setdefault(fault, []).append(label)
    for fault, (first, *others) in sharing.items():
        who = f"{first} and {len(others)} others" if others else first
        console.print(f"{who} failed: {fault}", style="red", soft_wrap=True, markup=False)
    for cause in dict.fromkeys(outcome.barred.values()):
        waiting = [label for label, why in outcome.barred.items() if why == cause]
        console.print(
            f"{len(waiting)} cells, such as {waiting[0]}, wait for {cause}, which failed: mend that, and run the same "
            "again.",
            soft_wrap=True,
            markup=False,
        )


def _collect(part: Part, out: Path, results: Path, aside: Path) -> list[Collected]:
    asked = with_needs(part.cells)
    kept = [payload for cell in asked if (payload := cell.kept(out)) is not None]
    missing = {cell.key for cell in with_needs(part.protocol)} - {cell.key for cell in asked if cell.is_done(out)}
    turned_away = bool(missing) and is_published(results)
    folder = aside if turned_away else results
    found = []
    for file in part.files:
        rows = [row for payload in kept for row in payload.get(file, [])]
        if rows:
            path = files.write(file, rows, made_of(part.command, kept, part.packages), folder)
            console.print(f"written: {path} ({len(rows)} rows)", soft_wrap=True, markup=False)
            found.append(Collected(path, len(kept) == len(asked)))
    if turned_away and found:
        console.print(
            f"{part.name}: {len(missing)} cells of a full run are missing here, so that its files went to {folder}; "
            f"those in {results} stay as they are.",
            soft_wrap=True,
            markup=False,
        )
    return found


def _with_progress(name: str, cells: Sequence[Cell], out: Path, devices: Sequence[str], limit: float | None) -> Outcome:
    once = with_needs(cells)
    for cell in once:
        if cell.is_spoilt(out):
            console.print(
                f"{cell.path(out)} cannot be read: its cell counts as not done, and is computed again.",
                soft_wrap=True,
                markup=False,
            )
    todo = [cell for cell in once if not cell.is_done(out)]
    each = [cell.seconds for cell in todo]
    expected = max(sum(each) / sum(WORTH[device] for device in devices), max(each, default=0.0))
    console.print(
        f"{name}: {len(todo)} cells to do, {len(once) - len(todo)} done before; about "
        f"{timedelta(seconds=round(expected))} in {len(devices)} process(es), reckoned from what one core takes"
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task(name, total=len(todo))

        def tell(cell: Cell, fault: str | None) -> None:
            progress.update(bar, advance=1)
            if not console.is_terminal:
                console.print(f"{'failed' if fault else 'done'}: {cell.label}", markup=False)

        return run_cells(cells, out, devices=devices, limit=limit, tell=tell)


def exit_code(run: Callable[[], int]) -> int:
    """1 where cells failed, which `run` counts; 2 where there is nothing to do; 130 after Ctrl-C, as shells have it."""
    try:
        return 1 if run() else 0
    except NothingToDoError as error:
        console.print(str(error), style="red", soft_wrap=True, markup=False)
        return 2
    except KeyboardInterrupt:
        console.print("Ended by Ctrl-C. What is finished is kept: run the same again, and it goes on from there.")
        return 130


def one_thread() -> None:
    """For this process and those that it starts: there are as many as cores, and more threads add in another order."""
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def add_arguments(parser: argparse.ArgumentParser, out: Path) -> None:
    """Those of all parts. out: where finished cells are kept, unless it is said"""
    parser.add_argument("--data", default=os.environ.get("MAXFLIP_DATA"), help="folder of public data (MAXFLIP_DATA)")
    parser.add_argument("--quick", action="store_true", help="small: to see that everything runs")
    parser.add_argument("--out", type=Path, default=out, help="folder of finished cells")
    parser.add_argument("--results", type=Path, help="folder of result files; with --quick: results-quick/ in --out")
    parser.add_argument("--pictures", type=Path, help="folder of figures; of other result files: in --out")
    parser.add_argument("--workers", type=whole, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--limit", type=float, help="seconds after which cells under way are given up")


def settle_folders(given: argparse.Namespace) -> None:
    """Where result files and figures go if it was not said; figures of the pages are of the pages' files alone."""
    given.results = given.results or (aside(given, "results") if given.quick else files.FOLDER)
    given.pictures = given.pictures or (PICTURES if is_published(given.results) else aside(given, "pictures"))


def aside(given: argparse.Namespace, what: str) -> Path:
    """Where results or pictures go that the pages are not made from; small ones do not replace large ones."""
    folder: Path = given.out / (f"{what}-quick" if given.quick else what)
    return folder


def is_published(folder: Path) -> bool:
    """Whether these are the files that the pages are made from."""
    return folder.resolve() == files.FOLDER.resolve()


def whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; wanted a whole number >= 1")
    return int(text)


def some_of(names: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """What --only takes."""

    def read(text: str) -> tuple[str, ...]:
        found = tuple(part.strip() for part in text.split(","))
        unknown = [name for name in found if name not in names]
        if unknown:
            raise argparse.ArgumentTypeError(f"no dataset is called {unknown[0]!r}; there are {', '.join(names)}")
        return found

    return read
