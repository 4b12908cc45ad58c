"""At most so many features change: known answers, brute force and laws."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip import (
    Action,
    Budget,
    Cohort,
    Fate,
    Limit,
    Nearest,
    Plan,
    Problem,
    ProblemError,
    Quota,
    TorchClassifier,
    judge,
    solve,
)
from maxflip._util.events import silent
from maxflip.io.job.read import read_job
from maxflip.problem.describe import asked
from maxflip.problem.few import Few
from tests.conftest import LONG
from tests.contract import SOLVERS
from tests.examples import linear_net, linear_problem, missing_score, small_net
from tests.jobs import export
from tests.sequences.stays import write_stays
from tests.test_cli import invoke

Floats = NDArray[np.float64]
W = np.array([4.0, 3.0, 2.0, 1.0])


# --- the rule


def test_features_are_counted_once_and_the_largest_stay() -> None:
    few = Few(1, np.array([0, 1, 0, -1]))  # x0 in two steps, x1 in one; an action
    changes = np.array([[0.1, 0.0, 2.0, 1.0], [0.1, 3.0, 0.2, 1.0], [0.0, 0.0, 0.0, 1.0]])
    assert few.counts(changes).tolist() == [1, 2, 0]
    weight = np.array([1.0, 1.0, 1.0, np.inf])
    assert few.settled(changes, weight).tolist() == [[0.1, 0.0, 2.0, 1.0], [0.0, 3.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]]
    assert few.settled(changes, np.array([100.0, 1.0, 1.0, np.inf]))[1].tolist() == [0.1, 0.0, 0.2, 1.0]
    assert few.after(np.array([0.0, 2.0, 0.0, 1.0])).most == 0


@given(
    most=st.integers(1, 4),
    feature=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    seed=st.integers(0, 1000),
)
def test_settled_changes_are_few_and_otherwise_the_same(most: int, feature: list[int], seed: int) -> None:
    few = Few(most, np.array(feature))
    rng = np.random.default_rng(seed)
    changes = rng.normal(size=(5, len(feature))) * (rng.random((5, len(feature))) < 0.6)
    settled = few.settled(changes, np.ones(len(feature)))
    assert (few.counts(settled) == np.minimum(few.counts(changes), most)).all()
    assert ((settled == changes) | (settled == 0)).all()
    assert few.settled(settled, np.ones(len(feature))).tolist() == settled.tolist()


# --- known answers


@pytest.mark.parametrize("most", [1, 2, 3, 4])
@pytest.mark.parametrize("cost", ["squared", "absolute"])
def test_the_cheapest_flips_of_few_features(most: int, cost: Any) -> None:
    """Of equal weights, the features of the largest |w| change: d = r w / |w|^2, or r / w of the first alone."""
    x = np.zeros((3, 4)) - np.arange(3)[:, None] / 10
    budget = {"all": Budget(1e9, {f"x{i}": 1.0 for i in range(4)}, cost)}
    plan = solve(linear_problem(W, x, budget, most_changes=most, tidy=False))
    lacks, kept = missing_score(W, x), W * (np.arange(4) < most)
    expected = lacks[:, None] * (kept / (kept @ kept) if cost == "squared" else np.eye(4)[0] / W[0])
    np.testing.assert_allclose(plan.changes, expected, atol=1e-6)


def test_a_feature_with_little_room_gives_way_to_another() -> None:
    """x0 pays best, and moves 0.04 at most: alone it cannot flip; x1 can."""
    plan = solve(linear_problem(W, np.zeros((1, 4)), [9.0] * 4, most_changes=1, limits={"x0": (None, 0.04)}))
    assert plan.table()["feature"].to_pylist() == ["x1"]


def test_a_function_prices_every_feature_it_is_given() -> None:
    """Tried together, only one of them may change; the other was taken to be free, so that it alone was changed."""
    budget = Budget(0.01, ["x0", "x3"], lambda before, after: ((after - before) ** 2).sum(dim=1))
    for most in (1, 2):
        problem = linear_problem(
            W, np.random.default_rng(0).normal(0, 1e-3, (4, 4)), {"both": budget}, most_changes=most
        )
        assert (problem.as_squares[0] > 0).tolist() == [True, False, False, True]
        plan = solve(problem, Nearest())
        assert plan.count > 0
        assert (plan.changes[:, 0] != 0).all()


def test_nobody_is_flipped_where_all_features_are_needed() -> None:
    """0.2007 is missing. All four features win 0.0205 (4 + 3 + 2 + 1) = 0.205 at most, the first three 0.1845."""
    ask: Any = {"x": np.zeros((2, 4)), "budgets": [9.0] * 4, "limits": {f"x{i}": (None, 0.0205) for i in range(4)}}
    plan = solve(linear_problem(W, **ask, most_changes=3))
    assert plan.fates.tolist() == [Fate.NOT_FOUND] * 2
    assert solve(linear_problem(W, **ask, most_changes=4)).count == 2


def test_a_category_counts_and_an_action_does_not() -> None:
    """The switch wins 2 and the action 1 of the 3 that are missing; x0 would win the rest."""
    w = np.array([1.0, 2.0])
    cohort = Cohort.table([[0.0, 0.0]], features=["x", "plan"])

    def ask(**options: Any) -> Plan:
        return solve(
            Problem(
                classifier=TorchClassifier(linear_net(w, -3.2), output="logits"),
                cohort=cohort,
                target=1,
                margin=0.0,
                budgets={"x": 9.0, "euro": Budget(9.0, {"plan": 1.0}, "absolute")},
                choices={"plan": {1: 1.0}},
                actions=[Action("call", {"x": 1.0}, draws={"euro": 1.0})],
                **options,
            )
        )

    for most, taken in ((None, {"x", "plan = 1", "call"}), (2, {"x", "plan = 1", "call"}), (1, {"x", "call"})):
        plan = ask(most_changes=most)
        assert plan.count == 1
        changed = set(plan.table()["feature"].to_pylist())
        assert changed <= taken
        assert len(changed - {"call"}) <= (most or 9)


# --- brute force


def question(seed: int) -> Problem:
    """Few people with integer features, so that every change can be tried."""
    rng = np.random.default_rng(seed)
    n, features = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    x = rng.integers(-2, 3, size=(n, features)).astype(float)
    net = linear_net(rng.normal(size=features), -1.0) if seed % 2 else small_net(features, 2, seed, dtype=torch.float64)
    names = [f"x{i}" for i in range(features)]
    amount = float(rng.choice([2.0, 5.0, 12.0]))
    budgets: dict[str, Any] = dict.fromkeys(names, amount)
    if rng.random() < 0.5:
        budgets = {"all": Budget(amount, dict.fromkeys(names, 1.0), "absolute")}
    return Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=x,
        target=1,
        margin=0.1,
        budgets=budgets,
        limits={name: Limit(-3, 3, step=1) for name in names},
        most_changes=int(rng.integers(1, features)),
        tidy=bool(rng.random() < 0.5),
    )


def best_of_all(problem: Problem) -> float:
    """The greatest count, by trying every change of every sample."""
    points = np.array(list(itertools.product(range(-6, 7), repeat=problem.width)), dtype=float)
    options = []
    standing = judge.confidence_after(problem, np.arange(len(problem)), np.zeros((len(problem), problem.width)))
    for row in np.flatnonzero(standing < problem.goal.required):
        rows = np.full(len(points), row)
        own = points[judge.lawful(problem, rows, points)]
        own = own[np.count_nonzero(own, axis=1) <= (problem.few.most or problem.width)]
        own = own[judge.is_flip(problem, rows[: len(own)], own)]
        options.append(problem.bill(rows[: len(own)], own).consumption)
    best, states = 0, [(0, np.zeros(len(problem.ledger.names)))]
    for draws in options:
        grown = [(k + 1, spent + one) for k, spent in states for one in draws]
        states += [state for state in grown if (state[1] <= problem.ledger.amounts + 1e-9).all()]
        states = _undominated(states)
        best = max(k for k, _ in states)
    return float(best)


def _undominated(states: list[tuple[int, Floats]]) -> list[tuple[int, Floats]]:
    kept: list[tuple[int, Floats]] = []
    for k, spent in sorted(states, key=lambda state: (-state[0], *state[1])):
        if not any(other >= k and (less <= spent).all() for other, less in kept):
            kept.append((k, spent))
    return kept


@pytest.mark.parametrize("seed", range(200 if LONG else 8))
def test_plans_reach_the_optimum_of_small_problems(seed: int) -> None:
    problem = question(seed)
    with problem.classifier.borrowed():
        best = best_of_all(problem)
    plan = solve(problem)
    assert plan.count == best  # all 200 do
    assert plan.bound is None or plan.bound >= best - 1e-9
    assert (np.count_nonzero(plan.changes, axis=1) <= (problem.few.most or 9)).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_keeps_the_rule(solver: Any) -> None:
    rng = np.random.default_rng(3)
    problem = linear_problem(rng.normal(size=5), rng.normal(size=(15, 5)), [2.0] * 5, b=-1.0, most_changes=2)
    plan = solve(problem, solver)
    assert (np.count_nonzero(plan.changes, axis=1) <= 2).all()


@settings(max_examples=60 if LONG else 2, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_more_features_never_flip_fewer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w, x, budgets = rng.normal(size=3), rng.normal(size=(8, 3)), rng.uniform(0.5, 4, size=3)
    counts = [solve(linear_problem(w, x, budgets, b=-1.0, most_changes=most)).count for most in (1, 2, 3)]
    assert counts == sorted(counts)
    assert solve(linear_problem(w, x, budgets, b=-1.0)).count == counts[-1]


# --- faults, words and files


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "2"])
def test_what_is_no_number_of_features_is_refused(most: Any) -> None:
    with pytest.raises(ProblemError, match=r"most_changes = .*: must be a whole number >= 1"):
        linear_problem([1.0], [[0.0]], [1.0], most_changes=most)


def test_sequences_and_jobs(tmp_path: Path) -> None:
    """bp and glucose may change in many hours each; with most_changes = 1, one of the two."""
    job = write_stays(tmp_path)
    text = job.read_text()
    job.write_text(text.replace("[goal]\n", "[goal]\nmost_changes = 1\ntidy = false\n"))
    assert invoke("solve", job, "--out", tmp_path / "plan").exit_code == 0
    plan = Plan.load(tmp_path / "plan")
    assert plan.count > 0
    pairs = set(zip(*(plan.table()[name].to_pylist() for name in ("id", "feature")), strict=True))
    assert len(pairs) == plan.count
    assert plan.question is not None
    assert plan.question.most_changes == 1
    for line, words in (
        ("most_changes = 0", "goal.most_changes = 0: must be a whole number >= 1"),
        ('tidy = "yes"', "goal.tidy = 'yes': must be true or false."),
    ):
        job.write_text(text.replace("[goal]\n", f"[goal]\n{line}\n"))
        result = invoke("solve", job, "--out", tmp_path / "other")
        assert (result.exit_code, words in result.output) == (2, True), result.output


def test_a_saved_plan_asks_and_loads_the_same(tmp_path: Path) -> None:
    x = np.random.default_rng(2).normal(size=(10, 3))
    problem = linear_problem([1.0, 0.5, 0.2], x, [4.0] * 3, b=-1.0, most_changes=2, tidy=False)
    plan = solve(problem)
    assert Fate.FLIPPED in plan.fates
    export(linear_net([1.0, 0.5, 0.2], -1.0), tmp_path / "net.pt2", features=3, dtype=torch.float64)
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "net.pt2")
    assert "most_changes = 2\ntidy = false\n" in (tmp_path / "plan/job.toml").read_text()
    assert json.loads((tmp_path / "plan/summary.json").read_text())["question"]["most_changes"] == 2
    assert Plan.load(tmp_path / "plan").question == plan.question
    job = read_job(tmp_path / "plan/job.toml")
    classifier = job.load_classifier(silent)
    again = job.with_classes_of(classifier).problem(job.read_cohort(), classifier)
    assert (again.few.most, again.tidy) == (2, False)
    assert asked(again)["Changes"] == "at most 2 features of each"
    assert invoke("verify", tmp_path / "plan").exit_code == 0


def test_the_bound_counts_a_switch_that_leaves_no_feature_to_change() -> None:
    """Whoever is switched may change nothing besides; the bound left these flips out, and was 0."""
    budgets = {"b": Budget(1.0, uses={"x0": 0.5, "x1": 100.0}, cost="absolute")}
    question: dict[str, Any] = {"budgets": budgets, "b": -2.0, "choices": {"x0": {1: 1.0}}, "most_changes": 1}
    plan = solve(linear_problem([4.0, 1.0], [[0.0, 0.0]] * 2, **question))
    assert plan.worth == 2
    assert plan.bound == 2


@pytest.mark.parametrize("ask", [{"include": ["0", "1", "3", "4"]}, {"quotas": [Quota(["0", "2", "3", "4"], 3)]}])
def test_who_must_be_picked_is_searched_at_prices_that_spare_single_budgets(ask: Any) -> None:
    """3 must take x1 and 4 x0, which is dearer for each; with everyone's cheapest flip it was refused."""
    x = [[-1.5, -0.1, 0.8], [-0.8, -0.3, 0.2], [-0.6, -0.4, -1.3], [-1.3, 1.5, -1.4], [0.8, -0.7, 0.3]]
    budgets = {"x0": 2.577, "x1": Budget(1.984, cost="absolute")}
    w = [-0.4752127230167389, -0.6731628775596619, -0.1559944748878479]
    plan = solve(linear_problem(w, x, budgets, b=-0.46413641422986984, most_changes=1, **ask))
    assert plan.ids.tolist() == ["0", "1", "3", "4"]
