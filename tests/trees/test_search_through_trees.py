"""The cheapest flip through trees: every cell tried on small forests, and what holds of any forest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxflip import Ensemble, Limit, Problem, ProblemError, Rounded, TreeClassifier, Uptake, judge
from maxflip._util.types import Floats
from maxflip.models.trees import known
from maxflip.models.trees.build import Read
from maxflip.models.trees.forest import Forest
from maxflip.search import FeaturePrices, cheapest_flips
from maxflip.search.trees.arrays import Costs, Effort, Lattices
from maxflip.search.trees.compiled import Asked, compiled
from tests.conftest import LONG
from tests.trees.grown import LINKS, cheapest, grown
from tests.trees.trained import CATEGORY, data, told_by, trained

pytest.importorskip("numba")

SAMPLES = 12
FORESTS = 40 if LONG else 2
KINDS = ["lightgbm", "xgboost", "catboost", "random forest", "extra trees", "gradient boosting", "histograms"]


def people(seed: int, features: int = 3, count: int = SAMPLES) -> Floats:
    """Some values lie on a threshold."""
    return np.round(np.random.default_rng(seed).uniform(-1, 1, (count, features)), 1 + seed % 2)


def rarer(classifier: Any, features: int) -> int:
    """The class that is predicted second most often, so that some fail and can flip."""
    member = classifier.members[0]
    x = np.random.default_rng(0).uniform(-1, 1, (500, features))
    counts = np.bincount(member.forest.probabilities(x).argmax(axis=1), minlength=member.forest.n_classes)
    return int(np.argsort(-counts, kind="stable")[1])


def asked(classifier: Any, cohort: Floats, **options: Any) -> Problem:
    options = {"target": rarer(classifier, cohort.shape[1]), "margin": 0.05} | options
    return Problem(
        classifier=classifier, cohort=cohort, budgets={f"x{i}": 1.0 for i in range(cohort.shape[1])}, **options
    )


def failing(problem: Problem) -> Any:
    rows = np.arange(len(problem))
    return rows[~judge.is_flip(problem, rows, np.zeros((len(rows), problem.width)))]


def prices(seed: int, problem: Problem, *, ways: bool = False) -> FeaturePrices:
    """Some slots are squared, some absolute and some both."""
    rng, size = np.random.default_rng(seed), problem.width
    kind = rng.integers(3, size=size)
    up = np.where(kind != 0, rng.uniform(0.5, 2, size), 0.0), np.where(kind != 1, rng.uniform(0.5, 2, size), 0.0)
    return FeaturePrices(*up, *(3.0 * up[0], 3.0 * up[1])) if ways else FeaturePrices(*up)


def assert_cheapest(problem: Problem, rates: FeaturePrices, grid: Any = None) -> None:
    """Every flip holds, none is cheaper than the cheapest of all, and nearly all are that one."""
    rows = failing(problem)
    flips = cheapest_flips(problem, rows, rates)
    assert judge.is_flip(problem, rows[flips.found], flips.changes[flips.found]).all()
    assert judge.lawful(problem, rows, flips.changes).all()
    cost = (rates.squared * flips.changes**2 + rates.absolute * np.abs(flips.changes)).sum(axis=1)
    least = np.array([cheapest(problem, row, rates.squared, rates.absolute, grid) for row in rows.tolist()])
    assert np.array_equal(flips.found, np.isfinite(least))
    assert not (flips.unreachable & np.isfinite(least)).any()
    assert flips.found.any()
    cost, least = cost[flips.found], least[flips.found]
    assert (cost >= least * (1 - 1e-9)).all()
    assert np.mean(cost <= least * (1 + 1e-9)) >= 0.9


@pytest.mark.parametrize("seed", range(FORESTS))
@pytest.mark.parametrize("link", LINKS)
def test_flips_are_the_cheapest_of_all_cells(link: str, seed: int) -> None:
    ask: dict[str, Any] = {"threshold": 0.4, "margin": None} if seed % 2 else {}
    if link in {"softmax", "mean"} and seed % 2:
        ask = {"target": {0, 1}, "threshold": 0.7, "margin": None}
    problem = asked(grown(seed, link, trees=6), people(seed), **ask)
    assert_cheapest(problem, prices(seed, problem))


@pytest.mark.parametrize("link", ["sigmoid", "softmax"])
def test_flips_go_by_steps_and_change_few_features(link: str) -> None:
    problem = asked(
        grown(7, link, trees=6),
        people(7),
        most_changes=2,
        limits={"x0": Limit(-1.5, 1.5, step=0.25), "x1": Limit(-2, 2, smallest=0.3), "x2": Limit(-0.5, 0.5)},
    )
    start = problem.cohort.values[:, 0]
    problem = asked(
        grown(7, link, trees=6),
        np.column_stack([np.round(4 * start) / 4, problem.cohort.values[:, 1:]]),
        most_changes=2,
        limits={"x0": Limit(-1.5, 1.5, step=0.25), "x1": Limit(-2, 2, smallest=0.3), "x2": Limit(-0.5, 0.5)},
    )
    assert_cheapest(problem, prices(3, problem), {0: (0.25, 0.0), 1: (0.0, 0.3)})


def test_each_sample_has_its_own_wanted_class() -> None:
    cohort = people(4)
    problem = asked(grown(11, "softmax", trees=6), cohort, target=[k % 3 for k in range(len(cohort))])
    assert_cheapest(problem, prices(4, problem))


def test_flips_hold_in_every_forest_of_an_ensemble() -> None:
    both = Ensemble([grown(1, "sigmoid"), grown(2, "mean of two")])
    problem = asked(both, people(5), margin=0.0)
    assert_cheapest(problem, prices(5, problem))


def test_changes_down_may_be_dearer() -> None:
    problem = asked(grown(3, "sigmoid"), people(3), margin=0.0)
    rates, rows = prices(3, problem, ways=True), failing(problem)
    flips = cheapest_flips(problem, rows, rates)
    cheap = cheapest_flips(problem, rows, prices(3, problem))

    def cost(changes: Floats) -> Floats:
        factor = np.where(changes < 0, 3.0, 1.0)
        return np.asarray((factor * (rates.squared * changes**2 + rates.absolute * np.abs(changes))).sum(axis=1))

    assert (cost(flips.changes) <= cost(cheap.changes) * (1 + 1e-9)).all()
    assert (cost(flips.changes) < cost(cheap.changes)).any()


@given(st.integers(0, 10**6), st.sampled_from(sorted(LINKS)), st.integers(0, 1))
def test_dearer_prices_never_give_cheaper_flips(seed: int, link: str, dearer: int) -> None:
    problem = asked(grown(seed, link, features=2, trees=4), people(seed, features=2), margin=0.0)
    rows, rates = failing(problem), prices(seed, problem)
    more = FeaturePrices(rates.squared * np.array([1 + dearer, 2 - dearer]), rates.absolute)
    low, high = (
        (p.squared * c**2 + p.absolute * np.abs(c)).sum(axis=1)
        for p in (rates, more)
        for c in [cheapest_flips(problem, rows, p).changes]
    )
    assert (high >= low * (1 - 1e-9)).all()


@given(st.integers(0, 10**6), st.sampled_from(sorted(LINKS)))
def test_stored_flips_keep_limits_and_steps(seed: int, link: str) -> None:
    rules = {"x0": Limit(-1, 1, step=0.1), "x1": Limit(None, 0.5, smallest=0.2), "x2": Limit(direction="up", step=0.3)}
    problem = asked(grown(seed, link), people(seed), margin=0.0, limits=rules, most_changes=1 + seed % 3)
    rows = failing(problem)
    flips = cheapest_flips(problem, rows, prices(seed, problem))
    assert judge.lawful(problem, rows, flips.changes).all()


def test_flips_do_not_depend_on_the_batch() -> None:
    problem = asked(grown(8, "softmax", trees=6), people(8))
    rows, rates = failing(problem), prices(8, problem)
    together = cheapest_flips(problem, rows, rates)
    for k, row in enumerate(rows):
        alone = cheapest_flips(problem, np.array([row]), rates)
        assert np.array_equal(alone.changes[0], together.changes[k])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3])
def test_flips_hold_in_the_library_itself(kind: str, classes: int) -> None:
    model = trained(kind, classes)
    x = data(missing=False)[0][:40]
    budgets = {f"x{i}": 1.0 for i in range(CATEGORY)}
    problem = Problem(
        classifier=TreeClassifier(model), cohort=x, target=1, margin=0.0, limits="observed", budgets=budgets
    )
    rows = failing(problem)
    flips = cheapest_flips(problem, rows, FeaturePrices.neutral(problem))
    assert flips.found.mean() > 0.5
    p = told_by(model, (x[rows] + flips.changes)[flips.found])
    assert (p[:, 1] - np.delete(p, 1, axis=1).max(axis=1) > 0).all()


def test_values_lie_just_across_a_threshold() -> None:
    classifier = grown(9, "sigmoid")
    problem = asked(classifier, people(9), margin=0.0)
    rows = failing(problem)
    flips = cheapest_flips(problem, rows, prices(9, problem))
    ends, changed = (problem.cohort.values[rows] + flips.changes), flips.changes != 0
    cuts = classifier.forest.threshold
    apart = np.abs(ends[changed][:, None] - cuts).min(axis=1)
    assert changed.any()
    assert (apart <= 2 * np.spacing(1.0)).all()


def alone(forest: Forest, x: Floats) -> tuple[Floats, Floats]:
    """Changes (B, F) and costs (B,) of the compiled search by itself: boundless, at squared prices of 1."""
    from maxflip.search.trees import kernel

    trees, wanted = compiled(
        [forest], Asked(np.arange(2) == rarer(TreeClassifier(Read("", forest, None, None)), 3), 0.0, 1e-9, False)
    )
    zero, one, far = np.zeros(x.shape), np.ones(x.shape), np.full(x.shape, 1e9)
    columns, most = np.arange(x.shape[1], dtype=np.int32), np.full(len(x), np.inf)
    lattices, costs = Lattices(-far, far, zero, zero, one, x.copy(), zero), Costs(one, zero, one, zero)
    effort = Effort(
        restarts=4, beam=0, most=x.shape[1], pad=0.5, dearer=1.2, fewest=0.1, most_taken=0.5, anew=3, lost=4
    )
    found, cost, _, _ = kernel.search(trees, wanted, x, columns, lattices, costs, zero, most, effort)
    return found, cost


def test_missing_values_stay_missing() -> None:
    forest = grown(5, "sigmoid").forest
    x = people(6)
    x[:, 0] = np.nan
    found, cost = alone(forest, x)
    assert np.isfinite(cost).any()
    assert (found[:, 0] == 0).all()


def test_who_cannot_flip_is_proved() -> None:
    classifier = grown(12, "sigmoid", trees=2)
    leaves = classifier.forest
    low = -np.abs(leaves.value) - 0.1
    never = TreeClassifier(
        Read(
            "test",
            type(leaves)(**{**vars(leaves), "value": np.where(leaves.feature[:, None] < 0, low, 0.0)}),
            None,
            None,
        )
    )
    problem = asked(never, people(12), margin=0.0)
    flips = cheapest_flips(problem, np.arange(SAMPLES), prices(1, problem))
    assert flips.unreachable.all()


def test_values_that_must_hold_rounded_are_multiples() -> None:
    problem = asked(grown(7, "sigmoid"), people(7), margin=0.0, must_hold=Rounded({"x0": 0.25}))
    rows = failing(problem)
    flips = cheapest_flips(problem, rows, prices(7, problem))
    assert flips.found.any()
    assert judge.is_flip(problem, rows[flips.found], flips.changes[flips.found]).all()


def test_what_is_not_searched_yet_is_refused() -> None:
    x = people(1)
    with pytest.raises(ProblemError, match="Uptake"):
        asked(grown(1, "sigmoid"), x, must_hold=Uptake(0.8))
    derived = np.column_stack([x[:, :2], x[:, 0] - x[:, 1]])
    with pytest.raises(ProblemError, match="'x2', which follows from others"):
        Problem(
            classifier=grown(1, "sigmoid"),
            cohort=derived,
            target=1,
            margin=0.0,
            budgets={"x0": 1.0},
            derived={"x2": "x0 - x1"},
        )


def test_numba_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "find_spec", lambda name: None)
    with pytest.raises(ProblemError, match=r"maxflip\[trees\]"):
        asked(grown(1, "sigmoid"), people(1))
