"""maxflip: whom to pick and what to change so that as many as possible are predicted in the wanted class.

A plan moves predictions, not outcomes.
"""

from maxflip.budgets import Budget
from maxflip.classifiers import Ensemble, SklearnClassifier, Tempered, TorchClassifier
from maxflip.cohort import Cohort
from maxflip.errors import (
    InputError,
    MaxflipError,
    ModelError,
    OutputError,
    ProblemError,
    ResourceError,
    UnsafeError,
    VerifyError,
)
from maxflip.pipeline import solve
from maxflip.plan import Fate, Plan, Status
from maxflip.problem import Problem
from maxflip.solvers import Nearest, Prices
from maxflip.study import Frontier, frontier, resolve

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Cohort",
    "Ensemble",
    "Fate",
    "Frontier",
    "InputError",
    "MaxflipError",
    "ModelError",
    "Nearest",
    "OutputError",
    "Plan",
    "Prices",
    "Problem",
    "ProblemError",
    "ResourceError",
    "SklearnClassifier",
    "Status",
    "Tempered",
    "TorchClassifier",
    "UnsafeError",
    "VerifyError",
    "frontier",
    "resolve",
    "solve",
]
