"""Names and places inside a scikit-learn model, for conversion and for messages; nothing here imports scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.types import Floats
from maxflip.errors import InputError

# For each column at some point of a pipeline: the raw column that it equals; None if it was computed.
Raw = tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """An estimator and its place in the model: "model, step 'scale'"."""

    estimator: Any
    place: str = "model"

    @property
    def kind(self) -> str:
        """The class name for scikit-learn's own classes; the dotted name for others, which are never on a list."""
        cls = type(self.estimator)
        own = cls.__module__.split(".")[0] == "sklearn"
        return cls.__name__ if own else f"{cls.__module__}.{cls.__qualname__}"

    def inside(self, what: str, estimator: Any) -> Part:
        return Part(estimator, f"{self.place}, {what}")

    def refused(self, why: str) -> InputError:
        return InputError(f"{self.place}: {self.kind} {why}")

    def fitted(self, attribute: str) -> Any:
        """An attribute set by fit()."""
        try:
            return getattr(self.estimator, attribute)
        except AttributeError:
            search = ", with refit=True" if getattr(self.estimator, "refit", True) is False else ""
            raise self.refused(f"is not fitted: it has no {attribute}. Call fit first{search}.") from None


@dataclass(eq=False)
class Seen:
    """Statistics of the training data found in the model, per raw column (F,). They determine the test rows.

    `categories`: of columns that an encoder turns into indicators; these cannot change by amounts.
    `scaled`: columns with statistics of a scaler; `is_range`: from minimum and maximum, not mean and deviation.
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
        """Store statistics (w,) of the columns `raw`; values that are not finite, or spreads of 0, are skipped."""
        for i, column in enumerate(raw):
            if column is None:
                continue
            if np.isfinite(centre[i]):
                self.centre[column] = centre[i]
            if spread is not None and np.isfinite(spread[i]) and spread[i] > 0:
                self.spread[column] = spread[i]

    def note_scaler(self, raw: Raw, centre: Any, spread: Any, *, is_range: bool) -> None:
        """Store location and scale (w,) of a scaler. A scale of 1 is skipped: scalers use it for constant columns."""
        self.note(raw, centre, spread)
        for i, column in enumerate(raw):
            if column is not None and np.isfinite(centre[i]) and np.isfinite(spread[i]) and spread[i] not in (0.0, 1.0):
                self.scaled[column], self.is_range[column] = True, is_range
