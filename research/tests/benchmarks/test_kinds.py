"""The grid of kinds of budgets: its questions, and a reference that knows the answer where it can be known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

from maxflip import Budget, Problem, TorchClassifier, solve
from research.benchmarks import kinds, kinds_reference
from research.benchmarks.flips import TARGET
from research.benchmarks.kinds import Place, Task, cells_of, run_stage
from research.benchmarks.kinds_cases import KINDS, Model, predicted, question
from research.benchmarks.kinds_reference import Effort, Pool, cheapest_beyond, priced, reference, whole_plan
from research.benchmarks.prices_cases import Floats
from research.cells import run_cells
from research.evidence.files import Made, write
from research.evidence.rendering import rendered
from research.evidence.results import Results

MADE = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 3.5)
SHORT = Effort(few_rounds=3, rounds=2, long_rounds=1, long_starts=1, longest_starts=2, seconds=2.0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def linear_model(width: int = 6) -> Model:
    """Class 0 is wanted; the logits differ by w . x."""
    rng = np.random.default_rng(1)
    net = nn.Linear(width, 2, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(np.stack([rng.normal(size=width), np.zeros(width)])))
        net.bias.zero_()
    x = rng.normal(size=(2000, width))
    return Model("linear", net.eval(), x[predicted(net, x) != TARGET], np.arange(width))


@pytest.fixture
def model() -> Model:
    return linear_model()


@pytest.mark.parametrize("absolute", [False, True])
def test_the_cheapest_change_beyond_a_plane(rng: np.random.Generator, absolute: bool) -> None:
    """Without a box the cheapest squared change is known; absolute ones within a box are a linear program."""
    g, price = rng.normal(size=(20, 4)), rng.uniform(0.5, 2.0, 4)
    wide = 100.0 * np.ones((20, 4))
    low, high = (-rng.uniform(0.1, 1.0, (20, 4)), rng.uniform(0.1, 1.0, (20, 4))) if absolute else (-wide, wide)
    r = 0.5 * np.where(g > 0, g * high, g * low).sum(axis=1) if absolute else np.ones(20)
    flat = 1e-4 * price
    given = [torch.tensor(a) for a in (g, r, flat if absolute else price, price if absolute else 0 * price, low, high)]
    found = cheapest_beyond(*given).numpy()
    assert ((g * found).sum(axis=1) >= r - 1e-9).all()
    assert (found >= low).all()
    assert (found <= high).all()
    if absolute:
        cost = (price * np.abs(found)).sum(axis=1)
        for k in range(20):  # d = up - down
            both = np.concatenate([g[k], -g[k]])[None]
            bounds = [(0, b) for b in (*high[k], *-low[k])]
            best = linprog(np.concatenate([price, price]), A_ub=-both, b_ub=[-r[k]], bounds=bounds)
            assert cost[k] == pytest.approx(best.fun, rel=1e-3)
    else:
        expected = g / price / (g**2 / price).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def small(model: Model, budgets: dict[str, Budget], samples: int, worth: Floats | None = None) -> Problem:
    classifier = TorchClassifier(model.net, output="logits")
    more: dict[str, Any] = {} if worth is None else {"worth": worth}
    return Problem(
        classifier=classifier, cohort=model.cohort(samples, 0), target=TARGET, margin=0.1, budgets=budgets, **more
    )


def random_pool(model: Model, rng: np.random.Generator, samples: int) -> Pool:
    """Made-up flips, two for each sample."""
    budgets = {f"x{i}": Budget(0.3 * samples, cost=("absolute", "squared")[i % 2]) for i in range(3)}
    problem = small(model, budgets, samples, rng.uniform(0.5, 2.0, samples))
    pool = Pool(problem)
    changes = np.zeros((2 * samples, problem.width))
    changes[:, :3] = rng.uniform(0.0, 2.0, (2 * samples, 3))
    pool.add(np.repeat(np.arange(samples), 2), changes)
    return pool


def test_prices_at_which_the_dual_is_least(model: Model, rng: np.random.Generator) -> None:
    """min over lambda of D is a linear program: min B . lambda + sum_j t_j,  t_j >= v_j - cost_jk, t >= 0."""
    pool = random_pool(model, rng, 200)
    n, worth = 200, pool.problem.worth
    rows = np.hstack([-pool.drawn, -np.eye(n)[pool.rows]])
    best = linprog(np.concatenate([pool.amounts, np.ones(n)]), A_ub=rows, b_ub=-worth[pool.rows])
    start = np.full(3, 0.3)
    assert pool.dual(start) > 1.02 * best.fun
    assert best.fun - 1e-6 <= pool.dual(pool.least(start, 100.0)) <= 1.001 * best.fun
    near = pool.least(start, 1.1)
    assert (near >= start / 1.1 - 1e-12).all()
    assert (near <= start * 1.1 + 1e-12).all()


def test_a_whole_plan_is_the_best_of_all(model: Model, rng: np.random.Generator) -> None:
    pool = random_pool(model, rng, 7)
    best = 0.0
    for which in product((None, 0, 1), repeat=7):
        chosen = [2 * j + k for j, k in enumerate(which) if k is not None]
        if (pool.drawn[chosen].sum(axis=0) <= pool.amounts).all():
            best = max(best, float(pool.problem.worth[pool.rows[chosen]].sum()))
    assert 0 < best < pool.problem.worth.sum()
    assert whole_plan(pool, np.zeros(3), 5.0) == pytest.approx(best)


@pytest.mark.parametrize("kind", ["absolute", "mixed", "money"])
def test_of_linear_models_the_reference_is_the_proved_bound(model: Model, kind: str) -> None:
    problem = question(model, kind, 60, 0)
    plan = solve(problem)
    assert plan.bound is not None
    found = reference(problem, [(plan.selected, plan.moves)], plan.ceilings[0].prices, SHORT)
    assert found.value >= plan.worth
    one = problem.worth.mean()
    assert found.value == pytest.approx(plan.bound, abs=one)  # a proved bound of counts is a whole number
    assert plan.bound >= (found.whole or 0.0) >= 0.9 * plan.worth


def test_a_draw_estimates_what_the_long_search_of_all_finds(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = question(model, "absolute", 200, 0)
    plan = solve(problem)
    assert plan.bound is not None
    for name, value in {"FEW": 10, "SOME": 100, "DRAWN": 50}.items():
        monkeypatch.setattr(kinds_reference, name, value)
    found = reference(problem, [(plan.selected, plan.moves)], plan.ceilings[0].prices, SHORT)
    assert found.value >= plan.worth
    assert found.value == pytest.approx(plan.bound, rel=0.02)
    assert found.whole is None
    assert found.error >= 0.0
    assert reference(problem, [(plan.selected, plan.moves)], plan.ceilings[0].prices, SHORT) == found


def test_prices_are_improved_where_the_first_are_poor(model: Model) -> None:
    problem = question(model, "squared", 60, 0)
    plan = solve(problem)
    assert plan.prices is not None
    pool, poor = Pool(problem), 2.0 * np.array([plan.prices[name] for name in problem.ledger.names])
    better = priced(pool, poor, 4, 0, 0)
    assert plan.worth <= pool.dual(better) < pool.dual(poor)


@pytest.mark.parametrize("kind", KINDS)
def test_questions(model: Model, kind: str) -> None:
    problem, again = question(model, kind, 50, 0), question(model, kind, 50, 0)
    np.testing.assert_array_equal(problem.ledger.amounts, again.ledger.amounts)
    np.testing.assert_array_equal(problem.worth, again.worth)
    assert (problem.worth == 1).all() == (kind not in ("money", "decades"))
    costs = {budget.cost_name for budget in problem.budgets.values()}
    assert ("count" in costs) == (kind in ("mixed", "capped, ample", "capped, binding"))
    assert ("absolute" in costs) == (kind not in ("squared", "decades"))
    other = question(model, kind, 50, 1)
    assert not np.array_equal(problem.cohort.values, other.cohort.values)


def test_more_samples_than_there_are(model: Model) -> None:
    many = model.cohort(5000, 0)
    assert many.shape == (5000, 6)
    assert (predicted(model.net, many) != TARGET).all()
    assert len(np.unique(many, axis=0)) == 5000


def test_a_place_is_measured_once_and_kept(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "OUT", tmp_path)
    monkeypatch.setattr(kinds, "model_of", lambda _: model)
    place = Place("linear", "absolute", 40, 0)
    cells = cells_of(place, 60, quick=True)
    assert run_cells([cells["prices"], cells["nearest"]], tmp_path).failed == {}
    row = kinds.row_of(place, cells)
    assert row["done"] == ["prices", "nearest"]
    assert row["worth"] >= max(row["nearest"], row["unit"])
    assert row["stopped"] == []
    assert row["reference_value"] is None
    assert run_cells([cells["prices"], cells["nearest"]], tmp_path).done == 0
    assert cells_of(place, 61, quick=True)["prices"].key != cells["prices"].key


def test_the_reference_begins_at_the_flips_of_the_others(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(problem: Problem, known: Any, told: Any, effort: Effort) -> Effort:
        return Effort(len(known), sum(len(rows) for rows, _ in known), len(told), 0, 0, 0.0)

    monkeypatch.setattr(kinds, "OUT", tmp_path)
    monkeypatch.setattr(kinds, "model_of", lambda _: model)
    monkeypatch.setattr(kinds, "reference", looked)
    place = Place("linear", "absolute", 40, 0)
    cells = cells_of(place, 60, quick=True)
    assert run_cells([cells["reference"]], tmp_path).done == 4
    found = (cells["reference"].kept(tmp_path) or {})["found"]
    row = kinds.row_of(place, cells)
    seen = [found[f"reference_{name}"] for name in ("few_rounds", "rounds", "long_rounds")]
    assert seen == [3, row["count"] + row["nearest"] + row["unit"], row["budgets"]]
    assert not any(name.startswith(kinds.FLIPS) for name in row)


def test_a_stage_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(task: Task, _: Any) -> Iterator[dict[str, Any]]:
        yield {"count": task.place.seed}
        while True:
            time.process_time()

    monkeypatch.setattr(kinds, "by_prices", endless)
    task = Task(Place("linear", "absolute", 40, 7), "prices", 1, quick=True, is_real=False)
    assert run_stage(task, []) == {"found": {"count": 7}, "in_time": False}


def row_of(kind: str, **other: Any) -> dict[str, Any]:
    """A plan that meets every bar."""
    row = dict.fromkeys(kinds.COLUMNS) | {"model": "tanh", "kind": kind, "samples": 300, "seed": 0, "held_out": False}
    row |= {"count": 199, "worth": 199.0, "estimate": 200.2, "seconds": 2.0, "gradients": 90.0, "forwards": 80.0}
    row |= {"peak_mib": 400.0, "budgets": 19, "used_up": 17, "nearest": 150.0, "unit": 120.0, "resolved": 199.0}
    row |= {"reference_value": 200.9, "reference_error": 0.0, "reference_whole": 200.0}
    return row | {"done": ["prices"], "stopped": [], "commit": "abc1234"} | other


def missed(folder: Path, **other: Any) -> str:
    """The bars that a cell misses beside one that meets all."""
    write("kinds", [row_of("squared"), row_of("absolute", **other)], MADE, folder)
    line = next(line for line in rendered("kinds.table", Results(folder)).splitlines() if line.startswith("| absolute"))
    return line.rstrip("| ").split("| ")[-1]


def test_bars(tmp_path: Path) -> None:
    assert missed(tmp_path) == "none"  # 199 of a whole 200 are 99.5 %
    assert missed(tmp_path, worth=198.0, count=198) == "1"
    assert (
        missed(tmp_path, worth=198.0, count=198, bound=198.0, resolved=198.0, reference_whole=None) == "none"
    )  # proved
    assert missed(tmp_path, gradients=101.0) == "2"
    assert missed(tmp_path, seconds=6.1) == "3"
    assert missed(tmp_path, resolved=201.3) == "4"
    assert missed(tmp_path, unit=200.0) == "5"
    assert missed(tmp_path, worth=198_000.0, reference_value=199_500.0, estimate=199_500.0, resolved=None) == "1"


def test_a_cell_that_was_stopped_meets_nothing(tmp_path: Path) -> None:
    nothing = dict.fromkeys(kinds.COLUMNS) | {"stopped": ["prices after 600 s"]}
    write("kinds", [row_of("squared"), row_of("absolute", **nothing), row_of("money", held_out=True)], MADE, tmp_path)
    short = rendered("kinds.short", Results(tmp_path))
    assert short.startswith("3 cells, of which 1 were stopped for their time.")
    assert "| at most 100 gradients per sample | 1 of 2 | 90 (tanh, squared, 300) | **not met** |" in short
    assert "| at most 100 gradients per sample, held out | 1 of 1 | 90 (tanh, money, 300) | met |" in short
    assert "| absolute | 300 | stopped: prices after 600 s |" in rendered("kinds.table", Results(tmp_path))
