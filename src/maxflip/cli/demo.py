"""The demo: 442 diabetes patients in real units, a small network trained when it runs, and a job.

Wanted: slow progression of the disease over one year. Age and sex are frozen; body mass index, blood pressure and blood
values may change within the observed limits. It demonstrates the tool and is not medical advice.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

from maxflip._util.atomic import put_bytes
from maxflip._util.types import Floats

FEATURES = ("age", "sex", "bmi", "bp", "tc", "ldl", "hdl", "tch", "ltg", "glu")
CLASSES = ("fast", "slow")
MEDIAN_PROGRESSION = 140.5
JOB_NAME = "job.toml"

JOB = """\
# maxflip demo: which patients can be moved to "slow progression", as the model predicts it, and by which changes?
format = 1

[cohort]
file = "cohort.parquet"
id = "patient"
features = ["age", "sex", "bmi", "bp", "tc", "ldl", "hdl", "tch", "ltg", "glu"]

[cohort.units]
age = "years"
bmi = "kg/m²"
bp = "mmHg"
tc = "mg/dl"
ldl = "mg/dl"
hdl = "mg/dl"
ltg = "log mg/dl"
glu = "mg/dl"

[model]
file = "model.pt2"
output = "logits"
classes = ["fast", "slow"]

[goal]
target = "slow"
margin = 0.1

[budgets.bmi]
amount = 60.0           # (kg/m²)², summed over everyone: 15 people by 2 kg/m², or 60 people by 1
[budgets.bp]
amount = 1000.0         # mmHg²
[budgets.lipids]        # one budget for the three cholesterol values
amount = 3000.0         # (mg/dl)²
uses = { tc = 1.0, ldl = 1.0, hdl = 1.0 }
[budgets.tch]
amount = 2.0
[budgets.ltg]
amount = 1.0
[budgets.glu]
amount = 100.0
[budgets.people]
amount = 150            # the clinic has room for so many
cost = "count"

[limits.bmi]
observed = true
direction = "down"
[limits.bp]
observed = true
direction = "down"
[limits.tc]
observed = true
direction = "down"
[limits.ldl]
observed = true
direction = "down"
[limits.hdl]
observed = true
direction = "up"
[limits.tch]
observed = true
[limits.ltg]
observed = true
[limits.glu]
observed = true

[report]
group = "sex"           # who is picked, by this column; and what more or less of all budgets would buy
frontier = true
"""


class ProgressionNet(nn.Module):
    """Standardise inside the model, so that budgets and limits are in the patients' own units."""

    def __init__(self, mean: Floats, spread: Floats) -> None:
        super().__init__()
        self.mean = nn.Buffer(torch.tensor(mean, dtype=torch.float32))
        self.spread = nn.Buffer(torch.tensor(spread, dtype=torch.float32))
        self.layers = nn.Sequential(nn.Linear(len(mean), 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers((x - self.mean) / self.spread)
        return logits


def write_demo_inputs(folder: Path) -> Path:
    """Write cohort.parquet, model.pt2 and job.toml into `folder`; returns the path of the job."""
    values, is_slow = _patients()
    ids = [f"D{j:03d}" for j in range(1, len(values) + 1)]
    columns = {"patient": ids, **{name: values[:, i] for i, name in enumerate(FEATURES)}}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    put_bytes(folder / "cohort.parquet", sink.getvalue())
    put_bytes(folder / "model.pt2", _exported(_trained(values, is_slow), values))
    put_bytes(folder / JOB_NAME, JOB.encode())
    return folder / JOB_NAME


def is_demo(folder: Path) -> bool:
    """Whether the folder is a demo's output, of this version or an earlier one, which the demo may replace."""
    job = folder / JOB_NAME
    return job.is_file() and job.read_bytes().startswith(JOB.splitlines()[0].encode())


def _patients() -> tuple[Floats, Floats]:
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    return np.asarray(data.data, dtype=np.float64), np.asarray(data.target < MEDIAN_PROGRESSION)


def _trained(values: Floats, is_slow: Floats) -> ProgressionNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = ProgressionNet(values.mean(axis=0), values.std(axis=0))
        x, y = torch.tensor(values, dtype=torch.float32), torch.tensor(is_slow, dtype=torch.long)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=0.03)
        for _ in range(200):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(net(x), y))
            optimizer.step()
    return net.eval()


def _exported(net: ProgressionNet, values: Floats) -> bytes:
    example = torch.tensor(values[:2], dtype=torch.float32)
    program = torch.export.export(net, (example,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    sink = io.BytesIO()
    torch.export.save(program, sink)
    return sink.getvalue()
