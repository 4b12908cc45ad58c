"""Sequences whose best plan is known: from a table, from a formula, by counting."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch

from maxflip import Budget, Cohort, Fate, Nearest, Prices, Problem, TorchClassifier, resolve, solve
from maxflip.data.slots import SequenceSlots
from maxflip.solvers import Solver
from tests.conftest import LONG
from tests.contract import SOLVERS
from tests.examples import net_problem, small_net
from tests.sequences.examples import LastStep, Total, ragged_cohort, ragged_problem, ragged_values

MARGIN = 2 * math.atanh(0.1)


def total_problem(values: list[Any], w: Any, budgets: Any, **options: Any) -> Problem:
    settings: dict[str, Any] = {"target": 1, "margin": 0.1, "steps": "all"} | options
    classifier = TorchClassifier(Total(w), output="logits")
    return Problem(classifier=classifier, cohort=Cohort.sequences(values), budgets=budgets, **settings)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_sequences_of_one_step_are_a_table(solver: Solver) -> None:
    """Whichever solver, but for the rounding of a sum over all values of a feature."""
    table = net_problem(24, classifier=TorchClassifier(small_net(4, dtype=torch.float64), output="logits"))
    one_step = Problem(
        classifier=TorchClassifier(LastStep(small_net(4, dtype=torch.float64)), output="logits"),
        cohort=Cohort.sequences([row[None] for row in table.cohort.values]),
        target=1,
        margin=0.1,
        steps="all",
        budgets=table.budgets,
    )
    a, b = solve(table, solver, seed=1), solve(one_step, solver, seed=1)
    assert a.selected.tolist() == b.selected.tolist()
    np.testing.assert_allclose(a.changes, np.concatenate(b.changes), rtol=1e-6, atol=1e-9)
    assert a.estimate == pytest.approx(b.estimate)


def test_the_cheapest_flip_is_spread_over_all_measurements() -> None:
    """Score sum_t w x_t lacks r; with q values measured the cheapest squared change is r^2 / (q w^2)."""
    values = [np.array([[-1.0], [np.nan], [-1.0], [-1.0]]), np.array([[-1.0]])]
    plan = solve(total_problem(values, [2.0], {"x0": 99.0}), Nearest())
    for j, measured in enumerate((3, 1)):
        lacks = 2.0 * measured + MARGIN
        each = lacks / (2.0 * measured)
        here = ~np.isnan(values[j])
        np.testing.assert_allclose(plan.changes[j][here], each, rtol=1e-3)
        assert (plan.changes[j][~here] == 0).all()
    np.testing.assert_allclose(plan.spend["x0"], (6 + MARGIN) ** 2 / (3 * 4) + (2 + MARGIN) ** 2 / 4, rtol=2e-3)


def test_budgets_are_summed_over_time_and_people() -> None:
    """n copies that cost a each: floor(B / a)."""
    values = [np.full((3, 1), -1.0)] * 5
    cost = (3 + MARGIN) ** 2 / 3
    assert solve(total_problem(values, [1.0], {"x0": 2.5 * cost}), Prices()).count == 2
    hours = {"hours": Budget(2.5 * (3 + MARGIN), {"x0": 1.0}, "absolute")}
    assert solve(total_problem(values, [1.0], hours), Prices()).count == 2
    people = {"x0": 1e6, "people": Budget(3, cost="count")}
    assert solve(total_problem(values, [1.0], people), Prices()).count == 3


@pytest.mark.parametrize("seed", range(10 if LONG else 2))
def test_prices_reach_the_closed_form_of_a_table(seed: int) -> None:
    """Equal lengths, nothing missing: T steps of w are one score over T F features, each feature's budget pooled over
    its steps; the optimum is the longest prefix of the sorted r^2 with sum <= (sum_i |w_i| sqrt(T B_i))^2."""
    rng = np.random.default_rng(seed)
    n, steps, width = 25, int(rng.integers(1, 5)), 3
    x, w = rng.normal(size=(n, steps, width)), rng.normal(size=width)
    amounts = rng.uniform(0.1, 3.0, size=width)
    lacks = MARGIN - (x @ w).sum(axis=1)
    costs = np.sort(lacks[lacks > 0] ** 2)
    affordable = (np.abs(w) @ np.sqrt(steps * amounts)) ** 2
    best = int((np.cumsum(costs) <= affordable).sum())
    plan = solve(total_problem(list(x), w, {f"x{i}": float(a) for i, a in enumerate(amounts)}))
    assert best - 1 <= plan.count <= best


def test_only_the_last_steps_change() -> None:
    values = ragged_values(20, 2, missing=0.2, seed=4)
    plan = solve(total_problem(values, [1.0, -1.0], {"x0": 50.0, "x1": 50.0}, steps="last 2"), Nearest())
    assert plan.count > 5
    for change in plan.changes:
        assert (change[:-2] == 0).all()
    masks = [np.arange(len(v)) >= len(v) - 2 for v in values]
    again = solve(total_problem(values, [1.0, -1.0], {"x0": 50.0, "x1": 50.0}, steps=masks), Nearest())
    assert all(np.array_equal(a, b) for a, b in zip(plan.changes, again.changes, strict=True))


def test_changes_cannot_be_written_to() -> None:
    plan = solve(total_problem([np.full((3, 1), -1.0)], [1.0], {"x0": 99.0}), Nearest())
    with pytest.raises(ValueError, match="read-only"):
        plan.changes[0][0] = 1.0


def test_a_plan_says_which_steps_may_change() -> None:
    values = [np.full((3, 1), -1.0)]
    for steps, words in (
        ("all", "all"),
        ("last 2", "the last 2 of each sequence"),
        ([[True] * 3], "those that a mask names"),
    ):
        plan = solve(total_problem(values, [1.0], {"x0": 99.0}, steps=steps), Nearest())
        assert plan.question is not None
        assert plan.question.steps == words


def test_a_mask_may_choose_single_values() -> None:
    values = [np.full((3, 2), -1.0)]
    mask = np.zeros((3, 2), dtype=bool)
    mask[1, 0] = True
    plan = solve(total_problem(values, [1.0, 1.0], {"x0": 99.0, "x1": 99.0}, steps=[mask]), Nearest())
    assert np.flatnonzero(plan.changes[0]).tolist() == [2]
    np.testing.assert_allclose(plan.changes[0][1, 0], 6 + MARGIN, rtol=1e-3)


def test_who_has_nothing_that_can_change_is_proved_unreachable() -> None:
    problem = ragged_problem(classifier=TorchClassifier(Total([1.0] * 3, b=-9.0), output="logits"))
    for solver in SOLVERS:
        assert solve(problem, solver).fates[-1] == Fate.UNREACHABLE


def test_limits_hold_at_every_step() -> None:
    values = [np.array([[-1.0], [0.5], [-2.0]])] * 3
    plan = solve(total_problem(values, [1.0], {"x0": 1e4}, limits={"x0": (-3.0, 1.0)}), Prices())
    assert plan.count == 3
    for change in plan.changes:
        assert (values[0] + change <= 1.0).all()
    down = solve(total_problem(values, [-1.0], {"x0": 1e4}, directions={"x0": "down"}, target=0), Prices())
    assert all((change <= 0).all() for change in down.changes)
    observed = solve(total_problem(values, [1.0], {"x0": 1e4}, limits="observed"), Prices())
    assert all((values[0] + change <= 0.5).all() for change in observed.changes)


def test_a_plan_is_found_again_from_one_of_other_steps() -> None:
    """A warm start knows flips by id, step and feature, not by slot."""
    values = ragged_values(30, 2, seed=2)
    ids = [f"P{j}" for j in range(30)]
    budgets = {"x0": 20.0, "x1": 20.0}

    def ask(steps: str, at: Any) -> Problem:
        return Problem(
            classifier=TorchClassifier(Total([1.0, 2.0]), output="logits"),
            cohort=Cohort.sequences([values[j] for j in at], ids=[ids[j] for j in at]),
            target=1,
            margin=0.1,
            steps=steps,
            budgets=budgets,
        )

    last = solve(ask("last 1", range(30)), Prices())
    rows, _ = last.moves_in(ask("all", range(29, -1, -1)))
    assert len(rows) == last.count
    assert solve(ask("all", range(29, -1, -1)), Nearest(), start=last).worth >= last.worth
    everywhere = solve(ask("all", range(30)), Prices())
    rows, _ = everywhere.moves_in(ask("last 1", range(30)))
    whole = [j for j, d in zip(everywhere.selected, everywhere.changes, strict=True) if not d[:-1].any()]
    assert rows.tolist() == whole
    more = resolve(ask("all", range(30)), everywhere, budgets={"x0": 30.0})
    assert more.worth >= everywhere.worth


def test_slots_are_found_by_sample_step_and_feature() -> None:
    """Each of many, without a comparison of every change with every slot."""
    problem = ragged_problem(40, 3, cohort=ragged_cohort(40, 3, longest=9), steps="last 6")
    slots = problem.slots
    assert isinstance(slots, SequenceSlots)
    rows, there = np.nonzero(slots.step >= 0)
    shuffled = np.random.default_rng(0).permutation(len(rows))
    rows, there = rows[shuffled], there[shuffled]
    found = slots.find(rows, slots.step[rows, there], slots.feature[there])
    assert found.tolist() == there.tolist()
    assert (slots.find(rows, slots.step[rows, there] + 100, slots.feature[there]) == -1).all()
    assert slots.find(rows[:0], rows[:0], rows[:0]).tolist() == []


def test_finding_slots_takes_no_more_memory_than_the_slots() -> None:
    """Changes of many values of many samples, as a plan to go on from has them."""
    samples, width = 40, 500
    step = np.tile(np.arange(width), (samples, 1))
    slots = SequenceSlots(np.zeros((samples, width)), np.zeros(width, np.int64), step)
    rows, there = np.divmod(np.arange(samples * width), width)
    tracemalloc.start()
    found = slots.find(rows, there, np.zeros_like(rows))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.tolist() == there.tolist()
    assert peak < 40 * step.nbytes


def test_one_long_sequence_does_not_cut_the_others_small() -> None:
    """Chunks hold about a batch of steps each, padding included."""
    values = [np.full((5, 1), -1.0)] * 100 + [np.full((500, 1), -1.0)]
    small = TorchClassifier(Total([1.0]), output="logits", batch_size=100)  # 400 steps
    problem = Problem(
        classifier=small, cohort=Cohort.sequences(values), target=1, margin=0.1, steps="last 1", budgets={"x0": 99.0}
    )
    assert [len(chunk) for chunk in problem.chunks(problem.cohort.order, 4096)] == [20, 80, 1]
    assert np.concatenate(problem.chunks(problem.cohort.order, 7)).tolist() == problem.cohort.order.tolist()
