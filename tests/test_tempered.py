"""Tempered: logits divided by one number; closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from maxflip import Ensemble, InputError, Problem, Tempered, TorchClassifier, solve
from tests.examples import linear_net, small_net
from tests.test_flips import flips_at

X = np.random.default_rng(0).normal(size=(100, 4))


def read(classifier: Any, x: Any = X) -> Any:
    with classifier.borrowed(), torch.no_grad():
        return classifier.scores(torch.tensor(x)).numpy(), classifier.log_scores(torch.tensor(x)).numpy()


@pytest.mark.parametrize("temperature", [0.3, 1, np.float64(1.7)])
def test_scores_are_the_softmax_of_logits_over_temperature(temperature: float) -> None:
    net = small_net(4, 3, dtype=torch.float64)
    with torch.no_grad():
        expected = torch.softmax(net(torch.tensor(X)) / temperature, dim=1).numpy()
    by_logits = Tempered(TorchClassifier(net, output="logits"), temperature)
    by_probabilities = Tempered(TorchClassifier(nn.Sequential(net, nn.Softmax(1)), output="probabilities"), temperature)
    for classifier in (by_logits, by_probabilities):
        p, log_p = read(classifier)
        np.testing.assert_allclose(p, expected, atol=1e-12)
        np.testing.assert_allclose(log_p, np.log(expected), atol=1e-9)


def test_the_cheapest_flip_of_a_linear_model_is_the_closed_form() -> None:
    """w.x must reach temperature * 2 artanh(margin)."""
    w = np.array([1.0, -2.0])
    x = np.array([[-1.0, 0.0], [0.0, 2.0]])
    classifier = Tempered(TorchClassifier(linear_net(w), output="logits"), temperature=3.0)
    problem = Problem(classifier=classifier, cohort=x, target=1, margin=0.4, budgets={"x0": 1.0, "x1": 1.0})
    (form,) = problem.linear or ()
    np.testing.assert_allclose(form.weight[1], w / 3)
    need = 3.0 * 2 * math.atanh(0.4) - x @ w
    np.testing.assert_allclose(flips_at(problem, 1.0, 1.0).changes, need[:, None] * w / (w @ w), rtol=1e-6)


def test_plans_hold_and_warmer_models_are_harder_to_convince() -> None:
    x = np.random.default_rng(1).normal(size=(60, 4))
    counts = []
    for temperature in (0.5, 1.0, 4.0):
        classifier = Tempered(TorchClassifier(small_net(4), output="logits"), temperature)
        budgets = {f"x{i}": 3.0 for i in range(4)}
        plan = solve(Problem(classifier=classifier, cohort=x, target=1, margin=0.3, budgets=budgets))
        p, _ = read(classifier, x[plan.selected] + plan.changes)
        assert (p[:, 1] - p[:, 0] >= 0.3).all()
        counts.append(plan.count)
    assert counts[0] > counts[1] > counts[2]


def test_fit_is_the_closed_form_for_one_logit() -> None:
    """z = 2 on every row and 3 of 4 labels are 1: sigmoid(2 / T) = 3/4, T = 2 / log 3."""
    classifier = TorchClassifier(linear_net([0.0], 2.0), output="logits", classes=["no", "yes"])
    x = np.zeros((8, 1))
    for y in ([1, 1, 1, 0] * 2, np.array(["yes", "yes", "no", "yes"] * 2)):
        assert Tempered.fit(classifier, x, y).temperature == pytest.approx(2 / math.log(3), rel=1e-6)


def test_fit_finds_the_temperature_that_made_the_labels() -> None:
    rng = np.random.default_rng(2)
    net = small_net(4, 3, scale=3.0, dtype=torch.float64)
    x = rng.normal(size=(20_000, 4))
    p, _ = read(Tempered(TorchClassifier(net, output="logits"), 2.5), x)
    y = (rng.random((len(x), 1)) > p.cumsum(axis=1)).sum(axis=1)
    fitted = Tempered.fit(TorchClassifier(net, output="logits", batch_size=999), x, y)
    assert fitted.temperature == pytest.approx(2.5, rel=0.05)


@pytest.mark.parametrize(
    ("x", "y", "part"),
    [
        (np.zeros((3, 2)), [0, 1], r"shape \(3, 2\)"),
        (np.zeros((2, 2)), [0, 2], "output columns 0 to 1"),
        (np.zeros((2, 2)), ["no", "yess"], "Did you mean 'yes'"),
        (np.zeros((2, 2)), [0.5, 1.0], "y holds 0.5"),
        ([[-1.0, 0.0], [1.0, 0.0]], [0, 1], "right on every row of the 2 given"),
        ([[-1.0, 0.0], [1.0, 0.0]], [1, 0], "no better than chance"),
    ],
)
def test_wrong_rows_to_fit(x: Any, y: Any, part: str) -> None:
    classifier = TorchClassifier(linear_net([1.0, 0.0]), output="logits", classes=["no", "yes"])
    with pytest.raises(InputError, match=part):
        Tempered.fit(classifier, x, y)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan, "1", True])
def test_wrong_temperatures(temperature: Any) -> None:
    with pytest.raises(InputError, match="must be a finite number > 0"):
        Tempered(TorchClassifier(small_net(4), output="logits"), temperature)


def test_what_has_no_probabilities_or_several_has_no_temperature() -> None:
    with pytest.raises(InputError, match="no probabilities"):
        Tempered(TorchClassifier(small_net(4), output="decision"), 2.0)
    pair = Ensemble([TorchClassifier(small_net(4), output="logits")] * 2)
    with pytest.raises(InputError, match="each member"):
        Tempered(pair, 2.0)  # type: ignore[arg-type]
