"""Flips of models without gradients, whose scores are flat almost everywhere: the one entry for all of them."""

from __future__ import annotations

import torch

from maxflip.models.trees.known import forests_of
from maxflip.problem.problem import Problem
from maxflip.search import trees
from maxflip.search.settings import TREES
from maxflip.search.surface import Surface
from maxflip.search.trees import Found

__all__ = ["Found", "applies", "search"]


def applies(problem: Problem) -> bool:
    """Whether changes by any amount are searched without gradients."""
    return bool(forests_of(problem.classifier))


def search(
    surface: Surface,
    at: torch.Tensor | None = None,
    *,
    known: torch.Tensor | None = None,
    limit: torch.Tensor | None = None,
    restarts: int = TREES.restarts,
) -> Found:
    """The cheapest flips of the samples `at` of the surface; all, if None.

    known (B, A): flips to begin from, 0 where there are none   limit (B,): flips that cost more are of no use
    restarts: rounds of destroy and repair
    """
    return trees.search(surface, at, known=known, limit=limit, restarts=restarts)
