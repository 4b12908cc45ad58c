"""The layout of a table: a row per sample, a column and a slot per feature, a finite number in every cell."""

# ruff: noqa: ARG002  a table does not need every argument of the methods of Layout
# torch is imported where it is needed: a cohort can be read without it.

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip._util.faults import Fault, wrong
from maxflip._util.frozen import read_only
from maxflip._util.parallel import filled
from maxflip._util.types import Floats, Mask, Rows
from maxflip.data.derived import Derived
from maxflip.data.layout import AskedOfSequences, Layout
from maxflip.data.places import TablePlaces
from maxflip.data.scale import spread_of
from maxflip.data.slots import Slots
from maxflip.errors import InputError

if TYPE_CHECKING:
    import torch

    from maxflip.data.inputs import Inputs
    from maxflip.data.sample import Sample


@dataclass(frozen=True, eq=False)
class TableLayout(Layout):
    """values (n, F); a sample is a row of it"""

    noun = "sample"
    numbered = "row"
    can_have_levers = True
    any_steps = None
    points_in_words = (
        "Euclidean distance over all features, frozen ones too, each in units of its standard deviation in the cohort"
    )

    def __len__(self) -> int:
        return len(self.values)

    def in_order(self, by_id: Rows) -> Rows:
        """By id, so that the order of a file's rows does not matter."""
        return by_id

    def place_of(self, row: int) -> tuple[int, str]:
        return row, ""

    def measured(self, column: int) -> tuple[Floats, Rows]:
        return self.values[:, column], np.arange(len(self))

    def spread(self, rows: Rows, columns: Rows) -> Floats:
        return spread_of(self.values[np.ix_(rows, columns)])

    def as_rows(self, rows: Rows | slice) -> Floats | None:
        return self.values[rows]

    @property
    def is_one_row(self) -> bool:
        return bool((self.values == self.values[0]).all())

    def of_each(self, features: tuple[str, ...]) -> tuple[str, tuple[str, ...], Floats]:
        """Every feature."""
        return "feature", features, self.values

    def by_length(self, order: Rows, groups: int) -> Rows:
        raise InputError(f"groups = {groups}: a table has no lengths to group by. Give one label per sample.")

    def moved(self, rows: Rows, changes: Any, derived: Derived) -> Layout:
        return TableLayout(derived.after(self.values[rows], self.values[rows] + changes))

    def rows_of(self, samples: Rows) -> Rows:
        return samples

    def owners(self, rows: Rows) -> tuple[Rows, Rows]:
        return rows, np.zeros_like(rows)

    @property
    def points(self) -> Floats:
        return self.values

    def is_like(self, other: Layout) -> bool:
        return isinstance(other, TableLayout)

    def frame_faults(self, name: str, given: Any) -> list[str]:
        return []

    def classifier_faults(self, classifier: AskedOfSequences) -> list[str]:
        return []

    def function_faults(self, functions: Sequence[str]) -> list[str]:
        return []

    def read_steps(self, steps: Any, where: Callable[[int], str]) -> tuple[Mask, list[Fault]]:
        everywhere = np.broadcast_to(np.True_, self.values.shape)
        wanted = "only sequences have steps; this cohort is a table."
        return everywhere, [] if steps is None else [wrong("steps", steps, wanted)]

    def steps_in_words(self, steps: Any) -> str:
        return ""

    def slots(self, columns: Collection[int], allowed: Mask) -> Slots:
        """One for each feature, also for those that never change: slot k is feature k."""
        return Slots(self.values, read_only(np.arange(self.values.shape[1])))

    def notices(self, steps: Any, dtype: torch.dtype) -> list[str]:
        return []

    def places(self, slots: Slots, rows: Rows) -> TablePlaces:
        return TablePlaces(slots.feature)

    def trial(self, slots: Slots, order: Rows, batch_size: int) -> Sample:
        from maxflip.data.sample import Sample

        return Sample.of_table(self.values, order)

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
        import torch

        from maxflip.data.inputs import TableInputs, as_tensor

        values = self.values
        x = filled(lambda part: values[rows[part]], (len(rows), values.shape[1]))
        return TableInputs(as_tensor(x, device), torch.as_tensor(columns, device=device), size, derived)

    def batches(self, rows: Rows, batch_size: int) -> Sequence[Rows | slice]:
        return [slice(begin, begin + batch_size) for begin in range(0, len(rows), batch_size)]

    def chunks(self, rows: Rows, size: int, batch_size: int) -> list[Rows]:
        return [rows[begin : begin + size] for begin in range(0, len(rows), size)]
