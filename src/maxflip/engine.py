"""Map over chunks of rows, reduce in a fixed order. Solvers see only this; a cluster is another Engine.

Chunks are cut by `size` alone, never by the number of workers, so a result does not depend on who computed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxflip.watch import Advanced, Finished, Started, Watch

T = TypeVar("T")
Rows = NDArray[np.int64]


class Engine(Protocol):
    def map(self, work: Callable[[Rows], T], rows: Rows, *, size: int, stage: str, watch: Watch) -> list[T]:
        """[work(chunk) for each chunk of `size` rows], in order."""
        ...


class Local:
    """Everything in this process, one chunk after the other."""

    def map(self, work: Callable[[Rows], T], rows: Rows, *, size: int, stage: str, watch: Watch) -> list[T]:
        watch(Started(stage, len(rows)))
        results = []
        for begin in range(0, len(rows), size):
            chunk = rows[begin : begin + size]
            results.append(work(chunk))
            watch(Advanced(stage, len(chunk)))
        watch(Finished(stage))
        return results
