"""Few: at most so many features of a sample change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from maxflip._util.faults import Fault, wrong
from maxflip._util.frozen import Frozen, read_only
from maxflip._util.types import Floats, Rows
from maxflip.data.slots import Slots
from maxflip.problem.menu import Menu

UNCOUNTED = -1


@dataclass(frozen=True, eq=False)
class Few(Frozen):
    """most: features that may change; None: all   feature (K,): to which each slot belongs; UNCOUNTED: an action

    In sequences a feature counts once, however many of its steps change. The switch of a category counts as one.
    """

    most: int | None
    feature: Rows

    @classmethod
    def of(cls, most: int | None, slots: Slots, menu: Menu) -> Few:
        feature = slots.feature.copy()
        if menu.levers is not None:
            feature[np.flatnonzero(slots.is_lever)[menu.levers.counted]] = UNCOUNTED
        return cls(None if most is None else int(most), read_only(feature))

    def after(self, changes: Floats) -> Few:
        """What is left after changes (K,) that are made already."""
        return self if self.most is None else Few(self.most - int(self.counts(changes[None])[0]), self.feature)

    def counts(self, changes: Floats) -> Rows:
        """(B,): the number of features that changes (B, K) change"""
        return np.asarray(np.count_nonzero(self.sizes(np.abs(changes)), axis=1))

    def sizes(self, sizes: Floats) -> Floats:
        """(B, K) -> (B, features): the largest of each feature's slots, in the order of `np.unique(feature)`"""
        begins = np.flatnonzero(np.diff(self.feature[self._order], prepend=UNCOUNTED))
        return np.asarray(np.maximum.reduceat(sizes[:, self._order], begins, axis=1))

    @cached_property
    def _order(self) -> Rows:
        """Numbers of the slots that are counted, those of each feature side by side."""
        order = np.argsort(self.feature, kind="stable")
        return np.asarray(order[self.feature[order] != UNCOUNTED])

    def settled(self, changes: Floats, weight: Floats) -> Floats:
        """Changes (B, K) of at most so many features: those of the largest weight * |change|.

        weight (K,): inf for what must stay
        """
        if self.most is None:
            return changes
        many = np.flatnonzero(self.counts(changes) > self.most)
        if not len(many):
            return changes
        some = changes[many]
        sizes = self.sizes(np.multiply(weight, np.abs(some), where=some != 0, out=np.zeros_like(some)))
        last = np.argsort(-sizes, axis=1, kind="stable")[:, self.most :]
        dropped = np.zeros(sizes.shape, dtype=bool)
        np.put_along_axis(dropped, last, True, axis=1)
        of_slot = np.unique(self.feature[self._order], return_inverse=True)[1]
        some[:, self._order] = np.where(dropped[:, of_slot], 0.0, some[:, self._order])
        fewer = changes.copy()
        fewer[many] = some
        return fewer


def most_changes_faults(most: Any) -> list[Fault]:
    is_whole = isinstance(most, (int, np.integer)) and not isinstance(most, bool)
    if most is None or (is_whole and most >= 1):
        return []
    return [wrong("most_changes", most, "must be a whole number >= 1, the number of features; None for any.")]


def tidy_faults(tidy: Any) -> list[Fault]:
    return [] if isinstance(tidy, (bool, np.bool_)) else [wrong("tidy", tidy, "must be True or False.")]
