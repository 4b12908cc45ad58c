"""Means with their intervals: Student's, 95 %."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """Of so many numbers (pairs: of differences); of one there is none (NaN)."""

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def is_clear(self) -> bool:
        """Whether it leaves out 0"""
        return self.low > 0 or self.high < 0


def paired(differences: Iterable[float]) -> Interval:
    d = np.array(list(differences), dtype=float)
    if not len(d):
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(d.mean())
    if len(d) == 1:
        return Interval(mean, math.nan, math.nan, 1)
    half = float(student.ppf(0.5 + CONFIDENCE / 2, len(d) - 1) * d.std(ddof=1) / math.sqrt(len(d)))
    return Interval(mean, mean - half, mean + half, len(d))


def with_interval(each: Iterable[float], form: str) -> str:
    """The mean and half of its interval, which one number alone does not have; nothing of nothing."""
    found = paired(each)
    if not found.pairs:
        return ""
    half = "" if found.pairs == 1 else f" ± {found.high - found.mean:{form.lstrip('+')}}"
    return f"{found.mean:{form}}{half}"
