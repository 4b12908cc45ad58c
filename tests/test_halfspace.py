"""The cheapest change into a half-space: closed forms, weak duality as the proof, a general solver as witness."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from maxflip.search.halfspace import cheapest_into_halfspace, cost, dual_value

Floats = NDArray[np.float64]


def tensor(a: object) -> torch.Tensor:
    return torch.tensor(np.asarray(a), dtype=torch.float64)


def random_case(seed: int) -> tuple[Floats, float, Floats, Floats, Floats, Floats]:
    """g, r, squared, absolute, low, high with zeros and infinities in them."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 7))
    g = rng.normal(size=k) * (rng.random(k) > 0.15)
    squared = rng.random(k) * (rng.random(k) > 0.4)
    absolute = rng.random(k) * (rng.random(k) > 0.4)
    absolute = np.where((squared == 0) & (absolute == 0), 0.3, absolute)
    low = np.where(rng.random(k) > 0.7, -np.inf, -2 * rng.random(k) * (rng.random(k) > 0.2))
    high = np.where(rng.random(k) > 0.7, np.inf, 2 * rng.random(k) * (rng.random(k) > 0.2))
    return g, float(rng.normal() * 1.5), squared, absolute, low, high


@given(st.integers(0, 10**9))
def test_feasible_and_proved_optimal(seed: int) -> None:
    g, r, s, a, low, high = random_case(seed)
    batch = (tensor(g)[None], tensor([r]), tensor(s), tensor(a), tensor(low)[None], tensor(high)[None])
    flip = cheapest_into_halfspace(*batch)
    d = flip.change[0].numpy()
    far = np.where(g > 0, high, low)
    furthest = float(np.sum(g * np.where(g == 0, 0.0, far)))
    assert bool(flip.reachable[0]) == (r <= 0 or furthest >= r)
    assert (d >= low).all()
    assert (d <= high).all()
    if flip.reachable[0]:
        assert g @ d >= r - 1e-9
        value = float(cost(flip.change, tensor(s), tensor(a))[0])
        proof = float(dual_value(flip.nu, *batch)[0])
        assert value - proof <= 1e-9 * max(1.0, value)
        for nu in (0.0, 0.5 * float(flip.nu[0]), 2 * float(flip.nu[0]) + 1):
            assert float(dual_value(tensor([nu]), *batch)[0]) <= value + 1e-9 * max(1.0, value)


@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_a_general_solver(seed: int) -> None:
    g, r, s, a, low, high = random_case(seed)
    s = s + 0.05
    flip = cheapest_into_halfspace(
        tensor(g)[None], tensor([r]), tensor(s), tensor(a), tensor(low)[None], tensor(high)[None]
    )
    if not flip.reachable[0]:
        return
    k = len(g)

    def objective(v: Floats) -> float:  # d = up - down, each >= 0, makes |d| smooth
        return float(s @ (v[:k] - v[k:]) ** 2 + a @ (v[:k] + v[k:]))

    bounds = [(0, None if np.isinf(h) else h) for h in high] + [(0, None if np.isinf(lo) else -lo) for lo in low]
    result = minimize(
        objective,
        np.concatenate([flip.change[0].clamp_min(0), (-flip.change[0]).clamp_min(0)]),
        bounds=bounds,
        constraints={"type": "ineq", "fun": lambda v: g @ (v[:k] - v[k:]) - r},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert float(cost(flip.change, tensor(s), tensor(a))[0]) <= result.fun + 1e-7


def test_closed_form_without_limits() -> None:
    """C = r^2 / sum_i g_i^2 / s_i."""
    rng = np.random.default_rng(1)
    g, r, s = rng.normal(size=(50, 6)), np.abs(rng.normal(size=50)), rng.random(6) + 0.1
    inf = torch.full((50, 6), torch.inf, dtype=torch.float64)
    flip = cheapest_into_halfspace(tensor(g), tensor(r), tensor(s), torch.zeros(6, dtype=torch.float64), -inf, inf)
    expected = r**2 / (g**2 / s).sum(axis=1)
    np.testing.assert_allclose(
        cost(flip.change, tensor(s), torch.zeros(6, dtype=torch.float64)).numpy(), expected, rtol=1e-12
    )


def test_absolute_cost_fills_the_best_value_for_money_first() -> None:
    """Gain per price is 4, 3, 1: the first up to its limit, the second in part, the third not at all."""
    g, price = tensor([[4.0, 3.0, 1.0]]), tensor([1.0, 1.0, 1.0])
    high = tensor([[0.5, 10.0, 10.0]])
    flip = cheapest_into_halfspace(g, tensor([5.0]), torch.zeros(3, dtype=torch.float64), price, -high, high)
    np.testing.assert_allclose(flip.change.numpy(), [[0.5, 1.0, 0.0]])
