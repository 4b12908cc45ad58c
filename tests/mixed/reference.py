"""Every alternative of every person, and the best choice among them, without the library.

A person's alternatives are all combinations of levers, each with all values of the features that go by steps. Whether
some people can be paid for together is tried for every set of people, over all that nobody does for less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip import Budget, Limit, Ways
from tests.mixed.levers import Lever, combinations, is_frozen, is_inside, levers_of, number_of
from tests.mixed.models import Floats
from tests.mixed.questions import Question

CLOSE = 1e-6  # of a confidence: flips this close to the one required may be told otherwise by another arithmetic
ROUNDED = 1e-9  # of an amount: sums of decimal numbers are this close


@dataclass(frozen=True, eq=False)
class Alternatives:
    """What one person may get.   on (c, L): levers   changes, after (c, F)   draws (c, m): with fees"""

    on: NDArray[np.bool_]
    changes: Floats
    after: Floats
    draws: Floats

    def __len__(self) -> int:
        return len(self.draws)

    def at(self, which: NDArray[np.bool_]) -> Alternatives:
        return Alternatives(self.on[which], self.changes[which], self.after[which], self.draws[which])


@dataclass(frozen=True)
class Optimum:
    """at_least: of the flips that pass by far enough   at_most: with those that may pass in another arithmetic"""

    at_least: float
    at_most: float


def alternatives(question: Question, row: int) -> Alternatives:
    """All that a person may get, flip or not; features that change by any amount stay where levers put them."""
    levers, x = levers_of(question), question.values[row]
    every = [
        one for chosen in combinations(question, levers, row) for one in _with_levers(question, levers, chosen, row)
    ]
    on = np.zeros((len(every), len(levers)), dtype=bool)
    for place, (chosen, _, _) in enumerate(every):
        on[place, list(chosen)] = True
    changes, bases = (np.array([one[i] for one in every]) for i in (1, 2))
    after = followed(question, x, bases + changes)
    found = Alternatives(on, changes, after, draws_of(question, levers, row, on, changes))
    return found.at(changed(question, on, changes) <= most_changes(question))


def changed(question: Question, on: NDArray[Any], changes: Floats) -> NDArray[np.int64]:
    """(c,): how many features change, a category among them as one"""
    switches = [a for a, lever in enumerate(levers_of(question)) if lever.category is not None]
    return np.asarray((changes != 0).sum(axis=1) + (on[:, switches] != 0).sum(axis=1))


def most_changes(question: Question) -> int:
    return len(question.features) if question.most_changes is None else question.most_changes


def _with_levers(
    question: Question, levers: list[Lever], chosen: tuple[int, ...], row: int
) -> Iterator[tuple[tuple[int, ...], Floats, Floats]]:
    """(levers, change, where the levers put the person) of everything beside these levers"""
    x, base = question.values[row], question.values[row]
    for lever in chosen:
        base = levers[lever].done(base)
    if not _levers_keep_limits(question, x, base):
        return
    moves = [list(_moves(question, name, row, base)) for name in question.movable]
    columns = [question.features.index(name) for name in question.movable]
    for values in itertools.product(*moves):
        change = np.zeros(len(x))
        change[columns] = values
        yield chosen, change, base


def _levers_keep_limits(question: Question, x: Floats, base: Floats) -> bool:
    for i, name in enumerate(question.features):
        low, high, sign = bounds(question.limit(name))
        if not min(low, x[i]) <= base[i] <= max(high, x[i]) or (base[i] - x[i]) * sign < 0:
            return False
    return True


def bounds(limit: Limit) -> tuple[float, float, int]:
    """(low, high, 1 for up, -1 for down, 0 for both)"""
    low, high = (-math.inf if limit.low is None else limit.low), (math.inf if limit.high is None else limit.high)
    return low, high, {"up": 1, "down": -1, None: 0}[limit.direction]


def _moves(question: Question, name: str, row: int, base: Floats) -> Iterator[float]:
    """All changes of a feature that goes by steps; of others 0 alone."""
    yield 0.0
    limit, start = question.limit(name), float(base[question.features.index(name)])
    if limit.step is None or is_frozen(question, name, row):
        return
    low, high, sign = bounds(limit)
    low, high = min(low, start), max(high, start)
    step = Fraction(repr(limit.step))

    def multiple(steps: int) -> float:
        return steps * float(step.numerator) / float(step.denominator)

    is_on = start == multiple(round(start / limit.step))
    first = low if is_on else low - start
    last = high if is_on else high - start
    for steps in range(math.floor(first / limit.step) - 1, math.ceil(last / limit.step) + 2):
        d = multiple(steps) - start if is_on else multiple(steps)
        size = abs(multiple(round(d / limit.step)))
        if d and low <= start + d <= high and d * sign >= 0 and size >= (limit.smallest or 0.0):
            yield d


def followed(question: Question, x: Floats, moved: Floats) -> Floats:
    """Values (c, F) with what follows from them; it stays as it is in x (F,) where nothing moves from which it
    follows"""
    after, place = moved.copy(), {name: i for i, name in enumerate(question.features)}
    for name, text in question.derived.items():
        parts = [part for part in place if part != name and part in text.replace("max", "").replace("min", "")]
        computed = eval(text, {"max": np.maximum, "min": np.minimum}, {part: after[:, place[part]] for part in parts})
        changes = np.any([after[:, place[part]] != x[place[part]] for part in parts], axis=0)
        after[:, place[name]] = np.where(changes, computed, after[:, place[name]])
    return after


def draws_of(question: Question, levers: list[Lever], row: int, on: NDArray[np.bool_], changes: Floats) -> Floats:
    """(c, m)"""
    found = np.zeros((len(changes), len(question.budgets)))
    for r, budget in enumerate(question.budgets.values()):
        if is_inside(question, budget.only, row):
            found[:, r] = fee_of(budget, row) + on @ np.array([lever.draws[row, r] for lever in levers] or np.zeros(0))
            for name in set(question.movable) & set(budget.weights):
                d = changes[:, question.features.index(name)]
                size = d**2 if budget.cost == "squared" else np.abs(d)
                found[:, r] += weight_of(budget, name, row, d) * size
    return found


def fee_of(budget: Budget, row: int) -> float:
    fee = (1.0 if budget.cost == "count" else 0.0) if budget.fee is None else budget.fee
    return number_of(fee, row)


def weight_of(budget: Budget, name: str, row: int, d: Floats) -> Floats:
    given = budget.weights.get(name, 0.0)
    up, down = (given.up, given.down) if isinstance(given, Ways) else (given, given)
    return np.where(d > 0, number_of(up, row), number_of(down, row))


def amounts_of(question: Question) -> Floats:
    return np.array([budget.amount for budget in question.budgets.values()])


def is_open(question: Question) -> NDArray[np.bool_]:
    """(n,): who is not in the wanted class"""
    return np.asarray(question.confidence(question.values) < question.required)


def draws_of_flips(question: Question) -> list[Floats]:
    """Of each person, what some flips draw; features that change by any amount do so by halves there."""
    limits = {name: replace(question.limit(name), step=0.5, smallest=None) for name in question.free}
    for name, limit in limits.items():
        x = question.values[:, question.features.index(name)]
        limits[name] = replace(limit, low=limit.low or float(x.min()) - 3.0, high=limit.high or float(x.max()) + 3.0)
    stand_in = replace(question, limits={**question.limits, **limits})
    found = []
    for row in range(len(question)):
        every = alternatives(stand_in, row)
        passing = question.confidence(every.after) >= question.required
        draws = every.draws[passing & is_open(question)[row]]
        found.append(cheapest(draws) if len(draws) else draws)
    return found


def cheapest(draws: Floats) -> Floats:
    """(c, m) -> those rows that no other one undercuts, each once"""
    draws = np.unique(draws, axis=0)
    kept: list[Floats] = []
    for one in draws[np.argsort(draws.sum(axis=1), kind="stable")]:
        if not any((other <= one).all() for other in kept):
            kept.append(one)
    return np.array(kept).reshape(len(kept), draws.shape[1])


def optimum(question: Question) -> Optimum:
    """Of a question without features that change by any amount"""
    every = [alternatives(question, row) for row in range(len(question))]
    slack = ROUNDED if question.is_decimal else 0.0
    found = []
    for close, share in ((CLOSE, 1 - slack), (-CLOSE, 1 + slack)):
        needed = question.required + close
        draws = [one.draws[question.confidence(one.after) >= needed] for one in every]
        ways = [cheapest(own) if now else own[:0] for own, now in zip(draws, is_open(question), strict=True)]
        found.append(_best(question, ways, share * amounts_of(question)))
    return Optimum(*found)


def keeps(question: Question, rows: list[int]) -> bool:
    """Whether a plan with these people keeps every quota; a share is the decimal number that is written."""
    for quota in question.quotas:
        count = sum(is_inside(question, quota.group, row) for row in rows)
        for amount, sign in ((quota.at_least, -1), (quota.at_most, 1)):
            if amount is not None:
                most = Fraction(str(amount)) * len(rows) if isinstance(amount, float) else Fraction(amount)
                if sign * (count - most) > 0:
                    return False
    return True


def _best(question: Question, ways: list[Floats], amounts: Floats) -> float:
    """The most worth of a set of people who keep the quotas and can be paid for together; -inf if there is none"""
    may = [row for row, own in enumerate(ways) if len(own)]
    sets = [list(rows) for k in range(len(may) + 1) for rows in itertools.combinations(may, k)]
    worth = question.worths
    sets.sort(key=lambda rows: -math.fsum(worth[rows]))
    lost: list[set[int]] = []
    for rows in sets:
        if not keeps(question, rows) or any(part <= set(rows) for part in lost):
            continue
        if _can_be_paid([ways[row] for row in rows], amounts):
            return math.fsum(worth[rows])
        lost.append(set(rows))
    return -math.inf


def _can_be_paid(ways: list[Floats], amounts: Floats) -> bool:
    """Whether one way (., m) of each sums up to at most the amounts (m,): over all sums of the first few, without those
    that leave no room for the least that the others draw, or that another sum undercuts."""
    ways = sorted(ways, key=len)
    least = np.array([own.min(axis=0) for own in ways]).reshape(len(ways), len(amounts))
    sums = np.zeros((1, len(amounts)))
    for place, own in enumerate(ways):
        room = amounts - least[place + 1 :].sum(axis=0)
        sums = (sums[:, None] + own[None]).reshape(-1, len(amounts))
        sums = sums[(sums <= room).all(axis=1)]
        if not len(sums):
            return False
        sums = cheapest(sums) if place + 1 < len(ways) else sums
    return True
