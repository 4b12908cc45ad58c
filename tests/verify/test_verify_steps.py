"""The auditor checks whole steps and smallest changes to the last bit, by code of its own."""

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
from hypothesis import given, settings
from hypothesis import strategies as st

from maxflip import Action, Budget, Limit, Plan, Problem, TorchClassifier, VerifyError, solve
from maxflip._util.events import silent
from maxflip.cli.run_job import run_job
from maxflip.io.job.read import read_job
from maxflip.problem.grid import Grid
from maxflip.problem.question import Question
from maxflip_verify.grid import sizes_and_misses
from tests.conftest import LONG
from tests.examples import linear_net, linear_problem
from tests.jobs import export
from tests.sequences.stays import write_stays
from tests.test_cli import invoke
from tests.verify.good_plan import GoodPlan, good_plan
from tests.verify.test_verify_audit import run


def asking(**limits: str) -> GoodPlan:
    """The good plan, with more lines in the limits of some features."""
    good = good_plan()
    for feature, lines in limits.items():
        good.job = good.job.replace(f"[limits.{feature}]\n", f"[limits.{feature}]\n{lines}\n")
    return good


# P-2 moves b from 0.0 by 0.15, P-3 from 0.3 by 0.45, P-9 from -2.5 by 1.0; a moves by 0.125, 0.2 (from 0.9) and -0.25.
@pytest.mark.parametrize(
    "limits",
    [
        {"b": "step = 0.05"},
        {"b": "step = 0.05\nsmallest = 0.15"},
        {"a": "smallest = 0.125", "c": "step = 0.1"},
        {"b": "smallest = 0.15"},
    ],
)
def test_changes_by_whole_steps_pass(limits: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(asking(**limits).write(tmp_path), capsys)
    assert code == 0, text
    assert "ok\tplan.parquet: grid" in text
    assert "ok\tplan.parquet: smallest" in text


@pytest.mark.parametrize(
    ("limits", "caught"),
    [
        ({"b": "step = 0.1"}, "plan.parquet: grid: id 'P-2', feature 'b': got 0.15, wanted 0.1"),
        ({"b": "step = 1"}, "plan.parquet: grid: id 'P-3', feature 'b': got 0.45, wanted 0.0"),
        ({"a": "step = 0.125"}, "plan.parquet: grid: id 'P-2', feature 'a': got 0.2, wanted 0.25"),  # from 0.9
        (
            {"a": f"smallest = {math.nextafter(0.125, 1)!r}"},
            f"plan.parquet: smallest: id 'P-1', feature 'a': got 0.125, wanted {math.nextafter(0.125, 1)!r}",
        ),
        ({"b": "step = 0.05\nsmallest = 0.16"}, "plan.parquet: smallest: id 'P-2', feature 'b': got 0.15, wanted 0.16"),
    ],
)
def test_other_changes_are_caught(limits: Any, caught: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(asking(**limits).write(tmp_path), capsys)
    assert (code, caught in text) == (5, True), text


@pytest.mark.parametrize("way", [math.inf, -math.inf])
def test_a_value_off_the_grid_by_one_ulp_is_caught(
    way: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = asking(b="step = 0.05")
    forged = next(row for row in good.plan if row["id"] == "P-3" and row["feature"] == "b")
    forged["change"] = math.nextafter(0.75, way) - 0.3  # so that the value itself is off by an ulp
    assert forged["before"] + forged["change"] == math.nextafter(0.75, way)
    code, text = run(good.write(tmp_path), capsys)
    assert (code, "plan.parquet: grid: id 'P-3', feature 'b'" in text) == (5, True), text


@pytest.mark.parametrize("line", ["step = 0", "step = -1", "smallest = 0", "step = 1e101", 'step = "1"', "step = nan"])
def test_what_cannot_be_meant_is_unreadable(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(asking(b=line).write(tmp_path), capsys)
    assert (code, "limits" in text) == (2, True), text


@settings(max_examples=5000 if LONG else 300)
@given(
    step=st.sampled_from([0.0, 0.1, 0.01, 0.3, 1.0, 2.5, 100.0, 1e-20, 1e20, math.pi]),
    smallest=st.sampled_from([0.0, 0.2, 0.5, 100.0]),
    places=st.tuples(st.integers(-400, 400), st.integers(-400, 400)),
    off=st.tuples(st.sampled_from([0.0, 0.0, 0.3]), st.sampled_from([0.0, 0.0, 0.4])),
    ulps=st.integers(-2, 2),
)
def test_library_and_auditor_say_the_same_of_every_change(
    step: float, smallest: float, places: tuple[int, int], off: tuple[float, float], ulps: int
) -> None:
    x, after = ((place + part) * (step or 0.25) for place, part in zip(places, off, strict=True))
    change = np.array([after - x])
    for _ in range(abs(ulps)):
        change = np.nextafter(change, math.copysign(math.inf, ulps))
    rule = Grid.of(["x"], {"x": step} if step else {}, {"x": smallest} if smallest else {}, {})
    start, which = np.array([x]), np.zeros(1, dtype=np.intp)
    size, whole = sizes_and_misses(start, change, np.array([step]), which)
    caught = (change != 0) & ((change != whole) | (size < smallest))
    assert caught.tolist() == rule.broken(start[None], change[None])[0].tolist()


# --- from Python and from a job


X = np.round(np.random.default_rng(1).normal(size=(20, 2)), 1)
ASKED = {"x0": Limit(-3, 3, "up", step=0.1), "x1": Limit(smallest=0.5)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.pt2"
    net = linear_problem([1.0, 0.5], X, [4.0, 4.0], b=-1.0).classifier.members[0].module  # type: ignore[attr-defined]
    export(net, path, features=2, dtype=torch.float64)
    return path


def test_a_saved_plan_asks_and_loads_the_same(model: Path, tmp_path: Path) -> None:
    problem = linear_problem([1.0, 0.5], X, [4.0, 4.0], b=-1.0, limits=ASKED)
    plan = solve(problem)
    assert plan.count > 3
    plan.save(tmp_path / "plan", problem=problem, model=model)
    text = (tmp_path / "plan/job.toml").read_text()
    assert '[limits.x0]\nmin = -3.0\nmax = 3.0\ndirection = "up"\nstep = 0.1\n' in text
    assert "[limits.x1]\nsmallest = 0.5\n" in text
    levers = json.loads((tmp_path / "plan/summary.json").read_text())["question"]["levers"]
    assert [(lever.get("step"), lever.get("smallest")) for lever in levers] == [(0.1, None), (None, 0.5)]
    assert Plan.load(tmp_path / "plan").question == plan.question
    job = read_job(tmp_path / "plan/job.toml")
    classifier = job.load_classifier(silent)
    again = job.with_classes_of(classifier).problem(job.read_cohort(), classifier)
    assert Question.of(again).levers == Question.of(problem).levers
    assert solve(again).count == plan.count
    assert invoke("verify", tmp_path / "plan").exit_code == 0


def test_a_plan_by_fractions_cannot_be_saved_as_one_by_steps(model: Path, tmp_path: Path) -> None:
    plain = linear_problem([1.0, 0.5], X, [4.0, 4.0], b=-1.0)
    by_steps = linear_problem([1.0, 0.5], X, [4.0, 4.0], b=-1.0, limits=ASKED)
    forged = solve(plain)
    object.__setattr__(forged, "question", Question.of(by_steps))
    with pytest.raises(VerifyError, match=r"plan\.parquet: grid"):
        forged.save(tmp_path / "plan", problem=by_steps, model=model)
    assert not (tmp_path / "plan").exists()


def test_a_job_with_wrong_steps_says_where(tmp_path: Path) -> None:
    write_stays(tmp_path)
    job = tmp_path / "job.toml"
    text = job.read_text()
    for line, words in (
        ("step = 0", "limits.bp.step = 0.0: must be a number from 1e-100 to 1e+100."),
        ('smallest = "5"', "limits.bp.smallest = '5': must be a number."),
        ("stap = 1", "limits.bp.stap: there is no such key."),
        ("step = 1\n[must_hold]\nrounded = { bp = 1.0 }", "must_hold.rounded.bp, limits.bp.step: values that go by"),
        ("smallest = 500", "limits.bp.smallest: no sample has room for a change of 500 within the limits."),
    ):
        job.write_text(f"{text}{line}\n")
        result = invoke("solve", job, "--out", tmp_path / "plan")
        assert (result.exit_code, words in result.output) == (2, True), result.output


def test_sequences_go_by_steps_and_a_forgery_is_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = write_stays(tmp_path)
    asked = job.read_text().replace('name = "nearest"', 'name = "prices"')  # Nearest changes glucose alone
    asked = asked.replace('steps = "last 3"', 'steps = "last 1"')
    job.write_text(asked + "step = 5\nsmallest = 10\n\n[limits.glucose]\nsmallest = 0.25\n")
    released = run_job(job, tmp_path / "plan", overwrite=False, watch=silent)
    assert released.plan.count > 1
    table = released.plan.table().to_pydict()
    moved: dict[str, list[float]] = {"bp": [], "glucose": []}
    for feature, change in zip(table["feature"], table["change"], strict=True):
        moved[feature].append(change)
    assert moved["bp"]
    assert all(change % 5 == 0 and abs(change) >= 10 for change in moved["bp"])
    assert all(abs(change) >= 0.25 for change in moved["glucose"])
    file = tmp_path / "plan/plan.parquet"
    rows, schema = pq.read_table(file).to_pylist(), pq.read_schema(file)
    forged = next(row for row in rows if row["feature"] == "bp")
    forged["change"] = math.nextafter(forged["change"], 0.0)
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    code, text = run(tmp_path / "plan", capsys)
    assert (code, "plan.parquet: grid: id" in text) == (5, True)


# --- few changes


def test_one_feature_too_many_is_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """P-2, P-3 and P-9 change a and b, P-1 changes a alone."""
    good = good_plan()
    for most, caught in ((2, False), (1, True)):
        good.job = good_plan().job.replace("[goal]\n", f"[goal]\nmost_changes = {most}\n")
        folder = tmp_path / str(most)
        folder.mkdir()
        code, text = run(good.write(folder), capsys)
        assert code == (5 if caught else 0), text
        assert ("most_changes: id 'P-2': got 2, wanted at most 1" in text) == caught, text


def test_actions_do_not_count_and_switches_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros((4, 3))
    problem = Problem(
        classifier=TorchClassifier(linear_net([1.0, 2.0, 1.0], -3.0), output="logits"),
        cohort=x,
        features=["x", "plan", "y"],
        target=1,
        margin=0.1,
        budgets={"x": 40.0, "y": 40.0, "euro": Budget(40.0, {"plan": 1.0}, "absolute")},
        choices={"plan": {1: 1.0}},
        actions=[Action("call", {"x": 1.0}, draws={"euro": 1.0})],
        most_changes=2,
        limits={"x": (None, 1.0), "y": (None, 1.0)},
    )
    plan = solve(problem)
    assert plan.count == 4  # 3.2 are needed: the call, the plan and y
    file = tmp_path / "net.pt2"
    export(linear_net([1.0, 2.0, 1.0], -3.0), file, features=3, dtype=torch.float64)
    plan.save(tmp_path / "plan", problem=problem, model=file)
    job = tmp_path / "plan/job.toml"
    assert run(tmp_path / "plan", capsys)[0] == 0
    job.write_text(job.read_text().replace("most_changes = 2", "most_changes = 1"))
    code, text = run(tmp_path / "plan", capsys)
    assert (code, "most_changes: id" in text) == (5, True), text


@pytest.mark.parametrize("line", ["most_changes = 0", "most_changes = 1.5", 'tidy = "no"'])
def test_odd_numbers_of_changes_are_unreadable(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    good.job = good.job.replace("[goal]\n", f"[goal]\n{line}\n")
    code, text = run(good.write(tmp_path), capsys)
    assert (code, "goal" in text) == (2, True), text
