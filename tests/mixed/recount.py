"""What a plan promises, counted again from the question alone, in exact fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from maxflip import Plan
from tests.mixed.levers import is_frozen, is_inside, levers_of
from tests.mixed.models import Floats
from tests.mixed.questions import Question
from tests.mixed.reference import (
    alternatives,
    bounds,
    changed,
    fee_of,
    followed,
    is_open,
    keeps,
    most_changes,
    weight_of,
)


def faults(question: Question, plan: Plan) -> Iterator[str]:
    """One sentence for each thing that is not as asked."""
    levers, rows = levers_of(question), plan.selected.tolist()
    changes = dict(zip(rows, np.asarray(plan.changes), strict=True))
    names = [lever.name for lever in levers]
    expected = (*question.features, *names)
    if plan.features != expected:
        yield f"features are {plan.features} instead of {expected}"
        return
    width = len(question.features)
    total = [Fraction(0)] * len(question.budgets)
    for row in rows:
        on, d = changes[row][width:], changes[row][:width]
        for says in _of_one(question, row, on, d):
            yield f"P{row}, {dict(zip(expected, changes[row].tolist(), strict=True))}: {says}"
        for r, drawn in enumerate(_drawn(question, row, on, d)):
            total[r] += drawn
    for (name, budget), drawn in zip(question.budgets.items(), total, strict=True):
        if drawn > Fraction(budget.amount):
            yield f"{name}: draws {float(drawn)!r} of {budget.amount!r}"
    if not keeps(question, rows):
        yield "a quota is not kept"


def _of_one(question: Question, row: int, on: Floats, d: Floats) -> Iterator[str]:
    if not is_open(question)[row]:
        yield "is in the wanted class already"
    levers = levers_of(question)
    free = [question.features.index(name) for name in question.free]
    stepped = d.copy()
    stepped[free] = 0.0
    every = alternatives(question, row)
    if not ((every.on == on).all(axis=1) & (every.changes == stepped).all(axis=1)).any():
        yield "no such alternative is allowed"
    base = question.values[row]
    for lever, taken in zip(levers, on, strict=True):
        base = lever.done(base) if taken else base
    for name, i in zip(question.free, free, strict=True):
        yield from _of_free(question, name, row, float(base[i]), float(d[i]))
    if changed(question, on[None], d[None])[0] > most_changes(question):
        yield "changes too many features"
    after = followed(question, question.values[row], (base + d)[None])
    if question.confidence(after)[0] < question.required:
        yield f"does not pass: {question.confidence(after)[0]!r}"


def _of_free(question: Question, name: str, row: int, start: float, d: float) -> Iterator[str]:
    low, high, sign = bounds(question.limit(name))
    if d and is_frozen(question, name, row):
        yield f"{name} is frozen"
    if not min(low, start) <= start + d <= max(high, start) or d * sign < 0:
        yield f"{name} leaves its limits"
    if 0 < abs(d) < (question.limit(name).smallest or 0.0):
        yield f"{name} changes too little"


def _drawn(question: Question, row: int, on: Floats, d: Floats) -> list[Fraction]:
    levers, found = levers_of(question), []
    for r, budget in enumerate(question.budgets.values()):
        total = Fraction(0)
        if is_inside(question, budget.only, row):
            total += Fraction(fee_of(budget, row))
            total += sum(Fraction(float(v.draws[row, r])) for v, taken in zip(levers, on, strict=True) if taken)
            for name in set(question.movable) & set(budget.weights):
                change = d[question.features.index(name)]
                size = abs(Fraction(float(change))) ** (2 if budget.cost == "squared" else 1)
                total += Fraction(float(weight_of(budget, name, row, change))) * size
        found.append(total)
    return found
