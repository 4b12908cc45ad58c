"""Layout: how the samples of a cohort lie in its values. All that differs between a table and sequences stands here.

A Cohort has a layout, and everyone else asks the layout instead of asking what kind of cohort it is. There are two:
`TableLayout` (layout_of_tables) and `SequenceLayout` (layout_of_sequences).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

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
    """What a layout asks a classifier."""

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:
        """Why it cannot be asked about sequences, or about some with missing values or such static features."""
        ...


@dataclass(frozen=True, eq=False)
class Layout(ABC, Frozen):
    """n samples over F features.

    values: (n, F) of a table; (N, F) of sequences, with a row per step and NaN where nothing was measured
    """

    values: Floats
    noun: ClassVar[str]  # what a sample is called in messages
    numbered: ClassVar[str]  # ... and before its number

    @property
    def ragged(self) -> Ragged | None:
        """Where sequences lie in `values`; None of a table"""
        return None

    # The samples themselves

    @abstractmethod
    def __len__(self) -> int:
        """n"""

    @abstractmethod
    def in_order(self, by_id: Rows) -> Rows:
        """Samples in the order in which they are worked; by_id (n,): in that of their ids"""

    @abstractmethod
    def place_of(self, row: int) -> tuple[int, str]:
        """Whose a row of `values` is, and what else to say of its place: ", step 3", or nothing."""

    @abstractmethod
    def measured(self, column: int) -> tuple[Floats, Rows]:
        """All values of a feature, and whose they are"""

    @abstractmethod
    def spread(self, rows: Rows, columns: Rows) -> Floats:
        """(A,): how much the values of each of some features (A,) spread over some samples; see data.scale"""

    @abstractmethod
    def as_rows(self, rows: Rows | slice) -> Floats | None:
        """(b, F): samples as a model that knows rows alone can be called with them; None where they are no rows"""

    @property
    @abstractmethod
    def is_one_row(self) -> bool:
        """Whether all samples are certainly the same."""

    @abstractmethod
    def of_each(self, features: tuple[str, ...]) -> tuple[str, tuple[str, ...], Floats]:
        """What there is one number of per sample: what such a column is called, the names (S,), the values (n, S)"""

    @abstractmethod
    def by_length(self, order: Rows, groups: int) -> Rows:
        """(n,): the group of each sample, where each has as many and those of similar lengths are together.

        order (n,): of samples   InputError where that cannot be.
        """

    @abstractmethod
    def moved(self, rows: Rows, changes: Any, derived: Derived) -> Layout:
        """These samples alone, after their changes, which are given as a plan has them, and what follows from them"""

    @abstractmethod
    def rows_of(self, samples: Rows) -> Rows:
        """The rows of `values` that are theirs, sample by sample"""

    @abstractmethod
    def owners(self, rows: Rows) -> tuple[Rows, Rows]:
        """Whose some rows of `values` are, and which steps; of a table step 0"""

    # As points, to be compared with each other

    points_in_words: ClassVar[str]  # how the distance of points is measured

    @property
    @abstractmethod
    def points(self) -> Floats:
        """(n, D): what a sample is compared by; NaN where nothing was ever measured"""

    @abstractmethod
    def is_like(self, other: Layout) -> bool:
        """Whether the other is of the same kind and has the same static features."""

    @abstractmethod
    def frame_faults(self, name: str, given: Any) -> list[str]:
        """Why a frame or array `given` as the argument `name` cannot be a cohort of this kind"""

    # What is asked about them

    any_steps: ClassVar[str | None]  # the argument `steps` of a Problem where every value may change

    @abstractmethod
    def classifier_faults(self, classifier: AskedOfSequences) -> list[str]:
        """Why a classifier cannot be asked about such samples"""

    @abstractmethod
    def function_faults(self, functions: Sequence[str]) -> list[str]:
        """Why budgets cannot be functions; functions: what messages call them"""

    @abstractmethod
    def read_steps(self, steps: Any, where: Callable[[int], str]) -> tuple[Mask, list[Fault]]:
        """The argument `steps` of a Problem: which values may change at all, as `values`; and its faults.

        where(j): names a sample
        """

    @abstractmethod
    def steps_in_words(self, steps: Any) -> str:
        """What `read_steps` accepted; nothing of a table"""

    @abstractmethod
    def slots(self, columns: Collection[int], allowed: Mask) -> Slots:
        """The places where something may change; columns: of features that may   allowed: by `read_steps`"""

    @abstractmethod
    def notices(self, steps: Any, dtype: torch.dtype) -> list[str]:
        """What to tell of the steps that were asked for, and of what a model of that dtype makes of them."""

    @abstractmethod
    def places(self, slots: Slots, rows: Rows) -> FullPlaces:
        """Where the slots of these samples lie, with all that a plan tells of them by itself"""

    # What a model is called with; `batch_size` is always that of the classifier, in rows of a table

    @abstractmethod
    def trial(self, slots: Slots, order: Rows, batch_size: int) -> Sample:
        """Samples that a model is tried on; order (n,): those that all are worked in"""

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
        """What a model sees of these samples as a function of changes of the slots `columns`.

        size: rows of a table that it is asked about at a time; None: all. Of sequences: a batch of them.
        """

    @abstractmethod
    def batches(self, rows: Rows, batch_size: int) -> Sequence[Rows | slice]:
        """Positions in `rows`, as many at a time as a model is asked about."""

    @abstractmethod
    def chunks(self, rows: Rows, size: int, batch_size: int) -> list[Rows]:
        """Consecutive rows, at most `size` together; of sequences, which come by length, as many as make a batch."""
