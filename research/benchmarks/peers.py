"""maxflip beside the tools that people use today.

    python -m research.benchmarks.peers [--quick] [--data DIR] [--keep]

For everyone the same networks, cohorts, margin and limits. Each tool proposes one change for each sample; the same
judge decides which of them are flips, and the same final program picks among them within the budgets. Every tool has an
environment of its own under .peers, made on first use (pip), and every method a process of its own for each cohort, on
one thread. A tool that does not install or run is a row that says why.

Slow methods are asked the first samples only, and everyone is compared on these too. Small problems whose optimum is
known come last. `--quick`: fewer samples, no thousands of steps. `--keep`: writes docs/results/data/peers*.parquet
and the tables of docs/results/peers.md, unless a tool did not install. `--resume`: after an interrupted run, asks only
what the same code has not answered yet. Without data (`--data`, or MAXFLIP_DATA) the generated cohort is the only one.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from maxflip.cli.datasets import SOURCES
from maxflip.datasets import credit_default
from maxflip.errors import MaxflipError
from research.benchmarks.peer_tools.question import Floats, Question
from research.benchmarks.peers_judged import costs, counts, over_best
from research.benchmarks.peers_questions import AskedCohort, cohorts, small_questions
from research.benchmarks.peers_tools import (
    DDN,
    ENVIRONMENTS,
    TOOLS,
    Answered,
    Tool,
    Unavailable,
    ask,
    code_of,
    install,
    not_installed,
)
from research.cells import Cell, Payload, run_cells
from research.evidence.files import made_here
from research.evidence.report import report
from research.experiments.public_data import those_with_data

Row = dict[str, Any]
BLOCKS = ("peers.made", "peers.cohorts", "peers.everyone", "peers.few", "peers.exact")
LONG = ("DDN, 1,000 steps", "FMN, 1,000 steps, mended", "C&W, 9 x 1,000 steps", "C&W, 1,000 steps")
ANSWERS = ENVIRONMENTS / "answers"
SMALL = "small problems"
CREDIT = "credit_default"


@dataclass(frozen=True)
class Size:
    """samples, few: asked of quick and of slow methods, in each cohort   draws: of each small question
    patience: processor seconds after which a method that goes sample by sample begins no further one
    limit: after which any method is stopped   installing: seconds by the clock, of each tool   long: with thousands of
    steps"""

    samples: int
    few: int
    draws: int
    patience: float
    limit: int
    installing: int
    long: bool


FULL, QUICK = Size(200, 25, 10, 300, 400, 900, True), Size(50, 3, 2, 30, 120, 300, False)


@dataclass(frozen=True, eq=False, repr=False)
class Job:
    """What one method is asked at once. about: a cohort, or SMALL   questions: "all" and "few", or by their names"""

    tool: Tool
    method: str
    about: str
    questions: dict[str, Question]

    def __repr__(self) -> str:
        """What a cell of it is known by: the questions and the code that answers."""
        asked = {name: question.digest() for name, question in self.questions.items()}
        return f"{self.tool.name}, {self.method}, {self.about}: {asked} {code_of(self.tool)}"


@dataclass(frozen=True, eq=False)
class Entry:
    """What a method answered to a job, by the name of the question, or why it did not."""

    tool: Tool
    method: str
    about: str
    answers: dict[str, Answered] = field(default_factory=dict)
    note: str = ""

    @property
    def version(self) -> str:
        return next((a.version for a in self.answers.values()), "")


def jobs_of(tool: Tool, asked: list[AskedCohort], small: dict[str, Question]) -> list[Job]:
    found = []
    for cohort in asked:
        few = {"few": cohort.few}
        # Whoever knows budgets is asked about the few apart; what others say of everyone holds for the few as well.
        everyone = {"all": cohort.everyone} | (few if tool.pins is None else {})
        found += [Job(tool, method, cohort.name, everyone) for method in tool.methods]
        found += [Job(tool, method, cohort.name, few) for method in tool.slow]
    return found + [Job(tool, method, SMALL, small) for method in (*tool.methods, *tool.exact)]


def entries(jobs: list[Job], limit: int, *, resume: bool) -> list[Entry]:
    """Processor time counts, so two methods may run side by side; the slowest come first, so that none is left alone
    at the end. Each is a cell; resume: those that are done are not asked again."""
    began, done = time.monotonic(), 0
    notes: dict[str, str] = {}

    def answers(job: Job, _needs: object, _device: object) -> Payload:
        try:
            found = ask(job.tool, job.method, job.questions, limit)
        except Unavailable as reason:
            notes[name_of(job)] = str(reason)
            raise
        return {name: answered.as_json() for name, answered in found.items()}

    def told(cell: Cell, _: str | None) -> None:
        nonlocal done
        done += 1
        note = notes.get(cell.label)
        said = f"{done} of {len(missing)}, {time.monotonic() - began:.0f} s: {cell.label}"
        print(said + (f": {note}" if note else ""), flush=True)

    cells = [Cell(name_of(job), answers, job, seconds=2.0 if job.method in job.tool.slow else 1.0) for job in jobs]
    for cell in () if resume else cells:
        cell.forget(ANSWERS)
    missing = [cell for cell in cells if not cell.is_done(ANSWERS)]
    failed = run_cells(missing, ANSWERS, at_once=min(2, os.cpu_count() or 1), tell=told).failed
    for label in failed.keys() - notes.keys():
        raise RuntimeError(f"{label}: {failed[label]}")
    return [_entry(job, cell.kept(ANSWERS), notes.get(cell.label, "")) for job, cell in zip(jobs, cells, strict=True)]


def name_of(job: Job) -> str:
    return f"{job.tool.name}, {job.method}, {job.about}"


def _entry(job: Job, kept: Payload | None, note: str) -> Entry:
    found = {} if kept is None else {name: Answered.from_json(kept[name]) for name in job.questions}
    return Entry(job.tool, job.method, job.about, found, note)


@dataclass(frozen=True, eq=False)
class Held:
    """What an entry says about some samples. changes (n, F) or (S, n, F)   asked: of them, the first so many
    per_second: samples"""

    entry: Entry
    changes: Floats
    asked: int
    per_second: float
    peak_mib: float


def held(entry: Entry, part: str, question: Question) -> Held | None:
    """part: "all" or "few"; what is said about all holds for the few, whom it begins with"""
    own = entry.answers.get(part)
    answer = own or entry.answers.get("all")
    if answer is None or (own is None and part != "few"):
        return None
    n = len(question.x)
    solved = answer.asked * (len(answer.changes) if answer.changes.ndim == 3 else 1)
    pace = solved / max(answer.seconds, 1e-9)
    return Held(entry, answer.changes[..., :n, :], min(answer.asked, n), pace, answer.peak_mib)


def measured(found: list[Entry], part: str, question: Question) -> tuple[list[Row], list[Row]]:
    """Rows of `peers` and of `peers_budgets` for one part of one cohort. Who was not asked everyone there has no counts
    within budgets: others would have had more to choose from."""
    n = len(question.x)
    every = [(entry, held(entry, part, question)) for entry in found]
    lengths = {id(h): costs(question, h.changes) for _, h in every if h is not None and h.changes.ndim == 2}
    best = np.min([np.full(n, np.inf), *lengths.values()], axis=0)
    pace = next((h.per_second for e, h in every if h is not None and e.method == DDN), np.nan)
    rows, within = [], []
    for entry, h in every:
        row = _row(entry, n)
        if h is None:
            if entry.note and (part == "few" or entry.method in entry.tool.methods):
                rows.append(row)
            continue
        cost = lengths.get(id(h))
        rows.append(
            row
            | {
                "asked": h.asked,
                "flipped": None if cost is None else float(np.isfinite(cost).sum() / h.asked),
                "cost_over_best": None if cost is None else over_best(cost, best),
                "samples_per_second": h.per_second,
                "relative_speed": h.per_second / pace,
                "peak_mib": h.peak_mib,
            }
        )
        if h.asked < n:
            continue
        seen: dict[str, int] = {}
        for shape, count in zip(question.shapes, counts(question, h.changes), strict=True):
            seen[shape] = seen.get(shape, 0) + 1
            within.append(
                {
                    "cohort": entry.about,
                    "tool": entry.tool.name,
                    "method": entry.method,
                    "shape": shape,
                    "draw": seen[shape],
                    "count": count,
                    "n": n,
                }
            )
    return rows, within


def _row(entry: Entry, n: int) -> Row:
    empty = dict.fromkeys(("asked", "flipped", "cost_over_best", "samples_per_second", "relative_speed", "peak_mib"))
    return {
        "cohort": entry.about,
        "tool": entry.tool.name,
        "version": entry.version,
        "method": entry.method,
        "n": n,
        **empty,
        "note": entry.note,
    }


def _tool_row(tool: Tool, found: list[Entry]) -> Row:
    own = [entry for entry in found if entry.tool == tool]
    version = next((entry.version for entry in own if entry.version), "")
    note = "" if version else next((entry.note for entry in own), "")
    return {"tool": tool.name, "version": version, "set_up": tool.said, "note": note}


def exact(found: list[Entry], name: str, question: Question, optimum: list[int] | None) -> list[Row]:
    """Rows of `peers_exact` for one small question, without an optimum in draws where no one has proved it. Who gave
    no answer has no counts, and a note that says why."""
    proved: list[int | None] = [None] * len(question.shapes) if optimum is None else [*optimum]
    if optimum is None:
        for bounds in (e.answers[name].bounds for e in found if name in e.answers):
            for s, bound in enumerate(bounds.tolist()):
                proved[s] = proved[s] if np.isnan(bound) else round(bound)
    rows = []
    for entry in found:
        answer = entry.answers.get(name)
        each = [None] * len(question.shapes) if answer is None else counts(question, answer.changes)
        for s, count in enumerate(each):
            rows.append(
                {
                    "problem": name,
                    "draw": s + 1,
                    "tool": entry.tool.name,
                    "method": entry.method,
                    "count": count,
                    "optimum": proved[s],
                    "n": int(question.members[s].sum()),
                    "note": entry.note,
                }
            )
    return rows


def run(
    data: Path | None, size: Size, tools: tuple[Tool, ...] = TOOLS, *, resume: bool = False
) -> dict[str, list[Row]]:
    """The result files."""
    asked = [
        replace(
            cohort,
            everyone=replace(cohort.everyone, seconds=size.patience),
            few=replace(cohort.few, seconds=size.patience),
        )
        for cohort in cohorts(data, size.samples, size.few)
    ]
    small = small_questions(size.draws)
    with ThreadPoolExecutor(2) as pool:
        # What shares nothing takes longest.
        list(pool.map(lambda tool: install(tool, size.installing), sorted(tools, key=lambda tool: tool.shares)))
    jobs = [job for tool in tools for job in jobs_of(tool, asked, {one.name: one.question for one in small})]
    found = entries([job for job in jobs if size.long or job.method not in LONG], size.limit, resume=resume)

    def about(name: str) -> list[Entry]:
        return [entry for entry in found if entry.about == name]

    parts = [measured(about(c.name), "all", c.everyone) for c in asked]
    parts += [measured(about(c.name), "few", c.few) for c in asked]
    return {
        "peers_tools": [_tool_row(tool, found) for tool in tools],
        "peers_cohorts": [_cohort_row(cohort) for cohort in asked],
        "peers": [row for rows, _ in parts for row in rows],
        "peers_budgets": [row for _, rows in parts for row in rows],
        "peers_exact": [row for one in small for row in exact(about(SMALL), one.name, one.question, one.optimum)],
    }


def _cohort_row(cohort: AskedCohort) -> Row:
    return {
        "cohort": cohort.name,
        "network": cohort.network,
        "features": cohort.everyone.x.shape[1],
        "said": cohort.features,
        "budgets": int((~cohort.everyone.frozen).sum()),
        "samples": len(cohort.everyone.x),
        "few": len(cohort.few.x),
    }


def main() -> int:
    """1 where results were to be kept and are not; 130 after Ctrl-C, as shells have it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("MAXFLIP_DATA"), help="a folder with credit_default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples, no thousands of steps")
    parser.add_argument("--keep", action="store_true", help="write the result files and render the pages")
    parser.add_argument("--resume", action="store_true", help="keep what the same code answered before")
    given = parser.parse_args()
    if given.keep and given.quick:
        parser.error("--keep is for the full form: what --quick measures would replace what pages say of it")
    data = there(None if given.data is None else Path(given.data))
    if given.keep and data is None:
        parser.error("--keep needs the data: the generated cohort alone would replace what pages say of both")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        return _measure(given, data)
    except KeyboardInterrupt:
        print(
            "Ended by Ctrl-C. What is answered is kept; without --resume all would be asked anew. This goes on from "
            f"there (or `make bench RESUME=1`, where make began it):\n{_to_resume()}",
            file=sys.stderr,
        )
        return 130


def _measure(given: argparse.Namespace, data: Path | None) -> int:
    began = time.monotonic()
    files = run(data, QUICK if given.quick else FULL, resume=given.resume)
    command = (
        "python -m research.benchmarks.peers" + (" --quick" if given.quick else "") + (" --data DIR" if data else "")
    )
    made = made_here(command + (" --keep" if given.keep else ""), None if given.resume else time.monotonic() - began)
    absent = not_installed(TOOLS) if given.keep else {}
    print()
    report(files, made, BLOCKS, keep=given.keep and not absent)
    if absent:
        each = "\n".join(f"  {name}: {why}" for name, why in absent.items())
        print(
            f"Not kept, since pages would lose what they say of tools that are not installed:\n{each}\n"
            f"With a network, this installs them and asks what has no answer yet:\n{_to_resume()}",
            file=sys.stderr,
        )
    return 1 if absent else 0


def _to_resume() -> str:
    """The command that goes on with this one."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return f"  python -m research.benchmarks.peers {shlex.join([*words, '--resume'])}"


def there(data: Path | None) -> Path | None:
    """The folder, if credit_default can be read in it; else none, and what to do about it is printed."""
    named = those_with_data([CREDIT], {CREDIT: CREDIT}, data, Console())
    if data is not None and named:
        try:
            credit_default(data / CREDIT)
            return data
        except MaxflipError as fault:
            source = SOURCES[CREDIT]
            print(f"{CREDIT} is left out: {fault} Fetch it ({source.files}) from {source.where}; see docs/data.md.")
    print("The generated cohort is the only one.", flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
