"""The model inputs of samples, as a function of changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch

from maxflip._util.types import Floats, Rows
from maxflip.data.derived import Derived, Rule
from maxflip.data.levers import Levers
from maxflip.data.sequences import Ragged
from maxflip.data.slots import Slots


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences padded to the same length: the input of a model of sequences.

    x (B, T, F): 0 where nothing was measured and after the end   observed (B, T, F)   time (B, T): after the end, the
    last time is repeated   length (B,)   static (B, S)
    """

    x: torch.Tensor
    observed: torch.Tensor
    time: torch.Tensor
    length: torch.Tensor
    static: torch.Tensor

    def __len__(self) -> int:
        return len(self.x)

    @property
    def shape(self) -> torch.Size:
        return self.x.shape

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.x, self.observed, self.time, self.length, self.static

    def to(self, device: torch.device, dtype: torch.dtype) -> Batch:
        """With all numbers in this dtype; masks and lengths keep theirs."""
        return Batch(
            self.x.to(device, dtype),
            self.observed.to(device),
            self.time.to(device, dtype),
            self.length.to(device),
            self.static.to(device, dtype),
        )

    def clone(self) -> Batch:
        return Batch(*(tensor.clone() for tensor in self.tensors))

    def equal(self, other: Batch) -> bool:
        return all(torch.equal(a, b) for a, b in zip(self.tensors, other.tensors, strict=True))


Given = torch.Tensor | Batch  # input of a model: (B, F), or a Batch


def as_tensor(array: Floats, device: torch.device) -> torch.Tensor:
    """The array as a tensor, without a copy if possible. Read-only arrays are copied, because torch does not support
    them."""
    return torch.as_tensor(array if array.flags.writeable else array.copy(), device=device)


def followed(rule: Rule, before: list[torch.Tensor], after: list[torch.Tensor], own: torch.Tensor) -> torch.Tensor:
    """The values of a derived feature: computed where one of its parts has moved, else its own, to the last bit.

    Its gradient is that of the expression everywhere: a search begins where nothing has moved yet.
    """
    computed = rule.on(after)
    still = own - (computed.detach() - computed)  # own - 0.0
    return torch.where(rule.is_moved(before, after), computed, still)


def with_derived(derived: Derived, x: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """Rows (b, F) after changes, with derived features as they follow.   x (b, F): before"""
    for rule in derived.rules:
        parts = [x[:, i] for i in rule.parts], [moved[:, i] for i in rule.parts]
        values = followed(rule, *parts, x[:, rule.column])
        moved = moved.index_copy(1, torch.tensor([rule.column], device=x.device), values[:, None])
    return moved


class Inputs(Protocol):
    """Some samples of a cohort, on a device."""

    @property
    def x(self) -> torch.Tensor:
        """(B, F): the rows of a table; (B, 0) for sequences"""
        ...

    def __len__(self) -> int: ...

    def at(self, which: torch.Tensor | slice, d: torch.Tensor | None = None) -> Given:
        """The samples `which` with the changes d (b, A) of the selected slots added, and what follows from them

        d may require a gradient.
        """
        ...

    def batches(self, which: torch.Tensor) -> Iterator[torch.Tensor | slice]:
        """Positions in `which`, (b,), one batch after the other."""
        ...


@dataclass(eq=False)
class TableInputs:
    """x (B, F)   columns (A,): the selected slots   size: rows in a batch; None: all"""

    x: torch.Tensor
    columns: torch.Tensor
    size: int | None = None
    derived: Derived = field(default_factory=Derived)

    def __len__(self) -> int:
        return len(self.x)

    def at(self, which: torch.Tensor | slice, d: torch.Tensor | None = None) -> torch.Tensor:
        x = self.x[which]
        if d is None:
            return x
        moved = x + d if len(self.columns) == x.shape[1] else x.index_add(1, self.columns, d)
        return with_derived(self.derived, x, moved)

    def batches(self, which: torch.Tensor) -> Iterator[slice]:
        size = self.size or max(1, len(which))
        for begin in range(0, len(which), size):
            yield slice(begin, begin + size)


@dataclass(eq=False)
class LeverInputs:
    """Samples of a table with levers, as a model sees them.

    values (B, F)   features: positions, in changes (b, A), of those of features   columns: the feature of each
    switched: positions of those of levers   which: the lever of each   size: rows in a batch; None: all
    """

    values: torch.Tensor
    features: torch.Tensor
    columns: torch.Tensor
    switched: torch.Tensor
    which: torch.Tensor
    levers: Levers
    size: int | None
    derived: Derived

    @classmethod
    def of(
        cls, values: torch.Tensor, columns: torch.Tensor, levers: Levers, size: int | None, derived: Derived
    ) -> LeverInputs:
        """columns (A,): slots whose changes are given"""
        width = values.shape[1]
        features, switched = (columns < width).nonzero().flatten(), (columns >= width).nonzero().flatten()
        return cls(values, features, columns[features], switched, columns[switched] - width, levers, size, derived)

    @property
    def x(self) -> torch.Tensor:
        """(B, F + L): with zeros for the levers, so that linear forms can be looked up by slot"""
        return torch.nn.functional.pad(self.values, (0, len(self.levers)))

    def __len__(self) -> int:
        return len(self.values)

    def at(self, which: torch.Tensor | slice, d: torch.Tensor | None = None) -> torch.Tensor:
        x = base = self.values[which]
        if d is None:
            return x
        if len(self.which):
            switches = x.new_zeros(len(x), len(self.levers)).index_copy(1, self.which, d[:, self.switched].detach())
            base = self.levers.done(x, switches)
        return with_derived(self.derived, x, base.index_add(1, self.columns, d[:, self.features]))

    def batches(self, which: torch.Tensor) -> Iterator[slice]:
        yield from TableInputs(self.values, self.columns, self.size).batches(which)


class SequenceInputs:
    """The sequences of some samples, from values (N, F) with one row per step, padded to x (B, T, F).

    cell (B, A): index of each slot in the flattened sequence (T F)   there (B, A): whether the sequence has the slot
    """

    def __init__(
        self,
        values: Floats,
        ragged: Ragged,
        slots: Slots,
        rows: Rows,
        columns: Rows,
        device: torch.device,
        most_steps: int,
        derived: Derived,
    ) -> None:
        lengths = ragged.lengths[rows]
        longest, width = int(lengths.max(initial=1)), values.shape[1]
        from_end = np.minimum(np.arange(longest), lengths[:, None] - 1)  # (B, T): the last step is repeated
        steps = ragged.begin[rows][:, None] + from_end
        ended = np.arange(longest) >= lengths[:, None]
        padded = values[steps]
        observed = ~np.isnan(padded) & ~ended[:, :, None]
        self.x = torch.empty(len(rows), 0)
        self.most_steps = most_steps
        self.lengths = lengths
        self.derived = derived
        self.full = Batch(
            torch.as_tensor(np.where(observed, padded, 0.0), device=device),
            torch.as_tensor(observed, device=device),
            torch.as_tensor(ragged.times[steps], device=device),
            torch.as_tensor(lengths, device=device),
            torch.as_tensor(ragged.static[rows], device=device),
        )
        step = slots.steps(rows, columns)
        self.there = torch.as_tensor(step >= 0, device=device)
        self.cell = torch.as_tensor(np.where(step >= 0, step * width + slots.feature[columns], 0), device=device)

    def __len__(self) -> int:
        return len(self.lengths)

    def at(self, which: torch.Tensor | slice, d: torch.Tensor | None = None) -> Batch:
        length = self.full.length[which]
        longest = int(length.max())
        x = self.full.x[which, :longest]
        batch = Batch(
            x,
            self.full.observed[which, :longest],
            self.full.time[which, :longest],
            length,
            self.full.static[which],
        )
        if d is None:
            return batch
        flat = x.reshape(len(x), -1)
        # For a slot that the sequence does not have, 0 is added to its first value.
        moved = flat.scatter_add(1, self.cell[which], torch.where(self.there[which], d, 0.0))
        return replace(batch, x=self._with_derived(batch, moved.reshape(x.shape)))

    def _with_derived(self, before: Batch, moved: torch.Tensor) -> torch.Tensor:
        """moved (b, T, F): with derived features computed in the steps in which they are measured"""
        for rule in self.derived.rules:
            whose, step = torch.nonzero(before.observed[:, :, rule.column], as_tuple=True)
            parts = [before.x[whose, step, i] for i in rule.parts], [moved[whose, step, i] for i in rule.parts]
            values = followed(rule, *parts, before.x[whose, step, rule.column])
            moved = moved.index_put((whose, step, torch.full_like(step, rule.column)), values)
        return moved

    def batches(self, which: torch.Tensor) -> Iterator[torch.Tensor]:
        """Batches of sequences of similar lengths, each of at most `most_steps` steps, padding included."""
        lengths = self.lengths[which.cpu().numpy()]
        for part in similar(lengths, self.most_steps):
            yield torch.as_tensor(part, device=which.device)


def similar(lengths: Rows, most_steps: int) -> list[Rows]:
    """Batches of sequences of similar lengths, as positions (b,) in lengths (n,), with at most `most_steps` steps each,
    padding included."""
    order = np.argsort(-lengths, kind="stable")
    parts = []
    while len(order):
        size = max(1, most_steps // int(lengths[order[0]]))
        parts.append(order[:size])
        order = order[size:]
    return parts
