"""Pool: the flips that were found, in memory and on disk; and what a later question makes of them."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import maxflip_verify
from maxflip import InputError, Nearest, Plan, Prices, Problem, TorchClassifier, resolve, solve
from maxflip.data.places import StepPlaces, TablePlaces
from maxflip.plan.pool import Pool
from maxflip.solvers.base import Proposal, Run, Solver
from tests.examples import linear_problem, net_problem, small_net
from tests.jobs import export
from tests.sequences.examples import ragged_problem
from tests.test_cli import invoke

NEED = 2 * math.atanh(0.1)


class Idle(Solver):
    """Finds nothing."""

    def propose(self, problem: Problem, run: Run) -> Proposal:
        return Proposal(rows=np.empty(0, np.int64), changes=np.empty((0, problem.width)))


def as_lists(pool: Pool) -> list[Any]:
    """(row, [(step, feature, change), ...]) of every flip, sorted"""
    found = []
    for c, row in enumerate(pool.rows.tolist()):
        slots = np.flatnonzero(pool.changes[c])
        step = pool.places.step_of(np.full(len(slots), c), slots)
        feature = pool.places.feature[slots]
        found.append((row, sorted(zip(step.tolist(), feature.tolist(), pool.changes[c, slots].tolist(), strict=True))))
    return sorted(found)


# --- the pool itself ---


def test_a_union_has_every_flip_once_in_order() -> None:
    places = TablePlaces.of(2)
    one = Pool(np.array([2, 0, 2]), np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]), places)
    other = Pool(np.array([0, 2, 1]), np.array([[0.0, 2.0], [1.0, 1e-300], [-0.0, 1.0]]), places)
    both = Pool.union([one, other])
    assert both.rows.tolist() == [2, 0, 2, 1]
    assert both.changes.tolist() == [[1.0, 0.0], [0.0, 2.0], [1.0, 1e-300], [0.0, 1.0]]
    assert len(Pool.union([one.those(np.zeros(3, dtype=bool))])) == 0


def test_slots_of_sequences_tell_flips_apart() -> None:
    """The same change at another step is another flip, and pools with other slots stand side by side."""
    at = np.array([3])
    first = Pool(at, np.array([[1.0]]), StepPlaces(np.array([0]), np.array([[4]])))
    later = Pool(at, np.array([[1.0]]), StepPlaces(np.array([0]), np.array([[5]])))
    assert as_lists(Pool.union([first, later, first])) == [(3, [(4, 0, 1.0)]), (3, [(5, 0, 1.0)])]
    wide = Pool(at, np.array([[0.0, 2.0]]), StepPlaces(np.array([0, 1]), np.array([[4, 0]])))
    assert as_lists(Pool.union([first, wide])) == [(3, [(0, 1, 2.0)]), (3, [(4, 0, 1.0)])]


def test_it_cannot_be_written_to() -> None:
    pool = pickle.loads(pickle.dumps(Pool(np.array([0]), np.array([[1.0]]), TablePlaces.of(1))))
    with pytest.raises(ValueError, match="read-only"):
        pool.changes[0, 0] = 2.0


# --- a plan keeps it ---


def test_a_plan_keeps_all_flips_found_not_only_those_picked() -> None:
    """Five people at distance 1 and a budget for two of them."""
    problem = linear_problem([1.0], np.full((5, 1), NEED - 1.0), [2.5])
    for solver in (Prices(), Nearest()):
        plan = solve(problem, solver)
        assert plan.pool is not None
        assert sorted(set(plan.pool.rows.tolist())) == [0, 1, 2, 3, 4]
        assert set(plan.selected.tolist()) <= set(plan.pool.rows.tolist())
        assert "pool" not in repr(plan)
        again = pickle.loads(pickle.dumps(plan))
        assert as_lists(again.pool) == as_lists(plan.pool)


def test_its_order_is_that_of_the_ids() -> None:
    rng = np.random.default_rng(0)
    x = -rng.uniform(0.2, 2.0, size=(30, 2))
    problem = linear_problem([1.0, 0.5], x, [3.0, 3.0])
    plan = solve(problem)
    assert plan.pool is not None
    rank = np.argsort(problem.cohort.order)
    assert (np.diff(rank[plan.pool.rows]) >= 0).all()


def test_later_questions_choose_from_all_flips_of_the_pool() -> None:
    """A solver that finds nothing flips whom the pool can flip."""
    problem = linear_problem([1.0], np.full((5, 1), NEED - 1.0), [2.5])
    plan = solve(problem)
    assert plan.count == 2
    assert resolve(problem, plan, Idle(), budgets={"x0": 4.5}).count == 4
    assert resolve(problem, plan, Idle(), budgets={"x0": 1.5}).count == 1
    assert resolve(problem, plan, Idle()).count == 2


def test_a_pool_goes_on_from_plan_to_plan() -> None:
    problem = linear_problem([1.0], np.full((5, 1), NEED - 1.0), [2.5])
    plan = solve(problem)
    for amount in (0.5, 1.5, 0.1):
        plan = resolve(problem, plan, Idle(), budgets={"x0": amount})
    assert resolve(problem, plan, Idle(), budgets={"x0": 99.0}).count == 5


def test_flips_that_are_none_at_another_margin_are_left_aside() -> None:
    problem = linear_problem([1.0], np.full((5, 1), NEED - 1.0), [2.5])
    plan = solve(problem)
    harder = resolve(problem, plan, Idle(), margin=0.3)
    assert harder.count == 0
    assert harder.pool is not None
    assert len(harder.pool) == 0


def test_flips_of_excluded_or_of_missing_samples_are_left_aside() -> None:
    x = np.full((5, 1), NEED - 1.0)
    plan = solve(linear_problem([1.0], x, [9.0]))
    fewer = solve(linear_problem([1.0], x[:4], [9.0], exclude=[0]), Idle(), start=plan)
    assert fewer.selected.tolist() == [1, 2, 3]


def test_a_plan_of_other_features_is_refused() -> None:
    plan = solve(linear_problem([1.0], [[-1.0]], [9.0]))
    with pytest.raises(InputError, match="other features"):
        solve(linear_problem([1.0, 1.0], [[-1.0, 0.0]], [9.0, 9.0]), start=plan)


def test_groups_that_share_no_budget_are_not_mixed_by_an_earlier_pool() -> None:
    """Each group has half of the budget, one flip. An earlier joint plan of four must not come back."""
    problem = linear_problem([1.0], np.full((8, 1), NEED - 1.0), [2.5])
    groups = ["a"] * 4 + ["b"] * 4
    start = solve(problem.changed(budgets={"x0": 8.5}))
    plan = solve(problem, Nearest(), start=start, allocation="proportional", groups=groups)
    assert sorted(plan.selected // 4) == [0, 1]
    again = solve(problem, Idle(), start=plan, allocation="proportional", groups=groups)
    assert again.count == 2
    onesided = solve(problem.changed(budgets={"x0": 2.5}), Nearest(), start=None)
    assert set(onesided.selected // 4) == {0}  # two of the first group: more than its part
    assert solve(problem, Idle(), start=onesided, allocation="proportional", groups=groups).count == 0


# --- on disk ---


@pytest.fixture(scope="module")
def asked() -> tuple[Problem, Plan]:
    problem = net_problem(24, budgets={"x0": 1.0, "x1": 1.0, "x2": 1.0, "x3": 0.0}, include=[3], exclude=[5])
    return problem, solve(problem)


def test_it_is_saved_on_request_and_read_back(asked: tuple[Problem, Plan], tmp_path: Path) -> None:
    problem, plan = asked
    plan.save(tmp_path / "with", pool=True)
    plan.save(tmp_path / "without")
    assert not (tmp_path / "without" / "pool.parquet").exists()
    again, bare = Plan.load(tmp_path / "with"), Plan.load(tmp_path / "without")
    assert plan.pool is not None
    assert again.pool is not None
    assert bare.pool is None
    assert as_lists(again.pool) == as_lists(plan.pool)
    table = pq.read_table(tmp_path / "with" / "pool.parquet")
    assert table.schema.names == ["flip", "id", "step", "feature", "change"]
    assert again.ceilings == plan.ceilings
    assert again.include.tolist() == [3]
    assert again.exclude.tolist() == [5]
    for more in ({}, {"x0": 0.5}, {"x0": -0.5, "x1": 3.0}, {"x3": 1.0}):
        assert again.what_if(more) == plan.what_if(more)
        assert bare.what_if(more).at_most == max(bare.what_if(more).at_least, plan.what_if(more).at_most)
    more = {"x0": 3.0, "x1": 3.0}
    assert resolve(problem, again, Idle(), budgets=more).worth == resolve(problem, plan, Idle(), budgets=more).worth


def test_a_pool_that_is_missing_or_another_is_refused(asked: tuple[Problem, Plan], tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    asked[1].save(folder, pool=True)
    file = folder / "pool.parquet"
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(InputError, match=r"pool\.parquet: is not the file that the plan was saved with"):
        Plan.load(folder)
    file.unlink()
    with pytest.raises(InputError, match=r"has no pool\.parquet"):
        Plan.load(folder)
    asked[1].save(folder, overwrite=True)
    assert Plan.load(folder).pool is None


def test_the_auditor_does_not_mind_it(tmp_path: Path) -> None:
    net = small_net(3, seed=1)
    export(net, tmp_path / "net.pt2")
    x = np.random.default_rng(0).normal(size=(30, 3))
    settings: Any = {"target": 1, "margin": 0.1, "budgets": {"x0": 2.0, "x1": 2.0}, "include": [2], "exclude": [4]}
    problem = Problem(classifier=TorchClassifier(net, output="logits"), cohort=x, **settings)
    solve(problem).save(tmp_path / "plan", problem=problem, model=tmp_path / "net.pt2", pool=True)
    assert maxflip_verify.audit(tmp_path / "plan").passed
    assert invoke("verify", tmp_path / "plan").exit_code == 0


def test_steps_of_sequences_survive(tmp_path: Path) -> None:
    problem = ragged_problem(20)
    plan = solve(problem)
    plan.save(tmp_path / "plan", pool=True)
    again = Plan.load(tmp_path / "plan")
    assert plan.pool is not None
    assert again.pool is not None
    assert as_lists(again.pool) == as_lists(plan.pool)
    for more in ({}, {"x0": 5.0}, {"x0": -1.0, "x2": 1.0}):
        assert again.what_if(more) == plan.what_if(more)
    back, which = again.flips.in_problem(problem, again.all_ids, again.features)
    assert len(which) == len(again.flips)
    assert as_lists(Pool.union([back])) == as_lists(plan.pool)
    found = resolve(problem, again, Idle(), budgets={"x0": 6.0}).worth
    assert found == resolve(problem, plan, Idle(), budgets={"x0": 6.0}).worth >= plan.worth
