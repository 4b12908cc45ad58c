"""Quotas on who is picked, against brute force and against what must follow from their meaning."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from maxflip import (
    KL,
    MS,
    Budget,
    Cohort,
    Fate,
    Nearest,
    Problem,
    ProblemError,
    Quota,
    TorchClassifier,
    frontier,
    judge,
    resolve,
    solve,
)
from maxflip.problem.question import Question
from maxflip.problem.quotas import Quotas, least_fraction
from maxflip.select.choose import choose
from maxflip.study.outlook import outlook_of
from tests.conftest import LONG
from tests.examples import linear_net, linear_problem, net_problem
from tests.test_actions import after, combinations, shift, some_actions
from tests.test_prices import fits_together

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


def kept(quotas: list[Quota], rows: list[int]) -> bool:
    """From the words alone: a share is the decimal number that is written."""
    for quota in quotas:
        count = sum(str(row) in quota.group for row in rows)
        for amount, sign in ((quota.at_least, -1), (quota.at_most, 1)):
            if amount is not None:
                wanted = Fraction(str(amount)) * len(rows) if isinstance(amount, float) else amount
                if sign * (count - wanted) > 0:
                    return False
    return True


def some_quotas(rng: np.random.Generator, n: int, most: int = 3) -> list[Quota]:
    """1 to 3 of them, of every kind, on random groups."""
    found = []
    for _ in range(int(rng.integers(1, most + 1))):
        group = [str(j) for j in np.flatnonzero(rng.random(n) < rng.uniform(0.2, 0.8))] or ["0"]
        share = float(rng.choice([0.1, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 1 / 3, 2 / 3, 1.0, 0.57]))
        number = int(rng.integers(1, len(group) + 1))
        kind = int(rng.integers(0, 5))
        sides: list[dict[str, Any]] = [
            {"at_least": share},
            {"at_most": share},
            {"at_least": number},
            {"at_most": number - 1},
            {"at_least": min(share, 0.3), "at_most": number},
        ]
        found.append(Quota(group, **sides[kind]))
    return found


def random_case(seed: int) -> tuple[Problem, list[Quota], Rows, Floats]:
    """Up to 7 people with up to 2 candidates each, one or two budgets, worths now and then."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    budgets: dict[str, Any] = {"x0": float(rng.uniform(0.5, 6)), "x1": math.inf}
    if rng.random() < 0.5:
        budgets["x1"] = Budget(float(rng.uniform(0.5, 4)), cost="absolute")
    if rng.random() < 0.2:
        budgets["people"] = Budget(int(rng.integers(0, n + 1)), cost="count")
    worth = rng.integers(0, 4, n).astype(float) if rng.random() < 0.4 else None
    if rng.random() < 0.2:
        worth = rng.uniform(0, 2, n)
    quotas = some_quotas(rng, n)
    problem = linear_problem([1.0, 1.0], rng.normal(size=(n, 2)), budgets, worth=worth, quotas=quotas)
    rows = np.sort(rng.integers(0, n, size=int(rng.integers(1, 11))))
    return problem, quotas, rows, rng.normal(size=(len(rows), 2))


def brute_force(
    problem: Problem, quotas: list[Quota], rows: Rows, changes: Floats, must: tuple[int, ...] = ()
) -> float:
    """The best worth over all selections with at most one candidate per sample; -inf if none is feasible."""
    options = [[None, *np.flatnonzero(rows == row)] for row in np.unique(rows)]
    best = -math.inf
    for picks in itertools.product(*options):
        chosen = [c for c in picks if c is not None]
        people = rows[chosen].tolist()
        if set(must) <= set(people) and kept(quotas, people) and problem.bill(rows, changes).of(chosen).fits():
            best = max(best, float(problem.worth[people].sum()))
    return best


@pytest.mark.parametrize("block", range(10))
def test_choose_equals_brute_force_and_refuses_exactly_what_is_infeasible(block: int) -> None:
    size = 400 if LONG else 20
    for seed in range(size * block, size * (block + 1)):
        problem, quotas, rows, changes = random_case(seed)
        must = np.unique(rows)[: seed % 3 // 2]
        best = brute_force(problem, quotas, rows, changes, tuple(must.tolist()))
        if best == -math.inf:
            with pytest.raises(ProblemError, match=r"quotas|include"):
                choose(problem, rows, changes, must)
            continue
        chosen = choose(problem, rows, changes, must)
        people = rows[chosen].tolist()
        assert kept(quotas, people), seed
        assert set(must) <= set(people), seed
        assert problem.bill(rows, changes).of(chosen).fits(), seed
        assert float(problem.worth[people].sum()) == pytest.approx(best, abs=1e-9), seed


def test_the_least_fraction_is_the_least() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        most = int(rng.integers(1, 40))
        share = Fraction(repr(float(rng.choice([rng.random(), round(rng.random(), 2), rng.random() / 100]))))
        every = [Fraction(p, q) for q in range(1, most + 1) for p in range(q + 1)]
        assert least_fraction(share, most) == min(f for f in every if f >= share)


# What a share means


@pytest.mark.parametrize(
    ("share", "count", "picked", "at_least", "at_most"),
    [
        (0.4, 4, 10, True, True),  # 0.4 is 2/5: the float64 beside it is above
        (0.4, 3, 10, False, True),
        (0.4, 5, 10, True, False),
        (0.1, 3, 30, True, True),
        (0.3, 3, 10, True, True),
        (0.7, 7, 10, True, True),
        (1 / 3, 1, 3, True, False),  # the decimal number 0.3333333333333333 is below 1/3
        (1.0, 5, 5, True, True),
        (1.0, 4, 5, False, True),
        (0.5, 0, 0, True, True),  # nobody is picked
    ],
)
def test_a_share_is_the_decimal_number_that_is_written(
    share: float, count: int, picked: int, at_least: bool, at_most: bool
) -> None:
    inside = np.arange(30)[None] < count
    for quota, wanted in ((Quota(["0"], at_least=share), at_least), (Quota(["0"], at_most=share), at_most)):
        quotas = Quotas((quota,), inside)
        assert quotas.hold(np.arange(picked)) is wanted
        assert quotas.held_by_prefixes(np.arange(picked))[-1] == wanted
        drawn = quotas.coefficients[:, :picked].sum(axis=1) - quotas.amounts  # in floats, as programs count
        assert (drawn <= 0.5 * quotas.steps).all() == wanted


def test_1_is_one_person_and_1_0_is_everybody() -> None:
    problem = linear_problem([1.0], -np.ones((4, 1)), [40.0], quotas=[Quota(["0"], at_least=1)])
    assert solve(problem).count == 4
    problem = linear_problem([1.0], -np.ones((4, 1)), [40.0], quotas=[Quota(["0"], at_least=1.0)])
    assert solve(problem).ids.tolist() == ["0"]


# Solvers


def small_problem(seed: int) -> tuple[Problem, list[Quota]]:
    """Up to 7 people, one or two budgets, a linear model or a small network."""
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(3, 8)), int(rng.integers(1, 3))
    x, amounts = rng.normal(size=(n, width)), rng.lognormal(0, 1, width) * n / 6
    budgets: dict[str, Any] = {f"x{i}": float(amount) for i, amount in enumerate(amounts)}
    options: dict[str, Any] = {"quotas": some_quotas(rng, n), "worth": rng.choice([1.0, 2.0, 0.5, 0.0], n)}
    if seed % 3 == 0:
        options["worth"] = None
    if seed % 2:
        return linear_problem(rng.normal(size=width), x, budgets, **options), options["quotas"]
    return net_problem(n, width, seed=seed, cohort=x, budgets=budgets, **options), options["quotas"]


def test_a_plan_is_the_best_of_its_flips_and_no_better_set_of_people_fits() -> None:
    """The bound of linear models is proved, also where quotas have prices."""
    priced, refused = 0, 0
    for seed in range(400 if LONG else 14):
        problem, quotas = small_problem(seed)
        try:
            plan = solve(problem)
        except ProblemError:
            refused += 1
            continue
        assert kept(quotas, plan.selected.tolist()), seed
        assert plan.pool is not None
        best = brute_force(problem, quotas, plan.pool.rows, plan.pool.changes)
        assert plan.worth == pytest.approx(best, abs=1e-9), seed
        if plan.bound is None or problem.linear is None:
            continue
        priced += any(met.price for met in plan.quotas)
        lacking = np.flatnonzero(plan.fates.astype(str) != Fate.ALREADY).tolist()
        for count in range(1, len(lacking) + 1):
            for who in itertools.combinations(lacking, count):
                if problem.worth[list(who)].sum() > plan.bound and kept(quotas, list(who)):
                    assert not fits_together(problem, who), (seed, who)
    assert priced
    assert refused


@pytest.mark.parametrize("solver", [Nearest(), MS.scale_free(outer=2, inner=20), KL.scale_free(outer=2, inner=20)])
def test_plans_of_every_solver_keep_quotas(solver: Any) -> None:
    quotas = [Quota([str(j) for j in range(0, 30, 3)], at_least=0.5), Quota(["1", "2", "4", "5"], at_least=2)]
    problem = net_problem(30, quotas=quotas, margin=0.1)
    plan = solve(problem, solver)
    assert kept(quotas, plan.selected.tolist())
    assert 0 < plan.count < solve(net_problem(30, margin=0.1), solver).count


@pytest.mark.parametrize(
    ("n", "kind"),
    [(300, "network"), (300, "linear"), (3000, "linear"), (300, "absolute"), *([(3000, "network")] if LONG else [])],
)
def test_quotas_that_bind_come_within_half_a_percent_of_the_dual(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    x, group = rng.normal(size=(n, 3)), rng.random(n) < 0.3
    x[:, 0] -= 1.0 + 0.8 * group
    quotas = [
        Quota([str(j) for j in np.flatnonzero(group)], at_least=0.4),
        Quota([str(j) for j in range(0, n, 3)], at_most=0.3),
    ]
    budgets: dict[str, Any] = {f"x{i}": (0.15 if kind == "linear" else 0.05) * n * (i + 1) for i in range(3)}
    if kind == "absolute":
        budgets = {name: Budget(1.5 * amount, cost="absolute") for name, amount in budgets.items()}
    asked: Any = partial(linear_problem, [1.0, -0.5, 0.7], x, budgets)
    if kind == "network":
        asked = partial(net_problem, n, 3, seed=1, cohort=x, budgets=budgets)
    plan, free = solve(asked(quotas=quotas)), solve(asked())
    most = plan.bound if plan.bound is not None else plan.estimate
    assert most is not None
    assert kept(quotas, plan.selected.tolist())
    assert most - plan.worth <= 0.005 * most
    assert plan.worth < free.worth  # the quotas bind; one alone costs no more than both
    assert 0 < max(met.cost or 0.0 for met in plan.quotas) <= free.worth - plan.worth + 0.01 * free.worth


# Laws


@pytest.mark.parametrize("seed", range(20 if LONG else 4))
def test_a_quota_that_does_not_bind_changes_nothing_in_worth(seed: int) -> None:
    problem, _ = small_problem(2 * seed + 1)
    free = asked_anew(problem, [])
    everybody = [str(j) for j in range(len(problem))]
    loose = [Quota(everybody, at_least=1.0), Quota(everybody[:1], at_most=1), Quota(everybody, at_most=len(problem))]
    plan, wanted = solve(asked_anew(problem, loose)), solve(free)
    assert plan.worth == wanted.worth
    assert plan.bound == pytest.approx(wanted.bound, rel=1e-6)
    assert all(met.cost == pytest.approx(0.0, abs=1e-9) for met in plan.quotas)


def asked_anew(problem: Problem, quotas: list[Quota]) -> Problem:
    """The same question with these quotas."""
    return Problem(
        classifier=problem.classifier,
        cohort=problem.cohort,
        target=1,
        margin=0.1,
        budgets=problem.budgets,
        worth=problem.worth,
        quotas=quotas,
    )


@pytest.mark.parametrize("seed", range(300 if LONG else 8))
def test_a_stricter_quota_never_allows_more(seed: int) -> None:
    problem, _, rows, changes = random_case(seed)
    group = [str(j) for j in range(0, len(problem), 2)]
    for side, amounts in (("at_least", (0.2, 0.5, 0.8, 1.0)), ("at_most", (1.0, 0.7, 0.3)), ("at_most", (3, 2, 1, 0))):
        asked = [asked_anew(problem, [Quota(group, **{side: amount})]) for amount in amounts]
        worths = [float(one.worth[rows[choose(one, rows, changes)]].sum()) for one in asked]
        assert worths == sorted(worths, reverse=True), (side, worths)


@pytest.mark.parametrize("seed", range(30 if LONG else 4))
def test_at_most_so_many_of_everybody_is_a_count_budget(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, most = 40, int(rng.integers(1, 12))
    x, budgets = rng.normal(size=(n, 2)), {"x0": 3.0, "x1": 5.0}
    worth = rng.choice([1.0, 2.0, 5.0], n) if seed % 2 else None
    counted = {**budgets, "people": Budget(most, cost="count")}
    by_budget = solve(linear_problem([1.0, 1.0], x, counted, worth=worth))
    everybody = [str(j) for j in range(n)]
    by_quota = solve(linear_problem([1.0, 1.0], x, budgets, worth=worth, quotas=[Quota(everybody, at_most=most)]))
    assert by_quota.worth == by_budget.worth
    assert by_quota.count <= most
    assert by_quota.bound == pytest.approx(by_budget.bound, rel=1e-6)


@pytest.mark.parametrize("seed", range(20 if LONG else 2))
def test_exactly_half_and_half(seed: int) -> None:
    """Two rows that are each other's opposite: only the difference of their prices counts."""
    x = np.random.default_rng(seed).normal(size=(60, 2)) - 0.3
    half = [Quota([str(j) for j in range(0, 60, 3)], at_least=0.5, at_most=0.5)]
    plan = solve(linear_problem([1.0, 1.0], x, {"x0": 3.0, "x1": 4.0}, quotas=half))
    assert 2 * plan.quotas[0].count == plan.count > 0
    assert plan.bound is not None
    assert plan.bound - plan.worth <= 2


def test_quotas_go_with_include_exclude_counts_and_thrift() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2)) - 0.5
    women = [str(j) for j in range(0, 60, 4)]
    options: dict[str, Any] = {"include": ["1", "3"], "exclude": ["0", "4"], "thrift": {"x0": 3.0}}
    budgets = {"x0": 4.0, "x1": 9.0, "people": Budget(14, cost="count")}
    quotas = [Quota(women, at_least=0.4), Quota(["1", "2", "3"], at_most=2)]
    plan = solve(linear_problem([1.0, 1.0], x, budgets, quotas=quotas, **options))
    assert kept(quotas, plan.selected.tolist())
    assert {"1", "3"} <= set(plan.ids) <= {str(j) for j in range(60)} - {"0", "2", "4"}
    assert 0 < plan.count <= 14
    assert plan.bound is not None
    assert plan.bound - plan.worth <= 2


def best_of_options(options: list[list[Floats]], worth: Floats, amounts: Floats, quotas: list[Quota]) -> float:
    """The greatest worth over all ways to give each sample nothing or one of its options, (m,) what each draws; -inf if
    the quotas allow none."""
    best = -math.inf
    for picked in itertools.product(*[[None, *own] for own in options]):
        people = [j for j, drawn in enumerate(picked) if drawn is not None]
        drawn = sum((d for d in picked if d is not None), np.zeros(len(amounts)))
        if (drawn <= amounts).all() and kept(quotas, people):
            best = max(best, float(worth[people].sum()))
    return best


@pytest.mark.parametrize("beside", [False, True])
def test_actions_with_quotas_reach_what_trying_everything_finds(beside: bool) -> None:
    """On a menu alone, and beside changes by amounts, whose cheapest after each combination is known."""
    refused = bound = 0
    for seed in range(200 if LONG else 16):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        x, w = rng.normal(size=(n, 3)) - 0.3, rng.normal(size=3)
        classifier = TorchClassifier(linear_net(w.tolist(), -0.5), output="logits")
        actions, quotas = some_actions(rng, ["hours"], 3), some_quotas(rng, n, 2)
        budgets: dict[str, Any] = {"hours": Budget(float(rng.integers(2, 7)), fee=0.5)}
        care = float(rng.uniform(0.5, 4))
        if beside:
            budgets["care"] = Budget(care, uses={"x0": 1, "x2": 2})
        problem = Problem(
            classifier=classifier,
            cohort=x,
            target=1,
            margin=0.2,
            budgets=budgets,
            actions=actions,
            most_actions=2,
            quotas=quotas,
        )
        lead = 2 * np.arctanh(0.2 + problem.guard)
        options: list[list[Floats]] = [[] for _ in range(n)]
        for chosen in combinations(actions, 2)[0 if beside else 1 :]:
            hours = 0.5 + sum(float(actions[a].draws["hours"]) for a in chosen)
            for j in range(n):
                missing = max(0.0, lead - float(after(actions, chosen, x[j]) @ w - 0.5))
                if shift(classifier, x[j : j + 1])[0] < 0.2 and (beside or not missing):
                    options[j].append(np.array([hours, missing**2 / (w[0] ** 2 + w[2] ** 2 / 2)]))
        amounts = np.array([budgets["hours"].amount, care if beside else math.inf])
        optimum = best_of_options(options, np.ones(n), amounts, quotas)
        try:
            plan = solve(problem)
        except ProblemError:
            refused += 1
            assert beside or optimum == -math.inf, seed
            continue
        bound += optimum < best_of_options(options, np.ones(n), amounts, [])
        assert kept(quotas, plan.selected.tolist())
        assert plan.bound is not None
        assert plan.bound >= optimum - 1e-9, seed
        assert optimum - beside <= plan.worth <= optimum, seed
    assert refused
    assert bound


# Plans


def test_a_plan_tells_who_was_picked_and_what_the_quota_costs() -> None:
    """Ten men cost 1 of a budget of 10 and ten women 4: half and half are 2 + 2."""
    x = np.repeat([[1.0], [2.0]], 10, axis=0) * -1 + 2 * math.atanh(0.1)
    women = [str(j) for j in range(10, 20)]
    plan = solve(linear_problem([1.0], x, [10.1], quotas=[Quota(women, at_least=0.5), Quota(women, at_most=1.0)]))
    assert plan.count == 4
    half, all_ = plan.quotas
    assert (half.count, all_.count, half.members.tolist()) == (2, 2, list(range(10, 20)))
    assert half.cost == pytest.approx(10 + 0.1 / 4 - 2 * 10.1 / 5, rel=1e-3)  # of the relaxation: 2.02 of each
    assert (all_.price, all_.cost) == (0.0, 0.0)
    assert plan.question is not None
    assert plan.question.quotas[0].in_words == "10 people named by id: at least 50 % of those picked"
    assert plan.question.as_table().keys() == Question(("a",), "margin", 0.1).as_table().keys()


@pytest.mark.parametrize("seed", range(12 if LONG else 2))
def test_what_if_and_resolve_keep_quotas_and_never_fall(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 2)) - 0.3
    quotas = [Quota([str(j) for j in range(0, 80, 3)], at_least=0.5), Quota([str(j) for j in range(20)], at_least=seed)]
    quotas = quotas if seed else quotas[:1]
    problem = linear_problem([1.0, 1.0], x, {"x0": 3.0, "x1": 4.0}, quotas=quotas)
    plan = solve(problem)
    brackets = [plan.what_if({"x0": more, "x1": more}) for more in (-2.9, -1.5, -0.5, 0.0, 0.5, 2.0)]
    assert [b.at_least for b in brackets] == sorted(b.at_least for b in brackets)
    assert [b.at_most for b in brackets] == sorted(b.at_most for b in brackets)
    assert brackets[3].at_least >= plan.worth
    for more, bracket in zip((-1.5, 0.5, 2.0), [brackets[1], *brackets[4:]], strict=True):
        if not bracket.at_least:
            continue
        some = plan.fitting({"x0": 3.0 + more, "x1": 4.0 + more})
        assert kept(quotas, plan.flips.rows[some].tolist())
        again = resolve(problem, plan, budgets={"x0": 3.0 + more, "x1": 4.0 + more})
        assert kept(quotas, again.selected.tolist())
        assert bracket.at_least <= again.worth <= bracket.at_most + 1e-9
        assert [met.count for met in again.quotas] == problem.quotas.counts(again.selected).tolist()


def test_a_frontier_keeps_quotas_and_never_falls() -> None:
    rng = np.random.default_rng(5)
    quotas = [Quota([str(j) for j in range(0, 30, 4)], at_least=0.4)]
    problem = net_problem(30, quotas=quotas, cohort=rng.normal(size=(30, 4)), budgets={f"x{i}": 0.4 for i in range(4)})
    curve = frontier(problem, [0.5, 1.0, 2.0])
    worths = [plan.worth for plan in curve.plans]
    assert worths == sorted(worths)
    assert all(kept(quotas, plan.selected.tolist()) for plan in curve.plans)
    assert worths[0] > 0


def test_a_frontier_of_a_report_leaves_out_where_too_few_can_be_picked() -> None:
    x = -np.arange(1.0, 7.0)[:, None]
    quotas = [Quota(["4", "5"], at_least=1)]
    problem = linear_problem([1.0], x, {"x0": 40.0}, quotas=quotas)
    plan = solve(problem)
    with pytest.raises(ProblemError, match=r"quotas\.at_least, entry 1: asks for 1 person"):
        solve(problem.changed(budgets={"x0": 10.0}))
    ahead, _ = outlook_of(problem, plan, [0.25, 1.0, 2.0])
    assert ahead.scales == (1.0, 2.0)


def test_a_flip_that_fails_when_judged_again_leaves_no_broken_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is chosen again without it, and what is left of the selection is not released as it is."""
    x = -np.array([[1.0], [1.1], [1.2], [1.3], [1.4], [1.5]])
    women = ["0", "1", "5"]
    problem = linear_problem([1.0], x, [40.0], quotas=[Quota(women, at_least=0.5)])
    real = judge.verdict

    def strict(problem: Problem, rows: Rows, changes: Floats) -> judge.Verdict:
        verdict = real(problem, rows, changes)
        return judge.Verdict(verdict.kept & (rows != 5), verdict.confidence)

    monkeypatch.setattr(judge, "verdict", strict)
    plan = solve(problem)
    assert sorted(plan.ids) == ["0", "1", "2", "3"]
    assert plan.pool is not None
    assert 5 not in plan.pool.rows


def test_a_selection_that_breaks_a_quota_would_be_a_bug() -> None:
    problem = linear_problem([1.0], -np.ones((3, 1)), [40.0], quotas=[Quota(["0"], at_least=0.5)])
    with pytest.raises(RuntimeError, match="breaks a quota"):
        judge.verdict(problem, np.array([1, 2]), np.full((2, 1), 2.0))


def test_a_changed_problem_keeps_its_quotas() -> None:
    problem = linear_problem([1.0], -np.ones((6, 1)), [40.0], quotas=[Quota(["0", "1"], at_least=0.5)])
    assert solve(problem.changed(budgets={"x0": 90.0}, margin=0.2)).count == 4
    plan = solve(problem)
    assert plan.answers(problem.changed(budgets={"x0": 3.0}))
    assert not plan.answers(asked_anew(problem, []))
    assert not plan.answers(asked_anew(problem, [Quota(["0", "2"], at_least=0.5)]))


def test_groups_with_parts_of_the_budgets_have_no_quotas() -> None:
    problem = linear_problem([1.0], -np.ones((6, 1)), [40.0], quotas=[Quota(["0", "1"], at_least=0.5)])
    with pytest.raises(ProblemError, match="quotas: a proportional allocation divides the cohort"):
        solve(problem, allocation="proportional", groups=["a", "b"] * 3)


# What is refused


def test_too_many_are_asked_for() -> None:
    x = np.array([[-1.0], [-1.0], [-9.0], [-9.0], [5.0]])
    asked = partial(linear_problem, [1.0], x, [4.0])
    with pytest.raises(ProblemError) as refused:
        solve(asked(quotas=[Quota(["2", "3"], at_least=1), Quota(["0", "1"], at_most=2)]))
    assert refused.value.problems == (
        "quotas.at_least, entry 1: asks for 1 person. A flip that the budgets pay for is known for 0 of the 2 in the "
        "group (2 people named by id); of these known flips at most 0 fit in together. Ask for fewer, raise the "
        "budgets, widen limits, or search longer with Prices(effort=3).",
    )
    with pytest.raises(ProblemError) as refused:
        solve(asked(quotas=[Quota(["0", "1", "4"], at_least=3)]))
    assert refused.value.problems == (
        "quotas.at_least, entry 1: asks for 3 people of 3 in the group (3 people named by id); 1 of them are in the "
        "wanted class already, and 2 can be picked. Ask for at most 2.",
    )
    with pytest.raises(ProblemError, match="quotas: the known flips cannot keep them all at once"):
        solve(asked(quotas=[Quota(["0"], at_least=1), Quota(["0", "1"], at_most=0)]))


def test_faults_are_listed_with_their_entries() -> None:
    frame = pd.DataFrame({"x0": [1.0, 2.0], "sex": ["F", "M"], "age": [30, 40], "key": ["a", "b"]})
    cohort = Cohort.table(frame, id="key", features=["x0"])
    wrong = [
        Quota(("sex", "X"), at_least=0.4),
        Quota(("sx", "F"), at_least=0.4),
        Quota(("age", 50), at_most=1),
        Quota(["c"], at_most=1),
        Quota([], at_most=1),
        Quota(("sex", "F")),
        Quota(("sex", "F"), at_least=40.0),
        Quota(("sex", "F"), at_least=1.5, at_most=-1),
        Quota(("sex", "F"), at_least=0),
        Quota(("sex", "F"), at_least=0.6, at_most=0.4),
        Quota(("sex", "F"), at_least=2),
        Quota("F", at_least=1),
        Quota(("sex", "F"), at_least="half"),  # type: ignore[arg-type]
        Quota(("sex", ["F"]), at_least=1),  # type: ignore[arg-type]
    ]
    with pytest.raises(ProblemError) as refused:
        Problem(
            classifier=TorchClassifier(linear_net([1.0]), output="logits"),
            cohort=cohort,
            target=1,
            margin=0.1,
            budgets={"x0": 1.0},
            quotas=wrong,
        )
    assert refused.value.problems == (
        "quotas.group, entry 1: nobody has 'X' in column 'sex'. There are 'F', 'M'.",
        "quotas.group, entry 2: the cohort has no column 'sx'. Did you mean 'sex'?",
        "quotas.group, entry 3: nobody has 50 in column 'age'. There are 30, 40.",
        "quotas.group, entry 4: no sample has the id 'c'.",
        "quotas.group, entry 5: the list of ids is empty. Name at least one.",
        "quotas.at_least, quotas.at_most, entry 6: give at least one of the two.",
        "quotas.at_least, entry 7 = 40.0: a float is a share of those picked. Write 40 for so many people.",
        "quotas.at_least, entry 8 = 1.5: a float is a share of those picked, in (0, 1].",
        "quotas.at_most, entry 8 = -1: must be at least 0, as a number of people.",
        "quotas.at_least, entry 9 = 0: must be at least 1, as a number of people.",
        "quotas.at_least, quotas.at_most, entry 10: 0.6 is above at_most 0.4. Swap them.",
        "quotas.at_least, entry 11 = 2: the group has only 1 sample that may be picked. Ask for fewer.",
        "quotas.group, entry 12: got 'F'; wanted (column, value), or a list of ids.",
        "quotas.at_least, entry 13 = 'half': must be a whole number of people, or a share of those picked in (0, 1].",
        "quotas.group, entry 14: got ('sex', ['F']); wanted (column, value) with a text or number as the value, or a "
        "list of ids.",
    )
    with pytest.raises(ProblemError, match=r"quotas: got 'F'; wanted a list of Quota"):
        linear_problem([1.0], [[1.0]], [1.0], quotas="F")


@pytest.mark.parametrize(
    ("column", "value", "who"),
    [
        ("sex", "F", ["a", "c"]),
        ("age", 30, ["a"]),  # a feature
        ("age", 30.0, ["a"]),
        ("site", "Oslo", ["b"]),  # with an empty cell
        ("member", True, ["a", "b"]),
        ("member", 0, ["c"]),
        ("visits", 2, ["c"]),
        ("mixed", "2", ["b"]),  # a column with a text has texts
    ],
)
def test_a_group_is_a_value_of_any_column(column: str, value: Any, who: list[str]) -> None:
    frame = pd.DataFrame(
        {
            "key": ["a", "b", "c"],
            "age": [30, 40, 50],
            "sex": ["F", "M", "F"],
            "site": [None, "Oslo", "Bergen"],
            "member": [True, True, False],
            "visits": [1, 3, 2],
            "mixed": ["x", 2, None],
        }
    )
    for data in (frame, pa.Table.from_pandas(frame.drop(columns="mixed"))):
        if column == "mixed" and data is not frame:
            continue
        cohort = Cohort.table(data, id="key", features=["age"])
        problem = Problem(
            classifier=TorchClassifier(linear_net([1.0]), output="logits"),
            cohort=cohort,
            target=1,
            margin=0.1,
            budgets={"age": 1.0},
            quotas=Quota((column, value), at_most=1),
        )
        assert cohort.ids[problem.quotas.inside[0]].tolist() == who
        ignored = [name for name in cohort.ignored if name != column]
        assert problem.notices[0] == f"cohort: columns that are no features are ignored: {', '.join(ignored)}."
