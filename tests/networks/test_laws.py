"""What every network keeps: padding, company and unobserved entries change nothing; gradients are true."""

from __future__ import annotations

import pytest
import torch

from maxflip.networks import GRUD, SequenceNetwork, SequenceTransformer, SparseTimeLSTM
from tests.networks.stage import NETS, Batch, ask, make, random_batch


def same(given: torch.Tensor, wanted: torch.Tensor) -> None:
    """All but for the last bits, which differ between batches of other sizes."""
    torch.testing.assert_close(given, wanted, rtol=0, atol=1e-12)


@pytest.fixture(params=NETS)
def net(request: pytest.FixtureRequest) -> SequenceNetwork:
    return make(request.param)


def test_the_output_has_a_column_per_class_and_depends_on_the_values(net: SequenceNetwork) -> None:
    batch = random_batch()
    out = ask(net, batch)
    assert out.shape == (7, net.classes)
    assert out.dtype == torch.float64
    changed = Batch(batch.x + 5 * batch.observed, batch.observed, batch.time, batch.length, batch.static)
    assert bool(((ask(net, changed) - out).abs().amax(dim=1) > 1e-4)[1:].all())


def test_two_classes_have_one_logit(net: SequenceNetwork) -> None:
    out = ask(net, random_batch())
    assert bool((out[:, 0] == 0).all()) == (net.classes == 2)


def test_padding_changes_nothing(net: SequenceNetwork) -> None:
    batch = random_batch()
    same(ask(net, batch.padded(5)), ask(net, batch))


def test_each_sequence_alone_gives_the_same(net: SequenceNetwork) -> None:
    batch = random_batch()
    alone = torch.cat([ask(net, batch.sample(j)) for j in range(7)])
    same(alone, ask(net, batch))


def test_the_order_of_a_batch_changes_nothing(net: SequenceNetwork) -> None:
    batch, rows = random_batch(), [3, 0, 6, 1, 5, 2, 4]
    same(ask(net, batch.taken(rows)), ask(net, batch)[rows])


@pytest.mark.parametrize("junk", [123.0, float("nan"), float("inf")])
def test_what_stands_at_unobserved_entries_is_not_looked_at(net: SequenceNetwork, junk: float) -> None:
    batch = random_batch()
    x = torch.where(batch.observed, batch.x, junk)
    assert torch.equal(ask(net, Batch(x, batch.observed, batch.time, batch.length, batch.static)), ask(net, batch))


@pytest.mark.parametrize("junk", [0.0, float("nan")])
def test_gradients_are_zero_at_unobserved_entries_and_nowhere_else(net: SequenceNetwork, junk: float) -> None:
    batch = random_batch()
    x = torch.where(batch.observed, batch.x, junk).requires_grad_()
    out = ask(net, Batch(x, batch.observed, batch.time, batch.length, batch.static))
    weights = torch.arange(1.0, net.classes + 1, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((out * weights).sum(), x)
    assert torch.equal(gradient != 0, batch.observed)


def test_gradients_are_those_of_finite_differences(net: SequenceNetwork) -> None:
    batch = random_batch(n=3, steps=3)

    def f(x: torch.Tensor) -> torch.Tensor:
        return ask(net, Batch(x, batch.observed, batch.time, batch.length, batch.static))

    assert torch.autograd.gradcheck(f, (batch.x.requires_grad_(),), eps=1e-4, atol=1e-7)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_answers_are_the_same_without_gradients(net: SequenceNetwork, mode: type[torch.no_grad]) -> None:
    """torch has other code for transformers then."""
    batch = random_batch()
    with mode():
        without = ask(net, batch)
    same(without.clone(), ask(net, batch).detach())


def test_training_moves_every_parameter(net: SequenceNetwork) -> None:
    loss = ask(net.train(), random_batch()).square().sum()
    assert all(bool(gradient.any()) for gradient in torch.autograd.grad(loss, list(net.parameters())))


@pytest.mark.parametrize("name", NETS)
def test_float32_is_near_float64(name: str) -> None:
    out = ask(make(name, torch.float32), random_batch(dtype=torch.float32))
    assert out.dtype == torch.float32
    near = ask(make(name, torch.float32).double(), random_batch(dtype=torch.float32).double())
    torch.testing.assert_close(out.double(), near, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", ["GRUD", "SequenceTransformer"])
def test_only_the_time_between_steps_counts_and_in_the_networks_unit(name: str) -> None:
    net, batch = make(name), random_batch()
    later = Batch(batch.x, batch.observed, batch.time + 1024.0, batch.length, batch.static)
    same(ask(net, later), ask(net, batch))
    slower = Batch(batch.x, batch.observed, 2 * batch.time, batch.length, batch.static)
    assert bool(((ask(net, slower) - ask(net, batch)).abs() > 1e-3).any())
    net.time_scale *= 2
    same(ask(net, slower), ask(make(name), batch))


def test_raw_units_are_standardised_inside() -> None:
    batch, raw = random_batch(), make("SequenceTransformer")
    plain = SequenceTransformer(5, 8, 4, 3, heads=2, time_scale=60.0).double().eval()
    unscaled = {name for name in plain.state_dict() if "shift" in name or name in ("scale", "static_scale")}
    plain.load_state_dict({k: v for k, v in raw.state_dict().items() if k not in unscaled}, strict=False)
    x = torch.where(batch.observed, (batch.x - raw.shift) / raw.scale, 0.0)
    static = (batch.static - raw.static_shift) / raw.static_scale
    scaled = Batch(x, batch.observed, batch.time, batch.length, static)
    same(ask(plain, scaled), ask(raw, batch))


@pytest.mark.parametrize("kind", [GRUD, SparseTimeLSTM, SequenceTransformer])
def test_no_static_features_are_asked_for_where_there_are_none(kind: type[SequenceNetwork]) -> None:
    net = kind(5, 8)  # type: ignore[call-arg]
    assert "static" not in net.takes
    assert ask(net, random_batch(dtype=torch.float32)).shape == (7, 2)
