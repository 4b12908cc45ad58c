"""Ensemble: a flip must pass in every member. Closed forms for half-spaces, and the same laws for any members."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from maxflip import (
    Budget,
    Ensemble,
    Fate,
    InputError,
    ModelError,
    Nearest,
    Problem,
    ProblemError,
    SklearnClassifier,
    Status,
    Tempered,
    TorchClassifier,
    solve,
)
from maxflip._util.types import Floats
from maxflip.judge import confidence_after
from maxflip.models import Classifier
from tests.examples import linear_net, small_net
from tests.test_flips import flips_at

LINE = 2 * math.atanh(0.1)


def logits(net: nn.Module, **options: Any) -> TorchClassifier:
    return TorchClassifier(net, output="logits", **options)


def problem_of(classifier: Classifier, x: Any, **options: Any) -> Problem:
    budgets = {f"x{i}": 5.0 for i in range(np.shape(x)[1])}
    settings: dict[str, Any] = {"target": 1, "margin": 0.1, "budgets": budgets} | options
    return Problem(classifier=classifier, cohort=np.asarray(x, dtype=float), **settings)


def test_two_half_spaces_meet_in_a_corner() -> None:
    """Members want x0 and x1 beyond the line, each: the cheapest flip is the corner, at any prices."""
    pair = Ensemble([logits(linear_net([1.0, 0.0])), logits(linear_net([0.0, 1.0]))])
    x = np.array([[-1.0, -2.0], [3.0, -1.0], [-0.5, 7.0]])
    flips = flips_at(problem_of(pair, x), 1.0, 3.0)
    expected = [[LINE + 1, LINE + 2], [0.0, LINE + 1], [LINE + 0.5, 0.0]]
    np.testing.assert_allclose(flips.changes, expected, atol=1e-5)


def cheapest_into_two(g: Floats, r: Floats, price: Floats) -> float:
    """min sum price d^2 with g d >= r, g (2, F): one half-space is enough, or both hold with equality."""
    for u in (0, 1):
        d = max(r[u], 0.0) * (g[u] / price) / (g[u] ** 2 / price).sum()
        if (g @ d >= r - 1e-12).all():
            return float(price @ d**2)
    return float(r @ np.linalg.solve((g / price) @ g.T, r))


@pytest.mark.parametrize("decision", [False, True])
def test_the_cheapest_flip_into_two_half_spaces_is_the_closed_form(decision: bool) -> None:
    rng = np.random.default_rng(0)
    margin, line = (2.0, 2.0) if decision else (0.1, LINE)
    for _ in range(20):
        g, price = rng.normal(size=(2, 3)), rng.uniform(0.2, 3, 3)
        pair = Ensemble([TorchClassifier(linear_net(w), output="decision" if decision else "logits") for w in g])
        x = rng.normal(size=(10, 3))
        flips = flips_at(problem_of(pair, x, margin=margin), *price)
        for j in np.flatnonzero((x @ g.T < line - 0.01).any(axis=1)):
            expected = cheapest_into_two(g, line - g @ x[j], price)
            assert flips.found[j]
            assert flips.changes[j] ** 2 @ price == pytest.approx(expected, rel=1e-5)


def test_members_that_contradict_each_other_flip_nobody_and_that_is_proved() -> None:
    against = Ensemble([logits(linear_net([1.0, 0.3])), logits(linear_net([-1.0, -0.3]))])
    plan = solve(problem_of(against, [[-1.0, 0.0], [2.0, 1.0], [0.0, 0.0]]))
    assert (plan.fates == Fate.UNREACHABLE).all()
    assert (plan.count, plan.bound, plan.status) == (0, 0.0, Status.OPTIMAL)


def test_each_member_may_choose_its_own_of_several_wanted_classes() -> None:
    """Against a fine grid: the set that passes is no longer that of any single class."""
    rng = np.random.default_rng(5)
    nets = [nn.Linear(2, 3, dtype=torch.float64) for _ in range(2)]
    with torch.no_grad():
        for net in nets:
            net.weight.copy_(torch.tensor(rng.normal(size=(3, 2))))
            net.bias.copy_(torch.tensor(rng.normal(size=3)))
    x = rng.normal(size=(12, 2)) * 2
    problem = problem_of(Ensemble([logits(n) for n in nets]), x, target={0, 1}, limits={"x0": (-4, 4), "x1": (-4, 4)})
    assert problem.linear is not None
    flips = flips_at(problem, 1.0, 2.0)
    axis = np.linspace(-4, 4, 401)
    points = np.array(list(itertools.product(axis, axis)))
    tried = 0
    for j in range(len(x)):
        d = points - x[j]
        inside = confidence_after(problem, np.full(len(d), j), d) >= 0.1 + problem.guard
        if confidence_after(problem, np.array([j]), np.zeros((1, 2)))[0] >= 0.1 or not inside.any():
            continue
        best = (d[inside] ** 2 @ [1.0, 2.0]).min()
        mine = flips.changes[j] ** 2 @ [1.0, 2.0]
        assert flips.found[j]
        assert mine <= best * (1 + 1e-9)
        assert math.sqrt(mine) >= math.sqrt(best) - 0.05  # the grid is that fine
        tried += 1
    assert tried >= 3


@pytest.mark.parametrize("kind", ["linear", "network", "three classes", "float32"])
def test_an_ensemble_of_one_is_its_member_bit_for_bit(kind: str) -> None:
    net: nn.Module = {
        "linear": linear_net([1.0, -0.5, 0.3]),
        "network": small_net(3, dtype=torch.float64),
        "three classes": nn.Linear(3, 3, dtype=torch.float64),
        "float32": small_net(3),
    }[kind]
    x = np.random.default_rng(3).normal(size=(20, 3))
    alone, ensemble = (solve(problem_of(c, x)) for c in (logits(net), Ensemble([Ensemble([logits(net)])])))
    assert alone.count > 0
    np.testing.assert_array_equal(alone.changes, ensemble.changes)
    np.testing.assert_array_equal(alone.fates, ensemble.fates)
    np.testing.assert_array_equal(alone.confidence_before, ensemble.confidence_before)
    np.testing.assert_array_equal(alone.confidence_after, ensemble.confidence_after)
    assert (alone.guard, alone.spend, alone.notices) == (ensemble.guard, ensemble.spend, ensemble.notices)


def mixed_members(x: Floats) -> list[Any]:
    """A float32 network, a calmer float64 one, and a regression of scikit-learn on what the first says."""
    first = small_net(3, seed=1)
    with torch.no_grad():
        y = first(torch.tensor(x).float()).argmax(dim=1).numpy()
    return [
        logits(first),
        Tempered(logits(small_net(3, seed=1, dtype=torch.float64)), 1.5),
        SklearnClassifier(LogisticRegression().fit(x, y)),
    ]


def test_flips_pass_in_each_member_alone() -> None:
    x = np.random.default_rng(4).normal(size=(60, 3))
    members = mixed_members(x)
    ensemble = Ensemble(members)
    assert ensemble.dtype == torch.float32
    assert ensemble.classes == ("0", "1")
    problem = problem_of(ensemble, x)
    assert problem.linear is None
    plan = solve(problem)
    assert plan.count > 5
    least = np.full(plan.count, np.inf)
    for member in members:
        own = problem_of(member, x)
        confidence = confidence_after(own, plan.selected, plan.changes)
        assert (confidence >= 0.1 + plan.guard).all()
        least = np.minimum(least, confidence)
    np.testing.assert_allclose(plan.confidence_after, least, rtol=1e-12)  # another batch, another last bit
    already = plan.fates == Fate.ALREADY
    standing = [confidence_after(problem_of(m, x), np.arange(60), np.zeros((60, 3))) for m in members]
    np.testing.assert_array_equal(already, np.min(standing, axis=0) >= 0.1)


def test_one_more_member_never_flips_more() -> None:
    """For linear members and one budget plans are optimal, so the law holds exactly."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(50, 3)) - 1
    nets = [logits(linear_net(w)) for w in rng.normal(size=(3, 3)) * 0.3 + 1]
    budgets = {"all": Budget(30.0, {f"x{i}": 1.0 for i in range(3)})}
    counts = []
    for number in (1, 2, 3):
        plan = solve(problem_of(Ensemble(nets[:number]), x, budgets=budgets), Nearest())
        counts.append(plan.count + plan.fate_counts()[Fate.ALREADY])
    assert counts[0] > counts[1] >= counts[2] > 0


def test_the_members_are_left_as_found() -> None:
    nets = [nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)).train() for _ in range(2)]
    solve(problem_of(Ensemble([logits(n) for n in nets]), np.random.default_rng(0).normal(size=(20, 3))))
    assert all(part.training for net in nets for part in net.modules())


def test_members_must_fit_together() -> None:
    two, three = logits(small_net(3), classes=["a", "b"]), logits(small_net(3, 3), classes=["a", "b", "c"])
    with pytest.raises(InputError, match="at least one"):
        Ensemble([])
    with pytest.raises(ModelError, match=r"member 3 has the classes \['a', 'b', 'c'\], member 2 has \['a', 'b'\]"):
        Ensemble([logits(small_net(3)), two, three])
    with pytest.raises(ModelError, match="same order"):
        Ensemble([two, logits(small_net(3), classes=["b", "a"])])
    with pytest.raises(ModelError, match="some decision values"):
        Ensemble([two, TorchClassifier(small_net(3), output="decision")])
    with pytest.raises(ModelError, match="different numbers of classes: 2, 3"):
        problem_of(Ensemble([logits(small_net(3)), logits(small_net(3, 3))]), np.zeros((4, 3)))
    with pytest.raises(ModelError, match=r"member 2 of 2: the model raised RuntimeError on a batch of shape \(4, 3\)"):
        problem_of(Ensemble([two, logits(small_net(5))]), np.eye(4)[:, :3])


def test_every_member_has_its_say_about_columns() -> None:
    import pandas as pd

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["age", "bmi"])
    model = SklearnClassifier(LogisticRegression().fit(frame, frame["age"] > 0))
    pair = Ensemble([logits(small_net(2), classes=["False", "True"]), model])
    with pytest.raises(ModelError, match="trained on 2 columns: 'age', 'bmi'"):
        Problem(classifier=pair, cohort=frame[["bmi", "age"]], target=1, margin=0.1, budgets={"age": 1.0})
    huge = frame.assign(age=1e300)
    with pytest.raises(ProblemError, match="beyond the model's float32"):
        Problem(classifier=pair, cohort=huge, target=1, margin=0.1, budgets={"age": 1.0})
