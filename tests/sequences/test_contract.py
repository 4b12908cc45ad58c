"""What holds for every plan of sequences, whichever solver proposed it."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from maxflip import Budget, Cohort, Ensemble, Fate, Plan, Prices, Problem, Tempered, TorchClassifier, solve
from maxflip._util.engine import Local
from maxflip.solvers import Solver
from tests.conftest import LONG
from tests.contract import SOLVERS, by_turns, named
from tests.sequences.examples import Recurrent, Total, alone, ragged_cohort, ragged_problem, ragged_values

every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)
some_solvers = pytest.mark.parametrize("solver", SOLVERS if LONG else SOLVERS[::3], ids=repr)
TWICE = {"network", "mixed budgets"}  # of these, plans are made twice


def assert_lawful(problem: Problem, plan: Plan) -> None:
    """Everything a plan promises, recomputed here from whole sequences."""
    ragged, cohort = problem.cohort.ragged, problem.cohort
    assert ragged is not None
    spent = dict.fromkeys(problem.budgets, 0.0)
    with problem.classifier.borrowed(), torch.no_grad():
        for row, change in zip(plan.selected.tolist(), plan.changes, strict=True):
            values = cohort.values[ragged.begin[row] : ragged.begin[row + 1]]
            assert change.shape == values.shape
            assert not change[np.isnan(values)].any()
            for member in problem.classifier.members:
                after = member.scores(alone(problem, row, change))[0].numpy()
                wanted = problem.goal.wanted[0]
                assert after[wanted].max() - after[~wanted].max() >= problem.goal.required
            for name, budget in problem.budgets.items():
                for feature, weight in budget.weights.items():
                    column = change[:, cohort.features.index(feature)]
                    sizes = np.abs(column) if budget.cost == "absolute" else column**2
                    spent[name] += weight * math.fsum(sizes)
                spent[name] += budget.cost == "count"
    for name, budget in problem.budgets.items():
        assert spent[name] <= budget.amount * (1 + 1e-12)
        assert plan.spend[name] == pytest.approx(spent[name], rel=1e-9, abs=1e-12)
    assert problem.ledger.fits(plan.moves)
    assert np.array_equal(plan.selected, np.flatnonzero(plan.fates == Fate.FLIPPED))
    assert sum(plan.fate_counts().values()) == len(problem)


HOURS = {"hours": Budget(6.0, {"x0": 1.0, "x1": 0.5}, "absolute"), "x2": 3.0, "x0": 4.0}
WIDE = TorchClassifier(Recurrent(3, dtype=torch.float64), output="logits")
BOTH = Ensemble([TorchClassifier(Recurrent(3, seed=s), output="logits") for s in (0, 1)])
QUESTIONS: dict[str, dict[str, Any]] = {
    "network": {},
    "last steps": {"steps": "last 2", "budgets": {"x0": 9.0, "x1": 9.0}},
    "limits": {"limits": "observed", "directions": {"x1": "down"}},
    "five classes": {"classifier": TorchClassifier(Recurrent(3, 5, seed=5), output="logits"), "target": {2, 3}},
    "mixed budgets": {"budgets": HOURS},
    "count": {"budgets": {"x0": 50.0, "people": Budget(4, cost="count")}},
    "float64": {"classifier": WIDE},
    "ensemble": {"classifier": BOTH, "budgets": {f"x{i}": 20.0 for i in range(3)}},
    "tempered": {"classifier": Tempered(WIDE, 2.0)},
    "worth": {"worth": [0.5, 3.0, 1.25, 2.0]},  # by turns
    "include, exclude": {"include": ["P004"], "exclude": ["P001"], "budgets": {"x0": 30.0, "x1": 30.0}},
}


@cache
def asked(name: str, n: int) -> Problem:
    options = dict(QUESTIONS[name])
    if "worth" in options:
        options["worth"] = np.resize(options["worth"], n)
    return ragged_problem(n, **options)


@pytest.mark.parametrize(("solver", "name"), by_turns(SOLVERS, QUESTIONS, 5, always=["network"]), ids=named)
def test_plans_are_lawful_and_repeatable(solver: Solver, name: str) -> None:
    """Prices takes its time; the others find nobody in fewer."""
    problem = asked(name, 16 if isinstance(solver, Prices) else 30)
    plan = solve(problem, solver, seed=3)
    assert_lawful(problem, plan)
    if LONG or name in TWICE:
        again = solve(problem, solver, seed=3)
        assert np.array_equal(plan.selected, again.selected)
        assert np.array_equal(plan.moves, again.moves)
    assert plan.count > 0
    for row in problem.include:
        assert plan.fates[row] in (Fate.FLIPPED, Fate.ALREADY)


def changes_by_id(plan: Plan) -> dict[str, list[Any]]:
    return {i: change.tolist() for i, change in zip(plan.ids, plan.changes, strict=True)}


@every_solver
def test_the_order_of_sequences_does_not_matter(solver: Solver) -> None:
    n = 20 if LONG else 10
    values, ids = ragged_values(n, 3, seed=1), [f"P{j}" for j in range(n)]
    plans = []
    for order in (np.arange(n), np.random.default_rng(0).permutation(n)):
        cohort = Cohort.sequences([values[j] for j in order], ids=[ids[j] for j in order])
        plans.append(changes_by_id(solve(ragged_problem(cohort=cohort), solver)))
    assert plans[0] == plans[1]


@some_solvers
def test_workers_do_not_matter(solver: Solver) -> None:
    """Small batches, so that there is something to share."""
    small = TorchClassifier(Recurrent(3), output="logits", batch_size=4)
    n = 24 if LONG else 10
    problem = ragged_problem(n, classifier=small, cohort=ragged_cohort(n))
    plans = [solve(problem, solver, engine=Local(workers)) for workers in (1, 2)]
    assert changes_by_id(plans[0]) == changes_by_id(plans[1])


@some_solvers
def test_what_is_missing_may_be_written_anyhow(solver: Solver) -> None:
    """Steps without any measurement at the end of a sequence change nothing for a model that skips them."""
    values = ragged_values(20, 2, seed=5)
    longer = [np.vstack([v, np.full((3, 2), np.nan)]) for v in values]
    plans = []
    for given in (values, longer):
        problem = Problem(
            classifier=TorchClassifier(Total([1.0, -0.5]), output="logits"),
            cohort=Cohort.sequences(given),
            target=1,
            margin=0.1,
            steps="all",
            budgets={"x0": 5.0, "x1": 5.0},
            tidy=False,
        )
        plans.append(solve(problem, solver))
    assert plans[0].selected.tolist() == plans[1].selected.tolist()
    shares = [sum(plan.spend.values()) / 5.0 for plan in plans]
    assert shares[0] == pytest.approx(shares[1], rel=1e-6)
    for short, long in zip(plans[0].changes, plans[1].changes, strict=True):
        # Longer sequences are summed in another order. Plans that draw as much to 1e-6 may differ by the square root of
        # that in their changes, since costs are squared.
        np.testing.assert_allclose(short, long[: len(short)], rtol=1e-3, atol=1e-3)
        assert not long[len(short) :].any()
