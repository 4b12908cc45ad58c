"""docs/hold.md: do the flips hold?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from evidence.intervals import paired, with_interval
from evidence.markdown import made_line, table
from evidence.registry import text
from evidence.results import Results
from experiments.hold import kinds, page
from experiments.hold.points import Result, read

Row = dict[str, Any]


def _register(name: str, part: Callable[[Sequence[Result]], str]) -> None:
    text(f"hold.{name}")(lambda results: part(read(results.folder)))


for _part in (kinds.short, page.said, page.table, page.differences, kinds.kinds, page.detail, page.made):
    _register(_part.__name__, _part)


COHORTS = {"demo": "demo, patients with diabetes", "credit": "credit customers", "icu": "intensive care"}
REQUIRED = {
    "nothing": "nothing",
    "uptake": "`Uptake(0.8)`",
    "rounded": "`Rounded`, usual digits",
    "both": "both",
}


@text("hold.changes")
def changes(results: Results) -> str:
    """A line per cohort and requirement: how many are flipped, and how many of them still pass."""
    head = ["cohort", "must hold", "flipped", "90 %", "80 %", "50 %", "rounded", "processor seconds"]
    lines = []
    for row in results.rows("hold_changes"):
        whose = f"{COHORTS[row['cohort']]} ({row['open']} not there)" if row["must_hold"] == "nothing" else ""
        still = [_of(row[case], row["count"]) for case in ("at_90", "at_80", "at_50", "rounded")]
        lines.append([whose, REQUIRED[row["must_hold"]], str(row["count"]), *still, f"{row['cpu_seconds']:.1f}"])
    return made_line(results.made("hold_changes")) + "\n\n" + table(head, lines)


def _of(count: int, flipped: int) -> str:
    return f"{count} ({100 * count / flipped:.0f} %)" if flipped else "0"


AGAIN, BOTH_KINDS = "trained again", "trained again, another kind"
PLANNED = {1: "the model", 3: "`Ensemble` of 3", 5: "`Ensemble` of 5"}


@text("hold.recipe")
def recipe(results: Results) -> str:
    """A line per way to plan: how many are flipped, and which share of the flips hold in fresh models of each kind."""
    head = ["planned against", "margin", "flipped of {:.0f}", "hold in models of the same kind", "in the worst of them"]
    head += ["hold in other kinds", "in the worst of them"]
    ways: dict[tuple[int, str, float | None], list[Row]] = {}
    rows = results.rows("hold_margin")
    for row in rows:
        margin = row["margin"] if row["how"] == "fixed" else None
        ways.setdefault((row["models"], row["how"], margin), []).append(row)
    lines = []
    for (models, how, margin), some in ways.items():
        cells = [PLANNED[models], f"{margin:g}" if margin is not None else _suggested(how, some)]
        cells.append(f"{_mean(some, 'count'):.0f}")
        for own in (True, False):
            cells += _held([row for row in some if (row["kind"] != "another") == own])
        lines.append(cells)
    head[2] = head[2].format(_mean(rows, "people"))
    return made_line(results.made("hold_margin")) + "\n\n" + table(head, lines)


def _suggested(how: str, rows: Sequence[Row]) -> str:
    margins = sorted({row["cohort"]: row["margin"] for row in rows}.values())
    missed = len({row["cohort"] for row in rows if not row["reached"]})
    judges = {AGAIN: "models trained again", BOTH_KINDS: "these and one of another kind"}[how]
    short = f", not reached in {missed} of {len(margins)} cohorts" if missed else ""
    return f"suggested by {judges}: {margins[0]:.2f} to {margins[-1]:.2f}{short}"


def _mean(rows: Sequence[Row], key: str) -> float:
    return fmean(row[key] for row in rows)


def _held(rows: Sequence[Row]) -> list[str]:
    """The share that holds: the mean over judges, with its interval over cohorts; and in the judge with the least."""
    shares: dict[int, list[float]] = {}
    for row in rows:
        shares.setdefault(row["cohort"], []).append(100 * row["held"] / row["count"])
    mean = with_interval(paired(map(fmean, shares.values())), ".0f")
    return [f"{mean} %", f"{fmean(map(min, shares.values())):.0f} %"]
