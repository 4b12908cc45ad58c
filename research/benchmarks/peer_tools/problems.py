"""A question as maxflip's Problem."""

from __future__ import annotations

import numpy as np

from maxflip import Problem, TorchClassifier
from research.benchmarks.peer_tools.question import TARGET, Floats, Question
from research.benchmarks.peer_tools.torch_model import network


def problem_of(question: Question, x: Floats, amounts: Floats) -> Problem:
    """x (n, F): some of its samples   amounts (F,)"""
    names = [f"x{i}" for i in np.flatnonzero(~question.frozen)]
    return Problem(
        classifier=TorchClassifier(network(question), output="logits"),
        cohort=x,
        target=TARGET,
        margin=question.margin,
        budgets=dict(zip(names, amounts[~question.frozen].tolist(), strict=True)),
        limits=dict.fromkeys(names, (question.low, question.high)),
    )


def of_shape(question: Question, s: int) -> Problem:
    return problem_of(question, question.x[question.members[s]], question.amounts[s])
