"""A small problem on stage: 2 samples, 2 features, a linear model, and an algorithm with everything set by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from maxflip import BCMS, CCMS, KL, MS, Problem, judge
from maxflip._util.engine import Local
from maxflip._util.events import silent
from maxflip._util.rng import Streams
from maxflip.solvers.base import Run
from maxflip.solvers.paper import bcms, ccms
from maxflip.solvers.paper.chance import ChanceAlgorithm
from maxflip.solvers.paper.kl import KLAlgorithm
from maxflip.solvers.paper.loop import Setting
from maxflip.solvers.paper.ms import MSAlgorithm
from maxflip.solvers.paper.multipliers import Multipliers
from maxflip.solvers.paper.search import Search
from maxflip.solvers.paper.settings import Units
from tests.examples import linear_problem

W = np.array([1.0, -0.5])
X = np.array([[-1.0, 0.4], [-0.3, 0.8]])
U = np.array([[0.6, -0.2], [0.1, 0.3]])  # the changes so far
AMOUNTS = np.array([2.0, 0.5])
LAMBDA, MU = np.array([0.7, 1.3]), np.array([1.1, 0.4])
DELTA = 0.1


def two_samples(**options: Any) -> Problem:
    return linear_problem(W, X, AMOUNTS, **options)


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(values), dtype=torch.float64)


@cache
def run_of(problem: Problem, seed: int = 0) -> Run:
    with problem.classifier.borrowed():
        return Run(Streams(seed), silent, Local(1), judge.standing(problem, Local(1), silent))


def setting_of(
    problem: Problem, u: Any = U, lambda_: Any = LAMBDA, mu: Any = MU, units: Units = "raw", counts: bool = True
) -> Setting:
    """Multipliers and changes as given, for all rows of the problem; gamma = eta = 1"""
    search = Search(problem, np.arange(len(problem)), units, counts)
    multipliers = Multipliers(tensor(lambda_)[: len(search.budgets)], tensor(mu), gamma=1.0, eta=1.0)
    return Setting(search, multipliers, tensor(u), run_of(problem))


def ms(problem: Problem, solver: MS, **options: Any) -> MSAlgorithm:
    return MSAlgorithm(solver, setting_of(problem, units=solver.units, **options))


def kl(problem: Problem, solver: KL, **options: Any) -> KLAlgorithm:
    return KLAlgorithm(solver, setting_of(problem, units=solver.units, counts=False, **options))


def chance(problem: Problem, solver: BCMS | CCMS, pi: Any, **options: Any) -> ChanceAlgorithm:
    setting = setting_of(problem, units=solver.units, **options)
    algorithm = bcms.algorithm(solver, setting) if isinstance(solver, BCMS) else ccms.algorithm(solver, setting)
    algorithm.pi = tensor(pi)
    return algorithm
