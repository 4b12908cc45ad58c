"""Chunked array operations: parts of long arrays are processed by several threads, with results in order.

numpy releases the global interpreter lock while it works on a part. Parts depend on the length alone, so results do
not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

LENGTH = 32_768  # entries per part: long enough to be worth a thread, short enough for the processor cache

S = TypeVar("S")
T = TypeVar("T")

_at_once: ContextVar[int] = ContextVar("at_once", default=1)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Sets the number of worker threads for chunked array operations in this context."""
    before = _at_once.set(number)
    try:
        yield
    finally:
        _at_once.reset(before)


def each(work: Callable[[S], T], things: Sequence[S]) -> list[T]:
    """[work(thing) for each thing]"""
    number = min(_at_once.get(), len(things))
    if number <= 1:
        return [work(thing) for thing in things]
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(work, things))


def each_part(work: Callable[[slice], T], length: int) -> list[T]:
    """[work(part) for each part of an array with this length]"""
    return each(work, [slice(begin, min(begin + LENGTH, length)) for begin in range(0, length, LENGTH)])


def filled(work: Callable[[slice], Any], shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """An array of this shape, filled with work(part) for each part along the first axis."""
    whole = np.empty(shape, dtype=dtype)

    def fill(part: slice) -> None:
        whole[part] = work(part)

    each_part(fill, shape[0])
    return whole


def joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """np.concatenate in parallel; a single non-empty array is returned without a copy."""
    some = [array for array in arrays if len(array)] or list(arrays[:1])
    if len(some) == 1:
        return some[0]
    whole = np.empty((sum(map(len, some)), *some[0].shape[1:]), dtype=some[0].dtype)
    ends = np.cumsum([len(array) for array in some]).tolist()

    def copy(place: int) -> None:
        whole[ends[place] - len(some[place]) : ends[place]] = some[place]

    each(copy, range(len(some)))
    return whole


def rows_of(array: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """array[rows] for row numbers; the array itself, without a copy, if rows are all of them in order."""
    if len(rows) == len(array) and np.array_equal(rows, np.arange(len(array))):
        return array
    return filled(lambda part: array[rows[part]], (len(rows), *array.shape[1:]), array.dtype)


def lowest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Positions of the `count` lowest values, ascending. Ties are broken by position; NaN counts as largest."""
    if count < len(values):
        line = np.partition(values, count)[count]
        near = np.flatnonzero(values <= line)
        if len(near) >= count:
            return near[np.argsort(values[near], kind="stable")[:count]]
    return np.argsort(values, kind="stable")[:count]
