"""A task: data, a network for it and a way to train it; and one trained network with its record in a file beside it."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import maxflip
from maxflip._util.atomic import write_bytes
from maxflip.datasets import Sequences
from maxflip.networks import SequenceNetwork, save_network
from research.experiments.fitting import Epoch, Recipe, Score, fit, seeded
from research.experiments.metrics import Floats, accuracy, cross_entropy
from research.experiments.packed import Packed, logits_of

Rows = NDArray[np.int64]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """build(part): an untrained network, standardised by the part of the data that it will be trained on

    split(rows, seed): those to train on, those of the inner validation   score: what early stopping goes by
    """

    data: Sequences
    build: Callable[[Packed], SequenceNetwork]
    recipe: Recipe
    score: Score
    split: Callable[[Rows, int], tuple[Rows, Rows]]

    @cached_property
    def packed(self) -> Packed:
        return Packed.of(self.data)

    def trained(self, rows: Rows, seed: int, tell: Tell, name: str) -> Trained:
        """A network that has seen these rows and no others."""
        train, inner = (torch.as_tensor(part) for part in self.split(rows, seed))

        def line(epoch: Epoch) -> None:
            mark = "  best so far" if epoch.best else ""
            tell(f"{name}: epoch {epoch.number}: loss {epoch.loss:.4f}, inner validation {epoch.inner:.4f}{mark}")

        net = seeded(lambda: self.build(self.packed.take(train)), seed)
        epochs = fit(net, self.packed, train, inner, self.recipe, self.score, seed, line)
        return Trained(net, epochs, len(train), len(inner))

    def logits(self, net: SequenceNetwork, rows: Rows) -> Floats:
        return logits_of(net, self.packed, torch.as_tensor(rows))

    def labels(self, rows: Rows) -> Rows:
        return np.asarray(self.data.labels[rows])

    def measured(self, net: SequenceNetwork, rows: Rows) -> dict[str, float]:
        logits, labels = self.logits(net, rows), self.labels(rows)
        return {
            "accuracy": round(accuracy(logits, labels), 4),
            "cross_entropy": round(cross_entropy(logits, labels), 4),
        }


@dataclass(frozen=True)
class Trained:
    net: SequenceNetwork
    epochs: list[Epoch]
    train: int
    inner: int

    @property
    def inner_score(self) -> float:
        return max(epoch.inner for epoch in self.epochs)

    @property
    def story(self) -> dict[str, Any]:
        best = [epoch for epoch in self.epochs if epoch.best][-1]
        return {
            "trained_on": self.train,
            "inner_validation": self.inner,
            "inner_score": round(self.inner_score, 4),
            "best_epoch": best.number,
            "epochs": len(self.epochs),
        }


def write_record(path: Path, command: str, record: Mapping[str, Any]) -> None:
    """command: what was run, from `research.experiments.train` on"""
    made = {
        "command": f"python -m research.experiments.train {command}",
        "versions": {"maxflip": maxflip.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }
    write_bytes(path, (json.dumps({**made, **record}, indent=2) + "\n").encode())


def keep(net: SequenceNetwork, out: Path, name: str, command: str, recipe: Recipe, record: Mapping[str, Any]) -> None:
    """The weights, and beside them what they are and how good."""
    out.mkdir(parents=True, exist_ok=True)
    save_network(net, out / f"{name}.safetensors")
    about = {
        "network": type(net).__name__,
        "hidden": net.hidden,
        "parameters": sum(p.numel() for p in net.parameters()),
        "recipe": asdict(recipe),
    }
    write_record(out / f"{name}.json", command, {**about, **record})
