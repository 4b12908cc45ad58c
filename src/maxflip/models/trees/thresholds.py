"""Rules of libraries as `x <= threshold` on stored float64 values, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxflip._util.types import Floats

FLOAT32_MAX = float(np.finfo(np.float32).max)
# What rounds to infinity in float32: from the largest number on, plus half the distance to the one after it.
OVERFLOWS = FLOAT32_MAX + 2.0**103
LARGEST_FLOAT32 = float(np.nextafter(OVERFLOWS, 0))  # the largest double whose cast is finite


def float32_at_most(v: ArrayLike) -> Floats:
    """The largest double x with float32(x) <= v, for numbers v of float32.

    It lies half way to the next number u of float32, and the middle itself rounds to that of v and u whose last bit
    is 0.
    """
    low = np.asarray(v, np.float32) + np.float32(0)  # -0.0 is 0.0
    with np.errstate(over="ignore"):
        up = np.nextafter(low, np.float32(np.inf))
    middle = np.where(np.isinf(up), OVERFLOWS, (_double(low) + _double(up)) / 2)
    middle = np.where(np.isneginf(low), -OVERFLOWS, middle)
    to_low = low.view(np.uint32) % 2 == 0
    found: Floats = np.where(to_low, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isposinf(low), np.inf, found)


def float32_below(t: ArrayLike) -> Floats:
    """The largest double x with float32(x) < t, for numbers t of float32."""
    return float32_at_most(np.nextafter(np.asarray(t, np.float32), np.float32(-np.inf)))


def float32_at_most_double(t: ArrayLike) -> Floats:
    """The largest double x with float32(x) <= t, for doubles t."""
    t = np.asarray(t, np.float64)
    with np.errstate(over="ignore"):
        near = t.astype(np.float32)
    return float32_at_most(np.where(_double(near) > t, np.nextafter(near, np.float32(-np.inf)), near))


def _double(v: NDArray[Any]) -> Floats:
    return v.astype(np.float64)
