"""What differs between people in the budgets of some questions: fees, parts of the cohort, weights of their own, ways.

These are drawn by a stream of their own, after all else: the rest of a question is the same as without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip import Budget, Ways
from tests.sweep.models import Random

LAST_DIGITS = (0, 1, 2)  # of the seeds that ask so


def asked(seed: int, budgets: dict[str, Budget], ids: Sequence[str]) -> tuple[dict[str, Budget], str]:
    """The budgets, some of them with more; and what was drawn, in words"""
    if seed % 10 not in LAST_DIGITS:
        return budgets, ""
    rng, words = np.random.default_rng([seed, 18]), []
    found = {}
    for name, budget in budgets.items():
        found[name] = _with_own(rng, budget, ids)
        words += [word for word in kinds(found[name]) if word not in words]
    some = any(weighs(budget, feature) for budget in found.values() for feature in budget.weights)
    return (found, " ".join(words)) if some else (budgets, "")


def kinds(budget: Budget) -> list[str]:
    ways = [w for w in budget.weights.values() if isinstance(w, Ways)]
    numbers = [*budget.weights.values(), *(n for w in ways for n in (w.up, w.down)), budget.fee]
    own = any(isinstance(number, np.ndarray) for number in numbers)
    there = {"fee": budget.fee is not None, "only": budget.only is not None, "ways": bool(ways), "own": own}
    return [word for word, is_so in there.items() if is_so]


def differs(budget: Budget) -> bool:
    return bool(kinds(budget))


def _with_own(rng: Random, budget: Budget, ids: Sequence[str]) -> Budget:
    n = len(ids)
    uses: Any = budget.uses
    if isinstance(uses, Mapping) and not budget.is_function:
        uses = {feature: _weight(rng, weight, n) for feature, weight in uses.items()}
    fee: Any = None
    if rng.random() < 0.35:
        size = budget.amount / n if 0 < budget.amount < math.inf else 1.0
        fee = size * rng.uniform(0.2, 2.0) * (rng.random(n) + 0.1 if rng.random() < 0.5 else 1.0)
        fee = np.where(rng.random(n) < 0.1, 0.0, fee) if isinstance(fee, np.ndarray) else float(fee)
    only = [i for i in ids if rng.random() < 0.7] if rng.random() < 0.3 else None
    return replace(budget, uses=uses, fee=fee, only=only or None)


def _weight(rng: Random, weight: float, n: int) -> Any:
    def one() -> Any:
        if rng.random() < 0.5:
            return weight * float(rng.choice([0.0, 0.25, 1.0, 3.0], p=[0.1, 0.3, 0.3, 0.3]))
        return weight * rng.lognormal(0.0, 0.7, n) * (rng.random(n) > 0.1)

    how = rng.random()
    if how < 0.4:
        return weight
    return Ways(one(), one()) if how < 0.65 else one() if how < 0.95 else weight


def scaled(weight: Any, by: float) -> Any:
    return Ways(weight.up * by, weight.down * by) if isinstance(weight, Ways) else weight * by


def taken(budget: Budget, at: NDArray[np.int64], whose: Mapping[str, str]) -> Budget:
    """Of these samples alone.   whose: {new id: the id that it had}"""

    def number(given: Any) -> Any:
        return given[at] if isinstance(given, np.ndarray) else given

    def weight(given: Any) -> Any:
        return Ways(number(given.up), number(given.down)) if isinstance(given, Ways) else number(given)

    uses: Any = budget.uses
    if isinstance(uses, Mapping):
        uses = {feature: weight(given) for feature, given in uses.items()}
    only = None if budget.only is None else [i for i, old in whose.items() if old in set(budget.only)]
    return replace(budget, uses=uses, fee=number(budget.fee), only=only)


# What a sample draws, without the library.


def is_inside(budget: Budget, name: str) -> bool:
    return budget.only is None or name in budget.only


def fee_of(budget: Budget, row: int) -> Fraction:
    fee = (1.0 if budget.cost == "count" else 0.0) if budget.fee is None else budget.fee
    return Fraction(float(_number(fee, row)))


def weight_of(budget: Budget, feature: str, row: int, way: float) -> float:
    weight = budget.weights.get(feature, 0.0)
    if isinstance(weight, Ways):
        weight = weight.up if way > 0 else weight.down
    return float(_number(weight, row))


def weighs(budget: Budget, feature: str) -> bool:
    """Whether changes of it draw on the budget, of somebody and some way"""
    weight = budget.weights.get(feature, 0.0)
    both = (weight.up, weight.down) if isinstance(weight, Ways) else (weight,)
    return any(bool(np.any(np.asarray(one) > 0)) for one in both)


def _number(given: Any, row: int) -> Any:
    return given[row] if isinstance(given, np.ndarray) else given
