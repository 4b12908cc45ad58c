"""Layout: how the samples of a cohort are stored in its values. Everything that differs between a table and sequences.

A Cohort has a layout. All other code calls the layout and never checks the kind of cohort. There are two layouts:
`TableLayout` (layout_of_tables) and `SequenceLayout` (layout_of_sequences).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from maxflip._util.faults import Fault
from maxflip._util.frozen import Frozen
from maxflip._util.types import Floats, Mask, Rows
from maxflip.data.derived import Derived
from maxflip.data.places import FullPlaces
from maxflip.data.slots import Slots

if TYPE_CHECKING:
    import torch

    from maxflip.data.inputs import Inputs
    from maxflip.data.sample import Sample
    from maxflip.data.sequences import Ragged


class AskedOfSequences(Protocol):
    """What a layout needs of a classifier."""

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:
        """Why it cannot evaluate sequences, or not with missing values or with these static features."""
        ...


@dataclass(frozen=True, eq=False)
class Layout(ABC, Frozen):
    """n samples over F features.

    values: (n, F) of a table; (N, F) of sequences, with a row per step and NaN where nothing was measured
    """

    values: Floats
    noun: ClassVar[str]  # name of a sample in messages
    numbered: ClassVar[str]  # ... before its number
    can_have_levers: ClassVar[bool] = False

    @property
    def ragged(self) -> Ragged | None:
        """The rows of each sequence in `values`; None for a table"""
        return None

    @property
    def without_levers(self) -> Layout:
        """The same without columns of levers"""
        return self

    @property
    def width(self) -> int:
        """F: number of features that the model sees"""
        return int(self.values.shape[1])

    # The samples themselves

    @abstractmethod
    def __len__(self) -> int:
        """n"""

    @abstractmethod
    def in_order(self, by_id: Rows) -> Rows:
        """Samples in the order in which they are processed.   by_id (n,): samples in the order of their ids"""

    @abstractmethod
    def place_of(self, row: int) -> tuple[int, str]:
        """The sample to which a row of `values` belongs, and its position for messages: ", step 3", or ""."""

    @abstractmethod
    def measured(self, column: int) -> tuple[Floats, Rows]:
        """All values of a feature, and the sample of each"""

    @abstractmethod
    def spread(self, rows: Rows, columns: Rows) -> Floats:
        """(A,): spread of each of these features (A,) over these samples; see data.scale"""

    @abstractmethod
    def as_rows(self, rows: Rows | slice) -> Floats | None:
        """(b, F): samples as inputs of a model of rows; None for sequences"""

    @property
    @abstractmethod
    def is_one_row(self) -> bool:
        """Whether all samples are known to be equal."""

    @abstractmethod
    def of_each(self, features: tuple[str, ...]) -> tuple[str, tuple[str, ...], Floats]:
        """The columns with one number per sample: their kind in words, their names (S,), their values (n, S)"""

    @abstractmethod
    def by_length(self, order: Rows, groups: int) -> Rows:
        """(n,): the group of each sample: groups of nearly equal size and similar lengths.

        order (n,): the samples by length. InputError for a table, or if there are more groups than samples.
        """

    @abstractmethod
    def moved(self, rows: Rows, changes: Any, derived: Derived) -> Layout:
        """Only these samples, after their changes (in the form of `Plan.changes`) and what follows from them"""

    def touched(self, changes: Floats) -> Mask:
        """(c, F): the features that levers change, for changes (c, K) of a table"""
        return np.zeros((len(changes), self.width), dtype=bool)

    @abstractmethod
    def rows_of(self, samples: Rows) -> Rows:
        """The rows of `values` of these samples, sample by sample"""

    @abstractmethod
    def owners(self, rows: Rows) -> tuple[Rows, Rows]:
        """The sample and the step of some rows of `values`; for a table step 0"""

    # As points whose distances are compared

    points_in_words: ClassVar[str]  # the distance in words

    @property
    @abstractmethod
    def points(self) -> Floats:
        """(n, D): a point for each sample; NaN where nothing was ever measured"""

    @abstractmethod
    def is_like(self, other: Layout) -> bool:
        """Whether the other is of the same kind and has the same static features."""

    @abstractmethod
    def frame_faults(self, name: str, given: Any) -> list[str]:
        """Why the frame or array `given` for the argument `name` cannot be a cohort of this kind"""

    # Parts of a Problem

    any_steps: ClassVar[str | None]  # argument `steps` of a Problem if all values may change

    @abstractmethod
    def classifier_faults(self, classifier: AskedOfSequences) -> list[str]:
        """Why a classifier cannot evaluate such samples"""

    @abstractmethod
    def function_faults(self, functions: Sequence[str]) -> list[str]:
        """Why budgets cannot be functions.   functions: their names in messages"""

    @abstractmethod
    def read_steps(self, steps: Any, where: Callable[[int], str]) -> tuple[Mask, list[Fault]]:
        """Read the argument `steps` of a Problem: which values may change, in the shape of `values`; and faults.

        where(j): name of sample j in messages
        """

    @abstractmethod
    def steps_in_words(self, steps: Any) -> str:
        """What `read_steps` accepted, in words; empty for a table"""

    @abstractmethod
    def slots(self, columns: Collection[int], allowed: Mask) -> Slots:
        """The positions that may change.   columns: features that may change   allowed: from `read_steps`"""

    @abstractmethod
    def notices(self, steps: Any, dtype: torch.dtype) -> list[str]:
        """Notices about the steps that may change, and about times that a model of this dtype cannot tell apart."""

    @abstractmethod
    def places(self, slots: Slots, rows: Rows) -> FullPlaces:
        """The positions of these samples' slots, with everything that a plan stores about them"""

    # Inputs of a model; `batch_size` is that of the classifier, counted in rows of a table

    @abstractmethod
    def trial(self, slots: Slots, order: Rows, batch_size: int) -> Sample:
        """Samples on which a model is tried.   order (n,): the order in which samples are processed"""

    @abstractmethod
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
        """The model inputs of these samples, as a function of changes of the slots `columns`.

        size: rows of a table in a call of the model; None: all. For sequences, batches depend on `batch_size`.
        """

    @abstractmethod
    def batches(self, rows: Rows, batch_size: int) -> Sequence[Rows | slice]:
        """Positions in `rows`, one batch after the other."""

    @abstractmethod
    def chunks(self, rows: Rows, size: int, batch_size: int) -> list[Rows]:
        """Parts of consecutive rows, at most `size` each; for sequences, which are sorted by length, at most a batch
        each."""
