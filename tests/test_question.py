"""What was asked, in words."""

from __future__ import annotations

import math

import numpy as np

from maxflip import Budget, Cohort, Problem, TorchClassifier, solve
from maxflip.problem.describe import asked
from maxflip.problem.question import Question
from maxflip.report import render
from tests.examples import linear_net, linear_problem, net_problem
from tests.report.plans import Page


def test_a_margin_limits_directions_and_lists() -> None:
    problem = Problem(
        classifier=TorchClassifier(linear_net([1.0, 1.0, 1.0]), output="logits", classes=["worse", "stable"]),
        cohort=Cohort.table(-np.eye(3), features=["bmi", "bp", "age"], ids=["P-1", "P-2", "P-3"]),
        target="stable",
        margin=0.1,
        budgets={"both": Budget(9.0, {"bmi": 1.0, "bp": 1.0})},
        limits={"bmi": (-2.5, math.inf)},
        directions={"bp": "up"},
        include=["P-2"],
        exclude=["P-1", "P-3"],
    )
    assert asked(problem) == {
        "Wanted class": "'stable'",
        "Confidence": "margin 0.1: the wanted class is ahead of every other by at least this probability",
        "May change": "'bmi' from -2.5; 'bp' freely, upwards only",
        "Must be picked": "'P-2'",
        "Must not be picked": "'P-1', 'P-3'",
    }
    plan = solve(problem)
    assert plan.question == Question.of(problem)
    assert plan.answers(problem)
    assert not plan.answers(problem.changed(margin=0.2))


def test_a_threshold_limits_for_each_and_columns_without_names() -> None:
    limits = {"x0": (np.array([-3.0, -2.0]), 5.0), "x1": (-4.0, 4.0)}
    problem = linear_problem([1.0, 1.0], [[-1.0, 0.0], [0.0, -1.0]], [9, 9], margin=None, threshold=0.9, limits=limits)
    assert asked(problem) == {
        "Wanted class": "output column 1",
        "Confidence": "threshold 0.9: the wanted class has at least this probability",
        "May change": "'x0' within limits of each one's own; 'x1' from -4 to 4",
    }


def test_several_wanted_classes_one_for_each_and_many_features() -> None:
    several = net_problem(10, features=40, classes=3, target={0, 2})
    assert asked(several)["Wanted class"] == "any of the output columns [0, 2]"
    assert asked(several)["May change"].endswith("'x29' freely; and 10 more")
    each = net_problem(10, classes=3, target=np.arange(10) % 3)
    assert asked(each)["Wanted class"] == "one for each, by a column of the cohort or a list"


def test_a_margin_of_many_digits_is_said_with_all_of_them() -> None:
    """Else a report would find people below what was asked."""
    problem = linear_problem([1.0, 1.0], [[-1.0, 0.0], [0.0, -1.0]], [9, 9], margin=0.123456789)
    assert asked(problem)["Confidence"].startswith("margin 0.123456789: ")
    plan = solve(problem)
    assert plan.count == 2
    spare = Page(render(plan)).data["ahead"]
    assert min(spare) >= plan.guard / 2


def test_where_all_budgets_are_0_nothing_may_change() -> None:
    problem = linear_problem([1.0, 1.0], [[-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0])
    assert asked(problem)["May change"] == "nothing: every budget is 0"
