"""Close the last samples: column generation, where there are few enough samples for a linear program of their flips.

The best mixture of the flips seen, by a linear program, is worth at most D; where it is worth less, some flip is
missing. The program's own prices tell which to look for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from maxflip.choose import choose, in_order_of_appearance, unit_of
from maxflip.engine import Rows
from maxflip.exact import Floats
from maxflip.judge import admissible
from maxflip.relaxation import Candidates, relaxed
from maxflip.solvers.prices.market import Market
from maxflip.solvers.prices.shard import LATEST, Columns

FEW = 3000  # samples
TINY = 100  # samples
BAND = 0.1  # of their worth: what a flip may cost more than another and still be mixed
CHOICE = 0.02  # of their worth: the same, and still be chosen beside those of the best mixture
DEAREST = 0.5  # of their worth: samples that cost so much more are not chosen, where no mixture has been looked for
CLOSED, CLOSED_TINY = 0.3, 1e-4  # of a sample's worth: a gap that no whole sample fits into; in tiny plans
SPARED = 1 - 1e-8  # of each budget is mixed: averages that used all of one to the last bit would only make ties
MIXED = 1e-6  # a part of a flip that counts
PATIENCE = 2  # rounds
NEXT = 1.3  # by which factor a price may differ from the best known when flips are looked for
NEARBY = 1.05  # of their worth: samples that cost more are not
EVERY = 10**6  # flips of a sample
TURNS, BEST, DEARER = 5, 5, 0.2  # price changes in search of what fits, by so many samples, by such a factor
SCRAPS = 1e-6  # of a budget: what is as good as nothing left


@dataclass(eq=False)
class Closing:
    """merged: flips that no shard has seen, made of mixtures or of scraps   used: those of the best mixture"""

    market: Market
    merged: list[Columns] = field(default_factory=list)
    used: list[Columns] = field(default_factory=list)

    def run(self, rounds: int, nearly: float = 0.0) -> None:
        """Until the gap is closed, up to a part `nearly` of all, or a few rounds in a row close little of it."""
        market = self.market
        close = max((CLOSED_TINY if self.tiny else CLOSED) * market.typical_worth, nearly * market.value)
        smallest, idle = np.inf, 0
        for _ in range(rounds):
            found = self._mixture(Columns.all([self._columns(np.inf, EVERY), *self.used]))
            if found is None:
                return
            worth, prices = found
            gap = market.value - worth
            idle = 0 if gap < smallest - close else idle + 1
            smallest = min(gap, smallest)
            if gap <= close or idle == PATIENCE:
                return
            # The program's prices jump about as long as flips are missing: go half way, and not far.
            half, best = (prices + market.prices) / 2, market.prices
            market.visit(np.clip(half, best / NEXT, best * NEXT), NEARBY)

    def fill(self, rounds: int) -> None:
        """Look for flips that fit into what a selection leaves over, as long as that wins something."""
        problem, market = self.market.problem, self.market
        won = -1.0
        for _ in range(rounds):
            columns = self.columns()
            flips = admissible(problem, columns.rows, columns.changes)
            rows, changes = columns.rows[flips], columns.changes[flips]
            chosen = choose(problem, rows, changes, np.intersect1d(problem.include, rows))
            worth = float(problem.worth[rows[chosen]].sum())
            if worth <= won or market.value - worth < market.least_worth * (1 - 1e-9):
                return
            won = worth
            left = np.maximum(market.amounts - problem.ledger.spent(changes[chosen]), SCRAPS * market.amounts)
            found = self._fitting(left, rows[chosen])
            if not len(found.rows):
                return
            self.merged.append(found)

    def _fitting(self, left: Floats, taken: Rows) -> Columns:
        """Flips of others that fit into `left` (m,).

        At prices of 1 / (m left_r) one that fits costs at most 1. Where none does, what the best ones draw too much of
        becomes dearer.
        """
        problem, traded = self.market.problem, self.market.traded
        prices = np.zeros(len(left))
        prices[traded] = self.market.typical_worth / (traded.sum() * left[traded])
        for _ in range(TURNS):
            found = self._flips_at(prices, taken)
            share = problem.ledger.consumption(found.changes)[:, traded] / left[traded]
            most = share.max(axis=1, initial=0.0)
            if (most <= 1.0).any() or not len(most):
                return found.of(most <= 1.0)
            best = share[np.argsort(most, kind="stable")[:BEST]]
            prices[traded] *= np.clip((best / best.max(axis=1, keepdims=True)).mean(axis=0), DEARER, 1.0)
        return found.of(most <= 1.0)

    def _flips_at(self, prices: Floats, taken: Rows) -> Columns:
        return Columns.all(self.market.held.ask(lambda shard: shard.flips_at(prices, 1.0, taken)))

    def columns(self) -> Columns:
        """What to choose from."""
        if not self.used:
            return self._columns(BAND, dearest=np.inf if self.tiny else DEAREST)
        return Columns.all([self._columns(np.inf if self.tiny else CHOICE), *self.used])

    @cached_property
    def tiny(self) -> bool:
        """Whether every flip seen may be the one that fits."""
        return sum(self.market.held.ask(lambda shard: len(shard.rows))) <= TINY

    def _columns(self, most: float, latest: int = LATEST, dearest: float = np.inf) -> Columns:
        prices, band = self.market.prices, np.inf if self.tiny else BAND
        parts = self.market.held.ask(lambda shard: shard.columns(prices, band, most, latest, dearest))
        return Columns.all([*parts, *self.merged])

    def _mixture(self, columns: Columns) -> tuple[float, Floats] | None:
        """(worth, prices (m,)) of the best mixture, of which a note is taken. None if none exists."""
        if not len(columns.rows):
            return None
        problem, traded = self.market.problem, self.market.traded
        amounts = self.market.amounts[traded]
        share = problem.ledger.consumption(columns.changes)[:, traded] / (amounts * SPARED)
        sample = in_order_of_appearance(columns.rows)
        must = np.isin(columns.rows, problem.include)
        unit = unit_of(problem.worth[columns.rows])
        best = relaxed(Candidates(problem.worth[columns.rows] / unit, share, sample, must))
        if best is None:
            return None
        self.used = [Columns(columns.rows[best.x > MIXED], columns.changes[best.x > MIXED])]
        self._merge(columns, best.x)
        prices = np.zeros(len(traded))
        prices[traded] = unit * best.prices / amounts
        return unit * best.bound, prices

    def _merge(self, columns: Columns, part: Floats) -> None:
        """The average of a sample's flips draws no more than the mixture; one that is no flip is left aside."""
        some = np.flatnonzero((part > MIXED) & (part < 1 - MIXED))
        sample = in_order_of_appearance(columns.rows[some])
        rows = np.empty(int(sample.max(initial=-1)) + 1, dtype=np.int64)
        rows[sample] = columns.rows[some]
        whole = np.bincount(sample, weights=part[some], minlength=len(rows))
        several = np.bincount(sample, minlength=len(rows)) > 1
        changes = np.zeros((len(rows), columns.changes.shape[1]))
        np.add.at(changes, sample, part[some, None] * columns.changes[some])
        problem, rows = self.market.problem, rows[several]
        changes = problem.settle(rows, changes[several] / whole[several, None])
        flips = admissible(problem, rows, changes)
        if flips.any():
            self.merged.append(Columns(rows[flips], changes[flips]))
