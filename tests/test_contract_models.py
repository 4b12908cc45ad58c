"""What holds for every plan, whatever the classifier is made of. A new kind of classifier joins by a line in KINDS."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from maxflip import Budget, Cohort, Ensemble, Fate, Problem, SklearnClassifier, Status, Tempered, TorchClassifier, solve
from maxflip.models import Classifier
from maxflip.solvers import Solver
from tests.conftest import LONG
from tests.contract import DEFAULTS, SOLVERS, by_turns, named
from tests.examples import linear_net, small_net
from tests.test_contract import assert_lawful, same

FEATURES = 3
X = np.random.default_rng(0).normal(size=(40, FEATURES)) * [1.0, 5.0, 0.3] + [0.0, 20.0, 1.0]
BUDGETS = {"x0": 20.0, "x1": 500.0, "x2": 2.0}


@cache
def fitted(kind: str, classes: int = 2) -> Any:
    """A pipeline over columns of different scale; class 1 is in the middle of the three."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, FEATURES)) * [1.0, 5.0, 0.3] + [0.0, 20.0, 1.0]
    score = x @ [1.0, -0.2, 2.0] + rng.normal(size=300) * 0.5
    y = np.digitize(score, [-2.0] if classes == 2 else [-3.0, -1.0])
    model = {
        "logistic": LogisticRegression(),
        "svc": LinearSVC(),
        "network": MLPClassifier((6,), activation="tanh", alpha=0.1, max_iter=400, solver="lbfgs", random_state=0),
    }[kind]
    return make_pipeline(StandardScaler(), model).fit(x, y)


def torch_net(classes: int = 2, seed: int = 0) -> TorchClassifier:
    """Over the same columns: the scaler stands inside."""
    scaler = torch.nn.Linear(FEATURES, FEATURES)
    with torch.no_grad():
        scaler.weight.copy_(torch.diag(torch.tensor([1.0, 0.2, 1 / 0.3])))
        scaler.bias.copy_(torch.tensor([0.0, -4.0, -1 / 0.3]))
    return TorchClassifier(torch.nn.Sequential(scaler, small_net(FEATURES, classes, seed=seed)), output="logits")


KINDS: dict[str, Callable[[], Classifier]] = {
    "torch network": torch_net,
    "torch linear": lambda: TorchClassifier(linear_net([1.0, -0.2, 2.0], 2.0), output="logits"),
    "torch decision": lambda: TorchClassifier(torch_net(3).module, output="decision"),
    "logistic": lambda: SklearnClassifier(fitted("logistic")),
    "logistic, three classes": lambda: SklearnClassifier(fitted("logistic", 3)),
    "sklearn network": lambda: SklearnClassifier(fitted("network")),
    "sklearn network, three classes": lambda: SklearnClassifier(fitted("network", 3)),
    "svc": lambda: SklearnClassifier(fitted("svc")),
    "svc, three classes": lambda: SklearnClassifier(fitted("svc", 3)),
    "ensemble": lambda: Ensemble([torch_net(), SklearnClassifier(fitted("network"))]),
    "linear ensemble": lambda: Ensemble(
        [
            SklearnClassifier(fitted("logistic")),
            TorchClassifier(linear_net([1.0, -0.2, 2.0], 2.0), output="logits", classes=["0", "1"]),
        ]
    ),
    "ensemble of svc": lambda: Ensemble([SklearnClassifier(fitted("svc")), SklearnClassifier(fitted("svc"))]),
    "tempered": lambda: Tempered(SklearnClassifier(fitted("network")), 1.8),
    "tempered linear": lambda: Tempered(SklearnClassifier(fitted("logistic", 3)), 0.7),
}
SETTINGS = [*SOLVERS, *DEFAULTS]
every_setting = pytest.mark.parametrize("solver", SETTINGS, ids=repr)
every_kind = pytest.mark.parametrize("kind", KINDS)


def asked(kind: str, **options: Any) -> Problem:
    settings: dict[str, Any] = {"cohort": X, "target": 1, "margin": 0.1, "budgets": BUDGETS} | options
    return Problem(classifier=KINDS[kind](), **settings)


HOURS = {"hours": Budget(30.0, {"x0": 1.0, "x1": 0.5}, "absolute"), "x2": 2.0, "people": Budget(12, cost="count")}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"limits": "observed", "directions": {"x1": "down"}},
    {"budgets": HOURS, "target": 0},
]


@pytest.mark.parametrize(("solver", "kind"), by_turns(SETTINGS, KINDS, 4), ids=named)
def test_plans_are_lawful_and_repeatable(solver: Solver, kind: str) -> None:
    """In the short run a kind and a solver meet in one of the three questions, and one pair in two is asked twice."""
    turn = list(KINDS).index(kind) + SETTINGS.index(solver)
    for options in OPTIONS if LONG else [OPTIONS[turn % len(OPTIONS)]]:
        plan = solve(asked(kind, **options), solver, seed=3)
        assert_lawful(asked(kind, **options), plan)
        if LONG or turn // len(OPTIONS) % 2 == 0:
            assert same(plan, solve(asked(kind, **options), solver, seed=3))
        assert plan.count > 0 or solver in DEFAULTS


@pytest.mark.parametrize(("solver", "kind"), by_turns(SETTINGS, KINDS, 4), ids=named)
def test_no_budget_no_flip_and_that_is_optimal(solver: Solver, kind: str) -> None:
    plan = solve(asked(kind, budgets={"x0": 0.0, "x1": 0.0}), solver)
    assert (plan.count, plan.bound, plan.status) == (0, 0.0, Status.OPTIMAL)


@pytest.mark.parametrize(("solver", "kind"), by_turns(SOLVERS, KINDS, 6), ids=named)
def test_a_linear_model_leaves_nobody_open_when_budgets_are_endless(solver: Solver, kind: str) -> None:
    problem = asked(kind, budgets=dict.fromkeys(BUDGETS, math.inf))
    plan = solve(problem, solver)
    assert (problem.linear is not None) == (
        "network" not in kind and kind not in ("torch decision", "ensemble", "tempered")
    )
    if problem.linear is not None:
        assert plan.fate_counts()[Fate.LEFT_OUT] == plan.fate_counts()[Fate.NOT_FOUND] == 0
        assert (plan.status, plan.bound) == (Status.OPTIMAL, plan.worth)


@pytest.mark.parametrize(("solver", "kind"), by_turns(SETTINGS, KINDS, 6), ids=named)
def test_the_order_of_rows_does_not_matter(solver: Solver, kind: str) -> None:
    ids = [f"P{j:02}" for j in range(len(X))]
    plans = []
    for order in (np.arange(len(X)), np.random.default_rng(1).permutation(len(X))):
        plan = solve(asked(kind, cohort=Cohort.table(X[order], ids=[ids[j] for j in order])), solver)
        plans.append({i: tuple(d) for i, d in zip(plan.ids, plan.changes, strict=True)})
    assert plans[0] == plans[1]


@every_kind
def test_a_greater_margin_is_no_easier(kind: str) -> None:
    """Who passes with the greater margin passes with the smaller one."""
    easy, hard = (solve(asked(kind, margin=margin, budgets=dict.fromkeys(BUDGETS, 1e4))) for margin in (0.05, 0.4))
    assert set(np.flatnonzero(hard.fates == Fate.ALREADY)) <= set(np.flatnonzero(easy.fates == Fate.ALREADY))
    assert hard.count > 0
    assert (hard.confidence_after >= 0.4).all()


@every_setting
def test_scikit_learns_models_are_left_as_found(solver: Solver) -> None:
    for kind in ("logistic", "svc", "network"):
        before = pickle.dumps(fitted(kind))
        solve(
            Problem(classifier=SklearnClassifier(fitted(kind)), cohort=X, target=1, margin=0.1, budgets=BUDGETS), solver
        )
        assert pickle.dumps(fitted(kind)) == before
