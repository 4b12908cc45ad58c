"""Groups: the cohort and the samples picked, by the values of a column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.messages import counted, did_you_mean, shown
from maxflip._util.types import Floats
from maxflip.data.cohort import Cohort, in_cohort_order
from maxflip.data.tables import is_listing
from maxflip.errors import InputError
from maxflip.plan.plan import Fate, Plan

MOST_GROUPS = 12  # with more values, numbers are cut into quarters and rare texts are merged
SMALL_GROUP = 10  # groups of fewer samples are marked, because their shares are unreliable
PRIVATE_GROUP = 5  # groups of fewer samples are merged in a report without names
MISSING, SMALL_ONES = "missing", "small groups"


@dataclass(frozen=True)
class Group:
    """size: number of samples   reachable: samples with a known flip, picked or not
    confidence: mean before any change; None if not known
    """

    name: str
    size: int
    already: int
    reachable: int
    picked: int
    confidence: float | None

    @property
    def is_small(self) -> bool:
        return self.size < SMALL_GROUP


@dataclass(frozen=True)
class Groups:
    """The cohort grouped by a column."""

    column: str
    groups: tuple[Group, ...]

    def merged(self, least: int = PRIVATE_GROUP) -> Groups:
        """The groups, with all groups of fewer than `least` samples merged into one.

        If the merged group is still too small, the smallest other group joins it. Leaving small groups out instead
        would reveal them, as the difference between the total and the other groups.
        """
        by_size = sorted(self.groups, key=lambda group: group.size)
        small = [group for group in by_size if group.size < least]
        while small and sum(group.size for group in small) < least and len(small) < len(by_size):
            small.append(by_size[len(small)])
        if not small:
            return self
        kept = tuple(group for group in self.groups if group not in small)
        return Groups(self.column, (*kept, _together(small)) if sum(g.size for g in small) >= least else kept)


def _together(groups: list[Group]) -> Group:
    known = [(g.size, g.confidence) for g in groups if g.confidence is not None]
    return Group(
        name=SMALL_ONES,
        size=sum(g.size for g in groups),
        already=sum(g.already for g in groups),
        reachable=sum(g.reachable for g in groups),
        picked=sum(g.picked for g in groups),
        confidence=sum(n * c for n, c in known) / sum(n for n, _ in known) if known else None,
    )


def read_group(group: Any, cohort: Cohort) -> tuple[str, NDArray[np.object_]]:
    """The column's name, and the label or number of each sample; None where missing."""
    if isinstance(group, str):
        return group, _column(group, cohort)
    name = str(getattr(group, "name", None) or "group")
    if isinstance(group, Mapping):
        if len(group) != 1 or not isinstance(next(iter(group)), str):
            raise InputError(f"group: got {shown(dict(group))}; wanted one column, as {{'name': values}}.")
        name, group = next(iter(group.items()))
    if not is_listing(group):
        raise InputError(
            f"group: got {shown(group)}; wanted the name of a feature, or a list with one value per sample."
        )
    cells = [_plain(cell) for cell in in_cohort_order(group, cohort)]
    if len(cells) != len(cohort):
        raise InputError(f"group: got {counted(len(cells), 'value')}; the cohort has {counted(len(cohort), 'sample')}.")
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return name, values


def _column(name: str, cohort: Cohort) -> NDArray[np.object_]:
    kind, names, values = cohort.layout.of_each(cohort.features)
    if name not in names:
        raise InputError(
            f"group: the cohort has no {kind} {name!r}.{did_you_mean(name, names)} Of a column that is none, give the "
            "values: group={'name': values}."
        )
    return values[:, names.index(name)].astype(object)


def _plain(cell: Any) -> str | float | None:
    """A cell of any kind of table as a text, a number, or None if missing."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or str(cell) in ("", "nan", "NaT", "<NA>"):
        return None
    return float(cell) if isinstance(cell, (int, float)) and not isinstance(cell, bool) else str(cell)


def groups_of(plan: Plan, column: str, values: NDArray[np.object_]) -> Groups:
    missing = np.array([value is None for value in values], dtype=bool)
    known = values[~missing]
    is_number = len(known) > 0 and all(isinstance(value, float) for value in known)
    place = np.full(len(values), -1)
    place[~missing], names = _quarters(known.astype(np.float64)) if is_number else _kinds(known.astype(str))
    found = [_group(plan, name, place == k) for k, name in enumerate(names)]
    return Groups(column, (*found, *([_group(plan, MISSING, missing)] if missing.any() else [])))


def _quarters(numbers: Floats) -> tuple[NDArray[np.int64], list[str]]:
    """(group of each number, group names): one group per number, or quarters if there are more than MOST_GROUPS."""
    kinds, place = np.unique(numbers, return_inverse=True)
    if len(kinds) <= MOST_GROUPS:
        return place.reshape(-1), [f"{kind:.15g}" for kind in kinds]
    quarter = np.searchsorted(np.quantile(numbers, (0.25, 0.5, 0.75)), numbers, side="left")
    there, place = np.unique(quarter, return_inverse=True)
    parts = [numbers[quarter == q] for q in there]
    return place.reshape(-1), [f"{part.min():.6g} to {part.max():.6g}" for part in parts]


def _kinds(texts: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """(group of each text, group names), alphabetical; with more than MOST_GROUPS texts, rare ones are merged."""
    kinds, place, sizes = np.unique(texts, return_inverse=True, return_counts=True)
    names, place = kinds.tolist(), place.reshape(-1)
    if len(kinds) <= MOST_GROUPS:
        return place, names
    common = np.sort(np.argsort(-sizes, kind="stable")[: MOST_GROUPS - 1])
    new = np.full(len(kinds), MOST_GROUPS - 1)
    new[common] = np.arange(len(common))
    return new[place], [*(names[k] for k in common), f"{len(kinds) - len(common):,} others"]


def _group(plan: Plan, name: str, inside: NDArray[np.bool_]) -> Group:
    fates, confidence = plan.fates[inside], plan.confidence_before[inside]
    known = confidence[np.isfinite(confidence)]
    picked = int((fates == Fate.FLIPPED).sum())
    return Group(
        name=name,
        size=int(inside.sum()),
        already=int((fates == Fate.ALREADY).sum()),
        reachable=picked + int((fates == Fate.LEFT_OUT).sum()),
        picked=picked,
        confidence=math.fsum(known) / len(known) if len(known) else None,
    )
