"""GRU-D against arithmetic by hand, and at the limits of its decays."""

from __future__ import annotations

import math

import pytest
import torch

from maxflip.networks import GRUD

OBSERVED, MISSING = True, False


def small() -> GRUD:
    """One feature, one hidden unit, numbers that can be followed."""
    net = GRUD(1, 1, means=[3.0], shift=[1.0], scale=[2.0], time_scale=10.0).double().eval()
    numbers = {
        "decay_x_weight": [0.5],
        "decay_x_bias": [0.1],
        "decay_h.weight": [[0.3]],
        "decay_h.bias": [0.2],
        "gates.weight": [[0.7, -0.4], [-0.6, 0.9], [1.1, 0.35]],  # r, z, c: of the value, of the mask
        "gates.bias": [0.05, -0.15, 0.25],
        "recurrent.weight": [[0.8], [-0.5], [1.3]],
        "head.weight": [[2.0]],
        "head.bias": [-0.3],
    }
    net.load_state_dict(
        net.state_dict() | {name: torch.tensor(value, dtype=torch.float64) for name, value in numbers.items()}
    )
    return net


def logit(net: GRUD, values: list[float], observed: list[bool], times: list[float]) -> float:
    x = torch.tensor(values, dtype=torch.float64)[None, :, None]
    mask = torch.tensor(observed)[None, :, None]
    out = net(x, mask, torch.tensor(times, dtype=torch.float64)[None], torch.tensor([len(values)]))
    assert out[0, 0] == 0
    return float(out[0, 1].detach())


def sigmoid(v: float) -> float:
    return 1 / (1 + math.exp(-v))


def step_by_hand(h: float, x: float, m: float, gap: float) -> float:
    h = math.exp(-max(0.0, 0.3 * gap + 0.2)) * h
    r = sigmoid(0.7 * x + 0.8 * h - 0.4 * m + 0.05)
    z = sigmoid(-0.6 * x - 0.5 * h + 0.9 * m - 0.15)
    c = math.tanh(1.1 * x + 1.3 * (r * h) + 0.35 * m + 0.25)
    return (1 - z) * h + z * c


def test_one_step_by_hand() -> None:
    h = step_by_hand(0.0, (6.0 - 1.0) / 2.0, 1.0, 0.0)
    assert logit(small(), [6.0], [OBSERVED], [77.0]) == pytest.approx(2.0 * h - 0.3, abs=1e-12)


def test_five_steps_by_hand() -> None:
    """Missing, observed, missing twice, observed; the gap of a step reaches back to the last observation before it."""
    mean, first, second = (3.0 - 1.0) / 2.0, (6.0 - 1.0) / 2.0, (-4.0 - 1.0) / 2.0
    times = [5.0, 12.0, 15.0, 40.0, 42.0]
    gaps = [0.0, 0.7, 0.3, 2.8, 3.0]
    h = step_by_hand(0.0, mean, 0.0, gaps[0])
    h = step_by_hand(h, first, 1.0, gaps[1])
    for gap in gaps[2:4]:
        kept = math.exp(-max(0.0, 0.5 * gap + 0.1))
        h = step_by_hand(h, kept * first + (1 - kept) * mean, 0.0, gap)
    h = step_by_hand(h, second, 1.0, gaps[4])
    seen = [MISSING, OBSERVED, MISSING, MISSING, OBSERVED]
    assert logit(small(), [0.0, 6.0, 0.0, 0.0, -4.0], seen, times) == pytest.approx(2.0 * h - 0.3, abs=1e-12)


def test_after_a_huge_gap_the_value_is_the_mean_and_the_state_is_gone() -> None:
    h = step_by_hand(0.0, (3.0 - 1.0) / 2.0, 0.0, 1e9)
    assert logit(small(), [6.0, 0.0], [OBSERVED, MISSING], [0.0, 1e10]) == pytest.approx(2.0 * h - 0.3, abs=1e-12)


def test_after_no_gap_the_value_is_the_last_one() -> None:
    net = small()
    with torch.no_grad():
        net.decay_x_bias.zero_()
    value = (6.0 - 1.0) / 2.0
    h = step_by_hand(step_by_hand(0.0, value, 1.0, 0.0), value, 0.0, 0.0)
    assert logit(net, [6.0, 0.0], [OBSERVED, MISSING], [8.0, 8.0]) == pytest.approx(2.0 * h - 0.3, abs=1e-12)


def test_what_is_carried_on_follows_a_changed_value() -> None:
    """x is changed at an observed step: the missing one behind it must not remember the old value."""
    net = small()
    x = torch.tensor([[[6.0], [0.0]]], dtype=torch.float64, requires_grad=True)
    mask, time, length = torch.tensor([[[True], [False]]]), torch.tensor([[0.0, 1.0]]).double(), torch.tensor([2])
    (gradient,) = torch.autograd.grad(net(x, mask, time, length)[0, 1], x)
    seen, rise = [OBSERVED, MISSING], 1e-6
    by_hand = (logit(net, [6.0 + rise, 0.0], seen, [0.0, 1.0]) - logit(net, [6.0 - rise, 0.0], seen, [0.0, 1.0])) / (
        2 * rise
    )
    assert float(gradient[0, 0, 0]) == pytest.approx(by_hand, abs=1e-9)
    assert float(gradient[0, 1, 0]) == 0.0


def test_the_published_number_of_parameters() -> None:
    assert sum(p.numel() for p in GRUD(33, 49, classes=2).parameters()) == 18_834


def test_the_mean_is_the_shift_where_no_other_is_given() -> None:
    assert GRUD(2, 3, shift=[5.0, 6.0]).means.tolist() == [5.0, 6.0]
