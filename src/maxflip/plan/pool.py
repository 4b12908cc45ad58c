"""Pool: flips that were found, kept so that later solves need not search for them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import Frozen
from maxflip._util.messages import counted
from maxflip._util.parallel import rows_of
from maxflip._util.types import Floats, Rows
from maxflip.data.slots import NOWHERE
from maxflip.errors import InputError

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem


def no_rows() -> Rows:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Pool(Frozen):
    """c flips, any number per sample.   rows (c,): the sample of each   changes (c, K): by slot

    Positions of the slots, for sequences only (None: slot k is feature k of a table):
    feature (K,)   step (c, K): the step of each slot, -1 where the sample has no such slot
    """

    rows: Rows
    changes: Floats
    feature: NDArray[np.int64] | None = None
    step: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                view = value.view()
                view.setflags(write=False)
                object.__setattr__(self, field.name, view)

    @classmethod
    def of(cls, problem: Problem, rows: Rows, changes: Floats) -> Pool:
        """Flips in the slots of the problem."""
        return cls(rows, changes, *problem.slots.described(rows))

    @classmethod
    def union(cls, pools: Sequence[Pool]) -> Pool:
        """All flips of one or more pools in their order, each once.

        If slots differ between pools, each pool gets slots of its own; flips of different pools are then never equal.
        """
        first = pools[0]
        if all(_same_slots(first, pool) for pool in pools):
            whole = _stacked(pools)
        else:
            whole = _side_by_side(pools)
        steps = [] if whole.step is None else [whole.step]
        return whole.those(first_of_each(whole.rows, whole.changes, *steps))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Pool({counted(len(self), 'flip')} of {counted(len(np.unique(self.rows)), 'sample')})"

    def those(self, which: NDArray[Any]) -> Pool:
        """Some of the flips; which: places (int64), or a mask."""
        places = np.flatnonzero(which) if which.dtype == bool else which
        step = None if self.step is None else self.step[places]
        return Pool(self.rows[places], rows_of(self.changes, places), self.feature, step)

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
        if features != problem.cohort.features or (self.step is None) != problem.slots.are_all_filled:
            raise InputError("start: the earlier plan has other features than the problem.")
        row_of = problem.cohort.row_of
        there = np.array([row_of.get(str(i), NOWHERE) for i in ids], dtype=np.int64)[self.rows]
        known = np.flatnonzero(there != NOWHERE)
        rows, changes = there[known], rows_of(self.changes, known)
        if self.step is None or self.feature is None:
            return Pool.of(problem, rows, changes), known
        flip, slot = np.nonzero(changes)
        place = problem.slots.find(rows[flip], self.step[known][flip, slot], self.feature[slot])
        fits = np.ones(len(rows), dtype=bool)
        fits[flip[place == NOWHERE]] = False
        found = place != NOWHERE
        moved = np.zeros((len(rows), problem.width))
        moved[flip[found], place[found]] = changes[flip[found], slot[found]]
        return Pool.of(problem, rows[fits], moved[fits]), known[fits]


def _same_slots(one: Pool, other: Pool) -> bool:
    if one.feature is None or other.feature is None:
        return one.feature is other.feature and one.changes.shape[1] == other.changes.shape[1]
    return np.array_equal(one.feature, other.feature)


def _stacked(pools: Sequence[Pool]) -> Pool:
    if len(pools) == 1:
        return pools[0]
    steps = [pool.step for pool in pools if pool.step is not None]
    return Pool(
        np.concatenate([pool.rows for pool in pools]),
        np.concatenate([pool.changes for pool in pools]),
        pools[0].feature,
        np.concatenate(steps) if steps else None,
    )


def _side_by_side(pools: Sequence[Pool]) -> Pool:
    """For sequences: each pool gets its own slots, in which the flips of other pools change nothing."""
    count, width = sum(map(len, pools)), sum(pool.changes.shape[1] for pool in pools)
    changes, step = np.zeros((count, width)), np.full((count, width), NOWHERE)
    flip = slot = 0
    for pool in pools:
        own = slice(flip, flip + len(pool)), slice(slot, slot + pool.changes.shape[1])
        changes[own], step[own] = pool.changes, pool.step
        flip, slot = own[0].stop, own[1].stop
    feature = np.concatenate([pool.feature for pool in pools if pool.feature is not None])
    return Pool(np.concatenate([pool.rows for pool in pools]), changes, feature, step)


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
