"""Flips by levers and changes of features together: each combination of levers moves the start of a sample, and the
cheapest change of features is searched from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxflip import judge
from maxflip._util.types import Floats, Mask, Rows
from maxflip.problem.problem import Problem
from maxflip.search import FeaturePrices, Flips, cheapest_flips
from maxflip.search.menu import as_changes, menu_flips, payable
from maxflip.search.surface import Evaluations


@dataclass(frozen=True, eq=False)
class Switched:
    """One combination of levers.

    changes (K,): with it and nothing else   problem: the same question after it
    rows (b,): samples that may get it   draws (b, m): what it draws for each, without fees
    payable (b,): whether the whole budgets pay for it; others count in bounds at larger budgets
    """

    changes: Floats
    problem: Problem
    rows: Rows
    draws: Floats
    payable: Mask

    def with_it(self, changes: Floats) -> Floats:
        """Changes (c, K) of features, with the levers."""
        return changes + self.changes


def switched(problem: Problem, rows: Rows) -> Iterator[Switched]:
    """Each combination of levers but the empty one that leaves room for changes of features, with the samples that may
    have it."""
    levers = problem.menu.levers
    for change in () if levers is None else as_changes(problem, levers.alternatives()[1:]):
        if problem.few.after(change).most == 0:
            continue
        each = np.broadcast_to(change, (len(rows), len(change)))
        lawful = judge.lawful(problem, rows, each)
        may = rows[lawful]
        if len(may):
            draws = problem.bill(may, each[lawful]).consumption - problem.ledger.flats(may)
            yield Switched(change, problem.after_levers(change), may, draws, payable(problem, may, each[lawful]))


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
    for one in switched(problem, rows) if problem.has_free_changes else ():
        if not one.payable.any():
            continue
        flips, moved = cheapest_with(one, one.rows[one.payable], prices)
        unreachable[place[flips.rows[~flips.unreachable]]] = False
        ways.append((flips.rows[flips.found], problem.settle(flips.rows, moved)[flips.found]))
    for whose, moved in ways:
        price = problem.bill(whose, moved).consumption @ prices
        order = np.argsort(-price, kind="stable")  # of several flips of a sample, the cheapest is written last
        at = place[whose[order]]
        better = price[order] < cost[at]
        changes[at[better]], found[at[better]] = moved[order][better], True
        np.minimum.at(cost, at, price[order])
    return Flips(rows, changes, found, unreachable & ~found, best.unusable & ~found, best.evaluations)


def cheapest_with(one: Switched, rows: Rows, prices: Floats) -> tuple[Flips, Floats]:
    """The cheapest changes of features beside these levers at prices (m,) of budgets; and all changes (B, K)."""
    flips = cheapest_flips(one.problem, rows, FeaturePrices.at(one.problem, prices, rows))
    return flips, one.with_it(flips.changes)
