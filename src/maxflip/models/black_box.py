"""BlackBoxClassifier: any function from rows to class probabilities, without gradients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from maxflip._util.messages import counted, first_line, listed, shown
from maxflip._util.types import Floats, Scores
from maxflip.data.inputs import Given
from maxflip.data.tables import is_listing
from maxflip.errors import InputError, ModelError, ResourceError
from maxflip.models.base import LinearForm
from maxflip.models.options import read_options
from maxflip.models.snapshot import ModuleSnapshot


@dataclass(frozen=True, eq=False, init=False)
class BlackBoxClassifier:
    """Any model with class probabilities, such as boosted trees: a function (B, F) -> (B, k).

    It has no gradients, so features cannot change by any amount: named actions and choices are tried one by one, and
    the bound of the plan is proved.

    Args:
        predict_proba: gets rows as float64 array and returns probabilities that sum to 1; a person's do not depend on
            the other rows.
        classes: names of the k columns; None: numbers.
        features: names of the F columns. Then the function gets a pandas frame with these columns; None: an array.
        batch_size: largest number of rows per call.
    """

    predict_proba: Callable[[Any], Any]
    classes: tuple[str, ...] | None
    features: tuple[str, ...] | None
    batch_size: int

    output: ClassVar[Scores] = "probabilities"
    dtype: ClassVar[torch.dtype] = torch.float64
    device: ClassVar[torch.device] = torch.device("cpu")
    is_decision: ClassVar[bool] = False
    has_gradients: ClassVar[bool] = False
    apart: ClassVar[float] = 0.0

    def __init__(
        self,
        predict_proba: Any,
        *,
        classes: Sequence[Any] | None = None,
        features: Sequence[str] | None = None,
        batch_size: int = 65_536,
    ) -> None:
        names, faults = read_options(classes, batch_size)
        if not callable(predict_proba):
            faults.append(f"predict_proba: got {shown(predict_proba)}; wanted a function, such as model.predict_proba.")
        if features is not None and (not is_listing(features) or not all(isinstance(f, str) for f in features)):
            faults.append(f"features: got {shown(features)}; wanted a list of names of columns.")
        if faults:
            raise InputError(faults)
        assign = object.__setattr__
        assign(self, "predict_proba", predict_proba)
        assign(self, "classes", names)
        assign(self, "features", None if features is None else tuple(features))
        assign(self, "batch_size", batch_size)

    @property
    def members(self) -> tuple[BlackBoxClassifier]:
        return (self,)

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        with torch.inference_mode(False):
            yield

    def raw(self, x: Given) -> torch.Tensor:
        if not isinstance(x, torch.Tensor):
            raise ModelError("a BlackBoxClassifier takes tables, not sequences.")
        rows = x.detach().cpu().double().numpy()
        try:
            found = self.predict_proba(self._as_given(rows))
            return torch.as_tensor(np.array(found, dtype=np.float64))
        except MemoryError as error:
            says = f"the model ran out of memory on a batch of shape {rows.shape}. Give a smaller batch_size."
            raise ResourceError(says) from error
        except (Exception, SystemExit) as error:
            says = f"the model raised {type(error).__name__} on a batch of shape {rows.shape}: {first_line(error)}."
            raise ModelError(says) from error

    def _as_given(self, rows: Floats) -> Any:
        if self.features is None:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=list(self.features))

    def scores(self, x: Given) -> torch.Tensor:
        return self.raw(x)

    def log_scores(self, x: Given) -> torch.Tensor:
        return self.raw(x).log()

    def check_features(self, features: Sequence[str]) -> None:
        """Raise ModelError if the cohort has other columns than `features`, or in another order."""
        if self.features is not None and tuple(features) != self.features:
            known = f"{counted(len(self.features), 'column')}: {listed(self.features)}"
            raise ModelError(f"the model takes {known}; the cohort has {len(features)}: {listed(features)}.")

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:  # noqa: ARG002
        return []

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:  # noqa: ARG002
        return ["classifier: a BlackBoxClassifier takes tables, not sequences."]

    def snapshot(self) -> ModuleSnapshot:
        return ModuleSnapshot(None)

    def linear(self, width: int) -> LinearForm | None:  # noqa: ARG002
        return None
