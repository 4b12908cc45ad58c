"""What holds for every plan, whichever solver proposed it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

import maxflip
from maxflip import (
    BCMS,
    CCMS,
    KL,
    MS,
    Budget,
    Cohort,
    Fate,
    Nearest,
    Plan,
    Problem,
    ProblemError,
    Status,
    TorchClassifier,
    judge,
    solve,
)
from maxflip._util.engine import Local
from maxflip._util.events import Advanced, Event, Finished, Notice, Started, silent
from maxflip.solvers import SOLVERS as BY_NAME
from maxflip.solvers import Proposal, Run, Solver
from tests.conftest import LONG
from tests.contract import DEFAULTS, SOLVERS, by_turns
from tests.examples import linear_net, linear_problem, net_problem, small_net

every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)
every_setting = pytest.mark.parametrize("solver", [*SOLVERS, *DEFAULTS], ids=repr)
some_settings = pytest.mark.parametrize("solver", [*SOLVERS, *(DEFAULTS if LONG else DEFAULTS[::3])], ids=repr)


def same(a: Plan, b: Plan) -> bool:
    return bool(np.array_equal(a.selected, b.selected) and np.array_equal(a.changes, b.changes))


def assert_lawful(problem: Problem, plan: Plan) -> None:
    """Everything a plan promises, recomputed here."""
    x = problem.cohort.values[plan.selected]
    assert problem.bill(plan.selected, plan.changes).fits()
    assert not problem.limits.broken(x, plan.changes, plan.selected).any()
    assert (plan.changes[:, ~problem.ledger.actionable] == 0).all()
    assert np.array_equal(plan.selected, np.flatnonzero(plan.fates == Fate.FLIPPED))
    for row, d in zip(plan.selected, plan.changes, strict=True):
        end = problem.after(np.array([row]), d[None]).values[0]
        after = [_confidence(problem, p, row) for p in _scores(problem, end)]
        before = [_confidence(problem, p, row) for p in _scores(problem, problem.cohort.values[row])]
        assert min(after) >= problem.goal.required
        assert min(before) < problem.goal.required + problem.guard
    assert sum(plan.fate_counts().values()) == len(problem)
    assert plan.worth == math.fsum(problem.worth[plan.selected])
    assert plan.bound is None or plan.worth <= plan.bound + 1e-9
    assert not set(plan.selected) & set(problem.exclude)
    assert plan.prices is None or all(price >= 0 for price in plan.prices.values())


def _scores(problem: Problem, x: Any) -> Any:
    """Of each model, alone."""
    with problem.classifier.borrowed(), torch.no_grad():
        return [member.scores(torch.tensor(x)[None])[0].numpy() for member in problem.classifier.members]


def _confidence(problem: Problem, p: Any, row: int) -> float:
    wanted = problem.goal.wanted[0 if len(problem.goal.wanted) == 1 else row]
    return float(p[wanted].sum() if problem.goal.is_threshold else p[wanted].max() - p[~wanted].max())


def problems() -> list[tuple[str, Problem]]:
    rng = np.random.default_rng(7)
    people = rng.normal(size=(40, 4))
    x = people[:25]
    net5 = TorchClassifier(small_net(4, 5), output="logits")
    hours = {"hours": Budget(6.0, {"x0": 1.0, "x1": 0.5}, "absolute"), "x2": 3.0, "x0": 4.0}
    return [
        ("network", net_problem(30)),
        ("network, float64, limits", net_problem(24, limits="observed", directions={"x1": "down"})),
        (
            "five classes",
            Problem(classifier=net5, cohort=x, target=2, margin=0.1, budgets={f"x{i}": 5.0 for i in range(4)}),
        ),
        (
            "set of classes",
            Problem(classifier=net5, cohort=people, target={1, 3}, margin=0.05, budgets={"x0": 5.0, "x1": 9.0}),
        ),
        ("per sample", Problem(classifier=net5, cohort=x, target=list(range(5)) * 5, margin=0.1, budgets={"x3": 50.0})),
        (
            "threshold",
            Problem(classifier=net5, cohort=x, target={0, 4}, threshold=0.5, budgets={"x0": 9.0, "x1": 9.0, "x2": 9.0}),
        ),
        ("mixed budgets", net_problem(24, budgets=hours)),
        ("count", net_problem(24, budgets={"x0": 50.0, "people": Budget(7, cost="count")})),
        ("worth", net_problem(24, worth=rng.uniform(0, 3, 24))),
        ("linear", linear_problem(rng.normal(size=4), x, [2.0, 0.5, 1.0, 3.0])),
        ("linear, mixed", linear_problem([1.0, -1.0, 0.5, 0.0], x, hours, limits="observed")),
        ("infinite", net_problem(24, budgets={"x0": math.inf, "x1": 1.0})),
        ("include, exclude", linear_problem([1.0, 1.0], x[:, :2] - 1, [9.0, 9.0], include=["5"], exclude=["1", "2"])),
        ("one row, one feature", linear_problem([1.0], [[-1.0]], [9.0])),
        (
            "probabilities",
            net_problem(
                20, classifier=TorchClassifier(nn.Sequential(small_net(4), nn.Softmax(1)), output="probabilities")
            ),
        ),
        (
            "derived",
            net_problem(
                20,
                cohort=np.column_stack([people[:20, :3], people[:20, 0] - people[:20, 1]]),
                budgets={"x0": 3.0, "x1": 2.0},
                derived={"x3": "x0 - x1"},
            ),
        ),
        ("float64", net_problem(20, classifier=TorchClassifier(small_net(4, dtype=torch.float64), output="logits"))),
    ]


# Of these, plans are made twice, and those of DEFAULTS once.
TWICE = {"network", "mixed budgets", "linear, mixed"}


def cases() -> list[Any]:
    every = dict(problems())
    turns = by_turns(SOLVERS, every, 6, always=["network", "linear, mixed"])
    asked = [(solver, name, every[name]) for solver, name in turns]
    asked += [(solver, *case) for case in every.items() if LONG or case[0] in TWICE for solver in DEFAULTS]
    return [pytest.param(*case, id=f"{case[1]}--{case[0]!r}") for case in asked]


@pytest.mark.parametrize(("solver", "name", "problem"), cases())
def test_plans_are_lawful_and_repeatable(solver: Solver, name: str, problem: Problem) -> None:
    plan = solve(problem, solver, seed=3)
    assert_lawful(problem, plan)
    if LONG or (name in TWICE and solver in SOLVERS):
        assert same(plan, solve(problem, solver, seed=3))
    assert plan.count > 0 or solver in DEFAULTS
    for row in problem.include:
        assert plan.fates[row] in (Fate.FLIPPED, Fate.ALREADY)
    for row in problem.exclude:
        assert plan.fates[row] in (Fate.LEFT_OUT, Fate.ALREADY, Fate.UNREACHABLE)


@pytest.mark.parametrize("solver", [MS(), BCMS(), CCMS(), KL()], ids=repr)
def test_what_is_set_when_nothing_is_finds_somebody(solver: Solver) -> None:
    """All of their iterations, once."""
    budgets = {"hours": Budget(2.0, {"x0": 1.0, "x1": 0.5}, "absolute"), "x2": 1.0, "people": Budget(5, cost="count")}
    problem = net_problem(12, budgets=budgets, limits="observed", directions={"x2": "up"}, exclude=["0"])
    plan = solve(problem, solver)
    assert_lawful(problem, plan)
    assert plan.count > 0


@every_setting
def test_zero_budgets_flip_nobody_and_that_is_optimal(solver: Solver) -> None:
    plan = solve(net_problem(30, budgets={"x0": 0.0, "x1": 0.0}), solver)
    assert (plan.count, plan.bound, plan.status) == (0, 0.0, Status.OPTIMAL)
    assert all(spent == 0.0 for spent in plan.spend.values())
    one_zero = solve(net_problem(30, budgets={"x0": 0.0, "x1": 3.0}), solver)
    assert (one_zero.changes[:, 0] == 0.0).all()
    assert same(one_zero, solve(net_problem(30, budgets={"x1": 3.0}), solver))


@every_solver
def test_infinite_budgets_flip_everyone_who_can_be(solver: Solver) -> None:
    problem = linear_problem([1.0, 2.0], np.random.default_rng(0).normal(size=(50, 2)), [math.inf, math.inf])
    plan = solve(problem, solver)
    assert plan.fate_counts()[Fate.LEFT_OUT] == plan.fate_counts()[Fate.NOT_FOUND] == 0
    assert (plan.status, plan.bound) == (Status.OPTIMAL, plan.worth)


@every_setting
def test_those_already_there_are_never_counted(solver: Solver) -> None:
    plan = solve(linear_problem([1.0], [[5.0], [6.0]], [9.0]), solver)
    assert (plan.count, plan.bound, plan.status) == (0, 0.0, Status.OPTIMAL)
    assert plan.fate_counts()[Fate.ALREADY] == 2


@every_solver
def test_below_the_margin_counts_as_flippable_and_is_reported(solver: Solver) -> None:
    plan = solve(linear_problem([1.0], [[0.1], [-1.0]], [9.0]), solver)  # score 0.1: class 1, margin 0.05
    assert (plan.count, plan.below_margin) == (2, 1)


@every_setting
def test_nothing_of_the_users_is_touched(solver: Solver) -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2)).train()
    state, x = copy.deepcopy(net.state_dict()), np.random.default_rng(0).normal(size=(30, 3))
    kept, random_state = x.copy(), torch.get_rng_state()
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"), cohort=x, target=1, margin=0.1, budgets={"x0": 5.0, "x1": 5.0}
    )
    solve(problem, solver)
    assert np.array_equal(x, kept)
    assert all(torch.equal(a, b) for a, b in zip(state.values(), net.state_dict().values(), strict=True))
    assert all(m.training for m in net.modules())
    assert all(p.requires_grad and p.grad is None for p in net.parameters())
    assert torch.equal(torch.get_rng_state(), random_state)


@every_setting
def test_the_order_of_rows_does_not_matter(solver: Solver) -> None:
    rng = np.random.default_rng(1)
    x, ids = rng.normal(size=(30, 4)), [f"P{j}" for j in range(30)]
    shuffle = rng.permutation(30)
    plans = []
    for order in (np.arange(30), shuffle):
        cohort = Cohort.table(x[order], ids=[ids[j] for j in order])
        plan = solve(net_problem(cohort=cohort), solver)
        plans.append({i: tuple(d) for i, d in zip(plan.ids, plan.changes, strict=True)})
    assert plans[0] == plans[1]


@every_solver
def test_equal_samples_are_picked_in_the_order_of_their_ids(solver: Solver) -> None:
    cohort = Cohort.table(np.full((6, 1), -1.0), ids=["f", "b", "e", "a", "d", "c"])
    need = (1 + 2 * math.atanh(0.1)) ** 2
    problem = Problem(
        classifier=TorchClassifier(linear_net([1.0]), output="logits"),
        cohort=cohort,
        target=1,
        margin=0.1,
        budgets={"x0": 2.5 * need},
    )
    assert sorted(solve(problem, solver).ids) == ["a", "b"]


@some_settings
def test_threads_do_not_matter(solver: Solver) -> None:
    samples = 60 if solver in DEFAULTS else 300
    problem, threads = net_problem(samples, features=8, limits="observed"), torch.get_num_threads()
    plans = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            plans.append(solve(problem, solver))
    finally:
        torch.set_num_threads(threads)
    assert same(*plans)


@every_setting
def test_more_may_be_asked_than_can_be_had(solver: Solver) -> None:
    x = np.full((3, 1), -1.0)
    with pytest.raises(ProblemError, match="budgets do not suffice"):
        solve(linear_problem([1.0], x, [1.5], include=["0", "1", "2"]), solver)
    with pytest.raises(ProblemError, match="no flip is known for 3 of these ids"):
        solve(linear_problem([1.0], x, [9.0], limits={"x0": (-2, 0)}, include=["0", "1", "2"]), solver)


@every_setting
def test_one_is_one_sample(solver: Solver) -> None:
    with pytest.raises(ProblemError, match="do not suffice for 1 sample that must be picked"):
        solve(linear_problem([1.0], [[-1.0], [-9.0]], [1.5], include=["1"]), solver)


@every_setting
def test_the_included_who_are_there_already_are_named(solver: Solver) -> None:
    events: list[Event] = []
    problem = linear_problem([1.0], [[-1.0], [5.0], [6.0]], [9.0], include=["0", "2"])
    plan = solve(problem, solver, watch=events.append)
    assert plan.selected.tolist() == [0]
    notices = [e.text for e in events if isinstance(e, Notice)]
    assert notices == ["include: already in the wanted class, so there is nothing to change: '2'."]


@every_setting
def test_watch_hears_notices_and_progress(solver: Solver) -> None:
    events: list[Event] = []
    solve(net_problem(20, limits={"x0": (0, 1)}), solver, watch=events.append)
    assert any(isinstance(e, Notice) and "widen" in e.text for e in events)
    for started in [e for e in events if isinstance(e, Started)]:
        done = sum(e.steps for e in events if isinstance(e, Advanced) and e.stage == started.stage)
        assert done == started.total
        assert Finished(started.stage) in events


@every_setting
def test_repr_reproduces_the_solver(solver: Solver) -> None:
    assert eval(repr(solver), vars(maxflip)) == solver
    with pytest.raises(TypeError):
        type(solver)(no_such_option=1)  # type: ignore[call-arg]


Changes = dict[str, tuple[float, ...]]


def by_id(plan: Plan) -> Changes:
    return {i: tuple(d) for i, d in zip(plan.ids, plan.changes.tolist(), strict=True)}


def law_options(seed: int) -> tuple[dict[str, Any], list[str]]:
    """Arguments of a random problem whose ids sort as their numbers do; linear or a network, with limits or without."""
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(2, 13)), int(rng.integers(1, 4))
    x = rng.normal(size=(n, width))
    if seed % 3 == 0:
        x = np.round(x)  # people who are alike
    net = linear_net(rng.normal(size=width)) if seed % 2 else small_net(width, seed=seed, dtype=torch.float64)
    options: dict[str, Any] = {
        "classifier": TorchClassifier(net, output="logits"),
        "values": x,
        "target": 1,
        "margin": 0.1,
        "budgets": {f"x{i}": float(rng.uniform(0.5, 8)) for i in range(width)},
    }
    if seed % 5 == 0:
        options["limits"] = {f"x{i}": (-1.0, 1.5) for i in range(width)}
    return options, [f"P{j:03}" for j in range(n)]


def assert_same_plan(found: Changes, wanted: Changes, options: dict[str, Any]) -> None:
    """To rounding for linear models: a sum over people has another last bit with one more 0 among them. In a network a
    search along gradients then ends elsewhere on the same level, and of people who are alike others may be picked.
    """
    if isinstance(options["classifier"].module, nn.Linear):
        assert found.keys() == wanted.keys()
        for who, change in found.items():
            np.testing.assert_allclose(change, wanted[who], rtol=1e-9, atol=1e-12)
    else:
        assert abs(len(found) - len(wanted)) <= 1


def law_plan(solver: Solver, options: dict[str, Any], ids: list[str], order: Any = None) -> Changes:
    at = np.arange(len(ids)) if order is None else np.asarray(order)
    given = {k: v for k, v in options.items() if k != "values"}
    cohort = Cohort.table(options["values"][at], ids=[ids[j] for j in at])
    return by_id(solve(Problem(cohort=cohort, **given), solver))


seeds = st.integers(0, 10**6)
law = settings(max_examples=500 if LONG else 3)


@some_settings
@law
@given(seed=seeds)
def test_law_rows_may_be_permuted_and_ids_renamed(solver: Solver, seed: int) -> None:
    options, ids = law_options(seed)
    plan = law_plan(solver, options, ids)
    assert law_plan(solver, options, ids, np.random.default_rng(seed).permutation(len(ids))) == plan
    renamed = law_plan(solver, options, [f"Q{i}x" for i in ids])
    assert {f"Q{i}x": d for i, d in plan.items()} == renamed


@some_settings
@law
@given(seed=seeds)
def test_law_whoever_cannot_be_won_changes_nothing(solver: Solver, seed: int) -> None:
    """One who is there already, and one whom the limits do not let go anywhere, at any place in the order of ids."""
    options, ids = law_options(seed)
    rng, n = np.random.default_rng(seed), len(ids)
    before = law_plan(solver, options, ids)
    problem = Problem(cohort=options["values"], **{k: v for k, v in options.items() if k != "values"})
    confidence = judge.standing(problem, Local(), silent).confidence
    best, worst = int(confidence.argmax()), int(confidence.argmin())
    more, more_ids = dict(options), list(ids)
    width = options["values"].shape[1]
    if confidence[best] >= 0.1:
        more["values"] = np.vstack([more["values"], options["values"][best]])
        more_ids.append(f"P{int(rng.integers(0, n)):03}a")
    if confidence[worst] < 0.1:
        more["values"] = np.vstack([more["values"], options["values"][worst]])
        more_ids.append(f"P{int(rng.integers(0, n)):03}b")
        x = more["values"]
        sides = options.get("limits", {})
        lows = {f"x{i}": np.full(len(x), sides.get(f"x{i}", (-np.inf, np.inf))[0]) for i in range(width)}
        highs = {f"x{i}": np.full(len(x), sides.get(f"x{i}", (-np.inf, np.inf))[1]) for i in range(width)}
        for i in range(width):
            lows[f"x{i}"][-1] = highs[f"x{i}"][-1] = x[-1, i]
        more["limits"] = {name: (lows[name], highs[name]) for name in lows}
    assert_same_plan(law_plan(solver, more, more_ids), before, options)


class Divided(nn.Module):
    """The same model for someone who counts in units of 1 / factor."""

    def __init__(self, net: nn.Module, factors: Any) -> None:
        super().__init__()
        self.net = net
        self.by = torch.tensor(1.0 / factors)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x * self.by)  # type: ignore[no-any-return]


@every_solver
@law
@given(seed=seeds)
def test_law_units_do_not_matter(solver: Solver, seed: int) -> None:
    """A feature and its limits times 2^k, its squared budget times 4^k: the same plan, bit for bit, times 2^k.

    With one price per unit of budget, that holds where all features are scaled alike. A column of zeros has no size, so
    that nothing tells its units.
    """
    options, ids = law_options(seed)
    assume(options["values"].any(axis=0).all())
    width = options["values"].shape[1]
    rng = np.random.default_rng(seed)
    alike = isinstance(solver, Nearest) and solver.prices != "budgets"
    factors = 2.0 ** (np.full(width, rng.integers(-9, 10)) if alike else rng.integers(-9, 10, size=width))
    scaled = options | {
        "classifier": TorchClassifier(Divided(options["classifier"].module, factors), output="logits"),
        "values": options["values"] * factors,
        "budgets": {f"x{i}": options["budgets"][f"x{i}"] * factors[i] ** 2 for i in range(width)},
    }
    if "limits" in options:
        scaled["limits"] = {
            f"x{i}": tuple(side * factors[i] for side in options["limits"][f"x{i}"]) for i in range(width)
        }
    plan = law_plan(solver, options, ids)
    assert law_plan(solver, scaled, ids) == {i: tuple(np.array(d) * factors) for i, d in plan.items()}


@some_settings
@law
@given(seed=seeds)
def test_law_a_feature_that_cannot_help_changes_nothing(solver: Solver, seed: int) -> None:
    """A column with weight 0, frozen by a budget of 0 or for want of one."""
    options, ids = law_options(seed)
    plan = law_plan(solver, options, ids)
    n, width = options["values"].shape
    net = copy.deepcopy(options["classifier"].module)
    first = next(part for part in net.modules() if isinstance(part, nn.Linear))
    first.weight = nn.Parameter(torch.column_stack([first.weight, torch.zeros(len(first.weight))]))
    wider = options | {
        "classifier": TorchClassifier(net, output="logits"),
        "values": np.column_stack([options["values"], np.random.default_rng(seed).normal(size=n)]),
    }
    for budgets in (options["budgets"], options["budgets"] | {f"x{width}": 0.0}):
        found = law_plan(solver, wider | {"budgets": budgets}, ids)
        assert_same_plan(found, {i: (*d, 0.0) for i, d in plan.items()}, options)


def test_every_solver_is_in_the_contract() -> None:
    assert {type(s) for s in SOLVERS} == set(BY_NAME.values())


def test_odd_numbers() -> None:
    """-0.0, subnormals, a constant column, and values of 1e300 in a float64 model."""
    net = TorchClassifier(linear_net([1.0, 0.0, 0.0]), output="logits")
    x = np.array([[-0.0, 5.0, 1e300], [5e-324, 5.0, -1e300], [-1.0, 5.0, 0.0]])
    plan = solve(Problem(classifier=net, cohort=x, target=1, margin=0.1, budgets={"x0": 9.0}), Nearest())
    assert plan.count == 3


def test_a_float32_flip_by_rounding_is_not_claimed() -> None:
    """Two classes within 1e-7 of the line: the guard decides, and what is claimed holds alone."""
    x = np.linspace(-3e-7, 3e-7, 41)[:, None] + math.atanh(0.1)
    problem = Problem(
        classifier=TorchClassifier(linear_net([2.0], dtype=torch.float32), output="logits"),
        cohort=x,
        target=1,
        margin=0.1,
        budgets={"x0": 1.0},
    )
    plan = solve(problem)
    assert plan.guard >= 1e-6
    assert_lawful(problem, plan)
    assert plan.count + plan.fate_counts()[Fate.ALREADY] == 41
    assert (plan.confidence_after >= 0.1 + plan.guard).all()


class Rambling(Nearest):
    """A solver whose estimate and prices are no numbers."""

    def propose(self, problem: Problem, run: Run) -> Proposal:
        return replace(super().propose(problem, run), estimate=math.nan, prices={"x0": 1.0, "x1": math.inf})


def test_an_estimate_or_a_price_that_is_no_number_is_none(tmp_path: Path) -> None:
    plan = solve(net_problem(40, 2), Rambling())
    assert (plan.estimate, plan.prices, plan.status) == (None, None, Status.FEASIBLE)
    plan.save(tmp_path / "plan")
    assert Plan.load(tmp_path / "plan").estimate is None


def test_wrong_seeds_and_options_are_refused() -> None:
    for seed in ("1", 1.5, True):
        with pytest.raises(maxflip.InputError, match="seed"):
            solve(net_problem(5), seed=seed)  # type: ignore[arg-type]
    with pytest.raises(maxflip.InputError, match="Did you mean 'x0'"):
        solve(net_problem(5), Nearest(prices={"x00": 1.0}))
    for bad in ({"prices": "cheap"}, {"chunk": 0}, {"chunk": True}, {"chunk": 8.0}):
        with pytest.raises(maxflip.InputError, match="must be"):
            Nearest(**bad)


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_net(4, 3)
        self.batches: list[int] = []

    def forward(self, x: torch.Tensor) -> Any:
        self.batches.append(len(x))
        return self.net(x)


@every_setting
def test_a_model_is_never_asked_about_nobody(solver: Solver) -> None:
    """An exported model may have been told that there is always somebody. Here nobody can be flipped."""
    net = Counted()
    x = np.random.default_rng(0).normal(size=(20, 4))
    near = {f"x{i}": (x[:, i] - 1e-9, x[:, i] + 1e-9) for i in range(4)}
    problem = net_problem(classifier=TorchClassifier(net, output="logits"), cohort=x, limits=near)
    plan = solve(problem, solver)
    assert plan.count == 0
    assert plan.fate_counts()[Fate.NOT_FOUND] > 0
    assert 0 not in net.batches
