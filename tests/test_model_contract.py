"""Models that break their contract, given in a job: exit 3, with the file, what came and what was wanted."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from maxflip import ModelError, Problem, TorchClassifier
from tests.examples import small_net
from tests.test_cli import folder, invoke, model, snapshot

__all__ = ["folder", "model"]  # fixtures


class Odd(nn.Module):
    def __init__(self, act: Callable[..., Any]) -> None:
        super().__init__()
        self.net = small_net(3)
        self.act = act

    def forward(self, *x: torch.Tensor) -> Any:
        return self.act(self.net, *x)


def write_model(path: Path, act: Callable[..., Any], inputs: int = 1) -> None:
    rows = torch.export.Dim("rows")
    with warnings.catch_warnings(action="ignore"):
        examples, shapes = (torch.zeros(5, 3),) * inputs, (({0: rows},) * inputs,)
        torch.export.save(torch.export.export(Odd(act).eval(), examples, dynamic_shapes=shapes), path)


ONE_LOGIT: dict[str, tuple[Callable[..., Any], str, str]] = {
    "(n,)": (lambda net, x: net(x)[:, 0], "(40,)", "torch.stack([torch.zeros_like(z), z], dim=1)"),
    "(n, 1)": (lambda net, x: net(x)[:, :1], "(40, 1)", "torch.cat([torch.zeros_like(z), z], dim=1)"),
    "(1, n)": (lambda net, x: net(x)[:, :1].T, "(1, 40)", "torch.cat([torch.zeros_like(z), z], dim=0).T"),
}
CASES: dict[str, tuple[Callable[..., Any], int, list[str]]] = {
    **{name: (act, 1, [shape, "wanted (40, 2)", hint]) for name, (act, shape, hint) in ONE_LOGIT.items()},
    "a tuple": (lambda net, x: (net(x), x), 1, ["tuple", "(rows, 2), (rows, 3)", "(rows, classes)"]),
    "a dict": (lambda net, x: {"logits": net(x)}, 1, ["dict", "(rows, 2)", "(rows, classes)"]),
    "two inputs": (lambda net, x, y: net(x + y), 2, ["(rows, 3) and (rows, 3)", "(rows, features)"]),
    "noise": (lambda net, x: net(x) + torch.randn_like(net(x)), 1, ["output changes between calls", "randn_like"]),
    "dropout by hand": (
        lambda net, x: nn.functional.dropout(net(x), training=True),
        1,
        ["output changes between two calls"],
    ),
    "three columns": (lambda net, x: torch.cat([net(x), x[:, :1]], dim=1), 1, ["3 columns", "2 classes"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_broken_contract_is_exit_3_and_names_the_file(folder: Path, name: str) -> None:
    act, inputs, parts = CASES[name]
    write_model(folder / "model.pt2", act, inputs)
    before = snapshot(folder)
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 3, done.stderr
    assert f"error: {folder / 'model.pt2'}: the model" in done.stderr
    for part in parts:
        assert part in done.stderr
    assert snapshot(folder) == before


@pytest.mark.parametrize("name", ONE_LOGIT)
@pytest.mark.parametrize("rows", [1, 7])
def test_the_hint_for_a_single_logit_gives_two_columns(name: str, rows: int) -> None:
    act, _, _ = ONE_LOGIT[name]
    odd = Odd(act)
    x = torch.randn(rows, 3)
    with pytest.raises(ModelError) as caught:
        Problem(classifier=TorchClassifier(odd, output="logits"), cohort=x, target=1, margin=0.1, budgets={"x0": 1.0})
    hint = re.search(r"returns (torch\..*)\.$", str(caught.value))
    assert hint is not None
    fixed = eval(hint.group(1), {"torch": torch, "z": odd(x)})
    assert fixed.shape == (rows, 2)


@pytest.mark.parametrize("key", ["output", "classes"])
def test_what_a_pt2_does_not_say_the_job_must(folder: Path, key: str) -> None:
    text = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text("".join(line for line in text.splitlines(True) if not line.startswith(key)))
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 2
    assert f"error: {folder / 'job.toml'}: model.{key} is missing, and model.pt2 does not say it; wanted" in done.stderr


def test_a_torch_job_needs_neither_scikit_learn_nor_skops(folder: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from maxflip._util.events import silent
from maxflip.cli.run_job import run_job
run_job(Path({str(folder / "job.toml")!r}), Path({str(folder / "plan")!r}), overwrite=False, watch=silent)
sys.exit(str({{"sklearn", "skops"}} & set(sys.modules) or ""))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert (folder / "plan" / "summary.json").exists()
