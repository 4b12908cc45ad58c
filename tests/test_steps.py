"""Whole steps and smallest changes: the rule to the last bit, known answers, brute force and laws."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip import (
    Budget,
    Cohort,
    Fate,
    Limit,
    Nearest,
    Prices,
    Problem,
    ProblemError,
    Rounded,
    TorchClassifier,
    Uptake,
    judge,
    solve,
)
from maxflip.problem.describe import asked
from maxflip.problem.grid import Grid
from maxflip.problem.question import Question
from tests.conftest import LONG
from tests.contract import SOLVERS
from tests.examples import linear_net, linear_problem, missing_score, net_problem, small_net

Floats = NDArray[np.float64]
DECIMAL, BINARY = (0.1, 0.01, 0.05, 0.3, 1.7), (1.0, 2.0, 0.25, 100.0)


def grid_of(step: float, smallest: float = 0.0) -> Grid:
    return Grid.of(["x"], {"x": step}, {"x": smallest} if smallest else {}, {})


def settled(grid: Grid, start: float, change: float, low: float = -math.inf, high: float = math.inf) -> float:
    x, d, below, above = (np.array([[value]]) for value in (start, change, low, high))
    return float(grid.settled(x, d, below, above, lambda moved: moved + 0.0)[0, 0])


def one_feature(x: float, b: float, **options: Any) -> Problem:
    """Passes where x + d >= -b, with a margin of 0."""
    return linear_problem([1.0], [[x]], [1e6], b=b, margin=0.0, **options)


# --- the rule


@pytest.mark.parametrize(
    ("step", "start", "change", "stored"),
    [
        (1.0, 3.0, 1.3, 1.0),
        (1.0, 3.0, -0.6, -1.0),
        (1.0, 2.5, 0.8, 1.0),  # 2.5 is on no whole number: by whole steps from there
        (0.1, 0.2, 0.1, 0.3 - 0.2),  # to 0.3, as one writes it
        (0.1, 7.3, -7.04, -7.0),
        (0.1, 0.30000000000000004, 0.22, 0.2),  # off the grid by an ulp: two steps from there
        (100.0, 20_000.0, 149.0, 100.0),
        (0.05, 1.0, 0.16, 1.15 - 1.0),
        (1.0, 4.0, 0.3, 0.0),
    ],
)
def test_a_change_goes_to_the_nearest_point_of_the_grid(
    step: float, start: float, change: float, stored: float
) -> None:
    assert settled(grid_of(step), start, change) == stored


def test_a_smallest_change_is_kept_or_made_or_dropped() -> None:
    free = Grid.of(["x"], {}, {"x": 0.5}, {})
    assert [settled(free, 1.0, d) for d in (0.1, 0.3, -0.3, 0.7)] == [0.0, 0.5, -0.5, 0.7]
    assert settled(free, 1.0, 0.3, high=0.4) == 0.0  # no room for the smallest change
    coarse = grid_of(0.2, 0.5)  # the smallest multiple that is large enough is 0.6
    assert coarse.least.tolist() == [0.6]
    assert [settled(coarse, 0.0, d) for d in (0.2, 0.45, 0.95)] == [0.0, 0.6, 1.0]
    assert grid_of(0.1, 0.5).least.tolist() == [0.5]


def test_limits_are_kept_and_written_alike() -> None:
    """A maximum of 0.3 is a point of the grid of 0.1, and one of 0.29 leaves 0.2."""
    for most, after in ((0.3, 0.3), (0.29, 0.2)):
        problem = one_feature(0.1, -0.5, limits={"x0": Limit(None, most, step=0.1)})
        change = problem.settle(np.array([0]), np.array([[5.0]]))
        assert 0.1 + change[0, 0] == after
        assert judge.lawful(problem, np.array([0]), change)[0]


@settings(max_examples=4000 if LONG else 150)
@given(
    step=st.sampled_from([*DECIMAL, *BINARY]),
    smallest=st.sampled_from([0.0, 0.3, 1.0]),
    start=st.integers(-500, 500),
    is_off=st.booleans(),
    change=st.floats(-60, 60),
    ends=st.tuples(st.floats(0, 30), st.floats(0, 30)),
)
def test_what_is_settled_is_lawful_and_near_and_one_ulp_beside_it_is_not(
    step: float, smallest: float, start: int, is_off: bool, change: float, ends: tuple[float, float]
) -> None:
    x = round(start * step, 9) + (step / 3 if is_off else 0.0)
    limits = {"x0": Limit(x - ends[0], x + ends[1], step=step, smallest=smallest or None)}
    try:
        problem = one_feature(x, -1e9, limits=limits)
    except ProblemError:  # no room for a single step
        return
    row, d = np.array([0]), problem.settle(np.array([0]), np.array([[change]]))
    assert judge.lawful(problem, row, d)[0]
    assert (problem.settle(row, d) == d).all()
    moved = float(d[0, 0])
    assert moved * change >= 0
    most = max(step, float(problem.grid.least[0]))
    room = ends[1] if change > 0 else ends[0]
    if abs(change) <= room - most:  # limits are far
        assert abs(moved - change) <= most * (0.5 + 1e-9)
    if moved:
        for other in (math.nextafter(moved, math.inf), math.nextafter(moved, -math.inf)):
            assert not judge.lawful(problem, row, np.array([[other]]))[0]


def test_of_whole_steps_every_whole_value_is_lawful_and_nothing_between() -> None:
    problem = one_feature(-2.0, 0.0, limits={"x0": Limit(step=1, smallest=2)})
    changes = np.arange(-40, 41)[:, None] / 8.0
    expected = [d == 0 or (float(d).is_integer() and abs(d) >= 2) for d in changes[:, 0]]
    assert judge.lawful(problem, np.zeros(len(changes), dtype=int), changes).tolist() == expected


# --- known answers


@pytest.mark.parametrize("solver", [Prices(), Nearest()], ids=repr)
@pytest.mark.parametrize(
    ("step", "after"), [(1.0, 73.0), (0.5, 72.5), (0.1, 72.3), (2.0, 74.0), (None, pytest.approx(72.3, abs=1e-5))]
)
def test_the_first_multiple_beyond_the_line(solver: Any, step: float | None, after: float) -> None:
    """The score is x - 72.3, and the start 70: on the grid of all of these."""
    problem = one_feature(70.0, -72.3 + 1e-6, limits={"x0": Limit(step=step)})
    plan = solve(problem, solver)
    assert plan.before[0, 0] + plan.changes[0, 0] == after


@pytest.mark.parametrize("solver", [Prices(), Nearest()], ids=repr)
def test_a_smallest_change_is_made_where_less_would_do(solver: Any) -> None:
    plan = solve(one_feature(0.0, -0.1, limits={"x0": Limit(smallest=0.5)}), solver)
    assert plan.changes.tolist() == [[0.5]]


def test_where_no_step_fits_no_flip_is_found_and_nothing_is_proved() -> None:
    """72.3 is needed, and 72.8 allowed: but from 70.0 by whole steps there is only 72. Bounds know no steps."""
    plan = solve(one_feature(70.0, -72.3, limits={"x0": Limit(None, 72.8, step=1)}))
    assert plan.fates.tolist() == [Fate.NOT_FOUND]
    assert plan.bound == 1.0
    assert solve(one_feature(70.0, -72.3, limits={"x0": (None, 72.8)})).count == 1


def test_a_limit_says_what_pairs_and_directions_say() -> None:
    x = np.random.default_rng(2).normal(size=(20, 2))
    budgets = {"x0": 5.0, "x1": 5.0}
    most = x[:, 0] + 1.0
    pairs = {"x0": (-1.0, most), "x1": "observed"}
    by_pairs = linear_problem([1.0, 0.5], x, budgets, limits=pairs, directions={"x0": "up"})
    limits = {"x0": Limit(-1.0, most, "up"), "x1": Limit(observed=True)}
    by_limits = linear_problem([1.0, 0.5], x, budgets, limits=limits)
    assert Question.of(by_pairs) == Question.of(by_limits)
    assert by_limits.grid.is_free


# --- brute force


def grid_changes(x: Floats, steps: list[float], reach: float) -> Iterator[tuple[float, ...]]:
    return itertools.product(*(np.arange(-int(reach / s), int(reach / s) + 1) * s for s in steps))


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_flips_by_whole_steps_are_nearly_as_cheap_as_the_best_of_all(kind: str) -> None:
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(12, 2)) * 4) / 4 + np.array([0.0, 0.1])
    net = linear_net([1.0, 0.5], -2.0) if kind == "linear" else small_net(2, 3, seed=4, dtype=torch.float64)
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=x,
        target=1,
        margin=0.1,
        budgets={"x0": 1e6, "x1": 1e6},
        limits={"x0": Limit(step=0.25), "x1": Limit(step=0.5, smallest=1)},
    )
    plan = solve(problem, Nearest(prices="unit"))
    ratios = []
    for row, own in zip(plan.selected, (plan.changes**2).sum(axis=1), strict=True):
        points = np.array(list(grid_changes(x[row], [0.25, 0.5], math.sqrt(own) + 0.5)))
        points = points[(points[:, 1] == 0) | (np.abs(points[:, 1]) >= 1)]
        flips = judge.is_flip(problem, np.full(len(points), row), points)
        ratios.append(own / (points**2).sum(axis=1)[flips].min())
    assert len(ratios) >= 5
    assert min(ratios) >= 1 - 1e-9  # nothing is cheaper than the cheapest
    assert np.mean(ratios) < 1.05
    assert max(ratios) < 1.4


# --- laws


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_plans_of_every_solver_go_by_steps(solver: Any) -> None:
    x = np.random.default_rng(1).integers(-3, 3, size=(15, 4)).astype(float)
    limits = {"x0": Limit(step=1), "x1": Limit(-3, 3, step=0.5, smallest=1), "x2": Limit(smallest=0.25)}
    problem = net_problem(15, cohort=x, budgets={f"x{i}": 20.0 for i in range(4)}, limits=limits)
    plan = solve(problem, solver)
    assert plan.count > 0
    assert plan.pool is not None
    for d in (plan.changes, plan.pool.changes):
        assert (d[:, 0] == np.rint(d[:, 0])).all()
        assert ((d[:, 1] == 0) | ((2 * d[:, 1] == np.rint(2 * d[:, 1])) & (np.abs(d[:, 1]) >= 1))).all()
        assert ((d[:, 2] == 0) | (np.abs(d[:, 2]) >= 0.25)).all()


@settings(max_examples=200 if LONG else 5)
@given(seed=st.integers(0, 10**6), budget=st.sampled_from([1.0, 5.0, 40.0]), step=st.sampled_from([0.1, 0.5, 1.0]))
def test_steps_only_take_flips_away(seed: int, budget: float, step: float) -> None:
    rng = np.random.default_rng(seed)
    w, x = rng.normal(size=3), rng.normal(size=(10, 3))
    limits = {"x0": Limit(step=step), "x1": Limit(-2, 2, smallest=step), "x2": Limit(step=step)}
    problem = linear_problem(w, x, [budget] * 3, limits=limits)
    plan, free = solve(problem), solve(linear_problem(w, x, [budget] * 3, limits={"x1": (-2, 2)}))
    assert plan.bound is not None
    assert free.bound is not None
    assert plan.count <= min(plan.bound, free.bound)
    assert problem.bill(plan.selected, plan.changes).fits()
    assert judge.admissible(problem, plan.selected, plan.changes).all()


def test_the_flips_of_an_earlier_plan_are_put_on_the_grid() -> None:
    x = np.random.default_rng(0).normal(size=(40, 2))
    asked_for: dict[str, Any] = {"cohort": x, "target": 1, "margin": 0.1, "budgets": {"x0": 9.0, "x1": 9.0}}
    free = Problem(classifier=TorchClassifier(small_net(2), output="logits"), **asked_for)
    problem = Problem(classifier=free.classifier, **asked_for, limits={"x0": Limit(step=0.25)})
    plan = solve(problem, start=solve(free))
    assert plan.count > 5
    assert plan.pool is not None
    assert not problem.grid.broken(x[plan.pool.rows], plan.pool.changes).any()


def test_rounded_and_steps_of_one_feature_are_one_too_many() -> None:
    with pytest.raises(ProblemError) as caught:
        one_feature(70.0, -72.3, limits={"x0": Limit(step=0.5)}, must_hold=Rounded({"x0": 1.0}))
    assert list(caught.value.problems) == [
        "must_hold.rounded.x0, limits.x0.step: values that go by steps are not rounded. Keep one of the two."
    ]


@pytest.mark.parametrize("start", [-0.5, -1.25])
def test_a_smallest_change_that_is_exceeded_anyway_costs_nothing(start: float) -> None:
    """The exact flip was missed by the last bit of its margin, and 3 % were added."""
    limits = {"x0": Limit(smallest=0.5)}
    problem = linear_problem([2.5], [[start]], [100.0], b=-1.0, limits=limits, must_hold=Uptake(0.8))
    needed = missing_score([2.5], [[start]], -1.0)[0] / 2.5 / 0.8
    assert solve(problem).changes[0, 0] == pytest.approx(needed, rel=1e-6)


def test_rounded_values_may_have_a_smallest_change() -> None:
    """From 70.2 the whole numbers are 71, 72, 73, ...; 72 would pass, and is too near."""
    problem = one_feature(70.2, -71.3, limits={"x0": Limit(smallest=2.0)}, must_hold=Rounded({"x0": 1.0}))
    assert solve(problem).changes.tolist() == [[73.0 - 70.2]]


# --- what was asked


def test_faults_name_the_place_and_the_remedy() -> None:
    wrong: list[tuple[Any, Any, str]] = [
        (Limit(step=0), None, "limits.x0.step = 0: must be a number from 1e-100 to 1e+100."),
        (Limit(step=True), None, "limits.x0.step = True: must be a number"),
        (Limit(smallest="1"), None, "limits.x0.smallest = '1': must be a number"),  # type: ignore[arg-type]
        (Limit(smallest=math.inf), None, "limits.x0.smallest = inf: must be a number"),
        (Limit(direction="left"), None, "limits.x0.direction = 'left': must be 'up' or 'down'."),
        (Limit(direction="up"), {"x0": "down"}, "limits.x0.direction, directions.x0: 'up' here and 'down' there."),
        (Limit(0, observed=True), None, "limits.x0.observed: give `observed` or `low` and `high`, not both."),
        (Limit(2, 1), None, "limits.x0: min 2.0 is above max 1.0. Swap them."),
        (Limit(-0.5, 0.5, step=1), None, "limits.x0.step: no sample has room for a change of 1 within the limits."),
        (Limit(-9, 0.5, "up", smallest=1), None, "limits.x0.smallest: no sample has room for a change of 1"),
        ("all", None, "limits.x0 = 'all': must be a pair (low, high), a Limit(...), or 'observed'."),
    ]
    for limit, directions, words in wrong:
        with pytest.raises(ProblemError) as caught:
            linear_problem([1.0], [[0.0]], {"x0": 1.0}, limits={"x0": limit}, directions=directions)
        assert any(sentence.startswith(words) for sentence in caught.value.problems), caught.value.problems


def test_the_same_direction_may_be_said_twice() -> None:
    problem = linear_problem([1.0], [[0.0]], {"x0": 1.0}, limits={"x0": Limit(direction="up")}, directions={"x0": "up"})
    assert problem.limits.direction.tolist() == [1]


def test_the_question_keeps_steps_as_values_and_in_words() -> None:
    problem = linear_problem([1.0, 1.0], [[-1.0, 0.0]], [9.0, 9.0], limits={"x1": Limit(0, 9, step=0.5, smallest=1)})
    plan = pickle.loads(pickle.dumps(solve(problem.changed(budgets={"x0": 4.0}))))
    assert [(lever.step, lever.smallest) for lever in plan.question.levers] == [(None, None), (0.5, 1.0)]
    assert asked(problem)["May change"] == "'x0' freely; 'x1' from 0 to 9, in steps of 0.5, by at least 1"
    assert plan.question == Question.from_table(plan.question.as_table())
    assert "step" not in plan.question.as_table()["levers"][0]
    assert not plan.answers(linear_problem([1.0, 1.0], [[-1.0, 0.0]], [9.0, 9.0], limits={"x1": Limit(0, 9)}))


def test_whole_columns_are_offered_steps_unless_they_have_them() -> None:
    import pandas as pd

    frame = pd.DataFrame({"late": [1, 2, 3], "calls": [4, 5, 6]})
    people = Cohort.table(frame)
    options: dict[str, Any] = {"cohort": people, "budgets": {"late": 1.0, "calls": 1.0}}

    def notices(**more: Any) -> str:
        return "\n".join(
            Problem(
                classifier=TorchClassifier(linear_net([-1.0, -1.0]), output="logits"),
                target=1,
                margin=0.1,
                **options,
                **more,
            ).notices
        )

    assert "Whole-number columns may change by fractions: late, calls." in notices()
    assert "limits={'late': Limit(step=1)} in Python, step = 1 in [limits.late] of a job." in notices()
    assert "by fractions: calls." in notices(limits={"late": Limit(step=1)})
    assert "by fractions" not in notices(limits={"late": Limit(step=1), "calls": Limit(step=2)})
    assert "by fractions" not in notices(must_hold=Rounded({"late": 1.0, "calls": 1.0}))


def test_a_change_that_is_free_takes_the_place_of_a_large_one() -> None:
    """x0 would have to go to 1 for 0.5; x1 wins the same by 0.11 / 0.46 for 0.0286. The pair is exactly on the line."""
    budget = {"b": Budget(2.0, uses={"x0": 0.5, "x1": 0.5})}
    b = 2 * math.atanh(0.1) - 0.11
    plan = solve(linear_problem([1.73, 0.46], [[0.0, 0.0]], budget, b=b, limits={"x0": Limit(smallest=1.0)}))
    np.testing.assert_allclose(plan.changes, [[0.0, 0.11 / 0.46]], atol=1e-6)
