"""Batches are what maxflip itself gives to a model."""

from __future__ import annotations

import numpy as np
import torch

from maxflip.networks import GRUD
from research.experiments.packed import Packed, called, logits_of
from research.tests.experiments.stage import small


def test_a_batch_by_hand() -> None:
    data = small(20)
    one, two = sorted(range(20), key=lambda j: len(data.values[j]))[0], int(np.argmax([len(v) for v in data.values]))
    batch = Packed.of(data).batch(torch.tensor([one, two]))
    short, long = len(data.values[one]), len(data.values[two])
    assert batch.x.shape == (2, long, 2)
    assert batch.length.tolist() == [short, long]
    assert not batch.observed[0, short:].any()
    assert (batch.x[~batch.observed] == 0).all()
    assert batch.x.isfinite().all()
    np.testing.assert_array_equal(batch.observed[1], ~np.isnan(data.values[two]))
    np.testing.assert_allclose(batch.x[1, :, 0], data.values[two][:, 0], rtol=1e-6)
    np.testing.assert_allclose(batch.time[0], [*data.times[one], *[data.times[one][-1]] * (long - short)], rtol=1e-6)
    np.testing.assert_allclose(batch.static[:, 0], data.static[[one, two], 0], rtol=1e-6)


def test_some_of_the_sequences() -> None:
    data, rows = small(30), torch.tensor([7, 3, 21])
    taken = Packed.of(data).take(rows)
    assert taken.batch(torch.arange(3)).equal(Packed.of(data).batch(rows))
    assert torch.equal(taken.labels, torch.as_tensor(data.labels)[rows])


def test_moments_are_of_what_was_measured() -> None:
    data = small(50)
    moments, flat = Packed.of(data).moments(), np.concatenate(data.values)
    np.testing.assert_allclose(moments.mean, np.nanmean(flat, axis=0), rtol=1e-5)
    np.testing.assert_allclose(moments.spread, np.nanstd(flat, axis=0), rtol=1e-5)
    np.testing.assert_allclose(moments.static_mean, data.static.mean(axis=0), rtol=1e-5)


def test_what_never_varies_is_divided_by_one() -> None:
    packed = Packed.of(small(5))
    packed.values[:, 0] = 3.0
    packed.static[:] = 1.0
    moments = packed.moments()
    assert float(moments.spread[0]) == 1.0
    assert moments.static_spread.tolist() == [1.0]


def test_every_row_is_in_one_random_batch_of_similar_lengths() -> None:
    packed, rows = Packed.of(small(200)), torch.arange(20, 180)
    batches = list(packed.shuffled(rows, 8, torch.Generator().manual_seed(0)))
    assert sorted(torch.cat(batches).tolist()) == rows.tolist()
    assert max(len(batch) for batch in batches) == 8
    spans = [int(packed.lengths[batch].max() - packed.lengths[batch].min()) for batch in batches]
    assert np.mean(spans) < 1.5  # of 5 among all of them
    again = list(packed.shuffled(rows, 8, torch.Generator().manual_seed(1)))
    assert [b.tolist() for b in batches] != [b.tolist() for b in again]


def test_logits_come_in_the_order_of_the_rows() -> None:
    torch.manual_seed(0)
    packed, rows = Packed.of(small(60)), torch.tensor([40, 2, 33, 17])
    net = GRUD(2, 4, static=1, shift=[100, 100], scale=[20, 20])
    one_by_one = torch.cat([called(net.eval(), packed.batch(row[None])) for row in rows]).detach()
    net.train()
    np.testing.assert_allclose(logits_of(net, packed, rows), one_by_one, rtol=1e-5, atol=1e-6)
    assert net.training  # left as it was found
