"""Choices: categories that may be switched to another value.

A switch becomes a lever: it sets the feature that holds the category, or the features of its one-hot code. It draws
weight x distance from each budget that uses the category.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxflip._util.faults import Fault, about, wrong
from maxflip._util.frozen import FrozenMap
from maxflip._util.messages import did_you_mean, listed, shown
from maxflip._util.types import Mask
from maxflip.data.cohort import Cohort
from maxflip.data.levers import Effect
from maxflip.data.one_hot import code_faults, read_codes, values_of

Distances = Mapping[str, float]  # {value: distance from any other value}; "basic -> pro": from this one alone
ARROW = " -> "


@dataclass(frozen=True, eq=False)
class Switch:
    """A switch of one category to one value.

    name: of the lever   category: its name   effects: of the lever   allowed (n,): who may get it   distance: >= 0
    """

    name: str
    category: str
    effects: tuple[Effect, ...]
    allowed: Mask
    distance: float


@dataclass(frozen=True, eq=False)
class Category:
    """What a category's values are called, and where they stand.

    values: names   columns: the feature of each value, of a one-hot code; else the one feature that holds the code
    """

    name: str
    values: tuple[str, ...]
    columns: tuple[int, ...]
    codes: tuple[float, ...] = ()  # of the values, if one feature holds them

    @property
    def is_one_hot(self) -> bool:
        return not self.codes

    def named(self, value: Any) -> str:
        """How a value that was given is called here."""
        code = None if self.is_one_hot else _code(value)
        return str(value).removeprefix(f"{self.name}_") if code is None else name_of(code)

    def has(self, value: str, cohort: Cohort) -> Mask:
        """(n,): who has this value at the start"""
        place = self.values.index(value)
        if self.is_one_hot:
            return np.asarray(cohort.values[:, self.columns[place]] == 1.0)
        return np.asarray(cohort.values[:, self.columns[0]] == self.codes[place])

    def effects(self, value: str) -> tuple[Effect, ...]:
        place = self.values.index(value)
        if self.is_one_hot:
            return tuple(Effect(column, "set", float(i == place)) for i, column in enumerate(self.columns))
        return (Effect(self.columns[0], "set", self.codes[place]),)


def read_one_hot(one_hot: Any, cohort: Cohort) -> tuple[dict[str, tuple[str, ...]], list[Fault]]:
    """{category: its features}, each of which is 1 for its value and 0 otherwise; those of the Cohort among them."""
    known = cohort.one_hot
    given, faults = read_codes(one_hot if not isinstance(one_hot, Mapping) else {**known, **one_hot})
    codes: dict[str, tuple[str, ...]] = {**known, **given}
    for name in known:
        if codes[name] != known[name]:
            says = f"the Cohort was made with {listed(known[name])}. Leave it out here, or make the Cohort otherwise."
            faults.append(about(("one_hot", name), says))
    faults += code_faults(codes, cohort.features, cohort.values, cohort.where)
    return ({} if faults else codes), faults


def read_choices(
    choices: Any, one_hot: Mapping[str, Sequence[str]], cohort: Cohort
) -> tuple[dict[str, Distances], list[Switch], list[Fault]]:
    """The argument `choices` in plain values, the switches that it allows, and its faults."""
    if choices is None:
        return {}, [], []
    if not isinstance(choices, Mapping):
        return {}, [], [about("choices", f"got {shown(choices)}; wanted {{category: {{value: distance}}}}.")]
    plain: dict[str, Distances] = {}
    switches: list[Switch] = []
    faults: list[Fault] = []
    for name, given in choices.items():
        category, own = _category(name, given, one_hot, cohort)
        if category is not None:
            distances, more = _distances(category, given)
            own += more
            plain[category.name] = FrozenMap(distances)
            switches += [] if own else _switches(category, distances, cohort)
        faults += own
    return ({}, [], faults) if faults else (plain, switches, [])


def _category(
    name: Any, given: Any, one_hot: Mapping[str, Sequence[str]], cohort: Cohort
) -> tuple[Category | None, list[Fault]]:
    place = ("choices", str(name))
    if not isinstance(given, Mapping) or not given:
        return None, [wrong(place, given, "must be {value: distance} with at least one value.")]
    if name in one_hot:
        features = one_hot[name]
        columns = tuple(cohort.features.index(f) for f in features)
        return Category(str(name), values_of(str(name), features), columns), []
    if name not in cohort.features:
        known = [*cohort.features, *one_hot]
        says = f"no feature and no category of one_hot is called {name!r}.{did_you_mean(name, known)}"
        return None, [about(place, says)]
    values = {value for key in given for value in _parts(key)}
    none = sorted(str(value) for value in values if _code(value) is None)
    if none:
        says = f"the feature holds numbers, and {listed(none)} is none. Name numbers, or declare one_hot."
        return None, [about(place, says)]
    codes = sorted({code for value in values if (code := _code(value)) is not None})
    return Category(str(name), tuple(map(name_of, codes)), (cohort.features.index(name),), tuple(codes)), []


def name_of(code: float) -> str:
    """A code as it is written: with six digits, or with all that it needs.

    >>> name_of(2.0), name_of(0.5), name_of(1234567.0)
    ('2', '0.5', '1234567')
    """
    short = f"{code:g}"
    return short if float(short) == code else f"{code:.17g}" if code == int(code) else repr(code)


def _code(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _distances(category: Category, given: Mapping[Any, Any]) -> tuple[dict[str, float], list[Fault]]:
    place = ("choices", category.name)
    found: dict[str, float] = {}
    faults = []
    for key, distance in given.items():
        values = tuple(map(category.named, _parts(key)))
        for value in values:
            if value not in category.values:
                says = f"there is no value {value!r}.{did_you_mean(value, category.values)}"
                faults.append(about((*place, str(key)), f"{says} There are {listed(category.values)}."))
        is_number = isinstance(distance, (int, float, np.number)) and not isinstance(distance, bool)
        if len(values) > 2 or not is_number or not 0 <= distance < math.inf:
            faults.append(wrong((*place, str(key)), distance, "must be a distance: a finite number >= 0."))
            continue
        if ARROW.join(values) in found:
            faults.append(about((*place, str(key)), "the value is named twice. Keep it once."))
        found[ARROW.join(values)] = float(distance)
    return found, faults


def _parts(key: Any) -> tuple[Any, ...]:
    """(value,), or (from, to) of a pair or of a text such as "basic -> pro"."""
    if isinstance(key, str):
        return tuple(part.strip() for part in key.split(ARROW.strip()))
    return key if isinstance(key, tuple) else (key,)


def _switches(category: Category, distances: Distances, cohort: Cohort) -> list[Switch]:
    found = []
    for key, distance in distances.items():
        *before, value = key.split(ARROW)
        allowed = ~category.has(value, cohort)
        for other in before:
            allowed &= category.has(other, cohort)
        found.append(Switch(lever_name(category.name, key), category.name, category.effects(value), allowed, distance))
    return found


def lever_name(category: str, key: str) -> str:
    """
    >>> lever_name("plan", "pro"), lever_name("plan", "basic -> pro")
    ('plan = pro', 'plan: basic -> pro')
    """
    return f"{category}: {key}" if ARROW in key else f"{category} = {key}"
