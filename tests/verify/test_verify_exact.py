"""The exact consumption against plain fractions, and its speed."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxflip_verify.exact import consumption

finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(min_value=-1e3, max_value=1e3)
weight = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)
pairs = st.lists(
    st.tuples(weight, finite) | st.tuples(st.just(1.0), moderate) | st.tuples(weight, moderate), max_size=20
)


def by_fractions(items: list[tuple[float, float]], power: int) -> Fraction:
    return sum((Fraction(w) * abs(Fraction(d)) ** power for w, d in items), Fraction(0))


@given(pairs, st.booleans())
def test_consumption_is_the_real_number_that_the_floats_denote(items: list[tuple[float, float]], squared: bool) -> None:
    weights, changes = np.array([w for w, _ in items]), np.array([d for _, d in items])
    assert consumption(weights, changes, squared=squared) == by_fractions(items, 2 if squared else 1)


@given(st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=1, max_size=50), st.integers(-1, 1))
def test_a_budget_is_decided_to_the_last_ulp(changes: list[float], ulps: int) -> None:
    used = consumption(np.ones(len(changes)), np.array(changes), squared=True)
    amount = float(used)
    amount = math.nextafter(amount, math.inf) if ulps > 0 else math.nextafter(amount, 0.0) if ulps < 0 else amount
    assert (used > amount) == (by_fractions([(1.0, d) for d in changes], 2) > Fraction(amount))
    assert ulps == 0 or (used > amount) == (ulps < 0)


def test_floats_would_have_said_the_opposite() -> None:
    changes = np.full(10, 0.1)
    used = consumption(np.ones(10), changes, squared=False)
    assert math.fsum(changes) == 1.0  # a rounded sum cannot see that ten times 0.1 is more than 1
    assert used > 1.0


def test_no_rows_consume_nothing() -> None:
    assert consumption(np.array([]), np.array([]), squared=True) == 0
    assert consumption(np.zeros(3), np.ones(3), squared=False) == 0


def test_a_large_plan_takes_less_than_a_second() -> None:
    rng = np.random.default_rng(0)
    weights, changes = rng.uniform(0.1, 2.0, 400_000), rng.normal(size=400_000)
    began = time.perf_counter()
    used = consumption(weights, changes, squared=True)
    assert time.perf_counter() - began < 1  # 0.05 s on an idle core
    assert math.isclose(float(used), float((weights * changes**2).sum()), rel_tol=1e-12)
