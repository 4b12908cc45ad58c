"""Random questions over the whole space of what can be asked, and the laws that hold for all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from maxflip import Budget
from tests.conftest import LONG
from tests.sweep.laws import LAWS
from tests.sweep.questions import LIGHT, ask
from tests.sweep.sweep import sweep

# Seeds beyond those of the ordinary run that once broke a law; the large ones are asked in the long run alone.
LARGE = (1576, 2463, 2857, 3635, 3694, 4895)
FOUND = (313, 349, 428, 2385, *(LARGE if LONG else ()))
ORDINARY = range(LIGHT)  # these meet whatever can be asked, and every law
SEEDS, AT_A_TIME = (range(10_000), 50) if LONG else (ORDINARY, 10)


@pytest.mark.parametrize("begin", range(0, len(SEEDS), AT_A_TIME))
def test_every_law_holds_for_random_questions(begin: int) -> None:
    """One seed again, by hand: python -m tests.sweep --from SEED --to SEED+1"""
    failures = [failure for seed in SEEDS[begin : begin + AT_A_TIME] for failure in sweep(seed).failures]
    assert not failures, "\n" + "\n".join(map(str, failures))


@pytest.mark.parametrize("seed", FOUND)
def test_questions_that_once_broke_a_law(seed: int) -> None:
    failures = sweep(seed).failures
    assert not failures, "\n" + "\n".join(map(str, failures))


def test_a_seed_asks_the_same_every_time() -> None:
    for seed in range(5):
        first, again = ask(seed), ask(seed)
        assert str(first) == str(again)
        assert first.budgets == again.budgets
        np.testing.assert_array_equal(first.standing, again.standing)


def test_the_questions_reach_every_corner_of_what_can_be_asked() -> None:
    """Each of these is met by several questions of the ordinary run, so that no law passes for want of a case."""
    questions = [ask(seed) for seed in ORDINARY]
    budgets = [budget for question in questions for budget in question.budgets.values()]
    met = {
        "without any limit, more than 100": sum(q.is_unlimited and len(q) > 100 for q in questions),
        "one sample": sum(len(q) == 1 for q in questions),
        "sequences": sum(q.is_sequences for q in questions),
        "several models": sum(len(q.model.members) > 1 for q in questions),
        "decision values": sum(q.model.is_decision for q in questions),
        "linear": sum(q.is_linear for q in questions),
        "more than two classes": sum(q.model.k > 2 for q in questions),
        "own function": sum(q.has_function for q in questions),
        "absolute": sum(b.cost == "absolute" for b in budgets),
        "people": sum(b.cost == "count" for b in budgets),
        "shared": sum(len(b.weights) > 1 for b in budgets),
        "nothing": sum(b.amount == 0 for b in budgets),
        "nearly nothing": sum(0 < b.amount < 1e-8 for b in budgets),
        "as good as everything": sum(1e9 < b.amount < math.inf for b in budgets),
        "worths of money": sum(q.worth is not None and q.worth.max() > 1e3 for q in questions),
        "worths of 0": sum(q.worth is not None and not q.worth.all() for q in questions),
        "limits": sum(q.limits is not None for q in questions),
        "limits per sample": sum("per sample" in q.kind.get("limits", "") for q in questions),
        "directions": sum(bool(q.directions) for q in questions),
        "include": sum(bool(q.include) for q in questions),
        "exclude": sum(bool(q.exclude) for q in questions),
        "groups": sum(q.groups is not None for q in questions),
        "quotas": sum(bool(q.quotas) for q in questions),
        "whole steps": sum(rule.step is not None for q in questions for rule in q.kinds.rules.values()),
        "smallest changes": sum(rule.smallest is not None for q in questions for rule in q.kinds.rules.values()),
        "actions": sum(bool(q.kinds.actions) for q in questions),
        "actions beside steps": sum(bool(q.kinds.actions and q.kinds.rules) for q in questions),
        "one target for each": sum(isinstance(q.target, np.ndarray) for q in questions),
        "any of several": sum(isinstance(q.target, set) for q in questions),
        "threshold": sum(q.is_threshold for q in questions),
        "nearly certain": sum(q.required == 0.99 for q in questions),
    }
    assert {name: count for name, count in met.items() if count < 3} == {}
    outside = np.mean([(q.standing < q.required).mean() for q in questions])
    assert 0.5 < outside < 0.95


def test_every_law_is_asked_in_the_ordinary_run() -> None:
    assert all(any(law.is_asked(seed) for seed in ORDINARY) for law in LAWS)


def test_a_budget_in_other_units_draws_the_same() -> None:
    question = next(q for q in map(ask, range(LIGHT)) if len(q.features) > 1 and not q.is_sequences and q.budgets)
    factors = np.ldexp(np.ones(len(question.features)), np.arange(len(question.features)))
    other = question.in_other_units(factors)
    np.testing.assert_array_equal(other.values, question.values * factors)
    for name, budget in question.budgets.items():
        assert isinstance(other.budgets[name], Budget)
        assert other.budgets[name].amount == budget.amount
    np.testing.assert_allclose(other.standing, question.standing, rtol=1e-9)
