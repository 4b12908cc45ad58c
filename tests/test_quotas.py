"""Quotas on who is picked, against brute force and against what must follow from their meaning."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from maxflip import Budget, Problem, ProblemError, Quota
from maxflip.problem.quotas import least_fraction
from maxflip.select.choose import choose
from tests.conftest import LONG
from tests.examples import linear_problem

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


def kept(quotas: list[Quota], rows: list[int]) -> bool:
    """From the words alone: a share is the decimal number that is written."""
    for quota in quotas:
        count = sum(str(row) in quota.group for row in rows)
        for amount, sign in ((quota.at_least, -1), (quota.at_most, 1)):
            if amount is not None:
                wanted = Fraction(str(amount)) * len(rows) if isinstance(amount, float) else amount
                if sign * (count - wanted) > 0:
                    return False
    return True


def some_quotas(rng: np.random.Generator, n: int, most: int = 3) -> list[Quota]:
    """1 to 3 of them, of every kind, on random groups."""
    found = []
    for _ in range(int(rng.integers(1, most + 1))):
        group = [str(j) for j in np.flatnonzero(rng.random(n) < rng.uniform(0.2, 0.8))] or ["0"]
        share = float(rng.choice([0.1, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 1 / 3, 2 / 3, 1.0, 0.57]))
        number = int(rng.integers(1, len(group) + 1))
        kind = int(rng.integers(0, 5))
        sides: list[dict[str, Any]] = [
            {"at_least": share},
            {"at_most": share},
            {"at_least": number},
            {"at_most": number - 1},
            {"at_least": min(share, 0.3), "at_most": number},
        ]
        found.append(Quota(group, **sides[kind]))
    return found


def random_case(seed: int) -> tuple[Problem, list[Quota], Rows, Floats]:
    """Up to 7 people with up to 2 candidates each, one or two budgets, worths now and then."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    budgets: dict[str, Any] = {"x0": float(rng.uniform(0.5, 6)), "x1": math.inf}
    if rng.random() < 0.5:
        budgets["x1"] = Budget(float(rng.uniform(0.5, 4)), cost="absolute")
    if rng.random() < 0.2:
        budgets["people"] = Budget(int(rng.integers(0, n + 1)), cost="count")
    worth = rng.integers(0, 4, n).astype(float) if rng.random() < 0.4 else None
    if rng.random() < 0.2:
        worth = rng.uniform(0, 2, n)
    quotas = some_quotas(rng, n)
    problem = linear_problem([1.0, 1.0], rng.normal(size=(n, 2)), budgets, worth=worth, quotas=quotas)
    rows = np.sort(rng.integers(0, n, size=int(rng.integers(1, 11))))
    return problem, quotas, rows, rng.normal(size=(len(rows), 2))


def brute_force(
    problem: Problem, quotas: list[Quota], rows: Rows, changes: Floats, must: tuple[int, ...] = ()
) -> float:
    """The best worth over all selections with at most one candidate per sample; -inf if none is feasible."""
    options = [[None, *np.flatnonzero(rows == row)] for row in np.unique(rows)]
    best = -math.inf
    for picks in itertools.product(*options):
        chosen = [c for c in picks if c is not None]
        people = rows[chosen].tolist()
        if set(must) <= set(people) and kept(quotas, people) and problem.bill(rows, changes).of(chosen).fits():
            best = max(best, float(problem.worth[people].sum()))
    return best


@pytest.mark.parametrize("block", range(10))
def test_choose_equals_brute_force_and_refuses_exactly_what_is_infeasible(block: int) -> None:
    size = 400 if LONG else 30
    for seed in range(size * block, size * (block + 1)):
        problem, quotas, rows, changes = random_case(seed)
        must = np.unique(rows)[: seed % 3 // 2]
        best = brute_force(problem, quotas, rows, changes, tuple(must.tolist()))
        if best == -math.inf:
            with pytest.raises(ProblemError, match=r"quotas|include"):
                choose(problem, rows, changes, must)
            continue
        chosen = choose(problem, rows, changes, must)
        people = rows[chosen].tolist()
        assert kept(quotas, people), seed
        assert set(must) <= set(people), seed
        assert problem.bill(rows, changes).of(chosen).fits(), seed
        assert float(problem.worth[people].sum()) == pytest.approx(best, abs=1e-9), seed


def test_the_least_fraction_is_the_least() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        most = int(rng.integers(1, 40))
        share = Fraction(repr(float(rng.choice([rng.random(), round(rng.random(), 2), rng.random() / 100]))))
        every = [Fraction(p, q) for q in range(1, most + 1) for p in range(q + 1)]
        assert least_fraction(share, most) == min(f for f in every if f >= share)
