"""One-hot codes: categories whose values have a feature each, 1 or 0; made from a column of texts where there is one.

The feature plan_pro of the category plan stands for the text "pro": its name without the prefix "plan_", or its whole
name where it has no such prefix. "Texts" are the cells' words: integers as they are written, booleans true and false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maxflip._util.faults import Fault, about, bad_value, grouped, wrong
from maxflip._util.messages import did_you_mean, listed, shown
from maxflip._util.types import Floats
from maxflip.data.tables import Column, is_listing

Codes = Mapping[str, tuple[str, ...]]  # {category: its features}
Coded = tuple[dict[str, Column], list[str]]


def values_of(category: str, features: Sequence[str]) -> tuple[str, ...]:
    """What the features stand for.

    >>> values_of("plan", ["plan_basic", "plan_pro"])
    ('basic', 'pro')
    """
    return tuple(feature.removeprefix(f"{category}_") for feature in features)


def read_codes(one_hot: Any) -> tuple[dict[str, tuple[str, ...]], list[Fault]]:
    """The argument `one_hot`: the categories that are right in themselves, and faults of the others."""
    if one_hot is None:
        return {}, []
    if not isinstance(one_hot, Mapping):
        return {}, [about("one_hot", f"got {shown(one_hot)}; wanted {{category: [features]}}.")]
    found: dict[str, tuple[str, ...]] = {}
    faults: list[Fault] = []
    taken: set[str] = set()
    for name, given in one_hot.items():
        place = ("one_hot", str(name))
        if not is_listing(given) or len(list(given)) < 2 or not all(isinstance(c, str) for c in given):
            faults.append(wrong(place, given, "must be a list of at least two features."))
            continue
        features = tuple(given)
        twice = sorted({c for c in features if features.count(c) > 1 or c in taken})
        faults += [about(place, f"the feature {c!r} is listed twice. Keep it once.") for c in twice]
        taken |= set(features)
        values = values_of(str(name), features)
        alike = sorted({v for v in values if values.count(v) > 1 and not twice})
        faults += [about(place, f"two features stand for {v!r}. Rename one.") for v in alike]
        if not twice and not alike:
            found[str(name)] = features
    return found, faults


def code_faults(codes: Codes, features: Sequence[str], values: Floats, where: Callable[[int], str]) -> list[Fault]:
    """What is wrong with codes in a cohort with these features and values (n, F).   where(row): names a row"""
    faults = []
    for name, own in codes.items():
        place = ("one_hot", name)
        unknown = [c for c in own if c not in features]
        faults += [about(place, f"no feature is called {c!r}.{did_you_mean(c, features)}") for c in unknown]
        if name in features:
            says = "a feature has this name too. Name the features of the code instead of it, or rename the category."
            faults.append(about(place, says))
        if not unknown:
            faults += _row_faults(name, values[:, [features.index(c) for c in own]], where)
    return faults


def _row_faults(name: str, codes: Floats, where: Callable[[int], str]) -> list[Fault]:
    bad = np.flatnonzero(~(((codes == 0) | (codes == 1)).all(axis=1) & (codes.sum(axis=1) == 1)))
    if not len(bad):
        return []
    first = int(bad[0])
    says = f"{where(first)} has {codes[first].tolist()}; one of them must be 1 and the others 0"
    more = f", and so in {len(bad) - 1} more rows" if len(bad) > 1 else ""
    return [about(("one_hot", name), f"{says}{more}.")]


# Texts


def held_as_texts(codes: Codes, names: Sequence[str], id_: str | None = None) -> Codes:
    """The categories that have a column of their own among these."""
    return {name: own for name, own in codes.items() if name in names and name != id_}


def held_faults(held: Codes, names: Sequence[str], features: Sequence[str] | None, source: str) -> Iterator[str]:
    """Categories whose code is there too, and those that are named in place of the features of their code."""
    for name, own in held.items():
        if beside := [c for c in own if c in names]:
            says = f"has the column {name!r} and columns of its code (one_hot.{name}): {listed(beside)}"
            yield f"{source}: {says}. Keep the texts or the code."
        elif name in (features or ()):
            yield f"features: {name!r} is a category of one_hot. Name the features of its code instead: {listed(own)}."


def with_codes(names: Sequence[str], held: Codes) -> list[str]:
    """The names of columns, those of texts replaced by the features of their codes."""
    return [name for column in names for name in held.get(column, (column,))]


def coded(column: Column, features: Sequence[str], whose: Callable[[int], str], source: str) -> Coded:
    """The columns of a code by their names, made from a column of texts; a fault per text that none of them stands for.

    whose(row): the id of a row in words
    """
    values = values_of(column.name, features)
    words = np.array(column.words(), dtype=object)
    made = {name: Column(name, words == value, is_whole=True) for name, value in zip(features, values, strict=True)}
    wrong = {j: bad_value(word) for j, word in enumerate(words.tolist()) if word not in values}
    place = f"{source}: column {column.name!r}"
    wanted = f"one_hot.{column.name} has features for {listed(values)}"
    return made, grouped(wrong, lambda j, what: f"{place}, row {j + 1}{whose(j)}: {what}; {wanted}.", place)
