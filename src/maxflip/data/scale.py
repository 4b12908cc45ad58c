"""The size of a feature in its own units."""

from __future__ import annotations

import numpy as np

from maxflip._util.types import Floats

CONSTANT = 1e-12  # relative to the values: a column with a smaller spread counts as constant


def spread_of(values: Floats) -> Floats:
    """(n, A) -> (A,) standard deviations. For constant columns (up to rounding) the size of their value instead, or 1
    if that is 0: a size in the feature's units."""
    deviation, largest = values.std(axis=0), np.abs(values).max(axis=0)
    return np.where(deviation > CONSTANT * largest, deviation, np.where(largest > 0, largest, 1.0))
