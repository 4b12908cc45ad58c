"""Means with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student


def with_interval(each: Sequence[float], form: str) -> str:
    """The mean and half of Student's 95 % interval, which one number alone does not have; nothing of nothing."""
    if not len(each):
        return ""
    mean = f"{np.mean(each):{form}}"
    if len(each) == 1:
        return mean
    half = student.ppf(0.975, len(each) - 1) * np.std(each, ddof=1) / len(each) ** 0.5
    return f"{mean} ± {half:{form.lstrip('+')}}"
