"""The protocol of classifiers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import torch

from maxflip._util.types import Scores
from maxflip.data.inputs import Given


@dataclass(frozen=True, eq=False)
class Noise:
    """Rounding error: the model differs from its linear form at x by at most weight |x| + bias.   (k, F), (k,), >= 0"""

    weight: torch.Tensor
    bias: torch.Tensor


@dataclass(frozen=True, eq=False)
class LinearForm:
    """logits(x), or decision values, = weight x + bias, proved from the model's structure.

    weight (k, F)   bias (k,)   float64, CPU
    noise: bound of the model's rounding error; None if it does not compute in float64 throughout
    """

    weight: torch.Tensor
    bias: torch.Tensor
    noise: Noise | None = None

    def with_columns(self, width: int) -> LinearForm:
        """With zeros for further columns, that the model does not see."""
        more = (0, width - self.weight.shape[1])
        noise = self.noise
        if noise is not None:
            noise = Noise(torch.nn.functional.pad(noise.weight, more), noise.bias)
        return LinearForm(torch.nn.functional.pad(self.weight, more), self.bias, noise)


class Snapshot(Protocol):
    """The stored state of a model."""

    def put_back(self) -> bool:
        """Restore the stored state; returns whether anything had changed."""
        ...


class Classifier(Protocol):
    """One or more models over the same features and classes. A sample passes if it passes in all of them."""

    @property
    def members(self) -> Sequence[Member]:
        """The models; for a single model, itself."""
        ...

    @property
    def classes(self) -> tuple[str, ...] | None: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def is_decision(self) -> bool:
        """Whether scores are decision values, in the model's own units, rather than probabilities."""
        ...

    @property
    def has_gradients(self) -> bool:
        """Whether log scores can be differentiated, so that changes by any amount can be searched along them."""
        ...

    def borrowed(self) -> AbstractContextManager[None]:
        """Makes the model ready for use (eval mode, gradients possible) and restores its state on exit."""
        ...

    def check_features(self, features: Sequence[str]) -> None:
        """Raise ModelError if the model was trained on columns other than these."""
        ...

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:
        """A sentence for each of the columns `changing` that holds category codes, which cannot change by an amount."""
        ...

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:
        """Why the model cannot take these sequences, as sentences; empty if it can."""
        ...


class Member(Classifier, Protocol):
    """A single model: scores for a batch of samples, and differentiable log scores.

    Inputs are float64 (B, F), or a Batch of sequences. They are cast to `dtype` on `device` here and nowhere else.
    Scores are float64 (B, k). Callers must be inside `borrowed()`.
    """

    @property
    def output(self) -> Scores:
        """The kind of output that `raw` returns."""
        ...

    @property
    def apart(self) -> float:
        """Largest difference between its scores and those of the user's original model."""
        ...

    def raw(self, x: Given) -> torch.Tensor:
        """The model's own output, unchecked, in its own dtype. ModelError if the model raises."""
        ...

    def scores(self, x: Given) -> torch.Tensor:
        """(B, F) -> (B, k): probabilities, or decision values. The judge decides by these."""
        ...

    def log_scores(self, x: Given) -> torch.Tensor:
        """(B, F) -> (B, k), differentiable: log-probabilities, which do not saturate, or decision values."""
        ...

    def snapshot(self) -> Snapshot:
        """The current state: parameters and buffers."""
        ...

    def linear(self, width: int) -> LinearForm | None:
        """The model's linear form over `width` features; None if it has none."""
        ...


def scores(classifier: Classifier, x: Given) -> torch.Tensor:
    """(B, F) -> (B, M, k): for every member"""
    return torch.stack([member.scores(x).to(classifier.device) for member in classifier.members], dim=1)


def log_scores(classifier: Classifier, x: Given) -> torch.Tensor:
    """(B, F) -> (B, M, k): for every member"""
    return torch.stack([member.log_scores(x).to(classifier.device) for member in classifier.members], dim=1)
