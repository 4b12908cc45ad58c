"""One parquet file per measurement, in docs/results/data; how it was made stands in the file itself."""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from maxflip._util.atomic import write_bytes

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "results" / "data"
_KEY = b"maxflip.made"


@dataclass(frozen=True)
class Made:
    """How a result file came to be. `command`: what makes it again   `seconds`: what that took"""

    command: str
    date: str
    commit: str
    machine: str
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None


def made_here(command: str, seconds: float | None = None, packages: Sequence[str] = ("torch", "numpy")) -> Made:
    """Now, on this machine, with what is installed."""
    return Made(
        command=command,
        date=datetime.now(UTC).date().isoformat(),
        commit=commit(),
        machine=machine(),
        versions=versions_here(packages),
        seconds=None if seconds is None else round(seconds, 1),
    )


def write(name: str, rows: Sequence[Mapping[str, Any]] | pa.Table, made: Made, folder: Path = FOLDER) -> Path:
    """rows: mappings, the first of which has every key, or a table. The file is there whole, or as it was before.

    Where a later row lacks a key, its place is empty; one that has more is refused, since Arrow would drop that."""
    table = rows if isinstance(rows, pa.Table) else _table(name, rows)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.parquet"
    held = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({_KEY: json.dumps(asdict(made)).encode()}), held)
    write_bytes(path, held.getvalue())
    return path


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    known = rows[0].keys() if rows else ()
    for number, row in enumerate(rows):
        if more := [key for key in row if key not in known]:
            raise ValueError(
                f"{name}: row {number} has {', '.join(map(repr, more))}, which the first row lacks; its columns are "
                f"{', '.join(known)}. Give every row the same keys: None stands for what is not known."
            )
    return pa.Table.from_pylist([dict(row) for row in rows])


def read(name: str, folder: Path = FOLDER) -> tuple[pa.Table, Made]:
    table = pq.read_table(folder / f"{name}.parquet")
    return table, Made(**json.loads(table.schema.metadata[_KEY]))


def versions_here(packages: Sequence[str]) -> dict[str, str]:
    return {"python": platform.python_version()} | {name: _version(name) for name in packages}


def commit() -> str:
    """Of the code that ran: what MAXFLIP_COMMIT says, for a copy of the code elsewhere; else the repository's, with
    "-dirty" where files differ from it."""
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return os.environ.get("MAXFLIP_COMMIT") or asked.stdout.strip() or "unknown"


def machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores ({platform.machine()})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
