"""Classifiers without probabilities: margins in the units of their decision values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Perceptron, RidgeClassifier, RidgeClassifierCV, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from torch import nn

from maxflip import Fate, InputError, Plan, Problem, ProblemError, SklearnClassifier, TorchClassifier, solve
from tests.examples import linear_net, small_net
from tests.test_flips import flips_at
from tests.test_sklearn import fit, labels, rows, scaled


def decision_problem(net: nn.Module, x: Any, margin: float, target: Any = 1, **options: Any) -> Problem:
    budgets = {f"x{i}": 1e6 for i in range(np.shape(x)[1])}
    classifier = TorchClassifier(net, output="decision")
    return Problem(
        classifier=classifier, cohort=np.asarray(x), target=target, margin=margin, **{"budgets": budgets} | options
    )


@pytest.mark.parametrize("margin", [0.0, 1.0, 7.5])
@pytest.mark.parametrize("target", [0, 1])
def test_two_classes_lead_by_the_decision_value_itself(margin: float, target: int) -> None:
    """d = need w / (w.w), with need = margin - s for class 1 and margin + s for class 0."""
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=3), rng.normal(size=(50, 3))
    sign = 1 if target == 1 else -1
    need = margin - sign * (x @ w + 0.4)
    x, need = x[need > 0.01], need[need > 0.01]
    flips = flips_at(decision_problem(linear_net(w, 0.4), x, margin, target), 1.0, 1.0, 1.0)
    assert flips.found.all()
    np.testing.assert_allclose(flips.changes, sign * need[:, None] * w / (w @ w), rtol=1e-6, atol=1e-8)


def three_scores() -> nn.Module:
    """Decision values x0, x1 and 0."""
    net = nn.Linear(2, 3, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
        net.bias.zero_()
    return net


def test_several_classes_make_a_polyhedron() -> None:
    """Class 0 leads by 1 where x0 >= 1 and x0 - x1 >= 1."""
    problem = decision_problem(three_scores(), [[0.0, -5.0], [0.0, 1.0], [0.0, 3.0], [-1.0, 0.0]], 1.0, target=0)
    changes = flips_at(problem, 1.0, 1.0).changes
    np.testing.assert_allclose(changes, [[1.0, 0.0], [1.0, -1.0], [2.0, -2.0], [2.0, 0.0]], atol=1e-5)


def test_any_of_several_wanted_classes_will_do() -> None:
    problem = decision_problem(three_scores(), [[-3.0, -1.0], [-1.0, -3.0]], 1.0, target={0, 1})
    np.testing.assert_allclose(flips_at(problem, 1.0, 1.0).changes, [[0.0, 2.0], [2.0, 0.0]], atol=1e-6)


def test_what_is_out_of_reach_is_proved() -> None:
    problem = decision_problem(
        three_scores(), [[0.0, 0.0], [0.0, 4.0]], 1.0, target=0, limits={"x0": (-9, 3), "x1": (3, 9)}
    )
    plan = solve(problem)
    assert plan.fates.tolist() == [Fate.FLIPPED, Fate.UNREACHABLE]
    assert plan.bound == 1.0


def test_networks_are_searched_in_their_own_units() -> None:
    x = np.random.default_rng(1).normal(size=(40, 4))
    net = small_net(4, 3, scale=3.0, dtype=torch.float64)
    plan = solve(decision_problem(net, x, 1.5, target=2))
    assert plan.count > 10
    with torch.no_grad():
        z = net(torch.tensor(x[plan.selected] + plan.changes)).numpy()
    assert (z[:, 2] - z[:, :2].max(axis=1) >= 1.5).all()
    np.testing.assert_allclose(plan.confidence_after, z[:, 2] - z[:, :2].max(axis=1), rtol=1e-9)


@pytest.mark.parametrize("factor", [2.0**-60, 2.0**60])
@pytest.mark.parametrize("kind", ["linear", "network"])
def test_other_units_of_the_decision_values_change_nothing(factor: float, kind: str) -> None:
    """The guard is relative to the size of the outputs."""
    x = np.random.default_rng(1).normal(size=(30, 4))
    net = nn.Linear(4, 3, dtype=torch.float64) if kind == "linear" else small_net(4, 3, dtype=torch.float64)
    plans: list[Plan] = []
    for scale in (1.0, factor):
        last = nn.Linear(3, 3, bias=False, dtype=torch.float64)
        with torch.no_grad():
            last.weight.copy_(scale * torch.eye(3))
        plans.append(solve(decision_problem(nn.Sequential(net, last), x, 0.5 * scale)))
    assert plans[0].count > 10
    assert plans[1].guard == pytest.approx(plans[0].guard * factor, rel=1e-9)
    np.testing.assert_array_equal(plans[0].selected, plans[1].selected)
    np.testing.assert_allclose(plans[0].changes, plans[1].changes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"threshold": 0.5}, "threshold = 0.5: a threshold is a probability"),
        ({"margin": -1.0}, "margin = -1.0: must be a finite number >= 0"),
        ({"margin": math.inf}, "finite"),
        ({"margin": math.nan}, "finite"),
        ({"margin": "1"}, "finite"),
        ({}, "neither"),
    ],
)
def test_wrong_requirements(options: dict[str, Any], part: str) -> None:
    classifier = TorchClassifier(linear_net([1.0]), output="decision")
    with pytest.raises(ProblemError, match=part):
        Problem(classifier=classifier, cohort=[[0.0]], target=1, budgets={"x0": 1.0}, **options)


def test_the_units_are_said(tmp_path: Path) -> None:
    problem = decision_problem(linear_net([1.0]), [[-1.0]], 3.0)
    assert any("decision values, not probabilities" in notice for notice in problem.notices)
    plan = solve(problem)
    plan.save(tmp_path / "plan")
    assert Plan.load(tmp_path / "plan").notices == problem.notices
    assert Plan.load(tmp_path / "plan").confidence_after == pytest.approx([3.0], rel=1e-6)
    plan.report(tmp_path / "plan.html")
    assert "decision values, not probabilities" in (tmp_path / "plan.html").read_text()
    assert "output='decision'" in repr(problem.classifier)
    with pytest.raises(InputError, match="no probabilities"):
        TorchClassifier(linear_net([1.0]), output="decision").probabilities(torch.zeros(1, 1, dtype=torch.float64))


# --- scikit-learn's ---

MODELS = {
    "svc": scaled(LinearSVC()),
    "svc, bare": LinearSVC(max_iter=20),
    "svc in a search": GridSearchCV(scaled(LinearSVC()), {"linearsvc__C": [0.1, 1.0]}, cv=2),
    "one vs rest": OneVsRestClassifier(scaled(LinearSVC())),
    "ridge": scaled(RidgeClassifier()),
    "ridge, cv": scaled(RidgeClassifierCV()),
    "perceptron": scaled(Perceptron(random_state=0)),
    "hinge": scaled(SGDClassifier(random_state=0)),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_flips_hold_under_the_original_decision_function(name: str, classes: int) -> None:
    x = rows(200, seed=0)
    model = fit(MODELS[name], x, np.array(["low", "mid", "high"])[labels(x, classes)])
    classifier, cohort = SklearnClassifier(model), rows(40, seed=3)
    assert (classifier.output, classifier.is_decision) == ("decision", True)
    decided = model.decision_function(cohort)
    columns = np.column_stack([np.zeros(len(cohort)), decided]) if classes == 2 else decided
    with torch.no_grad():
        np.testing.assert_allclose(classifier.scores(torch.tensor(cohort)), columns, rtol=1e-9, atol=1e-9)
    margin = float(np.abs(decided).mean())  # well above what a probability could be, for some
    budgets = {"x0": 9e4, "x1": 1e4, "x2": 9e5, "x3": 9e2}
    problem = Problem(classifier=classifier, cohort=cohort, target="low", margin=margin, budgets=budgets)
    assert problem.linear is not None
    plan = solve(problem)
    assert plan.count > 0
    after = cohort[plan.selected] + plan.changes
    assert (model.predict(after) == "low").all()
    wanted = list(model.classes_).index("low")
    if classes == 2:
        assert (model.decision_function(after) * (1 if wanted == 1 else -1) >= margin).all()
    else:
        scores = model.decision_function(after)
        assert (scores[:, wanted] - np.delete(scores, wanted, axis=1).max(axis=1) >= margin).all()
