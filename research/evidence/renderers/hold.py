"""docs/hold.md and docs/results/hold.md: do the flips hold?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from research.evidence.intervals import paired, with_interval
from research.evidence.markdown import made_line, table
from research.evidence.registry import text
from research.evidence.results import Results
from research.experiments.hold import kinds, page
from research.experiments.hold.cases import ENSEMBLE, MARGINS
from research.experiments.hold.points import KINDS, Result, point, read

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


FIXED, AGAIN, BOTH_KINDS = "fixed", "trained again", "trained again, another kind"
PLANNED = {1: "the model", 3: "`Ensemble` of 3", 5: "`Ensemble` of 5"}


@text("hold.recipe")
def recipe(results: Results) -> str:
    """A line per way to plan: how many are flipped, and which share of the flips hold in fresh models of each kind."""
    rows = results.rows("hold_margin")
    head = ["planned against", "margin", f"flipped of {_mean(rows, 'people'):.0f}", "people who hold"]
    head += ["hold in models of the same kind", "in the worst of them", "hold in other kinds", "in the worst of them"]
    lines = []
    for way, some in ways(rows).items():
        margin = _suggested(way.how, some) if way.margin is None else f"{way.margin:g}"
        cells = [PLANNED[way.models], margin, f"{_mean(some, 'count'):.0f}", f"{_mean(some, 'held'):.0f}"]
        for own in (True, False):
            cells += _held([row for row in some if (row["kind"] != "another") == own])
        lines.append(cells)
    more = with_interval(paired(more_flipped(rows)), "+.0f")
    said = (
        f"With the margin that retrained models suggest, the ensemble of 3 flips {more} people more than the model "
        "alone, from cohort to cohort."
    )
    return "\n\n".join([made_line(results.made("hold_margin")), table(head, lines), said])


class Way(NamedTuple):
    """models: planned against   how: the margin came about   margin: None where it was suggested"""

    models: int
    how: str
    margin: float | None


def ways(rows: Sequence[Row]) -> dict[Way, list[Row]]:
    """The rows of each way to plan, in the order of the file."""
    found: dict[Way, list[Row]] = {}
    for row in rows:
        way = Way(row["models"], row["how"], row["margin"] if row["how"] == FIXED else None)
        found.setdefault(way, []).append(row)
    return found


def more_flipped(rows: Sequence[Row]) -> list[int]:
    """By the suggested margin, in each cohort: the ensemble of 3 less the model alone"""
    counts = [{row["cohort"]: row["count"] for row in ways(rows)[Way(models, AGAIN, None)]} for models in (1, 3)]
    return [counts[1][cohort] - count for cohort, count in counts[0].items()]


@text("hold.patients")
def patients(results: Results) -> str:
    """Of the larger experiment: a line per margin, for the network and for the ensemble, by kind of judge."""
    result = next(result for result in read(results.folder) if result.dataset == "icu")
    lines, people = [], 0.0
    for solver, planned in (("Prices", PLANNED[1]), (ENSEMBLE, PLANNED[5])):
        for margin in MARGINS:
            found = point(result, solver, margin)
            if found is not None:
                people = found.people
                shares = [f"{100 * share:.0f} %" for share in found.kinds.values()]
                lines.append([planned, f"{margin:g}", f"{found.count.value:.0f}", *shares])
    return table(
        ["planned against", "margin", f"flipped of {people:.0f}", *(f"hold in {k}" for k in KINDS.values())], lines
    )


def _suggested(how: str, rows: Sequence[Row]) -> str:
    margins = sorted({row["cohort"]: row["margin"] for row in rows}.values())
    missed = len({row["cohort"] for row in rows if not row["reached"]})
    judges = {AGAIN: "retrained models", BOTH_KINDS: "these and one of another kind"}[how]
    short = f", not reached in {missed} of {len(margins)} cohorts" if missed else ""
    return f"suggested by {judges}: {margins[0]:.2f} to {margins[-1]:.2f}{short}"


def _mean(rows: Sequence[Row], key: str) -> float:
    return fmean(row[key] for row in rows)


def _held(rows: Sequence[Row]) -> list[str]:
    """The share that holds: the mean over judges, with its interval over cohorts; and in the judge with the least."""
    shares: dict[int, list[float]] = {}
    for row in rows:
        if row["count"]:  # of nobody there is no share
            shares.setdefault(row["cohort"], []).append(100 * row["held"] / row["count"])
    mean = with_interval(paired(map(fmean, shares.values())), ".0f")
    return [f"{mean} %", f"{fmean(map(min, shares.values())):.0f} %"]
