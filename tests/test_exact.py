"""Budgets are decided on exact real numbers: against Fractions, at the last bit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxflip import Budget
from maxflip._util import parallel as parts
from maxflip._util.exact import ExactSum, Power
from maxflip.problem.ledger import Ledger

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
usual = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)
weights = st.one_of(st.just(1.0), st.floats(min_value=0.0, max_value=1e5), st.just(5e-324))


def exactly(weight: float, changes: list[float], power: int) -> Fraction:
    return sum((Fraction(weight) * abs(Fraction(d)) ** power for d in changes), Fraction(0))


@given(
    st.lists(st.one_of(usual, finite.filter(lambda v: abs(v) < 1e150)), max_size=12), weights, st.sampled_from([1, 2])
)
def test_decisions_and_rounding_agree_with_fractions(changes: list[float], weight: float, power: Power) -> None:
    true = exactly(weight, changes, power)
    total = ExactSum([(weight, np.array(changes), power)])
    nearest = float(true)
    assert total.rounded() == nearest
    for amount in (nearest, math.nextafter(nearest, math.inf), math.nextafter(nearest, 0.0)):
        assert total.at_most(amount) == (true <= Fraction(amount))


def test_a_sum_of_rounded_squares_would_be_wrong_here() -> None:
    """The case that makes the two-product necessary: rounded squares fit the budget, the exact ones do not."""
    rng = np.random.default_rng(0)
    caught = 0
    for _ in range(400):
        d = rng.normal(size=5)
        budget = math.fsum(float(v) * float(v) for v in d)
        true = exactly(1.0, d.tolist(), 2)
        assert ExactSum([(1.0, d, 2)]).at_most(budget) == (true <= Fraction(budget))
        caught += true > Fraction(budget)
    assert caught > 0


def test_infinite_budgets_hold_anything_and_count_budgets_count() -> None:
    ledger = Ledger.compile({"x": Budget(math.inf, {"x": 1.0}), "people": Budget(2, None, "count")}, ("x",))
    assert ledger.fits(np.full((2, 1), 1e150))
    assert ledger.overspent(np.zeros((3, 1))) == [1]
    assert ledger.spent(np.array([[2.0], [1.0]])).tolist() == [5.0, 2.0]


@given(st.lists(st.tuples(usual, usual), min_size=1, max_size=20), st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_shared_and_mixed_budgets(pairs: list[tuple[float, float]], u: float, v: float) -> None:
    changes = np.array(pairs)
    true = exactly(u, changes[:, 0].tolist(), 1) + exactly(v, changes[:, 1].tolist(), 1)
    budgets = {"hours": Budget(float(true), {"a": u, "b": v}, "absolute"), "a": Budget(math.inf, {"a": 1.0})}
    ledger = Ledger.compile(budgets, ("a", "b"))
    assert ledger.fits(changes) == (true <= Fraction(float(true)))
    assert ledger.spent(changes)[0] == float(true)
    rounded = ledger.consumption(changes).sum(axis=0)[0]
    assert math.isclose(rounded, float(true), rel_tol=1e-9, abs_tol=1e-300)


def test_changes_of_any_size_have_a_consumption() -> None:
    """No inf * 0, and a tiny weight makes a huge change ordinary; what is beyond float64 is inf and fits nowhere."""
    budgets = {
        "a": Budget(math.inf, {"a": 1.0}),
        "b": Budget(5.0, {"b": 1.0}),
        "h": Budget(9.0, {"a": 1e-300}),
        "k": Budget(9.0, {"a": 1e-200}, "absolute"),
    }
    ledger = Ledger.compile(budgets, ("a", "b"))
    changes = np.array([[1e150, 2.0], [1e200, 1.0]])
    np.testing.assert_allclose(ledger.consumption(changes), [[1e300, 4, 1, 1e-50], [math.inf, 1, 1e100, 1]])
    assert ledger.overspent(changes) == [2]
    assert ledger.spent(changes)[0] == math.inf
    assert ledger.excess(1, changes) == 0.0
    assert ledger.excess(2, changes) == float(exactly(1e-300, [1e150, 1e200], 2) - 9)


def test_a_square_below_the_smallest_float_may_weigh_much() -> None:
    """1e300 * (1e-170)**2 = 1e-40, though the square alone is 0 as a float."""
    changes = np.full((1, 1), 1e-170)
    for amount, over in ((2e-40, []), (0.5e-40, [0])):
        assert Ledger.compile({"b": Budget(amount, {"x": 1e300})}, ("x",)).overspent(changes) == over


def test_a_weight_may_make_a_consumption_that_is_no_number() -> None:
    budgets = {"own": Budget(1.0, {"x": 1e300})}
    for more in ({}, {"absolute": Budget(1.0, {"x": 1e305}, "absolute")}):
        ledger = Ledger.compile(budgets | more, ("x",))
        assert np.isinf(ledger.consumption(np.full((1, 1), 1e10))).all()
        assert ledger.overspent(np.full((1, 1), 1e10)) == list(range(len(ledger.names)))


def test_long_sums_are_exact_in_any_number_of_parts_and_threads() -> None:
    """Several parts of a long plan, decided at the last bit on either side."""
    rng = np.random.default_rng(4)
    changes = rng.normal(size=(2 * parts.LENGTH + 5, 2)) * rng.lognormal(0, 3, size=(2 * parts.LENGTH + 5, 1))
    changes[::7, 0] = 0.0
    true = sum((Fraction(d) ** 2 for d in changes[:, 0].tolist()), Fraction(0))
    nearest = float(true)
    features = ("a", "b")
    for number in (1, 3):
        with parts.threads(number):
            for amount in (nearest, math.nextafter(nearest, math.inf), math.nextafter(nearest, 0.0)):
                ledger = Ledger.compile({"a": Budget(amount, {"a": 1.0}), "b": Budget(math.inf, {"b": 1.0})}, features)
                assert ledger.spent(changes)[0] == nearest
                assert ledger.overspent(changes) == ([] if true <= Fraction(amount) else [0])
                assert ledger.excess(0, changes) == float(true - Fraction(amount))
