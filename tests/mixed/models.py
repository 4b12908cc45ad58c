"""Small networks in plain numpy, and the same as torch modules."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Floats = NDArray[np.float64]
Random = np.random.Generator


@dataclass(frozen=True, eq=False)
class Network:
    """Affine layers with tanh between them; the last one gives the logits.   layers: (weight (out, in), bias (out,))"""

    layers: tuple[tuple[Floats, Floats], ...]

    @property
    def is_linear(self) -> bool:
        return len(self.layers) == 1

    @property
    def classes(self) -> int:
        return len(self.layers[-1][1])

    def logits(self, x: Floats) -> Floats:
        """(N, F) -> (N, k)"""
        value = x
        for weight, bias in self.layers[:-1]:
            value = np.tanh(value @ weight.T + bias)
        weight, bias = self.layers[-1]
        return np.asarray(value @ weight.T + bias)

    def raised(self, by: Floats) -> Network:
        """With this (k,) added to the logits."""
        weight, bias = self.layers[-1]
        return Network((*self.layers[:-1], (weight, bias + by)))

    def module(self) -> nn.Module:
        parts: list[nn.Module] = []
        for weight, bias in self.layers:
            layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
            with torch.no_grad():
                layer.weight[:], layer.bias[:] = torch.tensor(weight), torch.tensor(bias)
            parts += [layer, nn.Tanh()]
        return nn.Sequential(*parts[:-1])


def some_network(rng: Random, sizes: Floats, classes: int, *, linear: bool) -> Network:
    """sizes (F,): how large a usual change of each feature is"""
    widths = [len(sizes), classes] if linear else [len(sizes), 6, 6, classes]
    layers = []
    for wide, out in itertools.pairwise(widths):
        scale = 0.8 if linear else 1.6 / np.sqrt(wide)
        layers.append((rng.normal(size=(out, wide)) * scale, rng.normal(size=out) * 0.3))
    layers[0] = (layers[0][0] / sizes, layers[0][1])
    return Network(tuple(layers))
