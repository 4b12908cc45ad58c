"""Whole steps and smallest changes, as docs/formats.md defines them: every operation in float64."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maxflip_verify.exact import Floats


def sizes_and_misses(start: Floats, change: Floats, step: Floats, which: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Of each change: its size, in whole steps where there are steps; and the change by whole steps next to it.

    step (F,): of each feature, 0 where there is none   which (e,): the feature of each change
    """
    top, bottom = (part[which] for part in np.array([_parts(size) for size in step.tolist()]).reshape(-1, 2).T)
    stepped, unit = step[which] > 0, np.where(step[which] > 0, step[which], 1.0)

    def multiple(values: Floats) -> Floats:
        return np.asarray(np.rint(values / unit) * top / bottom)

    with np.errstate(all="ignore"):
        on_grid = np.where(start == multiple(start), multiple(start + change) - start, multiple(change))
        return np.abs(np.where(stepped, multiple(change), change)), np.where(stepped, on_grid, change)


def _parts(step: float) -> tuple[float, float]:
    """top / bottom: the step as its shortest decimal text says, where both are below 2^53; else the step itself"""
    text = Fraction(repr(step))
    is_exact = max(text.numerator, text.denominator) < 2**53
    return (float(text.numerator), float(text.denominator)) if is_exact else (step, 1.0)
