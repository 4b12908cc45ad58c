"""What the study says of solvers beside each other: gains, and every cell in which Prices is not the best.

Solvers are compared on the same draws: gains are paired over seeds. Only tuned settings and solvers with nothing to
tune take part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from research.evidence.intervals import Interval, paired
from research.evidence.results import Row

Place = tuple[Any, ...]
FOUR = ("MS", "BCMS", "CCMS", "KL")
SIX = (*FOUR, "Nearest", "Prices")
WHERE = ("dataset", "budget_source", "budget")
BEST = "the best of the four"


@dataclass(frozen=True)
class Gain:
    """Of one solver over another in one place. percent: of the other's count; where that is 0, the seed is left out"""

    where: Place
    solver: str
    over: str
    count: Interval
    percent: Interval


def compared(rows: Iterable[Row], allocation: str = "joint") -> list[Row]:
    """Without the runs that have the paper's own settings"""
    return [row for row in rows if row["allocation"] == allocation and row["protocol"] in ("tuned", "own")]


def gains(rows: Iterable[Row], pairs: Sequence[tuple[str, str]], by: Sequence[str] = WHERE) -> list[Gain]:
    """A gain per place and pair of solvers that both were run there. by: columns that make a place"""
    counts: dict[Place, dict[str, dict[int, float]]] = {}
    for row in rows:
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


def gains_over_kl_by_size(rows: Iterable[Row], allocation: str = "joint", also: Sequence[str] = ()) -> list[Gain]:
    """The paper's percentages, per number of samples: place = (dataset, n, scaling, start). also: what else rows have
    in the place of a solver"""
    pairs = [(name, "KL") for name in ("BCMS", "CCMS", "Prices", *also)]
    return gains(compared(rows, allocation), pairs, ("dataset", "n", "scaling", "start"))


def full_cells(rows: Iterable[Row]) -> dict[Place, dict[str, Row]]:
    """Those that all six solvers were run in"""
    return {place: of for place, of in cells(compared(rows)).items() if set(SIX) <= of.keys()}


def smallest(rows: Iterable[Row]) -> dict[str, int]:
    """Of each dataset, the least number of samples"""
    found: dict[str, int] = {}
    for row in rows:
        found[row["dataset"]] = min(row["n"], found.get(row["dataset"], row["n"]))
    return found


def cells_by_size(rows: Iterable[Row]) -> dict[Place, dict[str, Row]]:
    """(dataset, seed, scaling, start, n) -> solver -> its row, of the scalability experiment in one pool: where Prices
    and the paper's three were run. Of the smallest set, all scalings and starts are the same. Nearest begins nowhere:
    what it found stands beside warm starts too."""
    rows = compared(rows)
    rows += [row | {"start": "warm"} for row in rows if row["solver"] == "Nearest"]
    least = smallest(rows)
    once = [r for r in rows if r["n"] > least[r["dataset"]] or (r["scaling"], r["start"]) == ("fixed", "random")]
    found = cells(once, ("dataset", "scaling", "start", "n"))
    return {place: of for place, of in found.items() if {"BCMS", "CCMS", "KL", "Prices"} <= of.keys()}


def cells(rows: Iterable[Row], by: Sequence[str] = WHERE) -> dict[Place, dict[str, Row]]:
    """(dataset, seed, ...) -> solver -> its row"""
    found: dict[Place, dict[str, Row]] = {}
    for row in rows:
        place = (row["dataset"], row["seed"], *(row[name] for name in by if name != "dataset"))
        found.setdefault(place, {})[row["solver"]] = row
    return found


def gained(rows: Iterable[Row], solver: str, over: str, by: Sequence[str] = WHERE) -> dict[str, list[float]]:
    """In %, dataset -> one for each seed: of the samples flipped in all its cells that have both.

    over: a solver, or BEST, which is another one in every cell: more than any algorithm of the four reaches alone
    """
    sums: dict[Place, tuple[float, float]] = {}
    for place, of in cells(rows, by).items():
        other = best_of_four(of) if over == BEST else of.get(over)
        if solver in of and other is not None:
            ours, theirs = sums.get(place[:2], (0.0, 0.0))
            sums[place[:2]] = ours + of[solver]["count"], theirs + other["count"]
    found: dict[str, list[float]] = {}
    for (dataset, _), (ours, theirs) in sums.items():
        if theirs:
            found.setdefault(dataset, []).append(100.0 * (ours / theirs - 1.0))
    return found


def best_of_four(of: Mapping[str, Row]) -> Row | None:
    """None where one of them was not run"""
    return max((of[name] for name in FOUR), key=lambda row: float(row["count"])) if set(FOUR) <= of.keys() else None


@dataclass(frozen=True)
class Loss:
    """A cell in which another solver flips more than Prices."""

    where: Place
    prices: int
    estimate: float | None
    best: str
    count: int


@dataclass(frozen=True)
class Standing:
    """Of Prices, in some cells. alone: it flips more than every other   tied: none more"""

    alone: int
    tied: int
    losses: list[Loss]


def standing(of_cells: Mapping[Place, Mapping[str, Row]]) -> Standing:
    """Beside all others that were run in each"""
    alone, tied, found = 0, 0, []
    for place, of in of_cells.items():
        ours = of["Prices"]
        best = max((row for name, row in of.items() if name != "Prices"), key=lambda row: float(row["count"]))
        alone += ours["count"] > best["count"]
        tied += ours["count"] == best["count"]
        if best["count"] > ours["count"]:
            found.append(Loss(place, ours["count"], ours["estimate"], best["solver"], best["count"]))
    return Standing(alone, tied, found)
