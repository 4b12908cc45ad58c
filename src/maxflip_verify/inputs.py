"""The auditor's own readers: the job and the cohort become one Case, all arrays in cohort order."""

import re
import tomllib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

from maxflip_verify.exact import Floats
from maxflip_verify.forms import FORMS, misfits
from maxflip_wall import Broken, Loaded, Unreadable, reading

Columns = dict[str, NDArray[Any]]
DEEP_KEY = re.compile(rb"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){99}""")


@dataclass(frozen=True)
class Case:
    """What the job asks of every sample."""

    job: dict[str, Any]
    features: list[str]
    ids: list[str]
    start: Floats  # (n, F)
    lower: Floats  # (n, F)
    upper: Floats  # (n, F)
    wanted: NDArray[np.bool_]  # (n, k)
    worth: Floats  # (n,)
    weights: dict[str, Floats]  # budget -> (F,)


def read_table(data: bytes, name: str, texts: tuple[str, ...] = ()) -> pa.Table:
    """A Parquet or CSV file; in a CSV the columns `texts` stay as they are written."""
    with reading(name):
        if data[:4] == b"PAR1":
            file = parquet.ParquetFile(pa.BufferReader(data))
            if file.metadata.num_rows * file.metadata.num_columns > 1 << 29:
                raise Unreadable(f"claims {file.metadata.num_rows} rows, more than can be read")
            return file.read()
        one_block = csv.ReadOptions(block_size=min(len(data) + 1, 2**31 - 1))  # so that types are those of all rows
        literally = {"null_values": [], "true_values": [], "false_values": [], "strings_can_be_null": False}
        types = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()), **literally)
        return csv.read_csv(pa.BufferReader(data), one_block, csv.ParseOptions(newlines_in_values=True), types)


def read_columns(data: bytes, name: str) -> Columns:
    """The columns of plan.parquet or fates.parquet."""
    table, form = read_table(data, f"{name}.parquet"), FORMS[name]
    with reading(f"{name}.parquet"):
        wrong = list(misfits({field.name: str(field.type) for field in table.schema}, form, "columns"))
        if wrong or table.column_names != list(form) or any(table[key].null_count for key in list(form)[:3]):
            raise Unreadable(f"has columns out of order or with gaps, or {wrong}")
        return {key: table[key].to_numpy() for key in form}


def positions(items: list[str] | NDArray[Any], among: list[str] | NDArray[Any]) -> NDArray[np.intp]:
    """Where each item stands `among` the others; -1 if it does not."""
    index = {name: i for i, name in enumerate(among)}
    return np.array([index.get(item, -1) for item in items], dtype=np.intp)


def read_job(data: bytes) -> dict[str, Any]:
    with reading("job.toml"):
        if len(data) > 1_000_000 or DEEP_KEY.search(data):
            raise Unreadable("too long, or a key with so many dots that it takes minutes to parse")
        job = tomllib.loads(data.decode())
        if job.get("limits") == "observed":
            job["limits"] = {feature: {"observed": True} for feature in job["cohort"]["features"]}
        if wrong := list(misfits(job, FORMS["job"], "job.toml"))[:100]:
            raise Unreadable(f"not supported by this auditor yet: {'; '.join(wrong)}")
        if any(len(job["goal"].keys() & one) != 1 for one in ({"target", "target_column"}, {"margin", "threshold"})):
            raise Unreadable("goal needs one of target and target_column, and one of margin and threshold")
        names = job["cohort"]["features"], job["model"].get("classes", "-")
        if any(not some or len(set(some)) < len(some) for some in names):
            raise Unreadable("features and classes must each be some names, none of them twice")
        return job


def complete(job: dict[str, Any], loaded: Loaded) -> dict[str, Any]:
    """The job, with what the model file says itself; where both speak, neither may contradict the other."""
    says, features, model = loaded.says, job["cohort"]["features"], loaded.says | job["model"]
    if features != (loaded.features or features):
        raise Broken(f"the model was trained on the columns {loaded.features}; the job names {features}")
    if missing := {"output", "classes"} - model.keys():
        raise Unreadable(f"job.toml: model: {sorted(missing)} must be given, as the model file does not say it")
    given, own = model["classes"], says.get("classes", model["classes"])
    moved = [name for name, its in zip(given, own, strict=False) if name != its and name in own]
    if moved or len(given) != len(own) or model["output"] != says.get("output", model["output"]):
        raise Unreadable(f"job.toml: model: got {job['model']}; the model file says {says}")
    if model["output"] == "decision" and "threshold" in job["goal"]:
        raise Unreadable("job.toml: goal: threshold: decision values are no probabilities; wanted a margin")
    return job | {"model": model}


def numbers(cells: pa.ChunkedArray) -> Floats:
    """As float64, which must hold whole numbers exactly."""
    by_hand = pa.types.is_decimal(cells.type)  # which pyarrow does not promise to round to the nearest
    values = np.array([float(c) for c in cells.to_pylist()]) if by_hand else cells.cast("double", safe=False).to_numpy()
    large = np.flatnonzero(np.abs(values) >= 2.0**53)
    for cell, value in zip(cells.take(pa.array(large)).to_pylist(), values[large].tolist(), strict=True):
        if (digits := str(cell).lstrip("+-0")).isdigit() and int(digits) != abs(value):
            raise Unreadable(f"{cell} is no exact float64")
    return values


def read_case(job: dict[str, Any], cohort: bytes, name: str) -> Case:
    """The job, with numbers from the cohort where it names columns."""

    def column(key: str, kind: str) -> Any:
        with reading(f"{name}: column {key!r}"):
            if table.column_names.count(key) != 1 or table[key].null_count:
                raise Unreadable(f"wanted once and without gaps; the columns are {table.column_names!r:.300}")
            return numbers(table[key]) if kind == "numbers" else table[key].cast("string").to_pylist()

    def limit_column(key: str, open_end: float) -> list[float]:
        with reading(f"{name}: column {key!r}"):  # an empty cell leaves its side open
            return [open_end if cell in (None, "") else float(cell) for cell in table[key].to_pylist()]

    goal, limits, classes = job["goal"], job.get("limits", {}), job["model"]["classes"]
    features, key = job["cohort"]["features"], job["cohort"]["id"]
    written = [limit[side] for limit in limits.values() for side in ("min_column", "max_column") if side in limit]
    named = [goal[column] for column in ("target_column", "worth_column") if column in goal]
    table = read_table(cohort, name, (key, *features, *written, *named))
    ids, start = column(key, "texts"), np.column_stack([column(feature, "numbers") for feature in features])
    worth = column(goal["worth_column"], "numbers") if "worth_column" in goal else np.ones(len(ids))
    if not ids or len(set(ids)) < len(ids) or not np.isfinite([*start.T, worth]).all():
        raise Unreadable(f"{name}: has no rows, an id twice, or a value that is not finite")
    lower, upper = np.full_like(start, -np.inf), np.full_like(start, np.inf)
    for i, limit in enumerate(limits.get(feature, {}) for feature in features):
        for side, bounds, extreme in (("min", lower, np.min), ("max", upper, np.max)):
            if limit.get("observed"):
                bounds[:, i] = extreme(start[:, i])
            elif f"{side}_column" in limit:
                bounds[:, i] = limit_column(limit[f"{side}_column"], float(bounds[0, i]))
            elif side in limit:
                bounds[:, i] = limit[side]
    number: dict[Any, int] = {label: i for i in range(len(classes)) for label in (i, str(i))}
    number |= {label: i for i, label in enumerate(classes)}  # a name wins over a number
    wanted, weights = np.zeros((len(ids), len(classes)), dtype=bool), {}
    targets = goal["target"] if "target" in goal else column(goal["target_column"], "texts")
    with reading("job.toml: goal: target"):
        chosen = [number[target] for target in ([targets] if isinstance(targets, str | int) else targets)]
        wanted[slice(None) if "target" in goal else np.arange(len(ids)), chosen] = True
        if not wanted.any() or wanted.all():
            raise Unreadable("at least one class must be wanted, and one must not")
    for budget, terms in job["budgets"].items():
        uses = {} if terms.get("cost") == "count" else terms.get("uses", {budget: 1.0})
        if uses.keys() - set(features):
            raise Unreadable(f"job.toml: budgets: {budget}: got {sorted(uses)}, wanted some of {features}")
        weights[budget] = np.array([float(uses.get(feature, 0)) for feature in features])
    return Case(job, features, ids, start, lower, upper, wanted, worth, weights)
