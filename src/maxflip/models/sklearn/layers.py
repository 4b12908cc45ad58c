"""What scikit-learn's estimators compute, as torch layers: the same float64 operations, in the same order.

Layers that are affine in their input use only operations that `affine.linear_form` knows, so that a linear pipeline is
recognised as one model over the raw columns. All numbers are buffers: there is nothing to train.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import linear, logsigmoid


def tensor(values: Any) -> torch.Tensor:
    """A dense float64 copy, which a later refit of the estimator does not change."""
    dense = values.toarray() if hasattr(values, "toarray") else values
    return torch.tensor(np.asarray(dense, dtype=np.float64)).contiguous()


class Dense(nn.Module):
    """x -> weight x + bias   weight (o, w)   bias (o,)"""

    def __init__(self, weight: Any, bias: Any) -> None:
        super().__init__()
        self.weight, self.bias = nn.Buffer(tensor(weight)), nn.Buffer(tensor(bias))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear(x, self.weight, self.bias)


class Standardised(nn.Module):
    """x -> (x - centre) / spread   (w,) each"""

    def __init__(self, centre: Any, spread: Any) -> None:
        super().__init__()
        self.centre, self.spread = nn.Buffer(tensor(centre)), nn.Buffer(tensor(spread))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.centre) / self.spread


class Stretched(nn.Module):
    """x -> x factor + offset   (w,) or () each"""

    def __init__(self, factor: Any, offset: Any) -> None:
        super().__init__()
        self.factor, self.offset = nn.Buffer(tensor(factor)), nn.Buffer(tensor(offset))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor + self.offset


class Clipped(nn.Module):
    """x -> min(max(x, low), high): no gradient outside, as the model has none."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low, self.high = float(low), float(high)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(self.low, self.high)


class Columns(nn.Module):
    """x -> its columns `picked`, by a product with ones and zeros: exact for finite x, and affine in x."""

    def __init__(self, picked: Sequence[int], width: int) -> None:
        super().__init__()
        pick = torch.zeros(len(picked), width, dtype=torch.float64)
        pick[torch.arange(len(picked)), list(picked)] = 1.0
        self.pick = nn.Buffer(pick)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear(x, self.pick)


class OneHot(nn.Module):
    """One column of codes -> the row of `table` for its category.

    categories (c,)   table (c, o)   unknown (o,): for any other value; None: NaN, for encoders that raise an error
    """

    def __init__(self, categories: Any, table: Any, unknown: Any) -> None:
        super().__init__()
        self.categories, self.table = nn.Buffer(tensor(categories)), nn.Buffer(tensor(table))
        self.raises = unknown is None
        self.unknown = nn.Buffer(tensor(np.zeros(table.shape[1]) if self.raises else unknown))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hits = (x == self.categories).to(x.dtype)
        known = hits.sum(dim=1, keepdim=True) > 0
        return torch.where(known, hits @ self.table, torch.nan if self.raises else self.unknown)


class SideBySide(nn.Module):
    """x -> the columns of all branches, concatenated."""

    def __init__(self, branches: Sequence[nn.Module]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], dim=1)


class TwoColumns(nn.Module):
    """One logit z (B, 1) -> [0, z]: softmax gives [1 - sigmoid(z), sigmoid(z)]."""

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.zeros_like(z), z], dim=1)


class LogSigmoid(nn.Module):
    """Scores of one class against the rest -> log sigmoid(z). The softmax of these is sigmoid(z_c) / sum sigmoid(z).

    Where every sigmoid underflows (all z < -700) scikit-learn says 1/k for each class; this goes on with the ratios.
    """

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return logsigmoid(z)


class Probability(nn.Module):
    """logits -> probabilities (B, k), or that of the second of two classes (B, 1)."""

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(logits, dim=1)
        return p[:, 1:] if p.shape[1] == 2 else p


class OneAgainstRest(nn.Module):
    """Members with two logits each -> log p_c(x) of each member's second class, unsaturated."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.log_softmax(member(x), dim=1)[:, 1:] for member in self.members], dim=1)


class Average(nn.Module):
    """log of the mean of the members' probabilities: logsumexp_m log p_m(x) - log M, unsaturated."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logs = torch.stack([torch.log_softmax(member(x), dim=1) for member in self.members])
        return torch.logsumexp(logs, dim=0) - float(np.log(len(self.members)))
