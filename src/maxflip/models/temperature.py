"""Tempered: a classifier whose probabilities are calibrated by a temperature."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from maxflip._util.messages import did_you_mean, listed, shown
from maxflip._util.types import Scores
from maxflip.data.inputs import Given
from maxflip.errors import InputError
from maxflip.models.base import LinearForm, Member, Noise, Snapshot
from maxflip.models.linear_form import LOG_SOFTMAX_STEPS

CALMEST = 1e3  # fit() searches temperatures in [1 / CALMEST, CALMEST]


@dataclass(frozen=True, eq=False)
class Tempered:
    """softmax(logits(x) / temperature): the same most likely class, other probabilities.

    A temperature above 1 reduces overconfidence (Guo et al. 2017). For a classifier of probabilities p the result is
    p^(1/T) / sum p^(1/T), which is equivalent.

    Args:
        classifier: of logits or probabilities.
        temperature: finite, > 0.
    """

    classifier: Member
    temperature: float

    def __post_init__(self) -> None:
        faults = []
        if tuple(self.classifier.members) != (self.classifier,):
            faults.append("Tempered: takes one classifier. Put it around each member of the ensemble.")
        if self.classifier.is_decision:
            faults.append(
                "Tempered: the classifier gives decision values, no probabilities. Calibrate it before "
                "(CalibratedClassifierCV(model, method='sigmoid'))."
            )
        t = self.temperature
        if isinstance(t, bool) or not isinstance(t, (int, float, np.number)) or not 0 < t < math.inf:
            faults.append(f"temperature = {shown(t)}: must be a finite number > 0.")
        if faults:
            raise InputError(faults)

    @classmethod
    def fit(cls, classifier: Member, x: Any, y: Any) -> Tempered:
        """Fit the temperature by maximum likelihood of the labels y of the rows x.

        Args:
            classifier: of logits or probabilities.
            x: (n, F): rows outside the training data.
            y: (n,): output columns or class names.
        """
        from scipy.optimize import minimize_scalar

        columns = torch.tensor(_columns(y, classifier.classes))
        values = torch.tensor(np.asarray(x, dtype=np.float64))
        if values.ndim != 2 or len(values) != len(columns) or not len(values):
            raise InputError(f"Tempered.fit: x has the shape {tuple(values.shape)}, y {tuple(columns.shape)}.")
        with classifier.borrowed(), torch.no_grad():
            log_p = torch.cat(
                [classifier.log_scores(part).cpu() for part in torch.split(values, classifier.batch_size)]
            )
        if bool(((columns < 0) | (columns >= log_p.shape[1])).any()):
            raise InputError(f"Tempered.fit: y must hold output columns 0 to {log_p.shape[1] - 1}.")

        def unlikely(log_temperature: float) -> float:
            tempered = torch.log_softmax(log_p / math.exp(log_temperature), dim=1)
            return -float(tempered.gather(1, columns[:, None]).mean())

        reach = math.log(CALMEST)
        best = minimize_scalar(unlikely, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9})
        always_right = bool((log_p.argmax(dim=1) == columns).all())
        if always_right or best.x > reach - 0.01:
            why = "right on every row" if always_right else "no better than chance"
            raise InputError(
                f"Tempered.fit: the model is {why} of the {len(values)} given, so no temperature is best. Take others, "
                "or more."
            )
        return cls(classifier, math.exp(best.x))

    @property
    def members(self) -> tuple[Tempered]:
        return (self,)

    @property
    def classes(self) -> tuple[str, ...] | None:
        return self.classifier.classes

    @property
    def dtype(self) -> torch.dtype:
        return self.classifier.dtype

    @property
    def device(self) -> torch.device:
        return self.classifier.device

    @property
    def batch_size(self) -> int:
        return self.classifier.batch_size

    @property
    def is_decision(self) -> bool:
        return False

    @property
    def has_gradients(self) -> bool:
        return self.classifier.has_gradients

    @property
    def output(self) -> Scores:
        return self.classifier.output

    @property
    def apart(self) -> float:
        return self.classifier.apart * max(1.0, 1.0 / self.temperature)

    def borrowed(self) -> AbstractContextManager[None]:
        return self.classifier.borrowed()

    def raw(self, x: Given) -> torch.Tensor:
        return self.classifier.raw(x)

    def scores(self, x: Given) -> torch.Tensor:
        return torch.softmax(self.classifier.log_scores(x) / self.temperature, dim=1)

    def log_scores(self, x: Given) -> torch.Tensor:
        return torch.log_softmax(self.classifier.log_scores(x) / self.temperature, dim=1)

    def check_features(self, features: Sequence[str]) -> None:
        self.classifier.check_features(features)

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:
        return self.classifier.frozen_faults(features, changing)

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:
        return self.classifier.sequence_faults(some_missing=some_missing, static_features=static_features)

    def snapshot(self) -> Snapshot:
        return self.classifier.snapshot()

    def linear(self, width: int) -> LinearForm | None:
        form = self.classifier.linear(width)
        if form is None:
            return None
        weight, bias, noise = form.weight / self.temperature, form.bias / self.temperature, form.noise
        # Logarithms of underflowed probabilities are not linear.
        if noise is None or self.output == "probabilities":
            return LinearForm(weight, bias)
        own = LOG_SOFTMAX_STEPS * torch.finfo(torch.float64).eps
        more = Noise(
            noise.weight / self.temperature + own * weight.abs(), noise.bias / self.temperature + own * bias.abs()
        )
        return LinearForm(weight, bias, more)


def _columns(y: Any, names: tuple[str, ...] | None) -> list[int]:
    """Output columns, from labels that are columns or class names."""
    labels = np.asarray(y).tolist()
    columns = []
    for label in labels if isinstance(labels, list) else [labels]:
        if isinstance(label, str) and names is not None and label in names:
            columns.append(names.index(label))
        elif isinstance(label, int):
            columns.append(label)
        else:
            known = names or ()
            raise InputError(
                f"Tempered.fit: y holds {shown(label)}; wanted output columns"
                + (f", or the names {listed(known)}.{did_you_mean(str(label), known)}" if known else ".")
            )
    return columns
