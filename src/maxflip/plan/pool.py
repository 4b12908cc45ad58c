"""Pool: flips that were found, kept so that later solves need not search for them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import Frozen, freeze
from maxflip._util.messages import counted
from maxflip._util.parallel import rows_of
from maxflip._util.types import Floats, Rows
from maxflip.data.places import NOWHERE, Places
from maxflip.errors import InputError

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem


def no_rows() -> Rows:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Pool(Frozen):
    """c flips, any number per sample.   rows (c,): the sample of each   changes (c, K): by slot   places: of slots"""

    rows: Rows
    changes: Floats
    places: Places

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(cls, problem: Problem, rows: Rows, changes: Floats) -> Pool:
        """Flips in the slots of the problem."""
        return cls(rows, changes, problem.slots.places(rows))

    @classmethod
    def union(cls, pools: Sequence[Pool]) -> Pool:
        """All flips of one or more pools in their order, each once.

        If slots differ between pools, each pool gets slots of its own; flips of different pools are then never equal.
        """
        whole = pools[0] if len(pools) == 1 else _joined(pools)
        return whole.those(first_of_each(whole.rows, whole.changes, *whole.places.named[1:]))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Pool({counted(len(self), 'flip')} of {counted(len(np.unique(self.rows)), 'sample')})"

    def those(self, which: NDArray[Any]) -> Pool:
        """Some of the flips; which: places (int64), or a mask."""
        places = np.flatnonzero(which) if which.dtype == bool else which
        return Pool(self.rows[places], rows_of(self.changes, places), self.places.those(places))

    def places_of(self, others: Pool) -> Rows:
        """Positions in this pool of the flips that `others`, a pool with the same slots, has too."""
        wanted = {
            (row, change.tobytes()) for row, change in zip(others.rows.tolist(), others.changes + 0.0, strict=True)
        }
        some = np.flatnonzero(np.isin(self.rows, others.rows))
        known = zip(some.tolist(), self.rows[some].tolist(), self.changes[some] + 0.0, strict=True)
        return np.array([place for place, row, change in known if (row, change.tobytes()) in wanted], dtype=np.int64)

    def in_problem(
        self, problem: Problem, ids: NDArray[np.object_], features: tuple[str, ...]
    ) -> tuple[Pool, NDArray[np.int64]]:
        """The flips of samples that the problem has too, in its rows and slots; and their positions in this pool.

        ids (n,), features (F,): of this pool's cohort. A flip that changes a slot the problem lacks is left out.
        """
        if features != problem.cohort.features or not self.places.are_like(problem.slots):
            raise InputError("start: the earlier plan has other features than the problem.")
        row_of = problem.cohort.row_of
        there = np.array([row_of.get(str(i), NOWHERE) for i in ids], dtype=np.int64)[self.rows]
        known = np.flatnonzero(there != NOWHERE)
        rows, changes = there[known], rows_of(self.changes, known)
        kept, moved = self.places.those(known).into(problem.slots, rows, changes)
        return Pool.of(problem, rows[kept], moved), known[kept]


def _joined(pools: Sequence[Pool]) -> Pool:
    """One after the other. A flip changes nothing in slots that are those of other pools alone."""
    places, own = pools[0].places.joined([pool.places for pool in pools])
    changes = np.zeros((sum(map(len, pools)), len(places.feature)))
    flip = 0
    for pool, slots in zip(pools, own, strict=True):
        changes[flip : flip + len(pool), slots] = pool.changes
        flip += len(pool)
    return Pool(np.concatenate([pool.rows for pool in pools]), changes, places)


def first_of_each(rows: Rows, *content: Floats | NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending places of the flips that equal no earlier one.   rows (c,)   content (c, .): of each

    Only samples with several flips are compared.
    """
    is_first = np.bincount(rows)[rows] == 1 if len(rows) else np.empty(0, dtype=bool)
    several = np.flatnonzero(~is_first)
    if len(several):
        parts = [rows[several, None], *(part[several] + 0.0 for part in content)]  # -0.0 becomes 0.0
        whole = np.ascontiguousarray(np.hstack(parts), dtype=np.float64)
        as_bytes = whole.view(np.dtype((np.void, whole.itemsize * whole.shape[1]))).ravel()
        is_first[several[np.unique(as_bytes, return_index=True)[1]]] = True
    return np.flatnonzero(is_first)
