"""Small made-up sequences whose label can be learned."""

from __future__ import annotations

import numpy as np

from maxflip.datasets import Sequences


def small(n: int = 200, seed: int = 0) -> Sequences:
    """Two variables, the second often missing; class 1 where the mean of the first is above 100."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(1, 7, n)
    values = [chance.normal(100, 20, (length, 2)) for length in lengths]
    for steps in values:
        steps[chance.random(len(steps)) < 0.6, 1] = np.nan
    return Sequences(
        values=tuple(values),
        times=tuple(np.cumsum(chance.exponential(1.0, length)) for length in lengths),
        static=chance.normal(50, 10, (n, 1)),
        ids=tuple(f"P{j}" for j in range(n)),
        features=("pressure", "glucose"),
        static_features=("age",),
        units={},
        source="small",
        labels=np.array([int(steps[:, 0].mean() > 100) for steps in values]),
        classes=("low", "high"),
        dropped={},
    )
