"""Goal: when does a sample pass? The confidence test on a model's scores, and a smooth form of it to search along.

margin m:     confidence = max p[wanted] - max p[unwanted] >= m        (the paper, for one wanted class)
threshold t:  confidence = sum p[wanted]                   >= t

p are probabilities; or decision values, and then the margin is in their units and there is no threshold. Of several
models the least confident one counts: scores have the shape (B, M, k) for M models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip._util.types import Floats

_NEVER = -math.inf


@dataclass(frozen=True, eq=False)
class Goal:
    """wanted (n, k), or (1, k) where it is the same for all; `required` confidence; label distributions if given."""

    wanted: NDArray[np.bool_]
    required: float
    is_threshold: bool
    distributions: Floats | None = None
    is_decision: bool = False

    def wanted_for(self, rows: NDArray[np.int64], device: torch.device | str = "cpu") -> torch.Tensor:
        """(B, k) bool"""
        mask = self.wanted if len(self.wanted) == 1 else self.wanted[rows]
        return torch.as_tensor(mask, device=device).expand(len(rows), -1)

    def confidence(self, p: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        """p (B, M, k), wanted (B, k) -> (B,). NaN where p is not finite."""
        mask = wanted[:, None]
        if self.is_threshold:
            each = torch.where(mask, p, 0.0).sum(dim=2)
        else:
            each = torch.where(mask, p, _NEVER).amax(dim=2) - torch.where(mask, _NEVER, p).amax(dim=2)
        return torch.where(torch.isfinite(p).all(dim=2), each, torch.nan).amin(dim=1)

    def log_margin(self, log_p: torch.Tensor, wanted: torch.Tensor, lift: float) -> torch.Tensor:
        """log_p (B, M, k) -> (B,): >= 0 where confidence >= required + lift, but steep where probabilities saturate.

        threshold t:            log P - log(1 - P) - logit t,  P the wanted mass
        margin m, two classes:  log p_w - log p_u - 2 artanh m
        margin m:               max log p_w - log(max p_u + m)
        decision values:        max p_w - max p_u - m
        """
        aim, mask = self.required + lift, wanted[:, None]
        if self.is_threshold:
            inside = torch.where(mask, log_p, _NEVER).logsumexp(dim=2)
            outside = torch.where(mask, _NEVER, log_p).logsumexp(dim=2)
            return (inside - outside - math.log(aim / (1.0 - aim))).amin(dim=1)
        best_wanted = torch.where(mask, log_p, _NEVER).amax(dim=2)
        best_unwanted = torch.where(mask, _NEVER, log_p).amax(dim=2)
        if self.is_decision:
            each = best_wanted - best_unwanted - aim
        elif log_p.shape[2] == 2:
            each = best_wanted - best_unwanted - 2.0 * math.atanh(aim)
        else:
            each = best_wanted - torch.logaddexp(best_unwanted, torch.full_like(best_unwanted, math.log(aim)))
        return each.amin(dim=1)
