"""Actions and switches of categories, read from a question without the library."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip import Action, Budget
from tests.mixed.models import Floats
from tests.mixed.questions import VALUES, Question, effect_on


@dataclass(frozen=True, eq=False)
class Lever:
    """category: of a switch; None for an action   allowed (n,)   draws (n, m): by budget
    drawn_on (m,): whether it draws on a budget at all, whoever gets it"""

    name: str
    category: str | None
    effects: tuple[tuple[int, float | str], ...]
    allowed: NDArray[np.bool_]
    draws: Floats
    drawn_on: NDArray[np.bool_]

    def done(self, x: Floats) -> Floats:
        """(F,) -> (F,)"""
        moved = x.copy()
        for column, effect in self.effects:
            moved[column] = effect_on(effect, moved[column])
        return moved


def levers_of(question: Question) -> list[Lever]:
    """In the order in which they act."""
    actions = [_of_action(question, action) for action in question.actions]
    return actions + [s for name, given in question.choices.items() for s in _switches(question, name, given)]


def combinations(question: Question, levers: list[Lever], row: int) -> Iterator[tuple[int, ...]]:
    """Those that this person may get, nothing first."""
    may = [a for a, lever in enumerate(levers) if lever.allowed[row] and not _is_closed(question, lever.drawn_on, row)]
    actions = [a for a in may if levers[a].category is None]
    excluded = {(a.name, other) for a in question.actions for other in a.excludes}
    sets = [s for k in range(question.most_actions + 1) for s in itertools.combinations(actions, k)]
    sets = [s for s in sets if not any((levers[a].name, levers[b].name) in excluded for a in s for b in s)]
    switches = [[(), *((a,) for a in may if levers[a].category == name)] for name in question.choices]
    for chosen in sets:
        for others in itertools.product(*switches):
            yield (*chosen, *(a for one in others for a in one))


def is_inside(question: Question, group: Any, row: int) -> bool:
    """Whether a person belongs to a part of the cohort: (column, value), ids, or None for everybody"""
    if isinstance(group, tuple):
        return bool(question.sites[row] == group[1])
    return group is None or bool(question.ids[row] in group)


def number_of(given: object, row: int) -> float:
    return float(given[row] if isinstance(given, np.ndarray) else given)  # type: ignore[arg-type]


def _is_closed(question: Question, drawn_on: NDArray[np.bool_], row: int) -> bool:
    """Whether something draws on budgets, but on none that this person belongs to."""
    inside = np.array([is_inside(question, budget.only, row) for budget in question.budgets.values()])
    return bool(drawn_on.any() and not (drawn_on & inside).any())


def is_frozen(question: Question, name: str, row: int) -> bool:
    """Whether no budget to which this person belongs weighs the feature."""
    return _is_closed(question, np.array([name in budget.weights for budget in question.budgets.values()]), row)


def _of_action(question: Question, action: Action) -> Lever:
    columns = {name: question.values[:, i] for i, name in enumerate(question.features)}
    draws = np.zeros((len(question), len(question.budgets)))
    for r, name in enumerate(question.budgets):
        given = action.draws.get(name, 0.0)
        if isinstance(given, str):
            given = eval(given, {"max": np.maximum}, columns)
        draws[:, r] = given
    allowed = np.array([is_inside(question, action.who, row) for row in range(len(question))])
    effects = [(question.features.index(name), given) for name, given in action.effects.items()]
    return Lever(action.name, None, tuple(effects), allowed, draws, draws.max(axis=0) > 0)


def _switches(question: Question, category: str, given: object) -> Iterator[Lever]:
    for key, distance in given.items():  # type: ignore[attr-defined]
        *before, value = str(key).split(" -> ")
        if category in question.one_hot:
            columns = [question.features.index(f"{category}_{v}") for v in VALUES]
            now = [VALUES[int(place)] for place in question.values[:, columns].argmax(axis=1)]
            effects = [(column, f"= {float(v == value)}") for column, v in zip(columns, VALUES, strict=True)]
        else:
            column = question.features.index(category)
            now = [f"{code:g}" for code in question.values[:, column]]
            before, value = [f"{float(b):g}" for b in before], f"{float(value):g}"
            effects = [(column, f"= {float(value)}")]
        name = f"{category}: {before[0]} -> {value}" if before else f"{category} = {value}"
        allowed = np.array([one != value and one in (before or [one]) for one in now])
        weights = [_weight(budget, category) * distance for budget in question.budgets.values()]
        draws = np.tile(weights, (len(question), 1))
        yield Lever(name, category, tuple(effects), allowed, draws, draws.max(axis=0) > 0)


def _weight(budget: Budget, name: str) -> float:
    return float(budget.weights.get(name, 0.0))
