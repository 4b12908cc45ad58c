"""Places: the positions of changes in samples, known without the cohort, and how files store them.

A pool has Places, and a plan has FullPlaces. For tables, both are `TablePlaces`; for sequences, a pool has `StepPlaces`
and a plan has `SequencePlaces`.
"""

# ruff: noqa: ARG002, ARG003  a table does not need every argument of the methods of Places

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import Frozen, freeze, read_only
from maxflip._util.types import Floats, Rows

if TYPE_CHECKING:
    from maxflip.data.slots import Slots

NOWHERE = -1
SEQUENCES = "sequences"  # `kind` in summary.json; a table has none


class OfFeatures(Protocol):
    """Something with an entry for each feature, such as limits."""

    def at(self, columns: Rows) -> Self:
        """The same with an entry for each slot.   columns (K,): the feature of each slot"""
        ...


P = TypeVar("P", bound=OfFeatures)


@dataclass(frozen=True, eq=False)
class Cells:
    """The changed values in a file, one per row of the file.

    row (e,): sample or flip, 0 to count - 1   feature (e,): 0 to width - 1   columns: the other columns, by name
    """

    row: Rows
    feature: Rows
    columns: Mapping[str, NDArray[Any]]
    count: int
    width: int


@dataclass(frozen=True, eq=False)
class Places(ABC, Frozen):
    """K slots of c flips.   feature (K,): the feature of each slot"""

    feature: Rows

    def __post_init__(self) -> None:
        freeze(self)

    @property
    @abstractmethod
    def named(self) -> tuple[()] | tuple[Rows, Rows]:
        """The identity of the slots: feature (K,) and step (c, K); empty for a table, whose slots are its features"""

    @abstractmethod
    def by_slot(self, of_features: P) -> P:
        """Limits or budgets per feature, turned into ones per slot."""

    # For pools

    @abstractmethod
    def those(self, which: Rows) -> Places:
        """The places of these flips only."""

    @abstractmethod
    def joined(self, every: Sequence[Self]) -> tuple[Places, list[slice]]:
        """The places of the flips of several pools, concatenated; and the slots of each pool.

        If slots differ between pools, each pool gets separate slots.   every: the places of all pools, `self` first
        """

    @abstractmethod
    def are_like(self, slots: Slots) -> bool:
        """Whether the slots of a problem are of the same kind."""

    @abstractmethod
    def into(self, slots: Slots, rows: Rows, changes: Floats) -> tuple[Rows, Floats]:
        """Move changes (c, K) of the samples `rows` (c,) into the slots of a problem: indices of flips (b,), changes
        (b, .).

        Flips that change a value for which the problem has no slot are left out.
        """

    # In files

    @abstractmethod
    def changed(self, changes: Floats) -> tuple[Rows, Rows]:
        """(e,) flip and (e,) slot of each nonzero change (c, K), sorted by flip, step, feature"""

    @abstractmethod
    def step_of(self, flip: Rows, slot: Rows) -> Rows:
        """(e,): the step of each of these slots; 0 for a table"""

    @classmethod
    @abstractmethod
    def of_pool(cls, cells: Cells) -> tuple[Places, Rows]:
        """The places from the rows of pool.parquet, and the slot of each row."""


class FullPlaces(Places, ABC):
    """Places of the picked flips, with everything that a plan stores about them."""

    has_steps: ClassVar[bool]  # whether a change has a step and a time, which are shown
    changed_noun: ClassVar[str]  # noun for the number of changes of a feature

    @abstractmethod
    def whole(self, moves: Floats, width: int) -> Any:
        """The changes (count, K) over all `width` features."""

    @abstractmethod
    def columns(self, flip: Any, slot: Any) -> dict[str, NDArray[Any]]:
        """Columns step and time of these slots; empty for a table"""

    @abstractmethod
    def tell_times(self, moves: Floats) -> bool:
        """Whether the times of changed values differ from their step numbers."""

    @property
    @abstractmethod
    def stated(self) -> dict[str, Any]:
        """Their entries in summary.json"""

    @classmethod
    @abstractmethod
    def of_plan(cls, cells: Cells, stated: Mapping[str, Any]) -> tuple[FullPlaces, Rows]:
        """The places from the rows of plan.parquet and from summary.json, and the slot of each row.

        KeyError or ValueError if these are not a plan's.
        """


class TablePlaces(FullPlaces):
    """Slot k holds the value of feature k."""

    has_steps = False
    changed_noun = "people"

    @classmethod
    def of(cls, width: int) -> TablePlaces:
        """The places of a table with `width` features."""
        return cls(np.arange(width))

    @property
    def named(self) -> tuple[()]:
        return ()

    def by_slot(self, of_features: P) -> P:
        return of_features

    def those(self, which: Rows) -> TablePlaces:
        return self

    def joined(self, every: Sequence[Self]) -> tuple[TablePlaces, list[slice]]:
        return self, [slice(None) for _ in every]

    def are_like(self, slots: Slots) -> bool:
        return slots.are_all_filled

    def into(self, slots: Slots, rows: Rows, changes: Floats) -> tuple[Rows, Floats]:
        return np.arange(len(rows)), changes

    def changed(self, changes: Floats) -> tuple[Rows, Rows]:
        flip, slot = np.nonzero(changes)
        return flip, slot

    def step_of(self, flip: Rows, slot: Rows) -> Rows:
        return np.zeros(len(slot), dtype=np.int64)

    @classmethod
    def of_pool(cls, cells: Cells) -> tuple[TablePlaces, Rows]:
        return cls.of(cells.width), cells.feature

    def whole(self, moves: Floats, width: int) -> Floats:
        return moves

    def columns(self, flip: Any, slot: Any) -> dict[str, NDArray[Any]]:
        return {}

    def tell_times(self, moves: Floats) -> bool:
        return False

    @property
    def stated(self) -> dict[str, Any]:
        return {}

    @classmethod
    def of_plan(cls, cells: Cells, stated: Mapping[str, Any]) -> tuple[TablePlaces, Rows]:
        return cls.of_pool(cells)


@dataclass(frozen=True, eq=False)
class StepPlaces(Places):
    """step (c, K): position in the sequence; NOWHERE if the sample does not have the slot"""

    step: Rows

    @property
    def named(self) -> tuple[Rows, Rows]:
        return self.feature, self.step

    def by_slot(self, of_features: P) -> P:
        return of_features.at(self.feature)

    def those(self, which: Rows) -> StepPlaces:
        return StepPlaces(self.feature, self.step[which])

    def joined(self, every: Sequence[Self]) -> tuple[StepPlaces, list[slice]]:
        if all(np.array_equal(self.feature, one.feature) for one in every):
            return StepPlaces(self.feature, np.concatenate([one.step for one in every])), [slice(None) for _ in every]
        ends = np.cumsum([0, *(len(one.feature) for one in every)]).tolist()
        own = [slice(begin, end) for begin, end in pairwise(ends)]
        step = np.full((sum(len(one.step) for one in every), ends[-1]), NOWHERE)
        flip = 0
        for one, slots in zip(every, own, strict=True):
            step[flip : flip + len(one.step), slots] = one.step
            flip += len(one.step)
        return StepPlaces(np.concatenate([one.feature for one in every]), step), own

    def are_like(self, slots: Slots) -> bool:
        return not slots.are_all_filled

    def into(self, slots: Slots, rows: Rows, changes: Floats) -> tuple[Rows, Floats]:
        flip, slot = np.nonzero(changes)
        place = slots.find(rows[flip], self.step[flip, slot], self.feature[slot])
        found = place != NOWHERE
        fits = np.ones(len(rows), dtype=bool)
        fits[flip[~found]] = False
        moved = np.zeros((len(rows), len(slots)))
        moved[flip[found], place[found]] = changes[flip[found], slot[found]]
        return np.flatnonzero(fits), moved[fits]

    def changed(self, changes: Floats) -> tuple[Rows, Rows]:
        flip, slot = np.nonzero(changes)
        order = np.lexsort((self.feature[slot], self.step[flip, slot], flip))
        return flip[order], slot[order]

    def step_of(self, flip: Rows, slot: Rows) -> Rows:
        return np.asarray(self.step[flip, slot])

    @classmethod
    def of_pool(cls, cells: Cells) -> tuple[StepPlaces, Rows]:
        slot, feature = _slots(cells)
        return StepPlaces(feature, _steps(cells, slot, len(feature))), slot


@dataclass(frozen=True, eq=False)
class SequencePlaces(StepPlaces, FullPlaces):
    """time (count, K): of each slot   lengths (count,): number of steps of each picked sequence"""

    time: Floats
    lengths: Rows

    has_steps = True
    changed_noun = "measurements"

    def whole(self, moves: Floats, width: int) -> list[Floats]:
        """(T_j, F) for each sequence"""
        picked, slot = np.nonzero(moves)
        each = [np.zeros((length, width)) for length in self.lengths.tolist()]
        for c, k in zip(picked.tolist(), slot.tolist(), strict=True):
            each[c][self.step[c, k], self.feature[k]] = moves[c, k]
        return [read_only(one) for one in each]

    def columns(self, flip: Any, slot: Any) -> dict[str, NDArray[Any]]:
        return {"step": self.step[flip, slot].astype(np.int32), "time": self.time[flip, slot]}

    def tell_times(self, moves: Floats) -> bool:
        changed = moves != 0
        return bool((self.time[changed] != self.step[changed]).any())

    @property
    def stated(self) -> dict[str, Any]:
        return {"kind": SEQUENCES, "lengths": self.lengths.tolist()}

    @classmethod
    def of_plan(cls, cells: Cells, stated: Mapping[str, Any]) -> tuple[SequencePlaces, Rows]:
        lengths, steps = np.array(stated["lengths"], dtype=np.int64), cells.columns["step"]
        if len(lengths) != cells.count or ((steps < 0) | (steps >= lengths[cells.row])).any():
            raise ValueError("a step of plan.parquet lies outside its sequence, by the lengths of summary.json")
        slot, feature = _slots(cells)
        step = _steps(cells, slot, len(feature))
        time = np.full(step.shape, np.nan)
        time[cells.row, slot] = cells.columns["time"]
        return SequencePlaces(feature, step, time, lengths), slot


def kind_of(stated: Mapping[str, Any]) -> type[FullPlaces]:
    """The class of a plan's places.   stated: its summary.json"""
    return SequencePlaces if stated.get("kind") == SEQUENCES else TablePlaces


def _steps(cells: Cells, slot: Rows, width: int) -> Rows:
    """(count, K): the step of each slot"""
    step = np.full((cells.count, width), NOWHERE, dtype=np.int64)
    step[cells.row, slot] = cells.columns["step"]
    return step


def _slots(cells: Cells) -> tuple[Rows, Rows]:
    """The slot of each change, and the feature of each slot. A feature has as many slots as any sample has changes of
    it. A sample's changes are in the order of steps, aligned to the end: its last change is in the feature's last
    slot."""
    row, feature, n = cells.row, cells.feature, cells.count
    order = np.lexsort((cells.columns["step"], row, feature))
    whose = feature[order] * n + row[order]
    count = np.bincount(whose, minlength=n * (int(feature.max(initial=-1)) + 1))
    most = count.reshape(-1, n).max(axis=1) if n else count
    slot = np.empty(len(row), dtype=np.int64)
    slot[order] = np.cumsum(most)[feature[order]] - (np.cumsum(count)[whose] - np.arange(len(row)))
    return slot, np.repeat(np.arange(len(most)), most)
