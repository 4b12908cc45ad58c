"""A job about stays in hospital, on disk: uneven times, holes, one stay without any measurement; a small GRU-D."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from maxflip.networks import GRUD, save_network

FEATURES = ["bp", "glucose"]
JOB = """\
format = 1

[cohort]
kind = "sequences"
file = "stays.parquet"
id = "stay"
time = "hour"
features = ["bp", "glucose"]
units = { bp = "mmHg", age = "years" }
static = "static.parquet"
static_features = ["age"]
steps = "last 3"

[model]
file = "model.safetensors"

[goal]
target = "stable"
margin = 0.1

[report]
frontier = false

[solver]
name = "nearest"

[budgets.bp]
amount = 900.0

[budgets.hours]
amount = 60.0
cost = "absolute"
uses = { bp = 0.1, glucose = 0.5 }

[limits.bp]
min = 70
max = 190
"""


def long_table(n: int = 24, seed: int = 0) -> dict[str, list[Any]]:
    """A row per step; None where nothing was measured; the last stay has one step and no measurement."""
    rng = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {"stay": [], "hour": [], "bp": [], "glucose": [], "note": []}
    for j in range(n):
        length = 1 if j == n - 1 else int(rng.integers(1, 7))
        table["stay"] += [f"S-{j:02d}"] * length
        table["hour"] += np.cumsum(rng.integers(0, 5, length) + 0.5 * j).tolist()
        for name, middle, spread in (("bp", 125.0, 18.0), ("glucose", 7.0, 2.0)):
            values = rng.normal(middle, spread, length)
            hidden = rng.random(length) < (1.0 if j == n - 1 else 0.3)
            table[name] += [None if gone else v for v, gone in zip(values.tolist(), hidden.tolist(), strict=True)]
        table["note"] += ["x"] * length
    return table


def static_table(n: int = 24, seed: int = 0) -> dict[str, list[Any]]:
    """In another order than the long table."""
    rng = np.random.default_rng(seed + 1)
    return {
        "stay": [f"S-{j:02d}" for j in reversed(range(n))],
        "age": rng.integers(40, 90, n).tolist(),
        "value": (1.0 + np.arange(n) % 3).tolist(),
        "wish": ["stable" if j % 2 else "worse" for j in range(n)],
        "low": [None if j % 4 == 0 else 100.0 for j in range(n)],
    }


def network(dtype: torch.dtype = torch.float64, seed: int = 4, **options: Any) -> GRUD:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        settings: dict[str, Any] = {
            "inputs": FEATURES,
            "hidden": 6,
            "classes": ["worse", "stable"],
            "static": ["age"],
            "shift": [125.0, 7.0],
            "scale": [18.0, 2.0],
            "static_shift": [65.0],
            "static_scale": [15.0],
            "time_scale": 5.0,
        }
        net = GRUD(**(settings | options))
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.copy_(0.6 * torch.randn(parameter.shape))
    return net.to(dtype).eval()


@functools.cache
def network_bytes(dtype: torch.dtype = torch.float64, seed: int = 4) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_network(network(dtype, seed), Path(folder) / "model.safetensors")
        return (Path(folder) / "model.safetensors").read_bytes()


def write_stays(
    folder: Path, job: str = JOB, long: dict[str, list[Any]] | None = None, static: dict[str, list[Any]] | None = None
) -> Path:
    """All files of the job into the folder; the job's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in (("stays", long or long_table()), ("static", static or static_table())):
        table = pa.table(columns)
        pq.write_table(table, folder / f"{name}.parquet")
        write_csv(columns, folder / f"{name}.csv")
    (folder / "model.safetensors").write_bytes(network_bytes())
    path = folder / "job.toml"
    path.write_text(job)
    return path


def write_csv(columns: dict[str, list[Any]], path: Path) -> None:
    """None as an empty cell; numbers so that they read back to the same bits."""
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    text = "\n".join(",".join("" if cell is None else str(cell) for cell in row) for row in rows)
    path.write_text(text + "\n")


def edited(*changes: tuple[str, str]) -> str:
    text = JOB
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text
