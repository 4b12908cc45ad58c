"""BCMS, Algorithm 2: every sample is picked with its own probability."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch

from maxflip.solvers.paper.chance import ChanceAlgorithm, Selections
from maxflip.solvers.paper.details import DETAILS
from maxflip.solvers.paper.loop import Setting
from maxflip.solvers.paper.selection import bernoulli
from maxflip.solvers.paper.steps import into_unit_interval

if TYPE_CHECKING:
    from maxflip.solvers.paper.solvers import BCMS


def algorithm(solver: BCMS, setting: Setting) -> ChanceAlgorithm:
    pi = torch.full_like(setting.search.worth, DETAILS.first_probability)
    return ChanceAlgorithm(solver, setting, pi, partial(_draw, solver), into_unit_interval)


def _draw(solver: BCMS, pi: torch.Tensor, noise: Callable[[], torch.Generator]) -> Selections:
    return Selections(bernoulli(pi, solver.omega, solver.draws, noise()), picked=pi)
