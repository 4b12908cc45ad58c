"""What the result files of `hold` say: means over cohorts and judges, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from research.evidence import files
from research.evidence.intervals import paired
from research.experiments.hold.cases import ENSEMBLE, Row

DATASETS = {"credit": "Credit customers", "icu": "Intensive care"}
SOLVERS = ("MS", "BCMS", "CCMS", "KL", "Nearest", "Prices", ENSEMBLE)
KINDS = {"seed": "other seeds", "bootstrap": "bootstraps", "architecture": "another kind"}


def name_of(dataset: str) -> str:
    return f"hold_{dataset}"


@dataclass(frozen=True)
class Result:
    dataset: str
    rows: list[Row]
    made: files.Made


def read(folder: Path = files.FOLDER) -> list[Result]:
    """Of the datasets that were measured."""
    found = []
    for dataset in DATASETS:
        if (folder / f"{name_of(dataset)}.parquet").exists():
            table, made = files.read(name_of(dataset), folder)
            found.append(Result(dataset, table.to_pylist(), made))
    return found


@dataclass(frozen=True)
class Mean:
    """of cohorts; half: half the width of the interval, None where there is but one"""

    value: float
    half: float | None

    @property
    def sign(self) -> int:
        """Of all numbers in the interval: 1 or -1; 0 where it holds 0, or there is none"""
        return 0 if self.half is None else int(self.value - self.half > 0) - int(self.value + self.half < 0)


def mean(each: Sequence[float]) -> Mean:
    """With Student's interval."""
    found = paired(each)
    return Mean(found.mean, found.high - found.mean if found.pairs > 1 else None)


@dataclass(frozen=True)
class Point:
    """Of one solver and margin, over cohorts and judges.

    count: flipped   share: of these, in the wanted class of a judge   by_margin: ... by the margin   anyway: of these,
    there before any change   won: of those not there before, the share that holds; None where all were   number: that
    hold   kinds: share by kind of judge   cohorts: how many   some: of these, in how many anybody was flipped; the rest
    has no share
    """

    people: float
    count: Mean
    share: Mean
    by_margin: float
    anyway: float
    won: float | None
    number: Mean
    kinds: dict[str, float]
    cost: float
    confidence: float
    cohorts: int
    some: int


def by_cohort(result: Result, solver: str, margin: float) -> dict[int, list[Row]]:
    """The rows of each cohort, one per judge."""
    found: dict[int, list[Row]] = {}
    for row in result.rows:
        if row["solver"] == solver and row["margin"] == margin:
            found.setdefault(row["seed"], []).append(row)
    return found


def point(result: Result, solver: str, margin: float) -> Point | None:
    """None where nobody was flipped in any cohort."""
    cohorts = list(by_cohort(result, solver, margin).values())
    flipped = [judges for judges in cohorts if judges[0]["count"]]  # a share of nobody is no number
    if not flipped:
        return None

    def shares(key: str, kind: str | None = None) -> list[float]:
        return [
            float(np.mean([row[key] / row["count"] for row in judges if kind in (None, row["kind"])]))
            for judges in flipped
        ]

    judging = {row["kind"] for judges in flipped for row in judges}
    return Point(
        people=float(np.mean([judges[0]["people"] for judges in cohorts])),
        count=mean([judges[0]["count"] for judges in cohorts]),
        share=mean(shares("held")),
        by_margin=float(np.mean(shares("held_with_margin"))),
        anyway=float(np.mean(shares("anyway"))),
        won=_won([row for judges in flipped for row in judges]),
        number=mean([float(np.mean([row["held"] for row in judges])) for judges in cohorts]),
        kinds={kind: float(np.mean(shares("held", kind))) for kind in KINDS if kind in judging},
        cost=float(np.mean([judges[0]["cost"] for judges in flipped])),
        confidence=float(np.mean([judges[0]["confidence"] for judges in flipped])),
        cohorts=len(cohorts),
        some=len(flipped),
    )


def _won(rows: Sequence[Row]) -> float | None:
    """Of all who were not there anyway, over judges and cohorts."""
    others = sum(row["count"] - row["anyway"] for row in rows)
    return sum(row["won"] for row in rows) / others if others else None


def of_kind(result: Result, kind: str) -> Result:
    """What judges of one kind say, as if there were no others."""
    return replace(result, rows=[row for row in result.rows if row["kind"] == kind])


def share_of(judges: Sequence[Row]) -> float | None:
    """None where nobody was flipped."""
    return float(np.mean([row["held"] / row["count"] for row in judges])) if judges[0]["count"] else None


def number_of(judges: Sequence[Row]) -> float:
    return float(np.mean([row["held"] for row in judges]))


def difference(
    result: Result,
    margin: float,
    first: str,
    second: str,
    value: Callable[[Sequence[Row]], float | None],
    its_margin: float | None = None,
) -> Mean | None:
    """Of two lines, cohort by cohort: what differs between cohorts and their networks is the same for both.

    its_margin: of the second, where it is another
    """
    one = by_cohort(result, first, margin)
    other = by_cohort(result, second, margin if its_margin is None else its_margin)
    pairs = [(value(one[seed]), value(other[seed])) for seed in one if seed in other]
    each = [ours - theirs for ours, theirs in pairs if ours is not None and theirs is not None]
    return mean(each) if each else None
