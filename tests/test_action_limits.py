"""Limits of features that actions alone change hold for the value after the action, in the library and in the audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import maxflip_verify
from maxflip import Action, Budget, Cohort, InputError, Limit, Plan, Problem, ProblemError, TorchClassifier, solve
from maxflip._util.events import silent
from maxflip.io.job.read import read_job
from maxflip.problem.question import Lever
from tests.examples import linear_net, linear_problem
from tests.jobs import export, job_text

LIFT = Action("lift", {"x0": 1.0}, {"hours": 1.0})
HOURS = {"hours": Budget(9.0, cost="absolute")}
STARTS = [[-0.75, 0.0], [-0.5, 0.0], [-0.25, 0.0]]


@pytest.mark.parametrize("free", [{}, {"x1": 1e-9}], ids=["alone", "beside"])
@pytest.mark.parametrize(
    ("limits", "directions", "flipped"),
    [
        ({"x0": (None, 0.5)}, None, ["0", "1"]),  # -0.25 + 1 = 0.75 is too high
        ({"x0": Limit(high=np.array([0.0, 0.5, 0.75]))}, None, ["1", "2"]),
        ({"x0": (None, 0.1)}, None, []),
        ("observed", None, []),
        (None, {"x0": "down"}, []),
        (None, {"x0": "up"}, ["0", "1", "2"]),
    ],
)
def test_an_action_that_leaves_a_limit_is_closed_to_that_person(
    limits: Any, directions: Any, flipped: list[str], free: dict[str, float]
) -> None:
    problem = linear_problem(
        [4.0, 0.0], STARTS, {**HOURS, **free}, actions=[LIFT], limits=limits, directions=directions
    )
    plan = solve(problem)
    assert plan.ids.tolist() == flipped
    assert plan.bound == len(flipped)


def test_observed_limits_stay_those_of_actions_with_other_budgets() -> None:
    problem = linear_problem([4.0, 0.0], STARTS, HOURS, actions=[LIFT], limits="observed")
    assert solve(problem.changed(budgets={"hours": 2.0})).count == 0


def test_steps_are_for_changes_by_amounts() -> None:
    with pytest.raises(ProblemError, match=r"limits\.x0\.step: actions alone change the feature"):
        linear_problem([4.0, 0.0], STARTS, HOURS, actions=[LIFT], limits={"x0": Limit(step=1)})
    with pytest.raises(ProblemError, match=r"limits\.x1: the feature draws on no budget, so it is frozen"):
        linear_problem([4.0, 0.0], STARTS, HOURS, actions=[LIFT], limits={"x1": (0, 1)})


def test_an_action_that_is_wrong_is_told_once() -> None:
    with pytest.raises(ProblemError) as error:
        linear_problem([4.0, 0.0], STARTS, HOURS, actions=[Action("a", {"x9": 1.0})], limits={"x0": (0, 1)})
    assert error.value.problems == ("actions.a.effects.x9: no feature is called 'x9'.",)


def saved(tmp_path: Path, **arguments: Any) -> Plan:
    export(linear_net([4.0, 0.0]), tmp_path / "model.pt2", features=2, dtype=torch.float64)
    problem = linear_problem([4.0, 0.0], STARTS, HOURS, **arguments)
    plan = solve(problem)
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "model.pt2")
    return plan


def asked_by(path: Path) -> Problem:
    job = read_job(path)
    classifier = job.load_classifier(silent)
    return job.with_classes_of(classifier).problem(job.read_cohort(), classifier)


def test_the_auditor_keeps_them_too(tmp_path: Path) -> None:
    assert saved(tmp_path, actions=[LIFT], limits={"x0": (None, 0.5)}).count == 2
    assert maxflip_verify.audit(tmp_path / "plan").passed
    job = tmp_path / "plan" / "job.toml"
    assert "[limits.x0]\nmax = 0.5\n" in job.read_text()
    question = Plan.load(tmp_path / "plan").question
    assert question is not None
    assert question.levers == (Lever("x0", high=0.5, by_actions=True),)
    job.write_text(job.read_text().replace("max = 0.5", "max = 0.4"))
    failed = [check.name for check in maxflip_verify.audit(tmp_path / "plan").checks if check.findings]
    assert "plan.parquet: limits after actions" in failed


def test_a_job_says_the_same(tmp_path: Path) -> None:
    export(linear_net([4.0, 0.0]), tmp_path / "model.pt2", features=2, dtype=torch.float64)
    (tmp_path / "cohort.csv").write_text("who,x0,x1\n" + "".join(f"P{j},{a},{b}\n" for j, (a, b) in enumerate(STARTS)))
    text = job_text(["x0", "x1"], {"hours": 9.0}).replace('"nearest"', '"prices"')
    text += "[actions.lift]\neffects = { x0 = 1.0 }\ndraws = { hours = 1.0 }\n"
    (tmp_path / "job.toml").write_text(text + "[limits.x0]\nmax = 0.5\n")
    assert solve(asked_by(tmp_path / "job.toml")).ids.tolist() == ["P0", "P1"]


def test_switches_are_not_within_what_was_observed(tmp_path: Path) -> None:
    """Nobody has x1 = 3; a switch says itself where it leads."""
    budgets = {"x1": Budget(9.0, cost="absolute")}
    problem = linear_problem([0.0, 1.0], STARTS, budgets, choices={"x1": {3: 1.0}}, limits="observed")
    assert solve(problem).count == 3


def test_who_is_written_as_the_column_that_told_it(tmp_path: Path) -> None:
    frame = pa.table({"x0": [a for a, _ in STARTS], "x1": [0.0] * 3, "site": ["Oslo", "Rome", "Oslo"]})
    people = Cohort.table(frame, features=["x0", "x1"])
    export(linear_net([4.0, 0.0]), tmp_path / "model.pt2", features=2, dtype=torch.float64)
    lift = Action("lift", {"x0": 1.0}, {"hours": 1.0}, who=("site", "Oslo"))
    problem = Problem(
        classifier=TorchClassifier(linear_net([4.0, 0.0]), output="logits"), cohort=people, target=1, margin=0.1,
        budgets=HOURS, actions=[lift],
    )  # fmt: skip
    plan = solve(problem)
    assert plan.ids.tolist() == ["0", "2"]
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "model.pt2")
    assert 'who = {column = "site", value = "Oslo"}' in (tmp_path / "plan" / "job.toml").read_text()
    assert maxflip_verify.audit(tmp_path / "plan").passed
    assert solve(asked_by(tmp_path / "plan" / "job.toml")).ids.tolist() == ["0", "2"]


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", " call", "tab\tbed"])
def test_names_of_actions_are_plain_texts(name: str) -> None:
    with pytest.raises(ProblemError, match="actions: the name"):
        linear_problem([4.0, 0.0], STARTS, HOURS, actions=[Action(name, {"x0": 1.0}, {"hours": 1.0})])


def test_no_actions_are_as_none() -> None:
    plan = solve(linear_problem([4.0, 0.0], STARTS, {"x0": 9.0}, actions=[]))
    assert plan.levers == {}
    with pytest.raises(ProblemError, match=r"budgets\.hours: no feature is called 'hours'"):
        linear_problem([4.0, 0.0], STARTS, HOURS, actions=[])


def test_a_job_without_effects_says_what_is_wanted(tmp_path: Path) -> None:
    text = job_text(["x0", "x1"], {"hours": 9.0}) + "[actions.lift]\ndraws = { hours = 1.0 }\n"
    (tmp_path / "job.toml").write_text(text)
    says = r"actions\.lift\.effects is missing; wanted what becomes of features, such as"
    with pytest.raises(InputError, match=says):
        read_job(tmp_path / "job.toml")


def test_an_action_on_budgets_of_others_is_closed_to_outsiders() -> None:
    budgets = {"hours": Budget(9.0, cost="absolute", only=["0", "2"])}
    assert solve(linear_problem([4.0, 0.0], STARTS, budgets, actions=[LIFT])).ids.tolist() == ["0", "2"]
