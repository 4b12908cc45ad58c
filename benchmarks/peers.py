"""maxflip beside the tools that people use today: `python -m benchmarks.peers [--quick] [--data DIR] [--keep]`.

The same network, people, margin and limits for everyone. Each tool proposes one change for each sample; the same judge
decides which of them are flips, and the same final program picks among them within the budgets. Every tool has an
environment of its own under .peers, made on first use (pip), and every method a process of its own, on one thread. A
tool that does not install or run is a row that says why.

Slow methods are asked the first samples only, and everyone is compared on these too. Small problems whose optimum is
known come last. `--quick`: fewer samples, no thousands of steps. `--keep`: writes docs/results/data/peers*.parquet
and the tables of docs/results/peers.md. Without data (`--data`, or MAXFLIP_DATA) the cohort is synthetic.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.peer_tools.question import Floats, Question
from benchmarks.peers_judged import costs, counts, over_best
from benchmarks.peers_questions import few_of, main_question, small_questions
from benchmarks.peers_tools import DDN, TOOLS, Answered, Tool, Unavailable, ask, install
from evidence.files import made_here
from evidence.report import Files, report
from maxflip.datasets_cli import SOURCES

Row = dict[str, Any]
BLOCKS = ("peers.made", "peers.everyone", "peers.few", "peers.exact")
LONG = ("DDN, 1,000 steps", "FMN, 1,000 steps, mended", "C&W, 9 x 1,000 steps", "C&W, 1,000 steps")


@dataclass(frozen=True)
class Size:
    """samples, few: asked of quick and of slow methods   draws: of each small question
    limit: processor seconds of a method   long: with thousands of steps"""

    samples: int
    few: int
    draws: int
    limit: int
    long: bool


FULL, QUICK = Size(200, 10, 2, 240, True), Size(100, 3, 1, 60, False)


@dataclass(frozen=True, eq=False)
class Entry:
    """One method: its answers by the name of the question, or why there are none."""

    tool: Tool
    method: str
    answers: dict[str, Answered] = field(default_factory=dict)
    note: str = ""

    @property
    def version(self) -> str:
        return next((a.version for a in self.answers.values()), "")


def asked_of(tool: Tool, questions: dict[str, Question], small: list[str]) -> list[tuple[str, dict[str, Question]]]:
    """Methods of a tool, and what each is asked."""
    lesser = {name: questions[name] for name in small}
    # Whoever knows budgets is asked about the few apart; what others say of everyone holds for the few as well.
    knows_budgets = {"few": questions["few"]} if tool.pins is None else {}
    found = [(method, {"all": questions["all"]} | knows_budgets | lesser) for method in tool.methods]
    found += [(method, {"few": questions["few"]} | lesser) for method in tool.slow]
    found += [(method, {"few": questions["few"]}) for method in tool.slower]
    return found + [(method, lesser) for method in tool.exact]


def entries(size: Size, questions: dict[str, Question], small: list[str], tools: tuple[Tool, ...]) -> list[Entry]:
    """Processor time counts, so two methods may run side by side."""
    found: list[Future[Entry]] = []
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for tool in tools:
            for method, its in asked_of(tool, questions, small):
                if size.long or method not in LONG:
                    found.append(pool.submit(_entry, tool, method, its, size.limit))
    return [entry.result() for entry in found]


def _entry(tool: Tool, method: str, questions: dict[str, Question], limit: int) -> Entry:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            entry = Entry(tool, method, ask(tool, method, questions, Path(folder), limit))
        except Unavailable as reason:
            entry = Entry(tool, method, note=str(reason))
    print(f"{tool.name}: {method}, {time.monotonic() - began:.0f} s {entry.note}", flush=True)
    return entry


@dataclass(frozen=True, eq=False)
class Held:
    """What an entry says about one cohort. changes (n, F) or (S, n, F)   per_second: samples"""

    entry: Entry
    changes: Floats
    per_second: float


def held(entry: Entry, cohort: str, question: Question) -> Held | None:
    own = entry.answers.get(cohort)
    answer = own or entry.answers.get("all")
    if answer is None or (own is None and cohort != "few"):
        return None
    asked = answer.changes.shape[-2] * (answer.changes.shape[0] if answer.changes.ndim == 3 else 1)
    return Held(entry, answer.changes[..., : len(question.x), :], asked / max(answer.seconds, 1e-9))


def measured(found: list[Entry], cohort: str, question: Question) -> tuple[list[Row], list[Row]]:
    """Rows of `peers` and of `peers_budgets` for one cohort."""
    every = [(entry, held(entry, cohort, question)) for entry in found]
    lengths = {id(h): costs(question, h.changes) for _, h in every if h is not None and h.changes.ndim == 2}
    best = np.min(list(lengths.values()), axis=0)
    pace = next((h.per_second for e, h in every if h is not None and e.method == DDN), np.nan)
    rows, within = [], []
    for entry, h in every:
        row = _row(entry, len(question.x))
        if h is None:
            if entry.note and (cohort == "few" or entry.method in entry.tool.methods):
                rows.append(row)
            continue
        cost = lengths.get(id(h))
        answer = entry.answers.get(cohort) or entry.answers["all"]
        rows.append(
            row
            | {
                "flipped": None if cost is None else float(np.isfinite(cost).mean()),
                "cost_over_best": None if cost is None else over_best(cost, best),
                "samples_per_second": h.per_second,
                "relative_speed": h.per_second / pace,
                "peak_mib": answer.peak_mib,
            }
        )
        seen: dict[str, int] = {}
        for shape, count in zip(question.shapes, counts(question, h.changes), strict=True):
            seen[shape] = seen.get(shape, 0) + 1
            within.append(
                {
                    "tool": entry.tool.name,
                    "method": entry.method,
                    "shape": shape,
                    "draw": seen[shape],
                    "count": count,
                    "n": len(question.x),
                }
            )
    return rows, within


def _row(entry: Entry, n: int) -> Row:
    empty = dict.fromkeys(("flipped", "cost_over_best", "samples_per_second", "relative_speed", "peak_mib"))
    return {
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
    """Rows of `peers_exact` for one small question; none where no one has proved its optimum."""
    if optimum is None:
        proofs = [e.answers[name].bounds for e in found if name in e.answers and len(e.answers[name].bounds)]
        if not proofs:
            return []
        optimum = np.floor(np.min(proofs, axis=0) + 1e-6).astype(int).tolist()
    rows = []
    for entry in found:
        if name not in entry.answers:
            continue
        for s, count in enumerate(counts(question, entry.answers[name].changes)):
            rows.append(
                {
                    "problem": name,
                    "draw": s + 1,
                    "tool": entry.tool.name,
                    "method": entry.method,
                    "count": count,
                    "optimum": optimum[s],
                    "n": int(question.members[s].sum()),
                }
            )
    return rows


def run(data: Path | None, size: Size, tools: tuple[Tool, ...] = TOOLS) -> tuple[str, Files]:
    """What was asked in words, and the result files."""
    said, everyone = main_question(data, size.samples)
    small = small_questions(size.draws)
    questions = {"all": everyone, "few": few_of(everyone, size.few)} | {one.name: one.question for one in small}
    for tool in tools:
        install(tool)
    found = entries(size, questions, [one.name for one in small], tools)
    parts = [measured(found, cohort, questions[cohort]) for cohort in ("all", "few")]
    return said, {
        "peers_tools": [_tool_row(tool, found) for tool in tools],
        "peers": [row for rows, _ in parts for row in rows],
        "peers_budgets": [row for _, rows in parts for row in rows],
        "peers_exact": [row for one in small for row in exact(found, one.name, one.question, one.optimum)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("MAXFLIP_DATA"), help="a folder with credit_default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples, no thousands of steps")
    parser.add_argument("--keep", action="store_true", help="write the result files and render the pages")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = None if given.data is None else Path(given.data)
    if data is None or not (data / "credit_default").is_dir():
        print(
            f"There is no folder credit_default in {data or 'MAXFLIP_DATA, which is not set'}: a synthetic cohort "
            "instead. "
            f"Fetch it from {SOURCES['credit_default'].where} into DIR/credit_default (docs/data.md says which files), "
            "and give --data DIR or set MAXFLIP_DATA to DIR."
        )
        data = None
    began = time.monotonic()
    said, files = run(data, QUICK if given.quick else FULL)
    command = "python -m benchmarks.peers" + (" --quick" if given.quick else "") + (" --data DIR" if data else "")
    made = made_here(f"{command} --keep", time.monotonic() - began)
    print(f"\n{said}\n")
    report(files, made, BLOCKS, keep=given.keep)


if __name__ == "__main__":
    main()
