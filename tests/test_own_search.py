"""Searches at prices that differ between samples and between ways, and sums of draws that differ, exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip import Budget, Ensemble, Problem, TorchClassifier, Ways, judge
from maxflip._util.exact import ExactSum
from maxflip.plan.bracket import most_payable
from maxflip.search import FeaturePrices, cheapest_flips
from maxflip.search.halfspace import dual_value
from maxflip.search.linear import _Logits, cheapest
from maxflip.search.rates import Rate, Rates
from maxflip.search.settings import PRICING
from maxflip.search.surface import Surface
from maxflip.search.terms import Terms, dual_bound
from maxflip.solvers.paper.search import Search
from maxflip.solvers.prices.shard import Shard
from tests.examples import linear_problem, net_problem
from tests.test_halfspace import random_case, tensor

Floats = NDArray[np.float64]


def unlike(seed: int, shape: tuple[int, ...], zeros: float = 0.0) -> Floats:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < zeros, 0.0, rng.uniform(0.2, 2.0, shape))


def prices_of(seed: int, n: int, width: int, kind: str) -> FeaturePrices:
    """For each sample, and for up and down, other ones"""
    squared = [unlike(seed + k, (n, width)) * (kind != "absolute") for k in range(2)]
    absolute = [unlike(seed + 2 + k, (n, width)) * (kind != "squared") for k in range(2)]
    return FeaturePrices(squared[0], absolute[0], squared[1], absolute[1])


def price_of(prices: FeaturePrices, j: int, d: Floats) -> float:
    up, down = (np.maximum(d, 0.0), np.maximum(-d, 0.0))
    paid = 0.0
    for moved, pair in ((up, prices.up), (down, prices.down)):
        paid += float(pair.squared[j] @ moved**2 + pair.absolute[j] @ moved)
    return paid


@pytest.mark.parametrize("kind", ["squared", "absolute", "mixed"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("members", [1, 2])
def test_flips_of_linear_models_are_the_cheapest_and_proved(kind: str, classes: int, members: int) -> None:
    """Their cost meets the proved lower bound, so that nothing is cheaper; and random flips are not."""
    rng = np.random.default_rng(11)
    n, width = 12, 3
    nets = []
    for _ in range(members):
        net = torch.nn.Linear(width, classes, dtype=torch.float64)
        with torch.no_grad():
            net.weight.copy_(torch.tensor(rng.normal(size=(classes, width))))
        nets.append(TorchClassifier(net, output="logits"))
    x = rng.normal(size=(n, width)) * 2
    problem = Problem(
        classifier=nets[0] if members == 1 else Ensemble(nets),
        cohort=x,
        target=0,
        margin=0.1,
        budgets=dict.fromkeys(["x0", "x1", "x2"], 1.0),
        limits={"x0": (-5.0, 5.0)},
    )
    prices = prices_of(3, n, width, kind)
    surface = Surface(problem, np.arange(n), prices)
    at = torch.nonzero(surface.margin(torch.zeros_like(surface.low), torch.arange(n)) < 0).flatten()
    assert problem.linear is not None
    flip = cheapest(surface, _Logits.of(surface, problem.linear), at, guards=PRICING.guards)
    assert len(at) > 3
    paid = [price_of(prices, j, d.numpy()) for j, d in zip(at.tolist(), flip.change, strict=True)]
    np.testing.assert_allclose(surface.cost(flip.change, at).numpy(), paid, rtol=1e-12)
    inside = flip.inside.numpy()
    np.testing.assert_allclose(np.array(paid)[inside], flip.lower.numpy()[inside], rtol=1e-9)
    tries = rng.normal(size=(200, width)) * 3
    for j, cost in zip(at[flip.inside].tolist(), np.array(paid)[inside], strict=True):
        rows = np.full(len(tries), j)
        flips = judge.admissible(problem, rows, problem.settle(rows, tries))
        assert all(price_of(prices, j, d) >= cost * (1 - 1e-9) for d in problem.settle(rows, tries)[flips])


@given(st.integers(0, 10**9))
def test_no_change_costs_less_than_what_a_half_space_proves(seed: int) -> None:
    """Weak duality holds for any multiplier, with prices of both ways."""
    g, r, s, a, low, high = random_case(seed)
    rng = np.random.default_rng(seed)
    down = (s * rng.uniform(0, 3, len(s)), a * rng.uniform(0, 3, len(a)))
    rates = Rates(Rate(tensor(s), tensor(a)), Rate(tensor(down[0]), tensor(down[1])))
    nu = tensor([rng.uniform(0, 3)])
    pull, offset = nu[:, None] * tensor(g), nu * tensor([r])
    terms = Terms(rates, tensor(low)[None], tensor(high)[None])
    proofs = [
        float(dual_bound(pull, offset, terms)[0]),
        float(
            dual_value(
                nu, tensor(g)[None], tensor([r]), *rates.along(tensor(g)[None]), tensor(low)[None], tensor(high)[None]
            )[0]
        ),
    ]
    tries = np.clip(rng.normal(size=(300, len(g))) * 3, low, high)
    for d in tries[tries @ g >= r]:
        cost = float(rates.cost(tensor(d)[None])[0])
        assert all(proof <= cost + 1e-9 * max(1.0, cost) for proof in proofs)


def test_what_is_free_costs_next_to_nothing_for_that_sample_and_way_alone() -> None:
    own = np.array([0.0, 2.0, 1.0])
    budgets = {"a": Budget(1.0, {"x0": own, "x1": Ways(0.0, 1.0)}), "b": Budget(1.0, {"x0": 1.0}, only=["2"])}
    problem = linear_problem([1.0, 1.0], np.eye(3)[:, :2] - 2.0, budgets)
    prices = FeaturePrices.at(problem, np.array([1.0, 3.0]), np.arange(3))
    np.testing.assert_array_equal(prices.down.squared[1:], [[2.0, 1.0], [4.0, 1.0]])
    assert prices.up.squared[:, 0].tolist()[1:] == [2.0, 4.0]
    for floor in (prices.up.squared[0, 0], *prices.up.squared[:, 1]):
        assert 0 < floor < 1e-7


# The smoothed dual, whose derivatives Newton's method needs.


@pytest.mark.parametrize("make", [linear_problem, net_problem])
def test_the_derivatives_of_the_dual_are_true(make: Any) -> None:
    rng = np.random.default_rng(0)
    n = 12
    x = rng.normal(size=(n, 3)) - 1.0
    budgets = {
        "a": Budget(3.0, {"x0": rng.uniform(0.5, 2, n), "x1": Ways(1.0, rng.uniform(0.5, 2, n))}, fee=0.2),
        "b": Budget(2.0, {"x1": Ways(0.5, 2.0), "x2": 1.0}, "absolute", only=range(8)),
        "c": Budget(4.0, {"x2": 1.0}, fee=rng.uniform(0, 0.3, n)),
        "d": Budget(5.0, cost="count", fee=rng.uniform(0.5, 2, n)),
    }
    problem = (
        make([1.0, -0.7, 0.4], x, budgets) if make is linear_problem else make(features=3, cohort=x, budgets=budgets)
    )
    prices = np.array([0.15, 0.1, 0.1, 0.05])
    shard = Shard(problem, np.arange(n), prices)
    shard.first_flips((), polished=False, led=False)
    here = shard.dual_part(prices, 0.3)
    assert here.value > 0
    for r in range(4):
        step = 1e-6 * np.eye(4)[r]
        above, below = shard.dual_part(prices + step, 0.3), shard.dual_part(prices - step, 0.3)
        assert here.gradient[r] == pytest.approx((above.value - below.value) / 2e-6, rel=1e-5, abs=1e-7)
        np.testing.assert_allclose(here.hessian[r], (above.gradient - below.gradient) / 2e-6, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("units", ["raw", "standard"])
def test_the_papers_slopes_are_those_of_what_is_drawn(units: Any) -> None:
    rng = np.random.default_rng(4)
    x, own = rng.normal(size=(5, 3)) * [1.0, 2.0, 3.0], rng.uniform(0.2, 2.0, 5)
    budgets = {
        "a": Budget(2.0, {"x0": own, "x1": Ways(1.0, own)}, fee=own),
        "b": Budget(4.0, {"x1": 1.0, "x2": Ways(0.0, 3.0)}, "absolute", only=[0, 1, 3]),
        "c": Budget(3.0, cost="count", only=[0, 1]),
    }
    problem = linear_problem([1.0, 1.0, 1.0], x, budgets)
    search = Search(problem, np.arange(5), units)
    u, weight = torch.tensor(rng.normal(size=(5, 3))), torch.tensor(rng.uniform(size=(5, 3)))
    drawn = problem.bill(np.arange(5), (search.unit * u).numpy()).consumption
    np.testing.assert_allclose(search.consumption(u).numpy(), drawn, rtol=1e-12)
    there = torch.zeros_like(u)
    for i in range(3):
        by = torch.zeros_like(u)
        by[:, i] = 1e-6
        there[:, i] = (weight * (search.consumption(u + by) - search.consumption(u - by))).sum(dim=1) / 2e-6
    torch.testing.assert_close(search.consumption_slope(u, weight), there, rtol=1e-6, atol=1e-7)
    without = Search(problem, np.arange(5), units, flats=False)
    assert without.budgets.tolist() == [0, 1]
    np.testing.assert_allclose(without.consumption(u).numpy(), drawn[:, :2] - own[:, None] * [1.0, 0.0], rtol=1e-12)


# Exact sums.


@given(st.integers(0, 10**9))
def test_sums_of_weights_of_each_ones_own_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, changes = (10.0 ** rng.uniform(-40, 40, 30) * (rng.random(30) > 0.2) for _ in range(2))
    changes *= rng.choice([-1.0, 1.0], 30)
    for power in (1, 2):
        true = sum(
            (Fraction(w) * abs(Fraction(d)) ** power for w, d in zip(weights, changes, strict=True)), Fraction(0)
        )
        total = ExactSum([(weights, changes, power)])
        assert total.rounded() == float(true)
        for amount in (float(true), math.nextafter(float(true), 0.0), math.nextafter(float(true), math.inf)):
            assert total.at_most(amount) == (true <= Fraction(amount))


@given(st.integers(0, 10**9))
def test_what_fits_is_decided_exactly(seed: int) -> None:
    """At the amount that is drawn, and at the next floats beside it; also of some of the changes."""
    rng = np.random.default_rng(seed)
    n = 6
    own, fees, inside = rng.uniform(0, 3, n), rng.uniform(0, 1, n), np.append(rng.random(n - 1) < 0.6, True)
    cost = str(rng.choice(["squared", "absolute"]))
    power = 2 if cost == "squared" else 1
    asked = Budget(1.0, {"x0": own, "x1": Ways(0.3, own)}, cost, fee=fees, only=np.flatnonzero(inside))
    problem = linear_problem([1.0, 1.0], rng.normal(size=(n, 2)), {"a": asked})
    changes, rows = rng.normal(size=(n, 2)), rng.permutation(n)
    some = np.sort(rng.choice(n, size=4, replace=False))
    for picked in (np.arange(n), some):
        true = Fraction(0)
        for j, d in zip(rows[picked].tolist(), changes[picked], strict=True):
            if inside[j]:
                second = Fraction(0.3) if d[1] > 0 else Fraction(own[j])
                true += Fraction(fees[j]) + Fraction(own[j]) * abs(Fraction(d[0])) ** power
                true += second * abs(Fraction(d[1])) ** power
        for amount in (float(true), math.nextafter(float(true), 0.0), math.nextafter(float(true), math.inf)):
            bill = problem.changed(budgets={"a": amount}).bill(rows, changes).of(picked)
            assert bill.fits() == (true <= Fraction(amount))
            assert bill.spent()[0] == float(true)
            assert bill.excess(0) == pytest.approx(float(true - Fraction(amount)), rel=1e-12, abs=1e-300)
        assert bill.consumption.sum() == pytest.approx(float(true), rel=1e-12)


def test_the_most_that_fees_allow() -> None:
    """By brute force over subsets: never below, and exact where fees are equal."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = 7
        fees = np.full(n, 0.1) if seed % 3 == 0 else rng.uniform(0.0, 1.0, n) * (rng.random(n) > 0.2)
        worth = np.ones(n) if seed % 2 else rng.uniform(0.5, 2, n)
        amount = float(rng.uniform(0.0, fees.sum()))
        problem = linear_problem([1.0], np.zeros((n, 1)), {"a": Budget(amount, cost="count", fee=fees), "x0": 1.0})
        rows = np.flatnonzero(rng.random(n) < 0.8)
        each = [[j for k, j in enumerate(rows.tolist()) if mask >> k & 1] for mask in range(2 ** len(rows))]
        best = max(math.fsum(worth[who]) for who in each if sum(map(Fraction, fees[who].tolist())) <= Fraction(amount))
        most = most_payable(problem.ledger, problem.ledger.amounts, worth[rows], rows)
        assert best <= most <= best + worth.max()
        assert seed % 3 or most == best


def test_flips_at_prices_of_ones_own_are_found_by_every_search() -> None:
    """For a network: nobody's flip is dearer than the one at another's prices."""
    rng = np.random.default_rng(2)
    problem = net_problem(n=30, features=3, budgets={f"x{i}": 5.0 for i in range(3)})
    prices = prices_of(5, 30, 3, "mixed")
    found = cheapest_flips(problem, np.arange(30), prices)
    others = cheapest_flips(problem, np.arange(30), FeaturePrices(rng.uniform(0.5, 2, 3), rng.uniform(0.5, 2, 3)))
    both = found.found & others.found
    assert both.sum() > 10
    own, theirs = (np.array([price_of(prices, j, d) for j, d in enumerate(f.changes)])[both] for f in (found, others))
    assert (own <= theirs * 1.05).mean() > 0.95
    assert own.mean() < 0.9 * theirs.mean()
