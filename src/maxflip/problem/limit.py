"""Limit: what is asked of the changes of one feature, as a user gives it: read, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxflip._util.faults import Fault, about, wrong
from maxflip._util.messages import did_you_mean, shown
from maxflip.data.derived import no_own

DIRECTIONS = {"up": 1, "down": -1}
FROZEN = "the feature draws on no budget, so it is frozen. Give it a budget, or leave this out."
SMALLEST, LARGEST = 1e-100, 1e100  # steps and sizes; quotients of values and steps beyond these may be no float64


@dataclass(frozen=True)
class Limit:
    """What changes of one feature may be. Of sequences, all this holds in every step of time.

    Args:
        low: the value afterwards is at least so much: None, a number, or one per sample, (n,).
        high: ... at most so much. A start value outside its limits widens them for that sample.
        direction: "up" or "down": the only way it may go; None: both.
        step: the value afterwards is a multiple of this; where the start is none, the change is. So `step=1` keeps
            whole numbers whole. Steps count in decimals, as they are written: three steps of 0.1 are 0.3.
        smallest: a change is 0 or at least so large, up or down.
        observed: low and high are the smallest and the largest value of the cohort.
    """

    low: Any = None
    high: Any = None
    direction: str | None = None
    step: float | None = None
    smallest: float | None = None
    observed: bool = False


def read_each(
    limits: Any, features: tuple[str, ...], weighed: Collection[str], derived: Collection[str]
) -> tuple[dict[str, Limit], list[Fault]]:
    """As one Limit for each feature that has any.   weighed: features that may change   derived: those that follow"""
    given: Mapping[str, Any] = {}
    faults: list[Fault] = []
    if are_observed(limits):
        given = {name: limits for name in features if name in weighed}
    elif isinstance(limits, Mapping):
        given = limits
    elif limits is not None:
        faults.append(about("limits", f"got {shown(limits)}; wanted {{feature: (low, high)}} or 'observed'."))
    asked = {}
    for name, one in given.items():
        problem = _unknown("limits", name, features, weighed, derived)
        if problem:
            faults.append(problem)
        elif isinstance(one, Limit):
            asked[name] = one
        elif are_observed(one):
            asked[name] = Limit(observed=True)
        elif isinstance(one, (tuple, list)) and len(one) == 2:
            asked[name] = Limit(*one)
        else:
            faults.append(wrong(("limits", name), one, "must be a pair (low, high), a Limit(...), or 'observed'."))
    return asked, faults


def read_directions(
    directions: Any, features: tuple[str, ...], weighed: Collection[str], derived: Collection[str]
) -> tuple[dict[str, str], list[Fault]]:
    if directions is not None and not isinstance(directions, Mapping):
        return {}, [about("directions", f"got {shown(directions)}; wanted {{feature: 'up' or 'down'}}.")]
    ways, faults = {}, []
    for name, word in (directions or {}).items():
        problem = _unknown("directions", name, features, weighed, derived)
        if problem:
            faults.append(problem)
        elif not isinstance(word, str) or word not in DIRECTIONS:
            faults.append(wrong(("directions", str(name)), word, "must be 'up' or 'down'."))
        else:
            ways[name] = word
    return ways, faults


def direction_faults(name: str, limit: Limit, ways: Mapping[str, str]) -> list[Fault]:
    """ways: of the argument `directions`"""
    place, way = ("limits", name, "direction"), limit.direction
    if way is None:
        return []
    if not isinstance(way, str) or way not in DIRECTIONS:
        return [wrong(place, way, "must be 'up' or 'down'.")]
    if ways.get(name, way) != way:
        return [about(place, f"{way!r} here and {ways[name]!r} there. Keep one of them.", ("directions", name))]
    return []


def size_faults(name: str, step: Any, smallest: Any) -> list[Fault]:
    return [
        wrong(("limits", name, key), value, f"must be a number from {SMALLEST:g} to {LARGEST:g}.")
        for key, value in (("step", step), ("smallest", smallest))
        if value is not None and not is_size(value)
    ]


def amounts_faults(asked: Mapping[str, Limit], weighed: Collection[str]) -> list[Fault]:
    """Steps and sizes of features that actions alone change.   weighed: features that may change by amounts"""
    says = "actions alone change the feature, as far as they say. Leave this out, or give the feature a budget."
    return [
        about(("limits", name, key), says)
        for name, limit in asked.items()
        for key in ("step", "smallest")
        if name not in weighed and getattr(limit, key) is not None
    ]


def is_size(value: Any) -> bool:
    """Whether it is a step, or a size of changes, that can be counted with."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return bool(is_number and SMALLEST <= value <= LARGEST)


def are_observed(limits: Any) -> bool:
    """Whether the argument asks for the cohort's own range of all features that may change."""
    return isinstance(limits, str) and limits == "observed"


def _unknown(
    where: str, name: object, features: tuple[str, ...], weighed: Collection[str], derived: Collection[str]
) -> Fault | None:
    place = (where, str(name))
    if name not in features:
        return about(place, f"no feature is called {name!r}.{did_you_mean(name, features)}")
    if name in derived:
        return about(place, no_own(where))
    if name not in weighed:
        return about(place, FROZEN)
    return None
