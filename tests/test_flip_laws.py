"""Laws of the cheapest flip that need no right answer: limits to the last bit, freezing, widening, scaling, batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip import Budget, Problem, TorchClassifier
from maxflip.flips import FeaturePrices, Flips, cheapest_flips
from maxflip.judge import admissible
from tests.conftest import LONG
from tests.examples import small_net

Floats = NDArray[np.float64]
WIDTH = 4
KINDS = ["squared", "absolute", "mixed"]
FEW = settings(max_examples=2000 if LONG else 50)


@dataclass(frozen=True)
class Question:
    """A small random problem; what a law varies is given to `problem`."""

    seed: int
    model: str  # "linear" or "net"
    classes: int
    kind: str
    n: int = 6

    def net(self) -> torch.nn.Module:
        if self.model == "net":
            return small_net(WIDTH, self.classes, self.seed, dtype=torch.float64 if self.seed % 2 else torch.float32)
        rng = np.random.default_rng(self.seed)
        net = torch.nn.Linear(WIDTH, self.classes, dtype=torch.float64)
        with torch.no_grad():
            net.weight.copy_(torch.tensor(rng.normal(size=(self.classes, WIDTH)) * 1.5))
            net.bias.copy_(torch.tensor(rng.normal(size=self.classes)))
        return net

    def start(self) -> Floats:
        """Values whose last bits matter: of several sizes, so that upper - x rounds."""
        rng = np.random.default_rng(self.seed + 1)
        return np.asarray(rng.normal(size=(self.n, WIDTH)) * 10.0 ** rng.uniform(-2, 0.5, WIDTH))

    def budgets(self) -> dict[str, Budget]:
        if self.kind != "mixed":
            return {f"x{i}": Budget(1.0, cost=self.kind) for i in range(WIDTH)}  # type: ignore[arg-type]
        shared = Budget(1.0, {"x0": 0.5, "x1": 1.0, "x3": 2.0}, "absolute")
        return {"x0": Budget(1.0), "shared": shared, "x2": Budget(1.0, cost="absolute"), "x3": Budget(1.0)}

    def prices(self) -> Floats:
        return np.random.default_rng(self.seed + 2).uniform(0.2, 2.0, len(self.budgets()))

    def box(self, factor: float = 1.0) -> tuple[Floats, Floats]:
        """(n, F) limits around the start, so tight that flips often end on them; some starts lie outside."""
        rng = np.random.default_rng(self.seed + 3)
        below, above = rng.exponential(0.7, size=(2, self.n, WIDTH))
        outside = rng.random(size=(self.n, WIDTH)) < 0.1
        low = self.start() - np.where(outside, -0.1, factor * below)
        return low, np.maximum(self.start() + factor * above, low)

    def directions(self) -> dict[str, str]:
        rng = np.random.default_rng(self.seed + 4)
        return {f"x{i}": str(rng.choice(["up", "down"])) for i in range(WIDTH) if rng.random() < 0.3}

    def problem(self, **options: Any) -> Problem:
        goal: dict[str, Any] = {"margin": 0.1} if self.seed % 3 else {"threshold": 0.6}
        asked = {"budgets": self.budgets(), "target": 1} | goal | options
        return Problem(classifier=TorchClassifier(self.net(), output="logits"), cohort=self.start(), **asked)


def as_limits(box: tuple[Floats, Floats]) -> dict[str, tuple[Floats, Floats]]:
    return {f"x{i}": (box[0][:, i], box[1][:, i]) for i in range(WIDTH)}


def questions(*models: str) -> st.SearchStrategy[Question]:
    return st.builds(
        Question, st.integers(0, 10**6), st.sampled_from(models), st.integers(2, 5), st.sampled_from(KINDS)
    )


def flips_of(problem: Problem, prices: Floats) -> Flips:
    with problem.classifier.borrowed():
        return cheapest_flips(problem, np.arange(len(problem)), FeaturePrices.at(problem, prices))


def costs(problem: Problem, flips: Flips, prices: Floats) -> Floats:
    """(n,): inf where no flip was found"""
    at = FeaturePrices.at(problem, prices)
    d = flips.changes[:, problem.actionable]
    return np.where(flips.found, d**2 @ at.squared + np.abs(d) @ at.absolute, np.inf)


def open_rows(problem: Problem) -> NDArray[np.bool_]:
    """Those who do not pass where they stand: of the others no flip is asked."""
    everyone = np.arange(len(problem))
    return ~admissible(problem, everyone, np.zeros((len(problem), WIDTH)))


@FEW
@given(questions("linear", "net"))
def test_limits_and_directions_hold_to_the_last_bit_and_flips_pass_the_judge(question: Question) -> None:
    low, high = question.box()
    ways = question.directions()
    problem = question.problem(limits=as_limits((low, high)), directions=ways)
    flips = flips_of(problem, question.prices())
    x, d = question.start(), flips.changes
    assert np.isfinite(d).all()
    assert (x + d >= np.minimum(low, x)).all()
    assert (x + d <= np.maximum(high, x)).all()
    for name, way in ways.items():
        assert (d[:, int(name[1])] * (1 if way == "up" else -1) >= 0).all()
    assert (d[~flips.found] == 0).all()
    assert admissible(problem, flips.rows[flips.found], d[flips.found]).all()
    assert not (flips.found & flips.unreachable).any()


@pytest.mark.parametrize("model", ["linear", "net"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_limits_of_these_questions_bind(model: str, kind: str) -> None:
    """Or the law above would say nothing: many flips end exactly on a limit, and some samples have no flip."""
    on_limit = found = missed = 0
    for seed in range(20):
        question = Question(seed, model, 2 + seed % 4, kind)
        low, high = question.box()
        problem = question.problem(limits=as_limits((low, high)))
        flips = flips_of(problem, question.prices())
        after = question.start() + flips.changes
        touches = ((after == low) | (after == high)) & (flips.changes != 0)
        on_limit += int(touches.any(axis=1)[flips.found].sum())
        found += int((flips.found & open_rows(problem)).sum())
        missed += int((~flips.found).sum())
    assert on_limit >= 10
    assert found >= 20
    assert missed >= 5


@FEW
@given(questions("linear", "net"), st.integers(0, WIDTH - 1))
def test_a_limit_that_freezes_a_feature_equals_removing_its_budget(question: Question, pinned: int) -> None:
    name, column = f"x{pinned}", question.start()[:, pinned]
    budgets = {f"x{i}": b for i, b in enumerate(Question(question.seed, "net", 2, "squared").budgets().values())}
    if question.kind != "squared":
        budgets = {n: Budget(1.0, cost="absolute" if question.kind == "absolute" or n < "x2" else "squared") for n in budgets}
    prices = np.random.default_rng(question.seed).uniform(0.2, 2.0, WIDTH)
    frozen = question.problem(budgets=budgets, limits={name: (column, column)})
    removed = question.problem(budgets={n: b for n, b in budgets.items() if n != name})
    a, b = flips_of(frozen, prices), flips_of(removed, np.delete(prices, pinned))
    assert (a.changes[:, pinned] == 0).all()
    np.testing.assert_array_equal(a.found, b.found)
    np.testing.assert_allclose(
        costs(frozen, a, prices),
        costs(removed, b, np.delete(prices, pinned)),
        rtol=1e-9 if question.model == "linear" else 1e-6,
    )


@FEW
@given(questions("linear"), st.floats(1.0, 5.0))
def test_wider_limits_never_make_the_cheapest_flip_of_a_linear_model_dearer(question: Question, factor: float) -> None:
    tight = question.problem(limits=as_limits(question.box()))
    wide = question.problem(limits=as_limits(question.box(factor)))
    prices = question.prices()
    before, after = (costs(p, flips_of(p, prices), prices) for p in (tight, wide))
    assert (after <= before * (1 + 1e-9)).all()


@FEW
@given(questions("linear"), st.floats(1e-4, 1e4))
def test_scaling_all_prices_leaves_linear_flips_as_they_are(question: Question, factor: float) -> None:
    problem = question.problem(limits=as_limits(question.box(3.0)))
    prices = question.prices()
    one, other = flips_of(problem, prices), flips_of(problem, factor * prices)
    np.testing.assert_array_equal(one.found, other.found)
    np.testing.assert_array_equal(one.unreachable, other.unreachable)
    np.testing.assert_allclose(costs(problem, one, prices), costs(problem, other, prices), rtol=1e-9)
    np.testing.assert_allclose(one.changes, other.changes, rtol=1e-9, atol=1e-9)


@FEW
@given(questions("linear"))
def test_linear_flips_are_the_same_alone_and_in_a_batch(question: Question) -> None:
    problem = question.problem(limits=as_limits(question.box(2.0)))
    prices = question.prices()
    together = flips_of(problem, prices)
    at = FeaturePrices.at(problem, prices)
    for j in range(question.n):
        alone = cheapest_flips(problem, np.array([j]), at)
        assert alone.found[0] == together.found[j]
        assert alone.unreachable[0] == together.unreachable[j]
        np.testing.assert_allclose(alone.changes[0], together.changes[j], rtol=1e-9, atol=1e-9)
