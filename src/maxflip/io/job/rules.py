"""Rules between the tables of a job: a fault per contradiction, before cohort or model is opened."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maxflip._util.faults import Fault, Place, about, missing, wrong
from maxflip._util.messages import did_you_mean, listed
from maxflip.data.derived import Derived, faults_of_budgets, no_own
from maxflip.io.job.places import at
from maxflip.io.job.schema import (
    BudgetForm,
    CohortForm,
    GoalForm,
    LimitForm,
    ModelForm,
    MustHoldForm,
    QuotaForm,
    ReportForm,
    SolverForm,
)
from maxflip.problem.few import most_changes_faults
from maxflip.problem.limit import FROZEN, size_faults
from maxflip.problem.must_hold import from_table, read_must_hold, twice_stepped
from maxflip.problem.quotas import bound_faults
from maxflip.problem.target import requirement_faults, resolve_target

_KINDS = ("probabilities", "decision")
PER_ID = "for sequences, a column with one value per id must be in the static file. Name it in cohort.static."


def unknown_features(
    cohort: CohortForm, budgets: Mapping[str, BudgetForm], limits: Mapping[str, LimitForm], derived: Collection[str]
) -> set[str]:
    """Names that other tables use as features but cohort.features does not contain."""
    drawing = {
        feature
        for name, budget in budgets.items()
        if budget.cost != "count"
        for feature in ([name] if budget.uses is None else budget.uses)
    }
    return (drawing | {*limits, *cohort.units, *derived}) - {*cohort.features, *cohort.static_features}


def missing_columns(cohort: CohortForm, columns: Collection[str]) -> list[Fault]:
    """A fault for each feature that the cohort's file has no column for."""
    return [
        about(at("cohort.features"), f"{cohort.file} has no column {name!r}.{did_you_mean(name, columns)}")
        for name in dict.fromkeys(cohort.features)
        if name not in columns
    ]


def cohort_faults(cohort: CohortForm, known: Collection[str]) -> Iterator[Fault]:
    """known: names that may have units"""
    names = cohort.features
    if not names:
        yield wrong(at("cohort.features"), [], "must name at least one column.")
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        yield about(at("cohort.features"), f"{name!r} is named {names.count(name)} times. Name it once.")
    if cohort.id in names:
        yield about(at("cohort.id"), f"{cohort.id!r} is the id column and cannot be a feature.", at("cohort.features"))
    yield from _sequence_faults(cohort) if cohort.is_sequences else _table_faults(cohort)
    for name in cohort.units:
        if name not in known and name not in cohort.static_features:
            yield about(("cohort", "units", name), _no_feature(name, names))


def _table_faults(cohort: CohortForm) -> Iterator[Fault]:
    for key in ("time", "static", "static_features", "steps", "steps_column"):
        if getattr(cohort, key):
            yield about(("cohort", key), 'only sequences have it. Write kind = "sequences", or leave it out.')


def _sequence_faults(cohort: CohortForm) -> Iterator[Fault]:
    if cohort.time is None:
        yield missing(at("cohort.time"), "is missing; wanted the name of the column with the time of each step.")
    if cohort.steps is not None and cohort.steps_column is not None:
        yield about(at("cohort.steps"), "give one of the two.", at("cohort.steps_column"))
    if cohort.static_features and cohort.static is None:
        yield about(at("cohort.static_features"), "there is no static file. Name it in cohort.static.")
    roles: dict[str, str] = {cohort.id: "cohort.id"} | dict.fromkeys(cohort.features, "cohort.features")
    others = [("cohort.time", cohort.time), ("cohort.steps_column", cohort.steps_column)]
    for role, name in [*others, *(("cohort.static_features", name) for name in cohort.static_features)]:
        if name is None:
            continue
        if name in roles:
            yield about(at(roles[name]), f"{name!r} is in both. A column has one role.", at(role))
        roles.setdefault(name, role)


def report_faults(report: ReportForm, cohort: CohortForm) -> Iterator[Fault]:
    if report.group == cohort.id:
        yield about(
            at("report.group"), f"{cohort.id!r} is the id column: each group would be one sample.", at("cohort.id")
        )
    if report.reference is not None and cohort.is_sequences:
        yield about(at("report.reference"), "only jobs with tables have it; for sequences, use Python. Leave it out.")


def per_sample_faults(
    cohort: CohortForm,
    goal: GoalForm | None,
    limits: Mapping[str, LimitForm],
    budgets: Mapping[str, BudgetForm],
    report: ReportForm | None,
) -> Iterator[Fault]:
    """For sequences, per-sample columns need a static file."""
    if not cohort.is_sequences or cohort.static is not None:
        return
    named: list[Place] = [
        ("goal", key) for key in ("target_column", "worth_column") if goal is not None and getattr(goal, key)
    ]
    named += [("report", "group")] if report is not None and report.group else []
    sides = ("min_column", "max_column")
    named += [("limits", name, key) for name, limit in limits.items() for key in sides if getattr(limit, key)]
    named += [("budgets", name) for name, budget in budgets.items() if budget.asked.columns]
    for key in named:
        yield about(key, PER_ID)


def solver_faults(solver: SolverForm, cohort: CohortForm | None) -> Iterator[Fault]:
    if solver.allocation == "proportional" and solver.groups is None:
        yield missing(
            at("solver.groups"), "is missing; a proportional allocation needs it: how many groups, of similar lengths."
        )
    if solver.allocation == "joint" and solver.groups is not None:
        yield about(
            at("solver.groups"), 'only a proportional allocation has groups. Write allocation = "proportional".'
        )
    if solver.groups is not None and solver.groups < 1:
        yield wrong(at("solver.groups"), solver.groups, "must be at least 1.")
    if solver.allocation == "proportional" and cohort is not None and not cohort.is_sequences:
        yield about(at("solver.allocation"), "groups are formed by length, and a table has no lengths. Leave it out.")


def model_faults(model: ModelForm) -> Iterator[Fault]:
    if model.classes is not None and len(set(model.classes)) < max(2, len(model.classes)):
        yield wrong(at("model.classes"), model.classes, "must be two or more different names, one per output column.")


def goal_faults(goal: GoalForm, model: ModelForm | None) -> Iterator[Fault]:
    if (goal.target is None) == (goal.target_column is None):
        got = "neither" if goal.target is None else "both"
        yield about(at("goal.target"), f"give one of the two; got {got}.", at("goal.target_column"))
    elif goal.target is not None and model is not None and model.classes:
        _, _, faults = resolve_target(goal.target, 1, len(model.classes), tuple(model.classes))
        yield from faults
    yield from _requirement_faults(goal, model)
    yield from most_changes_faults(goal.most_changes)
    for id_ in sorted(set(goal.include) & set(goal.exclude)):
        yield about(at("goal.include"), f"id {id_!r} is in both. Keep it in one.", at("goal.exclude"))


def _requirement_faults(goal: GoalForm, model: ModelForm | None) -> list[Fault]:
    """If the job does not state the model's output: only faults for both probabilities and decision values."""
    output = model.output if model is not None else "probabilities"
    faults = {kind: requirement_faults(goal.margin, goal.threshold, kind == "decision") for kind in _KINDS}
    if output is None:
        return faults["probabilities"] if faults["decision"] else []
    return faults["decision" if output == "decision" else "probabilities"]


def _no_feature(name: str, features: list[str]) -> str:
    return f"no feature is called {name!r}.{did_you_mean(name, features) or f' There are {listed(features)}.'}"


def budget_faults(
    budgets: Mapping[str, BudgetForm], features: list[str] | None, drawn_on: Collection[str]
) -> Iterator[Fault]:
    """features: what budgets may use   drawn_on: budgets that actions draw on, and that need use nothing"""
    if not budgets:
        yield about("budgets", "there is none. Add at least one table [budgets.x], where x is a feature or has `uses`.")
    for name, budget in budgets.items():
        key = ("budgets", name)
        if budget.cost == "count":
            if budget.uses is not None:
                yield about(
                    (*key, "cost"),
                    "a count budget counts people and uses no features. Leave `uses` out.",
                    (*key, "uses"),
                )
        elif budget.uses is None:
            if features is not None and name not in features and name not in drawn_on:
                other = "A budget of another name says in `uses` which features draw on it, or an action draws on it."
                other += ' One of fees alone is a count: cost = "count".' if budget.fee is not None else ""
                yield about(key, f"{_no_feature(name, features)} {other}")
        elif not budget.uses:
            yield wrong((*key, "uses"), {}, "must name at least one feature.")
        else:
            unknown = [f for f in budget.uses if features is not None and f not in features]
            yield from (about((*key, "uses", f), _no_feature(f, features or [])) for f in unknown)


def derived_faults(derived: Any, features: list[str] | None, budgets: Mapping[str, BudgetForm]) -> Iterator[Fault]:
    """Of expressions only where the features are known."""
    if not isinstance(derived, dict):
        yield wrong("derived", derived, "must be a table.")
        return
    if features is not None:
        yield from Derived.read(derived, features)[1]
    drawing = {name: [f for f in derived if _weighs(f, name, budget)] for name, budget in budgets.items()}
    yield from faults_of_budgets(drawing, derived)


def limit_faults(
    limits: Mapping[str, LimitForm],
    features: list[str] | None,
    budgets: Mapping[str, BudgetForm] | None,
    derived: Collection[str],
    by_actions: Collection[str],
) -> Iterator[Fault]:
    """by_actions: features that actions change"""
    for name, limit in limits.items():
        key = ("limits", name)
        if features is not None and name not in features:
            yield about(key, _no_feature(name, features))
        elif name in derived:
            yield about(key, no_own("limits"))
        elif name not in by_actions and budgets is not None and not any(_weighs(name, *b) for b in budgets.items()):
            yield about(key, FROZEN)
        given = [side for side in ("min", "max", "min_column", "max_column") if getattr(limit, side) is not None]
        if limit.observed and given:
            others = [(*key, side) for side in given]
            yield about((*key, "observed"), "give `observed` or the others.", *others)
        for side in ("min", "max"):
            if {side, f"{side}_column"} <= set(given):
                yield about((*key, side), "give one of the two.", (*key, f"{side}_column"))
        if limit.min is not None and limit.max is not None and limit.min > limit.max:
            yield about((*key, "min"), f"min {limit.min} is above max {limit.max}. Swap them.", (*key, "max"))
        yield from size_faults(name, limit.step, limit.smallest)


def must_hold_faults(
    asked: MustHoldForm,
    features: list[str] | None,
    budgets: Mapping[str, BudgetForm] | None,
    derived: Collection[str],
    limits: Mapping[str, LimitForm],
) -> Iterator[Fault]:
    known = list(asked.rounded or ()) if features is None else features
    weighed = {name for name in known if budgets is None or any(_weighs(name, *entry) for entry in budgets.items())}
    requirements, faults = read_must_hold(from_table(asked.uptake, asked.rounded), known, weighed, derived)
    yield from faults
    yield from twice_stepped(requirements, {name for name, limit in limits.items() if limit.step is not None})


def quota_faults(quotas: Sequence[QuotaForm], cohort: CohortForm | None, solver: SolverForm | None) -> Iterator[Fault]:
    for number, quota in enumerate(quotas, start=1):
        yield from (replace(fault, entries=(number,)) for fault in _quota_faults(quota, cohort))
    if quotas and solver is not None and solver.allocation == "proportional":
        says = "a proportional allocation divides the cohort, and a quota is about everybody picked. Leave out one."
        yield about("quotas", says, at("solver.allocation"))


def _quota_faults(quota: QuotaForm, cohort: CohortForm | None) -> Iterator[Fault]:
    given = [key for key in ("column", "value", "ids") if getattr(quota, key) is not None]
    if given not in (["column", "value"], ["ids"]):
        got = " and ".join(given) or "neither"
        yield about(at("quotas.column"), f"a group is `column` and `value`, or `ids`; got {got}.", at("quotas.ids"))
    if cohort is not None and quota.column == cohort.id:
        says = f"{cohort.id!r} is the id column. Name people in `ids`."
        yield about(at("quotas.column"), says, at("cohort.id"))
    if cohort is not None and cohort.is_sequences and cohort.static is None and quota.column is not None:
        yield about(at("quotas.column"), PER_ID)
    yield from bound_faults({"at_least": quota.at_least, "at_most": quota.at_most})


def _weighs(feature: str, name: str, budget: BudgetForm) -> bool:
    if budget.cost == "count":
        return False
    return name == feature if budget.uses is None else budget.weighs(feature)
