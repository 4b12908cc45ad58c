"""What differs between samples in a budget: a number of each sample's own, and the part of the cohort that draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxflip._util.frozen import Frozen, FrozenMap, freeze, read_only
from maxflip._util.types import Floats, Mask, Rows
from maxflip.problem.members import Group, group_name


@dataclass(frozen=True, eq=False)
class Own(Frozen):
    """A number >= 0 of each sample's own.   values (n,)   column: the one that holds them; None: an array did"""

    values: Floats
    column: str | None = None

    def __post_init__(self) -> None:
        freeze(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())


@dataclass(frozen=True, eq=False)
class Part(Frozen):
    """Some of the samples.   group: those with this value in a column, or these ids   inside (n,)"""

    group: Group
    inside: Mask

    def __post_init__(self) -> None:
        freeze(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and np.array_equal(self.inside, other.inside)

    def __hash__(self) -> int:
        return hash(self.inside.tobytes())

    @property
    def name(self) -> str:
        """In words: "site = 'Oslo'", "3 people named by id"."""
        return group_name(self.group)


Weight = float | Own


def largest(weight: Weight) -> float:
    return weight if isinstance(weight, float) else float(weight.values.max(initial=0.0))


def shared(weight: Weight) -> float:
    """The weight that all samples have; NaN where they differ"""
    if isinstance(weight, float):
        return weight
    first = float(weight.values[0])
    return first if (weight.values == first).all() else math.nan


def of_each(weight: Weight, n: int) -> Floats:
    """(n,)"""
    return np.full(n, weight) if isinstance(weight, float) else weight.values


@dataclass(frozen=True, eq=False)
class Differences(Frozen):
    """What samples j = 1..n draw otherwise than all the others, by budget r; empty where all draw alike.

    weights: {(r, slot): (of changes up, of changes down)}, (n,) each, the very same array where both ways weigh alike
    fees: {r: (n,)}   inside: {r: (n,)}: who draws on the budget; where it is missing, everybody does
    """

    weights: Mapping[tuple[int, int], tuple[Floats, Floats]] = field(default_factory=lambda: FrozenMap({}))
    fees: Mapping[int, Floats] = field(default_factory=lambda: FrozenMap({}))
    inside: Mapping[int, Mask] = field(default_factory=lambda: FrozenMap({}))

    def __post_init__(self) -> None:
        for own in (*self.fees.values(), *(way for both in self.weights.values() for way in both)):
            read_only(own)
        for inside in self.inside.values():
            read_only(inside)

    def __bool__(self) -> bool:
        return bool(self.weights or self.fees or self.inside)

    def at(self, columns: Rows) -> Differences:
        """The same over places, of which `columns` tells the feature."""
        slots = range(len(columns))
        weights = {(r, k): both for (r, i), both in self.weights.items() for k in slots if columns[k] == i}
        return Differences(FrozenMap(weights), self.fees, self.inside)

    @property
    def budgets(self) -> set[int]:
        """Those that some samples draw on otherwise than others."""
        return {*(r for r, _ in self.weights), *self.fees, *self.inside}

    def numbers(self, rows: Rows, budget: int | None = None) -> Floats:
        """(c, .): the numbers of these samples, in one budget or in all; whoever has no larger one draws no more."""
        ways = [(r, way) for (r, _), both in self.weights.items() for way in both]
        each = [*ways, *self.fees.items(), *self.inside.items()]
        columns: list[Any] = [own[rows] for r, own in each if budget in (None, r)]
        return np.column_stack(columns).astype(np.float64) if columns else np.empty((len(rows), 0))
