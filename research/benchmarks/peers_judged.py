"""Changes that tools propose, judged by maxflip's judge and picked by its final program, the same for all."""

from __future__ import annotations

import numpy as np

from maxflip.judge import admissible
from maxflip.problem.problem import Problem
from maxflip.select.choose import choose
from research.benchmarks.peer_tools.problems import of_shape, problem_of
from research.benchmarks.peer_tools.question import Floats, Mask, Question


def flips(problem: Problem, changes: Floats) -> Mask:
    """(n,): which changes (n, F) are flips: finite, within the limits, frozen features as they were, and the model,
    asked once more, keeps the margin. What a tool says of its own success counts for nothing."""
    found = np.zeros(len(changes), dtype=bool)
    there = np.flatnonzero(np.isfinite(changes).all(axis=1))
    found[there] = admissible(problem, there, changes[there])
    return found


def costs(question: Question, changes: Floats) -> Floats:
    """(n,): the squared length of each flip, inf where there is none."""
    problem = problem_of(question, question.x, np.ones(question.x.shape[1]))
    return np.where(flips(problem, changes), np.nan_to_num(changes**2).sum(axis=1), np.inf)


def counts(question: Question, changes: Floats) -> list[int]:
    """(S,): the most that can be picked within each shape's budgets. changes (n, F), or (S, n, F)"""
    found = []
    for s, members in enumerate(question.members):
        problem = of_shape(question, s)
        offered = (changes[s] if changes.ndim == 3 else changes)[members]
        rows = np.flatnonzero(flips(problem, offered))
        found.append(len(choose(problem, rows, offered[rows])))
    return found


def over_best(cost: Floats, best: Floats) -> float:
    """Mean over mean, where there is a flip; NaN where there is none at all."""
    found = np.isfinite(cost)
    return float(cost[found].mean() / best[found].mean()) if found.any() else np.nan
