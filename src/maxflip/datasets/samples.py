"""Results of the loaders: labelled sequences, or a labelled table, which can become a Cohort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import read_only
from maxflip._util.types import Floats
from maxflip.data.cohort import Cohort

Numbers = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of different lengths with one label each; NaN marks missing measurements.

    values: n arrays (T_j, F), T_j >= 1   times: n arrays (T_j,), never falling   static: (n, S)
    labels: (n,), positions in `classes`   dropped: {what the loader left out: how often}
    """

    values: tuple[Numbers, ...]
    times: tuple[Numbers, ...]
    static: Numbers
    ids: tuple[str, ...]
    features: tuple[str, ...]
    static_features: tuple[str, ...]
    units: Mapping[str, str]
    source: str
    labels: Integers
    classes: tuple[str, ...]
    dropped: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.values)

    def cohort(self) -> Cohort:
        return Cohort.sequences(
            list(self.values),
            times=list(self.times),
            static=self.static,
            ids=list(self.ids),
            features=list(self.features),
            static_features=list(self.static_features),
            units=self.units,
            source=self.source,
        )

    def take(self, rows: Sequence[int] | Integers) -> Sequences:
        """Some of the sequences, in the order of `rows`."""
        chosen = np.asarray(rows, dtype=np.int64).tolist()
        return replace(
            self,
            values=tuple(self.values[j] for j in chosen),
            times=tuple(self.times[j] for j in chosen),
            static=self.static[chosen],
            ids=tuple(self.ids[j] for j in chosen),
            labels=self.labels[chosen],
        )


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers with a label each. values: (n, F)   labels: (n,), positions in `classes`"""

    values: Floats
    ids: tuple[str, ...]
    features: tuple[str, ...]
    units: Mapping[str, str]
    source: str
    labels: Integers
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.values)

    def cohort(self) -> Cohort:
        return Cohort.table(self.values, features=self.features, ids=self.ids, units=self.units, source=self.source)


@dataclass(frozen=True, eq=False)
class Events:
    """Single measurements, as arrays of equal length: `feature` of `sample` was `value` at `time`."""

    sample: Integers
    time: Integers
    feature: Integers
    value: Floats

    def where(self, chosen: NDArray[np.bool_]) -> Events:
        return Events(self.sample[chosen], self.time[chosen], self.feature[chosen], self.value[chosen])

    def steps(self, samples: int, features: int) -> tuple[tuple[Floats, ...], tuple[Integers, ...]]:
        """The values (T_j, F) and times (T_j,) of each sample, with one step per time with a measurement.

        Repeated measurements at one time are averaged. A sample without measurements has one empty step at time 0.
        """
        silent = np.setdiff1d(np.arange(samples), self.sample)
        owners, times = np.concatenate([self.sample, silent]), np.concatenate([self.time, np.zeros_like(silent)])
        span = int(times.max(initial=0)) - (first := int(times.min(initial=0))) + 1
        keys, step = np.unique(owners * span + (times - first), return_inverse=True)
        cell = step[: len(self.sample)] * features + self.feature
        counts = np.bincount(cell, minlength=len(keys) * features)
        sums = np.bincount(cell, self.value, minlength=len(keys) * features)
        flat = np.full(len(counts), np.nan)
        np.divide(sums, counts, out=flat, where=counts > 0)
        starts = np.searchsorted(keys // span, np.arange(1, samples))
        return (
            tuple(np.split(read_only(flat.reshape(-1, features)), starts)),
            tuple(np.split(read_only(keys % span + first), starts)),
        )
