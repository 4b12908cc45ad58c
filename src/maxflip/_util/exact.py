"""Exact comparison of sums of floats with a bound: "is the consumption within the budget?" has no tolerance.

The square of a float64 is in general not a float64, so a sum of rounded squares can be on the wrong side of a budget.
Here each product is expanded into floats with exactly that sum (Dekker's two-product), and the correctly rounded
`math.fsum` decides. Numbers for which the expansion could overflow or underflow use Fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np

from maxflip._util.parallel import each, each_part
from maxflip._util.types import Floats

Power = Literal[1, 2]
Weight: TypeAlias = float | Floats  # of all values, or one for each
Part: TypeAlias = tuple[Weight, Floats, Power]  # weight, values, power

# Between these magnitudes the partial products of w * d * d and their error terms neither overflow nor underflow.
_SMALLEST, _LARGEST = 2.0**-150, 2.0**150
_SPLITTER = 2.0**27 + 1.0
FEW = 1000  # fewer values are passed to math.fsum directly
NEAR = 16_384  # values per block, so that a block fits into the processor cache


def _split(a: Floats) -> tuple[Floats, Floats]:
    """Veltkamp: a = high + low, each with at most 26 significant bits."""
    big = _SPLITTER * a
    high = big - (big - a)
    return high, a - high


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """(p, e) with p + e = a * b exactly and p = fl(a * b)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _terms(weight: Weight, size: Floats, power: Power, room: _Room) -> list[Floats]:
    """Floats whose exact sum is sum_j weight_j * size_j ** power, for values within the safe range.

    The result may use buffers of `room`, which the next call overwrites.
    """
    is_one = isinstance(weight, float) and weight == 1.0
    if power == 1:
        return [room.copy(size)] if is_one else list(two_product(_factors(weight, size), size))
    square, rest = room.two_square(size)
    if is_one:
        return [square, rest]
    factor = _factors(weight, size)
    return [*two_product(factor, square), *two_product(factor, rest)]


def _factors(weight: Weight, size: Floats) -> Floats:
    return np.full_like(size, weight) if isinstance(weight, float) else weight


def _is_safe(size: Floats) -> bool:
    return bool(size.min() >= _SMALLEST and size.max() <= _LARGEST)


class _Room:
    """Reused buffers: allocating new arrays for every block would take longer than the arithmetic."""

    def __init__(self, length: int) -> None:
        self.first, self.second, self.third, self.fourth = np.empty((4, length))

    def copy(self, a: Floats) -> Floats:
        self.first[: a.size] = a
        return self.first[: a.size]

    def two_square(self, a: Floats) -> tuple[Floats, Floats]:
        """(p, e) with p + e = a * a exactly and p = fl(a * a): two_product in fewer steps."""
        square, rest, high, low = (b[: a.size] for b in (self.first, self.second, self.third, self.fourth))
        np.multiply(a, a, out=square)
        np.multiply(a, _SPLITTER, out=high)
        np.subtract(high, a, out=low)
        high -= low
        np.subtract(a, high, out=low)
        np.multiply(high, high, out=rest)
        rest -= square
        high *= 2.0
        high *= low
        rest += high
        low *= low
        rest += low
        return square, rest


def condensed(values: Floats) -> list[float]:
    """A few floats with the same exact sum."""
    return _condense(values.copy(), np.empty_like(values))


def _condense(rest: Floats, leading: Floats) -> list[float]:
    """A few floats with the same exact sum (Rump's extraction). Overwrites `rest`.

    With a power of two above twice the number of values times the largest, (power + value) - power keeps the leading
    bits of each value. These are multiples of one unit with so few bits that their sum is exact in any order. The
    remainders are exact too.
    """
    if rest.size < FEW:
        return [float(v) for v in rest.tolist()]
    parts = []
    while (largest := float(max(rest.max(), -rest.min()))) > 0.0:
        power = math.ldexp(1.0, math.frexp(largest)[1] + rest.size.bit_length() + 1)
        np.add(rest, power, out=leading)
        leading -= power
        parts.append(float(leading.sum()))
        rest -= leading
    return parts


def fsum(values: Floats) -> float:
    """math.fsum of a long array, in parallel parts."""
    return math.fsum(chain.from_iterable(each_part(lambda part: condensed(values[part]), len(values))))


def _condensed_terms(part: Part) -> list[float]:
    """The condensed terms of (weight, size, power), block by block."""
    weight, size, power = part
    room, spare = _Room(min(NEAR, size.size)), np.empty(min(NEAR, size.size))
    blocks = [slice(begin, begin + NEAR) for begin in range(0, size.size, NEAR)]
    return [
        value
        for block in blocks
        for terms in _terms(weight if isinstance(weight, float) else weight[block], size[block], power, room)
        for value in _condense(terms, spare[: terms.size])
    ]


class ExactSum:
    """sum of weight * |change| ** power over many changes, known exactly. A weight is one for all, or one for each.

    >>> total = ExactSum([(1.0, np.array([0.1, 0.2]), 2)])
    >>> total.rounded()
    0.05
    >>> total.at_most(0.05), total.at_most(0.05000000000000001)
    (False, True)
    """

    def __init__(self, parts: list[Part]) -> None:
        self._safe: list[Part] = []
        self._fraction = Fraction(0)
        self._plain, self._count = 0.0, 0  # plain sum of the safe terms, and their number
        for weight, changes, power in parts:
            if isinstance(weight, float):
                self._add_alike(weight, changes, power)
            else:
                self._add_each(weight, changes, power)

    def _add_alike(self, weight: float, changes: Floats, power: Power) -> None:
        moved = changes if changes.all() else changes[changes != 0.0]
        if weight == 0.0 or not moved.size:
            return
        size = np.abs(moved)
        if _is_safe(size) and _is_safe(np.array([weight])):
            self._safe.append((weight, size, power))
            self._plain += weight * float(size.sum() if power == 1 else size @ size)
            self._count += size.size
        else:
            exact = sum((abs(Fraction(float(d))) ** power for d in moved), Fraction(0))
            self._fraction += Fraction(weight) * exact

    def _add_each(self, weights: Floats, changes: Floats, power: Power) -> None:
        counts = (changes != 0.0) & (weights != 0.0)
        weight, size = weights[counts], np.abs(changes[counts])
        safe = (np.minimum(weight, size) >= _SMALLEST) & (np.maximum(weight, size) <= _LARGEST)
        each = zip(weight[~safe].tolist(), size[~safe].tolist(), strict=True)
        self._fraction += sum((Fraction(w) * Fraction(d) ** power for w, d in each), Fraction(0))
        if safe.any():
            weight, size = weight[safe], size[safe]
            self._safe.append((weight, size, power))
            self._plain += float(weight @ (size if power == 1 else size * size))
            self._count += size.size

    @classmethod
    def total(cls, sums: Iterable[ExactSum]) -> ExactSum:
        """The sum of several sums."""
        total = cls([])
        for one in sums:
            total._safe += one._safe
            total._fraction += one._fraction
            total._plain += one._plain
            total._count += one._count
        return total

    @cached_property
    def _values(self) -> list[float]:
        return [v for values in each(_condensed_terms, self._safe) for v in values]

    def _total(self) -> Fraction:
        return sum(map(Fraction, self._values), self._fraction)

    def at_most(self, amount: float) -> bool:
        """Whether the exact sum is <= amount."""
        if math.isinf(amount):
            return amount > 0
        if not self._fraction:
            return self._clearly_within(amount) or math.fsum([*self._values, -amount]) <= 0.0
        return self._total() <= Fraction(amount)

    def _clearly_within(self, amount: float) -> bool:
        """Whether the plain sum plus its error bound is below the amount, which decides most cases.

        All terms are non-negative, so each rounding of a product or a partial sum adds at most 2**-53 of the total.
        """
        return self._plain * (1.0 + 4.0 * (self._count + 4) * 2.0**-53) < amount

    def beyond(self, amount: float) -> float:
        """The exact sum less a finite amount, rounded to the nearest float64."""
        if not self._fraction:
            return math.fsum([*self._values, -amount])
        return _nearest(self._total() - Fraction(amount))

    def rounded(self) -> float:
        """The exact sum rounded to the nearest float64; inf beyond the largest."""
        return math.fsum(self._values) if not self._fraction else _nearest(self._total())


def _nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
