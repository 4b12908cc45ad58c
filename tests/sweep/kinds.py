"""Whole steps, smallest changes and named actions of some questions.

They are drawn by a stream of their own, after all else: the rest of a question is the same as without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip import Action, Limit
from tests.sweep import own
from tests.sweep.models import Floats, Random

if TYPE_CHECKING:
    from tests.sweep.questions import Question

REST, OF_LIGHT, OF_OTHERS = 3, 14, 7  # seeds that ask so; none that once broke a law is among them


@dataclass(frozen=True)
class Rule:
    step: float | None
    smallest: float | None

    def scaled(self, by: float) -> Rule:
        return Rule(*(None if size is None else size * by for size in (self.step, self.smallest)))

    def breaks(self, start: Floats, change: Floats) -> bool:
        """Whether a change (k,) that is not 0 is none by whole steps, or too small"""
        size = np.abs(change)
        if self.step is not None:
            on_grid = start == _multiple(start, self.step)
            there = _multiple(start + change, self.step) - start
            from_start = _multiple(change, self.step)
            if (np.where(on_grid, there, from_start) != change).any():
                return True
            size = np.abs(from_start)
        return bool((size < (self.smallest or 0.0)).any())


def _multiple(values: Floats, step: float) -> Floats:
    """The nearest ones"""
    exact = Fraction(repr(step))
    return np.asarray(np.rint(values / step) * float(exact.numerator) / float(exact.denominator))


@dataclass(frozen=True)
class Kinds:
    """rules: of features   actions: what can be done besides"""

    rules: Mapping[str, Rule] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    most_actions: int = 1

    def __bool__(self) -> bool:
        return bool(self.rules or self.actions)

    def __str__(self) -> str:
        steps = sum(rule.step is not None for rule in self.rules.values())
        smallest = sum(rule.smallest is not None for rule in self.rules.values())
        counts = {"steps": steps, "smallest": smallest, "actions": len(self.actions)}
        return " ".join(f"{count} {word}" for word, count in counts.items() if count)

    def limits(self, given: Any, weighed: Sequence[str]) -> Any:
        """What a Problem takes: the limits of a question with these rules.   weighed: features that may change"""
        if not self.rules:
            return given
        if isinstance(given, str):
            given = dict.fromkeys(weighed, given)
        found = dict(given or {})
        for name, rule in self.rules.items():
            pair = found.get(name, (None, None))
            low, high, observed = (None, None, True) if isinstance(pair, str) else (*pair, False)
            found[name] = Limit(low, high, step=rule.step, smallest=rule.smallest, observed=observed)
        return found

    def in_other_units(self, by: Mapping[str, float]) -> Kinds:
        actions = [
            replace(action, effects={name: _in_units(given, by[name]) for name, given in action.effects.items()})
            for action in self.actions
        ]
        rules = {name: rule.scaled(by[name]) for name, rule in self.rules.items()}
        return replace(self, rules=rules, actions=tuple(actions))

    def taken(self, whose: Mapping[str, str]) -> Kinds:
        """whose: {new id: the id that it had}"""

        def group(who: Any) -> Any:
            return None if who is None else [new for new, old in whose.items() if old in who]

        return replace(self, actions=tuple(replace(action, who=group(action.who)) for action in self.actions))


def _in_units(given: float | str, by: float) -> float | str:
    if isinstance(given, str):
        return given if given.startswith("x ") else f"= {float(given[2:]) * by!r}"
    return given * by


def asked(question: Question, weighed: Sequence[int], scale: Floats) -> Kinds:
    from tests.sweep.questions import LIGHT

    every = OF_LIGHT if question.seed < LIGHT else OF_OTHERS
    if question.seed % every != REST or question.is_sequences or question.has_function:
        return Kinds()
    rng = np.random.default_rng([question.seed, 1818])
    names = [question.features[i] for i in weighed]
    rules = {name: rule for name in names if (rule := _rule(rng, question, name, scale)) is not None}
    budgets = [name for name, budget in question.budgets.items() if budget.cost != "count"]
    count = int(rng.integers(0, 4)) if budgets else 0
    actions = tuple(_action(rng, question, f"act {a}", budgets, scale) for a in range(count))
    if count > 1 and rng.random() < 0.4:
        actions = (replace(actions[0], excludes=[actions[1].name]), *actions[1:])
    return Kinds(rules, actions, int(rng.integers(1, 3)))


def _rule(rng: Random, question: Question, name: str, scale: Floats) -> Rule | None:
    """Not where the limits leave hardly any room."""
    from tests.sweep.recount import limits_of

    unit = float(f"{scale[question.features.index(name)]:.1g}")
    step = unit * float(rng.choice([0.05, 0.1, 0.25, 0.5])) if rng.random() < 0.5 else None
    smallest = unit * float(rng.choice([0.2, 0.5])) if rng.random() < 0.4 else None
    ends = np.array([limits_of(question, name, row) for row in range(len(question))])
    if (step is None and smallest is None) or (ends[:, 1] - ends[:, 0]).min() < 4 * unit:
        return None
    return Rule(None if step is None else float(f"{step:.3g}"), smallest)


def _action(rng: Random, question: Question, name: str, budgets: Sequence[str], scale: Floats) -> Action:
    effects: dict[str, float | str] = {}
    for i in rng.permutation(len(question.features))[: int(rng.integers(1, 3))].tolist():
        size = float(rng.normal() * scale[i])
        drawn: list[float | str] = [size, size, f"x {float(rng.uniform(0.5, 1.5))!r}", f"= {size!r}"]
        effects[question.features[i]] = drawn[int(rng.integers(4))]
    draws: dict[str, float | str] = {}
    for budget in rng.permutation(budgets)[: int(rng.integers(0, 3))].tolist():
        amount = question.budgets[budget].amount
        share = amount / len(question) if 0 < amount < math.inf else 1.0
        draws[budget] = float(share * rng.lognormal(0.0, 1.0))
    who = [one for one in question.ids if rng.random() < 0.6] if rng.random() < 0.3 else None
    return Action(name, effects, draws, who=who or None)


# What holds for what is done, without the library.


def done(question: Question, row: int, change: Floats) -> Floats:
    """(1, F): the sample after its actions, before features are changed.   change (1, F + L)"""
    moved = np.atleast_2d(question.values[row]).copy()
    for action, taken in zip(question.kinds.actions, change[0, len(question.features) :], strict=True):
        for name, given in action.effects.items() if taken else ():
            i = question.features.index(name)
            if isinstance(given, str):
                moved[0, i] = moved[0, i] * float(given[2:]) if given[0] == "x" else float(given[2:])
            else:
                moved[0, i] += given
    return moved


def drawn(question: Question, budget: str, taken: Sequence[float]) -> Fraction:
    """What actions draw.   taken (L,)"""
    each = zip(question.kinds.actions, taken, strict=True)
    return sum((Fraction(action.draws.get(budget, 0.0)) for action, is_taken in each if is_taken), Fraction(0))


def not_allowed(question: Question, row: int, taken: Floats) -> str:
    """What is wrong with these actions (L,); nothing if all is well"""
    kinds, name = question.kinds, question.ids[row]
    if not np.isin(taken, (0.0, 1.0)).all() or taken.sum() > kinds.most_actions:
        return f"has actions {taken.tolist()}"
    mine = [action for action, is_taken in zip(kinds.actions, taken, strict=True) if is_taken]
    for action in mine:
        if action.who is not None and name not in action.who:
            return f"may not get {action.name}"
        if any(other.name in action.excludes for other in mine):
            return f"may not get {action.name} beside the others"
        drawing = [question.budgets[b] for b, amount in action.draws.items() if amount]
        inside = [b for b in drawing if own.is_inside(b, name)]
        if (drawing and not inside) or any(b.amount == 0 for b in inside):
            return f"gets {action.name}, which no budget pays"
    return ""
