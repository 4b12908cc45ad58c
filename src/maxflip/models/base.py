"""What the library asks of a classifier, whatever it is made of."""

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
    """What the model computes differs from its linear form at x by at most weight |x| + bias.   (k, F), (k,), >= 0"""

    weight: torch.Tensor
    bias: torch.Tensor


@dataclass(frozen=True, eq=False)
class LinearForm:
    """logits(x), or decision values, = weight x + bias, proved from the model's structure.

    weight (k, F)   bias (k,)   float64, CPU
    noise: how far rounding may take the model from that; None where it does not compute in float64 throughout
    """

    weight: torch.Tensor
    bias: torch.Tensor
    noise: Noise | None = None


class Snapshot(Protocol):
    """A model as it was found."""

    def put_back(self) -> bool:
        """Undo what calls have altered; whether there was anything to undo."""
        ...


class Classifier(Protocol):
    """One or more models over the same features and classes; a sample passes when it passes in every one of them."""

    @property
    def members(self) -> Sequence[Member]:
        """The models; of a plain classifier, itself alone."""
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
        """Whether scores are decision values, in the model's own units, instead of probabilities."""
        ...

    def borrowed(self) -> AbstractContextManager[None]:
        """The model ready for use (eval mode, gradients possible); on leaving, it is as it was found."""
        ...

    def check_features(self, features: Sequence[str]) -> None:
        """Raise ModelError if the model was trained on other columns than these."""
        ...

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:
        """A sentence for each of the columns `changing` that no amount can change for this model."""
        ...

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:
        """Why it cannot be asked about sequences, or about some with missing values or such static features."""
        ...


class Member(Classifier, Protocol):
    """A single model: its scores for a batch of samples, and something to take gradients of.

    Inputs are float64 (B, F), or a Batch of sequences; they are cast to `dtype` on `device` at this door and nowhere
    else. Scores are float64 (B, k). Callers hold `borrowed()` open around any call.
    """

    @property
    def output(self) -> Scores:
        """What `raw` returns."""
        ...

    @property
    def apart(self) -> float:
        """By how much its scores may differ from those of the model that the user has."""
        ...

    def raw(self, x: Given) -> torch.Tensor:
        """The model's own output, unchecked, in its own dtype: for the probe. ModelError where the model raises."""
        ...

    def scores(self, x: Given) -> torch.Tensor:
        """(B, F) -> (B, k): what the judge and the auditor look at: probabilities, or decision values."""
        ...

    def log_scores(self, x: Given) -> torch.Tensor:
        """(B, F) -> (B, k), differentiable: log-probabilities, which do not saturate; or decision values."""
        ...

    def snapshot(self) -> Snapshot:
        """Everything that a call could alter: parameters and buffers."""
        ...

    def linear(self, width: int) -> LinearForm | None:
        """The model's linear form over `width` features, where it has one."""
        ...


def scores(classifier: Classifier, x: Given) -> torch.Tensor:
    """(B, F) -> (B, M, k): of every member"""
    return torch.stack([member.scores(x).to(classifier.device) for member in classifier.members], dim=1)


def log_scores(classifier: Classifier, x: Given) -> torch.Tensor:
    """(B, F) -> (B, M, k): of every member"""
    return torch.stack([member.log_scores(x).to(classifier.device) for member in classifier.members], dim=1)
