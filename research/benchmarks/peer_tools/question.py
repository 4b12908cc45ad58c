"""What every tool is asked, as one file: samples, model, margin, limits. Read by interpreters that have numpy alone."""

from __future__ import annotations

import hashlib
import io
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
TARGET = 0  # output column of the wanted class; everybody is in the other


@dataclass(frozen=True, eq=False)
class Question:
    """Two classes; n samples, F features, S shapes of budgets.

    x (n, F), in standard deviations   frozen (F,): features that stay as they are   low, high: of every value
    margin: of the probabilities   spare: added to it for the tools, who round in other ways than the judge
    layers: (weights (out, in), biases (out,)) of each   activation: between them, "tanh" or "relu"
    reference (N, F): other samples, for tools that learn ranges or neighbours from data
    shapes (S,): names   amounts (S, F): squared budgets   members (S, n): whose budgets these are; tools that know no
    budgets need not look
    seconds: of processor time; who goes sample by sample begins no further one when they are over
    """

    x: Floats
    frozen: Mask
    low: float
    high: float
    margin: float
    spare: float
    layers: tuple[tuple[Floats, Floats], ...]
    activation: str
    reference: Floats
    shapes: tuple[str, ...]
    amounts: Floats
    members: Mask
    seconds: float = math.inf

    @property
    def head_start(self) -> float:
        """By so much the wanted class's logit must exceed the other: p - q >= margin, and p + q = 1."""
        asked = self.margin + self.spare
        return math.log((1 + asked) / (1 - asked))

    def logits(self, x: Floats) -> Floats:
        """(B, 2), in float64"""
        h = x
        for i, (weights, biases) in enumerate(self.layers):
            if i:
                h = np.tanh(h) if self.activation == "tanh" else np.maximum(h, 0.0)
            h = h @ weights.T + biases
        return h

    def first(self, samples: int) -> Question:
        return replace(self, x=self.x[:samples], members=self.members[:, :samples])

    def changes_to(self, points: NDArray[np.floating]) -> Floats:
        """(n, F) from where a tool says to go, (n, F) in float32 or float64: nobody leaves the limits by rounding, and
        what is frozen, or was merely rounded to float32, is no change."""
        start = self.x.astype(points.dtype).astype(np.float64)
        moved = np.clip(points.astype(np.float64), self.low, self.high) - start
        moved[:, self.frozen] = 0.0
        return moved

    def digest(self) -> str:
        """Of all that is asked."""
        held = io.BytesIO()
        self.save(held)
        return hashlib.sha256(held.getvalue()).hexdigest()

    def save(self, path: Path | BinaryIO) -> None:
        layers = {f"weights{i}": w for i, (w, _) in enumerate(self.layers)}
        layers |= {f"biases{i}": b for i, (_, b) in enumerate(self.layers)}
        np.savez(
            path,
            x=self.x,
            frozen=self.frozen,
            numbers=np.array([self.low, self.high, self.margin, self.spare, self.seconds]),
            activation=self.activation,
            reference=self.reference,
            shapes=np.array(self.shapes, dtype=str),
            amounts=self.amounts,
            members=self.members,
            **layers,  # type: ignore[arg-type]
        )

    @staticmethod
    def load(path: Path) -> Question:
        with np.load(path) as held:
            low, high, margin, spare, seconds = held["numbers"].tolist()
            depth = sum(name.startswith("weights") for name in held.files)
            return Question(
                x=held["x"],
                frozen=held["frozen"],
                low=low,
                high=high,
                margin=margin,
                spare=spare,
                layers=tuple((held[f"weights{i}"], held[f"biases{i}"]) for i in range(depth)),
                activation=str(held["activation"]),
                reference=held["reference"],
                shapes=tuple(held["shapes"].tolist()),
                amounts=held["amounts"],
                members=held["members"],
                seconds=seconds,
            )
