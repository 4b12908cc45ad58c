"""Relations: a frozen column that is a sum of others in every row, such as pulse pressure = systolic - diastolic.

A change of one of the others would leave it as it is, and a model that uses it would see people who cannot be. Only
simple sums count: one column times a number, or two with simple weights, and perhaps a constant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from maxflip._util.types import Floats, Rows
from maxflip.data.derived import Derived
from maxflip.data.expressions import as_name

FEWEST = 20  # rows: of fewer, nothing can be told
KINDS = 6  # different values that such a column has at least: the columns of a one-hot group have two
MOST_FEATURES = 60  # beyond, pairs and triples of columns are too many
SOME = 2000  # rows, evenly spaced, from which candidates come
MOST_CANDIDATES = 200  # that are tried on all rows
UNEXPLAINED = 1e-8  # share of a column's variance that a candidate leaves; float64 sums round by less
APART = 1e-6  # 1 - r^2 of two columns that are not the same thing
CONSTANT = 1e-12  # of a column's largest value: a spread that small is rounding
INDEPENDENT = 1e-6  # singular value below which a relation, as a unit vector, is a sum of others
EXACT = 1e-9  # of the size of the terms: how far a row may be off
SIMPLE = 12  # largest denominator of a weight, and 12 times so much for the whole of it
DIGITS = 10  # of a constant, and of the ratio of two columns


@dataclass(frozen=True)
class Relation:
    """column `target` = sum of weights x `parts`, plus a constant"""

    target: int
    parts: tuple[int, ...]
    weights: tuple[Fraction, ...]
    constant: Fraction

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Of the ways to write a relation the plainest comes first, and of those the one for the last column."""
        odd = sum(abs(weight) != 1 for weight in self.weights) + (self.constant != 0)
        length = sum(abs(weight.numerator) + weight.denominator for weight in self.weights)
        return len(self.parts), odd, -self.target, length

    def holds_in(self, values: Floats) -> bool:
        """Whether it does in every row of values (N, F)."""
        terms = [float(weight) * values[:, i] for weight, i in zip(self.weights, self.parts, strict=True)]
        size = sum((np.abs(term) for term in terms), np.full(len(values), abs(float(self.constant))))
        off = np.abs(values[:, self.target] - sum(terms) - float(self.constant))
        return bool((off <= EXACT * size).all())

    def text(self, features: Sequence[str]) -> str:
        """As an expression of maxflip.

        >>> Relation(2, (0, 1), (Fraction(1, 3), Fraction(2, 3)), Fraction(0)).text(["sys BP", "dia", "mean"])
        "'sys BP' / 3 + 2 * dia / 3"
        """
        terms = [(weight, as_name(features[i])) for weight, i in zip(self.weights, self.parts, strict=True)]
        terms = sorted(terms, key=lambda term: term[0] < 0) + ([(self.constant, "")] if self.constant else [])
        if terms[0][0] < 0 and self.constant > 0:
            terms.insert(0, terms.pop())
        text = ""
        for weight, name in terms:
            sign = "-" if weight < 0 else "+"
            text += f" {sign} " if text else sign.removeprefix("+")
            text += _term(abs(weight), name)
        return text


def find_relations(values: Floats, moving: Collection[int], derived: Derived) -> tuple[Relation, ...]:
    """Of a table (n, F): relations that a change of the columns `moving` would break, none that follows from others or
    from derived features.

    Tried on all rows; candidates come from correlations on some of them.
    """
    n, width = values.shape
    if n < FEWEST or width > MOST_FEATURES or not moving:
        return ()
    some = values[:: max(1, n // SOME)]
    with np.errstate(all="ignore"):  # columns of any size: where a number is not finite, nothing is found
        spread = some.std(axis=0)
        usable = np.flatnonzero(np.isfinite(spread) & (spread > CONSTANT * np.abs(some).max(axis=0)))
        targets = [i for i in usable.tolist() if i not in moving and len(np.unique(some[:, i])) >= KINDS]
        tried = [_relation(values, some, *one) for one in _candidates(some, usable, targets, moving)]
    found = [relation for relation in tried if relation is not None]
    return tuple(_independent(found, _known(derived, width)))


def notices_of(relations: Sequence[Relation], features: Sequence[str], moving: Collection[int]) -> Iterator[str]:
    for relation in relations:
        name, text = features[relation.target], relation.text(features)
        movers = " or ".join(features[i] for i in relation.parts if i in moving)
        yield (
            f"{name} = {text} in every row, and {name} would not follow a change of {movers}. If it is computed from "
            f"the others, write derived={{{name!r}: {text!r}}} ([derived] in a job)."
        )


def _candidates(
    some: Floats, usable: Rows, targets: Sequence[int], moving: Collection[int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """A column and the one or two others that explain nearly all of it; of these, one moves at least."""
    centred = some[:, usable] - some[:, usable].mean(axis=0)
    scaled = centred / np.sqrt((centred**2).sum(axis=0))
    r = scaled.T @ scaled
    place = {column: k for k, column in enumerate(usable.tolist())}
    movers = np.array([place[i] for i in usable.tolist() if i in moving], dtype=np.int64)
    left = MOST_CANDIDATES
    for target in targets:
        own = r[place[target]]
        alone = [int(g) for g in movers if 1 - own[g] ** 2 <= UNEXPLAINED]
        yield from ((target, (int(usable[g]),)) for g in alone[:1])
        if alone or not len(movers):
            continue
        of_g, of_h, between = own[movers][:, None], own[None, :], r[movers]
        free = 1 - between**2 > APART
        explained = of_g**2 + of_h**2 - 2 * of_g * of_h * between
        explained /= np.where(free, 1 - between**2, 1.0)
        free[:, place[target]] = False
        pairs = np.argwhere(free & (1 - explained <= UNEXPLAINED))
        for g, h in sorted({(min(movers[g], h), max(movers[g], h)) for g, h in pairs.tolist()}):
            if left == 0:
                return
            left -= 1
            yield target, (int(usable[g]), int(usable[h]))


def _relation(values: Floats, some: Floats, target: int, parts: tuple[int, ...]) -> Relation | None:
    """The relation with simple numbers that holds in every row; None if there is none"""
    columns = some[:, parts]
    design = np.column_stack([columns, np.ones(len(some))])
    fitted = np.linalg.lstsq(design / np.abs(design).max(axis=0), some[:, target], rcond=None)[0]
    *weights, constant = (fitted / np.abs(design).max(axis=0)).tolist()
    plain = [_simple(weight) for weight in weights]
    if len(parts) == 1 and plain[0] is None:
        plain = [_short(weights[0])]
    simple = [weight for weight in plain if weight]
    if len(simple) < len(parts):
        return None
    rest = some[:, target] - sum(float(w) * some[:, i] for w, i in zip(simple, parts, strict=True))
    scale = float(np.abs(some[:, [target, *parts]]).max())
    middle = Fraction(0) if abs(constant) <= EXACT * scale else _short(float(np.median(rest)))
    found = Relation(target, parts, tuple(simple), middle)
    if len(parts) == 1 and middle and _simple(weights[0]) is None:
        return None  # two numbers of any size are no rule that somebody wrote
    return found if found.holds_in(some) and found.holds_in(values) else None


def _simple(weight: float) -> Fraction | None:
    """The weight as a small fraction, if it is one"""
    found = Fraction(weight).limit_denominator(SIMPLE) if math.isfinite(weight) else Fraction(0)
    is_near = abs(float(found) - weight) <= 1e-6 * abs(weight)
    return found if found and is_near and abs(found.numerator) <= SIMPLE**2 else None


def _short(value: float) -> Fraction:
    """To so many digits"""
    return Fraction(f"{value:.{DIGITS}g}") if math.isfinite(value) else Fraction(0)


def _known(derived: Derived, width: int) -> Floats:
    """(r, F): what is said of derived features, as unit vectors"""
    linear = [(rule, rule.expression.linear) for rule in derived.rules]
    weights = [(r.column, r.parts, list(form.weights.values())) for r, form in linear if form is not None]
    return np.array([_vector(width, *one) for one in weights]).reshape(-1, width)


def _vector(width: int, target: int, parts: Sequence[int], weights: Sequence[float | Fraction]) -> Floats:
    own = np.zeros(width)
    own[target] = -1.0
    own[list(parts)] = [float(weight) for weight in weights]
    return np.asarray(own / np.linalg.norm(own))


def _independent(found: Sequence[Relation], told: Floats) -> Iterator[Relation]:
    """The plainest first, without those that say nothing new beside `told` (r, F), and second ones for a column."""
    targets: set[int] = set()
    for relation in sorted(found, key=lambda relation: relation.rank):
        own = _vector(told.shape[1], relation.target, relation.parts, relation.weights)
        both = np.vstack([told, own])
        if relation.target not in targets and np.linalg.matrix_rank(both, tol=INDEPENDENT) == len(both):
            told = both
            targets.add(relation.target)
            yield relation


def _term(weight: Fraction, name: str) -> str:
    """weight >= 0; a name, or "" for a constant"""
    if not name:
        return f"{float(weight):.{DIGITS}g}"
    if weight == 1:
        return name
    if weight.denominator > SIMPLE:
        return f"{float(weight):.{DIGITS}g} * {name}"
    text = name if weight.numerator == 1 else f"{weight.numerator} * {name}"
    return text if weight.denominator == 1 else f"{text} / {weight.denominator}"
