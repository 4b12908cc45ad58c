"""What was measured in each place, seed by seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from research.evidence.gains import FOUR
from research.evidence.results import Row

SAMPLED, OTHERS = ("BCMS", "CCMS"), ("KL", "MS")

T = TypeVar("T")
Means = dict[tuple[Any, ...], float]


def means(rows: Iterable[Row], by: Sequence[str], of: str) -> Means:
    """Over seeds, of what is known."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row[of] is not None:
            found.setdefault(tuple(row[name] for name in by), []).append(row[of])
    return {key: float(np.mean(each)) for key, each in found.items()}


Seeds = dict[str, dict[int, float]]  # solver, or size of budgets -> seed -> number


def by_seed(rows: Iterable[Row], by: Sequence[str], of: str, name: str = "solver") -> dict[tuple[Any, ...], Seeds]:
    """The numbers in each place, of the seeds that all that is compared there has. name: the column of what that is"""
    places: dict[tuple[Any, ...], Seeds] = {}
    for row in rows:
        if row[of] is not None:
            places.setdefault(tuple(row[c] for c in by), {}).setdefault(row[name], {})[row["seed"]] = float(row[of])
    return {place: of_common_seeds(found) for place, found in places.items()}


def of_common_seeds(found: Mapping[str, Mapping[int, T]]) -> dict[str, dict[int, T]]:
    common = sorted(set.intersection(*(set(each) for each in found.values()))) if found else []
    return {name: {seed: each[seed] for seed in common} for name, each in found.items()} if common else {}


def by_place(rows: Iterable[Row], by: Sequence[str], of: str) -> dict[tuple[Any, ...], Seeds]:
    """Each place that has all four."""
    return {place: found for place, found in by_seed(rows, by, of).items() if set(FOUR) <= set(found)}


def mean(each: Mapping[int, float]) -> float:
    return float(np.mean(list(each.values())))


def tuned(rows: Iterable[Row]) -> list[Row]:
    return [
        row for row in rows if row["solver"] in FOUR and row["protocol"] == "tuned" and row["allocation"] == "joint"
    ]


def name_of(place: Sequence[Any]) -> str:
    return " ".join(str(part) for part in place)
