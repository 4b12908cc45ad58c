"""What the four algorithms share: each part against a formula, a limit, or everything that can happen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from maxflip import TorchClassifier
from maxflip._util.rng import Streams
from maxflip.problem.goal import Goal
from maxflip.solvers.paper import selection
from maxflip.solvers.paper.confidence import divergence, hinge, signed
from maxflip.solvers.paper.details import DETAILS
from maxflip.solvers.paper.indicator import beyond, soft_indicator
from maxflip.solvers.paper.multipliers import Multipliers
from maxflip.solvers.paper.steps import into_unit_interval, onto_simplex, renormalised
from tests.examples import net_problem, small_net
from tests.paper.stage import setting_of, tensor


def noise(seed: int = 0) -> Callable[[], torch.Generator]:
    return lambda: Streams(seed).torch("noise")


def test_the_indicator_falls_and_has_its_midpoint_at_tau() -> None:
    x = tensor(np.linspace(-100, 200, 301))
    for tau in (1.5, 30.0, 50.0):
        p = soft_indicator(x, 2.0, tau)
        assert (p.diff() <= 0).all()
        assert soft_indicator(tensor([tau]), 2.0, tau).item() == 0.5
    assert soft_indicator(tensor([0.0]), 2.0, 30.0).item() == pytest.approx(0.888, abs=5e-4)
    assert soft_indicator(tensor([0.0]), 2.0, 50.0).item() == pytest.approx(0.885, abs=5e-4)


def test_a_steep_indicator_tolerates_tau_beyond_the_budget() -> None:
    """kappa -> infinity: 1{spend < B + tau}, or, relative, 1{spend < (1 + tau / 100) B}"""
    spend, amounts = tensor([[29.9], [39.9], [40.1], [51.9], [52.1]]), tensor([40.0])
    steep = soft_indicator(beyond(spend, amounts - 30.0, is_relative=False), 1e9, 30.0)
    assert steep.flatten().tolist() == [1, 1, 0, 0, 0]
    relative = soft_indicator(beyond(spend, amounts, is_relative=True), 1e9, 30.0)
    assert relative.flatten().tolist() == [1, 1, 1, 1, 0]


def test_the_relative_indicator_knows_no_units() -> None:
    spend, amounts = tensor([[1.0, 7.0]]), tensor([2.0, 5.0])
    factors = tensor([1e-6, 1e9])
    one = soft_indicator(beyond(spend, amounts, is_relative=True), 2.0, 30.0)
    other = soft_indicator(beyond(spend * factors, amounts * factors, is_relative=True), 2.0, 30.0)
    np.testing.assert_allclose(one, other, rtol=1e-12)


def test_bernoulli_draws_harden_as_omega_falls() -> None:
    """Hard draws are 1 with probability pi; at omega = 1 they are something else (E v = 0.18 for pi = 0.1)."""
    pi = tensor([0.0, 0.1, 0.5, 0.9, 1.0])
    hard = selection.bernoulli(pi, 1e-12, 200_000, noise()())
    assert set(hard.flatten().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(hard.mean(dim=0), pi, atol=4 * 0.5 / math.sqrt(200_000))
    soft = selection.bernoulli(pi, 1.0, 200_000, noise()())
    assert soft[:, 1].mean().item() == pytest.approx(0.18, abs=0.005)


def test_bernoulli_selections_have_the_chances_of_enumeration() -> None:
    """Pr(sum_j z_j a_j <= B) over all 2^n selections of n = 8"""
    rng = np.random.default_rng(0)
    pi, a, amount = rng.uniform(0.1, 0.9, 8), rng.uniform(0, 1, 8), 2.0
    exact = sum(
        math.prod(p if z else 1 - p for p, z in zip(pi, picks, strict=True))
        for picks in itertools.product((0, 1), repeat=8)
        if np.dot(picks, a) <= amount
    )
    v = selection.bernoulli(tensor(pi), 1e-12, 100_000, noise()())
    assert 0.2 < exact < 0.8
    assert (v @ tensor(a) <= amount).double().mean().item() == pytest.approx(exact, abs=4 * 0.5 / math.sqrt(100_000))


def test_categorical_selections_have_the_chances_of_enumeration() -> None:
    """Pr(sum_j z_j a_j <= B) over all n^K choices of n = 5, K = 4; and z_j = 1 with 1 - (1 - pi_j)^K"""
    rng = np.random.default_rng(0)
    pi, a, amount, choices = rng.dirichlet(np.ones(5)), rng.uniform(0, 1, 5), 1.8, 4
    exact = sum(
        math.prod(pi[list(picks)])
        for picks in itertools.product(range(5), repeat=choices)
        if a[list({*picks})].sum() <= amount
    )
    v = selection.hits(selection.categorical(tensor(pi), 1e-3, 100_000, choices, noise()))
    near = 4 * 0.5 / math.sqrt(100_000)
    assert ((v < 1e-6) | (v > 1 - 1e-6)).double().mean() > 0.99
    np.testing.assert_allclose(v.mean(dim=0), 1 - (1 - pi) ** choices, atol=near)
    assert 0.2 < exact < 0.8
    assert (v @ tensor(a) <= amount).double().mean().item() == pytest.approx(exact, abs=2 * near)


def test_uniform_categorical_draws_saturate() -> None:
    """At omega = 1 and K = n, 40 % of the entries are cut off at 1, and mean v is 0.86."""
    pi = tensor(np.full(300, 1 / 300))
    summed = selection.categorical(pi, 1.0, 20, 300, noise())
    assert (summed >= 1).double().mean().item() == pytest.approx(0.4, abs=0.02)
    assert selection.hits(summed).mean().item() == pytest.approx(0.86, abs=0.01)


@pytest.mark.parametrize("block", [7, 40, 10**6])
def test_categorical_noise_may_come_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whatever size, gradients agree with finite differences; one choice of one draw is the smallest block."""
    # So few are kept that all are made again for the gradient.
    monkeypatch.setattr(selection, "DETAILS", replace(DETAILS, noise_block=block, noise_kept=100))
    pi = tensor([0.1, 0.2, 0.3, 0.25, 0.15]).requires_grad_(True)
    for omega in (1.0, 0.5, 2.0):
        assert torch.autograd.gradcheck(lambda p, w=omega: selection.categorical(p, w, 6, 4, noise()), (pi,))
    sizes = [w.numel() for _, w, _ in selection._blocks(pi.detach(), 1.0, 6, 4, noise()())]
    assert sum(sizes) == 6 * 4 * 5
    assert max(sizes) <= max(block, 5)


def test_the_gradient_of_bernoulli_draws() -> None:
    pi = tensor([0.1, 0.5, 0.97]).requires_grad_(True)
    for omega in (1.0, 0.5, 2.0):
        assert torch.autograd.gradcheck(lambda p, w=omega: selection.bernoulli(p, w, 6, noise()()), (pi,))


def test_no_probability_is_0_for_ever() -> None:
    kinds: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda p: selection.bernoulli(p, 1.0, 50, noise()()),
        lambda p: selection.categorical(p, 1.0, 50, 3, noise()),
    ]
    for draws in kinds:
        pi = tensor([0.0, 0.4, 0.6]).requires_grad_(True)
        (slope,) = torch.autograd.grad(draws(pi)[:, 0].sum(), pi)
        assert torch.isfinite(slope).all()
        assert slope[0] > 0


def test_projections() -> None:
    pi = tensor([-0.2, 0.4, 1.7])
    assert into_unit_interval(pi).tolist() == [0.0, 0.4, 1.0]
    np.testing.assert_allclose(renormalised(pi), [0.0, 0.4 / 2.1, 1.7 / 2.1])
    np.testing.assert_allclose(renormalised(tensor([-1.0, 0.0])), [0.5, 0.5])
    np.testing.assert_allclose(onto_simplex(tensor([0.5, 0.7, -1.0])), [0.4, 0.6, 0.0])
    rng = np.random.default_rng(0)
    for _ in range(20):
        point, other = tensor(rng.normal(size=6)), tensor(rng.dirichlet(np.ones(6)))
        nearest = onto_simplex(point)
        assert nearest.min() >= 0
        assert nearest.sum().item() == pytest.approx(1.0)
        assert (point - nearest) @ (other - nearest) <= 1e-12  # the inequality that tells a projection


def test_multipliers_start_with_noise_fall_more_slowly_and_stay_positive() -> None:
    first = Multipliers.first((5000, 3), (10.0, 0.0), (1.0, 0.5), Streams(1))
    assert first.of_budgets.mean().item() == pytest.approx(10.0, abs=0.1)
    assert first.of_budgets.std().item() == pytest.approx(1.0, abs=0.05)
    assert (first.of_samples == 0).all()
    moves = Multipliers(tensor([10.0]), tensor([10.0]), gamma=1.0, eta=0.5)
    seen = []
    for _ in range(4):
        moves.descend(tensor([1.0]), tensor([-1.0]))
        seen.append((moves.of_budgets.item(), moves.of_samples.item()))
    fallen = np.cumsum(1 / np.sqrt([1, 2, 3, 4]))
    np.testing.assert_allclose(seen, np.column_stack([10 - fallen, 10 + fallen / 2]))
    moves.descend(tensor([1e9]), tensor([0.0]))
    assert moves.of_budgets.item() == 0.0


def goal(required: float = 0.1, is_threshold: bool = False) -> Goal:
    return Goal(np.array([[True, False, False]]), required, is_threshold)


def test_the_signed_constraint_is_the_goals_confidence() -> None:
    rng = np.random.default_rng(0)
    p = tensor(rng.dirichlet(np.ones(3), size=(50, 2)))
    for wanted in ([True, False, False], [True, False, True]):
        mask = torch.tensor([wanted]).expand(50, -1)
        for is_threshold in (False, True):
            asked = goal(0.4, is_threshold)
            np.testing.assert_allclose(signed(asked, p, mask), 0.4 - asked.confidence(p, mask), atol=1e-15)


def test_of_equal_classes_the_first_has_the_gradient_and_none_at_the_hinge() -> None:
    p = tensor([[[0.2, 0.4, 0.4]]]).requires_grad_(True)
    mask = torch.tensor([[True, False, False]])
    (slope,) = torch.autograd.grad(signed(goal(), p, mask).sum(), p)
    assert slope.flatten().tolist() == [-1.0, 1.0, 0.0]
    h, at = hinge(tensor([0.0, -1.0, 0.5]), tensor([[1.0], [1.0], [1.0]]))
    assert (h.tolist(), at.flatten().tolist()) == ([0.0, 0.0, 0.5], [0.0, 0.0, 1.0])


def test_divergences() -> None:
    p = tensor([[[0.2, 0.3, 0.5]]])
    one, two = torch.tensor([[False, False, True]]), torch.tensor([[True, False, True]])
    assert divergence(p.log(), one, None).item() == pytest.approx(-math.log(0.5))
    assert divergence(p.log(), two, None).item() == pytest.approx(-math.log(0.7))
    label = tensor([[0.1, 0.0, 0.9]])
    exact = 0.1 * math.log(0.1 / 0.2) + 0.9 * math.log(0.9 / 0.5)
    assert divergence(p.log(), one, label).item() == pytest.approx(exact)
    assert divergence(label[:, None].clamp_min(1e-300).log(), one, label).item() == pytest.approx(0.0)


def test_label_distributions_reach_the_divergence() -> None:
    labels = np.random.default_rng(0).dirichlet(np.ones(3), size=6)
    classifier = TorchClassifier(small_net(2, 3, dtype=torch.float64), output="logits")
    problem = net_problem(6, 2, classifier=classifier, target=labels)
    search = setting_of(problem, u=np.zeros((6, 2)), mu=np.ones(6)).search
    distance, _, _ = search.divergence_and_shortfall(tensor(np.zeros((6, 2))), tensor(np.ones(6)))
    with torch.no_grad():
        f = classifier.scores(tensor(problem.cohort.values)).numpy()
    np.testing.assert_allclose(distance, (labels * np.log(labels / f)).sum(axis=1), rtol=1e-12)
