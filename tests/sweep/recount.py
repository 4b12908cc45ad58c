"""What a plan promises, counted again in exact fractions and with the plain model, without the library."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import torch

from maxflip import Budget, Plan
from tests.sweep import kinds, own
from tests.sweep.models import Floats
from tests.sweep.questions import WAYS, Question


def changes_of(plan: Plan) -> list[Floats]:
    """Of each sample picked: (1, F), with a column of 0 or 1 for each action behind them; or of a sequence (T_j, F)"""
    return [np.atleast_2d(change) for change in plan.changes]


def start_of(question: Question, row: int) -> Floats:
    """(1, F), or of a sequence (T_j, F)"""
    return np.atleast_2d(question.values[row])


def after_of(question: Question, row: int, change: Floats) -> Floats:
    """(1, F), or of a sequence (T_j, F): what the model sees"""
    width = len(question.features)
    base = kinds.done(question, row, change) if question.kinds.actions else start_of(question, row)
    return np.asarray(base + change[:, :width])


def spent(question: Question, budget: Budget, rows: list[int], changes: list[Floats]) -> Fraction:
    """What these changes draw from a budget, exactly."""
    paid = [(row, d) for row, d in zip(rows, changes, strict=True) if own.is_inside(budget, question.ids[row])]
    rows, changes = [row for row, _ in paid], [change for _, change in paid]
    total = sum((own.fee_of(budget, row) for row in rows), Fraction(0))
    columns = {question.features.index(name): name for name in budget.weights}
    if budget.is_function:
        at, function = list(columns), budget.cost
        for row, change in zip(rows, changes, strict=True):
            before = torch.tensor(start_of(question, row)[:, at])
            after = torch.tensor((start_of(question, row) + change)[:, at])
            total += Fraction(float(function(before, after)))  # type: ignore[operator]
        return total
    power = 2 if budget.cost == "squared" else 1
    for i, name in columns.items():
        moved = ((row, d) for row, change in zip(rows, changes, strict=True) for d in change[:, i].tolist() if d)
        each = (Fraction(own.weight_of(budget, name, row, d)) * abs(Fraction(d)) ** power for row, d in moved)
        total += sum(each, Fraction(0))
    if question.kinds.actions:
        name = next(name for name, one in question.budgets.items() if one is budget)
        width = len(question.features)
        total += sum((kinds.drawn(question, name, change[0, width:].tolist()) for change in changes), Fraction(0))
    return total


def keeps(question: Question, rows: list[int]) -> bool:
    """Whether a plan with these samples keeps every quota; a share is the decimal number that is written."""
    for quota in question.quotas:
        count = sum(question.ids[row] in quota.group for row in rows)
        for amount, sign in ((quota.at_least, -1), (quota.at_most, 1)):
            if amount is not None:
                most = Fraction(str(amount)) * len(rows) if isinstance(amount, float) else amount
                if sign * (count - most) > 0:
                    return False
    return True


def outside_limits(question: Question, row: int, change: Floats) -> str:
    """What of a change is not allowed: a limit, a direction, a frozen or a missing value; nothing if all is well."""
    start, width = start_of(question, row), len(question.features)
    if question.kinds.actions:
        base = kinds.done(question, row, change)
        wrong = kinds.not_allowed(question, row, change[0, width:]) or _outside(question, row, base - start, start)
        if wrong:
            return wrong
        start, change = base, change[:, :width]
    measured = ~np.isnan(start)
    if not np.isfinite(change).all():
        return "is not finite"
    moved = change != 0
    if (moved & ~measured).any():
        return "changes what was not measured"
    if (moved & ~_may_change(question, row)).any():
        return "changes a step that may not"
    frozen = [i for i in range(len(question.features)) if not is_free(question, i, row)]
    if moved[:, frozen].any():
        return "changes a frozen feature"
    for name, rule in question.kinds.rules.items():
        i = question.features.index(name)
        if rule.breaks(start[moved[:, i], i], change[moved[:, i], i]):
            return f"changes {name} by {change[moved[:, i], i]}, which {rule} does not allow"
    return _outside(question, row, np.where(measured, change, 0.0), np.where(measured, start, 0.0))


def _outside(question: Question, row: int, change: Floats, start: Floats) -> str:
    """Where start + change leaves its limits, or goes the wrong way"""
    after, moved = start + change, change != 0
    for i, name in enumerate(question.features):
        if name not in question.weighed:
            continue
        low, high = limits_of(question, name, row)
        at = moved[:, i]
        x, there = start[at, i], after[at, i]
        if (there < np.minimum(low, x)).any() or (there > np.maximum(high, x)).any():
            return f"leaves the limits {low}, {high} of {name}: {x} -> {there}"
        way = WAYS.get((question.directions or {}).get(name, ""), 0.0)
        if (change[at, i] * way < 0).any():
            return f"moves {name} the wrong way"
    return ""


def _may_change(question: Question, row: int) -> Any:
    """(T, 1) mask of steps"""
    steps, length = question.steps, len(start_of(question, row))
    if isinstance(steps, list):
        return np.asarray(steps[row])[:, None]
    if isinstance(steps, str) and steps.startswith("last "):
        return (np.arange(length) >= length - int(steps.split()[1]))[:, None]
    return np.ones((length, 1), dtype=bool)


def is_free(question: Question, i: int, row: int | None = None) -> bool:
    """Some budget weighs the feature, of this sample or of anybody; and none that is 0 does, whichever way it goes."""
    name, budgets = question.features[i], list(question.budgets.values())
    if row is not None:
        budgets = [b for b in budgets if own.is_inside(b, question.ids[row])]
    if not any(own.weighs(b, name) for b in budgets):
        return False
    closed = [b for b in budgets if b.amount == 0 and own.weighs(b, name)]
    if row is None:
        return not closed
    return any(all(not own.weight_of(b, name, row, way) for b in closed) for way in (1.0, -1.0))


def limits_of(question: Question, name: str, row: int) -> tuple[float, float]:
    limits = question.limits
    pair = limits if isinstance(limits, str) else (limits or {}).get(name, (None, None))
    if isinstance(pair, str):  # "observed"
        i = question.features.index(name)
        every = np.concatenate([start_of(question, j)[:, i] for j in range(len(question))])
        return float(np.nanmin(every)), float(np.nanmax(every))
    low, high = (side[row] if np.ndim(side) else side for side in pair)
    return (-np.inf if low is None else float(low)), (np.inf if high is None else float(high))
