"""The cheapest flip of each sample at given prices: exact for linear models, through cells for trees, a gradient search
for others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from maxflip._util.types import Floats, Mask, Rows
from maxflip.judge import is_flip
from maxflip.problem.problem import Problem
from maxflip.search import flat, gradient, linear
from maxflip.search.lawful import lawful_flips
from maxflip.search.prices import FeaturePrices
from maxflip.search.surface import Evaluations, Surface

__all__ = ["FeaturePrices", "Flips", "cheapest_flips"]


@dataclass(frozen=True, eq=False)
class Flips:
    """For a batch of rows (B,): the change (B, F), whether it is a flip, and if not, why."""

    rows: Rows
    changes: Floats
    found: Mask
    unreachable: Mask  # proved
    unusable: Mask  # no flip found, and some model output was not finite
    evaluations: Evaluations


def cheapest_flips(problem: Problem, rows: Rows, prices: FeaturePrices, levers: Floats | None = None) -> Flips:
    """Find the cheapest flips. Each one is checked by the judge, exactly as it will be stored.

    levers (B, K): changes of levers that come first and are part of the flips; rows may then repeat. None: none
    """
    if not len(problem.actionable):
        no, yes = np.zeros(len(rows), bool), np.ones(len(rows), bool)
        return Flips(rows, np.zeros((len(rows), problem.width)), no, yes, no, Evaluations())
    surface = Surface(problem, rows, prices, levers=levers)
    nothing_moves = ((surface.low == 0) & (surface.high == 0)).all(dim=1)
    if problem.linear is not None and linear.applies(problem.linear, problem.goal):
        exact, unreachable = linear.search_and_prove(surface, problem.linear)
        change, found = exact.change, exact.found
    elif flat.applies(problem):
        best = flat.search(surface)
        change, found, unreachable = best.change, best.found, best.unreachable
    else:
        smooth = gradient.search(surface)
        change, found, unreachable = smooth.change, smooth.found, torch.zeros_like(smooth.found)
        if not surface.is_smooth:
            at = torch.nonzero(found).flatten()
            change[at], found[at] = lawful_flips(surface, change[at], at)
    changes = surface.stored(torch.where(found[:, None], change, 0.0), torch.arange(len(rows)))
    has_flip = found.cpu().numpy()
    has_flip[has_flip] = is_flip(problem, rows[has_flip], changes[has_flip])
    surface.evaluations.forwards += int(found.sum())
    return Flips(
        rows=rows,
        changes=changes,
        found=has_flip,
        unreachable=(unreachable | nothing_moves).cpu().numpy() & ~has_flip,
        unusable=surface.broken.cpu().numpy() & ~has_flip,
        evaluations=surface.evaluations,
    )
