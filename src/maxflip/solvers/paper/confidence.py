"""The confidence constraint of each sample, signed and as a hinge.

    s_j = max_{u unwanted} f_u - max_{y wanted} f_y + delta      s_j <= 0 where the sample passes     (KL)
    h_j = max{0, s_j}                                            the paper's h-bar        (MS, BCMS, CCMS)

With a threshold t instead of a margin: s_j = t - sum_{y wanted} f_y. Of several models, the least confident counts.
"""

from __future__ import annotations

import torch

from maxflip.problem.goal import Goal


def signed(goal: Goal, p: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """p (n, M, k), wanted (n, k) -> s (n,).

    -`Goal.confidence` plus the required one, in a form whose gradient is the paper's subgradient: of tied classes or
    members, the first counts.
    """
    mask = wanted[:, None]
    if goal.is_threshold:
        each = goal.required - torch.where(mask, p, 0.0).sum(dim=2)
    else:
        best_unwanted = torch.where(mask, -torch.inf, p).max(dim=2).values
        best_wanted = torch.where(mask, p, -torch.inf).max(dim=2).values
        each = best_unwanted - best_wanted + goal.required
    return each.max(dim=1).values


def hinge(s: torch.Tensor, slope: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """s (n,) and its gradient (n, A) -> h = max{0, s} and its gradient, which is 0 where s = 0."""
    is_short = s > 0
    return torch.where(is_short, s, 0.0), torch.where(is_short[:, None], slope, 0.0)


def divergence(log_p: torch.Tensor, wanted: torch.Tensor, label: torch.Tensor | None) -> torch.Tensor:
    """log_p (n, M, k) -> KL(label || f) (n,), the mean over models.

    label (n, k): distributions, if the problem states them. Otherwise the distribution over the wanted classes that is
    nearest to f, whose divergence is -log sum_{y wanted} f_y.
    """
    if label is None:
        return -torch.where(wanted[:, None], log_p, -torch.inf).logsumexp(dim=2).mean(dim=1)
    entropy: torch.Tensor = torch.special.xlogy(label, label).sum(dim=1)
    return entropy - (label[:, None] * log_p).sum(dim=2).mean(dim=1)
