"""TreeClassifier: boosted trees and forests, read from the fitted model or from its library's own file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from maxflip._util.messages import shown
from maxflip._util.types import Floats, Scores
from maxflip.data.inputs import Given
from maxflip.errors import InputError, ModelError
from maxflip.models.base import LinearForm
from maxflip.models.columns import check_columns
from maxflip.models.options import read_options
from maxflip.models.snapshot import ModuleSnapshot
from maxflip.models.trees.build import Read
from maxflip.models.trees.forest import Forest
from maxflip.models.trees.reading import read_trees

FLOAT32_APART = 2.5e-7  # two ways to compute a sigmoid in float32 differ by a few units of 6e-8


@dataclass(frozen=True, eq=False, init=False)
class TreeClassifier:
    """A tree ensemble with the probabilities of its library: which rows go left is told exactly, to the last bit.

    LightGBM, XGBoost (`gbtree`), CatBoost, and of scikit-learn RandomForest, ExtraTrees, GradientBoosting,
    HistGradientBoosting and single decision trees, of two or more classes. The model is read and not kept; a file is
    read by maxflip itself, which runs nothing of it and needs no library.

    Trees have no gradients. Named actions and choices are tried one by one, and the bound of the plan is proved.
    Changes by any amount are searched through the thresholds, by Nearest and Prices, and need numba.

    Args:
        model: the fitted model, or the path of LightGBM's text, XGBoost's .json or .ubj, or CatBoost's .json.
        classes: other names for the model's classes, in its order; None: its own. A Booster, and the files of LightGBM
            and XGBoost, have none.
        batch_size: largest number of rows per call.

    Attributes:
        forest: all trees as arrays (maxflip.models.trees.forest.Forest).
        library: who trained it.
        feature_names: names of the training columns, if the model knows them.
        apart: how far probabilities may be from the library's own: rounding of its float32, otherwise 0.
    """

    forest: Forest
    library: str
    feature_names: tuple[str, ...] | None
    classes: tuple[str, ...] | None
    batch_size: int
    apart: float

    output: ClassVar[Scores] = "probabilities"
    dtype: ClassVar[torch.dtype] = torch.float64
    device: ClassVar[torch.device] = torch.device("cpu")
    is_decision: ClassVar[bool] = False
    has_gradients: ClassVar[bool] = False

    def __init__(self, model: Any, *, classes: Sequence[Any] | None = None, batch_size: int = 65_536) -> None:
        names, faults = read_options(classes, batch_size)
        if faults:
            raise InputError(faults)
        found = model if isinstance(model, Read) else read_trees(model)  # a job has read its file already
        for given, what in ((names, "classes"), (found.classes, "the model's own names")):
            if given is not None and len(given) != found.forest.n_classes:
                raise InputError(f"{what}: got {shown(given)}; the model has {found.forest.n_classes} classes.")
        assign = object.__setattr__
        assign(self, "forest", found.forest)
        assign(self, "library", found.library)
        assign(self, "feature_names", found.features)
        assign(self, "classes", found.classes if names is None else names)
        assign(self, "batch_size", batch_size)
        assign(self, "apart", FLOAT32_APART if found.forest.precision == "float32" else 0.0)

    @property
    def members(self) -> tuple[TreeClassifier]:
        return (self,)

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        with torch.inference_mode(False):
            yield

    def raw(self, x: Given) -> torch.Tensor:
        if not isinstance(x, torch.Tensor):
            raise ModelError("a TreeClassifier takes tables, not sequences.")
        rows = x.detach().cpu().double().numpy()
        self._check_values(rows)
        return torch.from_numpy(self.forest.probabilities(rows))

    def _check_values(self, rows: Floats) -> None:
        """What the library refuses is refused here too."""
        if rows.ndim != 2 or rows.shape[1] != self.forest.width:
            raise ModelError(f"the model takes {self.forest.width} columns; got rows of shape {rows.shape}.")
        if not self.forest.takes_missing and np.isnan(rows).any():
            raise ModelError("the model takes no missing values, and there are some among the rows.")
        if self.forest.largest < np.inf and (np.abs(rows) > self.forest.largest).any():
            raise ModelError(f"{self.library} takes no values beyond float32 (3.4e38), and there are some.")

    def scores(self, x: Given) -> torch.Tensor:
        return self.raw(x)

    def log_scores(self, x: Given) -> torch.Tensor:
        return self.raw(x).log()

    def check_features(self, features: Sequence[str]) -> None:
        """Raise ModelError unless the cohort's columns are the training columns, in that order."""
        check_columns(features, self.forest.width, self.feature_names)

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:
        """A sentence for each column with a budget at which trees split by categories."""
        columns = np.unique(self.forest.feature[self.forest.cat_begin >= 0])
        return [
            f"budgets: {features[i]!r} holds categories for the model, which no amount can change. Take it out of the "
            "budgets."
            for i in columns
            if features[i] in changing
        ]

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:  # noqa: ARG002
        return ["classifier: a TreeClassifier takes tables, not sequences."]

    def snapshot(self) -> ModuleSnapshot:
        return ModuleSnapshot(None)

    def linear(self, width: int) -> LinearForm | None:  # noqa: ARG002
        return None
