"""The auditor passes flips that hold and refuses those that only pass when the change is carried out in full."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import maxflip_verify
from maxflip import Plan, Rounded, Uptake, VerifyError, solve
from maxflip._util.events import silent
from maxflip.cli.run_job import run_job
from maxflip.io.job.read import read_job
from tests.examples import linear_problem
from tests.jobs import export
from tests.sequences.stays import write_stays
from tests.test_cli import invoke
from tests.verify.good_plan import GoodPlan, good_plan
from tests.verify.test_verify_audit import run

LINE = math.log(1.1 / 0.9)  # of a + b - c - 1, where the good plan's samples pass


def asking(table: str, said: dict[str, Any] | None = None) -> GoodPlan:
    """The good plan, of which this is asked too."""
    good = good_plan()
    good.job += f"\n[must_hold]\n{table}\n"
    good.summary["must_hold"] = said
    if said is None:
        del good.summary["must_hold"]
    return good


# P-1 has the score 0.1 and moves by 0.125, P-2 -0.1 by 0.35, P-3 -0.4 by 0.65, P-9 -0.5 by 0.75: all end near 0.25, and
# the line is at 0.2007. The smallest share that all of them stand is that of P-9: 0.7007 / 0.75 = 0.934.
def test_a_share_that_all_stand_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(asking("uptake = 0.95", {"uptake": 0.95}).write(tmp_path), capsys)
    assert code == 0, text
    assert "ok\tfates.parquet: must_hold: a share of 0.95" in text
    assert text.count("must_hold: a share of") == 4


def test_a_plan_that_passes_but_does_not_hold_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(asking("uptake = 0.9", {"uptake": 0.9}).write(tmp_path), capsys)
    assert code == 5
    ends = {"P-1": 0.1 + 0.9 * 0.125, "P-2": -0.1 + 0.9 * 0.35, "P-3": -0.4 + 0.9 * 0.65, "P-9": -0.5 + 0.9 * 0.75}
    for who, score in ends.items():
        line = f"fates.parquet: must_hold: a share of 0.9: id {who!r}: got"
        assert (line in text) == (score < LINE)
    assert "wanted confidence of at least 0.1" in text
    assert "fates.parquet: flipped: id" not in text  # in full, all pass


def test_rounded_values_are_asked_by_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P-9: a + b + ... = 2.75 - 1.5: b rounds to -2 (even), so that the score is -0.25 instead of 0.25."""
    for step, codes in ((0.05, 0), (1.0, 5)):
        root = tmp_path / str(step)
        code, text = run(asking(f"rounded = {{ b = {step} }}", {"rounded": {"b": step}}).write(root), capsys)
        assert code == codes, text
    assert "fates.parquet: must_hold: rounded values: id 'P-9': got" in text


def test_a_summary_that_says_otherwise_is_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, said in enumerate(({"uptake": 0.99}, None)):
        code, text = run(asking("uptake = 0.95", said).write(tmp_path / str(number)), capsys)
        assert code == 5
        assert f"summary.json: must_hold: got {said!r}, wanted {{'uptake': 0.95}}" in text
    good = good_plan()
    good.summary["must_hold"] = {"uptake": 0.5}
    code, text = run(good.write(tmp_path / "claim"), capsys)
    assert (code, "summary.json: must_hold: got {'uptake': 0.5}, wanted None" in text) == (5, True)


@pytest.mark.parametrize(
    "table", ["uptake = 0.0", "uptake = 1.5", "rounded = { b = 0.0 }", "rounded = {}", "rounded = { z = 1.0 }"]
)
def test_what_cannot_be_meant_is_unreadable(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(asking(table).write(tmp_path), capsys)
    assert (code, "must_hold" in text) == (2, True)


# --- from Python and from a job


X = np.random.default_rng(1).normal(size=(20, 2))
ASKED = [Uptake(0.8), Rounded({"x0": 0.1})]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.pt2"
    net = linear_problem([1.0, 0.5], X, [4.0, 4.0], b=-1.0).classifier.members[0].module  # type: ignore[attr-defined]
    export(net, path, features=2, dtype=torch.float64)
    return path


def test_a_saved_plan_is_asked_and_loaded_with_what_it_holds_in(model: Path, tmp_path: Path) -> None:
    problem = linear_problem([1.0, 0.5], X, [4.0, 4.0], b=-1.0, must_hold=ASKED)
    plan = solve(problem)
    assert plan.count > 3
    plan.save(tmp_path / "plan", problem=problem, model=model)
    assert "[must_hold]\nuptake = 0.8\nrounded = {x0 = 0.1}\n" in (tmp_path / "plan/job.toml").read_text()
    assert json.loads((tmp_path / "plan/summary.json").read_text())["must_hold"] == {
        "uptake": 0.8,
        "rounded": {"x0": 0.1},
    }
    loaded = Plan.load(tmp_path / "plan")
    assert loaded.must_hold[0] == Uptake(0.8)
    assert dict(loaded.must_hold[1].steps) == {"x0": 0.1}  # type: ignore[union-attr]
    job = read_job(tmp_path / "plan/job.toml")
    classifier = job.load_classifier(silent)
    asked = job.with_classes_of(classifier).problem(job.read_cohort(), classifier)
    assert asked.scenarios.shares == problem.scenarios.shares
    assert asked.scenarios.step is not None
    assert asked.scenarios.step.tolist() == [0.1, 0.0]
    assert solve(asked).count == plan.count
    assert invoke("verify", tmp_path / "plan").exit_code == 0


def test_a_plan_that_was_not_asked_to_hold_cannot_be_saved_as_one_that_was(model: Path, tmp_path: Path) -> None:
    """The same changes, under a question that says more: the audit of `save` refuses them."""
    plain = linear_problem([1.0, 0.5], X, [4.0, 4.0], b=-1.0)
    asked = linear_problem([1.0, 0.5], X, [4.0, 4.0], b=-1.0, must_hold=Uptake(0.8))
    forged = solve(plain)
    for name in ("question", "must_hold"):
        object.__setattr__(forged, name, getattr(solve(asked), name))
    with pytest.raises(VerifyError, match=r"must_hold: a share of 0\.8"):
        forged.save(tmp_path / "plan", problem=asked, model=model)
    assert not (tmp_path / "plan").exists()


def test_a_job_with_wrong_requirements_says_where(tmp_path: Path) -> None:
    write_stays(tmp_path)
    job = tmp_path / "job.toml"
    text = job.read_text()
    for table, words in (
        ("uptake = 2", "must_hold.uptake = 2.0: must be a number above 0 and at most 1."),
        ("rounded = { bq = 1 }", "must_hold.rounded.bq: no feature is called 'bq'."),
        ('rounded = { bp = "1" }', "must_hold.rounded.bp = '1': must be a number."),
        ("upteke = 0.5", "must_hold.upteke: there is no such key."),
    ):
        job.write_text(f"{text}\n[must_hold]\n{table}\n")
        result = invoke("solve", job, "--out", tmp_path / "plan")
        assert (result.exit_code, words in result.output) == (2, True), result.output


def test_sequences_hold_and_a_forgery_is_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = write_stays(tmp_path)
    job.write_text(job.read_text() + "\n[must_hold]\nuptake = 0.8\nrounded = { bp = 1.0 }\n")
    released = run_job(job, tmp_path / "plan", overwrite=False, watch=silent)
    assert released.plan.count > 1
    table = released.plan.table().to_pydict()
    after = [a for a, feature in zip(table["after"], table["feature"], strict=True) if feature == "bp"]
    assert after
    assert all(value == round(value) for value in after)
    file = tmp_path / "plan/plan.parquet"
    rows, schema = pq.read_table(file).to_pylist(), pq.read_schema(file)
    for row in rows:
        row["change"] *= 0.85
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    code, text = run(tmp_path / "plan", capsys)
    assert (code, "must_hold: a share of 0.8: id" in text) == (5, True)
    assert not maxflip_verify.audit(tmp_path / "plan").passed
