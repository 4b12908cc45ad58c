"""A changed problem is the problem that would be made with these budgets, this margin or this threshold."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from maxflip import (
    Budget,
    Cohort,
    Nearest,
    Prices,
    Problem,
    ProblemError,
    TorchClassifier,
    frontier,
    judge,
    resolve,
    solve,
)
from maxflip._util.engine import Local
from maxflip._util.events import Event, Started, silent
from tests.examples import linear_problem, net_problem, small_net
from tests.sequences.examples import ragged_problem

X = np.random.default_rng(5).normal(size=(40, 3))


def asked(output: Any = "logits", **options: Any) -> Problem:
    """Of a float32 network over x0, x1 and x2, of which x2 draws on no budget."""
    classifier = TorchClassifier(small_net(3, 2, dtype=torch.float32), output=output)
    kept = {"budgets": {"x0": 2.0, "x1": Budget(3.0, cost="absolute")}, "margin": 0.1}
    cohort = Cohort.table(X, features=["x0", "x1", "x2"])
    return Problem(**{"classifier": classifier, "cohort": cohort, "target": 1, **kept, **options})


def of_sequences(**options: Any) -> Problem:
    kept: dict[str, Any] = {"budgets": {"x0": 2.0, "x1": 3.0}, "steps": "last 3", "margin": 0.1}
    return ragged_problem(**{**kept, **options})


def same(one: Problem, other: Problem) -> None:
    assert (one.goal.required, one.goal.is_threshold) == (other.goal.required, other.goal.is_threshold)
    assert (one.guard, one.steps, one.notices, dict(one.thrift)) == (
        *(other.guard, other.steps, other.notices),
        dict(other.thrift),
    )
    assert {n: (b.amount, dict(b.weights), b.cost) for n, b in one.budgets.items()} == {
        n: (b.amount, dict(b.weights), b.cost) for n, b in other.budgets.items()
    }
    for name in ("amounts", "squared", "absolute", "squared_down", "absolute_down", "flat", "draws"):
        np.testing.assert_array_equal(getattr(one.ledger, name), getattr(other.ledger, name))
    np.testing.assert_array_equal(one.actionable, other.actionable)
    for name in ("lower", "upper", "direction"):
        np.testing.assert_array_equal(getattr(one.limits, name), getattr(other.limits, name))
    np.testing.assert_array_equal(one.spread, other.spread)
    assert (one.linear is None) == (other.linear is None)


@pytest.mark.parametrize("make", [asked, of_sequences])
@pytest.mark.parametrize(
    "new",
    [
        {"margin": 0.3},
        {"threshold": 0.7},
        {"budgets": {"x0": 5.0}},
        {"budgets": {"x0": math.inf, "people": Budget(4, cost="count")}, "margin": 0.0},
        {"budgets": {"x1": Budget(1.0, {"x0": 2.0, "x1": 1.0}, "absolute")}},
    ],
)
def test_a_changed_problem_is_the_one_that_would_be_made(make: Callable[..., Problem], new: dict[str, Any]) -> None:
    before = make()
    changed = before.changed(**new)
    made = {name: Budget(b.amount, b.uses, b.cost) for name, b in changed.budgets.items()}
    goal = {"margin": None if changed.goal.is_threshold else changed.goal.required}
    goal["threshold"] = changed.goal.required if changed.goal.is_threshold else None
    same(changed, make(budgets=made, **goal))
    same(before, make())


BOTH = Budget(9.0, {"x0": 1.0, "x1": 1.0, "x2": 1.0})


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"x0": 2.0}, {"x0": BOTH}),  # x1 and x2 begin to draw
        ({"x0": 2.0}, {"x1": Budget(3.0)}),
        ({"x0": BOTH}, {"x0": Budget(2.0)}),  # x1 and x2 draw no more
        ({"x0": 2.0}, {"x0": 5.0}),
    ],
)
def test_observed_limits_are_those_of_the_features_that_draw_now(first: dict[str, Any], then: dict[str, Any]) -> None:
    """A feature that begins to draw on a budget has the limits that a problem written so from the start gives it."""
    ways = {"x0": "up"}
    changed = asked(budgets=first, limits="observed", directions=ways).changed(budgets=then)
    made = {name: Budget(b.amount, b.uses, b.cost) for name, b in changed.budgets.items()}
    fresh = asked(budgets=made, limits="observed", directions=ways)
    same(changed, fresh)
    one, other = solve(changed, Nearest()), solve(fresh, Nearest())
    np.testing.assert_array_equal(one.selected, other.selected)
    np.testing.assert_array_equal(one.moves, other.moves)
    assert one.question == other.question
    assert one.answers(fresh)


def test_limits_given_by_name_stay() -> None:
    problem = asked(budgets={"x0": 2.0}, limits={"x0": "observed"})
    np.testing.assert_array_equal(problem.changed(budgets={"x1": Budget(3.0)}).limits.lower, problem.limits.lower)
    for limits in ({"x0": (-1.0, None)}, None):
        assert not asked(budgets={"x0": 2.0}, limits=limits).observed


def test_observed_limits_of_sequences_follow_too() -> None:
    before = of_sequences(limits="observed")
    both = Budget(1.0, {"x0": 1.0, "x1": 1.0})
    same(before.changed(budgets={"x0": both}), of_sequences(limits="observed", budgets={"x0": both, "x1": 3.0}))


@pytest.mark.parametrize("margin", [0.2, 50.0, 1e6])
def test_the_guard_of_decision_values_follows_the_margin(margin: float) -> None:
    """It is relative to the size of the outputs, and those of flips are as large as the margin."""
    fresh = asked(output="decision", margin=margin)
    assert asked(output="decision").changed(margin=margin).guard == fresh.guard
    assert asked(output="decision", margin=1e7).changed(margin=margin).guard == fresh.guard


def test_a_margin_that_rounding_cannot_reach_is_told_in_words() -> None:
    problem = asked()
    plan = solve(problem, Nearest())
    words = "0.9999995: is too close to 1: the model's rounding needs a guard of 1e-06"
    with pytest.raises(ProblemError, match=words):
        asked(margin=0.9999995)
    with pytest.raises(ProblemError, match=words):
        resolve(problem, plan, margin=0.9999995)
    with pytest.raises(ProblemError, match=words):
        problem.changed(threshold=0.9999995)


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ({"budgets": 5}, "budgets: got 5; wanted {name: amount or Budget"),
        ({"budgets": {"x2": 1.0}}, "the problem has no budget 'x2'"),
        ({"budgets": {"x0": -1.0}}, "must be >= 0"),
        ({"budgets": {"x0": Budget(1, cost="count"), "x1": Budget(1, cost="count")}}, "no feature draws on a budget"),
        ({"budgets": {"x2": Budget(1.0)}}, "column 'x2' has values as large as 1e\\+200 and draws on a budget"),
        ({"margin": 1.0}, r"margin = 1.0: must lie in \[0, 1\)"),
        ({"margin": 0.1, "threshold": 0.5}, "one of the two; got both"),
    ],
)
def test_what_a_new_problem_refuses_a_changed_one_refuses_too(new: dict[str, Any], words: str) -> None:
    values = X.copy()
    values[:, 2] = 1e200
    problem = linear_problem([1.0, 1.0, 0.0], values, {"x0": 1.0, "x1": 1.0})
    with pytest.raises(ProblemError, match=words.replace("{", r"\{")):
        problem.changed(**new)


def test_all_faults_are_listed() -> None:
    with pytest.raises(ProblemError) as caught:
        asked().changed(budgets={"x0": -1.0, "nobody": 2.0}, margin=2.0)
    assert len(caught.value.problems) == 3


def test_sequences_have_no_place_for_features_that_drew_on_nothing() -> None:
    with pytest.raises(ProblemError, match="the feature 'x2' draws on no budget of this problem"):
        of_sequences().changed(budgets={"x0": Budget(1.0, {"x2": 1.0})})


def test_functions_are_tried_again() -> None:
    def a_gain(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return -((after - before) ** 2).sum(dim=1)

    for problem in (asked(), of_sequences()):
        with pytest.raises(ProblemError, match=r"budgets\.x0\.cost: function a_gain"):
            problem.changed(budgets={"x0": Budget(1.0, ["x0"], a_gain)})


def test_groups_are_restricted_by_the_same_checks() -> None:
    problem = asked(include=["0", "7"], exclude=["3"])
    part = problem.restricted(np.array([0, 1, 2, 3]), 0.5)
    same(part, problem.changed(budgets={"x0": 1.0, "x1": 1.5}))
    assert part.include.tolist() == [0]
    assert part.exclude.tolist() == [3, *range(4, 40)]
    assert not part.include.flags.writeable


def test_the_linear_form_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    own = TorchClassifier.linear

    def counted(self: TorchClassifier, width: int) -> Any:
        calls.append(width)
        return own(self, width)

    monkeypatch.setattr(TorchClassifier, "linear", counted)
    problem = linear_problem([1.0, 2.0, 3.0], X, {"x0": 1.0, "x1": 1.0})
    frontier(problem, [0.5, 1.0, 2.0], Prices())
    assert calls == [3]
    assert problem.changed(margin=0.3).linear is problem.linear


def reads(problem: Problem) -> int:
    """How often the whole cohort is read."""
    heard: list[Event] = []
    judge.standing(problem, Local(1), heard.append)
    return sum(isinstance(event, Started) for event in heard)


def test_the_cohort_is_read_once_for_any_margins() -> None:
    problem = net_problem(n=50)
    assert [reads(problem), reads(problem), reads(problem.changed(margin=0.4))] == [1, 0, 0]
    assert reads(problem.changed(threshold=0.6)) == 1  # a confidence of another kind
    assert reads(pickle.loads(pickle.dumps(problem))) == 0
    changed = judge.standing(problem.changed(margin=0.4), Local(1), silent)
    fresh = judge.standing(net_problem(n=50, margin=0.4), Local(1), silent)
    for name in ("confidence", "already", "unusable", "below_margin"):
        np.testing.assert_array_equal(getattr(changed, name), getattr(fresh, name))


def test_a_model_that_was_trained_in_between_is_asked_again() -> None:
    net = small_net(3, 2, dtype=torch.float64)
    problem = asked(classifier=TorchClassifier(net, output="logits"))
    before = judge.standing(problem, Local(1), silent)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.5)
    assert reads(problem) == 1
    after = judge.standing(problem, Local(1), silent)
    assert (before.confidence != after.confidence).all()
