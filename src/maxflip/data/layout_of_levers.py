"""The layout of a table with levers: a column for each lever stands behind those of the features, and starts at 0.

The change of such a column is the switch, 0 or 1. Budgets, pools, plans and files treat it as any other column; what
the model sees of it is decided here.
"""

# ruff: noqa: ARG002  what every layout is asked, this one does not always need

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip._util.parallel import filled
from maxflip._util.types import Floats, Mask, Rows
from maxflip.data.derived import Derived
from maxflip.data.layout import Layout
from maxflip.data.layout_of_tables import TableLayout
from maxflip.data.levers import Levers
from maxflip.data.slots import Slots

if TYPE_CHECKING:
    import torch

    from maxflip.data.inputs import Inputs
    from maxflip.data.sample import Sample


@dataclass(frozen=True, eq=False)
class LeverLayout(TableLayout):
    """values (n, F + L), of which the last L are 0"""

    levers: Levers

    @classmethod
    def of(cls, values: Floats, levers: Levers) -> LeverLayout:
        """values (n, F)"""
        return cls(np.hstack([values, np.zeros((len(values), len(levers)))]), levers)

    @property
    def without_levers(self) -> TableLayout:
        return TableLayout(self.values[:, : self.width])

    @property
    def width(self) -> int:
        return int(self.values.shape[1]) - len(self.levers)

    def after(self, rows: Rows, changes: Floats) -> Floats:
        """(B, F): samples after changes (B, F + L), without what follows from these"""
        x, d = self.values[rows, : self.width], changes[:, : self.width]
        return self.levers.done(x, changes[:, self.width :]) + d

    def as_rows(self, rows: Rows | slice) -> Floats | None:
        return self.values[rows, : self.width]

    def of_each(self, features: tuple[str, ...]) -> tuple[str, tuple[str, ...], Floats]:
        return super().of_each(features)[0], features[: self.width], self.values[:, : self.width]

    def moved(self, rows: Rows, changes: Any, derived: Derived) -> Layout:
        return TableLayout(derived.after(self.values[rows, : self.width], self.after(rows, changes)))

    def touched(self, changes: Floats) -> Mask:
        return self.levers.touched(changes[:, self.width :], self.width)

    @property
    def points(self) -> Floats:
        return self.values[:, : self.width]

    def slots(self, columns: Any, allowed: Mask) -> Slots:
        table = super().slots(columns, allowed)
        return LeverSlots(table.start, table.feature, self.levers)

    def trial(self, slots: Slots, order: Rows, batch_size: int) -> Sample:
        from maxflip.data.sample import Sample

        return Sample.of_table(self.values[:, : self.width], order)

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

        from maxflip.data.inputs import LeverInputs, as_tensor

        values, width = self.values, self.width
        x = filled(lambda part: values[rows[part], :width], (len(rows), width))
        return LeverInputs.of(as_tensor(x, device), torch.as_tensor(columns, device=device), self.levers, size, derived)


@dataclass(frozen=True, eq=False)
class LeverSlots(Slots):
    """The slots of a table with levers: a switch changes where the features of a sample stand."""

    levers: Levers

    @property
    def is_lever(self) -> Mask:
        return np.arange(len(self)) >= len(self) - len(self.levers)

    def base(self, rows: Rows, changes: Floats) -> Floats:
        width = len(self) - len(self.levers)
        start = self.start[rows]
        return np.hstack([self.levers.done(start[:, :width], changes[:, width:]), start[:, width:]])

    def switches_are_lawful(self, rows: Rows, changes: Floats) -> Mask:
        return self.levers.lawful(rows, changes[:, len(self) - len(self.levers) :])
