"""A Problem as the files of a job, so that a plan made in Python can be audited."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from maxflip._util.atomic import put_bytes
from maxflip._util.types import Floats
from maxflip.errors import InputError
from maxflip.io.cohort.write import CohortFiles
from maxflip.io.job.named import named
from maxflip.io.own_columns import budget_table
from maxflip.models import SklearnClassifier, TorchClassifier, TreeClassifier
from maxflip.plan.kept import KeptQuota
from maxflip.plan.plan import Plan
from maxflip.problem.must_hold import as_table
from maxflip.problem.own import Part
from maxflip.problem.problem import Problem

_DIRECTIONS = {1: "up", -1: "down"}


def write_job(problem: Problem, plan: Plan, model: Path, folder: Path) -> tuple[dict[str, Path], Plan]:
    """Write job.toml and the cohort's files into the folder; return the paths of the plan's inputs, and the plan with
    budgets and quotas as the job has them."""
    if not isinstance(problem.classifier, TorchClassifier | TreeClassifier):
        raise InputError(
            f"model: a job has a model file, and no {type(problem.classifier).__name__} has one. Save the plan without "
            "`problem` and `model`."
        )
    files = CohortFiles(problem)
    menu = problem.menu
    files.add_groups(problem)
    quotas = tuple(_kept(kept, files) for kept in plan.quotas)
    budgets = named({name: menu.without_actions(name, b) for name, b in problem.budgets.items()}, files)
    goal, limits = _goal(problem, files), _limits(problem, files)
    tables: dict[str, dict[str, Any]] = {
        "cohort": files.table(),  # after all columns were added
        "model": {"file": relative_path(folder, model), **_model(problem)},
        "goal": goal,
        "solver": _solver(plan),
    }
    if problem.derived.texts:
        tables["derived"] = dict(problem.derived.texts)
    if problem.scenarios.requirements:
        tables["must_hold"] = as_table(problem.scenarios.requirements)
    for name, b in budgets.items():
        thrift = {"thrift": problem.thrift[name]} if name in problem.thrift else {}
        stated = {key: value for key, value in budget_table(b).items() if key != "uses" or value}
        tables[f"budgets.{_key(name)}"] = {"amount": b.amount, "cost": b.cost, **stated, **thrift}
    for name, limit in limits.items():
        tables[f"limits.{_key(name)}"] = limit
    tables |= _menu(problem, files)
    headed = [(f"[{name}]", table) for name, table in tables.items()]
    headed += [("[[quotas]]", kept.quota.as_table()) for kept in quotas]
    text = f"# Written by maxflip from Python.\n{_unsaid(plan)}format = 1\n"
    for head, table in headed:
        text += f"\n{head}\n" + "".join(f"{_key(key)} = {_toml(value)}\n" for key, value in table.items())
    put_bytes(folder / "job.toml", text.encode())
    found = {"cohort": folder / "cohort.parquet", "model": model, "job": folder / "job.toml"}
    put_bytes(found["cohort"], files.cohort.parquet())
    if files.has_static:
        found["static"] = folder / "static.parquet"
        put_bytes(found["static"], files.samples.parquet())
    whole = {name: menu.with_actions(name, b) for name, b in budgets.items()}
    return found, replace(plan, budgets=whole, quotas=quotas)


def _kept(kept: KeptQuota, files: CohortFiles) -> KeptQuota:
    """With the name that the files give the column of its group."""
    group = kept.quota.group
    if not isinstance(group, tuple):
        return kept
    column, value = group
    called = {name: own for (name, _), own in files.groups.items()}
    return replace(kept, quota=replace(kept.quota, group=(called.get(str(column), str(column)), value)))


def _menu(problem: Problem, files: CohortFiles) -> dict[str, dict[str, Any]]:
    """Of switches, the weights stand among the uses of the budgets."""
    menu = problem.menu
    tables: dict[str, dict[str, Any]] = {}
    for one in menu.actions:
        who = None if one.who is None else _who(one.who, files)
        said: dict[str, Any] = {"effects": one.effects, "draws": one.draws, "who": who, "excludes": list(one.excludes)}
        tables[f"actions.{_key(one.name)}"] = {key: value for key, value in said.items() if value}
    for name, distances in menu.choices.items():
        tables[f"choices.{_key(name)}"] = dict(distances)
    return tables | ({"one_hot": {name: list(codes) for name, codes in menu.one_hot.items()}} if menu.one_hot else {})


def _who(part: Part, files: CohortFiles) -> dict[str, Any]:
    """By a column of the cohort's file, else by ids."""
    if isinstance(part.group, tuple):
        column, value = part.group
        called = column if column in files.people.features else files.groups.get((column, type(value)))
        if called is not None:
            return {"column": called, "value": value}
    return {"ids": files.people.ids[part.inside].tolist()}


def _solver(plan: Plan) -> dict[str, Any]:
    used = plan.solver
    table: dict[str, Any] = {"name": used.name.lower(), "seed": plan.seed}
    if used.groups is not None:
        table |= {"allocation": used.allocation, "groups": used.groups}
    options = {name: value for name, value in used.options.items() if value is not None}
    return table | ({"options": options} if options else {})


def _unsaid(plan: Plan) -> str:
    """A comment on options that are None, for which TOML has no value."""
    none = [name for name, value in plan.solver.options.items() if value is None]
    return f"# Options of the solver that are None are only in summary.json: {', '.join(none)}.\n" if none else ""


def relative_path(folder: Path, path: Path) -> str:
    """With links resolved: "../x" leads out of a link's target, not out of the folder with the link."""
    return Path(os.path.relpath(path.parent.resolve() / path.name, folder.resolve())).as_posix()


def _model(problem: Problem) -> dict[str, Any]:
    """Output and classes. A .skops, trees and a network for sequences state them, except other names of classes.
    Classes without names get none: invented names could not be told from real ones."""
    classifier, names = problem.classifier, problem.classifier.classes
    named = {} if names is None else {"classes": list(names)}
    if isinstance(classifier, SklearnClassifier | TreeClassifier) or problem.cohort.ragged is not None:
        return named
    return {"output": classifier.output if isinstance(classifier, TorchClassifier) else None, **named}


def _goal(problem: Problem, files: CohortFiles) -> dict[str, Any]:
    goal, ids = problem.goal, problem.cohort.ids
    asked: dict[str, Any] = {"threshold" if goal.is_threshold else "margin": goal.required}
    if len(goal.wanted) == 1:
        names, columns_wanted = problem.classifier.classes, np.flatnonzero(goal.wanted[0]).tolist()
        asked["target"] = columns_wanted if names is None else [names[i] for i in columns_wanted]
    else:
        asked["target_column"] = files.samples.add("target", goal.wanted.argmax(axis=1).tolist(), pa.int64())
    if (problem.worth != 1.0).any():
        asked["worth_column"] = files.samples.add("worth", problem.worth.tolist(), pa.float64())
    if problem.menu.actions:
        asked["most_actions"] = problem.menu.most_actions
    for name, rows in (("include", problem.include), ("exclude", problem.exclude)):
        if len(rows):
            asked[name] = ids[rows].tolist()
    if problem.few.most is not None:
        asked["most_changes"] = problem.few.most
    if not problem.tidy:
        asked["tidy"] = False
    return asked


def _limits(problem: Problem, files: CohortFiles) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for i in problem.limited.tolist():
        feature = problem.cohort.features[problem.slots.feature[i]]
        if feature in found:  # all slots of a feature have its limits
            continue
        limit = _side("min", problem.limits.lower[:, i], feature, files)
        limit |= _side("max", problem.limits.upper[:, i], feature, files)
        if direction := _DIRECTIONS.get(int(problem.limits.direction[i])):
            limit["direction"] = direction
        if problem.grid.is_rule[i]:
            limit["step"] = float(problem.grid.step[i])
        if problem.grid.smallest[i]:
            limit["smallest"] = float(problem.grid.smallest[i])
        if limit:
            found[feature] = limit
    return found


def _side(side: str, bounds: Floats, feature: str, files: CohortFiles) -> dict[str, Any]:
    if np.isinf(bounds).all():
        return {}
    if (bounds == bounds[0]).all():
        return {side: float(bounds[0])}
    cells = [None if np.isinf(b) else b for b in bounds.tolist()]
    return {f"{side}_column": files.samples.add(f"{feature}_{side}", cells, pa.float64())}


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """The value on one line. JSON strings are TOML strings, except for DEL, which TOML requires to be escaped."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, np.generic):
        return _toml(value.item())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
