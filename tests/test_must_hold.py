"""Flips that hold: known answers, brute force, laws, and every kind of model."""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip import (
    Budget,
    Ensemble,
    Fate,
    Nearest,
    Prices,
    Problem,
    ProblemError,
    Rounded,
    Status,
    TorchClassifier,
    Uptake,
    solve,
)
from maxflip.judge import is_flip
from maxflip.problem.describe import in_words
from maxflip.problem.must_hold import rounded
from maxflip.search import FeaturePrices, cheapest_flips, linear
from maxflip.search.surface import Surface
from tests.conftest import LONG
from tests.contract import SOLVERS
from tests.examples import linear_net, linear_problem, missing_score, net_problem, small_net
from tests.test_contract_models import BUDGETS, KINDS, X

Floats = NDArray[np.float64]
WIDE = {f"x{i}": 1e6 for i in range(3)}


def carried_out(x: Floats, d: Floats, must_hold: Any) -> list[Floats]:
    """What the model must be asked about: the formula of docs/formats.md, written once more."""
    seen = [x + d]
    for one in must_hold:
        if isinstance(one, Uptake):
            seen += [x + (one.share + (1 - one.share) * (k / 4)) * d for k in range(4)]
        else:
            step = np.array([one.steps.get(f"x{i}", 0.0) for i in range(x.shape[1])])
            for j, i in np.ndindex(x.shape):
                assert step[i] == 0 or d[j, i] == 0 or abs(math.remainder(x[j, i] + d[j, i], step[i])) < 1e-9
            unit = np.where(step > 0, step, 1.0)
            near = unit * np.round((x + d) / unit) - x
            seen.append(x + np.where((step > 0) & (d != 0), near, d))
    return seen


def assert_holds(problem: Problem, plan: Any, must_hold: Any) -> None:
    """Every flip passes in every scenario, by the models' own scores."""
    x = problem.cohort.values[plan.selected]
    rows = np.arange(len(problem))[plan.selected]
    wanted = problem.goal.wanted_for(rows).numpy()
    for point in carried_out(x, plan.changes, must_hold):
        with problem.classifier.borrowed(), torch.no_grad():
            for member in problem.classifier.members:
                p = member.scores(torch.tensor(point)).cpu().numpy()
                ahead = np.where(wanted, p, -np.inf).max(axis=1) - np.where(wanted, -np.inf, p).max(axis=1)
                got = np.where(wanted, p, 0).sum(axis=1) if problem.goal.is_threshold else ahead
                assert (got >= problem.goal.required).all()


# --- known answers


@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_an_uptake_of_u_scales_the_cheapest_flip_by_1_over_u(share: float) -> None:
    """One linear score, squared costs: d = missing w / |w|^2, and with Uptake(u) the same divided by u."""
    w, x = [2.0, -1.0, 0.5], np.random.default_rng(3).normal(size=(12, 3)) - [2.0, 0.0, 0.0]
    problem = linear_problem(w, x, WIDE, must_hold=[Uptake(share)])
    plan = solve(problem, Nearest(prices="unit"))
    lacks = missing_score(w, x)[plan.selected]
    plain = lacks[:, None] * np.array(w) / np.dot(w, w)
    assert plan.count == (missing_score(w, x) > 0).sum() >= 8
    assert plan.status is Status.OPTIMAL
    np.testing.assert_allclose(plan.changes, plain / share, rtol=1e-6)
    np.testing.assert_allclose((plan.changes**2).sum(axis=1), (plain**2).sum(axis=1) / share**2, rtol=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_a_budget_buys_as_many_as_the_scaled_flips_allow(share: float) -> None:
    """One feature: the cheapest flips, each divided by the share, are bought until the budget is spent; proved."""
    x = np.random.default_rng(4).normal(size=(30, 1)) - 1.0
    lacks = np.sort(missing_score([1.0], x))
    costs = np.cumsum((lacks[lacks > 0] / share) ** 2)
    plan = solve(linear_problem([1.0], x, [20.0], must_hold=Uptake(share)))
    assert plan.status is Status.OPTIMAL
    assert plan.count == np.searchsorted(costs, 20.0)


def test_two_half_spaces_leave_room_for_a_share_or_prove_that_there_is_none() -> None:
    """Passing is 2 <= x <= 3 from a start of 0: with a share u there is a change if and only if 2 / u <= 3."""
    both = Ensemble(
        [
            TorchClassifier(linear_net([1.0], -2.0), output="decision"),
            TorchClassifier(linear_net([-1.0], 3.0), output="decision"),
        ]
    )
    for share, fate in ((0.7, Fate.FLIPPED), (0.66, Fate.UNREACHABLE)):
        asked: dict[str, Any] = {"cohort": [[0.0]], "target": 1, "margin": 0.0, "budgets": {"x0": 100.0}}
        plan = solve(Problem(classifier=both, must_hold=Uptake(share), **asked))
        assert plan.fates.tolist() == [fate]
    plan = solve(Problem(classifier=both, must_hold=Uptake(0.8), **asked))
    assert plan.changes[0, 0] == pytest.approx(2.0 / 0.8, rel=1e-6)


def test_of_three_linear_classes_the_share_is_proved_too() -> None:
    """Decision values x0, x1, 0 and the margin 1: from (0, 0) to (1, 0), and with a share of one half to (2, 0)."""
    net = torch.nn.Linear(2, 3, dtype=torch.float64)
    with torch.no_grad():
        net.weight[:] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        net.bias[:] = 0.0
    asked: dict[str, Any] = {"cohort": [[0.0, 0.0]], "target": 0, "margin": 1.0, "budgets": {"x0": 4.1}}
    classifier = TorchClassifier(net, output="decision")
    plan = solve(Problem(classifier=classifier, must_hold=Uptake(0.5), **asked))
    np.testing.assert_allclose(plan.changes, [[2.0, 0.0]], atol=1e-6)
    less = solve(Problem(classifier=classifier, must_hold=Uptake(0.5), **asked | {"budgets": {"x0": 3.9}}))
    assert (less.count, less.bound) == (0, 0.0)
    never = solve(Problem(classifier=classifier, must_hold=Uptake(0.5), limits={"x0": (None, 1.9)}, **asked))
    assert never.fates.tolist() == [Fate.UNREACHABLE]


def test_a_rounded_value_is_the_known_multiple() -> None:
    """The score is x - 72.3, and the start 70.2: whole numbers pass from 73 on."""
    for step, after in ((1.0, 73.0), (0.5, 72.5), (0.1, 72.3), (2.0, 74.0)):
        problem = linear_problem([1.0], [[70.2]], [1e4], b=-72.3 + 1e-6, margin=0.0, must_hold=Rounded({"x0": step}))
        for solver in (Prices(), Nearest()):
            plan = solve(problem, solver)
            assert plan.before[0, 0] + plan.changes[0, 0] == pytest.approx(after, abs=1e-9)


def test_where_no_multiple_lies_within_the_limits_no_flip_is_found_and_nothing_is_proved() -> None:
    """72.8 passes, but rounded to whole numbers it would have to be 73. The bound knows nothing of rounding."""
    asked: dict[str, Any] = {"margin": 0.0, "limits": {"x0": (None, 72.8)}}
    problem = linear_problem([1.0], [[70.2]], [1e4], b=-72.3, must_hold=Rounded({"x0": 1.0}), **asked)
    plan = solve(problem)
    assert plan.fates.tolist() == [Fate.NOT_FOUND]
    assert plan.bound == 1.0
    assert solve(linear_problem([1.0], [[70.2]], [1e4], b=-72.3, **asked)).count == 1


def test_rounding_to_the_last_bit() -> None:
    """Halves go to the even multiple, what does not change is not rounded, and the carried out change is after - x."""
    x = np.array([[0.0, 1.3, 0.2, -2.0, 5.0]])
    d = np.array([[2.5, 0.0, 0.3, -1.5, 0.26]])
    step = np.array([1.0, 1.0, 0.1, 1.0, 0.0])
    expected = [[2.0, 0.0, 0.1 * 5.0 - 0.2, -2.0, 0.26]]
    assert rounded(x, d, step).tolist() == expected


def test_what_passes_at_the_start_needs_to_hold_nothing() -> None:
    problem = linear_problem([1.0], [[5.0], [0.0]], [1e4], must_hold=[Uptake(0.5), Rounded({"x0": 100.0})])
    plan = solve(problem)
    assert plan.fates.tolist() == [Fate.ALREADY, Fate.FLIPPED]


# --- brute force


@pytest.mark.parametrize("kind", ["linear", "network"])
@pytest.mark.parametrize("step", [0.1, 0.5])
def test_on_a_grid_flips_are_nearly_as_cheap_as_the_best_of_all_grid_points(kind: str, step: float) -> None:
    x = np.random.default_rng(0).normal(size=(12, 2))
    net = linear_net([1.0, 0.5], -2.0) if kind == "linear" else small_net(2, 3, seed=4, dtype=torch.float64)
    asked: dict[str, Any] = {"classifier": TorchClassifier(net, output="logits"), "cohort": x, "target": 1}
    asked |= {"margin": 0.1, "budgets": {"x0": 1e6, "x1": 1e6}}
    problem = Problem(**asked, must_hold=Rounded({"x0": step, "x1": step}))
    plan = solve(problem, Nearest(prices="unit"))
    ratios = []
    for row, own in zip(plan.selected, (plan.changes**2).sum(axis=1), strict=True):
        reach = math.sqrt(own) + step
        axes = [
            [0.0, *(np.arange(math.ceil((v - reach) / step), math.floor((v + reach) / step) + 1) * step - v)]
            for v in x[row]
        ]
        points = np.array(list(itertools.product(*axes)))
        cost = (points**2).sum(axis=1)
        flips = is_flip(problem, np.full(len(points), row), points)
        ratios.append(own / cost[flips].min())
    assert len(ratios) >= 5
    assert min(ratios) >= 1 - 1e-9  # nothing is cheaper than the cheapest
    assert np.mean(ratios) < 1.05
    assert max(ratios) < 1.4


# --- laws


REQUIREMENTS = st.sampled_from(
    [
        [Uptake(0.8)],
        [Uptake(0.35)],
        [Rounded({"x0": 0.5})],
        [Rounded({"x0": 0.1, "x1": 0.25, "x2": 1.0})],
        [Uptake(0.7), Rounded({"x1": 0.2, "x2": 0.2})],
    ]
)


@settings(max_examples=200 if LONG else 5)
@given(seed=st.integers(0, 10**6), must_hold=REQUIREMENTS, budget=st.sampled_from([0.3, 2.0, 30.0]))
def test_of_a_linear_score_a_plan_that_holds_holds_and_wins_no_more(seed: int, must_hold: Any, budget: float) -> None:
    rng = np.random.default_rng(seed)
    w, x = rng.normal(size=3), rng.normal(size=(10, 3))
    limits = {"x0": (-2.0, 2.0)} if seed % 2 else None
    plain = linear_problem(w, x, [budget] * 3, limits=limits)
    asked = linear_problem(w, x, [budget] * 3, limits=limits, must_hold=must_hold)
    plan, free = solve(asked), solve(plain)
    points = carried_out(x[plan.selected], plan.changes, must_hold)
    assert all((point @ w >= 2 * math.atanh(0.1)).all() for point in points)
    assert asked.bill(plan.selected, plan.changes).fits()
    assert free.bound is not None
    assert plan.bound is not None
    assert plan.count <= min(free.bound, plan.bound)
    if free.status is Status.OPTIMAL:
        assert plan.count <= free.count
    if not any(isinstance(one, Rounded) for one in must_hold):
        assert plan.bound <= free.bound
    assert set(np.flatnonzero(free.fates == Fate.UNREACHABLE)) <= set(np.flatnonzero(plan.fates != Fate.FLIPPED))


@settings(max_examples=50 if LONG else 4)
@given(seed=st.integers(0, 10**6), must_hold=REQUIREMENTS)
def test_every_flip_of_a_network_holds_by_plain_torch(seed: int, must_hold: Any) -> None:
    problem = net_problem(10, features=3, classes=2 + seed % 2, seed=seed % 7, must_hold=must_hold)
    plan = solve(problem)
    net = small_net(3, 2 + seed % 2, seed % 7)
    for point in carried_out(problem.cohort.values[plan.selected], plan.changes, must_hold):
        with torch.no_grad():
            p = torch.softmax(net(torch.tensor(point, dtype=torch.float32)).double(), dim=1)
        others = torch.cat([p[:, :1], p[:, 2:]], dim=1)
        assert bool((p[:, 1] - others.amax(dim=1) >= 0.1).all()) if len(p) else True


# --- every kind of model and every solver


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_holds(kind: str) -> None:
    must_hold: Any = [Uptake(0.8), Rounded({"x0": 0.1, "x1": 0.5})]
    asked: dict[str, Any] = {"cohort": X[:12], "target": 1, "margin": 0.1, "budgets": BUDGETS}
    problem = Problem(classifier=KINDS[kind](), must_hold=must_hold, **asked)
    for solver in (Prices(), Nearest()) if "network" not in kind else (Nearest(),):
        plan = solve(problem, solver)
        assert plan.count > 0
        assert plan.must_hold == problem.scenarios.requirements
        assert_holds(problem, plan, must_hold)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_every_solver_holds(solver: Any) -> None:
    must_hold: Any = [Uptake(0.9), Rounded({"x0": 0.1})]
    problem = net_problem(15, must_hold=must_hold, limits={"x1": (-1.0, 1.0)})
    assert_holds(problem, solve(problem, solver), must_hold)


@pytest.mark.parametrize(
    "goal", [{"target": {0, 2}, "margin": 0.05}, {"target": {0, 2}, "margin": None, "threshold": 0.6}]
)
@pytest.mark.parametrize("linear", [True, False])
def test_several_wanted_classes_and_thresholds_hold(goal: Any, linear: bool) -> None:
    must_hold: Any = [Uptake(0.6), Rounded({"x0": 0.2, "x2": 0.2})]
    net = small_net(3, 4, seed=1, dtype=torch.float64)
    if linear:
        net = torch.nn.Linear(3, 4, dtype=torch.float64)
        with torch.no_grad():
            net.weight[:] = torch.randn(4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x = np.random.default_rng(5).normal(size=(12, 3))
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=x,
        budgets=dict.fromkeys(("x0", "x1", "x2"), 9.0),
        must_hold=must_hold,
        **goal,
    )
    plan = solve(problem)
    assert plan.count > 0
    assert_holds(problem, plan, must_hold)


def test_targets_of_each_sample_hold() -> None:
    must_hold: Any = [Uptake(0.8), Rounded({"x0": 0.1})]
    problem = net_problem(12, features=3, classes=3, target=[j % 3 for j in range(12)], must_hold=must_hold)
    plan = solve(problem)
    assert plan.count > 0
    assert_holds(problem, plan, must_hold)


# --- what was asked


def test_faults_name_the_place_and_the_remedy() -> None:
    wrong = [
        (Uptake(0.0), "must_hold.uptake = 0.0: must be a number above 0 and at most 1."),
        (Uptake(1.5), "must_hold.uptake = 1.5: must be"),
        (Uptake(True), "must_hold.uptake = True: must be"),
        (Rounded({}), "must_hold.rounded = {}: must be {feature: step}"),
        (Rounded({"x9": 1.0}), "must_hold.rounded.x9: no feature is called 'x9'."),
        (Rounded({"x1": 1.0}), "must_hold.rounded.x1: the feature draws on no budget"),
        (Rounded({"x0": 0.0}), "must_hold.rounded.x0 = 0.0: must be a number from"),
        (Rounded({"x0": math.nan}), "must_hold.rounded.x0 = nan: must be"),
        (0.8, "must_hold: got 0.8; wanted a list of Uptake(0.8) and Rounded"),
        ([Uptake(0.8), Uptake(0.7)], "must_hold: there are two of Uptake. Keep one of them."),
    ]
    for given_, words in wrong:
        with pytest.raises(ProblemError) as caught:
            linear_problem([1.0, 1.0], [[0.0, 0.0]], {"x0": 1.0}, must_hold=given_)
        assert any(sentence.startswith(words) for sentence in caught.value.problems), caught.value.problems


@pytest.mark.parametrize("budgets", [{"x0": 3.0, "x1": 3.0}, {"both": Budget(4.0, {"x0": 1, "x1": 1}, "absolute")}])
@pytest.mark.parametrize("is_linear", [True, False])
def test_flips_of_an_earlier_plan_and_of_every_search_are_rounded(budgets: Any, is_linear: bool) -> None:
    """Budgets count what is done, wherever a flip comes from: also the flips that a plan keeps beside the picked."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    net = linear_net([1.0, 2.0]) if is_linear else small_net(2)
    asked: dict[str, Any] = {"cohort": x, "target": 1, "margin": 0.1, "budgets": budgets}
    free = Problem(classifier=TorchClassifier(net, output="logits"), **asked)
    steps = {"x0": 0.1, "x1": 0.25}
    problem = Problem(classifier=free.classifier, **asked, must_hold=Rounded(steps))
    for plan in (solve(problem), solve(problem, start=solve(free))):
        assert plan.count > 5
        assert plan.pool is not None
        after = x[plan.pool.rows] + plan.pool.changes
        for k, step in enumerate(steps.values()):
            moved = plan.pool.changes[:, k] != 0
            np.testing.assert_allclose(after[moved, k] / step, np.rint(after[moved, k] / step), atol=1e-9)


def test_the_question_and_a_changed_problem_keep_it() -> None:
    problem = linear_problem([1.0], [[0.0]], [4.0], must_hold=[Uptake(0.8), Rounded({"x0": 0.5})])
    plan = solve(problem.changed(budgets={"x0": 9.0}))
    assert plan.question is not None
    assert in_words(plan.question, plan.must_hold)["Must hold"] == (
        "if only 80 % of each change is carried out; if values are rounded: 'x0' to multiples of 0.5"
    )
    assert pickle.loads(pickle.dumps(plan)).must_hold == plan.must_hold


# --- proofs


@settings(max_examples=300 if LONG else 8)
@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 4),
    members=st.integers(1, 2),
    share=st.sampled_from([0.4, 0.8, 0.95]),
    several=st.booleans(),
)
def test_no_flip_that_holds_is_cheaper_than_what_is_proved(
    seed: int, classes: int, members: int, share: float, several: bool
) -> None:
    """Ten thousand random changes of each of six samples, within the limits, judged by the judge."""
    rng = np.random.default_rng(seed)
    nets = []
    for _ in range(members):
        net = torch.nn.Linear(2, classes, dtype=torch.float64)
        with torch.no_grad():
            net.weight[:], net.bias[:] = (
                torch.tensor(rng.normal(size=(classes, 2))),
                torch.tensor(rng.normal(size=classes)),
            )
        nets.append(TorchClassifier(net, output="logits"))
    asked: dict[str, Any] = {"target": {0, 1} if several and classes > 2 else 1, "margin": 0.1}
    problem = Problem(
        classifier=Ensemble(nets),
        cohort=rng.normal(size=(6, 2)),
        budgets={"x0": 1e3, "x1": 1e3},
        limits={"x0": (-4.0, 4.0), "x1": (-4.0, 4.0)},
        must_hold=[Uptake(share), Rounded({"x0": 0.25})],
        **asked,
    )
    assert problem.linear is not None
    squared = np.array([1.0, 0.3])
    surface = Surface(problem, np.arange(6), FeaturePrices(squared, np.zeros(2)))
    with problem.classifier.borrowed():
        lower = linear.lower_bounds(surface, problem.linear, torch.arange(6)).numpy()
        for row, bound in enumerate(lower):
            start = problem.cohort.values[row]
            points = rng.uniform(-4, 4, size=(10_000, 2)) * rng.uniform(0, 1, size=(10_000, 1)) ** 2
            changes = np.clip(points, -4 - start, 4 - start)
            without = Problem.changed(problem, margin=0.1)
            object.__setattr__(without, "scenarios", replace(problem.scenarios, step=None))
            cost = (squared * changes**2).sum(axis=1)
            flips = is_flip(without, np.full(len(changes), row), changes)
            assert not flips.any() or cost[flips].min() >= bound * (1 - 1e-9)
        flips_found = cheapest_flips(problem, np.arange(6), FeaturePrices(squared, np.zeros(2)))
    own = (squared * flips_found.changes**2).sum(axis=1)
    assert (own[flips_found.found] >= lower[flips_found.found] * (1 - 1e-9)).all()
    assert np.isfinite(lower[flips_found.found]).all()
