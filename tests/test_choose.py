"""choose against brute force, and against everything that makes budgets tight."""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls

from maxflip import Budget, Problem, ProblemError
from maxflip.problem.ledger import Ledger
from maxflip.select import choose as chooser
from maxflip.select import milp as programs
from maxflip.select import relaxation
from maxflip.select.choose import choose
from maxflip.select.settings import RELAXATION
from tests.conftest import LONG
from tests.examples import linear_problem

Floats = NDArray[np.float64]


def brute_force(problem: Problem, rows: NDArray[np.int64], changes: Floats, must: tuple[int, ...] = ()) -> float:
    """The best worth over all selections with at most one candidate per sample; -inf if `must` does not fit."""
    options = [[None, *np.flatnonzero(rows == row)] for row in np.unique(rows)]
    best = -math.inf
    for picks in itertools.product(*options):
        chosen = [c for c in picks if c is not None]
        if set(must) <= set(rows[chosen].tolist()) and problem.ledger.fits(changes[chosen]):
            best = max(best, float(problem.worth[rows[chosen]].sum()))
    return best


def random_candidates(seed: int) -> tuple[Problem, NDArray[np.int64], Floats]:
    """Up to 9 samples with up to 2 candidates each, 3 features, budgets of every kind."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    budgets: dict[str, Any] = {f"x{i}": float(rng.uniform(0.2, 4)) for i in range(3)}
    if rng.random() < 0.3:
        budgets["hours"] = Budget(float(rng.uniform(0.5, 4)), {"x0": 1.0, "x2": 0.3}, "absolute")
    if rng.random() < 0.3:
        budgets["people"] = Budget(int(rng.integers(0, n + 1)), cost="count")
    if rng.random() < 0.2:
        budgets["x1"] = math.inf
    worth = rng.integers(1, 4, n).astype(float) if rng.random() < 0.4 else None
    if rng.random() < 0.2:
        worth = rng.uniform(0, 2, n)
    problem = linear_problem([1.0, 1.0, 1.0], rng.normal(size=(n, 3)), budgets, worth=worth)
    rows = np.sort(rng.integers(0, n, size=int(rng.integers(1, 12))))
    return problem, rows, rng.normal(size=(len(rows), 3))


@pytest.mark.parametrize("block", range(10))
def test_equals_brute_force_on_300_small_problems(block: int) -> None:
    for seed in range(30 * block, 30 * (block + 1)):
        problem, rows, changes = random_candidates(seed)
        chosen = choose(problem, rows, changes)
        assert problem.ledger.fits(changes[chosen])
        assert len(set(rows[chosen])) == len(chosen)
        worth = float(problem.worth[rows[chosen]].sum())
        assert worth == pytest.approx(brute_force(problem, rows, changes), abs=1e-9), seed


@pytest.mark.parametrize("seed", range(40))
def test_what_must_be_picked_is_picked_or_refused(seed: int) -> None:
    problem, rows, changes = random_candidates(seed)
    must = np.unique(rows)[:2]
    best = brute_force(problem, rows, changes, tuple(must.tolist()))
    if best == -math.inf:
        with pytest.raises(ProblemError, match="include: the budgets do not suffice"):
            choose(problem, rows, changes, must)
        return
    chosen = choose(problem, rows, changes, must)
    assert set(must) <= set(rows[chosen])
    assert problem.ledger.fits(changes[chosen])
    assert float(problem.worth[rows[chosen]].sum()) == pytest.approx(best, abs=1e-9)


def test_a_sample_without_a_flip_cannot_be_included() -> None:
    problem = linear_problem([1.0], np.zeros((3, 1)), [9.0])
    with pytest.raises(ProblemError, match=r"no flip is known for 1 of these ids: 2\. Take .*, or widen limits\."):
        choose(problem, np.array([0, 1]), np.ones((2, 1)), must=np.array([1, 2]))


@pytest.mark.parametrize("seed", range(20))
def test_scipy_serves_where_highspy_is_missing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_has_highspy", lambda: False)
    problem, rows, changes = random_candidates(seed)
    chosen = choose(problem, rows, changes)
    assert problem.ledger.fits(changes[chosen])
    assert float(problem.worth[rows[chosen]].sum()) == pytest.approx(brute_force(problem, rows, changes), abs=1e-9)


def test_ulp_tight_budgets_are_never_exceeded_and_not_wasted() -> None:
    """Budgets that hold a known set exactly, or fall short of it by one bit; 2,000 of them in the long run."""
    rng = np.random.default_rng(0)
    base = linear_problem([1.0], np.zeros((4, 1)), [1.0])
    kept = 0
    trials = 2000 if LONG else 150
    for trial in range(trials):
        changes = rng.normal(size=(4, 1)) * 10.0 ** rng.integers(-3, 4)
        full = base.ledger.spent(changes)[0]
        problem = copy.copy(base)
        budgets = {"x0": Budget(full if trial % 2 else math.nextafter(full, 0.0), {"x0": 1.0})}
        object.__setattr__(problem, "ledger", Ledger.compile(budgets, ("x0",)))  # a new Problem each time is slower
        chosen = choose(problem, np.arange(4), changes)
        assert problem.ledger.fits(changes[chosen])
        assert len(chosen) >= 3
        if problem.ledger.fits(changes):
            assert len(chosen) == 4
            kept += 1
    assert 0.15 * trials < kept < 0.85 * trials  # whether the full amount was rounded up or down decides


def test_twins_and_larger_flips_of_a_sample_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 samples with three candidates each, two alike and one larger; all ten are over budget by one bit."""
    changes = np.random.default_rng(0).uniform(0.5, 3, size=(10, 1))
    full = float(linear_problem([1.0], np.zeros((10, 1)), [1.0]).ledger.spent(changes)[0])
    amount = full
    problem = linear_problem([1.0], np.zeros((10, 1)), [amount])
    while problem.ledger.fits(changes):
        amount = math.nextafter(amount, 0.0)
        problem = linear_problem([1.0], np.zeros((10, 1)), [amount])
    picks, real = [], chooser._pick

    def counted(*given: Any, **named: Any) -> Any:
        picks.append(given)
        return real(*given, **named)

    monkeypatch.setattr(chooser, "_pick", counted)
    chosen = choose(problem, np.tile(np.arange(10), 3), np.concatenate([changes * (1 + 1e-15), changes, changes]))
    assert len(chosen) == 9
    assert chosen.min() >= 10  # the larger ones are outdone
    assert chosen.max() < 20  # of twins the first
    assert len(picks) <= 3


def tight_candidates(seed: int) -> tuple[Problem, NDArray[np.int64], Floats]:
    """4 to 12 samples, many of them alike, and budgets that hold some subset exactly, but for a bit."""
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(4, 13)), int(rng.integers(1, 5))
    changes = [
        rng.normal(size=(n, width)),
        np.round(rng.normal(size=(n, width)), 1) + 0.1,
        rng.integers(1, 5, size=(n, width)) * 0.1,
        np.sqrt(rng.integers(1, 6, size=(n, width))) * rng.choice([0.1, 0.3, 1 / 3]),
    ][seed % 4] * 10.0 ** rng.integers(-2, 3)
    subset = changes[rng.uniform(size=n) < 0.5]
    names = tuple(f"x{i}" for i in range(width))
    costs = rng.choice(["squared", "absolute"], size=width)
    ample = {x: Budget(math.inf, {x: 1.0}, cost) for x, cost in zip(names, costs, strict=True)}
    budgets = {}
    for x, amount in zip(names, Ledger.compile(ample, names).spent(subset).tolist(), strict=True):
        nearby = [amount, math.nextafter(amount, 0.0), math.nextafter(amount, math.inf)]
        budgets[x] = Budget(nearby[int(rng.integers(0, 3))], {x: 1.0}, ample[x].cost)
    problem = copy.copy(linear_problem(np.ones(width), np.zeros((n, width)), np.ones(width)))
    object.__setattr__(problem, "ledger", Ledger.compile(budgets, names))
    if seed % 3 == 0:
        object.__setattr__(problem, "worth", rng.integers(1, 4, n).astype(float))
    return problem, np.arange(n), changes


def quick_brute_force(problem: Problem, changes: Floats) -> float:
    """As brute_force, one candidate per sample; exact decisions only where rounded ones are near."""
    sets = ((np.arange(2 ** len(changes))[:, None] >> np.arange(len(changes))) & 1).astype(bool)
    worth = sets @ problem.worth
    near = np.all(sets @ problem.ledger.consumption(changes) <= problem.ledger.amounts * (1 + 1e-9), axis=1)
    by_worth = np.argsort(-worth, kind="stable")
    return next(float(worth[s]) for s in by_worth if near[s] and problem.ledger.fits(changes[sets[s]]))


@pytest.mark.parametrize("worth", [5e-324, 1e-310, 1e-100, 1e300])
def test_worths_of_any_size_are_chosen_among_as_if_they_were_1(worth: float) -> None:
    """Each draws 0.4 of the budget, so that two fit."""
    problem = copy.copy(linear_problem([1.0], np.zeros((3, 1)), {"x0": Budget(1.0, cost="absolute")}))
    object.__setattr__(problem, "worth", np.full(3, worth))
    assert len(choose(problem, np.arange(3), np.full((3, 1), 0.4))) == 2


@pytest.mark.parametrize("block", range(10))
def test_ulp_tight_ties_are_decided_as_brute_force_decides_them(block: int) -> None:
    """A selection that overspends by one bit is not mended by dropping one if another of the same worth fits."""
    size = 200 if LONG else 12
    for seed in range(size * block, size * (block + 1)):
        problem, rows, changes = tight_candidates(seed)
        chosen = choose(problem, rows, changes)
        assert problem.ledger.fits(changes[chosen])
        assert float(problem.worth[chosen].sum()) == quick_brute_force(problem, changes), seed


def random_shares(seed: int) -> relaxation.Candidates:
    """2,000 samples with 1 to 3 candidates and 6 budgets: scarce, plentiful, alike, nearly proportional."""
    rng = np.random.default_rng(seed)
    sample = np.sort(np.concatenate([np.arange(2000), rng.integers(0, 2000, size=(seed % 3) * 1000)]))
    shares = rng.normal(size=(len(sample), 6)) ** 2 * rng.lognormal(size=(len(sample), 1))
    if seed % 5 == 1:
        shares = rng.lognormal(size=(len(sample), 1)) * rng.uniform(0.95, 1.05, size=(len(sample), 6))
    if seed % 5 == 2:
        shares = np.round(shares)
    shares /= shares.sum(axis=0) * rng.uniform(0.02, 0.4, 6) * (10.0 if seed % 5 == 3 else 1.0)
    worth = np.ones(len(sample)) if seed % 2 else rng.uniform(0, 2, 2000)[sample]
    must = (sample % 400 == 0) & (seed % 7 == 0)
    return relaxation.Candidates(worth, shares, sample, must)


@pytest.mark.parametrize("seed", range(20))
def test_the_relaxation_of_many_is_that_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a core of the samples or by one program over all of them: the same optimum, and prices that prove it."""
    candidates = random_shares(seed)
    direct = programs.relax(candidates.program(np.ones(6)))
    monkeypatch.setattr(relaxation, "RELAXATION", replace(RELAXATION, small=100, core=60))
    found = relaxation.relaxed(candidates)
    assert direct is not None
    assert found is not None
    assert found.bound == pytest.approx(direct.bound, rel=1e-9)
    assert float(candidates.worth @ found.x) == pytest.approx(direct.bound, rel=1e-8)
    assert (candidates.share.T @ found.x <= 1 + 1e-8).all()
    assert (candidates.per_sample_sum(found.x) <= 1 + 1e-8).all()
    assert (candidates.per_sample_sum(found.x)[candidates.must_samples] >= 1 - 1e-8).all()
    assert (found.prices >= 0).all()


@pytest.mark.parametrize("free", [0, 50, 400])
def test_hardly_anyone_of_many_may_be_in_doubt(free: int) -> None:
    """All others must be picked, and have one candidate each."""
    rng = np.random.default_rng(free)
    shares = rng.exponential(size=(8000, 3))
    shares /= 1.001 * shares[free:].sum(axis=0)
    candidates = relaxation.Candidates(np.ones(8000), shares, np.arange(8000), np.arange(8000) >= free)
    direct = programs.relax(candidates.program(np.ones(3)))
    found = relaxation.relaxed(candidates)
    assert direct is not None
    assert found is not None
    assert found.bound == pytest.approx(direct.bound, rel=1e-9)


@pytest.mark.parametrize("each", [1, 3])
def test_the_core_is_what_solves_large_relaxations(each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a sample has several candidates that are nothing alike."""
    sizes: list[int] = []

    def counting(program: programs.Program) -> programs.ProgramResult | None:
        sizes.append(len(program.worth))
        return programs.relax(program)

    monkeypatch.setattr(relaxation, "relax", counting)
    rng = np.random.default_rng(0)
    shares = rng.normal(size=(40_000 * each, 5)) ** 2 * rng.lognormal(size=(40_000 * each, 1))
    shares /= shares.sum(axis=0) * rng.uniform(0.05, 0.3, 5) / each**3
    sample = np.repeat(np.arange(40_000), each)
    assert relaxation.relaxed(relaxation.Candidates(np.ones(len(sample)), shares, sample, sample < 0))
    assert max(sizes) < 6000


def test_where_a_sample_stands_in_the_cohort_does_not_matter() -> None:
    """The same candidates in the same order of work, their rows renumbered."""
    rng = np.random.default_rng(3)
    rows, changes = np.repeat(np.arange(300), 2), rng.normal(size=(600, 3))
    problem = linear_problem(np.ones(3), np.zeros((300, 3)) - 1.0, [20.0, 10.0, 30.0])
    shuffle = rng.permutation(300)
    assert choose(problem, rows, changes).tolist() == choose(problem, shuffle[rows], changes).tolist()


def large_candidates(seed: int, n: int) -> tuple[Problem, NDArray[np.int64], Floats]:
    """n samples with 1 to 3 candidates, 1 to 20 budgets, some shared, some of people; worths of 1, or of 1 to 3."""
    rng = np.random.default_rng(seed)
    m, each = int(rng.integers(1, 21)), 1 + seed % 3
    changes = rng.normal(size=(n * each, m)) * rng.lognormal(size=(n * each, 1))
    if seed % 4 == 1:  # all alike in what they need
        changes = rng.lognormal(size=(n * each, 1)) * rng.uniform(0.9, 1.1, size=(n * each, m))
    if seed % 4 == 2:  # few values, so that many selections draw the same, and much of that is over by a rounding error
        changes = np.sqrt(rng.integers(1, 6, size=(n * each, m)) * 0.1)
    all_of_it = (changes**2).sum(axis=0) / each
    budgets: dict[str, Any] = {f"x{i}": float(np.round(all_of_it[i] * rng.uniform(0.02, 0.3), 1)) for i in range(m)}
    if seed % 5 == 0:
        budgets["people"] = Budget(n // 3, cost="count")
    worth = rng.integers(1, 4, n).astype(float) if seed % 7 == 0 else None
    problem = linear_problem(np.ones(m), np.zeros((n, m)) - 1.0, budgets, worth=worth)
    return problem, np.repeat(np.arange(n), each), changes


def distance(problem: Problem, rows: NDArray[np.int64], changes: Floats, chosen: NDArray[np.int64]) -> float:
    """From the worth that the linear relaxation allows, in whole numbers; by one plain program over everybody."""
    share = problem.ledger.consumption(changes) / problem.ledger.amounts
    once = sp.csr_matrix((np.ones(len(rows)), (rows, np.arange(len(rows)))))
    matrix = sp.csc_matrix(sp.vstack([sp.csr_matrix(share.T), once]))
    height, width = matrix.shape
    worth = problem.worth[rows]
    free = (np.full(height, -np.inf), np.ones(height), np.zeros(width), np.ones(width))
    direct = programs.relax(programs.Program(worth, matrix, *free))
    assert direct is not None
    assert problem.ledger.fits(changes[chosen])
    assert len(set(rows[chosen])) == len(chosen)
    return math.floor(direct.bound + 1e-6) - float(worth[chosen].sum())


@pytest.mark.parametrize("seed", range(60) if LONG else range(0, 20, 4))
def test_of_many_samples_at_most_one_less_than_the_bound_is_chosen(seed: int) -> None:
    given = large_candidates(seed, n=2000 + 100 * seed)
    assert distance(*given, choose(*given)) <= given[0].worth.max()


@pytest.mark.parametrize("has_highspy", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_program_serves_where_swaps_find_nothing(
    seed: int, has_highspy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 0/1 program over the band stops within one of the bound too."""
    tried = []
    monkeypatch.setattr(chooser, "tabu_search", lambda *given: tried.append(given))
    monkeypatch.setattr(chooser, "exchanged", lambda *_: None)
    monkeypatch.setattr(programs, "_has_highspy", lambda: has_highspy)
    given = large_candidates(seed, n=800)
    assert distance(*given, choose(*given)) <= 1
    assert tried


def test_many_twins_over_budget_by_a_rounding_error() -> None:
    """50 of 500 alike draw 5 but for a rounding error: 49 are what fits."""
    budgets = {"x0": Budget(10.0, cost="absolute"), "x1": Budget(5.0, cost="absolute")}
    problem = linear_problem([1.0, 1.0], np.zeros((500, 2)) - 1.0, budgets)
    assert choose(problem, np.arange(500), np.full((500, 2), 0.1)).tolist() == list(range(49))


@pytest.mark.parametrize("spare", [0, 1])
def test_what_must_be_picked_may_need_a_budget_to_its_last_bit(spare: int) -> None:
    """9 of 500 that must be picked fill both budgets, as they are rounded up."""
    changes = np.random.default_rng(0).normal(size=(500, 2))
    amounts = linear_problem([1.0, 1.0], np.zeros((500, 2)) - 1.0, [1.0, 1.0]).ledger.spent(changes[:9])
    amounts = np.nextafter(amounts, math.inf) * (1 + spare)
    problem = linear_problem([1.0, 1.0], np.zeros((500, 2)) - 1.0, amounts)
    chosen = choose(problem, np.arange(500), changes, np.arange(9))
    assert set(range(9)) <= set(chosen)
    assert problem.ledger.fits(changes[chosen])


def test_what_must_be_picked_is_picked_from_many_too() -> None:
    problem, rows, changes = large_candidates(2, n=3000)
    share = problem.ledger.consumption(changes) / problem.ledger.amounts
    must = np.unique(rows[np.argsort(-share.sum(axis=1), kind="stable")[:20]])  # whom it would rather leave out
    assert not np.isin(must, rows[choose(problem, rows, changes)]).all()
    chosen = choose(problem, rows, changes, must)
    assert np.isin(must, rows[chosen]).all()
    assert problem.ledger.fits(changes[chosen])


def test_the_order_of_candidates_decides_ties() -> None:
    """Equal samples: those that come first are taken."""
    problem = linear_problem([1.0], np.zeros((6, 1)), [2.5])
    assert choose(problem, np.arange(6), np.ones((6, 1))).tolist() == [0, 1]
    assert choose(problem, np.arange(6)[::-1], np.ones((6, 1))).tolist() == [0, 1]  # candidates in order of work


@pytest.mark.parametrize("seed", range(40))
def test_the_least_over_prices_of_at_least_nothing_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 25))
    root = rng.normal(size=(m + 5, m)) * rng.lognormal(0, 1, m)
    aim = root @ rng.normal(seed % 3 - 1, 1, m)
    found = relaxation.nonnegative_minimum(root.T @ root, root.T @ aim)
    np.testing.assert_allclose(found, nnls(root, aim)[0], rtol=1e-6, atol=1e-9)
