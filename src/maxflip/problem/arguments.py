"""What a Problem is given, read: each argument by itself, as what it means and a list of its faults."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import torch

from maxflip._util.faults import BadCell, Fault, Kind, about, grouped, within, wrong
from maxflip._util.frozen import FrozenMap
from maxflip._util.messages import counted, did_you_mean, listed, shown
from maxflip._util.types import Floats, Rows
from maxflip.data.cohort import Cohort, in_cohort_order, is_number, real_numbers
from maxflip.data.scale import spread_of
from maxflip.data.tables import is_listing
from maxflip.errors import ProblemError
from maxflip.models import Classifier
from maxflip.problem.budget_functions import ROWS, STEPS, FunctionCost, probe
from maxflip.problem.budgets import COSTS, HUGE, Budget
from maxflip.problem.limits import Limits
from maxflip.problem.read_own import read_number, read_part, read_weight
from maxflip.problem.target import resolve_target

SMALLEST_WORTH, LARGEST_WORTH = 1e-100, 1e100  # but for 0: squares and quotients of others are no float64


def read_budgets(budgets: Any, cohort: Cohort) -> tuple[dict[str, Budget], list[str | Fault]]:
    if not isinstance(budgets, Mapping) or not budgets:
        return {}, [about("budgets", f"got {shown(budgets)}; wanted at least one, as {{name: amount or Budget(...)}}.")]
    found: dict[str, Budget] = {}
    faults: list[str | Fault] = []
    for name, given in budgets.items():
        if not isinstance(name, str):
            says = f"the name {shown(name)} is no text. Name a budget by a text, such as its feature."
            faults.append(about("budgets", says))
            continue
        budget = given if isinstance(given, Budget) else Budget(given)
        problems: list[str | Fault] = [*_budget_faults(name, budget, cohort.features)]
        read, more = _completed(name, budget, cohort) if not problems else (budget, [])
        problems += more
        faults += problems
        if not problems:
            found[name] = read
    return found, faults


def _completed(name: str, budget: Budget, cohort: Cohort) -> tuple[Budget, list[str | Fault]]:
    """The budget with its `uses` filled in, and its columns and arrays read; and what is wrong with these."""
    place = ("budgets", name)
    own = {} if budget.cost == "count" else {name: 1.0}
    read = {f: read_weight(w, cohort, (*place, "uses", f)) for f, w in (budget.weights or own).items()}
    faults = [fault for _, some in read.values() for fault in some]
    fee, more = (None, []) if budget.fee is None else read_number(budget.fee, cohort, (*place, "fee"))
    only, others = (None, []) if budget.only is None else read_part(budget.only, cohort, (*place, "only"))
    uses = FrozenMap({feature: weight for feature, (weight, _) in read.items()}) or None
    return Budget(float(budget.amount), uses, budget.cost, fee, only), [*faults, *more, *others]


def read_thrift(thrift: Any, budgets: Mapping[str, Budget]) -> tuple[dict[str, float], list[Fault]]:
    """{budget: weight}, of those that are named."""
    if thrift is None:
        return {}, []
    if not isinstance(thrift, Mapping):
        return {}, [about("thrift", f"got {shown(thrift)}; wanted {{budget: weight}}.")]
    faults = [
        about("thrift", f"no budget is called {shown(name)}.{did_you_mean(str(name), budgets)}")
        for name in thrift
        if name not in budgets
    ]
    faults += [
        wrong(("thrift", name), weight, "must be a finite number >= 0.")
        for name, weight in thrift.items()
        if name in budgets and not (is_number(weight) and 0 <= weight < math.inf)
    ]
    return ({} if faults else {name: float(weight) for name, weight in thrift.items()}), faults


def features_that_draw(budgets: Mapping[str, Budget]) -> set[str]:
    """Features that draw on a budget."""
    return {name for budget in budgets.values() for name in budget.drawing}


def _budget_faults(name: str, budget: Budget, features: tuple[str, ...]) -> list[Fault]:
    place, cost, using = (("budgets", name, *key) for key in ((), ("cost",), ("uses",)))
    faults = []
    uses: Any = budget.uses
    if not is_number(budget.amount):
        faults.append(wrong(place, budget.amount, "must be a number >= 0; inf for no limit."))
    elif math.isnan(budget.amount) or budget.amount < 0:
        faults.append(wrong(place, budget.amount, "must be >= 0. Use 0 to freeze the feature, inf for no limit."))
    is_function = callable(budget.cost)
    if not is_function and (not isinstance(budget.cost, str) or budget.cost not in COSTS):
        return [*faults, wrong(cost, budget.cost, "must be 'squared', 'absolute', 'count' or a function.")]
    if is_function and isinstance(uses, (list, tuple)) and all(isinstance(f, str) for f in uses):
        twice = [f for i, f in enumerate(uses) if f in uses[:i]]
        faults += [about(using, f"the feature {f!r} is listed twice. Keep it once.") for f in twice]
        uses = dict.fromkeys(uses, 1.0)
    if uses is not None and not isinstance(uses, Mapping):
        wanted = "a list of features" if is_function else "{feature: weight}"
        return [*faults, wrong(using, uses, f"must be {wanted}.")]
    if budget.cost == "count":
        if uses:
            faults.append(about(using, "a count budget counts people and uses no features. Leave `uses` out."))
        return faults
    if not uses:
        if name not in features:
            unknown = f"no feature is called {name!r}.{did_you_mean(name, features)}"
            other = "A budget of another name says which features use it, or an action draws on it."
            if budget.fee is not None:
                other += " One of fees alone is a count: cost='count'."
            faults.append(about(place, f"{unknown} {other}"))
        return faults
    for feature, weight in uses.items():
        part = (*using, str(feature))
        if feature not in features:
            faults.append(about(part, f"no feature is called {feature!r}.{did_you_mean(feature, features)}"))
        if is_function and not (is_number(weight) and weight == 1):
            faults.append(wrong(part, weight, "a function has no weights. Weigh inside it, and list the features."))
    return faults


def rows_to_try(cohort: Cohort) -> Rows:
    """On which functions are tried, evenly spaced."""
    return cohort.order[np.unique(np.linspace(0, len(cohort) - 1, min(ROWS, len(cohort))).astype(np.int64))]


def spread_for(functions: Sequence[FunctionCost], cohort: Cohort) -> Floats:
    """(F,): the spread of each feature that a function is given, 0 elsewhere

    Rows are taken in the order of their ids: a mean rounds otherwise in another order.
    """
    spread = np.zeros(len(cohort.features))
    columns = np.unique(np.concatenate([function.columns for function in functions]))
    spread[columns] = spread_of(cohort.values[np.ix_(cohort.order, columns)])
    return spread


def read_functions(budgets: Mapping[str, Budget], cohort: Cohort, limits: Limits) -> tuple[FunctionCost, ...]:
    """Those of the budgets, each tried on some rows; one ProblemError with the first fault of each."""
    functions = tuple(FunctionCost.of(name, b, cohort.features) for name, b in budgets.items() if b.is_function)
    if not functions:
        return ()
    faults = cohort.layout.function_faults([cost.where for cost in functions])
    if faults:
        raise ProblemError(faults)
    rows = np.tile(rows_to_try(cohort), len(STEPS))
    start = cohort.values[rows]
    low, high = limits.box(start, rows)
    steps = np.repeat(STEPS, len(rows) // len(STEPS))[:, None] * spread_for(functions, cohort)
    changes = limits.settle(start, np.clip(steps, low, high), rows)
    faults = [f for cost in functions for f in probe(cost, start, changes, lambda j: cohort.where(int(rows[j])))]
    if faults:
        raise ProblemError(faults)
    return functions


def read_worth(worth: Any, cohort: Cohort) -> tuple[Floats, list[str | Fault]]:
    n = len(cohort)
    if worth is None:
        return np.ones(n), []
    if isinstance(worth, Mapping):
        without = [i for i in cohort.ids.tolist() if i not in worth]
        if without:
            unsaid = f"says nothing of {counted(len(without), 'sample')}: {listed(without)}."
            return np.ones(n), [about("worth", f"{unsaid} Give each a number; 1 is what a sample counts otherwise.")]
        worth = [worth[i] for i in cohort.ids.tolist()]
    in_order = in_cohort_order(worth, cohort)
    try:
        values = real_numbers(in_order)
    except (TypeError, ValueError, OverflowError):
        return np.ones(n), [about("worth", f"got {shown(worth)}; wanted one number >= 0 per sample.")]
    if values.shape != (n,):
        return np.ones(n), [about("worth", f"shape {values.shape}; wanted one number per sample, ({n},).")]
    bad = np.flatnonzero(~((values == 0) | ((values >= SMALLEST_WORTH) & (values <= LARGEST_WORTH))))
    wanted = f"must be 0, or a number from {SMALLEST_WORTH:g} to {LARGEST_WORTH:g}."

    def sentence(j: int, value: str) -> str:
        return f"worth: {cohort.where(j)}: {value}; {wanted}" + (" Use another unit." if values[j] > 0 else "")

    return values, [*grouped({j: BadCell(Kind.VALUE, str(values[j])) for j in bad.tolist()}, sentence, "worth")]


def read_ids(name: str, ids: Iterable[str | int] | None, cohort: Cohort) -> tuple[Rows, list[Fault]]:
    if isinstance(ids, str):
        return np.empty(0, np.int64), [about(name, f"got the text {shown(ids)}; wanted a list of ids.")]
    if ids is not None and not is_listing(ids) and not isinstance(ids, AbstractSet):
        return np.empty(0, np.int64), [about(name, f"got {shown(ids)}; wanted a list of ids.")]
    texts = [] if ids is None else [str(i) for i in ids]
    unknown = [t for t in texts if t not in cohort.row_of] if texts else []
    faults = [about(name, f"no sample has the id {shown(t)}.{did_you_mean(t, cohort.ids[:1000])}") for t in unknown]
    rows = sorted({cohort.row_of[t] for t in texts if t not in unknown}) if texts else []
    return np.array(rows, dtype=np.int64), faults


def read_picks(include: Any, exclude: Any, cohort: Cohort) -> tuple[Rows, Rows, list[Fault]]:
    """Rows that must be picked, those that must not, and faults."""
    picked, pick_faults = read_ids("include", include, cohort)
    barred, bar_faults = read_ids("exclude", exclude, cohort)
    both = [
        about("include", f"id {cohort.ids[j]!r} is in both. Keep it in one.", ("exclude",))
        for j in np.intersect1d(picked, barred)
    ]
    return picked, barred, pick_faults + bar_faults + both


def read_target(
    target: Any, cohort: Cohort, classes: int, names: tuple[str, ...] | None
) -> tuple[Any, Any, list[Fault]]:
    in_order = in_cohort_order(target, cohort)
    try:
        wanted, distributions, faults = resolve_target(in_order, len(cohort), classes, names)
    except (TypeError, ValueError, KeyError, OverflowError):
        kinds = "an output column, a class name, a set of them, or one of them per sample"
        return None, None, [about("target", f"got {shown(target)}; wanted {kinds}.")]
    if faults and isinstance(target, (list, tuple)) and len(target) != len(cohort):
        faults.append(
            about("target", "a list gives one class per sample. For any of several classes, give a set: {...}.")
        )
    return wanted, distributions, faults


def check_classifier(classifier: Any) -> None:
    if isinstance(classifier, torch.nn.Module):
        raise ProblemError(
            "classifier: got a torch module. Wrap it, and say what it returns: "
            "TorchClassifier(net, output='logits') or output='probabilities'."
        )
    is_wrapped = hasattr(classifier, "members")
    if not is_wrapped and (hasattr(classifier, "predict_proba") or hasattr(classifier, "decision_function")):
        raise ProblemError("classifier: got a scikit-learn model. Wrap it: SklearnClassifier(model).")
    if isinstance(classifier, type) or not hasattr(classifier, "members"):
        raise ProblemError(
            f"classifier: got {shown(classifier)}; wanted a TorchClassifier(...) or a SklearnClassifier(...)."
        )


def overflow_faults(cohort: Cohort, classifier: Classifier) -> list[Fault]:
    largest = torch.finfo(classifier.dtype).max
    cells = np.argwhere(np.abs(cohort.values) > largest)
    return [
        within(
            cohort.source,
            f"{cohort.cell(int(j), int(i))}: {cohort.values[j, i]:.6g} is beyond the model's "
            f"{str(classifier.dtype).removeprefix('torch.')}, whose largest number is {largest:.6g}.",
        )
        for j, i in cells
    ]


def size_faults(cohort: Cohort, weighed: Collection[str]) -> list[Fault]:
    """Columns that may change, with values whose squares are beyond float64. Frozen ones may be of any size."""
    return [
        within(
            cohort.source,
            f"column {name!r} has values as large as {size:.3g} and draws on a budget; a column that may change must "
            f"stay below {HUGE:.0e}. Use another unit, or give it no budget.",
        )
        for name, size in zip(cohort.features, cohort.largest.tolist(), strict=True)
        if name in weighed and size >= HUGE
    ]
