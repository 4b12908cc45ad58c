"""What the library asks of a classifier, whatever it is made of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import torch


@dataclass(frozen=True, eq=False)
class LinearForm:
    """logits(x) = weight x + bias, proved from the model's structure.   weight (k, F)   bias (k,)   float64, CPU"""

    weight: torch.Tensor
    bias: torch.Tensor


class Classifier(Protocol):
    """Class probabilities of a batch of samples, and something to take gradients of.

    Inputs are float64 (B, F); they are cast to `dtype` on `device` at this door and nowhere else. Outputs are
    float64 (B, k). Callers hold `borrowed()` open around any call.
    """

    @property
    def classes(self) -> tuple[str, ...] | None: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def apart(self) -> float:
        """By how much its probabilities may differ from those of the model that the user has."""
        ...

    def borrowed(self) -> AbstractContextManager[None]:
        """The model ready for use (eval mode); on leaving, it is as it was found."""
        ...

    def raw(self, x: torch.Tensor) -> torch.Tensor:
        """The model's own output, unchecked, in its own dtype: for the probe."""
        ...

    def probabilities(self, x: torch.Tensor) -> torch.Tensor:
        """(B, F) -> (B, k): what the judge and the auditor look at."""
        ...

    def log_probabilities(self, x: torch.Tensor) -> torch.Tensor:
        """(B, F) -> (B, k), differentiable, without the saturation of the probabilities themselves."""
        ...

    def check_features(self, features: Sequence[str]) -> None:
        """Raise ModelError if the model was trained on other columns than these."""
        ...

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:
        """A sentence for each of the columns `changing` that no amount can change for this model."""
        ...

    def state(self) -> list[torch.Tensor]:
        """Everything that a call could alter: parameters and buffers."""
        ...

    def linear(self, width: int) -> LinearForm | None:
        """The model's linear form over `width` features, where it has one."""
        ...
