"""Slots: the positions in a cohort's samples that may change."""

# ruff: noqa: ARG002  the slots of a table are the same for all samples

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import Frozen
from maxflip._util.types import Floats, Mask
from maxflip.data.places import NOWHERE, P, Places, StepPlaces, TablePlaces

LAST = re.compile(r"last ([1-9][0-9]{0,8})")


@dataclass(frozen=True, eq=False)
class Slots(Frozen):
    """K slots for each sample.   start (n, K): the values in them   feature (K,): the feature of each slot

    This class is for tables: one slot for each feature, and every sample has a value in it.
    """

    start: Floats
    feature: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def are_all_filled(self) -> bool:
        """Whether every sample has a value in every slot."""
        return True

    @property
    def is_lever(self) -> Mask:
        """(K,): which slots are levers, whose change is a switch: 0 or 1"""
        return np.zeros(len(self), dtype=bool)

    def base(self, rows: NDArray[np.int64], changes: Floats) -> Floats:
        """(B, K): where the changes (B, K) of features begin: the start, after the levers that are on"""
        return self.start[rows]

    def switches_are_lawful(self, rows: NDArray[np.int64], changes: Floats) -> Mask:
        """(B,): whether the levers that are on in changes (B, K) are allowed for these samples, and together"""
        return np.ones(len(changes), dtype=bool)

    def has_room_for(self, column: int) -> bool:
        """Whether a feature that draws on no budget yet would have slots for its changes."""
        return column < len(self.feature)

    def by_slot(self, of_features: P) -> P:
        """Limits or budgets per feature, turned into ones per slot."""
        return of_features

    def clear_absent(self, rows: NDArray[np.int64], *arrays: NDArray[np.generic]) -> None:
        """Write 0 into arrays (B, K) where a sample has no value in a slot."""

    def has_all(self, rows: NDArray[np.int64], changes: Floats) -> Mask:
        """(B,): whether the sample has a value in every slot that its change (B, K) changes"""
        return np.ones(len(changes), dtype=bool)

    def steps(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, b): the step of each of these slots; NOWHERE if the sample does not have the slot; 0 for a table"""
        return np.zeros((len(rows), len(slots)), np.int64)

    def find(self, rows: NDArray[np.int64], steps: NDArray[np.int64], features: NDArray[np.int64]) -> NDArray[np.int64]:
        """(e,): the slots of values given by sample, step and feature; NOWHERE for values without a slot"""
        return features

    def places(self, rows: NDArray[np.int64]) -> Places:
        """The positions of these samples' slots, in a form that does not need the cohort."""
        return TablePlaces(self.feature)


@dataclass(frozen=True, eq=False)
class SequenceSlots(Slots):
    """A feature has as many slots as values of it may change in any sample.

    Values are aligned to the end: the last slot has the sample's last value. So sparse measurements need few slots, and
    a slot means nearly the same for all samples.

    step (n, K): position in the sequence; NOWHERE if the sample has fewer values
    columns: the features for which slots were made, also if they were never measured
    """

    step: NDArray[np.int64]
    columns: frozenset[int] = frozenset()

    @property
    def are_all_filled(self) -> bool:
        return False

    def has_room_for(self, column: int) -> bool:
        return column in self.columns

    def by_slot(self, of_features: P) -> P:
        return of_features.at(self.feature)

    def clear_absent(self, rows: NDArray[np.int64], *arrays: NDArray[np.generic]) -> None:
        absent = self.step[rows] == NOWHERE
        for array in arrays:
            array[absent] = 0

    def has_all(self, rows: NDArray[np.int64], changes: Floats) -> Mask:
        return np.asarray(((changes == 0) | (self.step[rows] != NOWHERE)).all(axis=1))

    def steps(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.step[np.ix_(rows, slots)]

    def find(self, rows: NDArray[np.int64], steps: NDArray[np.int64], features: NDArray[np.int64]) -> NDArray[np.int64]:
        samples, whose = np.unique(rows, return_inverse=True)
        there = self.step[samples]
        sample, slot = np.nonzero(there != NOWHERE)
        width = int(max(self.feature.max(initial=0), features.max(initial=0))) + 1
        longest = int(max(there.max(initial=0), steps.max(initial=0))) + 1
        known = (sample * width + self.feature[slot]) * longest + there[sample, slot]
        asked = (whose * width + features) * longest + steps
        if not len(known):
            return np.full(len(rows), NOWHERE)
        order = np.argsort(known)
        at = order[np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)]
        return np.where(known[at] == asked, slot[at], NOWHERE)

    def places(self, rows: NDArray[np.int64]) -> StepPlaces:
        return StepPlaces(self.feature, self.step[rows])
