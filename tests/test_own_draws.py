"""Budgets that differ between people: fees, weights of each one's own, parts of the cohort, and both ways priced
differently. Brute force over small questions, and laws."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from maxflip import (
    CCMS,
    KL,
    MS,
    Budget,
    Cohort,
    Fate,
    Grouped,
    Nearest,
    Plan,
    Prices,
    Problem,
    ProblemError,
    Ways,
    frontier,
    resolve,
    solve,
)
from maxflip._util.types import Rows
from maxflip.solvers import Solver
from tests.conftest import LONG
from tests.examples import linear_problem, missing_score, net_problem
from tests.own_draws import Case, random_case

Floats = NDArray[np.float64]
X = np.random.default_rng(7).normal(size=(40, 3)) - [0.5, -0.3, 0.2]
W = [1.0, -0.8, 0.5]
PAPER: list[Solver] = [
    MS.scale_free(outer=2, inner=15, optimizer="adam", keep_moving=True),
    CCMS.scale_free(outer=2, inner=15, optimizer="adam", draws=5, choices=0.25, alpha=1e-4),
    KL.scale_free(outer=2, inner=15, optimizer="adam"),
]
SOLVERS: list[Solver] = [Prices(), Nearest(), *PAPER]


def linear(budgets: Any, **options: Any) -> Problem:
    return linear_problem(W, X, budgets, **options)


def net(budgets: Any, **options: Any) -> Problem:
    return net_problem(features=3, cohort=X, budgets=budgets, **options)


def same(one: Plan, other: Plan) -> None:
    assert one.selected.tolist() == other.selected.tolist()
    assert one.moves.tobytes() == other.moves.tobytes()
    assert (one.bound, one.estimate, one.prices) == (other.bound, other.estimate, other.prices)
    assert one.spend == other.spend


# Brute force.


def check(case: Case, plan: Plan) -> float:
    """The worth of the best selection that is known; what the plan says is true, and its bound is none too low."""
    low, high = case.box
    for name, terms in case.terms.items():
        spent = terms.spent(plan)
        assert terms.amount == math.inf or spent <= terms.amount
        assert plan.spend[name] == pytest.approx(float(spent), rel=1e-12, abs=1e-300)
    for row, change in zip(plan.selected, plan.changes, strict=True):
        assert case.slope @ change >= case.lack[row] - 1e-9
        assert (change >= low[row] - 1e-12).all()
        assert (change <= high[row] + 1e-12).all()
    assert plan.bound is not None
    best = next((math.fsum(case.worth[who]) for who in case.subsets(plan.worth) if case.fits(who)), plan.worth)
    assert best <= plan.bound * (1 + 1e-12)
    assert not any(case.fits([j]) for j in np.flatnonzero(plan.fates == Fate.UNREACHABLE).tolist())
    return best


def test_small_linear_questions_by_brute_force() -> None:
    """All selections of up to 6 people; whether one fits is a convex program. The bound is never below the optimum, and
    the plan is within one sample of the bound but in one question of 300, and the optimum but in one of 1,000."""
    seeds = range(2000 if LONG else 20)
    far, missed, worst = 0, 0, 1.0
    for seed in seeds:
        case = random_case(seed, most=6 if LONG else 5)
        plan = solve(case.problem)
        best = check(case, plan)
        far += (plan.bound or 0.0) - plan.worth > case.worth.max() * (1 + 1e-9)
        missed += best > plan.worth * (1 + 1e-9)
        worst = min(worst, plan.worth / best if best else 1.0)
    says = (
        f"{far} of {len(seeds)} farther than one sample from the bound, {missed} below the optimum, worst {worst:.3f}"
    )
    sys.stdout.write(says + "\n")
    assert far <= len(seeds) / 200
    assert missed <= len(seeds) / 500


@pytest.mark.parametrize("kind", ["fee", "only", "own", "ways"])
def test_every_kind_alone_by_brute_force(kind: str) -> None:
    rest = dict.fromkeys(["fee", "only", "own", "ways"], False)
    for seed in range(200 if LONG else 3):
        case = random_case(10_000 + seed, most=6 if LONG else 4, **(rest | {kind: True}))
        check(case, solve(case.problem))


def grid_optimum(problem: Problem, rows: Rows, changes: Floats) -> float:
    """The best of all selections of these candidates, by a 0/1 program over their draws."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    drawn, amounts = problem.bill(rows, changes).consumption, problem.ledger.amounts
    finite = np.isfinite(amounts) & (amounts > 0)
    once = (rows[None] == np.unique(rows)[:, None]).astype(float)
    limits = [LinearConstraint(drawn.T[finite] / amounts[finite, None], ub=1.0), LinearConstraint(once, ub=1.0)]
    found = milp(-problem.worth[rows], integrality=np.ones(len(rows)), bounds=Bounds(0, 1), constraints=limits)
    return float(-found.fun)


def test_small_networks_by_a_grid_of_changes() -> None:
    """Plans are nearly always as good as any selection of changes on a fine grid, and no proved bound is below it."""
    from maxflip.judge import admissible

    ratios = []
    for seed in range(60 if LONG else 3):
        rng = np.random.default_rng(seed)
        x, n = rng.normal(size=(5, 2)), 5
        budgets = {
            "a": Budget(1.5, {"x0": rng.uniform(0.3, 3, n), "x1": Ways(up=1.0, down=rng.uniform(0, 2, n))}, fee=0.1),
            "b": Budget(1.2, {"x0": Ways(0.5, 2.0), "x1": 1.0}, "absolute", only=[0, 1, 2]),
            "c": Budget(4.0, cost="count", fee=rng.uniform(0.5, 2.0, n)),
        }
        problem = net_problem(features=2, seed=seed, cohort=x, budgets=budgets)
        plan = solve(problem)
        side = np.linspace(-3, 3, 61 if LONG else 41)
        each = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        open_ = np.flatnonzero(plan.fates != Fate.ALREADY)
        rows, changes = np.repeat(open_, len(each)), np.tile(each, (len(open_), 1))
        passing = admissible(problem, rows, changes)
        best = grid_optimum(problem, rows[passing], changes[passing]) if passing.any() else 0.0
        assert plan.bound is None or plan.bound >= best - 1e-9
        ratios.append(plan.worth / best if best else 1.0)
    assert min(ratios) >= 0.5
    assert np.mean(ratios) >= 0.98


# What asks for nothing changes nothing.

PLAIN: dict[str, Budget] = {
    "a": Budget(9.0, {"x0": 1.0, "x1": 0.5}),
    "b": Budget(6.0, {"x1": 2.0, "x2": 1.0}, "absolute"),
    "c": Budget(12, cost="count"),
}
NOTHING: dict[str, Callable[[Budget], Budget]] = {
    "a fee of 0": lambda b: b if b.cost == "count" else replace(b, fee=0.0),
    "fees of 0": lambda b: b if b.cost == "count" else replace(b, fee=np.zeros(40)),
    "a count of 1 each": lambda b: replace(b, fee=1.0) if b.cost == "count" else b,
    "only everybody": lambda b: replace(b, only=range(40)),
    "the same both ways": lambda b: replace(b, uses={f: Ways(up=w, down=w) for f, w in b.weights.items()} or None),
    "columns of one number": lambda b: replace(b, uses={f: np.full(40, w) for f, w in b.weights.items()} or None),
    "all of them": lambda b: replace(
        b,
        uses={f: Ways(up=np.full(40, w), down=w) for f, w in b.weights.items()} or None,
        fee=1.0 if b.cost == "count" else np.zeros(40),
        only=[str(j) for j in range(40)],
    ),
}


@functools.cache
def plain_plan(make: Callable[..., Problem], solver: int) -> Plan:
    return solve(make(PLAIN), SOLVERS[solver])


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("make", [linear, net])
def test_what_asks_for_nothing_gives_the_same_plan(make: Callable[..., Problem], name: str) -> None:
    asked = make({key: NOTHING[name](budget) for key, budget in PLAIN.items()})
    for number, solver in enumerate(SOLVERS):
        if LONG or name == "all of them" or (make is linear and number == list(NOTHING).index(name) % 2):
            wanted = plain_plan(make, number)
            assert wanted.count > 3 or solver in PAPER
            same(solve(asked, solver), wanted)


def all_but(budgets: dict[str, Budget], j: int) -> dict[str, Budget]:
    """The same, but sample j draws otherwise: so all is computed sample by sample."""
    other = np.arange(40) == j
    return {
        key: replace(
            b,
            uses={f: Ways(np.where(other, 7.0, w), np.where(other, 0.0, w)) for f, w in b.weights.items()} or None,
            fee=np.where(other, 3.0, float(b.cost == "count")),
            only=np.flatnonzero(~other),
        )
        for key, b in budgets.items()
    }


@pytest.mark.parametrize("make", [linear, net])
def test_somebody_who_needs_nothing_may_draw_anything(make: Callable[..., Problem]) -> None:
    """Up to rounding the plan is the same; with absolute budgets flips that cost the same may differ."""
    squares = {"a": PLAIN["a"], "b": replace(PLAIN["b"], cost="squared"), "c": PLAIN["c"]}
    for budgets in (squares, PLAIN) if LONG or make is linear else (squares,):
        plain = make(budgets)
        asked = make(all_but(budgets, int(np.flatnonzero(solve(plain).fates == Fate.ALREADY)[0])))
        for solver in (Prices(), Nearest(), *PAPER[: 1 if LONG else 0]):
            wanted, found = solve(plain, solver), solve(asked, solver)
            assert found.worth == wanted.worth > 0
            assert (found.bound, found.status) == (wanted.bound, wanted.status)
            if budgets is squares:
                assert found.selected.tolist() == wanted.selected.tolist()
                np.testing.assert_allclose(found.moves, wanted.moves, rtol=1e-4, atol=1e-6 if make is linear else 1e-2)


# Laws.


def test_a_fee_of_everybody_is_a_count() -> None:
    """6 places, and a fee of 2.5 from 17 of something: 6 people."""
    places, fee = (PLAIN | {"c": c} for c in (Budget(6, cost="count"), Budget(17.0, cost="count", fee=2.5)))
    for make in (linear, net):
        wanted, found = solve(make(places)), solve(make(fee))
        assert (found.count, found.spend["c"]) == (wanted.count, 2.5 * wanted.count) == (6, 15.0)
        assert found.bound == wanted.bound == 6.0


def test_whoever_draws_four_times_as_much_from_squares_moves_half_as_far() -> None:
    """One feature and one person: 4 d^2 <= B allows half the change of d^2 <= B."""
    x = np.array([[-1.0], [-1.0]])
    far = float(missing_score([1.0], x)[0])
    for weight, reached in ((1.0, [0, 1]), (4.0, [1])):
        amount = 1.001 * far**2 * (2.0 if weight == 1.0 else 1.0)
        plan = solve(linear_problem([1.0], x, {"x0": Budget(amount, {"x0": np.array([weight, 1.0])})}))
        assert plan.selected.tolist() == reached
    alone = linear_problem([1.0], x[:1], {"x0": Budget(4.001 * far**2, {"x0": np.array([4.0])})})
    assert solve(alone).spend["x0"] == pytest.approx(4 * far**2, rel=1e-6)
    assert solve(alone.changed(budgets={"x0": 3.999 * far**2})).count == 0


def test_the_unit_of_a_budget_does_not_matter() -> None:
    """Weights, fees and the amount times 4: the same plan to the last bit."""
    rng = np.random.default_rng(3)
    own, fees = rng.uniform(0.2, 3, 40), rng.uniform(0.0, 0.3, 40)

    def asked(by: float) -> dict[str, Any]:
        a = Budget(9.0 * by, {"x0": own * by, "x1": Ways(0.5 * by, own * by)}, fee=fees * by, only=range(30))
        return PLAIN | {"a": a}

    for make in (linear, net):
        one, other = solve(make(asked(1.0))), solve(make(asked(4.0)))
        assert one.count > 3
        assert one.moves.tobytes() == other.moves.tobytes()
        assert other.spend["a"] == 4 * one.spend["a"]


def test_a_feature_told_the_other_way_round_is_priced_the_other_way_round() -> None:
    """-x and -w ask the same with up for down."""
    ways = {"x0": Ways(2.0, 0.25), "x1": Ways(0.1, 1.0), "x2": 1.0}
    back = {"x0": Ways(0.25, 2.0), "x1": Ways(1.0, 0.1), "x2": 1.0}
    for cost in ("squared", "absolute"):
        plan = solve(linear_problem(W, X, {"a": Budget(4.0, ways, cost)}))
        mirrored = solve(linear_problem(-np.array(W), -X, {"a": Budget(4.0, back, cost)}))
        assert plan.selected.tolist() == mirrored.selected.tolist()
        assert plan.count > 3
        np.testing.assert_array_equal(plan.moves, -mirrored.moves)


def test_sites_with_budgets_of_their_own_are_questions_of_their_own() -> None:
    """Whatever one site has, the other has it not; nobody of a third site, which has no budget, changes anything."""
    site = np.array(["Oslo", "Bergen", "Bodø"])[np.arange(40) % 3]
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(site=site)
    budgets = {
        name: Budget(amount, {"x0": 1.0, "x1": 2.0}, only=("site", name))
        for name, amount in (("Oslo", 5.0), ("Bergen", 2.0))
    }
    cohort = Cohort.table(frame, features=["x0", "x1", "x2"])
    plan = solve(Problem(classifier=linear(PLAIN).classifier, cohort=cohort, target=1, margin=0.1, budgets=budgets))
    assert not (plan.fates[site == "Bodø"] == Fate.FLIPPED).any()
    worth = 0.0
    for name, amount in (("Oslo", 5.0), ("Bergen", 2.0)):
        alone = solve(linear_problem(W, X[site == name], {"b": Budget(amount, {"x0": 1.0, "x1": 2.0})}))
        assert alone.count == (site[plan.selected] == name).sum() > 1
        worth += alone.worth
    assert plan.worth == worth


def test_people_outside_draw_nothing_and_need_another_budget_to_change() -> None:
    inside = np.arange(40) < 20
    one = {"a": Budget(50.0, {"x0": 1.0}, only=np.flatnonzero(inside))}
    plan = solve(linear(one))
    assert plan.count > 5
    assert inside[plan.selected].all()
    assert set(plan.fates[~inside]) <= {Fate.ALREADY, Fate.UNREACHABLE}
    both = solve(linear(one | {"rest": Budget(math.inf, {"x0": 1.0}, only=np.flatnonzero(~inside))}))
    assert (both.fates[~inside] != Fate.UNREACHABLE).all()
    assert both.spend["a"] == plan.spend["a"]


def test_a_count_of_a_part_binds_there_alone() -> None:
    part = [str(j) for j in range(0, 40, 2)]
    free = solve(linear({"x0": 400.0}))
    plan = solve(linear({"x0": 400.0, "people": Budget(3, cost="count", only=part)}))
    of_part = np.isin(plan.ids, part)
    assert of_part.sum() == plan.spend["people"] == 3
    assert (~of_part).sum() == (~np.isin(free.ids, part)).sum()
    assert plan.bound == plan.worth


@pytest.mark.parametrize("make", [linear, *([net] if LONG else [])])
def test_the_order_of_rows_does_not_matter(make: Callable[..., Problem]) -> None:
    rng = np.random.default_rng(1)
    ids, own = np.array([f"P{j:02}" for j in range(40)]), rng.uniform(0, 2, 40)
    plans = []
    for rows in (np.arange(40), rng.permutation(40)):
        a = Budget(5.0, {"x0": Ways(own[rows], 1.0), "x1": 1.0}, fee=own[rows] / 9, only=ids[:30])
        budgets = {"a": a, "b": Budget(9.0, {"x2": own[rows]}, "absolute")}
        cohort, classifier = Cohort.table(X[rows], ids=ids[rows].tolist()), make({"x0": 1.0}).classifier
        plans.append(solve(Problem(classifier=classifier, cohort=cohort, target=1, margin=0.1, budgets=budgets)))
    one, other = ({i: d.tobytes() for i, d in zip(p.ids, p.changes, strict=True)} for p in plans)
    assert one == other
    assert len(one) > 3


def test_a_weight_of_0_is_free_for_that_person_alone() -> None:
    own = np.where(np.arange(40) % 2 == 0, 0.0, 1.0)
    plan = solve(linear({"x0": Budget(1e-9, {"x0": own})}))
    start = missing_score(W, X) > 0
    assert plan.selected.tolist() == np.flatnonzero(start & (own == 0)).tolist()
    frozen = solve(linear({"x0": Budget(0.0, {"x0": own}), "x1": 1e-9}))
    assert frozen.selected.tolist() == plan.selected.tolist()


def test_a_way_that_costs_nothing_is_taken() -> None:
    """Up is free, down is not; at an empty budget down is closed."""
    for amount in (1e-9, 0.0):
        plan = solve(linear_problem([1.0], X[:, :1], {"x0": Budget(amount, {"x0": Ways(up=0.0, down=1.0)})}))
        assert plan.count == (missing_score([1.0], X[:, :1]) > 0).sum()
        assert plan.spend["x0"] == 0.0
        back = solve(linear_problem([-1.0], X[:, :1], {"x0": Budget(amount, {"x0": Ways(up=0.0, down=1.0)})}))
        assert back.count == 0


# Plans live on without their problem.


@pytest.fixture(scope="module")
def asked() -> Problem:
    rng = np.random.default_rng(5)
    own = rng.uniform(0.2, 3, 40)
    return linear(
        {
            "a": Budget(4.0, {"x0": own, "x1": Ways(own, 0.5)}, fee=0.05),
            "b": Budget(6.0, {"x2": 1.0, "x1": 1.0}, "absolute", fee=own / 10, only=range(25)),
            "c": Budget(9.0, cost="count", fee=own),
        }
    )


@pytest.fixture(scope="module")
def plan_of_asked(asked: Problem) -> Plan:
    return solve(asked)


def test_a_changed_budget_keeps_the_rest(asked: Problem) -> None:
    other = asked.changed(budgets={"a": 7.0})
    for name, budget in asked.budgets.items():
        assert other.budgets[name] == replace(budget, amount=7.0 if name == "a" else budget.amount)


def test_what_if_brackets_what_resolve_finds(asked: Problem, plan_of_asked: Plan) -> None:
    plan = plan_of_asked
    assert 3 < plan.count < 20
    worths = []
    for scale in (0.5, 1.0, 1.5):
        amounts = {name: scale * b.amount for name, b in asked.budgets.items()}
        bracket = plan.what_if({name: amounts[name] - b.amount for name, b in asked.budgets.items()})
        again = resolve(asked, plan, budgets=amounts)
        assert bracket.at_least <= again.worth <= bracket.at_most
        worths.append((bracket.at_least, again.worth, bracket.at_most))
    for ends in zip(*worths, strict=True):
        assert list(ends) == sorted(ends)
    found = frontier(asked, [0.5, 1.0], plan=plan)
    assert [p.worth for p in found.plans] == sorted(p.worth for p in found.plans)


def test_groups_have_parts_of_budgets_that_differ(asked: Problem) -> None:
    labels = [["a", "b"][j % 2] for j in range(40)]
    plan = solve(asked, Grouped(Prices(), labels))
    everyone = np.arange(40)
    open_ = np.flatnonzero(plan.fates != Fate.ALREADY)
    for group in ("a", "b"):
        own = np.array([labels[j] == group for j in everyone])
        share = own[open_].mean()
        picked = plan.selected[own[plan.selected]]
        spent = asked.bill(picked, plan.moves[own[plan.selected]]).spent()
        assert (spent <= share * asked.ledger.amounts * (1 + 1e-12)).all()


def test_a_table_of_changes_says_what_each_draws(asked: Problem, plan_of_asked: Plan) -> None:
    """x0 draws on one budget, x1 on two for those inside the part of b, and on one for others."""
    plan = plan_of_asked
    a = asked.budgets["a"]
    for row in plan.table().to_pylist():
        j, d = int(row["id"]), row["change"]
        if row["feature"] == "x0":
            assert row["cost"] == pytest.approx(a.weights["x0"].values[j] * d * d)
        elif row["feature"] == "x1" and j >= 25:
            weight = a.weights["x1"].up.values[j] if d > 0 else 0.5
            assert row["cost"] == pytest.approx(weight * d * d)
        elif row["feature"] == "x1":
            assert row["cost"] is None


def test_columns_of_a_frame_are_taken_by_name() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    frame["hours"], frame["site"], frame["tier"] = rng.uniform(0, 1, 40), ["a", "b"] * 20, [1, 2, 3, 4] * 10
    cohort = Cohort.table(frame, features=["x0", "x1", "x2"])
    classifier = linear(PLAIN).classifier
    named = {"a": Budget(4.0, {"x0": "hours", "x1": Ways("tier", 1)}, fee="hours", only=("site", "b"))}
    given = {
        "a": Budget(
            4.0,
            {"x0": frame["hours"], "x1": Ways(frame["tier"].to_numpy(), 1)},
            fee=torch.tensor(frame["hours"].to_numpy()),
            only=frame.index[frame["site"] == "b"],
        )
    }
    plans = [
        solve(Problem(classifier=classifier, cohort=cohort, target=1, margin=0.1, budgets=b)) for b in (named, given)
    ]
    same(*plans)
    assert plans[0].count > 1
    problem = Problem(classifier=classifier, cohort=cohort, target=1, margin=0.1, budgets=named)
    assert not any("ignored" in notice for notice in problem.notices)  # all of them are used


FAULTS: list[tuple[Any, str]] = [
    (Budget(1.0, {"x0": "weigth"}), r"budgets.a.uses.x0: the cohort has no column 'weigth' with one number per sample"),
    (Budget(1.0, {"x0": [1.0, 2.0]}), r"budgets.a.uses.x0: shape \(2,\); wanted one number per sample, \(3,\)"),
    (Budget(1.0, {"x0": [1.0, -2.0, 1.0]}), r"budgets.a.uses.x0, row 2: -2.0; must be a finite number >= 0."),
    (Budget(1.0, {"x0": Ways(1.0, math.nan)}), r"budgets.a.uses.x0.down = nan: must be a finite number >= 0."),
    (Budget(1.0, {"x0": Ways(None, 1.0)}), r"budgets.a.uses.x0.up = None: must be a finite number >= 0, an array"),
    (Budget(1.0, {"x0": 1.0}, fee="site"), r"budgets.a.fee: column 'site', row 1: 'Oslo'; must be a finite number"),
    (Budget(1.0, {"x0": 1.0}, fee=-1), r"budgets.a.fee = -1: must be a finite number >= 0."),
    (Budget(1.0, {"x0": 1.0}, fee=[1.0, math.inf, 2.0]), r"budgets.a.fee, row 2: inf; must be"),
    (Budget(1.0, {"x0": 1.0}, only=("site", "Olso")), r"budgets.a.only: nobody has 'Olso' in column 'site'. There are"),
    (Budget(1.0, {"x0": 1.0}, only=("place", "Oslo")), r"budgets.a.only: the cohort has no column 'place'."),
    (Budget(1.0, {"x0": 1.0}, only=["9"]), r"budgets.a.only: no sample has the id '9'"),
    (Budget(1.0, {"x0": 1.0}, only="Oslo"), r"budgets.a.only: got 'Oslo'; wanted \(column, value\), or a list of ids"),
    (Budget(1.0, fee=2.0), r"budgets.a: no feature is called 'a'.* One of fees alone is a count: cost='count'."),
]


@pytest.mark.parametrize(("budget", "says"), FAULTS, ids=[says[:40] for _, says in FAULTS])
def test_what_cannot_be_meant_is_said(budget: Budget, says: str) -> None:
    frame = pd.DataFrame({"x0": [0.0, 1.0, 2.0], "site": ["Oslo", "Bergen", "Oslo"]})
    cohort = Cohort.table(frame, features=["x0"])
    with pytest.raises(ProblemError, match=says):
        Problem(
            classifier=linear_problem([1.0], [[0.0]], [1.0]).classifier,
            cohort=cohort,
            target=1,
            margin=0.1,
            budgets={"a": budget},
        )


def relative(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    return (((after - before) / (1.0 + before.abs())) ** 2).sum(dim=1)


def test_a_function_of_ones_own_has_a_fee_and_a_part_too() -> None:
    inside = np.arange(40) < 25
    budgets = {
        "f": Budget(2.0, ["x0", "x1"], relative, fee=0.1, only=np.flatnonzero(inside)),
        "x0": math.inf,
        "x2": 1.0,
    }
    for solver in (Nearest(), *PAPER):
        plan = solve(linear(budgets), solver)
        assert plan.count > 0
        own = plan.selected[inside[plan.selected]]
        there = torch.tensor(X[own, :2]), torch.tensor(X[own, :2] + plan.moves[inside[plan.selected], :2])
        said = [float(relative(b[None], a[None])) for b, a in zip(*there, strict=True)]
        assert plan.spend["f"] == pytest.approx(math.fsum(said) + 0.1 * len(own), rel=1e-12)
