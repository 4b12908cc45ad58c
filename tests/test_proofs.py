"""What is called proved holds in floating point too: for the model, the judge and x + d as they are computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip import Budget, Cohort, Nearest, Plan, Prices, Problem, Tempered, TorchClassifier, judge, solve
from maxflip.errors import ModelError
from maxflip.search import FeaturePrices, cheapest_flips
from tests.conftest import LONG

Floats = NDArray[np.float64]
SOLVERS: list[Any] = [Nearest(), Prices()]


def linear_model(weight: Any, bias: Any) -> torch.nn.Linear:
    w, b = torch.tensor(np.array(weight, dtype=float)), torch.tensor(np.array(bias, dtype=float))
    net = torch.nn.Linear(w.shape[1], w.shape[0], dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(w)
        net.bias.copy_(b)
    return net


def far_away(seed: int, offset: float, classes: int = 2, n: int = 6) -> tuple[dict[str, Any], Floats]:
    """Samples around `offset`, limits, and a model whose logits are moderate there though |w||x| is not; and corners
    (n, 200, F) of each sample's limits, or near them."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 5))
    x = offset * rng.choice([1.0, rng.random()], width) + rng.normal(size=(n, width)) * 10 ** rng.uniform(0, 1)
    w = rng.normal(size=(classes, width)) * 10 ** rng.uniform(-2, 0)
    b = -np.median(x @ w.T, axis=0)
    low, high = x.min(axis=0) - 2 * rng.random(width), x.max(axis=0) + 2 * rng.random(width)
    asked = {
        "classifier": TorchClassifier(linear_model(w, b), output="logits"),
        "cohort": x,
        "target": 0,
        "limits": {f"x{i}": (low[i], high[i]) for i in range(width)},
    }
    share = np.where(
        rng.random((n, 200, width)) < 0.7, rng.integers(0, 2, (n, 200, width)), rng.random((n, 200, width))
    )
    return asked, low + share * (high - low) - x[:, None, :]


def budgets(width: int, amount: float) -> dict[str, float]:
    return {f"x{i}": amount for i in range(width)}


def confidences(problem: Problem, tries: Floats) -> tuple[Floats, Floats]:
    """(n, t) the judge's confidence of each try, and the tries as they may be stored."""
    rows = np.repeat(np.arange(len(problem)), tries.shape[1])
    settled = problem.settle(rows, tries.reshape(len(rows), -1))
    return judge.confidence_after(problem, rows, settled).reshape(tries.shape[:2]), settled.reshape(tries.shape)


def flipped_by(problem: Problem, tries: Floats) -> NDArray[np.bool_]:
    """(n,): whether the judge accepts one of them"""
    rows = np.repeat(np.arange(len(problem)), tries.shape[1])
    _, settled = confidences(problem, tries)
    ok = judge.admissible(problem, rows, settled.reshape(len(rows), -1))
    return np.asarray(ok.reshape(tries.shape[:2]).any(axis=1))


def just_possible(seed: int, offset: float, classes: int = 2) -> tuple[Problem, Floats] | None:
    """What is asked is a hair less than the best of some sample's corners reaches."""
    asked, tries = far_away(seed, offset, classes)
    if is_refused(asked):
        return None
    amounts = budgets(tries.shape[2], 1e6)
    loose = Problem(margin=0.1, budgets=amounts, **asked)
    best = confidences(loose, tries)[0].max(axis=1)
    some = best[(best > 0.001) & (best < 0.999)]
    if not len(some):
        return None
    required = float(some[seed % len(some)] - 1.0001 * loose.guard)
    return Problem(margin=required, budgets=amounts, **asked), tries


OFFSETS = (1.0, 4e8, 1e10, 1e12)
THREE = OFFSETS if LONG else (1e10,)  # with three classes, a solve takes ten times as long


@pytest.mark.parametrize(("offset", "classes"), [*((o, 2) for o in OFFSETS), *((o, 3) for o in THREE)])
def test_nothing_is_out_of_reach_that_a_corner_reaches(offset: float, classes: int) -> None:
    tried = 0
    for seed in range(20 if LONG else 8 if classes == 2 else 4):
        case = just_possible(seed, offset, classes)
        if case is None:
            continue
        problem, tries = case
        possible = flipped_by(problem, tries)
        tried += int(possible.sum())
        plan = solve(problem, SOLVERS[seed % 2])
        assert not (possible & (plan.fates == "unreachable")).any()
    assert tried > (10 if LONG else 3 if classes == 2 else 1)


def test_what_is_far_out_of_reach_is_still_proved_so_far_from_zero() -> None:
    net = linear_model([[0.0], [1.0]], [0.0, -4e8 - 10])
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=[[4e8], [4e8 + 9]],
        target=1,
        margin=0.1,
        budgets={"x0": 100.0},
        limits={"x0": (4e8 - 5, 4e8 + 9.5)},
    )
    assert solve(problem, Nearest()).fates.tolist() == ["unreachable", "unreachable"]
    assert solve(problem).bound == 0.0


def cheapened(problem: Problem, changes: Floats) -> Floats:
    """Flips scaled down as far as the judge lets them."""
    rows, best = np.arange(len(problem)), changes
    for part in np.repeat(10.0 ** -np.arange(1.0, 17.0), 10):
        trial = problem.settle(rows, best * (1.0 - part))
        best = np.where(judge.admissible(problem, rows, trial)[:, None], trial, best)
    return best


def is_refused(asked: dict[str, Any]) -> bool:
    """Whether the probe takes the rounding of so large values for a dependence between rows."""
    try:
        Problem(margin=0.1, budgets={"x0": 1.0}, **{**asked, "limits": None})
    except ModelError:
        return True
    return False


def bound_for_a_plan_that_just_fits(asked: dict[str, Any], width: int, cost: Any) -> tuple[float | None, int]:
    """The bound where the budgets are what a plan of all flips found, cheapened, draws; and how many it flips."""
    problem = Problem(margin=0.2, budgets={f"x{i}": Budget(1e3, cost=cost) for i in range(width)}, **asked)
    rows = np.arange(len(problem))
    flips = cheapest_flips(problem, rows, FeaturePrices.at(problem, np.ones(width)))
    stands = judge.confidence_after(problem, rows, 0 * flips.changes) >= problem.goal.required
    known = flips.found & ~stands
    changes = cheapened(problem, flips.changes)
    tight = problem.changed(
        budgets={f"x{i}": math.nextafter(a, math.inf) for i, a in enumerate(problem.ledger.spent(changes[known]))}
    )
    assert tight.ledger.fits(changes[known])
    bound = solve(tight).bound
    return bound, int(judge.verdict(tight, rows[known], changes[known]).kept.sum())


@settings(max_examples=2000 if LONG else 6)
@given(st.integers(0, 2**32 - 1), st.floats(0, 12), st.integers(2, 3), st.sampled_from(["squared", "absolute"]))
def test_no_plan_beats_the_bound_however_far_from_zero(seed: int, size: float, classes: int, cost: str) -> None:
    asked, tries = far_away(seed, 10.0**size, classes)
    if seed % 2:
        del asked["limits"]
    assume(not is_refused(asked))
    bound, count = bound_for_a_plan_that_just_fits(asked, tries.shape[2], cost)
    assert bound is not None
    assert bound >= count


@settings(max_examples=2000 if LONG else 3)
@given(st.integers(0, 2**32 - 1), st.floats(0, 12), st.integers(2, 4), st.sampled_from(SOLVERS))
def test_what_is_unreachable_no_lawful_change_flips(seed: int, size: float, classes: int, solver: Any) -> None:
    case = just_possible(seed, 10.0**size, classes)
    assume(case is not None)
    assert case is not None
    problem, tries = case
    plan = solve(problem, solver)
    assert not (flipped_by(problem, tries) & (plan.fates == "unreachable")).any()


@pytest.mark.parametrize("base", [1e16, 1.7e12])
def test_half_a_unit_of_the_last_place_comes_for_nothing(base: float) -> None:
    """z = -1 at the start and 0 one unit of the last place further; a little more than half of it gets there."""
    unit, n = float(np.spacing(base)), 10
    net = linear_model([[0.0], [1 / unit]], [0.0, -base / unit - 1])
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=np.full((n, 1), base),
        target=1,
        threshold=1 / (1 + math.exp(0.1)),
        budgets={"x0": n * (0.51 * unit) ** 2},
    )
    changes = np.full((n, 1), 0.505 * unit)
    assert problem.ledger.fits(changes)
    assert judge.verdict(problem, np.arange(n), changes).kept.all()
    bound = solve(problem).bound
    assert bound is None or bound >= n


def test_one_sample_at_the_size_of_a_time_in_seconds_and_a_tight_budget() -> None:
    base = 1.7e9
    unit = float(np.spacing(base))
    change = np.array([[1 + 0.51 * unit]])
    problem = Problem(
        classifier=TorchClassifier(linear_model([[0.0], [1.0]], [0.0, -base - 1]), output="logits"),
        cohort=[[base]],
        target=1,
        threshold=1 / (1 + math.exp(-0.9 * unit)),
        budgets={"x0": float(change[0, 0] ** 2) * (1 + 1e-15)},
    )
    assert problem.ledger.fits(change)
    assert judge.verdict(problem, np.arange(1), change).kept.all()
    bound = solve(problem).bound
    assert bound is None or bound >= 1


class Narrow(torch.nn.Module):
    """Computes in float32 inside, as many exported models with float64 inputs do."""

    def __init__(self, net: torch.nn.Linear) -> None:
        super().__init__()
        self.net = net.float()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z: torch.Tensor = self.net(x.float())
        return z.double()


@pytest.mark.parametrize("limited", [False, True])
def test_nothing_is_proved_of_a_model_that_is_narrower_inside(limited: bool) -> None:
    base, n = 100000.0, 10
    unit = float(np.spacing(np.float32(base)))
    net = Narrow(linear_model([[0.0], [1 / unit]], [0.0, -base / unit - 1]))
    problem = Problem(
        classifier=TorchClassifier(net, output="logits", dtype=torch.float64),
        cohort=np.full((n, 1), base),
        target=1,
        threshold=1 / (1 + math.exp(0.1)),
        budgets={"x0": n * (0.51 * unit) ** 2},
        limits={"x0": (base, base + 0.6 * unit)} if limited else None,
    )
    assert judge.admissible(problem, np.arange(n), np.full((n, 1), 0.505 * unit)).all()
    assert problem.linear is not None
    for solver in SOLVERS:
        plan = solve(problem, solver)
        assert plan.bound is None
        assert not (plan.fates == "unreachable").any()


CASTS: list[tuple[Callable[[torch.Tensor], torch.Tensor], bool]] = [
    (lambda z: z.double(), True),
    (lambda z: z.to(torch.float64), True),
    (lambda z: torch.log_softmax(z, dim=1), True),
    (lambda z: z.float(), False),
    (lambda z: z.float().double(), False),
    (lambda z: z.to(torch.float32) * 2.0, False),
    (lambda z: z.to(torch.ones(1, dtype=torch.float32)), False),
    (lambda z: torch.log_softmax(z, dim=1, dtype=torch.float32), False),
    (lambda z: torch.cat([z.float(), z], dim=1), False),
    (lambda z: z + z.float(), False),
]


class Cast(torch.nn.Module):
    def __init__(self, head: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.net, self.head = linear_model([[1.0, 2.0], [0.5, -1.0]], [0.0, 1.0]), head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.net(x))


@pytest.mark.parametrize(("head", "is_double"), CASTS)
def test_the_lowest_precision_on_the_way_counts(head: Callable[[torch.Tensor], torch.Tensor], is_double: bool) -> None:
    form = TorchClassifier(Cast(head), output="logits", dtype=torch.float64).linear(2)
    assert form is not None
    assert (form.noise is not None) == is_double


def test_the_rounding_of_sums_that_cancel_inside_the_model_is_known() -> None:
    """Two layers whose weights nearly cancel: the form is small, what the model rounds is not."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(6, 3)) * 1e6, rng.normal(size=(2, 6))
    first[3:] = -first[:3] * (1 + 1e-9)
    second[:, 3:] = second[:, :3]
    net = torch.nn.Sequential(linear_model(first, np.zeros(6)), linear_model(second, [0.3, 0.7]))
    form = TorchClassifier(net, output="logits").linear(3)
    assert form is not None
    assert form.noise is not None
    x = rng.normal(size=(50, 3)) * 1e3
    with torch.no_grad():
        said = net(torch.tensor(x)).numpy()
    allowed = np.abs(x) @ form.noise.weight.numpy().T + form.noise.bias.numpy()
    off = np.array([[abs(said[j, c] - exactly(form, x[j], c)) for c in range(2)] for j in range(50)], dtype=float)
    assert (off <= allowed).all()
    by_the_form_alone = 4 * np.finfo(float).eps * (np.abs(x) @ form.weight.abs().numpy().T)
    assert (off > by_the_form_alone).any()


def exactly(form: Any, x: Floats, c: int) -> Fraction:
    terms = [Fraction(w) * Fraction(v) for w, v in zip(form.weight[c].tolist(), x.tolist(), strict=True)]
    return sum(terms, Fraction(float(form.bias[c])))


def test_tempered_models_are_proved_where_their_logarithms_are_linear() -> None:
    net = linear_model([[0.0, 0.0], [1.0, 2.0]], [0.0, 0.0])
    by_logits = Tempered(TorchClassifier(net, output="logits"), 2.0).linear(2)
    ended = torch.nn.Sequential(net, torch.nn.Softmax(dim=1))
    by_probabilities = Tempered(TorchClassifier(ended, output="probabilities"), 2.0).linear(2)
    assert by_logits is not None
    assert by_logits.noise is not None
    assert by_probabilities is not None
    assert by_probabilities.noise is None


def identical_rows(n: int, worth: list[float]) -> Problem:
    """Equal rows, absolute budgets, a limit."""
    net = linear_model(
        [[-293.1807595325412, -1139.172007863442], [1308.977265729815, 1450.2193387056948]],
        [0.1686532407244419, -3.1681144185343086],
    )
    return Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=np.tile([0.0017772689050498162, 0.00022092342436099473], (n, 1)),
        target=1,
        margin=0.5,
        worth=worth,
        limits={"x1": (-0.0005751687312466261, 0.00023569905081887588)},
        budgets={
            "x0": Budget(0.015368916987395767, cost="absolute"),
            "x1": Budget(0.00030183965847940336, cost="absolute"),
            "shared": Budget(0.005754059123490217, uses={"x1": 0.5}, cost="absolute"),
        },
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_equal_samples_are_reachable_alike(solver: Any) -> None:
    plan: Plan = solve(identical_rows(3, [3.0, 0.0, 3.0]), solver)
    assert plan.fates.tolist() == ["flipped", "left_out", "flipped"]


def test_constant_columns_with_absolute_budgets_prove_nothing_false() -> None:
    for seed in range(20 if LONG else 8):
        rng = np.random.default_rng(seed)
        n, width = int(rng.integers(3, 30)), int(rng.integers(1, 4))
        level = rng.random(width) * 10 ** rng.uniform(-3, 3, width)
        x = np.tile(level, (n, 1))
        w = rng.normal(size=width) / level
        problem = Problem(
            classifier=TorchClassifier(linear_model([0 * w, w], [0.0, -(x @ w).mean() - 1.5]), output="logits"),
            cohort=x,
            target=1,
            margin=0.1,
            budgets={
                f"x{i}": Budget(float(n * level[i] * 10 ** rng.uniform(-1, 1)), cost="absolute") for i in range(width)
            },
            limits={f"x{i}": (0.5 * level[i], (1 + 3 * rng.random()) * level[i]) for i in range(0, width, 2)},
        )
        by_prices, nearest = solve(problem), solve(problem, Nearest())
        reached = np.isin(nearest.fates, ["flipped", "left_out"])
        assert not (reached & (by_prices.fates == "unreachable")).any()
        assert by_prices.bound is not None
        assert nearest.worth <= by_prices.bound


def test_a_column_that_spreads_by_rounding_alone_does_not_spread() -> None:
    problem = identical_rows(3, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(problem.spread, np.abs(problem.cohort.values[0]))


def test_the_spread_does_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(1)
    x, ids = rng.normal(size=(101, 2)), [f"P{j:03}" for j in range(101)]
    net = TorchClassifier(linear_model([[0.0, 0.0], [1.0, 1.0]], [0.0, 0.0]), output="logits")

    def spread(order: NDArray[np.int64]) -> Floats:
        cohort = Cohort.table(x[order], ids=[ids[j] for j in order])
        return Problem(classifier=net, cohort=cohort, target=1, margin=0.1, budgets=budgets(2, 1.0)).spread

    for _ in range(5):
        np.testing.assert_array_equal(spread(rng.permutation(101)), spread(np.arange(101)))


def test_a_feature_that_the_model_ignores_may_be_free_beside_a_proof() -> None:
    net = linear_model([[0.0, 0.0], [0.0, 1.0]], [0.0, -3.0])
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=[[0.0, 0.0], [1.0, 0.5], [2.0, 1.0]],
        target=1,
        margin=0.1,
        budgets={"x0": math.inf, "x1": 1.0},
        limits={"x1": (0.0, 1.5)},
    )
    for solver in SOLVERS:
        assert (solve(problem, solver).fates == "unreachable").all()
    assert solve(problem).bound == 0.0
