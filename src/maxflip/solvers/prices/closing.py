"""Close the last samples: column generation, where there are few enough samples for a linear program of their flips.

The best mixture of the flips seen, by a linear program, is worth at most D; where it is worth less, some flip is
missing. The program's own prices tell which to look for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxflip.choose import choose
from maxflip.exact import Floats
from maxflip.judge import admissible
from maxflip.relaxation import Candidates, relaxed
from maxflip.solvers.prices.market import Market
from maxflip.solvers.prices.shard import Columns

FEW = 3000  # samples
TINY = 100  # samples in a plan: every flip seen may be the one that fits
WIDE = 0.3  # of their worth: samples so close to it mix flips
CLOSED = 0.25  # of a sample's worth: a gap that no whole sample fits into
SPARED = 1 - 1e-7  # of each budget is mixed: averages that used all of one to the last bit would only make ties
MIXED = 1e-6  # a part of a flip that counts
PATIENCE = 5  # rounds
SCRAPS = 1e-6  # of a budget: what is as good as nothing left


@dataclass(eq=False)
class Closing:
    """merged: flips that no shard has seen, made of mixtures or of scraps   used: those of the best mixture"""

    market: Market
    merged: list[Columns] = field(default_factory=list)
    used: list[Columns] = field(default_factory=list)

    def run(self, rounds: int) -> None:
        """Until the gap is closed, or a few rounds in a row close nothing of it."""
        market, close = self.market, CLOSED * self.market.typical_worth
        smallest, idle = np.inf, 0
        for _ in range(rounds):
            found = self._mixture(self._columns(WIDE))
            if found is None:
                return
            worth, prices = found
            gap = market.value - worth
            idle = 0 if gap < smallest - close else idle + 1
            smallest = min(gap, smallest)
            if gap <= close or idle == PATIENCE:
                return
            # Half way to the program's prices, which jump about as long as flips are missing.
            market.visit((prices + market.prices) / 2)

    def fill(self, rounds: int) -> None:
        """Look for flips that fit into what a selection leaves over, as long as that wins something.

        At prices of 1 / (m left_r) a flip that fits costs at most 1.
        """
        problem, market = self.market.problem, self.market
        won = -1.0
        for _ in range(rounds):
            columns = self.columns(WIDE)
            flips = admissible(problem, columns.rows, columns.changes)
            rows, changes = columns.rows[flips], columns.changes[flips]
            chosen = choose(problem, rows, changes, np.intersect1d(problem.include, rows))
            worth = float(problem.worth[rows[chosen]].sum())
            if worth <= won or worth >= market.value - market.typical_worth:
                return
            won = worth
            left = np.maximum(market.amounts - problem.ledger.spent(changes[chosen]), SCRAPS * market.amounts)
            prices = np.where(market.traded, market.typical_worth / (market.traded.sum() * left), 0.0)
            found = self._flips_at(prices)
            fits = (problem.ledger.consumption(found.changes) <= left).all(axis=1)
            if not fits.any():
                return
            self.merged.append(Columns(found.rows[fits], found.changes[fits]))

    def _flips_at(self, prices: Floats) -> Columns:
        return Columns.all(self.market.held.ask(lambda shard: shard.flips_at(prices, 1.0)))

    def columns(self, band: float) -> Columns:
        """What to choose from."""
        if not self.used:
            return self._columns(band)
        few = len(np.unique(self.used[0].rows)) <= TINY
        return Columns.all([self._columns(np.inf if few else 0.0), *self.used])

    def _columns(self, band: float) -> Columns:
        prices = self.market.prices
        return Columns.all([*self.market.held.ask(lambda shard: shard.columns(prices, band)), *self.merged])

    def _mixture(self, columns: Columns) -> tuple[float, Floats] | None:
        """(worth, prices (m,)) of the best mixture, of which a note is taken. None if none exists."""
        if not len(columns.rows):
            return None
        problem, traded = self.market.problem, self.market.traded
        amounts = self.market.amounts[traded]
        share = problem.ledger.consumption(columns.changes)[:, traded] / (amounts * SPARED)
        _, sample = np.unique(columns.rows, return_inverse=True)
        must = np.isin(columns.rows, problem.include)
        best = relaxed(Candidates(problem.worth[columns.rows], share, sample, must))
        if best is None:
            return None
        self.used = [Columns(columns.rows[best.x > MIXED], columns.changes[best.x > MIXED])]
        self._merge(columns, best.x)
        prices = np.zeros(len(traded))
        prices[traded] = best.prices / amounts
        return best.bound, prices

    def _merge(self, columns: Columns, part: Floats) -> None:
        """The average of a sample's flips draws no more than the mixture; one that is no flip is left aside."""
        some = np.flatnonzero((part > MIXED) & (part < 1 - MIXED))
        rows, sample = np.unique(columns.rows[some], return_inverse=True)
        whole = np.bincount(sample, weights=part[some], minlength=len(rows))
        several = np.bincount(sample, minlength=len(rows)) > 1
        changes = np.zeros((len(rows), columns.changes.shape[1]))
        np.add.at(changes, sample, part[some, None] * columns.changes[some])
        problem, rows = self.market.problem, rows[several]
        changes = problem.settle(rows, changes[several] / whole[several, None])
        flips = admissible(problem, rows, changes)
        if flips.any():
            self.merged.append(Columns(rows[flips], changes[flips]))
