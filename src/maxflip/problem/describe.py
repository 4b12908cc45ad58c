"""What was asked, in words: a plan carries it, so that its report can be read without the job; and for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maxflip._util.html import amount_of, table
from maxflip._util.messages import CAVEAT, listed
from maxflip.problem.must_hold import Requirement, Uptake

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem

MOST = 30  # features named
_WAYS = {0: "", 1: ", upwards only", -1: ", downwards only"}


def asked(problem: Problem) -> dict[str, str]:
    """What a line is about -> what was asked.

    Limits are those that were given: a start value outside them widens them for that sample.
    """
    lines = {"Wanted class": _wanted(problem), "Confidence": _confidence(problem), "May change": _changeable(problem)}
    if problem.scenarios.requirements:
        lines["Must hold"] = "; ".join(map(_in_words, problem.scenarios.requirements))
    if problem.steps:
        lines["Steps that may change"] = problem.steps
    for name, rows in (("Must be picked", problem.include), ("Must not be picked", problem.exclude)):
        if len(rows):
            lines[name] = listed(problem.cohort.ids[rows])
    return lines


def _in_words(requirement: Requirement) -> str:
    if isinstance(requirement, Uptake):
        return f"if only {100 * requirement.share:.15g} % of each change is carried out"
    steps = ", ".join(f"{name!r} to multiples of {step:.15g}" for name, step in requirement.steps.items())
    return f"if values are rounded: {steps}"


def _wanted(problem: Problem) -> str:
    if len(problem.goal.wanted) > 1:
        return "one for each, by a column of the cohort or a list"
    columns = np.flatnonzero(problem.goal.wanted[0]).tolist()
    names = problem.classifier.classes
    if names is not None:
        return ("" if len(columns) == 1 else "any of ") + listed(names[i] for i in columns)
    return f"output column {columns[0]}" if len(columns) == 1 else f"any of the output columns {columns}"


def _confidence(problem: Problem) -> str:
    required = f"{problem.goal.required:.15g}"  # the report subtracts it from confidences
    if problem.goal.is_threshold:
        return f"threshold {required}: the wanted class has at least this probability"
    if problem.goal.is_decision:
        return f"margin {required}: the decision value of the wanted class is ahead of every other's by at least this"
    return f"margin {required}: the wanted class is ahead of every other by at least this probability"


def _changeable(problem: Problem) -> str:
    features = problem.slots.feature[problem.actionable]
    slots = problem.actionable[np.unique(features, return_index=True)[1]]  # the first of each feature
    parts = [_limits(problem, int(k)) for k in slots[:MOST]]
    rest = len(slots) - MOST
    return "; ".join(parts) + (f"; and {rest} more" if rest > 0 else "") or "nothing: every budget is 0"


def _limits(problem: Problem, slot: int) -> str:
    lower, upper = problem.limits.lower[:, slot], problem.limits.upper[:, slot]
    if (lower == lower[0]).all() and (upper == upper[0]).all():
        low, high = (f"{side[0]:.6g}" if np.isfinite(side[0]) else "" for side in (lower, upper))
        words = (
            f"from {low} to {high}" if low and high else f"from {low}" if low else f"to {high}" if high else "freely"
        )
    else:
        words = "within limits of each one's own"
    name = problem.cohort.features[problem.slots.feature[slot]]
    return f"{name!r} {words}{_WAYS[int(problem.limits.direction[slot])]}"


def html_of(problem: Problem) -> str:
    """Who is asked about, what is wanted of them, and what there is to spend."""
    lines = {
        "Cohort": f"{len(problem):,} {problem.cohort.layout.noun}s of {len(problem.cohort.features):,} features",
        **asked(problem),
    }
    budgets = [(name, amount_of(b.amount), b.cost_name) for name, b in problem.budgets.items()]
    return (
        f"<div>{table(('asked', ''), list(lines.items()), 'lines')}"
        f"{table(('budget', 'amount', 'cost'), budgets, 'budgets')}<p><em>{CAVEAT}</em></p></div>"
    )
