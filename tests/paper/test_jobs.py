"""The four algorithms by a job file: solved, audited, and bad options named as the job has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maxflip import Plan
from maxflip.solvers import SOLVERS
from tests.jobs import NEAREST
from tests.test_cli import folder, invoke, model, rewrite  # noqa: F401


def asked_of(folder: Path, solver: str) -> None:  # noqa: F811
    """The job by this solver."""
    rewrite("job.toml", NEAREST, f"[solver]\n{solver}")(folder)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ms", 'optimizer = "adam", units = "standard", residual = "relative", keep_moving = true'),
        ("bcms", 'optimizer = "adam", units = "standard", indicator = "relative", tau = 50, draws = 20'),
        ("ccms", 'optimizer = "adam", units = "standard", projection = "simplex", draws = 20, alpha = 1e-4'),
        ("kl", 'optimizer = "adam", units = "standard", residual = "relative", a = 0'),
    ],
)
def test_jobs(folder: Path, name: str, options: str) -> None:  # noqa: F811
    asked_of(folder, f'name = "{name}"\noptions = {{ outer = 2, inner = 40, {options} }}\n')
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 0, done.stderr
    assert invoke("verify", folder / "plan").exit_code == 0
    plan = Plan.load(folder / "plan")
    assert str(plan.solver).startswith(f"{name.upper()}(outer=2, inner=40")
    assert plan.count == max(plan.trace["selected"])


def test_a_bad_option_is_named_as_the_job_has_it(folder: Path) -> None:  # noqa: F811
    asked_of(folder, 'name = "bcms"\noptions = { tau = 1, draw = 20 }\n')
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 2
    assert "solver.options.draw" in done.stderr
    rewrite("job.toml", ", draw = 20", "")(folder)
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert "solver.options.tau = 1: must be a number in (1, inf)" in done.stderr


@pytest.mark.parametrize("name", ["ms", "bcms", "ccms", "kl"])
@pytest.mark.parametrize("preset", ["paper", "scale_free"])
def test_presets(folder: Path, name: str, preset: str) -> None:  # noqa: F811
    """The options replace single ones of its settings."""
    asked_of(folder, f'name = "{name}"\npreset = "{preset}"\noptions = {{ outer = 2, inner = 20 }}\n')
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 0, done.stderr
    assert invoke("verify", folder / "plan").exit_code == 0
    kind: Any = SOLVERS[name]
    assert str(Plan.load(folder / "plan").solver) == repr(getattr(kind, preset)(outer=2, inner=20))


@pytest.mark.parametrize(
    ("solver", "sentence"),
    [
        ('preset = "paper"', "solver.preset = 'paper': 'prices' has no presets, only 'ms', 'bcms', 'ccms', 'kl'."),
        ('name = "nearest"\npreset = "scale_free"', "solver.preset = 'scale_free': 'nearest' has no presets"),
        ('name = "ms"\npreset = "free"', "solver.preset = 'free': must be 'paper' or 'scale_free'."),
        ('name = "ms"\npreset = 1', "solver.preset = 1: must be 'paper' or 'scale_free'."),
    ],
)
def test_a_preset_that_is_not_there_is_told(folder: Path, solver: str, sentence: str) -> None:  # noqa: F811
    asked_of(folder, f"{solver}\n")
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 2
    assert sentence in " ".join(done.stderr.split())
