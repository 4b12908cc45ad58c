"""What a plan consumes, as the exact real number that its stored float64 values denote.

A product of two float64 is the sum of two (Dekker); those of one exponent add up as integers; extremes as fractions.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SAFE = 2.0**200  # three such factors and their last bits stay among the normal float64


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
    """`high + low == a * b` exactly: the factors are cut into halves of 26 bits, whose products are exact."""
    big_a, big_b, high = a * (2.0**27 + 1), b * (2.0**27 + 1), a * b
    a1, b1 = big_a - (big_a - a), big_b - (big_b - b)
    a2, b2 = a - a1, b - b1
    return high, a2 * b2 - (((high - a1 * b1) - a2 * b1) - a1 * b2)


def _sum(parts: Floats) -> Fraction:
    """The exact sum: for each exponent, mantissas of 53 bits in two halves, far from overflow."""
    mantissa, exponent = np.frexp(parts)
    whole, least = (mantissa * 2.0**53).astype(np.int64), int(exponent.min(initial=0))
    halves = (np.bincount(exponent - least, half) for half in (whole >> 27, whole & (2**27 - 1)))
    sums = enumerate(zip(*(half.tolist() for half in halves), strict=True))
    return sum(((int(top) * 2**27 + int(low)) * Fraction(2) ** (i + least - 53) for i, (top, low) in sums), Fraction(0))
