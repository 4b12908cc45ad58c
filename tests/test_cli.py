"""The program as people run it: exit codes, messages, nothing written where something is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import maxflip_verify
from maxflip import Plan
from maxflip.cli.main import app
from maxflip.report.answer import below_margin_picked
from tests.conftest import LONG
from tests.examples import small_net
from tests.jobs import NEAREST, export, job_text
from tests.test_sanity import doubts

NAMES = ["age", "bmi", "bp"]
JOB = job_text(NAMES, {"bmi": 20.0, "bp": 10.0})


def run(*args: str | Path, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maxflip", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False, **options)


def invoke(*args: str | Path) -> Any:
    """The same in this process: for the many cases that need no process of their own."""
    return CliRunner().invoke(app, list(map(str, args)))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    export(small_net(3, seed=1), path)
    return path


@pytest.fixture
def folder(tmp_path: Path, model: Path) -> Path:
    """A good job: 40 people in CSV, a small network."""
    values = np.random.default_rng(0).normal(size=(40, 3))
    lines = ["who,age,bmi,bp", *(f"{j:03d}," + ",".join(map(repr, row)) for j, row in enumerate(values.tolist()))]
    (tmp_path / "cohort.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "job.toml").write_text(JOB)
    shutil.copy(model, tmp_path / "model.pt2")
    return tmp_path


def with_few(folder: Path) -> None:
    """The first twelve people alone: where a process takes its time, its plan need not."""
    lines = (folder / "cohort.csv").read_text().splitlines(keepends=True)
    (folder / "cohort.csv").write_text("".join(lines[:13]))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# --- the road ---


def test_solve_verify_report(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.replace(NEAREST, ""))
    done = run("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.returncode == 0, done.stderr
    plan = Plan.load(folder / "plan")
    there = int((plan.fates == "already").sum())
    assert plan.count > 0
    firmer = below_margin_picked(plan)
    assert firmer == int((plan.confidence_before[plan.selected] > 0).sum()) > 0
    assert done.stdout.startswith(
        f"The plan moves {plan.count} of 40: {plan.count - firmer} into the wanted class, {firmer} more become "
        f"confident enough; including the {there} already there, {plan.count + there} are predicted in it "
        "with the required confidence.\n"
    )
    assert "moves predictions, not outcomes" in done.stdout
    assert "maximum is" in done.stdout
    assert "(not proved)" in done.stdout
    header, bmi = (line for line in done.stdout.splitlines() if line.startswith(("budget ", "bmi ")))
    assert header.split() == ["budget", "cost", "amount", "spent", "share", "price"]
    assert plan.prices is not None
    assert bmi.split()[-1] == f"{plan.prices['bmi']:.2g}"
    assert "Finding first flips (" in done.stderr
    assert "Following the prices, round 1 (" in done.stderr
    assert (done.stdout + done.stderr).isascii()  # plain text: no colours, no boxes
    assert plan.ids[0] in {f"{j:03d}" for j in range(40)}
    assert (folder / "plan" / "job.toml").read_bytes() == (folder / "job.toml").read_bytes()
    summary = json.loads((folder / "plan" / "summary.json").read_text())
    assert summary["inputs"]["cohort"]["path"] == "../cohort.csv"

    audited = invoke("verify", folder / "plan")
    assert audited.exit_code == 0, audited.stdout
    assert audited.stdout.splitlines()[-1].startswith("passed ")
    page = (folder / "plan" / "report.html").read_text()
    (folder / "plan" / "report.html").write_text(page.replace("after the change", "surely, after the change"))
    forged = invoke("verify", folder / "plan")
    assert forged.exit_code == 5
    assert "does not show this plan" in forged.stderr
    assert "passed" not in forged.stdout
    (folder / "plan" / "report.html").write_text(page)
    old = (folder / "plan" / "report.html").read_bytes()
    (folder / "plan" / "report.html").unlink()
    bare = invoke("verify", folder / "plan")
    assert (bare.exit_code, "has no report.html" in bare.stderr) == (5, True)
    assert invoke("report", folder / "plan").exit_code == 0
    assert (folder / "plan" / "report.html").read_bytes() == old
    assert invoke("report", folder / "plan", "--out", folder / "page.html", "-q").stdout == ""
    assert (folder / "page.html").read_bytes() == old
    (folder / "plan" / "notes.txt").write_text("of no meaning")
    assert invoke("verify", folder / "plan").exit_code == 0
    (folder / "plan" / "trace.parquet").unlink()
    bare = invoke("verify", folder / "plan")
    assert (bare.exit_code, "has no trace.parquet" in bare.stderr) == (5, True)


def test_the_plan_is_the_same_from_csv_and_parquet_and_for_any_column_order(folder: Path) -> None:
    assert invoke("solve", folder / "job.toml", "--out", folder / "a", "-q").exit_code == 0
    import pyarrow.csv as pc

    table = pc.read_csv(folder / "cohort.csv", convert_options=pc.ConvertOptions(column_types={"who": pa.string()}))
    pq.write_table(table.select(["bp", "who", "bmi", "age"]), folder / "cohort.parquet")
    (folder / "job.toml").write_text(JOB.replace("cohort.csv", "cohort.parquet"))
    quiet = invoke("solve", folder / "job.toml", "--out", folder / "b", "-q")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")
    for file in ("plan.parquet", "fates.parquet"):
        assert (folder / "a" / file).read_bytes() == (folder / "b" / file).read_bytes()


def test_a_moved_plan_is_audited_with_the_files_named(folder: Path) -> None:
    assert invoke("solve", folder / "job.toml", "--out", folder / "plan", "-q").exit_code == 0
    (folder / "away").mkdir()
    shutil.move(folder / "plan", folder / "away" / "deep")
    shutil.move(folder / "cohort.csv", folder / "moved.csv")
    lost = invoke("verify", folder / "away" / "deep")
    assert lost.exit_code == 2
    assert lost.stderr.count("there is no such file; the plan names it as its ") == 2
    assert "If it has moved, say where with --cohort." in lost.stderr
    assert "If it has moved, say where with --model." in lost.stderr
    good = invoke("verify", folder / "away" / "deep", "--cohort", folder / "moved.csv", "--model", folder / "model.pt2")
    assert good.exit_code == 0, good.stdout


def test_a_plan_saved_from_python_says_what_its_audit_would_need(folder: Path) -> None:
    assert invoke("solve", folder / "job.toml", "--out", folder / "plan", "-q").exit_code == 0
    Plan.load(folder / "plan").save(folder / "bare")
    told = invoke("verify", folder / "bare", "--cohort", folder / "cohort.csv", "--model", folder / "model.pt2")
    assert told.exit_code == 2
    assert "saved from Python without its files" in told.stderr
    assert "plan.save(folder, problem=problem, model=" in told.stderr


def without_digits(text: str) -> str:
    """Digits differ a little between machines."""
    return " ".join(re.sub(r"[\d,.]+", "#", text).split())


def test_the_demo_prints_what_the_readme_shows_twice_and_is_audited(tmp_path: Path) -> None:
    first = invoke("demo", "--out", tmp_path / "demo")
    assert first.exit_code == 0, first.stderr
    assert first.stdout.startswith("The plan moves ")
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    shown = first.stdout.replace(str(tmp_path / "demo"), "maxflip-demo")
    assert without_digits(shown) in without_digits(readme)
    plan = Plan.load(tmp_path / "demo")
    assert len(plan.fates) == 442
    assert plan.count > 20
    assert not doubts(plan.notices)
    assert {"age", "sex"}.isdisjoint(plan.table()["feature"].to_pylist())
    again = invoke("demo", "--out", tmp_path / "demo")
    assert again.exit_code == 0, again.stderr
    assert np.array_equal(Plan.load(tmp_path / "demo").changes, plan.changes)
    assert invoke("verify", tmp_path / "demo").exit_code == 0
    shutil.move(tmp_path / "demo", tmp_path / "elsewhere")
    assert invoke("verify", tmp_path / "elsewhere").exit_code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["elsewhere"]


def test_the_demo_replaces_nothing_but_a_demo(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = invoke("demo", "--out", tmp_path / "mine")
    assert done.exit_code == 4
    assert "no earlier demo" in done.stderr
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


# --- bad input: the exit code, the message, nothing written ---


def rewrite(name: str, old: str, new: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return damage


def cell(row: int, column: int, value: str) -> Callable[[Path], None]:
    """The data row (from 1) and column (from 0) of the CSV."""

    def damage(folder: Path) -> None:
        lines = (folder / "cohort.csv").read_text().splitlines()
        parts = lines[row].split(",")
        parts[column] = value
        lines[row] = ",".join(parts)
        (folder / "cohort.csv").write_text("\n".join(lines) + "\n")

    return damage


def replace_bytes(name: str, content: bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return damage


def other_model(net: nn.Module, features: int = 3) -> Callable[[Path], None]:
    return lambda folder: export(net, folder / "model.pt2", features)


def fixed_batch(folder: Path) -> None:
    torch.export.save(torch.export.export(small_net(3).eval(), (torch.zeros(5, 3),)), folder / "model.pt2")


class Nan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_net(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = self.net(x)
        return torch.where(x[:, :1] > 1.0, torch.nan * z, z)


class Coupled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_net(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = self.net(x)
        return z - z.mean(dim=0) + x[:, :1]


BAD: list[tuple[str, Callable[[Path], None], int, list[str]]] = [
    ("1 NaN", cell(17, 1, "nan"), 2, ["cohort.csv", "'age'", "row 17", "016", "finite"]),
    ("2 inf", cell(5, 2, "inf"), 2, ["cohort.csv", "'bmi'", "row 5", "004", "inf"]),
    ("2 overflow", cell(5, 2, "1e39"), 2, ["cohort.csv", "'bmi'", "row 5", "004", "float32"]),
    ("3 text", cell(9, 3, '"12,5"'), 2, ["cohort.csv", "'bp'", "row 9", "008", "'12,5'"]),
    ("3 empty", cell(9, 3, ""), 2, ["cohort.csv", "'bp'", "row 9", "008", "empty"]),
    ("4 missing column", rewrite("cohort.csv", "bmi", "bim"), 2, ["cohort.csv", "'bmi'", "Did you mean 'bim'"]),
    ("7 duplicate columns", rewrite("cohort.csv", "age,bmi,bp", "age,bmi,BMI"), 2, ["'bmi'", "'BMI'"]),
    ("8 duplicate ids", cell(2, 0, "000"), 2, ["cohort.csv", "'000'", "row 1", "row 2"]),
    ("9 empty id", cell(3, 0, ""), 2, ["cohort.csv", "row 3", "id"]),
    ("10 no rows", replace_bytes("cohort.csv", b"who,age,bmi,bp\n"), 2, ["cohort.csv", "0 rows"]),
    ("11 no features", rewrite("job.toml", '["age", "bmi", "bp"]', "[]"), 2, ["features"]),
    ("19 empty file", replace_bytes("cohort.csv", b""), 2, ["cohort.csv", "empty"]),
    ("19 corrupt parquet", rewrite("job.toml", "cohort.csv", "model.pt2"), 2, ["model.pt2"]),
    ("19 url", rewrite("job.toml", "cohort.csv", "https://example.org/c.csv"), 2, ["https://example.org/c.csv"]),
    ("19 absent", rewrite("job.toml", "cohort.csv", "cohrt.csv"), 2, ["cohrt.csv", "cohort.csv"]),
    ("20 ragged", rewrite("cohort.csv", "\n008,", "\n008,1,"), 2, ["cohort.csv", "line 10"]),
    ("20 semicolons", replace_bytes("cohort.csv", b"who;age;bmi;bp\n1;2;3;4\n"), 2, ["cohort.csv", ";"]),
    ("25 negative", rewrite("job.toml", "20.0", "-3.0"), 2, ["job.toml", "budgets.bmi", "-3.0", ">= 0"]),
    (
        "27 limit on frozen",
        rewrite("job.toml", "[budgets.bmi]", "[limits.age]\nmin = 0\n[budgets.bmi]"),
        2,
        ["limits.age", "budget"],
    ),
    (
        "28 unknown feature",
        rewrite("job.toml", "[budgets.bp]", "[budgets.bpp]"),
        2,
        ["job.toml", "bpp", "Did you mean 'bp'"],
    ),
    ("28 unknown key", rewrite("job.toml", "margin", "margn"), 2, ["job.toml", "margn", "margin"]),
    ("29 text budget", rewrite("job.toml", "20.0", '"1e3"'), 2, ["job.toml", "budgets.bmi.amount", "1e3"]),
    ("31 margin", rewrite("job.toml", "margin = 0.1", "margin = 1.5"), 2, ["job.toml", "margin", "[0, 1)"]),
    ("31 both", rewrite("job.toml", "margin = 0.1", "margin = 0.1\nthreshold = 0.9"), 2, ["margin", "threshold"]),
    (
        "32 limits",
        rewrite("job.toml", "[budgets.bmi]", "[limits.bmi]\nmin = 5\nmax = 1\n[budgets.bmi]"),
        2,
        ["limits.bmi", "5", "1"],
    ),
    (
        "32 both lists",
        rewrite("job.toml", "margin", 'include = ["001"]\nexclude = ["001"]\nmargin'),
        2,
        ["include", "exclude", "001"],
    ),
    (
        "32 nobody can pay",
        rewrite("job.toml", JOB, JOB.replace("margin", 'include = ["002"]\nmargin').replace("0.0\n", "e-9\n")),
        2,
        ["job.toml: line 12: goal.include: "],
    ),
    ("34 broken toml", rewrite("job.toml", "margin = 0.1", "margin = = 0.1"), 2, ["job.toml", "line 12"]),
    ("34 duplicate key", rewrite("job.toml", "margin = 0.1", "margin = 0.1\nmargin = 0.2"), 2, ["job.toml", "line 13"]),
    ("35 logits as probabilities", rewrite("job.toml", '"logits"', '"probabilities"'), 3, ["output='logits'"]),
    (
        "36 class count",
        rewrite("job.toml", '["worse", "stable"]', '["worse", "stable", "dead"]'),
        3,
        ["2 columns", "3 classes"],
    ),
    ("36 width", other_model(small_net(4), 4), 3, ["(40, 3)"]),
    ("36 fixed batch", fixed_batch, 3, ["any number of rows", "dynamic_shapes"]),
    ("36 unknown class", rewrite("job.toml", 'target = "stable"', 'target = "stabel"'), 2, ["Did you mean 'stable'"]),
    ("37 NaN output", other_model(Nan()), 3, ["not finite", "row "]),
    ("42 coupled rows", other_model(Coupled()), 3, ["other rows of its batch"]),
    ("64 pickle", replace_bytes("model.pt2", b"\x80\x04N."), 7, ["model.pt2"]),
    ("not a model", replace_bytes("model.pt2", b"hello"), 2, ["model.pt2"]),
    ("no model", lambda folder: (folder / "model.pt2").unlink(), 2, ["model.pt2"]),
]


@pytest.mark.parametrize(("damage", "code", "parts"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_is_explained_and_nothing_is_written(
    folder: Path, damage: Callable[[Path], None], code: int, parts: list[str]
) -> None:
    damage(folder)
    before = snapshot(folder)
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == code, done.stderr
    for part in parts:
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert all(line.startswith(("error: ", "note: ")) or line.endswith("...") for line in done.stderr.splitlines())
    assert snapshot(folder) == before
    assert not (folder / "plan").exists()


def test_all_problems_of_a_job_are_listed(folder: Path) -> None:
    text = JOB.replace("20.0", "-3.0").replace("margin = 0.1", "margin = 7.0").replace("[budgets.bp]", "[budgets.bpp]")
    (folder / "job.toml").write_text(text)
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    for part in ("budgets.bmi", "margin", "bpp"):
        assert part in done.stderr


def test_odd_but_good_input(folder: Path) -> None:
    """BOM and CRLF, an extra column, other column order, ids with leading zeros, an infinite and a zero budget."""
    lines = (folder / "cohort.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    shuffled = "\r\n".join(",".join([r[3], r[0], r[1], "x", r[2]]) for r in rows).replace(
        "bp,who,age,x", "bp,who,age,note"
    )
    (folder / "cohort.csv").write_bytes(b"\xef\xbb\xbf" + shuffled.encode() + b"\r\n")
    (folder / "job.toml").write_text(JOB.replace("20.0", "inf").replace("10.0", "0"))
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 0, done.stderr
    assert "note" in done.stderr
    plan = Plan.load(folder / "plan")
    assert set(plan.table()["feature"].to_pylist()) == {"bmi"}
    assert plan.spend["bp"] == 0.0


def test_columns_of_the_cohort_give_limits_worths_and_targets(folder: Path) -> None:
    """Per-sample columns; an empty limit leaves its side open. The auditor reads them its own way and agrees."""
    lines = (folder / "cohort.csv").read_text().splitlines()
    rng = np.random.default_rng(0)
    rows = [f"{line},{rng.choice(['', '-0.5', '-9'])},{1 + j % 3},{j % 2}" for j, line in enumerate(lines[1:])]
    (folder / "cohort.csv").write_text("\n".join([lines[0] + ",floor,value,wanted", *rows]) + "\n")
    job = JOB.replace('target = "stable"', 'target_column = "wanted"\nworth_column = "value"\nexclude = ["003"]')
    (folder / "job.toml").write_text(job + '[limits.bmi]\nmin_column = "floor"\n')
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 0, done.stderr
    plan = Plan.load(folder / "plan")
    assert plan.worth > plan.count
    assert "003" not in plan.ids
    for row in plan.table().to_pylist():
        floor = rows[int(row["id"])].split(",")[4]
        if row["feature"] == "bmi" and floor:
            assert row["after"] >= min(float(floor), row["before"])


def test_output_that_is_in_the_way(folder: Path) -> None:
    assert invoke("solve", folder / "job.toml", "--out", folder / "plan", "-q").exit_code == 0
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 4
    assert "--overwrite" in done.stderr
    assert "Finding" not in done.stderr  # known before the work began
    assert invoke("solve", folder / "job.toml", "--out", folder / "plan", "--overwrite", "-q").exit_code == 0
    before = snapshot(folder)
    foreign = invoke("solve", folder / "job.toml", "--out", folder, "--overwrite")
    assert foreign.exit_code == 4
    assert "'cohort.csv'" in foreign.stderr
    assert snapshot(folder) == before
    missing = invoke("solve", folder / "job.toml", "--out", folder / "no" / "plan")
    assert missing.exit_code == 4
    assert "does not exist" in missing.stderr


def test_usage_errors_and_help(tmp_path: Path) -> None:
    assert run("solve", tmp_path / "absent.toml", "--out", tmp_path / "p").returncode == 2
    assert invoke("solv").exit_code == 2
    assert invoke("solve").exit_code == 2
    assert invoke("--version").stdout.startswith("maxflip ")
    helped = invoke("--help")
    assert helped.exit_code == 0
    for command in ("demo", "solve", "verify", "report"):
        assert command in helped.stdout
    assert "Documentation: docs/" in helped.stdout
    assert invoke("verify", tmp_path).exit_code == 2
    assert invoke("report", tmp_path).exit_code == 2


def test_a_plan_that_fails_its_audit_is_withheld(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The auditor's word counts, whatever the library thinks of its plan."""
    from maxflip._util.events import silent
    from maxflip.cli.run_job import run_job
    from maxflip.errors import VerifyError

    real = maxflip_verify.audit

    def spoiled(stage: Path, **options: Any) -> Any:
        summary = json.loads((stage / "summary.json").read_text())
        summary["count"] += 1
        (stage / "summary.json").write_text(json.dumps(summary))
        return real(stage, **options)

    monkeypatch.setattr(maxflip_verify, "audit", spoiled)
    with pytest.raises(VerifyError, match="withheld"):
        run_job(folder / "job.toml", folder / "plan", overwrite=False, watch=silent)
    assert not (folder / "plan").exists()
    (rejected,) = folder.glob("rejected-*")
    assert "count" in (rejected / "reason.txt").read_text()


def test_debug_shows_the_traceback(folder: Path) -> None:
    (folder / "job.toml").write_text("format = 2")
    assert "Traceback" in run("solve", folder / "job.toml", "--out", folder / "p", "--debug").stderr


SOON_SAID = """
import sys
from pathlib import Path
from typer.testing import CliRunner
from maxflip.cli.main import app
job = Path("job.toml")
good = job.read_text()
def ask(expected, *args):
    done = CliRunner().invoke(app, args)
    assert (done.exit_code, expected in done.output + done.stderr) == (0 if args[0].startswith("--") else 2, True), args
    loaded = [name for name in ("torch", "scipy", "sklearn", "highspy") if name in sys.modules]
    assert not loaded, (args, loaded)
def solve(expected, old="", new=""):
    assert old in good
    job.write_text(good.replace(old, new, 1))
    ask(expected, "solve", "job.toml", "--out", "plan")
ask("maxflip", "--version")
ask("Usage", "--help")
ask("no such file", "solve", "jbo.toml", "--out", "plan")
ask("no such folder", "verify", "nowhere")
solve("line 12", "margin = 0.1", "margin = = 0.1")
solve("margn", "margin", "margn")
solve("[0, 1)", "margin = 0.1", "margin = 1.5")
solve("Did you mean 'stable'", 'target = "stable"', 'target = "stabel"')
solve(">= 0", "20.0", "-3.0")
solve("Did you mean 'bp'", "[budgets.bp]", "[budgets.bpp]")
solve("cohrt.csv", "cohort.csv", "cohrt.csv")
solve("modl.pt2", "model.pt2", "modl.pt2")
solve("prices", '"nearest"', '"price"')
solver = '"{}"\\n{}'
solve("solver.options.rounds = 0", '"nearest"', solver.format("prices", "options = {rounds = 0}"))
solve("Did you mean 'chunk'", '"nearest"', solver.format("nearest", "options = {chunks = 9}"))
solve("solver.options.residual", '"nearest"', solver.format("ms", "options = {residual = 'no'}"))
solve("solver.options.tau", '"nearest"', solver.format("bcms", "options = {tau = 0.5}"))
solve("solver.options.projection", '"nearest"', solver.format("ccms", "options = {projection = 'no'}"))
solve("solver.options.a ", '"nearest"', solver.format("kl", "options = {a = -1}"))
solve("has no presets", '"nearest"', solver.format("prices", "preset = 'paper'"))
"""


def test_what_needs_no_model_is_said_without_loading_torch(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SOON_SAID], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("number", "code"), [*([(signal.SIGINT, 130)] if LONG else []), (signal.SIGTERM, 143)])
def test_signals_end_the_run_and_leave_nothing(folder: Path, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "maxflip", "solve", folder / "job.toml", "--out", folder / "plan"]
    slow = rewrite("job.toml", "format = 1", 'format = 1\nlimits = "observed"')
    slow(folder)
    before = snapshot(folder)
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()  # the first stage has begun
    process.send_signal(number)
    process.communicate(timeout=60)
    if process.returncode != 0:  # unless it was done sooner than the signal came
        assert process.returncode == code
        assert snapshot(folder) == before


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"(sleep 0.1; {sys.executable} -m maxflip data 2>{tmp_path}/err) | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert (tmp_path / "err").read_text() == ""
    assert done.stdout.strip() == "0"


def test_a_plain_environment_odd_paths_and_names_that_the_terminal_cannot_write(folder: Path) -> None:
    with_few(folder)
    rewrite("job.toml", "[budgets.bmi]", '[budgets."größe"]\nuses = { bmi = 1.0 }')(folder)
    odd = folder / "dossier é 🙂 x"
    odd.mkdir()
    for name in ("cohort.csv", "model.pt2", "job.toml"):
        shutil.copy(folder / name, odd / name)
    env = {"PATH": os.environ["PATH"], "LANG": "C", "HOME": str(folder), "PYTHONIOENCODING": "ascii"}
    env |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = run("solve", "job.toml", "--out", "plan é", cwd=odd, env=env)
    assert done.returncode == 0, done.stderr
    if LONG:
        assert run("verify", odd / "plan é", env=env).returncode == 0
    assert invoke("verify", odd / "plan é").exit_code == 0
    assert "gr\\xf6\\xdfe" in done.stdout


def test_a_solver_without_prices_shows_none(folder: Path) -> None:
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 0, done.stderr
    assert "Not known: Valid plan; its distance from the best possible is not known." in done.stdout
    assert "price" not in done.stdout.partition("Plan:")[0]
