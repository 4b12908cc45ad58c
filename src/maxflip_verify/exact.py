"""The exact consumption of a plan, computed from its stored float64 values.

A product of two float64 is the sum of two float64 (Dekker). Values with equal exponents are added as integers, very
large and very small ones as fractions.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SAFE = 2.0**200  # products of three factors up to this size, with their error terms, are normal float64


def consumption(weights: Floats, changes: Floats, *, squared: bool) -> Fraction:
    """The exact sum of weight * change**2, or of weight * |change|."""
    used = (weights != 0) & (changes != 0)
    weights, sizes = weights[used], np.abs(changes[used])
    safe = (np.minimum(weights, sizes) > 1 / SAFE) & (np.maximum(weights, sizes) < SAFE)
    terms = _product(sizes[safe], sizes[safe]) if squared else (sizes[safe],)
    total = sum((_sum(part) for term in terms for part in _product(weights[safe], term)), Fraction(0))
    for weight, size in zip(weights[~safe].tolist(), sizes[~safe].tolist(), strict=True):
        total += Fraction(weight) * Fraction(size) ** (2 if squared else 1)
    return total


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """`high + low == a * b` exactly. The factors are split into halves of 26 bits, whose products are exact."""
    big_a, big_b, high = a * (2.0**27 + 1), b * (2.0**27 + 1), a * b
    a1, b1 = big_a - (big_a - a), big_b - (big_b - b)
    a2, b2 = a - a1, b - b1
    return high, a2 * b2 - (((high - a1 * b1) - a2 * b1) - a1 * b2)


def _sum(parts: Floats) -> Fraction:
    """The exact sum: per exponent, 53-bit mantissas are summed in two halves, which cannot overflow."""
    mantissa, exponent = np.frexp(parts)
    whole, least = (mantissa * 2.0**53).astype(np.int64), int(exponent.min(initial=0))
    halves = (np.bincount(exponent - least, half) for half in (whole >> 27, whole & (2**27 - 1)))
    sums = enumerate(zip(*(half.tolist() for half in halves), strict=True))
    return sum(((int(top) * 2**27 + int(low)) * Fraction(2) ** (i + least - 53) for i, (top, low) in sums), Fraction(0))
