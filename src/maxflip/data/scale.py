"""The size of a feature in its own units."""

from __future__ import annotations

import numpy as np

from maxflip._util.types import Floats

CONSTANT = 1e-12  # relative to its values: a column that spreads by no more does not spread


def spread_of(values: Floats) -> Floats:
    """(n, A) -> (A,) standard deviations; where that is 0 but for rounding, the value itself, or 1: a size in the
    feature's own units."""
    deviation, largest = values.std(axis=0), np.abs(values).max(axis=0)
    return np.where(deviation > CONSTANT * largest, deviation, np.where(largest > 0, largest, 1.0))
