"""Terms: what `Problem.changed` may replace, read in one way for new and for changed problems."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maxflip._util.faults import Fault, about
from maxflip._util.frozen import FrozenMap
from maxflip._util.messages import did_you_mean, shown
from maxflip.data.cohort import Cohort
from maxflip.data.derived import faults_of_budgets
from maxflip.models import Classifier, TreeClassifier
from maxflip.problem.arguments import features_that_draw, read_budgets, read_thrift, size_faults
from maxflip.problem.budgets import Budget
from maxflip.problem.menu import Menu
from maxflip.problem.target import requirement_faults


@dataclass(frozen=True, eq=False)
class Terms:
    """Budgets, their weights in thrift, and the required confidence, which is a margin or a threshold.

    drawing: features that draw on a budget   changeable: those that may; all of them where a budget has a fault
    """

    budgets: Mapping[str, Budget]
    thrift: Mapping[str, float]
    required: float
    is_threshold: bool
    drawing: frozenset[str]
    changeable: frozenset[str]


def read_terms(
    classifier: Classifier,
    cohort: Cohort,
    menu: Menu,
    *,
    budgets: Any,
    thrift: Any,
    margin: Any,
    threshold: Any,
    derived: Collection[str] = (),
) -> tuple[Terms, list[str | Fault]]:
    """The arguments of a Problem, and their faults. Where there are any, the terms are for finding more faults only.

    derived: features that follow from others
    """
    faults: list[str | Fault] = [*requirement_faults(margin, threshold, classifier.is_decision)]
    required = 0.0 if faults else float(threshold if threshold is not None else margin)
    found, budget_faults = read_budgets(menu.drawn(budgets, cohort.features), cohort)
    drawing = frozenset(features_that_draw(found))
    weights, thrift_faults = read_thrift(thrift, found)
    faults += budget_faults or thrift_faults
    faults += faults_of_budgets({name: budget.drawing for name, budget in found.items()}, derived)
    faults += classifier.frozen_faults(cohort.features, drawing)
    faults += size_faults(cohort, drawing)
    if not classifier.has_gradients and not drawing <= menu.names:
        name = sorted(drawing - menu.names)[0]
        trees = any(isinstance(member, TreeClassifier) for member in classifier.members)
        why = "no search by amounts goes through trees yet" if trees else "the model has no gradients"
        says = f"{why}, so {name!r} cannot change by any amount. Use actions or choices alone."
        faults.append(about("budgets", says))
    if not budget_faults and not drawing and menu.levers is None:
        faults.append(
            about("budgets", "no feature draws on a budget, so nothing can change. Give at least one feature a budget.")
        )
    # A budget that is wrong may be the one that a feature was to draw on.
    changeable = frozenset(cohort.features) if budget_faults else drawing
    terms = Terms(FrozenMap(found), FrozenMap(weights), required, threshold is not None, drawing, changeable)
    return terms, faults


def with_replaced(known: Mapping[str, Budget], budgets: Any) -> tuple[dict[str, Budget], list[str | Fault]]:
    """Known budgets with these in their places, and faults. One of which only a number is given keeps all else."""
    if budgets is not None and not isinstance(budgets, Mapping):
        return dict(known), [about("budgets", f"got {shown(budgets)}; wanted {{name: amount or Budget(...)}}.")]
    found = dict(known)
    faults: list[str | Fault] = []
    for name, given in (budgets or {}).items():
        if isinstance(given, Budget):
            found[name] = given
        elif name in known:
            found[name] = replace(known[name], amount=given)
        else:
            faults.append(about("budgets", f"the problem has no budget {name!r}.{did_you_mean(str(name), known)}"))
    return found, faults
