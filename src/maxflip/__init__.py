"""maxflip: whom to pick and what to change so that as many as possible are predicted in the wanted class.

A plan moves predictions, not outcomes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxflip.bracket import Bracket
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
    from maxflip.insight import Insight, look
    from maxflip.margins import SuggestedMargin, suggest_margin
    from maxflip.must_hold import Rounded, Uptake
    from maxflip.pipeline import solve
    from maxflip.plan import Fate, Plan, Status
    from maxflip.problem import Problem
    from maxflip.solvers import BCMS, CCMS, KL, MS, Nearest, Prices
    from maxflip.study import Frontier, frontier, resolve
    from maxflip.tuning import Tuned, tune

__version__ = "0.1.0"

__all__ = [
    "BCMS",
    "CCMS",
    "KL",
    "MS",
    "Bracket",
    "Budget",
    "Cohort",
    "Ensemble",
    "Fate",
    "Frontier",
    "InputError",
    "Insight",
    "MaxflipError",
    "ModelError",
    "Nearest",
    "OutputError",
    "Plan",
    "Prices",
    "Problem",
    "ProblemError",
    "ResourceError",
    "Rounded",
    "SklearnClassifier",
    "Status",
    "SuggestedMargin",
    "Tempered",
    "TorchClassifier",
    "Tuned",
    "UnsafeError",
    "Uptake",
    "VerifyError",
    "frontier",
    "look",
    "resolve",
    "solve",
    "suggest_margin",
    "tune",
]

_HOMES = {
    "bracket": ["Bracket"],
    "budgets": ["Budget"],
    "classifiers": ["Ensemble", "SklearnClassifier", "Tempered", "TorchClassifier"],
    "cohort": ["Cohort"],
    "insight": ["Insight", "look"],
    "margins": ["SuggestedMargin", "suggest_margin"],
    "must_hold": ["Rounded", "Uptake"],
    "pipeline": ["solve"],
    "plan": ["Fate", "Plan", "Status"],
    "problem": ["Problem"],
    "solvers": ["BCMS", "CCMS", "KL", "MS", "Nearest", "Prices"],
    "study": ["Frontier", "frontier", "resolve"],
    "tuning": ["Tuned", "tune"],
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
