"""When does a sample pass: the raw test, its smooth form, and every way to name a target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from maxflip.problem.goal import Goal
from maxflip.problem.target import requirement_faults, resolve_target


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("wanted_count", [1, 2])
@pytest.mark.parametrize(
    ("is_threshold", "required"), [(False, 0.0), (False, 0.1), (False, 0.7), (True, 0.3), (True, 0.92)]
)
def test_the_smooth_margin_has_the_sign_of_the_raw_test(
    classes: int, wanted_count: int, is_threshold: bool, required: float
) -> None:
    if wanted_count >= classes:
        return
    rng = np.random.default_rng(0)
    n = 20_000
    z = torch.tensor(rng.normal(size=(n, classes)) * rng.choice([0.5, 3.0, 15.0], size=(n, 1)))
    mask = torch.zeros(classes, dtype=torch.bool)
    mask[rng.permutation(classes)[:wanted_count]] = True
    wanted = mask.expand(n, -1)
    goal = Goal(mask.numpy()[None], required, is_threshold)
    slack = goal.confidence(torch.softmax(z, 1)[:, None], wanted) - required - 1e-9
    m = goal.log_margin(torch.log_softmax(z, 1)[:, None], wanted, 1e-9)
    clear = slack.abs() > 1e-12
    assert torch.equal((m >= 0)[clear], (slack >= 0)[clear])
    assert bool((m >= 0).any())
    assert bool((m < 0).any())


def test_confidence_by_hand() -> None:
    p = torch.tensor([[[0.5, 0.3, 0.2]]], dtype=torch.float64)
    for wanted, margin, mass in (([0], 0.2, 0.5), ([1], -0.2, 0.3), ([1, 2], -0.2, 0.5), ([0, 2], 0.2, 0.7)):
        mask = torch.zeros(1, 3, dtype=torch.bool)
        mask[0, wanted] = True
        assert float(Goal(mask.numpy(), 0.1, False).confidence(p, mask)) == pytest.approx(margin)
        assert float(Goal(mask.numpy(), 0.1, True).confidence(p, mask)) == pytest.approx(mass)


NAMES = ("bad", "fair", "good")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (2, [[0, 0, 1]]),
        (np.int64(1), [[0, 1, 0]]),
        ("good", [[0, 0, 1]]),
        ({"fair", "good"}, [[0, 1, 1]]),
        ({0, 2}, [[1, 0, 1]]),
        ([2, 0], [[0, 0, 1], [1, 0, 0]]),
        (["good", "bad"], [[0, 0, 1], [1, 0, 0]]),
        (np.array([1, 1]), [[0, 1, 0], [0, 1, 0]]),
        (np.array([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4]]), [[0, 1, 0], [1, 0, 0]]),
        (torch.tensor([2, 1]), [[0, 0, 1], [0, 1, 0]]),
    ],
)
def test_targets(target: Any, expected: list[list[int]]) -> None:
    wanted, distributions, faults = resolve_target(target, 2, 3, NAMES)
    assert faults == []
    assert wanted.astype(int).tolist() == expected
    assert (distributions is not None) == (np.ndim(target) == 2)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (3, "columns 0 to 2"),
        (-1, "columns 0 to 2"),
        (
            True,
            "wanted an output column (0 to 2), a class name (a text), a set, or one per sample. The classes are 'bad'",
        ),
        ("godo", "Did you mean 'good'?"),
        ({0, 1, 2}, "leave one unwanted"),
        (set(), "at least one"),
        ([0, 1, 2], "wanted one per sample, (2,)"),
        ([0.5, 1.0], "no output column"),
        (np.ones((2, 2)) / 2, "(2, 3)"),
        (np.array([[0.5, 0.5, 0.5], [1, 0, 0]]), "row 1 is no distribution"),
        (1.5, "wanted an output column"),
        (None, "wanted an output column"),
    ],
)
def test_wrong_targets(target: Any, message: str) -> None:
    _, _, faults = resolve_target(target, 2, 3, NAMES)
    assert any(message in str(fault) for fault in faults), faults


def test_a_name_needs_named_classes() -> None:
    _, _, faults = resolve_target("good", 2, 3, None)
    assert "classes=" in str(faults[0])


@pytest.mark.parametrize(
    ("margin", "threshold", "interval"),
    [
        (None, None, "neither"),
        (0.1, 0.9, "both"),
        (-0.1, None, "[0, 1)"),
        (1.0, None, "[0, 1)"),
        (float("nan"), None, "[0, 1)"),
        (None, 0.0, "(0, 1)"),
        (None, 1.0, "(0, 1)"),
        ("0.1", None, "[0, 1)"),
        (True, None, "[0, 1)"),
    ],
)
def test_requirements(margin: Any, threshold: Any, interval: str) -> None:
    (fault,) = requirement_faults(margin, threshold)
    assert interval in str(fault)
    assert requirement_faults(0, None) == requirement_faults(None, 0.5) == []
