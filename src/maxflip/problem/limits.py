"""Limits: where a changed value may lie, down to the last bit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.faults import Fault, about
from maxflip._util.frozen import Frozen, read_only
from maxflip._util.messages import shown
from maxflip._util.types import Floats
from maxflip.data.cohort import Cohort, in_cohort_order, real_numbers
from maxflip.problem.limit import (
    DIRECTIONS,
    Limit,
    amounts_faults,
    direction_faults,
    read_directions,
    read_each,
    size_faults,
)

NAMED = 5  # samples with crossed limits that a message names
ROOM = 1e-9  # of a step: differences of start and limit are rounded


@dataclass(frozen=True, eq=False)
class Limits(Frozen):
    """min(lower, x) <= x + d <= max(upper, x);  d >= 0 where direction is 1, d <= 0 where it is -1.

    lower, upper: (1, F) for all samples, or (n, F)   direction (F,) of -1, 0, 1
    A start value outside its limits widens them for that sample, so that standing still is always allowed.
    """

    lower: Floats
    upper: Floats
    direction: NDArray[np.int8]

    @cached_property
    def none(self) -> bool:
        """Whether anything goes."""
        return bool(np.isinf(self.lower).all() and np.isinf(self.upper).all() and not self.direction.any())

    def _bounds(self, x: Floats, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        lower = self.lower if len(self.lower) == 1 else self.lower[rows]
        upper = self.upper if len(self.upper) == 1 else self.upper[rows]
        return np.minimum(lower, x), np.maximum(upper, x)

    def box(self, x: Floats, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """x (B, F) -> smallest and largest change (B, F)."""
        if self.none:
            return np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
        lower, upper = self._bounds(x, rows)
        return np.where(self.direction > 0, 0.0, lower - x), np.where(self.direction < 0, 0.0, upper - x)

    def settle(self, x: Floats, d: Floats, rows: NDArray[np.int64]) -> Floats:
        """d, already inside the box, with x + d inside the limits in float64 too (upper - x may round up)."""
        d = d + 0.0  # a copy, and -0.0 becomes 0.0
        if self.none:
            return d
        lower, upper = self._bounds(x, rows)
        while (over := (x + d > upper) | (x + d < lower)).any():
            d[over] = np.nextafter(d[over], 0.0)
        return d

    def broken(self, x: Floats, d: Floats, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(B, F): where x + d leaves its limits or d goes the wrong way."""
        return self.crossed(x, x + d, rows) | (d * self.direction < 0)

    def crossed(self, x: Floats, after: Floats, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(B, F): where the value `after` lies outside its limits, or on the wrong side of x."""
        if self.none:
            return np.zeros(x.shape, dtype=bool)
        lower, upper = self._bounds(x, rows)
        return np.asarray((after > upper) | (after < lower) | ((after - x) * self.direction < 0))

    def outside(self, x: Floats) -> NDArray[np.bool_]:
        """x (n, F) of all samples -> where a start value lies outside its limits"""
        return np.asarray((x < self.lower) | (x > self.upper))

    def with_columns(self, more: int) -> Limits:
        """With so many further columns that have no limits."""
        sides = [(0, 0), (0, more)]
        return Limits(
            read_only(np.pad(self.lower, sides, constant_values=-np.inf)),
            read_only(np.pad(self.upper, sides, constant_values=np.inf)),
            read_only(np.pad(self.direction, (0, more))),
        )

    def at(self, columns: NDArray[np.int64]) -> Limits:
        """The same for places, of which `columns` tells the feature."""
        return Limits(
            read_only(self.lower[:, columns]), read_only(self.upper[:, columns]), read_only(self.direction[columns])
        )


def read_limits(
    limits: Any,
    directions: Any,
    cohort: Cohort,
    weighed: Collection[str],
    derived: Collection[str] = (),
    *,
    by_actions: Collection[str] = (),
) -> tuple[Limits, dict[str, Limit], list[Fault]]:
    """The limits of all features, what was asked of each, and faults.

    limits: "observed", or {feature: Limit, (low, high) or "observed"}; directions: {feature: "up" or "down"}
    weighed: features that may change by amounts   derived: those that follow from others
    by_actions: those that actions change
    """
    features, changing = cohort.features, frozenset([*weighed, *by_actions])
    asked, faults = read_each(limits, features, changing, derived)
    faults += amounts_faults(asked, weighed)
    ways, more = read_directions(directions, features, changing, derived)
    faults += more
    sides: dict[str, tuple[Any, Any]] = {}
    direction = np.zeros(len(features), dtype=np.int8)
    for name, limit in asked.items():
        side, side_faults = _sides(name, limit, cohort)
        more = [*side_faults, *size_faults(name, limit.step, limit.smallest), *direction_faults(name, limit, ways)]
        faults += more
        if not side_faults:
            sides[name] = side
        if not more and limit.direction is not None:
            ways[name] = limit.direction
    for name, word in ways.items():
        direction[features.index(name)] = DIRECTIONS[word]
    faults += _contradictions(asked, sides, direction, cohort)
    faults += _without_room(asked, sides, direction, cohort) if not faults else []
    per_sample = any(np.ndim(v) for pair in sides.values() for v in pair)
    lower = np.full((len(cohort) if per_sample else 1, len(features)), -np.inf)
    upper = np.full_like(lower, np.inf)
    for name, (low, high) in sides.items():
        i = features.index(name)
        lower[:, i], upper[:, i] = low, high
    return Limits(read_only(lower), read_only(upper), read_only(direction)), asked, faults


def _sides(name: str, limit: Limit, cohort: Cohort) -> tuple[tuple[Any, Any], list[Fault]]:
    place = ("limits", name)
    if limit.observed:
        if limit.low is not None or limit.high is not None:
            return (None, None), [about((*place, "observed"), "give `observed` or `low` and `high`, not both.")]
        column, _ = cohort.measured(cohort.features.index(name))
        if not len(column):
            return (None, None), [about(place, "'observed', but nothing of it was measured. Give numbers.")]
        return (float(column.min()), float(column.max())), []
    sides: list[Any] = []
    for value, open_end in ((limit.low, -np.inf), (limit.high, np.inf)):
        in_order = open_end if value is None else in_cohort_order(value, cohort)
        try:
            side = real_numbers(in_order)
        except (TypeError, ValueError, OverflowError):
            return (None, None), [about(place, f"{shown(value)} is no number and no array of numbers.")]
        if side.shape not in ((), (len(cohort),)):
            return (None, None), [
                about(place, f"shape {side.shape}; wanted a number or one per sample, ({len(cohort)},).")
            ]
        if np.isnan(side).any():
            return (None, None), [about(place, "NaN is no limit. Use None, -inf or inf for an open side.")]
        sides.append(side if side.ndim else float(side))
    low, high = sides
    crossed = np.flatnonzero(np.broadcast_to(np.asarray(low) > np.asarray(high), (len(cohort),)))
    if len(crossed) and np.ndim(low) == np.ndim(high) == 0:
        return (low, high), [about(place, f"min {low} is above max {high}. Swap them.")]
    return (low, high), [about(place, _min_above_max(crossed, cohort))] if len(crossed) else []


def _min_above_max(rows: NDArray[np.int64], cohort: Cohort) -> str:
    """The first few samples are named, the others counted."""
    where = [cohort.where(j) for j in rows[:NAMED].tolist()]
    if len(rows) == 1:
        return f"{where[0]}: min is above max."
    rest = len(rows) - NAMED
    named = ", ".join(where) + (f" and {rest:,} more" if rest > 0 else "")
    return f"min is above max for {len(rows):,} samples: {named}. Swap them there."


def _contradictions(
    asked: Mapping[str, Limit], sides: Mapping[str, tuple[Any, Any]], direction: NDArray[np.int8], cohort: Cohort
) -> list[Fault]:
    """A direction in which no sample can go: everyone starts at or beyond the limit on that side."""
    faults = []
    for name, (low, high) in sides.items():
        i = cohort.features.index(name)
        x, owner = cohort.measured(i)
        least, most = (side[owner] if np.ndim(side) else side for side in (low, high))
        way = ("directions", name) if asked[name].direction is None else ("limits", name, "direction")
        if direction[i] > 0 and np.all(x >= most) and np.all(np.isfinite(high)):
            faults.append(about(("limits", name, "max"), "'up', but every sample starts at or above max.", way))
        if direction[i] < 0 and np.all(x <= least) and np.all(np.isfinite(low)):
            faults.append(about(("limits", name, "min"), "'down', but every sample starts at or below min.", way))
    return faults


def _without_room(
    asked: Mapping[str, Limit], sides: Mapping[str, tuple[Any, Any]], direction: NDArray[np.int8], cohort: Cohort
) -> list[Fault]:
    """A smallest change, or a step, for which the limits leave no sample room."""
    faults = []
    for name, limit in asked.items():
        sizes = [(size, key) for key in ("step", "smallest") if (size := getattr(limit, key)) is not None]
        i = cohort.features.index(name)
        x, owner = cohort.measured(i)
        if not sizes or not len(x):
            continue
        low, high = (side[owner] if np.ndim(side) else side for side in sides[name])
        room_up = np.max(high - x) if direction[i] >= 0 else -np.inf
        room_down = np.max(x - low) if direction[i] <= 0 else -np.inf
        size, key = max(sizes)
        if max(room_up, room_down) < size * (1 - ROOM):
            says = f"no sample has room for a change of {size:g} within the limits. Widen them, or ask for less."
            faults.append(about(("limits", name, key), says))
    return faults
