"""Laws of the cheapest flip that need no right answer: limits to the last bit, freezing, widening, scaling, batches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip import Budget, Problem, TorchClassifier
from maxflip.judge import admissible
from maxflip.search import FeaturePrices, Flips, cheapest_flips
from tests.conftest import LONG
from tests.examples import small_net

Floats = NDArray[np.float64]
WIDTH = 4
KINDS = ["squared", "absolute", "mixed"]
FEW = settings(max_examples=2000 if LONG else 8)


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
            return self.own_budgets()
        shared = Budget(1.0, {"x0": 0.5, "x1": 1.0, "x3": 2.0}, "absolute")
        return {"x0": Budget(1.0), "shared": shared, "x2": Budget(1.0, cost="absolute"), "x3": Budget(1.0)}

    def own_budgets(self) -> dict[str, Budget]:
        """One for each feature and nothing shared, so that one can be left out."""
        kinds = {"squared": ["squared"] * 4, "absolute": ["absolute"] * 4, "mixed": ["squared", "absolute"] * 2}
        return {f"x{i}": Budget(1.0, cost=cost) for i, cost in enumerate(kinds[self.kind])}

    def prices(self) -> Floats:
        return np.random.default_rng(self.seed + 2).uniform(0.2, 2.0, len(self.budgets()))

    def box(self, factor: float = 1.0) -> tuple[Floats, Floats]:
        """(n, F) limits around the start, so tight that flips often end on them; some starts lie outside.

        Many lie just across zero: there x + (limit - x) rounds to something beyond the limit.
        """
        rng = np.random.default_rng(self.seed + 3)
        x = self.start()
        below, above = factor * rng.exponential(1.0, size=(2, *x.shape))
        across = factor * 10.0 ** rng.uniform(-9, -3, x.shape)
        crosses = rng.random(x.shape) < 0.5
        low = np.where(crosses & (x > 0), -across, x - below)
        high = np.where(crosses & (x < 0), across, x + above)
        outside = rng.random(x.shape) < 0.1
        return np.where(outside, x + 0.1, low), np.where(outside, x + 0.1 + above, high)

    def directions(self) -> dict[str, str]:
        rng = np.random.default_rng(self.seed + 4)
        return {f"x{i}": str(rng.choice(["up", "down"])) for i in range(WIDTH) if rng.random() < 0.3}

    def target(self) -> NDArray[np.int64]:
        """For each sample a class that is not its likeliest."""
        net = self.net()
        with torch.no_grad():
            likeliest = net(torch.tensor(self.start(), dtype=next(net.parameters()).dtype)).argmax(dim=1).numpy()
        shift = np.random.default_rng(self.seed + 5).integers(1, self.classes, self.n)
        return np.asarray((likeliest + shift) % self.classes)

    def problem(self, **options: Any) -> Problem:
        goal: dict[str, Any] = {"margin": 0.1} if self.seed % 3 else {"threshold": 0.6}
        asked: dict[str, Any] = {"budgets": self.budgets(), "target": self.target()} | goal | options
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
    """Or the law above would say little: many flips end on a limit, and some samples have no flip."""
    on_limit = found = missed = 0
    seeds = 20 if LONG else 6
    for seed in range(seeds):
        question = Question(seed, model, 2 + seed % 4, kind, n=12)
        low, high = question.box()
        problem = question.problem(limits=as_limits((low, high)))
        flips = flips_of(problem, question.prices())
        after = question.start() + flips.changes
        # x + (limit - x) may round, and is then settled one bit inside.
        near = np.isclose(after, low, rtol=1e-14, atol=1e-15) | np.isclose(after, high, rtol=1e-14, atol=1e-15)
        on_limit += int((near & (flips.changes != 0)).any(axis=1)[flips.found].sum())
        found += int(flips.found.sum())
        missed += int((~flips.found).sum())
    assert on_limit >= seeds / 2
    assert found >= seeds
    assert missed >= seeds / 4


def costs_frozen_and_removed(question: Question, pinned: int) -> tuple[Floats, Floats]:
    """With limits that freeze a feature, and without its budget."""
    name, column = f"x{pinned}", question.start()[:, pinned]
    budgets = question.own_budgets()
    prices = question.prices()
    other_prices = np.delete(prices, pinned)
    frozen = question.problem(budgets=budgets, limits={name: (column, column)})
    removed = question.problem(budgets={n: b for n, b in budgets.items() if n != name})
    one, other = flips_of(frozen, prices), flips_of(removed, other_prices)
    assert (one.changes[:, pinned] == 0).all()
    return costs(frozen, one, prices), costs(removed, other, other_prices)


@FEW
@given(questions("linear"), st.integers(0, WIDTH - 1))
def test_a_limit_that_freezes_a_feature_of_a_linear_model_equals_removing_its_budget(
    question: Question, pinned: int
) -> None:
    np.testing.assert_allclose(*costs_frozen_and_removed(question, pinned), rtol=1e-9)


def test_a_limit_that_freezes_a_feature_of_a_network_equals_removing_its_budget() -> None:
    """For 98 of 100: the last bit of a sum may decide which way a walk goes."""
    agree = []
    for seed in range(60 if LONG else 8):
        question = Question(seed, "net", 2 + seed % 4, KINDS[seed % 3], n=30)
        frozen, removed = costs_frozen_and_removed(question, pinned=seed % WIDTH)
        agree.append(np.isclose(frozen, removed, rtol=1e-6, atol=0.0))  # inf is close to inf: both have none
    assert np.mean(agree) >= 0.98


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
    """Costs agree to 1e-9; changes to 1e-6 only: where absolute prices meet three classes or more, the cost is so flat
    around its least that changes 1e-7 apart cost the same to 1e-9."""
    problem = question.problem(limits=as_limits(question.box(3.0)))
    prices = question.prices()
    one, other = flips_of(problem, prices), flips_of(problem, factor * prices)
    np.testing.assert_array_equal(one.found, other.found)
    np.testing.assert_array_equal(one.unreachable, other.unreachable)
    np.testing.assert_allclose(costs(problem, one, prices), costs(problem, other, prices), rtol=1e-9)
    np.testing.assert_allclose(one.changes, other.changes, rtol=0, atol=1e-6)


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


def test_the_code_in_the_page_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "flips.md").read_text()
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == printed
