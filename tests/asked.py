"""Small linear questions of every kind, drawn at random, and the best worth of those whose best plan is known."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip import Budget, Problem
from tests.examples import linear_problem, missing_score

KINDS = ("squared", "absolute", "mixed", "shared")
WORTHS = ("one", "whole", "money", "wide")
AMOUNTS = (0.0, 0.05, 0.5, 2.0, 10.0, math.inf)


@st.composite
def linear_questions(draw: st.DrawFn) -> Problem:
    """2 to 12 samples of 1 to 3 features, one linear score; budgets, caps, worths, limits, includes and excludes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, features = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    kind, includes = draw(st.sampled_from(KINDS)), draw(st.integers(0, 3)) == 0
    amounts = [draw(st.sampled_from(AMOUNTS)) * rng.uniform(0.5, 2.0) for _ in range(features)]
    caps = [0.5, 1.0, 2.5, 3.0, 7.0, math.inf]
    options: dict[str, Any] = {"worth": worths_of(draw(st.sampled_from(WORTHS)), n, rng)}
    if includes:  # there is enough for any one sample, of a third of the budgets too
        amounts, caps, options["include"] = [a + 40.0 for a in amounts], [4.0, 7.0], [0]
    budgets = budgets_of(kind, amounts)
    if draw(st.booleans()):
        budgets["people"] = Budget(draw(st.sampled_from(caps)), cost="count")
    if draw(st.booleans()) and not includes:
        options["limits"] = {"x0": (-2.5, 0.4)}
    if draw(st.booleans()):
        options["exclude"] = [n - 1]
    x = -rng.uniform(-0.3, 2.0, size=(n, features))
    if draw(st.booleans()):
        x[1] = x[0]
    return linear_problem(rng.uniform(0.3, 1.5, size=features), x, budgets, **options)


def budgets_of(kind: str, amounts: list[float]) -> dict[str, Budget]:
    names = [f"x{i}" for i in range(len(amounts))]
    if kind == "shared":
        return {
            "all": Budget(max(amounts), dict.fromkeys(names, 1.0)),
            "first": Budget(amounts[0], {"x0": 1.0}, "absolute"),
        }
    costs = {"squared": ["squared"], "absolute": ["absolute"], "mixed": ["absolute", "squared"]}[kind]
    return {
        name: Budget(amount, {name: 1.0}, costs[i % len(costs)])
        for i, (name, amount) in enumerate(zip(names, amounts, strict=True))
    }


def worths_of(kind: str, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if kind == "one":
        return np.ones(n)
    if kind == "whole":
        return rng.integers(0, 4, size=n).astype(float)
    return rng.lognormal(3.0, 1.0, size=n) if kind == "money" else 10.0 ** rng.uniform(0.0, 6.0, size=n)


@dataclass(frozen=True)
class Solved:
    """A question without limits, of which a set of samples can be flipped together exactly where what they lack adds
    up to no more than what the budgets can give: squared sum_j lack_j^2 <= (sum_i |w_i| sqrt(B_i))^2, absolute
    sum_j lack_j <= sum_i |w_i| B_i."""

    problem: Problem
    weights: NDArray[np.float64]
    lack: NDArray[np.float64]
    squared: bool

    def best(self, amounts: dict[str, float], slack: float) -> float:
        """The most that any set of samples is worth, by trying all, with so much more to give, in parts."""
        cap = amounts.get("people", math.inf)
        own = np.array([amounts[f"x{i}"] for i in range(len(self.weights))])
        gives = self.weights @ (np.sqrt(own) if self.squared else own) * (1.0 + slack)
        takes = self.lack**2 if self.squared else self.lack
        most = gives**2 if self.squared else gives
        to_win = np.flatnonzero(self.lack > 0)
        sets = (list(s) for k in range(len(to_win) + 1) for s in itertools.combinations(to_win, k) if k <= cap)
        return max(math.fsum(self.problem.worth[s]) for s in sets if math.fsum(takes[s]) <= most)


@st.composite
def solved_questions(draw: st.DrawFn) -> Solved:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, features, squared = draw(st.integers(1, 8)), draw(st.integers(1, 3)), draw(st.booleans())
    amounts = (rng.uniform(0.1, 4.0, size=features)).tolist()
    budgets = budgets_of("squared" if squared else "absolute", amounts)
    if draw(st.booleans()):
        budgets["people"] = Budget(draw(st.sampled_from([1.0, 2.5, 4.0])), cost="count")
    weights, x = rng.uniform(0.3, 1.5, size=features), -rng.uniform(-0.3, 2.0, size=(n, features))
    worth = worths_of(draw(st.sampled_from(WORTHS)), n, rng)
    problem = linear_problem(weights, x, budgets, worth=worth)
    lack = missing_score(weights, x, margin=problem.goal.required + problem.guard)
    return Solved(problem, weights, np.maximum(lack, 0.0), squared)


@st.composite
def steps_of_budgets(draw: st.DrawFn) -> list[float]:
    """By which factors the budgets of a question are changed; 0 leaves nothing of one."""
    return draw(st.lists(st.sampled_from([0.0, 0.3, 0.8, 0.999, 1.0, 1.001, 1.3, 2.0, 5.0]), min_size=5, max_size=5))


def more_of(problem: Problem, factors: list[float]) -> dict[str, float]:
    """So much more of each finite budget that it is multiplied by its factor; a budget of 0 grows by the factor."""
    named = zip(problem.budgets.items(), itertools.cycle(factors), strict=False)
    return {
        name: factor if budget.amount == 0 else (factor - 1.0) * budget.amount
        for (name, budget), factor in named
        if math.isfinite(budget.amount)
    }


def amounts_after(problem: Problem, more: dict[str, float]) -> dict[str, float]:
    return {name: budget.amount + more.get(name, 0.0) for name, budget in problem.budgets.items()}
