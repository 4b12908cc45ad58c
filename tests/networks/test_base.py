"""Wrong sizes, names and numbers are told in words; recurrent layers of torch give gradients in eval mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from maxflip import InputError, TorchClassifier
from maxflip.networks import GRUD, SequenceTransformer, differentiable_in_eval
from tests.networks.stage import ask, random_batch


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": 0}, "inputs must be a whole number >= 1, got 0."),
        ({"inputs": True}, "inputs must be a whole number >= 1, got True."),
        ({"inputs": "ab"}, "inputs must be a whole number >= 1, got 'ab'."),
        ({"inputs": ["a", "a"]}, "inputs must be different names, or their number, got ['a', 'a']."),
        ({"inputs": ["a", 1]}, "inputs must be different names, or their number, got ['a', 1]."),
        ({"hidden": 2.5}, "hidden must be a whole number >= 1, got 2.5."),
        ({"classes": 1}, "classes must be a whole number >= 2, got 1."),
        ({"classes": ["only"]}, "classes must be a whole number >= 2, got ['only']."),
        ({"static": -1}, "static must be a whole number >= 0, got -1."),
        ({"shift": [1.0]}, "shift must have shape (2,), got (1,)."),
        ({"scale": [1.0, 0.0]}, "scale must be above 0 everywhere, got 0.0."),
        ({"means": [1.0, float("nan")]}, "means holds a value that is not finite."),
        ({"time_scale": 0.0}, "time_scale must be above 0 everywhere, got 0.0."),
        (
            {"static_scale": [1.0]},
            "static_shift or static_scale is given, but static = 0: the network has no such features.",
        ),
    ],
)
def test_wrong_arguments_are_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        GRUD(**{"inputs": 2, "hidden": 3} | arguments)
    assert str(caught.value) == message


def test_all_faults_at_once() -> None:
    with pytest.raises(InputError) as caught:
        GRUD(0, 0, 0, -1)
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    "wrong", [{"hidden": 7, "heads": 1}, {"heads": 3}, {"heads": 0}, {"layers": 0}, {"layers": 101}]
)
def test_a_transformer_that_cannot_be_is_told(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="wanted hidden to be even and a multiple of heads, and 1 to 100 layers"):
        SequenceTransformer(**{"inputs": 2, "hidden": 8} | wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("has", "given", "words"), [(0, True, "some were given"), (3, False, "none were given")])
def test_static_features_that_are_missing_or_too_many_are_told(has: int, given: bool, words: str) -> None:
    batch = random_batch(dtype=torch.float32)
    static = batch.static if given else None
    with pytest.raises(InputError, match=f"has {has} static features, but {words}"):
        GRUD(5, 3, static=has)(batch.x, batch.observed, batch.time, batch.length, static)


def test_buffers_are_copies_of_what_was_given() -> None:
    shift = torch.tensor([1.0, 2.0])
    net = GRUD(2, 3, shift=shift)
    shift += 1
    assert net.shift.tolist() == net.means.tolist() == [1.0, 2.0]


def test_moving_a_network_moves_its_standardisation() -> None:
    net = GRUD(5, 3, shift=[1.0] * 5, time_scale=60.0).double()
    assert {tensor.dtype for tensor in net.state_dict().values()} == {torch.float64}
    assert ask(net, random_batch()).dtype == torch.float64


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.LSTM(3, 4, num_layers=2, dropout=0.5, batch_first=True)
        self.thinned = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.thinned(self.layers(x)[0][:, -1])
        return out


def test_recurrent_layers_answer_as_in_eval_mode_and_can_be_differentiated() -> None:
    """cuDNN asks for training mode; dropout, there and beside, stays off."""
    torch.manual_seed(0)
    net, x = Recurrent().eval(), torch.randn(2, 5, 3, requires_grad=True)
    expected = net(x)
    with differentiable_in_eval(net):
        assert net.layers.training
        assert not net.thinned.training
        out = net(x)
    assert torch.equal(out, expected)
    assert bool(torch.autograd.grad(out.sum(), x)[0].any())


def test_recurrent_layers_are_put_back_also_after_an_error() -> None:
    net = Recurrent().eval()
    with pytest.raises(RuntimeError), differentiable_in_eval(net):
        raise RuntimeError
    assert not net.layers.training
    assert net.layers.dropout == 0.5


def test_layers_in_training_are_left_alone() -> None:
    net = Recurrent().train()
    with differentiable_in_eval(net):
        assert net.layers.dropout == 0.5
    assert net.layers.training


def test_a_classifier_takes_the_names_of_a_networks_classes() -> None:
    net = GRUD(2, 3, ["worse", "stable"])
    assert TorchClassifier(net, output="logits").classes == ("worse", "stable")
    assert TorchClassifier(net, output="logits", classes=["a", "b"]).classes == ("a", "b")
    assert TorchClassifier(GRUD(2, 3), output="logits").classes is None
