"""maxflip: whom to pick and what to change so that as many as possible are predicted in the wanted class.

A plan moves predictions, not outcomes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxflip._util.engine import Local
    from maxflip._util.events import Event
    from maxflip.data.cohort import Cohort
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
    from maxflip.models import (
        BlackBoxClassifier,
        Ensemble,
        SklearnClassifier,
        Tempered,
        TorchClassifier,
        TreeClassifier,
    )
    from maxflip.plan.bracket import Bracket
    from maxflip.plan.plan import Fate, Plan, Status
    from maxflip.problem.actions import Action
    from maxflip.problem.budgets import Budget, Ways
    from maxflip.problem.limit import Limit
    from maxflip.problem.must_hold import Rounded, Uptake
    from maxflip.problem.problem import Problem
    from maxflip.problem.quotas import Quota
    from maxflip.solvers import BCMS, CCMS, KL, MS, Grouped, Nearest, Prices
    from maxflip.solving import solve
    from maxflip.study.frontier import Frontier, frontier, resolve
    from maxflip.study.insight import Insight
    from maxflip.study.look import look
    from maxflip.study.margins import SuggestedMargin, suggest_margin
    from maxflip.study.sizing import size_budgets
    from maxflip.study.tuning import Tuned, tune

__version__ = "0.2.0"

__all__ = [
    "BCMS",
    "CCMS",
    "KL",
    "MS",
    "Action",
    "BlackBoxClassifier",
    "Bracket",
    "Budget",
    "Cohort",
    "Ensemble",
    "Event",
    "Fate",
    "Frontier",
    "Grouped",
    "InputError",
    "Insight",
    "Limit",
    "Local",
    "MaxflipError",
    "ModelError",
    "Nearest",
    "OutputError",
    "Plan",
    "Prices",
    "Problem",
    "ProblemError",
    "Quota",
    "ResourceError",
    "Rounded",
    "SklearnClassifier",
    "Status",
    "SuggestedMargin",
    "Tempered",
    "TorchClassifier",
    "TreeClassifier",
    "Tuned",
    "UnsafeError",
    "Uptake",
    "VerifyError",
    "Ways",
    "frontier",
    "look",
    "resolve",
    "size_budgets",
    "solve",
    "suggest_margin",
    "tune",
]

_HOMES = {
    "_util.engine": ["Local"],
    "_util.events": ["Event"],
    "models": ["BlackBoxClassifier", "Ensemble", "SklearnClassifier", "Tempered", "TorchClassifier", "TreeClassifier"],
    "data.cohort": ["Cohort"],
    "plan.bracket": ["Bracket"],
    "plan.plan": ["Fate", "Plan", "Status"],
    "problem.actions": ["Action"],
    "problem.budgets": ["Budget", "Ways"],
    "problem.limit": ["Limit"],
    "problem.must_hold": ["Rounded", "Uptake"],
    "problem.problem": ["Problem"],
    "problem.quotas": ["Quota"],
    "solving": ["solve"],
    "solvers": ["BCMS", "CCMS", "KL", "Grouped", "MS", "Nearest", "Prices"],
    "study.frontier": ["Frontier", "frontier", "resolve"],
    "study.insight": ["Insight"],
    "study.look": ["look"],
    "study.margins": ["SuggestedMargin", "suggest_margin"],
    "study.sizing": ["size_budgets"],
    "study.tuning": ["Tuned", "tune"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Names are imported when they are asked for: torch takes a second, in which the program must answer signals."""
    if name not in __all__:
        raise AttributeError(f"module 'maxflip' has no attribute {name!r}")
    value = getattr(import_module(f"maxflip.{_HOME.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
