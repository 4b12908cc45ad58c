"""Derived features: columns that follow from others, such as pulse pressure = systolic - diastolic.

They have no budget. After a change, a derived feature is computed anew from the values that the others have then, in
float64; it keeps the cohort's own value where none of the features in its expression has another value than before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np

from maxflip._util.faults import Fault, about
from maxflip._util.frozen import Frozen, FrozenMap
from maxflip._util.messages import counted, did_you_mean, shown
from maxflip._util.types import Floats, Rows
from maxflip.data.expressions import BadExpression, Expression

TOLERANCE = 1e-6  # of its size: how far the cohort's own value may be from the expression; float32 rounds by 6e-8
NAMED = 5  # rows that a message names
EPS = float(np.finfo(np.float64).eps)

Array = TypeVar("Array")  # numpy arrays, or tensors


@dataclass(frozen=True, eq=False)
class Rule:
    """One derived feature.   column: its own   parts: those of `expression.names`"""

    column: int
    expression: Expression
    parts: tuple[int, ...]

    def is_moved(self, before: Sequence[Array], after: Sequence[Array]) -> Any:
        """Where one of the parts has another value than before; before, after: a column of each part"""
        changed = [a != b for a, b in zip(before, after, strict=True)]
        return reduce(lambda one, other: one | other, changed)

    def on(self, parts: Sequence[Array]) -> Array:
        """The values that follow from those of the parts."""
        return self.expression.on(dict(zip(self.expression.names, parts, strict=True)))

    def off(self, values: Floats) -> tuple[Rows, Floats, Floats, Floats]:
        """Of values (N, F): the rows where all is measured; there the values computed, how far the own values are
        from them, and the size that rounding is relative to."""
        rows = np.flatnonzero(~np.isnan(values[:, [self.column, *self.parts]]).any(axis=1))
        parts = dict(zip(self.expression.names, values[rows][:, self.parts].T, strict=True))
        computed = self.expression.on(parts)
        with np.errstate(invalid="ignore"):
            return rows, computed, np.abs(values[rows, self.column] - computed), self.expression.size(parts)


@dataclass(frozen=True, eq=False)
class LinearMap:
    """All features after a change as a function of those that are no derived ones, x (F,), with 0 for the others:

        |after - (matrix x + offset)| <= share * (size |x| + level)

    matrix, size (F, F)   offset, level, share (F,)
    """

    matrix: Floats
    offset: Floats
    size: Floats
    level: Floats
    share: Floats


@dataclass(frozen=True, eq=False)
class Derived(Frozen):
    """rules: in an order in which each comes after those of the features that it uses
    texts: {feature: expression}, as they were given"""

    rules: tuple[Rule, ...] = ()
    texts: Mapping[str, str] = field(default_factory=lambda: FrozenMap({}))

    @cached_property
    def columns(self) -> Rows:
        """Those of the derived features, ascending."""
        return np.array(sorted(rule.column for rule in self.rules), dtype=np.int64)

    def after(self, before: Floats, moved: Floats) -> Floats:
        """Values (N, F) before and after a change -> the same after it, with what follows. NaN: not measured"""
        if not self.rules:
            return moved
        found = moved.copy()
        for rule in self.rules:
            parts = [before[:, i] for i in rule.parts], [found[:, i] for i in rule.parts]
            some = np.flatnonzero(rule.is_moved(*parts) & ~np.isnan(before[:, rule.column]))
            found[some, rule.column] = rule.on([part[some] for part in parts[1]])
        return found

    def start_faults(self, values: Floats, features: Sequence[str], where: Callable[[int], str]) -> Iterator[Fault]:
        """What is wrong with the cohort's own values (N, F); where(row): names a row"""
        for rule in self.rules:
            own, name = values[:, rule.column], features[rule.column]
            missing = np.flatnonzero(np.isnan(values[:, rule.parts]).any(axis=1) & ~np.isnan(own))
            if len(missing):
                cells = _named([where(row) for row in missing.tolist()[:NAMED]], len(missing))
                says = f"is measured where a feature of {rule.expression.text} is not: {cells}. It cannot follow there."
                yield about(
                    ("derived", name), f"{says} Leave these values out of the cohort, or this out of `derived`."
                )
            rows, computed, apart, size = rule.off(values)
            wrong = rows[~((apart <= TOLERANCE * size) & np.isfinite(computed))]
            if len(wrong):
                other = dict(zip(rows.tolist(), computed.tolist(), strict=True))
                cells = _named(
                    [f"{where(j)}: {own[j]:.12g} instead of {other[j]:.12g}" for j in wrong.tolist()[:NAMED]],
                    len(wrong),
                )
                says = f"the cohort's {name} is not {rule.expression.text} in {counted(len(wrong), 'row')}: {cells}."
                yield about(("derived", name), f"{says} Compute the column anew, or leave it out of `derived`.")

    def linear_on(self, values: Floats) -> LinearMap | None:
        """The derived features as sums of the others, for a cohort with values (N, F); None if one is no such sum.

        The error of a rule is that of its own roundings, and how far the cohort's own value, which stays where nothing
        moves, is from it; and that of its parts, as its weights take them.
        """
        width = values.shape[1]
        unmoved = np.setdiff1d(np.arange(width), self.columns)
        found = LinearMap(*(np.zeros((width, width)) if i in (0, 2) else np.zeros(width) for i in range(5)))
        found.matrix[unmoved, unmoved] = found.size[unmoved, unmoved] = 1.0
        for rule in self.rules:
            linear = rule.expression.linear
            if linear is None:
                return None
            i, parts, names = rule.column, list(rule.parts), rule.expression.names
            weights, sizes = (np.array([of[name] for name in names]) for of in (linear.weights, linear.sizes))
            found.matrix[i], found.size[i] = weights @ found.matrix[parts], sizes @ found.size[parts]
            found.offset[i] = linear.constant + weights @ found.offset[parts]
            found.level[i] = linear.size + sizes @ found.level[parts]
            below = found.share[parts].max()
            own = (2 * linear.steps + len(parts) + 2) * EPS + _farthest(rule, values)
            found.share[i] = own * (1.0 + below) + below
        return found

    @classmethod
    def read(cls, given: Any, features: Sequence[str]) -> tuple[Derived, list[Fault]]:
        """The argument `derived` of a Problem, and its faults."""
        if given is None:
            return cls(), []
        if not isinstance(given, Mapping):
            wanted = "{feature: expression}, such as {'pulse_pressure': 'systolic - diastolic'}"
            return cls(), [about("derived", f"got {shown(given)}; wanted {wanted}.")]
        faults: list[Fault] = []
        found: dict[str, Expression] = {}
        for name, text in given.items():
            place = ("derived", str(name))
            if name not in features:
                faults.append(about(place, f"no feature is called {name!r}.{did_you_mean(name, features)}"))
            expression, problems = _parsed(text, features)
            faults += [about(place, says) for says in problems]
            if expression is not None and name in features:
                found[name] = expression
        cycle = _cycle(found)
        if cycle:
            round_trip = " -> ".join(cycle)
            says = "is computed from itself" if len(cycle) == 2 else f"is computed from itself: {round_trip}"
            faults.append(about(("derived", cycle[0]), f"{says}. Take one of them out."))
        if faults:
            return cls(), faults
        place_of = {name: i for i, name in enumerate(features)}
        rules = [Rule(place_of[n], found[n], tuple(place_of[p] for p in found[n].names)) for n in _in_order(found)]
        return cls(tuple(rules), FrozenMap({name: one.text for name, one in found.items()})), []


def no_own(what: str) -> str:
    """What is wrong with something that a derived feature was given for itself, such as a limit."""
    return (
        f"the feature is computed from others (derived), so it has no {what} of its own. Give it to those that it is "
        "computed from."
    )


def faults_of_budgets(drawing: Mapping[str, Collection[str]], derived: Collection[str]) -> list[Fault]:
    """Budgets that derived features draw on; drawing: {budget: features with a weight above 0}"""
    return [
        about(("budgets", name) if name == feature else ("budgets", name, "uses", feature), no_own("budget"))
        for name, features in drawing.items()
        for feature in features
        if feature in derived
    ]


def _named(cells: Sequence[str], count: int) -> str:
    """The first cells, and how many more there are."""
    return "; ".join(cells) + (f"; and {count - len(cells):,} more" if count > len(cells) else "")


def _parsed(text: Any, features: Sequence[str]) -> tuple[Expression | None, list[str]]:
    if not isinstance(text, str):
        return None, [f"got {shown(text)}; wanted an expression, as text."]
    try:
        expression = Expression.parse(text, features)
    except BadExpression as error:
        return None, [f"{shown(text, 60)}: {says}" for says in error.problems]
    if not expression.names:
        return None, [f"{shown(text, 60)}: uses no feature."]
    return expression, []


def _in_order(found: Mapping[str, Expression]) -> Iterator[str]:
    """Each after those that it uses, else in the order given; those of a cycle are left out."""
    left = dict.fromkeys(found)
    while ready := [name for name in left if not any(part in left for part in found[name].names)]:
        for name in ready:
            del left[name]
        yield from ready


def _cycle(found: Mapping[str, Expression]) -> list[str]:
    """A way from a feature over what it is computed from back to itself; nothing if there is none"""
    left = [name for name in found if name not in set(_in_order(found))]
    if not left:
        return []
    way = [left[0]]
    while way[-1] not in way[:-1]:
        way.append(next(part for part in found[way[-1]].names if part in left))
    return way[way.index(way[-1]) :]


def _farthest(rule: Rule, values: Floats) -> float:
    """How far own values are from the rule at most, in parts of their sizes."""
    _, _, apart, size = rule.off(values)
    with np.errstate(all="ignore"):
        share = np.where(apart > 0, apart / size, 0.0)
    return float(share.max(initial=0.0)) * (1.0 + TOLERANCE)
