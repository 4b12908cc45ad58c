"""Nearest: each sample's cheapest flip at fixed prices, and the best selection of these that the budgets allow."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from maxflip._util.faults import about, wrong
from maxflip._util.messages import did_you_mean
from maxflip._util.types import Floats
from maxflip.errors import InputError
from maxflip.solvers.base import Proposal, Run, Solver, check_whole_option

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Nearest(Solver):
    """Each sample's cheapest flip at fixed prices, and the best selection of these that the budgets allow.

        d_j = argmin sum_r price_r a_r(d)  s.t.  x_j + d passes and keeps its limits;   then choose.

    Args:
        prices: "budgets" (price_r = 1 / amount_r), "unit" (1 each), or {budget: price}.
        chunk: samples searched at a time.
    """

    prices: Literal["budgets", "unit"] | Mapping[str, float] = "budgets"
    chunk: int = 4096

    def __post_init__(self) -> None:
        if not isinstance(self.prices, Mapping) and self.prices not in ("budgets", "unit"):
            says = "must be 'budgets', 'unit' or {budget: price}."
            raise InputError([wrong(("Nearest", "prices"), self.prices, says)])
        check_whole_option("Nearest.chunk", self.chunk)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        from maxflip.search import FeaturePrices, cheapest_flips

        if problem.menu.levers is not None:
            return self._propose_with_levers(problem, run)
        began = time.monotonic()
        prices = self._budget_prices(problem)
        rows = run.candidates_wanted(problem)
        parts = run.engine.map(
            lambda chunk: cheapest_flips(problem, chunk, FeaturePrices.at(problem, prices, chunk)),
            problem.chunks(rows, self.chunk),
            stage="Finding the cheapest flips",
            watch=run.watch,
        )
        found = [p.rows[p.found] for p in parts]
        changes = [p.changes[p.found] for p in parts]
        return Proposal(
            rows=np.concatenate([rows[:0], *found]),
            changes=np.concatenate([np.empty((0, problem.width)), *changes]),
            unreachable=np.concatenate([rows[:0], *(p.rows[p.unreachable] for p in parts)]),
            unusable=np.concatenate([rows[:0], *(p.rows[p.unusable] for p in parts)]),
            search_prices=(prices,),
            trace={
                "step": [1],
                "searched": [len(rows)],
                "found": [sum(map(len, found))],
                "gradients": [sum(p.evaluations.gradients for p in parts)],
                "forwards": [sum(p.evaluations.forwards for p in parts)],
                "seconds": [time.monotonic() - began],
            },
        )

    def _propose_with_levers(self, problem: Problem, run: Run) -> Proposal:
        from maxflip.search.levers import cheapest_of_all

        prices = self._budget_prices(problem)
        rows = run.candidates_wanted(problem)
        parts = run.engine.map(
            lambda chunk: cheapest_of_all(problem, chunk, prices),
            problem.chunks(rows, self.chunk),
            stage="Trying actions and choices",
            watch=run.watch,
        )
        return Proposal(
            rows=np.concatenate([rows[:0], *(p.rows[p.found] for p in parts)]),
            changes=np.concatenate([np.empty((0, problem.width)), *(p.changes[p.found] for p in parts)]),
            unreachable=np.concatenate([rows[:0], *(p.rows[p.unreachable] for p in parts)]),
            unusable=np.concatenate([rows[:0], *(p.rows[p.unusable] for p in parts)]),
            search_prices=(prices,),
        )

    def _budget_prices(self, problem: Problem) -> Floats:
        """(m,): the price of each budget"""
        from maxflip.search.settings import PRICING

        ledger = problem.ledger
        if self.prices == "unit":
            return np.ones(len(ledger.names))
        if isinstance(self.prices, str):
            return np.where(ledger.amounts > 0, 1.0 / np.maximum(ledger.amounts, PRICING.smallest_budget), 0.0)
        unknown = [n for n in self.prices if n not in ledger.names]
        faults = [
            about(("Nearest", "prices"), f"no budget is called {n!r}.{did_you_mean(n, ledger.names)}") for n in unknown
        ]
        faults += [
            wrong(("Nearest", "prices", n), p, "must be a finite number >= 0.")
            for n, p in self.prices.items()
            if not (isinstance(p, (int, float)) and 0 <= p < math.inf)
        ]
        if faults:
            raise InputError(faults)
        return np.array([float(self.prices.get(n, 0.0)) for n in ledger.names])
