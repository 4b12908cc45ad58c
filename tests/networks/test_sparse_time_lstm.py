"""The Sparse Time LSTM is an LSTM where its extra inputs are silent, and by hand where they are not."""

from __future__ import annotations

import math

import pytest
import torch

from maxflip import InputError
from maxflip.networks import SparseTimeLSTM
from tests.networks.stage import H, ask, make, random_batch


def as_torch(net: SparseTimeLSTM) -> torch.nn.LSTM:
    """torch's own LSTM with the network's numbers; it has i, f, g, o below each other, and two biases."""
    lstm = torch.nn.LSTM(len(net.dense), net.hidden, batch_first=True)
    i, f, o, g = torch.split(net.gates.weight, net.hidden)
    bi, bf, bo, bg = torch.split(net.gates.bias, net.hidden)
    inner = torch.split(net.recurrent.weight, net.hidden)
    ui, uf, uo, ug = *inner[:3], inner[-1]
    lstm.load_state_dict(
        {
            "weight_ih_l0": torch.cat([i, f, g, o]),
            "weight_hh_l0": torch.cat([ui, uf, ug, uo]),
            "bias_ih_l0": torch.cat([bi, bf, bg, bo]),
            "bias_hh_l0": torch.zeros(4 * net.hidden),
        }
    )
    return lstm


def expected(net: SparseTimeLSTM, values: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    packed = torch.nn.utils.rnn.pack_padded_sequence(values, length, batch_first=True, enforce_sorted=False)
    _, (h, _) = as_torch(net)(packed)
    z = net.head(h[0])
    return torch.cat([torch.zeros_like(z), z], dim=1)


def test_a_network_without_extra_inputs_is_an_lstm() -> None:
    net, batch = make("a plain LSTM", torch.float32), random_batch(dtype=torch.float32)
    assert isinstance(net, SparseTimeLSTM)
    values = net.standard(batch.x, batch.observed)
    torch.testing.assert_close(ask(net, batch), expected(net, values, batch.length), rtol=0, atol=1e-6)


def test_silent_extra_inputs_leave_an_lstm() -> None:
    """No sparse value is observed and the time columns are 0: their weights are there and do nothing."""
    torch.manual_seed(0)
    net, batch = SparseTimeLSTM(5, H, 2, 1, sparse=[1], time=[4], static_time=[0]), random_batch(dtype=torch.float32)
    x, observed = batch.x / 10, batch.observed.clone()
    observed[:, :, 1] = False
    x[:, :, 4] = 0
    out = net(x, observed, batch.length, torch.zeros(7, 1))
    dense = torch.where(observed, x, 0.0)[:, :, net.dense]
    torch.testing.assert_close(out, expected(net, dense, batch.length), rtol=0, atol=1e-6)
    batch.observed[1, 0, 1] = True
    written = net(x, batch.observed, batch.length, torch.zeros(7, 1))
    assert abs(float((written - out)[1, 1].detach())) > 1e-4


def sigmoid(v: float) -> float:
    return 1 / (1 + math.exp(-v))


def test_two_steps_by_hand() -> None:
    net = SparseTimeLSTM(3, 1, 2, 2, sparse=[1], time=[2], static_time=[0]).double()
    numbers = {
        "gates.weight": [[0.5], [-0.4], [0.9], [1.2]],
        "gates.bias": [0.1, 0.2, -0.1, 0.05],
        "recurrent.weight": [[0.3], [0.6], [-0.2], [0.8], [-0.7]],  # i, f, o, a, g
        "sparse_gate.weight": [[1.5]],
        "sparse_gate.bias": [-0.3],
        "sparse_value.weight": [[0.45]],
        "sparse_value.bias": [0.15],
        "fading.weight": [[0.25]],
        "memory.weight": [[0.85]],
        "memory.bias": [0.35],
        "static_fading.weight": [[0.125]],
        "static_value.weight": [[0.65]],
        "static_value.bias": [0.4],
        "head.weight": [[2.0, -1.5]],
        "head.bias": [0.7],
    }
    net.load_state_dict(net.state_dict() | {k: torch.tensor(v, dtype=torch.float64) for k, v in numbers.items()})
    h = c = 0.0
    for d, q, present, e in [(1.0, 2.0, True, 4.0), (-0.5, 0.0, False, 3.0)]:
        s = math.tanh(0.85 * c + 0.35)
        c = (c - s) + math.exp(-max(0.0, 0.25 * e)) * s
        i, f = sigmoid(0.5 * d + 0.3 * h + 0.1), sigmoid(-0.4 * d + 0.6 * h + 0.2)
        o, g = sigmoid(0.9 * d - 0.2 * h - 0.1), math.tanh(1.2 * d - 0.7 * h + 0.05)
        a = sigmoid(1.5 * q + 0.8 * h - 0.3)
        c = f * c + i * g + (a * math.tanh(0.45 * q + 0.15) if present else 0.0)
        h = o * math.tanh(c)
    still = h * math.exp(-max(0.0, 0.125 * 6.0))
    z = 2.0 * still - 1.5 * max(0.0, 0.65 * 0.5 + 0.4) + 0.7
    x = torch.tensor([[[1.0, 2.0, 4.0], [-0.5, 99.0, 3.0]]], dtype=torch.float64)
    seen = torch.tensor([[[True, True, True], [True, False, True]]])
    out = net(x, seen, torch.tensor([2]), torch.tensor([[6.0, 0.5]], dtype=torch.float64))
    assert out.tolist()[0] == pytest.approx([0.0, z], abs=1e-12)


def test_time_columns_are_scaled_but_not_shifted() -> None:
    net = SparseTimeLSTM(2, 3, static=2, time=[1], static_time=[0], shift=[4.0, 5.0], static_shift=[6.0, 7.0])
    assert net.shift.tolist() == [4.0, 0.0]
    assert net.static_shift.tolist() == [0.0, 7.0]


def test_columns_by_name() -> None:
    net = SparseTimeLSTM(["age", "drug", "gap"], 3, static=["sex", "since"], sparse=["drug"], time=["gap"])
    assert (net.dense, net.sparse, net.time, net.static_plain) == ([0], [1], [2], [0, 1])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sparse": ["drugs"]}, "sparse: 'drugs' is none of the 3 columns. Did you mean 'drug'?"),
        ({"sparse": [3]}, "sparse: 3 is none of the 3 columns."),
        ({"time": [-1]}, "time: -1 is none of the 3 columns."),
        ({"sparse": [True]}, "sparse: True is none of the 3 columns."),
        ({"sparse": ["drug", 1]}, "sparse names a column twice: ['drug', 1]."),
        ({"sparse": [1], "time": [1]}, "columns [1] are both sparse and time; wanted one of the two."),
        ({"sparse": [0, 1], "time": [2]}, "every column is sparse or time; wanted at least one dense one."),
        ({"static_time": [0]}, "static_time: 0 is none of the 0 columns."),
    ],
)
def test_wrong_columns_are_told(wrong: dict[str, list[int]], message: str) -> None:
    with pytest.raises(InputError) as caught:
        SparseTimeLSTM(["age", "drug", "gap"], 3, **wrong)  # type: ignore[arg-type]
    assert str(caught.value) == message
