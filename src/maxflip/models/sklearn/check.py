"""Checks that a conversion gives the same scores as the original model."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from maxflip._util.messages import counted
from maxflip._util.types import Floats
from maxflip.errors import ModelError
from maxflip.models.sklearn.parts import Seen

ROWS = 64  # test rows per entry of SPREADS
SPREADS = (0.3, 1.0, 3.0)  # standard deviations of the test rows, relative to the training data
TOLERANCE = 1e-6  # largest accepted difference of scores; for decision values relative to the largest


def check_agreement(
    model: Any, converted: nn.Module, output: Literal["logits", "decision"], seen: Seen, names: tuple[str, ...] | None
) -> float:
    """Largest difference between the scores of the conversion and of the model on rows like the training data.

    softmax(logits) from predict_proba, or decision values from decision_function. Raises ModelError otherwise.
    """
    x = _rows_like_training(seen)
    method = "predict_proba" if output == "logits" else "decision_function"
    with warnings.catch_warnings(action="ignore"):  # warnings that concern its training
        expected = np.asarray(getattr(model, method)(_table(x, names)))
    if expected.ndim == 1:
        expected = np.stack([np.zeros_like(expected), expected], axis=1)
    with torch.no_grad():
        out = converted(torch.tensor(x))
        got = (torch.softmax(out, dim=1) if output == "logits" else out).numpy()
    if got.shape != expected.shape:
        raise ModelError(
            f"model: its conversion gives {counted(got.shape[1], 'class', 'classes')}, {method} {expected.shape[1]}."
        )
    apart = float(np.abs(got - expected).max())
    size = 1.0 if output == "logits" else float(np.abs(expected).max())
    if not apart <= TOLERANCE * size:
        raise ModelError(
            f"model: its conversion and {method} differ by {apart:.2g} on rows like those of its training, so it "
            "is not used. This version of scikit-learn may compute something else than is known here; please report it."
        )
    return apart


def _rows_like_training(seen: Seen) -> Floats:
    """(3 ROWS, F): random rows within, at and beyond the spread of the training data, as far as it is known."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(SPREADS), ROWS, seen.width)) * np.reshape(SPREADS, (-1, 1, 1))
    x: Floats = (seen.centre + seen.spread * noise).reshape(-1, seen.width)
    for column, categories in seen.categories.items():
        x[:, column] = rng.choice(categories, len(x))
    return x


def _table(x: Floats, names: tuple[str, ...] | None) -> Any:
    """A data frame if the model was trained on one and a library is installed; columns may be selected by name."""
    if names is None:
        return x
    try:
        import pandas as pd

        return pd.DataFrame(x, columns=list(names))
    except ImportError:
        pass
    try:
        import polars as pl

        return pl.DataFrame(x, schema=list(names))
    except ImportError:
        return x
