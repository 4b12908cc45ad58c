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
    def sign(self) -> int:
        """Of all numbers in it: 1 or -1; 0 where it holds 0, or there is none"""
        return int(self.low > 0) - int(self.high < 0)


def paired(differences: Iterable[float]) -> Interval:
    return averaged([differences])


def averaged(groups: Iterable[Iterable[float]]) -> Interval:
    """Of the mean of the groups' means: sum_k mean_k / K, K groups that are given and not drawn from more of them.

    Its variance is sum_k s_k^2 / n_k / K^2, with degrees of freedom by Welch and Satterthwaite; how far groups lie
    apart has no part in it. A group of one number leaves no interval.
    """
    arrays = [array for group in groups if len(array := np.array(list(group), dtype=float))]
    pairs = sum(map(len, arrays))
    if not arrays:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(np.mean([array.mean() for array in arrays]))
    if min(map(len, arrays)) == 1:
        return Interval(mean, math.nan, math.nan, pairs)
    of_means = np.array([array.var(ddof=1) / len(array) for array in arrays])
    total = float(of_means.sum())
    if total == 0.0:
        return Interval(mean, mean, mean, pairs)
    freedom = total**2 / sum(of_means**2 / (np.array(list(map(len, arrays))) - 1))
    half = float(student.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.sqrt(total) / len(arrays)
    return Interval(mean, mean - half, mean + half, pairs)


def with_interval(found: Interval, form: str) -> str:
    """The mean and half of its interval, which one number alone does not have; nothing of nothing."""
    if not found.pairs:
        return ""
    half = "" if math.isnan(found.high) else f" ± {found.high - found.mean:{form.lstrip('+')}}"
    return f"{found.mean:{form}}{half}"
