"""What the result files say: gains with their intervals, and every cell in which Prices is not the best.

Solvers are compared on the same draws: gains are paired over seeds. Only tuned settings and solvers with nothing to
tune take part, in one pool.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from evidence.files import FOLDER, read

Row = Mapping[str, Any]
CONFIDENCE = 0.95
WHERE = ("dataset", "budget_source", "budget")


@dataclass(frozen=True)
class Interval:
    """The mean of paired differences, and the 95 % interval of Student's t; of one pair there is none (NaN)."""

    mean: float
    low: float
    high: float
    pairs: int


def paired(differences: Iterable[float]) -> Interval:
    d = np.array(list(differences), dtype=float)
    if not len(d):
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(d.mean())
    if len(d) == 1:
        return Interval(mean, math.nan, math.nan, 1)
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(d) - 1) * d.std(ddof=1) / math.sqrt(len(d)))
    return Interval(mean, mean - half, mean + half, len(d))


@dataclass(frozen=True)
class Gain:
    """Of one solver over another in one place. percent: of the other's count; where that is 0, the seed is left out"""

    where: tuple[Any, ...]
    solver: str
    over: str
    count: Interval
    percent: Interval


def rows_of(name: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read(name, folder)[0].to_pylist()
    return found


def compared(rows: Iterable[Row], allocation: str = "joint") -> list[Row]:
    """Without the runs that have the paper's own settings"""
    return [row for row in rows if row["allocation"] == allocation and row["protocol"] in ("tuned", "own")]


def gains(
    rows: Iterable[Row], pairs: Sequence[tuple[str, str]], by: Sequence[str] = WHERE, allocation: str = "joint"
) -> list[Gain]:
    """A gain per place and pair of solvers that both were run there. by: columns that make a place"""
    counts: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
    for row in compared(rows, allocation):
        place = tuple(row[name] for name in by)
        counts.setdefault(place, {}).setdefault(row["solver"], {})[row["seed"]] = row["count"]
    found = []
    for (place, of), (solver, over) in product(counts.items(), pairs):
        ours, theirs = of.get(solver, {}), of.get(over, {})
        seeds = sorted(ours.keys() & theirs.keys())
        if seeds:
            differences = paired(ours[s] - theirs[s] for s in seeds)
            shares = paired(100.0 * (ours[s] - theirs[s]) / theirs[s] for s in seeds if theirs[s])
            found.append(Gain(place, solver, over, differences, shares))
    return found


def gains_of_prices(folder: Path = FOLDER) -> list[Gain]:
    """Over BCMS and KL, both tuned, and over Nearest"""
    return gains(rows_of("budget", folder), [("Prices", "BCMS"), ("Prices", "KL"), ("Prices", "Nearest")])


def gains_over_kl(folder: Path = FOLDER) -> list[Gain]:
    """The paper's percentages, per budget"""
    return gains(rows_of("budget", folder), [(name, "KL") for name in ("MS", "BCMS", "CCMS")])


def gains_over_kl_by_size(folder: Path = FOLDER, allocation: str = "joint") -> list[Gain]:
    """The paper's percentages, per number of samples: place = (dataset, n, scaling, start)"""
    by = ("dataset", "n", "scaling", "start")
    pairs = [(name, "KL") for name in ("BCMS", "CCMS", "Prices")]
    return gains(rows_of("scalability", folder), pairs, by, allocation)


@dataclass(frozen=True)
class Loss:
    """A cell in which another solver flips more than Prices."""

    where: tuple[Any, ...]  # dataset, budget_source, budget, seed
    prices: int
    estimate: float | None
    best: str
    count: int
    cause: str


def losses_of_prices(folder: Path = FOLDER) -> list[Loss]:
    return losses(rows_of("budget", folder))


def losses(rows: Iterable[Row]) -> list[Loss]:
    places: dict[tuple[Any, ...], list[Row]] = {}
    for row in compared(rows):
        places.setdefault((*(row[name] for name in WHERE), row["seed"]), []).append(row)
    found = []
    for place, here in places.items():
        ours = next((row for row in here if row["solver"] == "Prices"), None)
        if ours is None:
            continue
        best = max(here, key=lambda row: row["count"])
        if best["count"] > ours["count"]:
            found.append(
                Loss(place, ours["count"], ours["estimate"], best["solver"], best["count"], _cause(ours, best))
            )
    return found


def _cause(ours: Row, best: Row) -> str:
    """Read from the estimate, which is what the flips that Prices found would be worth if samples could be divided."""
    estimate = ours["estimate"]
    if estimate is None:
        return "Prices gave no estimate."
    if best["count"] > estimate:
        return "search: the other found cheaper flips, or flips of more samples, since its count is above the estimate."
    return (
        "selection: the flips that Prices found allow for it by the estimate, but not as whole samples, or not found."
    )
