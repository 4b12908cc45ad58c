"""Small problems whose right answers are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from maxflip import Problem, TorchClassifier


def linear_net(w: ArrayLike, b: float = 0.0, dtype: torch.dtype = torch.float64) -> nn.Linear:
    """Two logits, 0 and w.x + b."""
    weight = np.atleast_1d(np.asarray(w, dtype=float))
    net = nn.Linear(len(weight), 2, dtype=dtype)
    with torch.no_grad():
        net.weight[0], net.bias[0] = 0.0, 0.0
        net.weight[1], net.bias[1] = torch.tensor(weight, dtype=dtype), b
    return net


def linear_problem(w: ArrayLike, x: ArrayLike, budgets: Any, b: float = 0.0, **options: Any) -> Problem:
    """Wanted: class 1 of linear_net(w, b). `budgets` as in Problem, or one squared budget per feature."""
    values = np.asarray(x, dtype=float)
    if not isinstance(budgets, dict):
        budgets = {f"x{i}": float(amount) for i, amount in enumerate(budgets)}
    settings: dict[str, Any] = {"target": 1, "margin": 0.1} | options
    classifier = TorchClassifier(linear_net(w, b), output="logits")
    return Problem(classifier=classifier, cohort=values, budgets=budgets, **settings)


def missing_score(w: ArrayLike, x: ArrayLike, b: float = 0.0, margin: float = 0.1) -> NDArray[np.float64]:
    """What the score of each sample lacks: 2 artanh(margin) - (w.x + b)."""
    return np.asarray(2 * math.atanh(margin) - (np.asarray(x) @ np.asarray(w) + b))


def small_net(
    features: int, classes: int = 2, seed: int = 0, scale: float = 1.5, dtype: torch.dtype = torch.float32
) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, classes))
        for parameter in net.parameters():
            parameter.data *= scale
    return net.to(dtype)


def net_problem(n: int = 24, features: int = 4, classes: int = 2, seed: int = 0, **options: Any) -> Problem:
    """A small tanh network with a budget of 2 squared units per feature."""
    rng = np.random.default_rng(seed)
    net = small_net(features, classes, seed)
    settings: dict[str, Any] = {
        "classifier": TorchClassifier(net, output="logits"),
        "cohort": rng.normal(size=(n, features)),
        "target": 1,
        "margin": 0.1,
        "budgets": {f"x{i}": 2.0 for i in range(features)},
    } | options
    return Problem(**settings)


def trained_net(classes: int, seed: int = 0) -> nn.Module:
    """A tanh network that has learned to tell `classes` clouds in the plane apart."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        centres = 2.0 * torch.stack(
            [torch.tensor([math.cos(a), math.sin(a)]) for a in torch.arange(classes) * 6.28 / classes]
        )
        labels = torch.arange(600) % classes
        x = centres[labels] + 0.7 * torch.randn(600, 2)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, classes))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
        for _ in range(150):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(net(x), labels))
            optimizer.step()
    return net
