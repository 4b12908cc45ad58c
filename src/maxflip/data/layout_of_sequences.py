"""The layout of sequences: a row per step, a slot for each value that may change, NaN where nothing was measured."""

# ruff: noqa: ARG002  what every layout is asked, this one does not always need
# torch is imported where it is needed: a cohort can be read without it.

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip._util.faults import Fault, about, wrong
from maxflip._util.frozen import read_only
from maxflip._util.messages import counted, shown
from maxflip._util.types import Floats, Mask, Rows
from maxflip.data.derived import Derived
from maxflip.data.layout import AskedOfSequences, Layout
from maxflip.data.places import NOWHERE, SequencePlaces
from maxflip.data.scale import spread_of
from maxflip.data.sequences import Ragged
from maxflip.data.slots import LAST, SequenceSlots, Slots
from maxflip.errors import InputError

if TYPE_CHECKING:
    import torch

    from maxflip.data.inputs import Inputs
    from maxflip.data.sample import Sample

PADDING = (
    " Of sequences, see what it makes of padding: read the state of step length - 1, not of the last one, and keep "
    "steps beyond a sequence's length out of means and attention."
)
STEPS_PER_ROW = 4  # steps in a batch of sequences, as a multiple of the rows in a batch of a table


@dataclass(frozen=True, eq=False)
class SequenceLayout(Layout):
    """values (N, F), NaN where nothing was measured   lie: the rows of each sequence"""

    lie: Ragged

    noun = numbered = "sequence"
    any_steps = "all"
    points_in_words = (
        "Euclidean distance over the last and the mean measured value of each feature, and the static "
        "features, each in units of its standard deviation in the cohort; a feature that was never measured counts "
        "as the mean"
    )

    @property
    def ragged(self) -> Ragged:
        return self.lie

    def __len__(self) -> int:
        return len(self.lie)

    def in_order(self, by_id: Rows) -> Rows:
        """By length first, so that batches need little padding."""
        return by_id[np.argsort(self.lie.lengths[by_id], kind="stable")]

    def place_of(self, row: int) -> tuple[int, str]:
        j = int(self.lie.owner[row])
        return j, f", step {row - int(self.lie.begin[j])}"

    def measured(self, column: int) -> tuple[Floats, Rows]:
        values = self.values[:, column]
        there = ~np.isnan(values)
        return values[there], self.lie.owner[there]

    def spread(self, rows: Rows, columns: Rows) -> Floats:
        """Over all values measured in these sequences."""
        values = self.values[self.lie.rows_of(rows)]
        kinds, which = np.unique(columns, return_inverse=True)
        measured = (values[~np.isnan(values[:, i]), i] for i in kinds)
        each = np.array([float(spread_of(v[:, None])[0]) if len(v) else 1.0 for v in measured])
        return np.asarray(each[which])

    def as_rows(self, rows: Rows | slice) -> Floats | None:
        return None

    @property
    def is_one_row(self) -> bool:
        return False

    def of_each(self, features: tuple[str, ...]) -> tuple[str, tuple[str, ...], Floats]:
        return "static feature", self.lie.static_features, self.lie.static

    def by_length(self, order: Rows, groups: int) -> Rows:
        if not 1 <= groups <= len(self):
            raise InputError(f"groups = {groups}: must be between 1 and the number of sequences, {len(self)}.")
        found = np.empty(len(self), dtype=np.int64)
        for number, part in enumerate(np.array_split(order, groups)):
            found[part] = number
        return found

    def moved(self, rows: Rows, changes: Any, derived: Derived) -> Layout:
        """changes: an array (T_j, F) for each sequence"""
        own = self.lie.rows_of(rows)
        begin = np.concatenate([[0], np.cumsum(self.lie.lengths[rows])])
        lie = Ragged(begin, self.lie.times[own], self.lie.static[rows], self.lie.static_features)
        return SequenceLayout(derived.after(self.values[own], self.values[own] + np.concatenate(changes)), lie)

    def rows_of(self, samples: Rows) -> Rows:
        return self.lie.rows_of(samples)

    def owners(self, rows: Rows) -> tuple[Rows, Rows]:
        owner = self.lie.owner[rows]
        return owner, rows - self.lie.begin[owner]

    @property
    def points(self) -> Floats:
        """The last and the mean measured value of each feature, and the static features."""
        values, first, measured = self.values, self.lie.begin[:-1], ~np.isnan(self.values)
        count = np.add.reduceat(measured.astype(np.float64), first)
        total = np.add.reduceat(np.where(measured, values, 0.0), first)
        mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
        row = np.maximum.reduceat(np.where(measured, np.arange(len(values))[:, None], -1), first)
        last = np.where(row >= 0, values[row, np.arange(values.shape[1])], np.nan)
        return np.hstack([last, mean, self.lie.static])

    def is_like(self, other: Layout) -> bool:
        return isinstance(other, SequenceLayout) and other.lie.static_features == self.lie.static_features

    def frame_faults(self, name: str, given: Any) -> list[str]:
        return [f"{name}: got {shown(given)}; wanted sequences, as Cohort.sequences(...)."]

    def classifier_faults(self, classifier: AskedOfSequences) -> list[str]:
        return classifier.sequence_faults(
            some_missing=bool(np.isnan(self.values).any()), static_features=self.lie.static_features
        )

    def function_faults(self, functions: Sequence[str]) -> list[str]:
        return [f"{name}: budgets that are functions are for tables, not for sequences." for name in functions]

    def read_steps(self, steps: Any, where: Callable[[int], str]) -> tuple[Mask, list[Fault]]:
        """steps: "all", "last 3", or a mask (T_j,) or (T_j, F) for each sequence"""
        everywhere = np.ones(self.values.shape, dtype=bool)
        if steps is None or (isinstance(steps, str) and steps == "all"):
            return everywhere, []
        wanted = "'all', 'last 3' (any number), or one mask per sample."
        if isinstance(steps, str):
            last = LAST.fullmatch(steps)
            if last is None:
                return everywhere, [wrong("steps", steps, f"must be {wanted}")]
            from_end = self.lie.begin[1:][self.lie.owner] - np.arange(len(self.values))
            return everywhere & (from_end <= int(last[1]))[:, None], []
        if not hasattr(steps, "__len__") or len(steps) != len(self):
            return everywhere, [about("steps", f"got {shown(steps)}; wanted {wanted}")]
        faults, parts, width = [], [], self.values.shape[1]
        for j, given in enumerate(steps):
            length = int(self.lie.lengths[j])
            try:
                mask = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
            except ValueError:  # rows of unlike lengths
                mask = np.empty(0, dtype=object)
            if mask.dtype != bool or mask.shape not in ((length,), (length, width)):
                faults.append(
                    about(
                        "steps",
                        f"{where(j)}: {mask.dtype} of shape {mask.shape}; wanted true or false for each of its steps, "
                        f"({length},), or values, ({length}, {width}).",
                    )
                )
            else:
                parts.append(np.broadcast_to(mask if mask.ndim == 2 else mask[:, None], (length, width)))
        return (everywhere, faults[:10]) if faults else (np.concatenate(parts), [])

    def steps_in_words(self, steps: Any) -> str:
        if steps is None or isinstance(steps, str):
            return f"the {steps} of each sequence" if steps not in (None, "all") else "all"
        return "those that a mask names"

    def slots(self, columns: Collection[int], allowed: Mask) -> Slots:
        n = len(self)
        starts, steps, features = [np.empty((n, 0))], [np.empty((n, 0), np.int64)], []
        for i in sorted(columns):
            rows = np.flatnonzero(~np.isnan(self.values[:, i]) & allowed[:, i])
            owner = self.lie.owner[rows]
            count = np.bincount(owner, minlength=n)
            most = int(count.max(initial=0))
            slot = most - (np.cumsum(count)[owner] - np.arange(len(rows)))
            start, step = np.zeros((n, most)), np.full((n, most), NOWHERE)
            start[owner, slot] = self.values[rows, i]
            step[owner, slot] = rows - self.lie.begin[owner]
            starts.append(start)
            steps.append(step)
            features += [i] * most
        return SequenceSlots(
            read_only(np.concatenate(starts, axis=1)),
            read_only(np.array(features, dtype=np.int64)),
            read_only(np.concatenate(steps, axis=1)),
            frozenset(columns),
        )

    def notices(self, steps: Any, dtype: torch.dtype) -> list[str]:
        import torch

        notices = []
        if steps is None:
            notices.append(
                "Values of all steps may change, those of the past too. Say steps='last 3', or whichever part can "
                "change; or steps='all'."
            )
        rounded = torch.tensor(self.lie.times).to(dtype).double().numpy()  # float32 rounds seconds since 1970
        goes_on = self.lie.owner[1:] == self.lie.owner[:-1]
        lost = int((goes_on & (np.diff(self.lie.times) > 0) & (np.diff(rounded) == 0)).sum())
        if lost:
            notices.append(
                f"Times as large as {np.abs(self.lie.times).max():.6g} are rounded by the model's "
                f"{str(dtype).removeprefix('torch.')}: {counted(lost, 'step')} cannot be told in time from the one "
                "before. Count time from the beginning of each sequence."
            )
        return notices

    def places(self, slots: Slots, rows: Rows) -> SequencePlaces:
        step = slots.steps(rows, np.arange(len(slots)))
        time = np.where(step >= 0, self.lie.times[self.lie.begin[rows][:, None] + step], np.nan)
        return SequencePlaces(slots.feature, step, time, self.lie.lengths[rows])

    def trial(self, slots: Slots, order: Rows, batch_size: int) -> Sample:
        """From all lengths, the shortest and the longest included, so that padding is tried too."""
        from maxflip.data.sample import Sample, chosen_rows

        rows, everywhere = order[chosen_rows(len(self))], np.arange(len(slots))
        size = float(np.nanmax(np.abs(self.values), initial=0.0))

        def inputs(device: torch.device) -> Inputs:
            return self.inputs(slots, rows, everywhere, device, size=None, batch_size=batch_size, derived=Derived())

        return Sample(inputs, rows, self.spread(order, slots.feature), size, PADDING)

    def inputs(
        self,
        slots: Slots,
        rows: Rows,
        columns: Rows,
        device: torch.device,
        *,
        size: int | None,
        batch_size: int,
        derived: Derived,
    ) -> Inputs:
        from maxflip.data.inputs import SequenceInputs

        most = STEPS_PER_ROW * batch_size
        return SequenceInputs(self.values, self.lie, slots, rows, columns, device, most, derived)

    def batches(self, rows: Rows, batch_size: int) -> Sequence[Rows | slice]:
        from maxflip.data.inputs import similar

        return similar(self.lie.lengths[rows], STEPS_PER_ROW * batch_size)

    def chunks(self, rows: Rows, size: int, batch_size: int) -> list[Rows]:
        lengths, found, end = self.lie.lengths[rows], [], len(rows)
        while end:
            begin = max(0, end - min(size, max(1, STEPS_PER_ROW * batch_size // int(lengths[end - 1]))))
            found.append(rows[begin:end])
            end = begin
        return found[::-1]
