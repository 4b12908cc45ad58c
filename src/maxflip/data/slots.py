"""Slots: the places of a cohort where something may change."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import Frozen, read_only
from maxflip._util.messages import shown
from maxflip._util.types import Floats, Mask
from maxflip.data.cohort import Cohort
from maxflip.data.sequences import Ragged

NOWHERE = -1
LAST = re.compile(r"last ([1-9][0-9]{0,8})")


@dataclass(frozen=True, eq=False)
class Slots(Frozen):
    """K slots for each sample.   start (n, K): the values there   feature (K,): whose value a slot holds

    A table has one slot per feature. Of sequences, a feature of which up to q values of a sample may change has q
    slots, and the last of them holds the sample's last one: so many samples of sparse measurements need few slots, and
    a slot means nearly the same for all.

    step (n, K): where in the sequence; NOWHERE where a sample has fewer values. None for a table
    """

    start: Floats
    feature: NDArray[np.int64]
    step: NDArray[np.int64] | None = None

    @classmethod
    def of_table(cls, cohort: Cohort) -> Slots:
        return cls(cohort.values, read_only(np.arange(len(cohort.features))))

    @classmethod
    def of_sequences(cls, cohort: Cohort, ragged: Ragged, changing: Collection[str], allowed: Mask) -> Slots:
        """changing: features that may change   allowed (N, F): where"""
        starts, steps, features = [np.empty((len(cohort), 0))], [np.empty((len(cohort), 0), np.int64)], []
        for i, name in enumerate(cohort.features):
            if name not in changing:
                continue
            rows = np.flatnonzero(~np.isnan(cohort.values[:, i]) & allowed[:, i])
            owner = ragged.owner[rows]
            count = np.bincount(owner, minlength=len(cohort))
            most = int(count.max(initial=0))
            slot = most - (np.cumsum(count)[owner] - np.arange(len(rows)))
            start, step = np.zeros((len(cohort), most)), np.full((len(cohort), most), NOWHERE)
            start[owner, slot] = cohort.values[rows, i]
            step[owner, slot] = rows - ragged.begin[owner]
            starts.append(start)
            steps.append(step)
            features += [i] * most
        return cls(
            read_only(np.concatenate(starts, axis=1)),
            read_only(np.array(features, dtype=np.int64)),
            read_only(np.concatenate(steps, axis=1)),
        )

    def __len__(self) -> int:
        return len(self.feature)

    def absent(self, rows: NDArray[np.int64]) -> Mask | None:
        """(B, K): slots that hold nothing; None if all do"""
        return None if self.step is None else self.step[rows] == NOWHERE

    def steps(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, b): in which step each of some slots lies"""
        return np.zeros((len(rows), len(slots)), np.int64) if self.step is None else self.step[np.ix_(rows, slots)]

    def find(self, rows: NDArray[np.int64], steps: NDArray[np.int64], features: NDArray[np.int64]) -> NDArray[np.int64]:
        """(e,) slots of values known by sample, step and feature; NOWHERE where that is no slot"""
        if self.step is None:
            return features
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


def steps_in_words(steps: Any) -> str:
    """What `read_steps` has accepted."""
    if steps is None or isinstance(steps, str):
        return f"the {steps} of each sequence" if steps not in (None, "all") else "all"
    return "those that a mask names"


def read_steps(steps: Any, cohort: Cohort) -> tuple[Mask | None, list[str]]:
    """Which values may change at all, (N, F): steps = "all", "last 3", or a mask (T_j,) or (T_j, F) per sample."""
    ragged = cohort.ragged
    if ragged is None:
        wanted = "only sequences have steps; this cohort is a table."
        return None, [] if steps is None else [f"steps = {shown(steps)}: {wanted}"]
    everywhere = np.ones(cohort.values.shape, dtype=bool)
    if steps is None or (isinstance(steps, str) and steps == "all"):
        return everywhere, []
    if isinstance(steps, str):
        last = LAST.fullmatch(steps)
        if last is None:
            return None, [f"steps = {shown(steps)}: must be 'all', 'last 3' (any number), or one mask per sample."]
        from_end = ragged.begin[1:][ragged.owner] - np.arange(len(cohort.values))
        return everywhere & (from_end <= int(last[1]))[:, None], []
    if not hasattr(steps, "__len__") or len(steps) != len(cohort):
        return None, [f"steps: got {shown(steps)}; wanted 'all', 'last 3' (any number), or one mask per sample."]
    faults, parts = [], []
    for j, given in enumerate(steps):
        length = int(ragged.lengths[j])
        try:
            mask = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
        except ValueError:  # rows of unlike lengths
            mask = np.empty(0, dtype=object)
        if mask.dtype != bool or mask.shape not in ((length,), (length, len(cohort.features))):
            faults.append(
                f"steps: {cohort.where(j)}: {mask.dtype} of shape {mask.shape}; wanted true or false for each of its "
                f"steps, ({length},), or values, ({length}, {len(cohort.features)})."
            )
        else:
            parts.append(np.broadcast_to(mask if mask.ndim == 2 else mask[:, None], (length, len(cohort.features))))
    return (None, faults[:10]) if faults else (np.concatenate(parts), [])
