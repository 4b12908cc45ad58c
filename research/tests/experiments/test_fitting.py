"""Training: it learns, the seed decides all of it, and the best weights are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from maxflip.networks import GRUD, SequenceNetwork, save_network
from research.experiments.fitting import Epoch, Recipe, dropping, fit, seeded, thinned
from research.experiments.metrics import Floats, Labels, auc
from research.experiments.packed import Packed, logits_of
from research.tests.experiments.stage import small

TRAIN, INNER = torch.arange(150), torch.arange(150, 200)
RECIPE = Recipe(rate=0.01, batch=16, epochs=8, patience=8, dropout=0.1, hidden_share=0.1, averaging=0.5, decay=0.01)


@pytest.fixture(scope="module")
def data() -> Packed:
    return Packed.of(small())


def untrained(seed: int = 0) -> SequenceNetwork:
    return seeded(
        lambda: GRUD(2, 8, static=1, shift=[100, 100], scale=[20, 20], static_shift=[50], static_scale=[10]), seed
    )


def test_it_learns(data: Packed) -> None:
    net = untrained()
    epochs = fit(net, data, TRAIN, INNER, RECIPE, auc, seed=0)
    assert epochs[-1].loss < 0.6 * epochs[0].loss
    assert max(epoch.inner for epoch in epochs) > 0.9
    assert not net.training


def saved(data: Packed, folder: Path, seed: int) -> bytes:
    net = untrained(seed)
    fit(net, data, TRAIN, INNER, replace(RECIPE, epochs=2), auc, seed)
    save_network(net, folder / "net.safetensors")
    return (folder / "net.safetensors").read_bytes()


def test_the_same_seed_gives_the_same_bytes(data: Packed, tmp_path: Path) -> None:
    before = torch.random.get_rng_state()
    first = saved(data, tmp_path, 0)
    torch.rand(3)  # nothing depends on what was drawn before
    assert saved(data, tmp_path, 0) == first
    assert saved(data, tmp_path, 1) != first
    torch.random.set_rng_state(before)


def test_nobody_elses_chance_is_touched(data: Packed) -> None:
    before = torch.random.get_rng_state()
    fit(untrained(), data, TRAIN, INNER, replace(RECIPE, epochs=1), auc, seed=0)
    assert torch.equal(torch.random.get_rng_state(), before)


class Judge:
    """Scores as they are told, and remembers what was judged."""

    def __init__(self, scores: list[float]) -> None:
        self.scores = scores
        self.seen: list[Floats] = []

    def __call__(self, logits: Floats, labels: Labels) -> float:
        self.seen.append(logits)
        return self.scores[len(self.seen) - 1]


@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_it_stops_early_and_restores_the_best(data: Packed, averaging: float) -> None:
    net, judge = untrained(), Judge([0.1, 0.3, 0.7, 0.6, 0.7, 0.5, 0.9])
    told: list[Epoch] = []
    recipe = replace(RECIPE, epochs=20, patience=3, averaging=averaging)
    epochs = fit(net, data, TRAIN, INNER, recipe, judge, 0, told.append)
    assert [epoch.inner for epoch in epochs] == [0.1, 0.3, 0.7, 0.6, 0.7, 0.5]
    assert [epoch.best for epoch in epochs] == [True, True, True, False, False, False]
    assert told == epochs
    np.testing.assert_array_equal(logits_of(net, data, INNER), judge.seen[2])
    assert np.abs(judge.seen[2] - judge.seen[5]).max() > 1e-3


def test_the_inner_part_and_the_rest_are_never_learned_from(data: Packed) -> None:
    """Other values there, the same network."""
    changed = Packed.of(small())
    first = int(changed.begin[100])
    changed.values[first:] *= 2
    nets = []
    for given in (data, changed):
        net = untrained()
        fit(net, given, torch.arange(100), INNER, replace(RECIPE, epochs=2), lambda *_: 0.0, 0)
        nets.append(net.state_dict())
    assert all(torch.equal(nets[0][name], nets[1][name]) for name in nets[0])


def test_buffers_stay(data: Packed) -> None:
    net = untrained()
    fit(net, data, TRAIN, INNER, replace(RECIPE, epochs=1), auc, seed=0)
    assert net.shift.tolist() == [100, 100]
    assert net.static_scale.tolist() == [10]


def test_thinning_hides_a_share_of_the_measurements(data: Packed) -> None:
    batch = data.batch(TRAIN)
    thin = thinned(batch, 0.3, torch.Generator().manual_seed(0))
    assert not (thin.observed & ~batch.observed).any()
    assert float(thin.observed.sum() / batch.observed.sum()) == pytest.approx(0.7, abs=0.05)
    assert (thin.x[~thin.observed] == 0).all()
    assert torch.equal(thin.x[thin.observed], batch.x[thin.observed])


def test_dropout_ends_with_its_block(data: Packed) -> None:
    net = untrained().eval()
    before = logits_of(net, data, INNER)
    with dropping(net, 0.5, torch.Generator().manual_seed(0)):
        inside = logits_of(net, data, INNER)
    assert np.abs(inside - before).max() > 0.01
    np.testing.assert_array_equal(logits_of(net, data, INNER), before)
