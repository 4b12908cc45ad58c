"""Names and places inside a scikit-learn model, for conversion and for messages; nothing here imports scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.types import Floats
from maxflip.errors import InputError

# For each column at some point of a pipeline: which raw column it is, unchanged, or None where it was computed.
Raw = tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """An estimator and where it stands: "model, step 'scale'"."""

    estimator: Any
    place: str = "model"

    @property
    def kind(self) -> str:
        """The class name of scikit-learn's own; the dotted name of any other, a subclass say, which is on no list."""
        cls = type(self.estimator)
        own = cls.__module__.split(".")[0] == "sklearn"
        return cls.__name__ if own else f"{cls.__module__}.{cls.__qualname__}"

    def inside(self, what: str, estimator: Any) -> Part:
        return Part(estimator, f"{self.place}, {what}")

    def refused(self, why: str) -> InputError:
        return InputError(f"{self.place}: {self.kind} {why}")

    def fitted(self, attribute: str) -> Any:
        """An attribute that fit() makes."""
        try:
            return getattr(self.estimator, attribute)
        except AttributeError:
            search = ", with refit=True" if getattr(self.estimator, "refit", True) is False else ""
            raise self.refused(f"is not fitted: it has no {attribute}. Call fit first{search}.") from None


@dataclass(eq=False)
class Seen:
    """What the model shows of the data it was trained on, per raw column (F,): from where to where it is tried.

    `categories` of columns that an encoder turns into indicators: these cannot change by amounts.
    `scaled`: columns whose numbers come from a scaler; `is_range`: from the ends of the column, not from its moments.
    """

    width: int
    centre: Floats = field(init=False)
    spread: Floats = field(init=False)
    scaled: NDArray[np.bool_] = field(init=False)
    is_range: NDArray[np.bool_] = field(init=False)
    categories: dict[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.centre, self.spread = np.zeros(self.width), np.ones(self.width)
        self.scaled, self.is_range = np.zeros(self.width, dtype=bool), np.zeros(self.width, dtype=bool)

    def note(self, raw: Raw, centre: Any, spread: Any = None) -> None:
        """Statistics (w,) of the columns `raw`; what is not finite, or no spread, is passed over."""
        for i, column in enumerate(raw):
            if column is None:
                continue
            if np.isfinite(centre[i]):
                self.centre[column] = centre[i]
            if spread is not None and np.isfinite(spread[i]) and spread[i] > 0:
                self.spread[column] = spread[i]

    def note_scaler(self, raw: Raw, centre: Any, spread: Any, *, is_range: bool) -> None:
        """The same of a scaler: what it holds for the middle and the size of each column, (w,) each.

        A scaler writes 1 for the size of a column that has none.
        """
        self.note(raw, centre, spread)
        for i, column in enumerate(raw):
            if column is not None and np.isfinite(centre[i]) and np.isfinite(spread[i]) and spread[i] not in (0.0, 1.0):
                self.scaled[column], self.is_range[column] = True, is_range
