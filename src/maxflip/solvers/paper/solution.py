"""The paper's final solution, made after every outer iteration. The best is kept; all are recorded in the trace.

1. Keep the samples that pass (by the judge, which checks limits too).
2. max sum_s worth_s z_s   s.t.  sum_s a_rs z_s <= B_r for every budget r,  z in {0, 1}
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from maxflip import judge
from maxflip._util.types import Floats, Mask, Rows
from maxflip.errors import ProblemError
from maxflip.problem.problem import Problem
from maxflip.search import FeaturePrices, cheapest_flips
from maxflip.search.settings import PRICING
from maxflip.select.choose import choose
from maxflip.select.settings import TWINS
from maxflip.solvers.base import Run


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of one iterate: the candidates that pass, their choice's worth, and numbers for the trace."""

    rows: Rows
    changes: Floats
    worth: float
    musts: int
    numbers: dict[str, float]

    @property
    def rank(self) -> tuple[int, float]:
        """First by the number of picked samples that must be picked, then by worth."""
        return self.musts, self.worth


class Finisher:
    """Makes final solutions of iterates.

    Two rules are not in the paper:
    - Twins share their cheapest flip, so that ties are broken by id. (Twins: equal start values, limits, wanted classes
      and confidence.)
    - Samples that must be picked (`include`), or of whom a quota asks for a number, also offer their cheapest flip at
      prices 1 / amount.
    """

    def __init__(self, problem: Problem, run: Run, rows: Rows) -> None:
        self.problem, self.rows = problem, rows
        self.must = problem.include[~run.standing.already[problem.include]]
        ledger = problem.ledger
        self.prices = np.where(ledger.amounts > 0, 1.0 / np.maximum(ledger.amounts, PRICING.smallest_budget), 0.0)
        low, high = problem.box(rows)
        wanted = problem.goal.wanted_for(rows).numpy()
        confidence = np.round(run.standing.confidence[rows] / (TWINS.same_confidence * problem.guard))
        parts = [part[:, problem.actionable] for part in (problem.start[rows], low, high)]
        alike = np.column_stack([*parts, wanted, confidence, ledger.own.numbers(rows)])
        self.kind = np.unique(alike, axis=0, return_inverse=True)[1].reshape(-1)
        self.has_twins = self.kind.max(initial=-1) + 1 < len(rows)
        self.found = np.zeros(len(rows), dtype=bool)  # whether each has ever passed
        needed = np.intersect1d(rows, np.union1d(self.must, problem.quotas.demanded()))
        flips = cheapest_flips(problem, needed, FeaturePrices.at(problem, self.prices, needed))
        self.extra_rows, self.extra_changes = flips.rows[flips.found], flips.changes[flips.found]

    def finish(self, changes: Floats) -> Solution:
        """The solution of the changes (n, F) of `rows`, as they may be stored"""
        problem, ledger = self.problem, self.problem.ledger
        passing = judge.admissible(problem, self.rows, changes)
        confident = int(passing.sum())
        self.found |= passing
        drawn = problem.bill(self.rows, changes).consumption.sum(axis=0)
        if self.has_twins:
            changes, passing = self._shared(changes, passing)
        rows = np.concatenate([self.rows[passing], self.extra_rows])
        candidates = np.concatenate([changes[passing], self.extra_changes])
        chosen = self._choose(rows, candidates)
        spent = problem.bill(rows[chosen], candidates[chosen]).consumption.sum(axis=0)
        worth = math.fsum(problem.worth[rows[chosen]])
        numbers = {
            "selected": len(chosen),
            "worth": worth,
            "confident": confident,
            "gap": self._gap(rows, candidates, chosen),
        }
        numbers |= {f"spent: {name}": float(value) for name, value in zip(ledger.names, spent, strict=True)}
        numbers |= {f"drawn: {name}": float(value) for name, value in zip(ledger.names, drawn, strict=True)}
        return Solution(rows, candidates, worth, int(np.isin(self.must, rows[chosen]).sum()), numbers)

    def _choose(self, rows: Rows, changes: Floats) -> Rows:
        must = self.must[np.isin(self.must, rows)]
        try:
            return choose(self.problem, rows, changes, must, thrifty=False)
        except ProblemError:  # they do not fit with these flips; a later iterate may have cheaper ones
            return np.empty(0, dtype=np.int64)

    def _shared(self, changes: Floats, passing: Mask) -> tuple[Floats, Mask]:
        """Changes and whether they pass, with twins' changes replaced by their cheapest flip at prices 1 / amount."""
        found = np.flatnonzero(passing)
        with np.errstate(over="ignore", invalid="ignore"):  # overflows become inf and come last
            squares = (changes[found] ** 2).sum(axis=1)
            cost = self.problem.bill(self.rows[found], changes[found]).consumption @ self.prices
        order = found[np.lexsort((found, squares, cost, self.kind[found]))]
        kinds, first = np.unique(self.kind[order], return_index=True)
        leader = np.full(self.kind.max() + 1, -1)
        leader[kinds] = order[first]
        own = leader[self.kind]
        led = np.flatnonzero((own >= 0) & (own != np.arange(len(own))))
        led = led[judge.admissible(self.problem, self.rows[led], changes[own[led]])]
        shared, passes = changes.copy(), passing.copy()
        shared[led], passes[led] = changes[own[led]], True
        return shared, passes

    def _gap(self, rows: Rows, changes: Floats, chosen: Rows) -> float:
        """Mean difference of the two highest scores, over the chosen samples and all models."""
        if not len(chosen):
            return math.nan
        best = judge.scores_after(self.problem, rows[chosen], changes[chosen]).topk(2, dim=2).values
        return float((best[..., 0] - best[..., 1]).mean())
