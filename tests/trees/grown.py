"""Random small forests, and the cheapest flips through them by trying every cell."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from maxflip import Problem, TreeClassifier, judge
from maxflip._util.types import Floats
from maxflip.models.trees.build import Read, Tree, forest_of

LINKS = {"sigmoid": 1, "softmax": 3, "softmax of two": 2, "mean": 3, "mean of two": 2}


def grown(seed: int, link: str, *, features: int = 3, trees: int = 5, depth: int = 2) -> TreeClassifier:
    """A random forest. Thresholds are multiples of 0.1, so that some are shared; x goes left at one."""
    rng = np.random.default_rng(seed)
    scores, name = LINKS[link], link.split(maxsplit=1)[0]
    grow = [_tree(rng, features, depth, scores, name, k % scores) for k in range(trees)]
    divisor = float(trees) if name == "mean" else 1.0
    forest = forest_of(grow, base=np.zeros(scores), width=features, link=name, divisor=divisor, precision="float64")
    return TreeClassifier(Read("test", forest, None, None))


def _tree(rng: np.random.Generator, features: int, depth: int, scores: int, link: str, output: int) -> Tree:
    """A whole tree: node k has the children 2 k + 1 and 2 k + 2."""
    inner, size = 2**depth - 1, 2 ** (depth + 1) - 1
    number = np.arange(size)
    is_leaf = number >= inner
    if link == "mean":
        value = rng.dirichlet(np.ones(scores), size)
    else:
        value = rng.normal(size=size)
    return Tree(
        feature=np.where(is_leaf, -1, rng.integers(features, size=size)),
        threshold=np.where(is_leaf, 0.0, rng.integers(-9, 10, size) / 10),
        left=np.where(is_leaf, number, 2 * number + 1),
        right=np.where(is_leaf, number, 2 * number + 2),
        missing_left=np.ones(size, dtype=bool),
        value=value,
        output=-1 if link == "mean" else output,
    )


def points(thresholds: Floats, x: float, low: float, high: float, grid: tuple[float, float]) -> list[float]:
    """0, and the changes nearest to 0 to each side of each threshold.   grid: step (0: none), smallest change"""
    step, smallest = grid
    found = {0.0}
    if step:
        count = range(int(np.floor((x + low) / step)) - 1, int(np.ceil((x + high) / step)) + 2)
        found |= {np.rint(k) * step - x for k in count}
    else:
        for t in thresholds:
            up, down = float(np.nextafter(t, np.inf) - x), float(t - x)
            while x + up <= t:
                up = float(np.nextafter(up, np.inf))
            while x + down > t:
                down = float(np.nextafter(down, -np.inf))
            found |= {up, down, *(sign * smallest for sign in (-1.0, 1.0) if smallest)}
    return [d for d in found if d == 0 or (low <= d <= high and abs(d) >= smallest)]


def cheapest(problem: Problem, row: int, squared: Floats, absolute: Floats, grid: Any = None) -> float:
    """The least cost of all flips of a sample, inf without one."""
    members = [member.forest for member in problem.classifier.members]  # type: ignore[attr-defined]
    low, high = (side[0] for side in problem.box(np.array([row])))
    x, each = problem.cohort.values[row], []
    for i in range(len(x)):
        cut = np.unique(np.concatenate([f.threshold[f.feature == i] for f in members]))
        each.append(points(cut, float(x[i]), low[i], high[i], (grid or {}).get(i, (0.0, 0.0))))
    every = np.array(list(product(*each)))
    most = problem.few.most
    every = every if most is None else every[(every != 0).sum(axis=1) <= most]
    flips = judge.is_flip(problem, np.full(len(every), row), every)
    cost = (squared * every**2 + absolute * np.abs(every)).sum(axis=1)
    return float(cost[flips].min(initial=np.inf))
