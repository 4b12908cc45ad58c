"""Long arrays in parts: the same as in one piece, whatever the number of threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from maxflip import solve
from maxflip._util import parallel as parts
from maxflip._util.engine import Local
from tests.examples import net_problem


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, parts.LENGTH, parts.LENGTH + 1, 3 * parts.LENGTH + 7])
def test_parts_cover_everything_once_and_in_order(number: int, length: int) -> None:
    with parts.threads(number):
        seen = parts.each_part(lambda part: np.arange(length)[part], length)
        assert np.concatenate([np.empty(0), *seen]).tolist() == list(range(length))
        assert max(map(len, seen), default=0) <= parts.LENGTH
        table = np.arange(2.0 * length).reshape(length, 2)
        backwards = np.arange(length)[::-1]
        np.testing.assert_array_equal(parts.rows_of(table, backwards), table[::-1])
        doubled = parts.filled(lambda part: 2 * table[part], table.shape)
        np.testing.assert_array_equal(doubled, 2 * table)


def test_several_parts_are_worked_on_at_once() -> None:
    """Two that wait for each other: one after the other they would wait for ever."""
    meeting = threading.Barrier(2, timeout=60)
    with parts.threads(2):
        assert sorted(parts.each(lambda _: meeting.wait(), ["a", "b"])) == [0, 1]


def test_threads_are_those_asked_for_and_only_inside() -> None:
    def here(_: str) -> str:
        return threading.current_thread().name

    alone = threading.current_thread().name
    with parts.threads(2):
        assert alone not in parts.each(here, ["a", "b"])
        with parts.threads(1):
            assert parts.each(here, ["a", "b"]) == [alone, alone]
    assert parts.each(here, ["a", "b"]) == [alone, alone]


def test_what_a_part_raises_is_raised() -> None:
    def fail(part: slice) -> None:
        raise ValueError(f"at {part.start}")

    with parts.threads(2), pytest.raises(ValueError, match="at 0"):
        parts.each_part(fail, 2 * parts.LENGTH)


def test_joined_is_concatenate() -> None:
    pieces = [np.arange(6.0).reshape(3, 2), np.empty((0, 2)), np.ones((2, 2))]
    with parts.threads(2):
        np.testing.assert_array_equal(parts.joined(pieces), np.concatenate(pieces))
    assert parts.joined(pieces[:2]) is pieces[0]
    assert parts.joined([np.empty((0, 2))]).shape == (0, 2)


@pytest.mark.parametrize("count", [0, 1, 3, 6, 7, 20])
def test_lowest_is_a_stable_sort(count: int) -> None:
    values = np.array([3.0, 1.0, np.nan, 1.0, 0.0, 3.0, 1.0])
    assert parts.lowest(values, count).tolist() == [4, 1, 3, 6, 0, 5, 2][:count]


def test_a_plan_is_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts so short that a small cohort has many."""
    monkeypatch.setattr(parts, "LENGTH", 7)
    problem = net_problem(400)
    one, several = solve(problem, engine=Local(1)), solve(problem, engine=Local(3))
    assert one.count > 2 * parts.LENGTH
    for name in ("selected", "changes", "before", "confidence_after", "confidence_before"):
        assert getattr(one, name).tobytes() == getattr(several, name).tobytes(), name
    assert (one.fates == several.fates).all()
    assert (one.spend, one.prices, one.estimate) == (several.spend, several.prices, several.estimate)
