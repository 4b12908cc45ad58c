"""From single measurements to sequences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maxflip.datasets import Sequences
from maxflip.datasets.samples import Events


def events(*rows: tuple[int, int, int, float]) -> Events:
    sample, time, feature, value = zip(*rows, strict=True)
    return Events(np.array(sample), np.array(time), np.array(feature), np.array(value))


def test_a_step_for_each_time_in_order() -> None:
    values, times = events((1, 9, 0, 5.0), (0, 7, 1, 2.0), (0, 3, 0, 1.0), (0, 7, 0, 3.0)).steps(2, 2)
    np.testing.assert_array_equal(values[0], [[1, np.nan], [3, 2]])
    np.testing.assert_array_equal(values[1], [[5, np.nan]])
    assert [t.tolist() for t in times] == [[3, 7], [9]]


def test_what_was_measured_twice_at_a_time_is_averaged() -> None:
    values, _ = events((0, 1, 0, 2.0), (0, 1, 0, 5.0), (0, 1, 1, 7.0)).steps(1, 2)
    assert values[0].tolist() == [[3.5, 7.0]]


def test_a_sample_without_measurements_is_one_empty_step() -> None:
    values, times = events((1, 4, 0, 2.0)).steps(3, 2)
    for silent in (0, 2):
        assert times[silent].tolist() == [0]
        assert values[silent].shape == (1, 2)
        assert np.isnan(values[silent]).all()
    assert values[1][0, 0] == 2.0


def test_times_may_be_negative() -> None:
    values, times = events((0, -3, 0, 1.0), (0, 2, 0, 2.0), (1, -3, 0, 3.0)).steps(2, 1)
    assert [t.tolist() for t in times] == [[-3, 2], [-3]]
    assert [v.ravel().tolist() for v in values] == [[1, 2], [3]]


def test_no_events_at_all() -> None:
    none = Events(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    values, times = none.steps(2, 3)
    assert [v.shape for v in values] == [(1, 3), (1, 3)]
    assert [t.tolist() for t in times] == [[0], [0]]


def three() -> Sequences:
    return Sequences(
        values=tuple(np.full((length, 1), float(length)) for length in (1, 2, 3)),
        times=tuple(np.arange(length, dtype=float) for length in (1, 2, 3)),
        static=np.array([[1.0], [2.0], [3.0]]),
        ids=("a", "b", "c"),
        features=("x",),
        static_features=("s",),
        units={},
        source="three",
        labels=np.array([0, 1, 0]),
        classes=("no", "yes"),
        dropped={},
    )


def test_take_keeps_everything_of_a_sequence_together() -> None:
    taken = three().take([2, 0])
    assert len(taken) == 2
    assert [len(v) for v in taken.values] == [3, 1]
    assert [len(t) for t in taken.times] == [3, 1]
    assert taken.static.ravel().tolist() == [3.0, 1.0]
    assert taken.ids == ("c", "a")
    assert taken.labels.tolist() == [0, 0]


def test_sequences_become_a_cohort_with_everything_they_know() -> None:
    cohort = replace(three(), units={"x": "mmHg", "s": "years"}).cohort()
    assert cohort.ids.tolist() == ["a", "b", "c"]
    assert cohort.features == ("x",)
    assert cohort.values.ravel().tolist() == [1.0, 2.0, 2.0, 3.0, 3.0, 3.0]
    assert dict(cohort.units) == {"x": "mmHg", "s": "years"}
    assert cohort.source == "three"
    assert cohort.ragged is not None
    assert cohort.ragged.lengths.tolist() == [1, 2, 3]
    assert cohort.ragged.times.tolist() == [0.0, 0.0, 1.0, 0.0, 1.0, 2.0]
    assert cohort.ragged.static.tolist() == [[1.0], [2.0], [3.0]]
    assert cohort.ragged.static_features == ("s",)


def test_what_was_not_measured_stays_missing_in_the_cohort() -> None:
    values, times = events((1, 4, 0, 2.0)).steps(2, 1)
    whole = replace(three().take([0, 1]), values=values, times=tuple(t.astype(float) for t in times)).cohort()
    assert np.isnan(whole.values).ravel().tolist() == [True, False]


def test_steps_are_read_only() -> None:
    values, _ = events((0, 1, 0, 2.0)).steps(1, 1)
    with pytest.raises(ValueError, match="read-only"):
        values[0][0, 0] = 9.0
