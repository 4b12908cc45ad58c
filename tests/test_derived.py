"""Derived features: what follows from a change is what the model sees, in every search, in the judge and in proofs."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from maxflip import (
    MS,
    Budget,
    Cohort,
    Fate,
    InputError,
    Limit,
    Nearest,
    Plan,
    Prices,
    Problem,
    ProblemError,
    Rounded,
    TorchClassifier,
    Uptake,
    look,
    resolve,
    solve,
)
from maxflip.data.derived import Derived
from maxflip.models.linear_forms import folded
from maxflip.problem.question import Question
from maxflip.solvers import Solver
from tests.conftest import LONG
from tests.examples import linear_net, small_net

Floats = NDArray[np.float64]
PRESSURES = ["age", "systolic", "diastolic", "pulse_pressure"]
PULSE = {"pulse_pressure": "systolic - diastolic"}
LINE = 2 * math.atanh(0.1)


def people(n: int = 80, seed: int = 0) -> Floats:
    """Like NHANES: whole mmHg, and pulse pressure computed from the two others."""
    rng = np.random.default_rng(seed)
    systolic, diastolic = np.round(rng.normal(138, 14, n)), np.round(rng.normal(82, 9, n))
    return np.column_stack([np.round(rng.normal(55, 9, n)), systolic, diastolic, systolic - diastolic])


class Scaled(nn.Module):
    """A small network of all four columns, with their scaler inside."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.net = small_net(4, seed=seed, dtype=torch.float64)
        self.centre = nn.Buffer(torch.tensor([55.0, 138.0, 82.0, 56.0], dtype=torch.float64))
        self.spread = nn.Buffer(torch.tensor([9.0, 14.0, 9.0, 16.0], dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = self.net((x - self.centre) / self.spread)
        return z


class Inside(nn.Module):
    """The same as a function of the first three columns: pulse pressure is computed inside."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = self.net(torch.cat([x, x[:, 1:2] - x[:, 2:3]], dim=1))
        return z


def asked(net: nn.Module, x: Floats | None = None, **more: Any) -> Problem:
    values = people() if x is None else x
    defaults: dict[str, Any] = {
        "classifier": TorchClassifier(net, output="logits"),
        "cohort": Cohort.table(
            values, features=PRESSURES[: values.shape[1]], ids=[f"P{j:03}" for j in range(len(values))]
        ),
        "target": 1,
        "margin": 0.1,
        "budgets": {"systolic": 1500.0, "diastolic": 300.0},
    }
    return Problem(**defaults | more)


@functools.cache
def solved(solver: Solver | None = None) -> Plan:
    """With pulse pressure derived."""
    return solve(asked(Scaled(), derived=PULSE), solver or Nearest())


SOLVERS: list[Solver] = [
    Prices(rounds=3),
    Nearest(),
    MS.scale_free(outer=3, inner=25, optimizer="adam", keep_moving=True),
]


def margin_of(net: nn.Module, x: Floats) -> Floats:
    """p(1) - p(0), by the module itself"""
    with torch.no_grad():
        p = torch.softmax(net(torch.tensor(x)), dim=1).numpy()
    return np.asarray(p[:, 1] - p[:, 0])


def recomputed(plan: Plan, x: Floats) -> Floats:
    """The people picked after their changes, with pulse pressure computed by hand."""
    end: Floats = x[plan.selected] + plan.changes
    end[:, 3] = end[:, 1] - end[:, 2]
    return end


# --- the linked-feature case


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_every_flip_is_true_when_it_is_recomputed(solver: Solver) -> None:
    net, x, plan = Scaled(), people(), solved(solver)
    assert plan.count >= 8
    end = recomputed(plan, x)
    assert (margin_of(net, end) >= 0.1 + plan.guard / 2).all()
    assert np.abs(margin_of(net, end) - plan.confidence_after).max() < 1e-12
    assert (plan.changes[:, 3] == 0).all()


def test_without_it_there_is_a_notice_and_some_flips_are_false() -> None:
    net, x = Scaled(), people()
    plan = solve(asked(net), Nearest())
    told = [text for text in plan.notices if "pulse_pressure = systolic - diastolic" in text]
    assert len(told) == 1
    assert "derived={'pulse_pressure': 'systolic - diastolic'}" in told[0]
    false = margin_of(net, recomputed(plan, x)) < 0.1
    assert 0 < false.sum() < plan.count
    assert not any("pulse_pressure =" in text for text in solved().notices)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_a_plan_is_that_of_the_model_that_computes_the_feature_itself(solver: Solver) -> None:
    """To the last bit: the searches see the same function, with the same gradients."""
    net, x = Scaled(3), people(40, seed=3)
    outside = solve(asked(net, x, derived=PULSE), solver)
    inside = solve(asked(Inside(net), x[:, :3]), solver)
    assert outside.count >= 3
    assert np.array_equal(outside.selected, inside.selected)
    assert np.array_equal(outside.changes[:, :3], inside.changes)
    assert outside.bound == inside.bound


CHAINS: list[dict[str, str]] = [
    {"d": "a - b"},
    {"d": "a * b - c / 3"},
    {"d": "min(a, b, 0.5)"},
    {"d": "a / (1 + b * b)", "e": "max(d, 0) + 0.5 * c"},
    {"e": "-d * 2 + a", "d": "(a + b) / 2 - c"},
]


class Chained(nn.Module):
    """The network with all that follows from a, b and c computed inside."""

    def __init__(self, net: nn.Module, rules: Derived) -> None:
        super().__init__()
        self.net, self.rules = net, rules

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = [*x.T, *(torch.zeros_like(x[:, 0]) for _ in self.rules.rules)]
        for rule in self.rules.rules:
            columns[rule.column] = rule.on([columns[i] for i in rule.parts])
        z: torch.Tensor = self.net(torch.stack(columns, dim=1))
        return z


@settings(max_examples=2000 if LONG else 5)
@given(st.integers(0, 2**32 - 1))
def test_random_questions_have_the_plans_of_models_that_compute_inside(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = CHAINS[int(rng.integers(len(CHAINS)))]
    names = ["a", "b", "c", *sorted(texts)]
    rules, _ = Derived.read(texts, names)
    x = rng.normal(size=(int(rng.integers(4, 16)), len(names)))
    for rule in rules.rules:
        x[:, rule.column] = rule.on([x[:, i] for i in rule.parts])
    net = small_net(len(names), seed=seed % 1000, dtype=torch.float64)
    free = sorted(rng.permutation(["a", "b", "c"])[: int(rng.integers(1, 4))].tolist())
    kinds = [Budget(4.0), Budget(3.0, cost="absolute")]
    budgets: dict[str, Any] = {name: kinds[int(rng.integers(2))] for name in free}
    if rng.random() < 0.3:
        budgets["people"] = Budget(int(rng.integers(1, 6)), cost="count")
    options: dict[str, Any] = {"target": int(rng.integers(2)), "margin": 0.1, "budgets": budgets}
    options["limits"] = "observed" if rng.random() < 0.3 else None
    options["must_hold"] = Uptake(0.8) if rng.random() < 0.3 else None

    def posed(module: nn.Module, values: Floats, **more: Any) -> Problem:
        cohort = Cohort.table(values, features=names[: values.shape[1]])
        return Problem(classifier=TorchClassifier(module, output="logits"), cohort=cohort, **options, **more)

    solver = Prices(rounds=2) if seed % 8 == 0 else Nearest()
    outside = solve(posed(net, x, derived=texts), solver)
    inside = solve(posed(Chained(net, rules), x[:, :3]), solver)
    assert np.array_equal(outside.selected, inside.selected)
    # Gradients add up in another order, so that a search may end a little elsewhere.
    np.testing.assert_allclose(outside.changes[:, :3], inside.changes, rtol=1e-2, atol=1e-2)
    # Once more by Python itself: nothing of the library computes here.
    for share in [1.0, 0.8] if options["must_hold"] else [1.0]:
        end = x[outside.selected] + share * outside.changes
        by_name = dict(zip(names, end.T, strict=True))
        least, most = (lambda *v: functools.reduce(np.minimum, v)), (lambda *v: functools.reduce(np.maximum, v))
        for name in ("d", "e") if texts.keys() == {"d", "e"} else ("d",):
            by_name[name] = eval(texts[name], {"min": least, "max": most}, by_name)
        lead = margin_of(net, np.column_stack([by_name[name] for name in names])) * (1 if options["target"] else -1)
        assert (lead >= 0.1).all()


def test_what_follows_is_told() -> None:
    net, x = Scaled(), people()
    problem, plan = asked(net, derived=PULSE), solved()
    rows = plan.implied_table().to_pylist()
    end = recomputed(plan, x)
    expected = [
        {"id": f"P{j:03}", "step": 0, "feature": "pulse_pressure", "unit": "", "before": x[j, 3], "after": end[c, 3]}
        for c, j in enumerate(plan.selected.tolist())
        if end[c, 3] != x[j, 3]
    ]
    assert rows == expected
    assert len(rows) == plan.count
    assert np.array_equal(problem.after(plan.selected, plan.moves).values, end)
    assert plan.question is not None
    assert plan.question.derived == PULSE
    plain = solve(asked(net), Nearest())
    assert plain.implied is None
    assert plain.implied_table().num_rows == 0


# --- linear models


WEIGHTS = np.array([-0.02, -0.03, -0.01, -0.06])


def linear(x: Floats, budgets: Mapping[str, Any], **more: Any) -> Problem:
    return asked(linear_net(WEIGHTS, 7.5 + 3.2), x, budgets=budgets, **more)


def by_hand(x: Floats, budgets: Mapping[str, Any], **more: Any) -> Problem:
    """Without the column: its weight goes to systolic, and against diastolic."""
    return asked(
        linear_net(WEIGHTS[:3] + WEIGHTS[3] * np.array([0.0, 1.0, -1.0]), 7.5 + 3.2), x[:, :3], budgets=budgets, **more
    )


BUDGETS: list[dict[str, Any]] = [
    {"systolic": 900.0, "diastolic": 200.0},
    {"hours": Budget(60.0, {"systolic": 0.5, "diastolic": 0.2}, "absolute")},
    {
        "systolic": 900.0,
        "hours": Budget(90.0, {"systolic": 0.5, "diastolic": 0.2}, "absolute"),
        "n": Budget(12, cost="count"),
    },
]


@pytest.mark.parametrize("budgets", BUDGETS, ids=["squared", "absolute", "mixed"])
@pytest.mark.parametrize("more", [{}, {"must_hold": Uptake(0.8)}, {"limits": {"systolic": (125.0, None)}}], ids=str)
def test_a_bound_is_that_of_the_weights_folded_by_hand(budgets: dict[str, Any], more: dict[str, Any]) -> None:
    x = people(60, seed=5)
    found, expected = solve(linear(x, budgets, derived=PULSE, **more)), solve(by_hand(x, budgets, **more))
    assert found.count == expected.count >= 5
    assert found.bound is not None
    assert expected.bound is not None
    assert found.bound == pytest.approx(expected.bound, abs=1e-9)
    for name, price in (expected.prices or {}).items():
        assert (found.prices or {})[name] == pytest.approx(price, rel=1e-6, abs=1e-9)
    assert [ceiling.rest for ceiling in found.ceilings] == pytest.approx([c.rest for c in expected.ceilings], abs=1e-9)


def test_unreachable_is_proved_of_what_follows() -> None:
    """Directions alone: systolic may only rise and pulls pulse pressure with it, so that nobody can be helped."""
    x = people(30)
    ways = {"systolic": "up", "diastolic": "down"}
    plan = solve(linear(x, BUDGETS[0], derived=PULSE, directions=ways))
    counts = plan.fate_counts()
    assert counts[Fate.UNREACHABLE] + counts[Fate.ALREADY] == 30
    assert counts[Fate.UNREACHABLE] > 4
    # Diastolic alone would raise the score of its own weight if pulse pressure stayed what it is.
    assert solve(linear(x, {"diastolic": 9000.0}, directions={"diastolic": "down"})).count > 0
    assert solve(linear(x, {"diastolic": 9000.0}, derived=PULSE, directions={"diastolic": "down"})).count == 0


@given(st.integers(0, 2**32 - 1))
def test_a_bound_is_never_below_the_best_plan(seed: int) -> None:
    """Two features of which the second follows from the first, one budget: the cheapest flips are known, and all sets
    of them are tried. The cohort's own column is off by as much as rounding may be."""
    rng = np.random.default_rng(seed)
    n, slope = int(rng.integers(1, 8)), float(rng.choice([-0.5, 0.7, 2.0]))
    x = rng.normal(-1.0, 1.0, n)
    own = (slope * x + 3.0) * (1.0 + rng.choice([0.0, 5e-8, -5e-8], n))
    w = rng.uniform(0.3, 1.5, 2) * rng.choice([-1.0, 1.0], 2)
    pull = float(w[0] + slope * w[1])
    if abs(pull) < 0.05:
        return
    amount = float(rng.uniform(0.1, 6.0))
    problem = Problem(
        classifier=TorchClassifier(linear_net(w, -3.0 * float(w[1])), output="logits"),
        cohort=Cohort.table(np.column_stack([x, own]), features=["x", "y"]),
        target=1,
        margin=0.1,
        budgets={"x": amount},
        derived={"y": f"{slope!r} * x + 3"},
    )
    plan = solve(problem)
    lack = np.maximum(LINE - pull * x, 0.0) / abs(pull)
    open_ = [j for j in range(n) if w[0] * x[j] + w[1] * (own[j] - 3.0) < LINE]
    # A little dearer than the best, so that rounding of this test itself cannot make a flip.
    sets = (s for k in range(len(open_) + 1) for s in itertools.combinations(open_, k))
    best = max(len(s) for s in sets if sum(lack[list(s)] ** 2) <= amount * (1 - 1e-6))
    assert plan.bound is not None
    assert plan.count >= best
    assert plan.bound >= plan.count
    cheapest = np.sort([lack[j] ** 2 * (1 - 1e-6) for j in open_])
    assert plan.count <= int((np.cumsum(cheapest) <= amount).sum())


@given(st.integers(0, 2**32 - 1))
def test_the_folded_form_bounds_how_far_the_model_is_from_it(seed: int) -> None:
    """Chains of rules on a cohort that is off by rounding: the true logits of what the model would see, exactly."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d", "e"]
    texts = {"c": "(a - 2 * b) / 3 + 0.1", "d": "0.3 * c - a", "e": "d - (c + b) * 7"}
    x = rng.normal(size=(6, 5)) * 10.0 ** rng.integers(-3, 4, size=5)
    rules, faults = Derived.read(texts, names)
    assert not faults
    for rule in rules.rules:
        x[:, rule.column] = rule.on([x[:, i] for i in rule.parts]) * (1.0 + rng.choice([0.0, 1e-8], 6))
    assert not list(rules.start_faults(x, names, str))
    classifier = TorchClassifier(linear_net(rng.normal(size=5), 0.5), output="logits")
    form = classifier.linear(5)
    assert form is not None
    features = rules.linear_on(x)
    assert features is not None
    after = folded(form, features)
    assert after.noise is not None
    assert (after.weight[:, 2:] == 0).all()
    moved = x.copy()
    moved[:, :2] += rng.choice([0.0, 1.0, -3e4], size=(6, 2)) * rng.normal(size=(6, 2))
    seen = rules.after(x, moved)
    for j, u in itertools.product(range(6), range(2)):
        true = sum(
            (Fraction(w) * Fraction(v) for w, v in zip(form.weight[u].tolist(), seen[j].tolist(), strict=True)),
            Fraction(float(form.bias[u])),
        )
        free = [Fraction(v) for v in moved[j].tolist()]
        said = sum(
            (Fraction(w) * v for w, v in zip(after.weight[u].tolist(), free, strict=True)),
            Fraction(float(after.bias[u])),
        )
        most = float((after.noise.weight[u] * torch.tensor(moved[j]).abs()).sum() + after.noise.bias[u])
        assert abs(true - said) <= most
        if (moved[j] == x[j]).all():
            assert np.array_equal(seen[j], x[j])


def test_an_expression_that_is_no_sum_is_searched_and_right() -> None:
    """A body mass index as a nurse computes it; the model is linear in it, and nothing is proved."""
    rng = np.random.default_rng(1)
    height, weight = rng.normal(1.7, 0.1, 60), rng.normal(85, 12, 60)
    x = np.column_stack([weight, height, weight / (height * height)])
    net = linear_net([0.0, 0.0, -0.4], 0.4 * 27.0)
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=Cohort.table(x, features=["weight", "height", "bmi"]),
        target=1,
        margin=0.1,
        budgets={"weight": Budget(120.0, cost="absolute")},
        derived={"bmi": "weight / (height * height)"},
    )
    plan = solve(problem)
    assert problem.linear is None
    assert plan.bound is None
    after = x[plan.selected, 0] + plan.changes[:, 0]
    bmi = after / (x[plan.selected, 1] * x[plan.selected, 1])
    assert (0.4 * (27.0 - bmi) >= LINE).all()
    lack = np.maximum((x[:, 2] - (27.0 - LINE / 0.4)) * x[:, 1] ** 2, 0.0)
    best = int((np.cumsum(np.sort(lack[lack > 0])) <= 120.0).sum())
    assert best - 1 <= plan.count <= best


# --- chains, scenarios, functions, other problems


def test_derived_features_may_use_derived_features_in_any_order() -> None:
    x = np.random.default_rng(2).normal(size=(20, 2))
    values = np.column_stack([x, x[:, 0] * 2, np.maximum(x[:, 0] * 2, x[:, 1])])
    net = linear_net([0.0, 0.0, 0.0, 1.0])
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=Cohort.table(values, features=["x", "y", "double", "most"]),
        target=1,
        margin=0.1,
        budgets={"x": 3.0},
        derived={"most": "max(double, y)", "double": "2 * x"},
    )
    plan = solve(problem)
    assert plan.count > 2
    end = problem.after(plan.selected, plan.moves).values
    assert np.array_equal(end[:, 2], 2 * (x[plan.selected, 0] + plan.changes[:, 0]))
    assert np.array_equal(end[:, 3], np.maximum(end[:, 2], x[plan.selected, 1]))
    assert (end[:, 3] >= LINE).all()
    assert set(plan.implied_table()["feature"].to_pylist()) == {"double", "most"}


def test_a_value_stays_where_no_part_of_it_moves_and_is_computed_where_one_does() -> None:
    """To the last bit: the cohort's own value has seven digits."""
    x = np.array([[3.0, 1.1, 1.234567], [2.0, 0.7, 0.7]])
    own = x.copy()
    own[:, 2] = np.float32(x[:, 0] * x[:, 1] / 3)
    rules, _ = Derived.read({"z": "x * y / 3"}, ["x", "y", "z"])
    assert not list(rules.start_faults(own, ["x", "y", "z"], str))
    moved = own + np.array([[0.0, 0.0, 0.0], [0.0, 0.25, 0.0]])
    assert rules.after(own, moved)[:, 2].tolist() == [own[0, 2], 2.0 * (0.7 + 0.25) / 3]
    problem = Problem(
        classifier=TorchClassifier(linear_net([0.0, 0.0, 1.0]), output="logits"),
        cohort=Cohort.table(own, features=["x", "y", "z"]),
        target=1,
        margin=0.0,
        budgets={"y": 1.0},
        derived={"z": "x * y / 3"},
    )
    inputs = problem.inputs(np.arange(2), torch.device("cpu"), problem.actionable)
    d = torch.tensor([[0.0], [0.25]], dtype=torch.float64, requires_grad=True)
    seen = inputs.at(slice(None), d)
    assert isinstance(seen, torch.Tensor)
    assert seen[:, 2].tolist() == rules.after(own, moved)[:, 2].tolist()
    (slope,) = torch.autograd.grad(seen[:, 2].sum(), d)
    assert slope[:, 0].tolist() == pytest.approx([1.0, 2 / 3])  # where nothing has moved yet, too


@pytest.mark.parametrize("must_hold", [Uptake(0.7), Rounded({"systolic": 1.0, "diastolic": 1.0})], ids=repr)
def test_what_is_carried_out_in_part_is_recomputed_too(must_hold: Any) -> None:
    net, x = Scaled(), people()
    plan = solve(asked(net, derived=PULSE, must_hold=must_hold), Nearest())
    assert plan.count > 3
    shares = [0.7, 0.775, 0.85, 0.925, 1.0] if isinstance(must_hold, Uptake) else [1.0]
    for share in shares:
        end = x[plan.selected] + share * plan.changes
        end[:, 3] = end[:, 1] - end[:, 2]
        assert (margin_of(net, end) >= 0.1).all()
    assert plan.holds is not None
    halves = x[plan.selected] + 0.5 * plan.changes
    halves[:, 3] = halves[:, 1] - halves[:, 2]
    assert plan.holds.uptake[0.5] == (margin_of(net, halves) >= 0.1).sum()


def test_whole_steps_of_what_it_follows_from_make_whole_values() -> None:
    net, x = Scaled(), people()
    whole = {"systolic": Limit(step=1.0), "diastolic": Limit(step=2.0, smallest=4.0)}
    plan = solve(asked(net, derived=PULSE, limits=whole), Nearest())
    assert plan.count > 3
    end = recomputed(plan, x)
    assert np.array_equal(end, np.rint(end))
    assert (margin_of(net, end) >= 0.1).all()
    told = [row["after"] for row in plan.implied_table().to_pylist()]
    assert told == [v for c, v in enumerate(end[:, 3].tolist()) if v != x[plan.selected[c], 3]]


def test_a_changed_problem_keeps_what_follows() -> None:
    problem = asked(Scaled(), derived=PULSE)
    plan = solved()
    half = resolve(problem, plan, Nearest(), budgets={"systolic": 700.0})
    assert 0 < half.count <= plan.count
    assert (margin_of(Scaled(), recomputed(half, people())) >= 0.1).all()
    assert len(half.implied or ()) == half.count
    with pytest.raises(ProblemError, match=r"budgets\.pulse_pressure: the feature is computed from others"):
        problem.changed(budgets={"pulse_pressure": Budget(3.0)})
    assert plan.answers(problem)
    assert not plan.answers(asked(Scaled()))
    other = asked(Scaled(), derived={"pulse_pressure": "-diastolic + systolic"})
    assert not plan.answers(other)


def test_likeness_is_that_of_the_values_that_follow() -> None:
    """Nobody real is off the plane pulse pressure = systolic - diastolic, and no changed person is."""
    net, x = Scaled(), people(200)
    problem = asked(net, x, derived=PULSE)
    plan = solve(problem, Nearest())
    found = look(problem, plan, scales=None).plausibility
    assert found is not None
    spread = x.std(axis=0)
    real = (x[plan.fates == Fate.ALREADY]) / spread
    end = recomputed(plan, x) / spread
    expected = [float(np.sqrt(((real - one) ** 2).sum(axis=1)).min()) for one in end]
    assert found.after.tolist() == pytest.approx(expected)


def test_a_flip_over_a_pole_is_no_flip() -> None:
    """1 / x is not finite at 0, where a careless model is content."""

    class Careless(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            good = torch.where(torch.isinf(x[:, 1]), 5.0, torch.where(x[:, 1] > 4.0, 1.0, -1.0) + 0.0 * x[:, 1])
            return torch.stack([torch.zeros_like(good), good.nan_to_num()], dim=1)

    x = np.array([[1.0, 1.0], [0.5, 2.0]])
    problem = Problem(
        classifier=TorchClassifier(Careless(), output="logits"),
        cohort=Cohort.table(x, features=["x", "y"]),
        target=1,
        margin=0.1,
        budgets={"x": 100.0},
        derived={"y": "1 / x"},
    )
    from maxflip import judge

    rows, changes = np.array([0, 0, 1]), np.array([[-1.0, 0.0], [-0.9, 0.0], [-0.5, 0.0]])
    assert judge.lawful(problem, rows, changes).tolist() == [False, True, False]
    assert judge.admissible(problem, rows, changes).tolist() == [False, True, False]


# --- sequences


def stays() -> Cohort:
    nan = math.nan
    values = [
        [[120.0, 80.0, 40.0], [nan, 82.0, nan], [150.0, 90.0, 60.0]],
        [[140.0, 70.0, 70.0]],
        [[160.0, 95.0, 65.0], [155.0, 95.0, nan]],
    ]
    return Cohort.sequences(values, features=["systolic", "diastolic", "pulse"], ids=["S-1", "S-2", "S-3"])


class Last(nn.Module):
    """Pulse pressure, last measured or not, below 50: the sum over steps counts those that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.1, dtype=torch.float64))

    def forward(self, x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        good = self.scale * (50.0 * length - x[:, :, 2].sum(dim=1))
        return torch.stack([torch.zeros_like(good), good], dim=1)


def of_stays(cohort: Cohort, **more: Any) -> Problem:
    return Problem(
        classifier=TorchClassifier(Last(), output="logits", call=lambda net, batch: net(batch.x, batch.length)),
        cohort=cohort,
        target=1,
        margin=0.1,
        budgets={"systolic": 900.0, "diastolic": 900.0},
        steps="all",
        derived={"pulse": "systolic - diastolic"},
        **more,
    )


def test_sequences_follow_step_by_step_where_all_is_measured() -> None:
    cohort = stays()
    problem = of_stays(cohort)
    plan = solve(problem)
    assert plan.ids.tolist() == ["S-2"]  # the others are there: what was not measured counts as 0
    end = problem.after(np.arange(3), np.zeros((3, problem.width))).values
    assert np.array_equal(end, cohort.values, equal_nan=True)
    changes = np.where(problem.slots.steps(np.arange(3), np.arange(problem.width)) >= 0, 1.5, 0.0)
    changes[:, problem.slots.feature == 1] *= -1
    end = problem.after(np.arange(3), changes).values
    measured = ~np.isnan(cohort.values[:, 2])
    assert (end[measured, 2] == cohort.values[measured, 2] + 3.0).all()
    assert np.isnan(end[~measured, 2]).all()
    inputs = problem.inputs(np.arange(3), torch.device("cpu"), np.arange(problem.width))
    for batch in inputs.batches(torch.arange(3)):
        seen: Any = inputs.at(batch, torch.tensor(changes)[batch])
        for row, j in enumerate(np.arange(3)[batch].tolist()):
            own = end[cohort.layout.rows_of(np.array([j]))]
            assert np.array_equal(seen.x[row, : len(own)].numpy(), np.nan_to_num(own))
            assert (seen.x[row, len(own) :] == 0).all()
    (row,) = plan.implied_table().to_pylist()
    assert (row["id"], row["step"], row["feature"], row["before"]) == ("S-2", 0, "pulse", 70.0)
    move = plan.changes[0]
    assert row["after"] == (140.0 + move[0, 0]) - (70.0 + move[0, 1])
    assert 0.1 * (50.0 - row["after"]) >= LINE


def test_a_sequence_with_a_value_that_nothing_gives_is_refused() -> None:
    values = [[[120.0, math.nan, 40.0]], [[140.0, 70.0, 70.0], [140.0, 70.0, 71.0]]]
    cohort = Cohort.sequences(values, features=["systolic", "diastolic", "pulse"], ids=["S-1", "S-2"])
    with pytest.raises(ProblemError) as caught:
        of_stays(cohort)
    first, second = caught.value.problems
    assert first.startswith(
        "derived.pulse: is measured where a feature of systolic - diastolic is not: sequence 1 (id S-1), step 0."
    )
    assert (
        "the cohort's pulse is not systolic - diastolic in 1 row: sequence 2 (id S-2), step 1: 71 instead of 70."
        in second
    )


# --- faults


def faults(x: Floats | None = None, **more: Any) -> list[str]:
    with pytest.raises((ProblemError, InputError)) as caught:
        asked(linear_net(WEIGHTS), x, **more)
    return list(caught.value.problems)


def test_a_column_that_is_not_its_expression_is_named_with_rows_and_values() -> None:
    x = people(300)
    x[[2, 7, 200], 3] += [1.0, -0.5, 1e-3]
    (text,) = faults(x, derived=PULSE)
    true = (x[:, 1] - x[:, 2])[[2, 7, 200]]
    assert text == (
        "derived.pulse_pressure: the cohort's pulse_pressure is not systolic - diastolic in 3 rows: "
        f"row 3 (id P002): {true[0] + 1:.12g} instead of {true[0]:.12g}; "
        f"row 8 (id P007): {true[1] - 0.5:.12g} instead of {true[1]:.12g}; "
        f"row 201 (id P200): {true[2] + 1e-3:.12g} instead of {true[2]:.12g}. "
        "Compute the column anew, or leave it out of `derived`."
    )
    x[:, 3] += 1.0
    (text,) = faults(x, derived=PULSE)
    assert "in 300 rows" in text
    assert "; and 295 more." in text


def test_rounding_of_float32_is_no_fault() -> None:
    x = people() + np.random.default_rng(0).normal(size=(80, 4))
    x[:, 3] = x[:, 1] - x[:, 2]
    asked(linear_net(WEIGHTS), x.astype(np.float32).astype(float), derived=PULSE)
    x[0, 3] *= 1 + 1e-5
    assert "in 1 row: row 1 (id P000)" in faults(x, derived=PULSE)[0]


OWN = "the feature is computed from others (derived), so it has no"
WRONG: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"derived": {"pulse_presure": "systolic"}},
        ["derived.pulse_presure: no feature is called 'pulse_presure'. Did you mean 'pulse_pressure'?"],
    ),
    (
        {"derived": {"pulse_pressure": "systolic - diastlic + sys"}},
        [
            "derived.pulse_pressure: 'systolic - diastlic + sys': character 12: no feature is called 'diastlic'. Did "
            "you mean 'diastolic'?",
            "derived.pulse_pressure: 'systolic - diastlic + sys': character 23: no feature is called 'sys'.",
        ],
    ),
    ({"derived": {"pulse_pressure": "systolic -"}}, ["derived.pulse_pressure: 'systolic -': character 1"]),
    ({"derived": {"pulse_pressure": "40"}}, ["derived.pulse_pressure: '40': uses no feature."]),
    ({"derived": {"pulse_pressure": 40}}, ["derived.pulse_pressure: got 40; wanted an expression, as text."]),
    ({"derived": "systolic - diastolic"}, ["derived: got 'systolic - diastolic'; wanted {feature: expression}"]),
    ({"derived": {"pulse_pressure": "pulse_pressure"}}, ["derived.pulse_pressure: is computed from itself. Take"]),
    (
        {
            "derived": {"age": "diastolic", "diastolic": "pulse_pressure - 1", "pulse_pressure": "diastolic + 1"},
            "budgets": {"systolic": 1.0},
        },
        ["derived.diastolic: is computed from itself: diastolic -> pulse_pressure -> diastolic. Take one of them out."],
    ),
    (
        {"derived": PULSE, "budgets": {"systolic": 1.0, "pulse_pressure": 2.0}},
        [f"budgets.pulse_pressure: {OWN} budget of its own. Give it to those that it is computed from."],
    ),
    (
        {"derived": PULSE, "budgets": {"h": Budget(1.0, {"systolic": 1.0, "pulse_pressure": 2.0})}},
        [f"budgets.h.uses.pulse_pressure: {OWN} budget"],
    ),
    ({"derived": PULSE, "limits": {"pulse_pressure": (30.0, 60.0)}}, [f"limits.pulse_pressure: {OWN} limits"]),
    ({"derived": PULSE, "limits": {"pulse_pressure": Limit(step=1.0)}}, [f"limits.pulse_pressure: {OWN} limits"]),
    ({"derived": PULSE, "directions": {"pulse_pressure": "up"}}, [f"directions.pulse_pressure: {OWN} directions"]),
    (
        {"derived": PULSE, "must_hold": Rounded({"pulse_pressure": 1.0})},
        [f"must_hold.rounded.pulse_pressure: {OWN} step"],
    ),
]


@pytest.mark.parametrize(("more", "says"), WRONG, ids=str)
def test_faults_say_what_is_wrong_and_where(more: dict[str, Any], says: list[str]) -> None:
    found = faults(**more)
    assert len(found) == len(says)
    for text, start in zip(found, says, strict=True):
        assert text.startswith(start)


def test_all_faults_are_told_together() -> None:
    x = people()
    x[0, 3] += 1
    found = faults(x, derived=PULSE | {"age": "ago"}, margin=2.0)
    assert [text.split(":")[0] for text in found] == ["margin = 2.0", "derived.age"]
    found = faults(x, derived=PULSE, margin=2.0)
    assert [text.split(":")[0] for text in found] == ["margin = 2.0", "derived.pulse_pressure"]


def test_nothing_derived_is_nothing_asked() -> None:
    plain, empty = asked(Scaled()), asked(Scaled(), derived={})
    assert Question.of(plain) == Question.of(empty)
    assert "derived" not in Question.of(empty).as_table()
    assert np.array_equal(solve(plain, Nearest()).moves, solve(empty, Nearest()).moves)


def test_a_plan_is_loaded_with_what_follows(tmp_path: Path) -> None:
    plan = solved()
    plan.save(tmp_path / "plan", pool=True)
    loaded = Plan.load(tmp_path / "plan")
    assert loaded.question == plan.question
    assert loaded.implied_table().equals(plan.implied_table())
    (tmp_path / "plan" / "implied.parquet").unlink()
    with pytest.raises(InputError, match=r"has no implied\.parquet, though features follow from others"):
        Plan.load(tmp_path / "plan")
    solve(asked(Scaled()), Nearest()).save(tmp_path / "plan", overwrite=True)
    assert not (tmp_path / "plan" / "implied.parquet").exists()
    assert Plan.load(tmp_path / "plan").implied is None
