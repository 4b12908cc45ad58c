"""A small plan folder that is right in every respect, written from docs/formats.md without maxflip.

The model is linear, logits (0, a + b - c - 1, -50), so every confidence can be worked out by hand: with margin 0.1
a sample passes when a + b - c - 1 >= log(1.1 / 0.9) = 0.2007. Tests change one thing and expect to be caught.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

FEATURES = ["a", "b", "c", "age"]
GUARD = 1e-9
JOB = """\
format = 1

[cohort]
file = "cohort.parquet"
id = "key"
features = ["a", "b", "c", "age"]
units = { a = "mmHg" }

[model]
file = "model.pt2"
output = "logits"
classes = ["worse", "stable", "other"]

[goal]
target = "stable"
margin = 0.1
worth_column = "value"
include = ["P-1"]
exclude = ["P-4"]

[budgets.a]
amount = 0.11812500000000001

[budgets.hours]
amount = 0.22000000000000003
cost = "absolute"
uses = { b = 0.1, c = 0.3 }

[budgets.c]
amount = inf
cost = "absolute"

[budgets.people]
amount = 4
cost = "count"

[limits.a]
min = 0.0
max = 1.5

[limits.b]
max_column = "most_b"
direction = "up"

[limits.c]
min = -0.5
direction = "down"

[solver]
name = "nearest"
seed = 7
"""

# id, a, b, c, fate; then what the plan changes
SAMPLES: list[tuple[str, float, float, float, str, dict[str, float]]] = [
    ("P-0", 2.0, 0.0, 0.0, "already", {}),
    ("P-1", 1.0, 0.1, 0.0, "flipped", {"a": 0.125}),  # likeliest already, but below the margin
    ("P-2", 0.9, 0.0, 0.0, "flipped", {"a": 0.2, "b": 0.15}),
    ("P-3", 0.5, 0.3, 0.2, "flipped", {"b": 0.45, "c": -0.2}),
    ("P-4", 0.5, 0.0, 0.0, "left_out", {}),  # excluded
    ("P-5", 0.0, 0.0, 4.0, "not_found", {}),
    ("P-6", 0.0, -9.0, 9.0, "unreachable", {}),
    ("P-7", 1.7e308, 1.7e308, 0.0, "unusable", {}),  # the sum overflows
    ("P-8", 1000.0, 1.0, 0.5, "already", {}),  # its logit would overflow a careless softmax
    ("P-9", 3.0, -2.5, 0.0, "flipped", {"a": -0.25, "b": 1.0}),  # a starts above its limit, which widens it
]


class Linear(torch.nn.Module):
    """Logits (0, a + b - c - 1, -50), or their softmax."""

    def __init__(self, dtype: torch.dtype = torch.float64, *, softmax: bool = False) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3, dtype=dtype)
        self.softmax = softmax
        with torch.no_grad():
            self.layer.weight[:] = torch.tensor([[0.0] * 4, [1.0, 1.0, -1.0, 0.0], [0.0] * 4])
            self.layer.bias[:] = torch.tensor([0.0, -1.0, -50.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.layer(x), -1) if self.softmax else self.layer(x)


def export(module: torch.nn.Module, example: torch.Tensor) -> bytes:
    """A .pt2 with a dynamic batch; torch's warnings about its own insides are not ours."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shapes = ({0: torch.export.Dim("batch")},)
        torch.export.save(torch.export.export(module.eval(), (example,), dynamic_shapes=shapes), buffer)
    return buffer.getvalue()


@functools.cache
def linear_model(dtype: torch.dtype = torch.float64, *, softmax: bool = False) -> bytes:
    return export(Linear(dtype, softmax=softmax), torch.zeros(5, 4, dtype=dtype))


def confidence(a: float, b: float, c: float) -> float:
    """Likeliest wanted less likeliest other probability of the linear model."""
    z = a + b - c - 1
    if not math.isfinite(z):
        return math.nan
    top = max(0.0, z)
    parts = [math.exp(0 - top), math.exp(z - top), math.exp(-50 - top)]
    return (parts[1] - max(parts[0], parts[2])) / sum(parts)


def consumed(weights: dict[str, float], square: bool) -> Fraction:
    changes = [(name, change) for *_, moved in SAMPLES for name, change in moved.items()]
    parts = [Fraction(weights.get(n, 0.0)) * abs(Fraction(d)) ** (2 if square else 1) for n, d in changes]
    return sum(parts, Fraction(0))


def smallest_float_at_least(value: Fraction) -> float:
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


@dataclass
class GoodPlan:
    """All parts of a plan folder and its inputs; change any of them, then `write`."""

    job: str = JOB
    cohort: dict[str, list[Any]] = field(default_factory=dict)
    plan: list[dict[str, Any]] = field(default_factory=list)
    fates: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    model: bytes = b""
    own: dict[str, list[float]] = field(default_factory=dict)  # further columns of the fates
    write_cohort: Callable[[dict[str, list[Any]], Path], None] | None = None

    def write(self, root: Path) -> Path:
        """The inputs in `root`, the plan in `root/plan`, with hashes of what is written."""
        folder = root / "plan"
        folder.mkdir(parents=True)
        if self.write_cohort:
            self.write_cohort(self.cohort, root / "cohort.parquet")
        else:
            pq.write_table(pa.table(self.cohort), root / "cohort.parquet")
        (root / "model.pt2").write_bytes(self.model)
        (root / "job.toml").write_text(self.job)
        (folder / "job.toml").write_text(self.job)
        names = {"cohort": "cohort.parquet", "model": "model.pt2", "job": "job.toml"}
        if "inputs" not in self.summary:
            self.summary["inputs"] = {
                key: {
                    "path": name if key == "job" else f"../{name}",
                    "sha256": hashlib.sha256((root / name).read_bytes()).hexdigest(),
                }
                for key, name in names.items()
            }
        pq.write_table(pa.Table.from_pylist(self.plan, PLAN_SCHEMA), folder / "plan.parquet")
        fates = pa.Table.from_pylist(self.fates, FATES_SCHEMA)
        for name, values in self.own.items():
            fates = fates.append_column(name, pa.array(values, pa.float64()))
        pq.write_table(fates, folder / "fates.parquet")
        (folder / "summary.json").write_text(json.dumps(self.summary))
        return folder


PLAN_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "step": pa.int32(),
        "feature": pa.string(),
        "before": pa.float64(),
        "change": pa.float64(),
    }
)
FATES_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "fate": pa.string(),
        "worth": pa.float64(),
        "confidence_before": pa.float64(),
        "confidence_after": pa.float64(),
    }
)


def used(name: str, groups: int | None = None, **options: Any) -> dict[str, Any]:
    """A solver as summary.json states it."""
    return {"name": name, "options": options, "groups": groups, "labelled": False}


def good_plan() -> GoodPlan:
    good = GoodPlan(model=linear_model())
    good.cohort = {
        "key": [name for name, *_ in SAMPLES],
        "age": [40.0 + i for i in range(len(SAMPLES))],
        "a": [a for _, a, *_ in SAMPLES],
        "b": [b for _, _, b, *_ in SAMPLES],
        "c": [c for _, _, _, c, *_ in SAMPLES],
        "most_b": [0.65 + 0.1 * i for i in range(len(SAMPLES))],
        "value": [0.1 * (i + 1) for i in range(len(SAMPLES))],
        "ignored": ["text"] * len(SAMPLES),
    }
    for i, (name, a, b, c, fate, moved) in enumerate(SAMPLES):
        start = {"a": a, "b": b, "c": c}
        for feature, change in moved.items():
            row = {"id": name, "step": 0, "feature": feature, "before": start[feature], "change": change}
            good.plan.append(row)
        end = {feature: value + moved.get(feature, 0.0) for feature, value in start.items()}
        good.fates.append(
            {
                "id": name,
                "fate": fate,
                "worth": good.cohort["value"][i],
                "confidence_before": confidence(a, b, c) if fate != "unusable" else None,
                "confidence_after": confidence(**end) if fate == "flipped" else None,
            }
        )
    hours = consumed({"b": 0.1, "c": 0.3}, square=False)
    spent = {"a": float(consumed({"a": 1.0}, square=True)), "hours": float(hours)}
    spent |= {"c": float(consumed({"c": 1.0}, square=False)), "people": 4}
    amounts: dict[str, Any] = {"a": 0.11812500000000001, "hours": 0.22000000000000003, "c": "inf", "people": 4}
    costs = {"a": "squared", "hours": "absolute", "c": "absolute", "people": "count"}
    uses = {"a": {"a": 1.0}, "hours": {"b": 0.1, "c": 0.3}, "c": {"c": 1.0}, "people": {}}
    fates = [fate["fate"] for fate in good.fates]
    good.summary = {
        "format": 2,
        "count": 4,
        "worth": math.fsum(row["worth"] for row in good.fates if row["fate"] == "flipped"),
        "cohort": len(SAMPLES),
        **{name: fates.count(name) for name in ("already", "left_out", "not_found", "unreachable", "unusable")},
        "below_margin": 1,
        "bound": 3.5,
        "estimate": None,
        "budgets": {
            name: {
                "amount": amounts[name],
                "cost": costs[name],
                "spent": spent[name],
                "price": price,
                "uses": uses[name],
            }
            for name, price in (("a", 0.25), ("hours", 0.0), ("c", 0.0), ("people", 1))
        },
        "solver": used("Nearest"),
        "seed": 7,
        "status": "open",
        "seconds": 0.5,
        "guard": GUARD,
        "notices": ["column 'ignored' is ignored"],
        "features": FEATURES,
        "units": {"a": "mmHg"},
        "question": {
            "wanted": ["stable"],
            "measure": "margin",
            "required": 0.1,
            "levers": [{"feature": "a", "low": -0.5, "high": None, "own": False, "direction": "up"}],
            "steps": "",
            "digest": "0" * 64,
        },
        "made": "2026-01-31T12:00:00+00:00",
        "versions": {"maxflip": "0.1", "python": "3.11", "torch": "2.13", "numpy": "2.0"},
    }
    return good
