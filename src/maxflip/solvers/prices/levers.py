"""Levers beside changes of features: every combination of levers is a further way to flip a sample.

C_j(lambda) is the least over the combinations of what their levers draw and of the cheapest change of features after
them. The market searches without levers; what is found with them becomes known flips, and columns.

A sample with a combination is a pair. Pairs are held in shards of their own, in which what the levers draw is paid
whatever the change: a pair is searched from its start once, when it first may win, and followed from price to price
then. Few pairs are searched from their start at every price: one flip more or less decides there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from maxflip._util.types import Floats, Mask, Rows
from maxflip.problem.problem import Problem
from maxflip.search.levers import Pairs, cheapest_with
from maxflip.search.menu import menu_flips, payable
from maxflip.solvers.prices.flip_shard import shard_of
from maxflip.solvers.prices.settings import MENU
from maxflip.solvers.prices.shard import FlipSet, Shard


@dataclass(eq=False)
class LeverSearch:
    """Flips with levers.

    every: flips by levers alone, also such as pass by less than the guard   paid: those that the whole budgets pay for
    alone: of these, such as pass by the guard   possible (n,): whether a flip with levers was not ruled out
    shards: pairs that were searched   begun (c,): which these are
    """

    problem: Problem
    pairs: Pairs
    every: FlipSet
    paid: Mask
    alone: FlipSet
    shards: list[Shard] = field(default_factory=list)
    begun: Mask = field(init=False)
    possible: Mask = field(init=False)

    @classmethod
    def of(cls, problem: Problem, rows: Rows) -> LeverSearch:
        flips = menu_flips(problem, rows)
        changes = flips.changes(problem)
        every, paid = FlipSet(flips.rows, changes), payable(problem, flips.rows, changes)
        return cls(problem, Pairs.of(problem, rows), every, paid, every.of(flips.sure & paid))

    def __post_init__(self) -> None:
        self.begun = np.zeros(len(self.pairs), dtype=bool)
        self.possible = np.zeros(len(self.problem), dtype=bool)
        self.possible[self.every.rows[self.paid]] = True

    def _split(self, prices: Floats) -> tuple[Floats, Floats]:
        """Prices (m,) of budgets, and the worth (n,) of samples at the prices of quotas."""
        m, quotas = len(self.problem.ledger.names), self.problem.quotas
        return prices[:m], quotas.worth(self.problem.worth, prices[m:])

    @property
    def _must(self) -> Mask:
        """(n,): who must be picked"""
        return np.isin(np.arange(len(self.problem)), self.problem.include)

    @property
    def all_payable(self) -> bool:
        return bool(self.paid.all() and self.pairs.payable.all())

    def flips(self, prices: Floats, costs: Floats) -> FlipSet:
        """Flips that may be cheaper at prices (m + Q,) than the known ones.   costs (n,): of these, inf without any"""
        of_budgets, worth = self._split(prices)
        useful = np.where(self._must, np.inf, MENU.reach * worth)
        most = np.where(np.isinf(costs), np.inf, np.minimum(costs, useful))
        wanted = self.pairs.payable & (self.pairs.draws @ of_budgets <= most[self.pairs.rows])
        self.possible[self.pairs.rows[self.pairs.payable & ~wanted & ~self.begun]] = True  # not searched: not ruled out
        if len(self.pairs) <= MENU.few:
            flips = self._anew(wanted, of_budgets)
        else:
            flips = self._followed(wanted, prices, most)
        found = FlipSet.all([self.alone, *flips]).once
        draws = found.bill(self.problem).consumption
        return found.of(np.asarray((draws <= MENU.dearest * self.problem.ledger.amounts).all(axis=1)))

    def _anew(self, wanted: Mask, prices: Floats) -> Iterator[FlipSet]:
        """Search the pairs `wanted` (c,) from their start at prices (m,), those of each combination together."""
        for number in np.unique(self.pairs.which[wanted]).tolist():
            flips = cheapest_with(self.problem, self.pairs.at(wanted & (self.pairs.which == number)), prices)
            self.possible[flips.rows[~flips.unreachable]] = True
            yield FlipSet(flips.rows[flips.found], flips.changes[flips.found])

    def _followed(self, wanted: Mask, prices: Floats, most: Floats) -> Iterator[FlipSet]:
        """Follow the pairs that are known to prices (m + Q,), and search others of `wanted` (c,) for the first time.

        most (n,): the cost from which a flip of a sample is not wanted
        """
        for shard in self.shards:
            dear = shard.costs(self._split(prices)[0]) > MENU.followed * most[shard.rows]
            shard.reprice(prices, MENU.reach, without=torch.as_tensor(dear, device=shard.worth.device))
        new = np.flatnonzero(wanted & ~self.begun)
        self.begun[new] = True
        changed = self.problem.few.counts(self.pairs.combinations)[self.pairs.which[new]]  # `most_changes` counts these
        for part in (new[changed == count] for count in np.unique(changed)):
            self.shards += [self._searched(part[k : k + MENU.chunk], prices) for k in range(0, len(part), MENU.chunk)]
        yield from (shard.latest() for shard in self.shards)

    def _searched(self, some: Rows, prices: Floats) -> Shard:
        """A shard of some pairs, with the first flips of each."""
        shard = self._shard(some, prices)
        shard.first_flips((), polished=False, led=True)
        self.possible[shard.rows[~shard.is_unreachable]] = True
        return shard

    def _shard(self, some: Rows, prices: Floats, part: float = 1.0) -> Shard:
        """part: of what the levers draw"""
        pairs = self.pairs.at(some)
        return shard_of(self.problem, pairs.rows, prices, pairs.levers, part * pairs.draws)

    def proved_gains(self, prices: Floats, *, any_budgets: bool) -> Floats:
        """(n,): upper bounds of max(0, v_j - C_j) by flips with levers; of v_j - C_j where a sample must be picked

        prices (m + Q,)   any_budgets: also of levers that these budgets do not pay for
        """
        of_budgets, worth = self._split(prices)
        pairs, must = self.pairs, self._must
        gains = np.where(must, -np.inf, 0.0)
        counted = self.every.of(self.paid | any_budgets)
        drawn = counted.bill(self.problem).consumption @ of_budgets
        np.maximum.at(gains, counted.rows, worth[counted.rows] - drawn * MENU.rounded)
        pays = must[pairs.rows] | (pairs.draws @ of_budgets * MENU.rounded < worth[pairs.rows])
        some = np.flatnonzero((pairs.payable | any_budgets) & pays)
        for k in range(0, len(some), MENU.chunk):
            shard = self._shard(some[k : k + MENU.chunk], prices, MENU.rounded)
            own = shard.proved_gains(prices)
            if own is not None:
                np.maximum.at(gains, shard.rows, own)
        return gains
