"""Immutable mappings and read-only arrays that can be pickled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar("K")
V = TypeVar("V")
Scalar = TypeVar("Scalar", bound=np.generic)


class FrozenMap(Mapping[K, V]):
    """An immutable copy of a mapping.

    >>> FrozenMap({"bmi": 2.0})
    {'bmi': 2.0}
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenMap, (self._items,)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    array.setflags(write=False)
    return array


def freeze(frozen: Any) -> None:
    """Replace the arrays of a frozen dataclass by read-only views."""
    for name, value in vars(frozen).copy().items():
        if isinstance(value, np.ndarray):
            object.__setattr__(frozen, name, read_only(value.view()))


class Frozen:
    """Base of frozen dataclasses with read-only arrays; makes them read-only again after unpickling."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                read_only(value)
        self.__dict__.update(state)
