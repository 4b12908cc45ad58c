"""SklearnClassifier: a fitted scikit-learn classifier, converted exactly, with gradients in the raw columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from maxflip._util.messages import first_line
from maxflip.errors import MaxflipError, ModelError
from maxflip.models.columns import check_columns
from maxflip.models.sklearn.check import check_agreement
from maxflip.models.sklearn.heads import check_known, convert_classifier
from maxflip.models.sklearn.parts import Part, Seen
from maxflip.models.torch_module import TorchClassifier


@dataclass(frozen=True, eq=False, init=False)
class SklearnClassifier(TorchClassifier):
    """A fitted scikit-learn model, converted: softmax(logits(x)) = model.predict_proba(x) over raw columns x (B, F).

    Logistic regression, linear discriminant analysis, MLPClassifier, one-vs-rest and sigmoid-calibrated ones, alone,
    in a Pipeline behind scalers, PCA, SimpleImputer, ColumnTransformer and OneHotEncoder, or inside a search. Anything
    else is refused by name. The model is read, called once to compare the scores, and not kept.

    Models without probabilities (LinearSVC, RidgeClassifier, Perceptron, SGDClassifier with a hinge) have
    output="decision": a margin is in units of decision_function. With two classes, the wanted one passes if
    decision_function, or its negative, is at least the margin; with more, if it exceeds every unwanted one by as much.

    Args:
        model: the fitted model.
        classes: other names for the model's classes, in its order; None: its own, as texts.
        device: device for the computation.
        batch_size: largest number of rows per call.

    Attributes:
        output: "logits" or "decision".
        n_features: F.
        feature_names: names of the training columns, if it was trained on a frame.
        frozen_columns: raw columns with codes of categories, read by an encoder; they cannot change by amounts.
        apart: the largest observed difference from the model's own scores, due to rounding.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    frozen_columns: tuple[int, ...]
    seen: Seen

    def __init__(
        self,
        model: Any,
        *,
        classes: Sequence[str] | None = None,
        device: torch.device | str = "cpu",
        batch_size: int = 8192,
    ) -> None:
        part = Part(model)
        check_known(part)
        try:
            with torch.inference_mode(False):  # tensors made in that mode would have no gradient later
                converted = _convert(part)
        except MaxflipError:
            raise
        except Exception as error:  # attributes that differ from those of fit()
            why = f"{type(error).__name__}: {first_line(error)}"
            raise ModelError(f"model: {part.kind} could not be converted: {why}.") from error
        super().__init__(
            converted.scores.to(device),
            output=converted.output,
            classes=classes or converted.classes,
            dtype=torch.float64,
            device=device,
            batch_size=batch_size,
        )
        assign = object.__setattr__
        assign(self, "n_features", converted.seen.width)
        assign(self, "feature_names", converted.names)
        assign(self, "frozen_columns", tuple(sorted(converted.seen.categories)))
        assign(self, "seen", converted.seen)
        assign(self, "apart", converted.apart)

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:  # noqa: ARG002
        return ["classifier: a scikit-learn model takes tables, not sequences."]

    def check_features(self, features: Sequence[str]) -> None:
        """Raise ModelError unless the cohort's columns are the training columns, in that order."""
        check_columns(features, self.n_features, self.feature_names)

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:
        """A sentence for each column with a budget that holds codes of categories."""
        return [
            f"budgets: {features[i]!r} holds categories for the model (OneHotEncoder), which no amount can change. "
            "Take it out of the budgets."
            for i in self.frozen_columns
            if features[i] in changing
        ]


@dataclass(frozen=True, eq=False)
class _Converted:
    scores: nn.Module
    output: Literal["logits", "decision"]
    classes: list[str]
    names: tuple[str, ...] | None
    seen: Seen
    apart: float


def _convert(part: Part) -> _Converted:
    seen = Seen(_width(part))
    names = getattr(part.estimator, "feature_names_in_", None)
    names = None if names is None else tuple(str(n) for n in names)
    classes = part.fitted("classes_")
    if not isinstance(classes, np.ndarray):
        raise part.refused("predicts several labels at once. Train it on one label with one class per sample.")
    scores, output = convert_classifier(part, tuple(range(seen.width)), seen).scores(len(classes))
    apart = check_agreement(part.estimator, scores, output, seen, names)
    return _Converted(scores, output, [str(c) for c in classes], names, seen, apart)


def _width(part: Part) -> int:
    """F. A pipeline that begins with "passthrough" does not have this attribute itself."""
    for _, step in getattr(part.estimator, "steps", ()):
        if hasattr(step, "n_features_in_"):
            return int(step.n_features_in_)
    return int(part.fitted("n_features_in_"))
