"""CCMS, Algorithm 3: samples are picked by K random choices from one distribution over all samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch

from maxflip.solvers.paper.chance import ChanceAlgorithm, Selections
from maxflip.solvers.paper.loop import Setting
from maxflip.solvers.paper.selection import categorical, hits
from maxflip.solvers.paper.settings import Projection
from maxflip.solvers.paper.steps import onto_simplex, renormalised

if TYPE_CHECKING:
    from maxflip.solvers.paper.solvers import CCMS

_PROJECTED: dict[Projection, Callable[[torch.Tensor], torch.Tensor]] = {
    "renormalise": renormalised,
    "simplex": onto_simplex,
}


def algorithm(solver: CCMS, setting: Setting) -> ChanceAlgorithm:
    pi = torch.full_like(setting.search.worth, 1.0 / len(setting.search.worth))
    return ChanceAlgorithm(solver, setting, pi, partial(_draw, solver), _PROJECTED[solver.projection])


def _draw(solver: CCMS, pi: torch.Tensor, noise: Callable[[], torch.Generator]) -> Selections:
    count = math.ceil(solver.choices * len(pi))
    summed = categorical(pi, solver.omega, solver.draws, count, noise)
    v = hits(summed)
    return Selections(v, picked=v.mean(dim=0), saturated=float((summed >= 1.0).double().mean()))
