"""Long arrays in parts: every part by itself, several at a time, the results in order.

numpy lets other threads run while it works on a part: long enough to be worth it, short enough to stay near the
processor. Parts are cut by length alone, so nothing depends on how many threads there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

LENGTH = 32_768  # entries of a part

S = TypeVar("S")
T = TypeVar("T")

_at_once: ContextVar[int] = ContextVar("at_once", default=1)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """What runs in here, in this thread, works on so many parts at once."""
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
    """[work(part) for each part of what has this length]"""
    return each(work, [slice(begin, min(begin + LENGTH, length)) for begin in range(0, length, LENGTH)])


def filled(work: Callable[[slice], Any], shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """An array of this shape whose parts along the first axis are what `work` makes of them."""
    whole = np.empty(shape, dtype=dtype)

    def fill(part: slice) -> None:
        whole[part] = work(part)

    each_part(fill, shape[0])
    return whole


def joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """np.concatenate; what is one array already is not copied."""
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
    """array[rows], rows being numbers; all of them in their order are the array itself."""
    if len(rows) == len(array) and np.array_equal(rows, np.arange(len(array))):
        return array
    return filled(lambda part: array[rows[part]], (len(rows), *array.shape[1:]), array.dtype)


def lowest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Where the `count` lowest are, ascending; of equals, those that come first. NaN is above all."""
    if count < len(values):
        line = np.partition(values, count)[count]
        near = np.flatnonzero(values <= line)
        if len(near) >= count:
            return near[np.argsort(values[near], kind="stable")[:count]]
    return np.argsort(values, kind="stable")[:count]
