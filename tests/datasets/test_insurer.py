"""Made-up sequences: their shape, and a law behind them that can be learned."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxflip.datasets import Sequences, insurance
from maxflip.datasets.insurer import CHANGEABLE, KINDS, SPARSE_SHARE
from maxflip.errors import InputError


@pytest.fixture(scope="module")
def customers() -> Sequences:
    return insurance(3000, seed=0)


def columns(data: Sequences, kind: str) -> list[int]:
    return [i for i, name in enumerate(data.features) if KINDS[name] == kind]


def test_the_shape(customers: Sequences) -> None:
    assert len(customers.features) + len(customers.static_features) == 169
    assert set(KINDS) == {*customers.features, *customers.static_features}
    assert Counter(KINDS.values()) == {"dense": 40, "sparse": 97, "time": 8, "static_time": 4, "static": 20}
    assert len(CHANGEABLE) == 19
    assert set(CHANGEABLE) < set(customers.features)
    lengths = [len(steps) for steps in customers.values]
    assert min(lengths) == 1
    assert 140 <= max(lengths) <= 150
    assert all(
        v.shape == (len(t), len(customers.features)) for v, t in zip(customers.values, customers.times, strict=True)
    )
    assert customers.values[0].dtype == customers.static.dtype == np.float32
    assert len(customers.cohort()) == len(customers)


def test_each_kind_is_what_it_says(customers: Sequences) -> None:
    flat = np.concatenate(customers.values)
    assert np.isfinite(flat).all()
    assert (flat[:, columns(customers, "sparse")] != 0).mean() == pytest.approx(SPARSE_SHARE, abs=0.002)
    assert (flat[:, columns(customers, "dense")] != 0).all()
    assert (flat[:, columns(customers, "time")] >= 0).all()
    since = columns(customers, "time")[0]  # the time since the step before
    for steps, times in zip(customers.values, customers.times, strict=True):
        assert times[0] == steps[0, since] == 0
        np.testing.assert_allclose(np.diff(times), steps[1:, since], atol=1e-3)


def test_no_class_is_rare(customers: Sequences) -> None:
    shares = np.bincount(customers.labels, minlength=5) / len(customers)
    assert len(shares) == 5
    assert (shares > 0.1).all()
    assert (shares < 0.4).all()


def test_the_seed_decides() -> None:
    one, again, other = insurance(20, seed=3), insurance(20, seed=3), insurance(20, seed=4)
    for mine, theirs in zip(one.values, again.values, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(one.labels, again.labels)
    np.testing.assert_array_equal(one.static, again.static)
    assert [len(v) for v in one.values] != [len(v) for v in other.values]


def summaries(data: Sequences) -> np.typing.NDArray[np.float64]:
    """Means over all steps of the dense and sparse features."""
    return np.stack([steps[:, :137].mean(axis=0) for steps in data.values]).astype(np.float64)


def test_what_is_learned_from_one_seed_holds_for_another(customers: Sequences) -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500, C=0.01))
    model.fit(summaries(customers), customers.labels)
    others = insurance(1000, seed=1)
    assert np.bincount(others.labels).max() / len(others) == pytest.approx(0.343)
    assert model.score(summaries(others), others.labels) == pytest.approx(0.58, abs=0.01)


def test_changeable_features_matter(customers: Sequences) -> None:
    changeable = [customers.features.index(name) for name in CHANGEABLE]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500, C=0.01))
    means = summaries(customers)[:, changeable]
    model.fit(means[:2000], customers.labels[:2000])
    commonest = np.bincount(customers.labels[2000:]).max() / 1000
    assert model.score(means[2000:], customers.labels[2000:]) > commonest + 0.15


@pytest.mark.parametrize(("n", "seed", "message"), [(0, 0, "n: must be at least 1, got 0"), (1, -1, "seed: must be")])
def test_arguments(n: int, seed: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        insurance(n, seed)


def test_a_single_sequence() -> None:
    one = insurance(1, seed=0)
    assert len(one) == 1
    assert len(one.values[0]) == len(one.times[0]) >= 1
