"""How long a cohort takes from job file to audited plan.

    python -m research.benchmarks.scale [SAMPLES] [FEATURES] [--keep]

Writes a job (Parquet cohort, exported 64-64 tanh network, one squared budget per feature), runs `maxflip solve` on
it in a process of its own, and prints seconds, peak memory and the answer.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

from research.benchmarks.sections import add_keep
from research.evidence.files import made_here
from research.evidence.report import report


def write_job(folder: Path, samples: int, features: int) -> Path:
    torch.manual_seed(0)
    names = [f"x{i}" for i in range(features)]
    values = np.random.default_rng(0).normal(size=(samples, features))
    ids = [f"P{j:07d}" for j in range(samples)]
    pq.write_table(pa.table({"id": ids} | {n: values[:, i] for i, n in enumerate(names)}), folder / "cohort.parquet")
    net = nn.Sequential(nn.Linear(features, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    for parameter in net.parameters():
        parameter.data *= 2  # a freshly initialised network is nearly flat
    rows = torch.export.Dim("rows")
    program = torch.export.export(net.eval(), (torch.zeros(2, features),), dynamic_shapes=({0: rows},))
    torch.export.save(program, folder / "model.pt2")
    budgets = "\n".join(f"[budgets.{n}]\namount = {samples / 200}" for n in names)
    job = folder / "job.toml"
    job.write_text(
        f"""format = 1
limits = "observed"
[cohort]
file = "cohort.parquet"
id = "id"
features = {json.dumps(names)}
[model]
file = "model.pt2"
output = "logits"
classes = ["unwanted", "wanted"]
[goal]
target = "wanted"
margin = 0.1
{budgets}
"""
    )
    return job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", type=int, nargs="?", default=20_000)
    parser.add_argument("features", type=int, nargs="?", default=20)
    add_keep(parser)
    given = parser.parse_args()
    samples, features = given.samples, given.features
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = write_job(folder, samples, features)
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "maxflip", "solve", str(job), "--out", str(folder / "plan")], check=True)
        seconds = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
        summary = json.loads((folder / "plan" / "summary.json").read_text())
    row = {
        "samples": samples,
        "features": features,
        "count": summary["count"],
        "seconds": seconds,
        "solving_seconds": summary["seconds"],
        "peak_gib": peak,
    }
    made = made_here(f"python -m research.benchmarks.scale {samples} {features} --keep", seconds)
    report({"scale": [row]}, made, ["scale.jobs"], keep=given.keep)


if __name__ == "__main__":
    main()
