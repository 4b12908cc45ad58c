"""Proportional allocation: each group of samples has a part of every budget of its own."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxflip import Budget, Fate, Grouped, InputError, Nearest, Plan, Prices, Problem, TorchClassifier, solve
from maxflip.solvers import Solver
from maxflip.solvers.grouped import read_groups
from tests.conftest import LONG
from tests.contract import SOLVERS
from tests.examples import linear_problem, net_problem
from tests.report.plans import Page
from tests.sequences.examples import Recurrent, ragged_cohort, ragged_problem

every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


def test_groups_by_length_are_alike_in_size_and_length() -> None:
    cohort = ragged_cohort(32, 2)
    groups = read_groups(5, cohort)
    assert sorted(np.bincount(groups).tolist()) == [6, 6, 6, 7, 7]
    assert cohort.ragged is not None
    lengths = [cohort.ragged.lengths[groups == g] for g in range(5)]
    assert all(a.max() <= b.min() for a, b in pairwise(lengths))


@every_solver
def test_one_group_is_everyone(solver: Solver) -> None:
    problem = ragged_problem(30 if LONG else 16)
    joint = solve(problem, solver, seed=2)
    one = solve(problem, solver, seed=2, allocation="proportional", groups=1)
    assert joint.selected.tolist() == one.selected.tolist()
    assert np.array_equal(joint.moves, one.moves)
    assert "The budgets were divided among 1 group in proportion to their sizes." in one.notices


@every_solver
def test_no_group_spends_more_than_its_part(solver: Solver) -> None:
    problem = ragged_problem(budgets={"x0": 4.0, "x1": 4.0})
    plan = solve(problem, solver, allocation="proportional", groups=3)
    groups = read_groups(3, problem.cohort)
    to_be_won = plan.fates != "already"
    assert plan.count > 0
    for group in range(3):
        share = (to_be_won & (groups == group)).sum() / to_be_won.sum()
        spent = problem.ledger.spent(plan.moves[groups[plan.selected] == group])
        assert (spent <= share * problem.ledger.amounts).all()


@pytest.mark.parametrize("seed", range(6 if LONG else 1))
def test_a_common_pool_does_whatever_parts_can_do(seed: int) -> None:
    n = 20 if LONG else 16
    problem = ragged_problem(
        n, cohort=ragged_cohort(n, 3, seed=seed), classifier=TorchClassifier(Recurrent(3, seed=seed), output="logits")
    )
    parts = solve(problem, Prices(), allocation="proportional", groups=4)
    assert solve(problem, Prices()).count >= parts.count


def test_labels_make_groups_of_a_table_too() -> None:
    """Two groups of two, each with half of a budget that pays for three: one in each."""
    problem = linear_problem([1.0], [[-1.0], [-1.0], [-1.0], [-1.0]], [5.0])
    assert solve(problem).count == 3
    plan = solve(problem, allocation="proportional", groups=["a", "b", "a", "b"])
    assert plan.selected.tolist() == [0, 1]


def test_groups_with_less_than_one_person_are_told_of() -> None:
    problem = ragged_problem(budgets={"x0": 50.0, "people": Budget(3, cost="count")})
    plan = solve(problem, allocation="proportional", groups=5)
    assert "Budget 'people' has less than one person for 2 groups: nobody is picked there." in plan.notices


def test_who_must_be_picked_is_picked_in_the_own_group() -> None:
    problem = ragged_problem(include=["P004"], budgets={"x0": 60.0, "x1": 60.0})
    plan = solve(problem, allocation="proportional", groups=2)
    assert "P004" in plan.ids.tolist() or plan.fates[4] == "already"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"allocation": "fair"}, "allocation = 'fair': must be 'joint' or 'proportional'"),
        ({"allocation": "proportional"}, "a proportional allocation needs `groups`"),
        ({"groups": 3}, "a joint one has none"),
        ({"allocation": "proportional", "groups": 0}, "must be between 1 and the number of sequences, 30"),
        ({"allocation": "proportional", "groups": ["a"]}, "1 label for 30 samples"),
        ({"allocation": "proportional", "groups": 1.5}, "wanted how many, by length, or one label per sample"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        solve(ragged_problem(), **options)


def test_a_table_has_no_lengths() -> None:
    problem: Problem = net_problem(10)
    with pytest.raises(InputError, match="a table has no lengths to group by"):
        solve(problem, allocation="proportional", groups=2)


def test_a_proportional_plan_says_so_wherever_it_is_kept(tmp_path: Path) -> None:
    problem = ragged_problem()
    plan = solve(problem, Grouped(Nearest(), 3))
    assert (plan.solver.name, plan.solver.groups, plan.solver.allocation) == ("Nearest", 3, "proportional")
    assert solve(problem, Nearest()).solver.allocation == "joint"
    assert np.array_equal(plan.moves, solve(problem, Nearest(), allocation="proportional", groups=3).moves)
    plan.save(tmp_path / "plan")
    assert json.loads((tmp_path / "plan" / "summary.json").read_text())["solver"]["groups"] == 3
    assert Plan.load(tmp_path / "plan").solver == plan.solver
    page = Page((tmp_path / "plan" / "report.html").read_text())
    assert "Proportional: 3 groups, each with its own part of every budget." in page.text


def test_fates_are_members_of_fate(tmp_path: Path) -> None:
    plan = solve(ragged_problem(), Nearest())
    plan.save(tmp_path / "plan")
    for one in (plan, Plan.load(tmp_path / "plan")):
        assert all(isinstance(fate, Fate) for fate in one.fates)
        assert one.fates[one.selected[0]] is Fate.FLIPPED
