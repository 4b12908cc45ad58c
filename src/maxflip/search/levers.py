"""Flips by levers and changes of features together: each combination of levers moves the start of a sample, and the
cheapest change of features is searched from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxflip import judge
from maxflip._util.types import Floats, Mask, Rows
from maxflip.problem.problem import Problem
from maxflip.search import FeaturePrices, Flips, cheapest_flips
from maxflip.search.menu import as_changes, menu_flips, payable
from maxflip.search.surface import Evaluations


@dataclass(frozen=True, eq=False)
class Pairs:
    """Samples, each with a combination of levers that it may get: c pairs, searched together in large batches.

    rows (c,): the sample of each   which (c,): its combination   combinations (M, K): changes of levers alone
    draws (c, m): what the levers draw, without fees
    payable (c,): whether the whole budgets pay for them; others count in bounds at larger budgets
    """

    rows: Rows
    which: Rows
    combinations: Floats
    draws: Floats
    payable: Mask

    @classmethod
    def of(cls, problem: Problem, rows: Rows) -> Pairs:
        """Every sample with every combination that changes anything."""
        levers = problem.menu.levers
        nothing = np.zeros((0, problem.width))
        every = nothing if levers is None else as_changes(problem, levers.alternatives()[1:])
        none = np.zeros(0, dtype=np.int64)
        empty = none, none, np.zeros((0, len(problem.ledger.names))), np.zeros(0, dtype=bool)
        rooms = np.flatnonzero([problem.few.after(change).most != 0 for change in every])  # for changes of features
        parts = [empty, *(_of_one(problem, rows, number, every[number]) for number in rooms.tolist())]
        whose, which, draws, pays = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(whose, which, every, draws, pays)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def levers(self) -> Floats:
        """(c, K): changes of levers alone"""
        return self.combinations[self.which]

    def at(self, kept: Rows | Mask) -> Pairs:
        return Pairs(self.rows[kept], self.which[kept], self.combinations, self.draws[kept], self.payable[kept])


def _of_one(problem: Problem, rows: Rows, number: int, change: Floats) -> tuple[Rows, Rows, Floats, Mask]:
    """rows, which, draws and payable of the pairs of one combination"""
    each = np.broadcast_to(change, (len(rows), len(change)))
    lawful = judge.lawful(problem, rows, each)
    may, each = rows[lawful], each[lawful]
    bill = problem.bill(may, each)
    return may, np.full(len(may), number), bill.consumption - problem.ledger.flats(may), payable(problem, may, each)


def cheapest_of_all(problem: Problem, rows: Rows, prices: Floats) -> Flips:
    """The cheapest flip of each sample at prices (m,) of budgets, with levers or without."""
    best = cheapest_flips(problem, rows, FeaturePrices.at(problem, prices, rows)) if problem.has_free_changes else None
    if best is None:
        nothing = np.zeros(len(rows), dtype=bool)
        best = Flips(rows, np.zeros((len(rows), problem.width)), nothing, ~nothing, nothing.copy(), Evaluations())
    found, changes, unreachable = best.found.copy(), best.changes.copy(), best.unreachable.copy()
    cost = np.where(found, problem.bill(rows, changes).consumption @ prices, np.inf)
    place = np.full(len(problem), -1)
    place[rows] = np.arange(len(rows))
    alone = menu_flips(problem, rows)
    switches = alone.changes(problem)
    paid = payable(problem, alone.rows, switches)
    ways = [(alone.rows[alone.sure & paid], switches[alone.sure & paid])]
    unreachable[place[alone.rows[paid]]] = False
    if problem.has_free_changes:
        pairs = Pairs.of(problem, rows)
        flips = cheapest_with(problem, pairs.at(pairs.payable), prices)
        unreachable[place[flips.rows[~flips.unreachable]]] = False
        ways.append((flips.rows[flips.found], flips.changes[flips.found]))
    for whose, moved in ways:
        price = problem.bill(whose, moved).consumption @ prices
        order = np.argsort(-price, kind="stable")  # of several flips of a sample, the cheapest is written last
        at = place[whose[order]]
        better = price[order] < cost[at]
        changes[at[better]], found[at[better]] = moved[order][better], True
        np.minimum.at(cost, at, price[order])
    return Flips(rows, changes, found, unreachable & ~found, best.unusable & ~found, best.evaluations)


def cheapest_with(problem: Problem, pairs: Pairs, prices: Floats) -> Flips:
    """Of each pair, the cheapest change of features beside its levers at prices (m,) of budgets, with these."""
    return cheapest_flips(problem, pairs.rows, FeaturePrices.at(problem, prices, pairs.rows), pairs.levers)
