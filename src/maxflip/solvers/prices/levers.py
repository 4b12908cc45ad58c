"""Levers beside changes of features: every combination of levers is a further way to flip a sample.

C_j(lambda) is the least over the combinations of what their levers draw and of the cheapest change of features after
them. The market searches without levers; what is found with them becomes known flips, and columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxflip._util.types import Floats, Mask, Rows
from maxflip.problem.problem import Problem
from maxflip.search.levers import Switched, cheapest_with, switched
from maxflip.search.menu import menu_flips, payable
from maxflip.solvers.prices.settings import MENU
from maxflip.solvers.prices.shard import FlipSet, Shard


@dataclass(eq=False)
class LeverSearch:
    """Flips with levers of the samples `rows`.

    parts: the combinations beside which features may change
    every: flips by levers alone, also such as pass by less than the guard   paid: those that the whole budgets pay for
    alone: of these, such as pass by the guard   possible (n,): whether a flip with levers was not ruled out
    """

    problem: Problem
    rows: Rows
    parts: list[Switched]
    every: FlipSet
    paid: Mask
    alone: FlipSet
    possible: Mask = field(init=False)

    @classmethod
    def of(cls, problem: Problem, rows: Rows) -> LeverSearch:
        flips = menu_flips(problem, rows)
        changes = flips.changes(problem)
        every, paid = FlipSet(flips.rows, changes), payable(problem, flips.rows, changes)
        return cls(problem, rows, list(switched(problem, rows)), every, paid, every.of(flips.sure & paid))

    def __post_init__(self) -> None:
        self.possible = np.zeros(len(self.problem), dtype=bool)
        self.possible[self.every.rows[self.paid]] = True

    def _split(self, prices: Floats) -> tuple[Floats, Floats]:
        """Prices (m,) of budgets, and the worth (n,) of samples at the prices of quotas."""
        m, quotas = len(self.problem.ledger.names), self.problem.quotas
        return prices[:m], quotas.worth(self.problem.worth, prices[m:])

    @property
    def all_payable(self) -> bool:
        return bool(self.paid.all()) and all(one.payable.all() for one in self.parts)

    def flips(self, prices: Floats, costs: Floats) -> FlipSet:
        """Flips that may be cheaper at prices (m + Q,) than the known ones.   costs (n,): of these, inf without any"""
        found, (prices, own) = [self.alone], self._split(prices)
        worth = np.where(np.isin(np.arange(len(costs)), self.problem.include), np.inf, own)
        most = np.where(np.isinf(costs), np.inf, np.minimum(costs, MENU.reach * worth))
        for one in self.parts:
            wanted = one.payable & (one.draws @ prices <= most[one.rows])
            self.possible[one.rows[one.payable & ~wanted]] = True  # not searched, so not ruled out
            for some in one.problem.chunks(one.rows[wanted], MENU.chunk):
                flips, changes = cheapest_with(one, some, prices)
                found.append(FlipSet(flips.rows[flips.found], changes[flips.found]))
                self.possible[flips.rows[~flips.unreachable]] = True
        every = FlipSet.all(found)
        return FlipSet(every.rows, self.problem.settle(every.rows, every.changes)).once

    def proved_gains(self, prices: Floats, *, any_budgets: bool) -> Floats:
        """(n,): upper bounds of max(0, v_j - C_j) by flips with levers; of v_j - C_j where a sample must be picked

        prices (m + Q,)   any_budgets: also of levers that these budgets do not pay for
        """
        of_budgets, worth = self._split(prices)
        gains = np.where(np.isin(np.arange(len(self.problem)), self.problem.include), -np.inf, 0.0)
        counted = self.every.of(self.paid | any_budgets)
        drawn = self.problem.bill(counted.rows, counted.changes).consumption @ of_budgets
        np.maximum.at(gains, counted.rows, worth[counted.rows] - drawn * (1 - 1e-12))
        for one in self.parts:
            paid = np.zeros(len(gains))
            paid[one.rows] = one.draws @ of_budgets * (1 - 1e-12)
            for some in one.problem.chunks(one.rows[one.payable | any_budgets], MENU.chunk):
                own = Shard(one.problem, some, prices).proved_gains(prices)
                if own is not None:
                    gains[some] = np.maximum(gains[some], own - paid[some])
        return gains
