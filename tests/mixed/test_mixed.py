"""Random questions that mix all kinds of levers, beside the optimum by trying everything; and the reference itself."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from maxflip import Budget, Limit
from tests.conftest import LONG
from tests.mixed import free, reference
from tests.mixed.laws import mean_ratio, outcome
from tests.mixed.models import Network
from tests.mixed.questions import SORTS, Question, ask

SEEDS, AT_A_TIME = (range(2000), 400) if LONG else (range(12), 3)
LEAST = 0.98  # of the optimum, in the mean


@pytest.mark.parametrize("begin", range(SEEDS.start, SEEDS.stop, AT_A_TIME))
def test_every_law_holds_for_mixed_questions(begin: int) -> None:
    """One seed again, by hand: python -m tests.mixed --from SEED --to SEED+1"""
    found = [outcome(seed) for seed in SEEDS[begin - SEEDS.start :][:AT_A_TIME]]
    broken = [f"seed {one.question.seed}: {says}\n    {one.question}" for one in found for says in one.failures]
    assert not broken, "\n" + "\n".join(broken)
    assert not LONG or mean_ratio(found) >= LEAST


def test_the_questions_mix_all_kinds() -> None:
    questions = [ask(seed) for seed in range(60)]
    budgets = [budget for q in questions for budget in q.budgets.values()]
    met = {
        **{sort: sum(q.sort == sort for q in questions) for sort in SORTS},
        "linear": sum(q.network.is_linear for q in questions),
        "networks": sum(not q.network.is_linear for q in questions),
        "steps": sum(bool(set(q.movable) - set(q.free)) for q in questions),
        "smallest": sum(any(limit.smallest for limit in q.limits.values()) for q in questions),
        "codes": sum("tier" in q.choices for q in questions),
        "one-hot": sum("plan" in q.choices for q in questions),
        "texts": sum(q.plans is not None for q in questions),
        "derived": sum(bool(q.derived) for q in questions),
        "actions": sum(bool(q.actions) for q in questions),
        "several actions": sum(len(q.actions) > 1 and q.most_actions > 1 for q in questions),
        "exclusive": sum(any(action.excludes for action in q.actions) for q in questions),
        "who": sum(any(action.who for action in q.actions) for q in questions),
        "fees": sum(budget.fee is not None for budget in budgets),
        "only": sum(budget.only is not None for budget in budgets),
        "own weights": sum(any(isinstance(w, np.ndarray) for w in budget.weights.values()) for budget in budgets),
        "quotas": sum(bool(q.quotas) for q in questions),
    }
    assert {kind: count for kind, count in met.items() if count < 3} == {}


def _line(**asked: object) -> Question:
    """Three people who pass where x0 + x1 >= 0, and stand at -1, -2 and -3."""
    weight = np.array([[0.0, 0.0], [1.0, 1.0]])
    given = {
        "sort": "free",
        "network": Network(((weight, np.zeros(2)),)),
        "target": (1,),
        "required": 0.0,
        "is_threshold": False,
        "features": ("x0", "x1"),
        "values": np.array([[-1.0, 0.0], [-2.0, 0.0], [-3.0, 0.0]]),
        "sites": ("Oslo", "Oslo", "Rome"),
    }
    return Question(seed=0, **{**given, **asked})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("amount", "cost", "best"), [(2.9, "absolute", 1), (3.1, "absolute", 2), (0.4, "squared", 0), (2.6, "squared", 2)]
)
def test_the_reference_knows_free_features(amount: float, cost: str, best: float) -> None:
    """1, 2 and 3 units are needed; by squares, each in halves: 0.5, 2 and 4.5."""
    question = _line(budgets={"b": Budget(amount, uses={"x0": 1.0, "x1": 1.0}, cost=cost)})
    assert free.optimum(question) == reference.Optimum(best, best)


def test_the_reference_knows_steps_and_smallest_changes() -> None:
    """By twos, 2, 2 and 4 are needed; of at least 3, 4 each."""
    asked = {"sort": "steps", "budgets": {"b": Budget(4.0, uses={"x0": 1.0}, cost="absolute")}}
    by_twos = _line(**asked, limits={"x0": Limit(-9.0, 9.0, step=2.0)})
    assert reference.optimum(by_twos).at_most == 2
    assert reference.optimum(_line(**asked, limits={"x0": Limit(-9.0, 9.0, step=2.0, smallest=3.0)})).at_most == 1


@pytest.mark.parametrize("seed", [s for s in range(30) if ask(s).free][:4])
def test_both_references_agree_where_free_features_go_by_fine_steps(seed: int) -> None:
    """By steps no more is reached than by any amount, within what both leave open."""
    question = ask(seed)
    names = question.free
    limits = {n: replace(question.limit(n), step=0.5, low=-3.0, high=3.0) for n in names}
    stepped = replace(question, limits={**question.limits, **limits})
    boxed = replace(question, limits={**question.limits, **{n: replace(limits[n], step=None) for n in names}})
    by_steps, by_any = reference.optimum(stepped), free.optimum(boxed)
    assert by_steps.at_least <= by_any.at_most
    assert by_any.at_least <= by_any.at_most
    assert not math.isnan(by_any.at_most)
