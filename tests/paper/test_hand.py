"""One inner iteration of each algorithm, computed here with plain numpy from the paper's formulas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxflip import BCMS, CCMS, KL, MS
from maxflip._util.rng import Streams
from tests.paper.stage import AMOUNTS, DELTA, LAMBDA, MU, U, W, X, chance, kl, ms, run_of, two_samples

Floats = NDArray[np.float64]
CROSSED = U + np.array([[0.0, 0.0], [2.0, -1.0]])
BETA, ALPHA, KAPPA, TAU, EPSILON = 0.05, 0.05, 2.0, 30.0, 0.1


def probability(u: Floats) -> Floats:
    """Of class 1, of each sample"""
    return np.asarray(1 / (1 + np.exp(-(X + u) @ W)))


def signed(u: Floats) -> Floats:
    """f_0 - f_1 + delta with f_0 = 1 - f_1"""
    return np.asarray(1 - 2 * probability(u) + DELTA)


def signed_slope(u: Floats) -> Floats:
    p = probability(u)
    return np.asarray(-2 * (p * (1 - p))[:, None] * W)


def close(found: object, wanted: Floats) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12, atol=1e-12)


def test_one_sample_lacks_confidence_and_one_has_it() -> None:
    """So both sides of the hinge are on stage."""
    assert signed(U)[0] > 0
    assert signed(CROSSED)[1] < 0


def test_ms() -> None:
    for start in (U, CROSSED):
        algorithm = ms(two_samples(), MS(), u=start)
        assert algorithm.iterate(1, 1)
        is_short = (signed(start) > 0)[:, None]
        slope = -2 * LAMBDA * start - MU[:, None] * np.where(is_short, signed_slope(start), 0.0)
        moved = start + BETA * slope  # z = 1 for both at first
        h = np.maximum(0.0, signed(moved))
        c = 1 - moved**2 @ LAMBDA - MU * h
        z = (c >= 0).astype(float)
        close(algorithm.u, moved)
        close(algorithm.z, z)
        end = algorithm.slopes(1)
        close(end.value, z @ c + LAMBDA @ AMOUNTS)
        close(end.of_lambda, AMOUNTS - z @ moved**2)
        close(end.of_mu, -z * h)
        algorithm.multipliers.t = 4
        algorithm.multipliers.descend(end.of_lambda, end.of_mu)  # gamma / sqrt(4)
        close(algorithm.multipliers.of_budgets, np.maximum(0, LAMBDA - 0.5 * (AMOUNTS - z @ moved**2)))
        close(algorithm.multipliers.of_samples, np.maximum(0, MU + 0.5 * z * h))


def test_ms_rests_where_z_is_0_and_leaves_when_nobody_is_picked() -> None:
    algorithm = ms(two_samples(), MS(), mu=[50.0, 0.4])
    algorithm.iterate(1, 1)
    assert algorithm.z.tolist() == [False, True]
    before = algorithm.u.clone()
    algorithm.iterate(1, 2)
    assert (algorithm.u[0] == before[0]).all()
    assert (algorithm.u[1] != before[1]).any()
    algorithm.z[:] = False
    assert not algorithm.iterate(1, 3)
    algorithm.begin()
    assert algorithm.z.all()
    on_and_on = ms(two_samples(), MS(keep_moving=True), mu=[50.0, 0.4])
    on_and_on.iterate(1, 1)
    before = on_and_on.u.clone()
    on_and_on.iterate(1, 2)
    assert (on_and_on.u != before).any(dim=1).all()


def test_kl() -> None:
    a = 0.3
    algorithm = kl(two_samples(), KL(a=a))
    assert algorithm.iterate(1, 1)
    p = probability(U)
    of_divergence = -(1 - p)[:, None] * W  # d/dx of -log p
    slope = of_divergence + 2 * a * U + 2 * LAMBDA * U + MU[:, None] * signed_slope(U)
    moved = U - BETA * slope
    close(algorithm.u, moved)
    end = algorithm.slopes(1)
    loss = -np.log(probability(moved)) + a * (moved**2).sum(axis=1)
    over = (moved**2).sum(axis=0) - AMOUNTS
    close(end.value, loss.sum() + LAMBDA @ over + MU @ signed(moved))
    close(end.of_lambda, over)
    close(end.of_mu, signed(moved))
    algorithm.multipliers.ascend(end.of_lambda, end.of_mu)
    close(algorithm.multipliers.of_budgets, np.maximum(0, LAMBDA + over))
    close(algorithm.multipliers.of_samples, np.maximum(0, MU + signed(moved)))


def indicator(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-KAPPA * (x - TAU) / (1 - TAU))))


def indicator_slope(x: Floats) -> Floats:
    value = indicator(x)
    return np.asarray(value * (1 - value) * KAPPA / (1 - TAU))


def of_budgets(v: Floats, a: Floats) -> tuple[Floats, Floats]:
    """The gradients of 1/N sum_n sum_r lambda_r P(x_nr) by v (N, n) and by a (n, m)"""
    x = v @ a - AMOUNTS
    by_x = LAMBDA * indicator_slope(x) / len(v)
    return np.asarray(by_x @ a.T), np.asarray(v.T @ by_x)


def uniform(draws: int, k: int) -> Floats:
    import torch

    generator = Streams(0).torch("paper.noise", 1, k)
    return torch.rand(draws, 2, dtype=torch.float64, generator=generator).numpy()


PI, DRAWS = np.array([0.3, 0.8]), 5


def bernoulli(pi: Floats, k: int) -> Floats:
    """v = e^(log pi + g1) / (e^(log pi + g1) + e^(log(1 - pi) + g2)) with g1 - g2 = logit(uniform), omega = 1"""
    noise = uniform(DRAWS, k)
    odds = pi / (1 - pi) * noise / (1 - noise)
    return np.asarray(odds / (1 + odds))


def test_bcms() -> None:
    algorithm = chance(two_samples(), BCMS(draws=DRAWS), PI)
    assert algorithm.iterate(1, 1)
    v, a, h = bernoulli(PI, 1), U**2, np.maximum(0, signed(U))
    by_v, by_a = of_budgets(v, a)
    by_pi = (1 - MU * h) + (by_v * v * (1 - v)).sum(axis=0) / (PI * (1 - PI))
    pi = np.minimum(1, np.maximum(0, PI + ALPHA * by_pi))
    moved = U + BETA * (by_a * 2 * U - (PI * MU * (signed(U) > 0))[:, None] * signed_slope(U))
    close(algorithm.pi, pi)
    close(algorithm.u, moved)
    end = algorithm.slopes(1)
    kept = indicator(bernoulli(pi, 0) @ moved**2 - AMOUNTS).mean(axis=0)
    h = np.maximum(0, signed(moved))
    close(end.value, pi @ (1 - MU * h) + LAMBDA @ (kept - (1 - EPSILON)))
    close(end.of_lambda, kept - (1 - EPSILON))
    close(end.of_mu, -pi * h)


CHOICES = 3


def categorical(pi: Floats, k: int) -> tuple[Floats, Floats]:
    """y (N, K, n) = softmax(log pi + g), and v = min(1, sum over K)"""
    import torch

    generator = Streams(0).torch("paper.noise", 1, k)
    uniform = torch.empty(DRAWS, CHOICES, 2, dtype=torch.float64).uniform_(generator=generator).numpy()
    gumbel = -np.log(-np.log(uniform))
    weight = np.exp(np.log(pi) + gumbel)
    y = weight / weight.sum(axis=2, keepdims=True)
    return y, np.minimum(1, y.sum(axis=1))


def test_ccms() -> None:
    pi = np.array([0.2, 0.8])
    algorithm = chance(two_samples(), CCMS(draws=DRAWS, choices=1.5), pi)
    assert algorithm.iterate(1, 1)
    (y, v), a, h = categorical(pi, 1), U**2, np.maximum(0, signed(U))
    assert (v == 1).any()
    assert (v < 1).any()
    by_v, by_a = of_budgets(v, a)
    by_v = np.where(v < 1, by_v + (1 - MU * h) / DRAWS, 0.0)
    # dy_j / dpi_k = y_j (1{j = k} - y_k) / pi_k
    by_pi = np.array([(by_v[:, None] * y * ((np.arange(2) == k) - y[..., k : k + 1])).sum() for k in (0, 1)]) / pi
    raised = np.maximum(0, pi + ALPHA * by_pi)
    moved = U + BETA * (by_a * 2 * U - (v.mean(axis=0) * MU * (signed(U) > 0))[:, None] * signed_slope(U))
    close(algorithm.pi, raised / raised.sum())
    close(algorithm.u, moved)
    end = algorithm.slopes(1)
    _, v = categorical(raised / raised.sum(), 0)
    kept = indicator(v @ moved**2 - AMOUNTS).mean(axis=0)
    h = np.maximum(0, signed(moved))
    close(end.value, v.mean(axis=0) @ (1 - MU * h) + LAMBDA @ (kept - (1 - EPSILON)))
    close(end.of_lambda, kept - (1 - EPSILON))
    close(end.of_mu, -v.mean(axis=0) * h)
    close(end.more["saturated"], np.asarray((v == 1).mean()))


def test_one_step_of_adam_has_the_length_of_beta() -> None:
    """m^ / sqrt(s^) is the sign of the first gradient."""
    algorithm = kl(two_samples(), KL(optimizer="adam", a=0.3))
    slope = algorithm.slope().numpy()
    algorithm.iterate(1, 1)
    np.testing.assert_allclose(algorithm.u.numpy(), U - BETA * np.sign(slope), atol=1e-9)


def test_the_start_is_a_hundredth_of_a_deviation_away() -> None:
    problem = two_samples()
    algorithm = ms(problem, MS())
    start = algorithm.search.start(run_of(problem)).numpy()
    noise = start / X.std(axis=0)
    assert 0 < np.abs(noise).max() < 0.05
    standard = ms(problem, MS(units="standard")).search.start(run_of(problem)).numpy()
    np.testing.assert_allclose(standard * X.std(axis=0), start, rtol=1e-14)
