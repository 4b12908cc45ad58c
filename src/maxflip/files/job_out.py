"""A Problem as the files of a job, so that a plan made in Python can be audited: its cohort, and what was asked."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from maxflip.classifiers import SklearnClassifier, TorchClassifier
from maxflip.cohort import plain_name
from maxflip.errors import InputError
from maxflip.exact import Floats
from maxflip.files.atomic import put_bytes
from maxflip.plan import Plan
from maxflip.problem import Problem

_DIRECTIONS = {1: "up", -1: "down"}


def write_job(problem: Problem, plan: Plan, model: Path, folder: Path) -> dict[str, Path]:
    """cohort.parquet and job.toml into the folder; where the plan's inputs lie."""
    if not isinstance(problem.classifier, TorchClassifier):
        raise InputError("model: a job knows no Ensemble and no Tempered. Save the plan without `model`.")
    columns = _Columns(problem)
    tables: dict[str, dict[str, Any]] = {
        "cohort": {
            "file": "cohort.parquet",
            "id": columns.add("id", problem.cohort.ids.tolist(), pa.string()),
            "features": list(problem.cohort.features),
            "units": dict(problem.cohort.units),
        },
        "model": {"file": relative_path(folder, model), **_model(problem.classifier, problem.goal.wanted.shape[1])},
        "goal": _goal(problem, columns),
        "solver": {"name": plan.solver.partition("(")[0].lower(), "seed": plan.seed},
    }
    for name, b in problem.budgets.items():
        tables[f"budgets.{_key(name)}"] = {"amount": b.amount, "cost": b.cost, **({"uses": b.uses} if b.uses else {})}
    for name, limit in _limits(problem, columns).items():
        tables[f"limits.{_key(name)}"] = limit
    text = "# Written by maxflip from Python; the solver's options are in summary.json.\nformat = 1\n"
    for name, table in tables.items():
        text += f"\n[{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())
    sink = io.BytesIO()
    pq.write_table(pa.table(columns.arrays), sink)
    put_bytes(folder / "cohort.parquet", sink.getvalue())
    put_bytes(folder / "job.toml", text.encode())
    return {"cohort": folder / "cohort.parquet", "model": model, "job": folder / "job.toml"}


def relative_path(folder: Path, path: Path) -> str:
    """ "../x" leads out of the folder that a link leads to, not out of the one where the link stands."""
    return Path(os.path.relpath(path.parent.resolve() / path.name, folder.resolve())).as_posix()


class _Columns:
    """The columns of the cohort's file: features, and what else there is one of per sample, under names of its own."""

    def __init__(self, problem: Problem) -> None:
        values = problem.cohort.values
        self.arrays = {name: pa.array(values[:, i], pa.float64()) for i, name in enumerate(problem.cohort.features)}

    def add(self, name: str, cells: list[Any], kind: pa.DataType) -> str:
        taken = {plain_name(other) for other in self.arrays}
        while plain_name(name) in taken:
            name += "_"
        self.arrays[name] = pa.array(cells, kind)
        return name


def _model(classifier: TorchClassifier, classes: int) -> dict[str, Any]:
    """A .skops says it itself."""
    if isinstance(classifier, SklearnClassifier):
        return {}
    return {"output": classifier.output, "classes": list(classifier.classes or map(str, range(classes)))}


def _goal(problem: Problem, columns: _Columns) -> dict[str, Any]:
    goal, ids = problem.goal, problem.cohort.ids
    asked: dict[str, Any] = {"threshold" if goal.is_threshold else "margin": goal.required}
    if len(goal.wanted) == 1:
        names, columns_wanted = problem.classifier.classes, np.flatnonzero(goal.wanted[0]).tolist()
        asked["target"] = columns_wanted if names is None else [names[i] for i in columns_wanted]
    else:
        asked["target_column"] = columns.add("target", goal.wanted.argmax(axis=1).tolist(), pa.int64())
    if (problem.worth != 1.0).any():
        asked["worth_column"] = columns.add("worth", problem.worth.tolist(), pa.float64())
    for name, rows in (("include", problem.include), ("exclude", problem.exclude)):
        if len(rows):
            asked[name] = ids[rows].tolist()
    return asked


def _limits(problem: Problem, columns: _Columns) -> dict[str, dict[str, Any]]:
    found = {}
    for i in problem.actionable.tolist():
        feature = problem.cohort.features[i]
        limit = _side("min", problem.limits.lower[:, i], feature, columns)
        limit |= _side("max", problem.limits.upper[:, i], feature, columns)
        if way := _DIRECTIONS.get(int(problem.limits.direction[i])):
            limit["direction"] = way
        if limit:
            found[feature] = limit
    return found


def _side(side: str, bounds: Floats, feature: str, columns: _Columns) -> dict[str, Any]:
    if np.isinf(bounds).all():
        return {}
    if (bounds == bounds[0]).all():
        return {side: float(bounds[0])}
    cells = [None if np.isinf(b) else b for b in bounds.tolist()]
    return {f"{side}_column": columns.add(f"{feature}_{side}", cells, pa.float64())}


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """On one line. A text of JSON is one of TOML, but for a character that JSON leaves bare."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
