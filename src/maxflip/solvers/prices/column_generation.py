"""Column generation: close the gap between the best mixture of known flips and the dual D, then dive to whole samples.

The columns of a linear program are the known flips. Its solution is their best mixture, worth at most D. If it is worth
less, columns are missing; they are searched at the program's dual prices.

A mixture takes some samples in part. Diving fixes these one after another, each time with new prices, until the
fractional rest is worth less than one sample. Then flips are searched with which the fixed samples draw least.

If several flips of one sample are mixed, their average draws no more than the mixture. If it passes, it becomes a
column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from maxflip._util.types import Floats, Mask, Rows
from maxflip.errors import ProblemError
from maxflip.judge import admissible
from maxflip.select.choose import choose, in_order_of_appearance, unit_of
from maxflip.select.relaxation import Candidates, relaxed
from maxflip.solvers.prices.market import Market
from maxflip.solvers.prices.settings import COLUMNS, SHARD, STAGES
from maxflip.solvers.prices.shard import FlipSet


@dataclass(frozen=True, eq=False)
class Mixture:
    """The best mixture of some columns.   parts (c,): taken of each flip   worth: total

    prices (m + Q,): dual prices of the budgets and the quotas
    """

    columns: FlipSet
    parts: Floats
    worth: float
    prices: Floats

    @cached_property
    def samples(self) -> tuple[Rows, Floats]:
        """The rows of which it takes a part, ascending, and the part taken of each."""
        some = self.parts > COLUMNS.least_part
        rows, place = np.unique(self.columns.rows[some], return_inverse=True)
        taken = np.bincount(place, weights=self.parts[some], minlength=len(rows))
        return rows, np.asarray(taken, dtype=np.float64)

    @property
    def whole(self) -> Rows:
        rows, taken = self.samples
        return rows[taken > 1 - COLUMNS.least_part]

    @property
    def used(self) -> FlipSet:
        return self.columns.of(self.parts > COLUMNS.least_part)


@dataclass(eq=False)
class ColumnGeneration:
    """Column generation for a market.

    added: columns that no shard found: averages, and flips searched here
    used: columns of the best mixture
    picked: the best selection so far
    left (m,): what it leaves of each budget, with the known flips that draw least
    gap: upper limit of a selection's worth minus the mixture's worth
    askew: whether flips that spare one budget each were searched
    step: part of the way from the best prices to the dual prices, for the next search (dual price smoothing)
    """

    market: Market
    added: list[FlipSet] = field(default_factory=list)
    used: list[FlipSet] = field(default_factory=list)
    picked: FlipSet | None = None
    left: Floats | None = None
    gap: float = np.inf
    askew: bool = False
    step: float = COLUMNS.half_way

    def run(self, nearly: float = 0.0, rounds: int = COLUMNS.rounds) -> None:
        """Generate columns until the gap is closed or below `nearly` x D, or a few rounds make no progress."""
        market = self.market
        closed = COLUMNS.closed_gap_tiny if self.tiny else COLUMNS.closed_gap
        close = max(closed * market.typical_worth, nearly * market.value)
        smallest, most, idle = np.inf, -np.inf, 0
        for _ in range(rounds):
            found = self._mixture(self._to_mix())
            if found is None and not self.askew:
                self._search_askew()
                found = self._mixture(self._to_mix())
            if found is None:
                return
            self.used = [found.used]
            self._average(found)
            self.gap = market.most - found.worth
            idle = 0 if self.gap < smallest - close or found.worth > most + close else idle + 1
            smallest, most = min(self.gap, smallest), max(found.worth, most)
            if self.gap <= close or idle == COLUMNS.patience or market.has_spent(COLUMNS.spent):
                return
            self._follow(found.prices)

    def _search_askew(self) -> None:
        """Search flips that spare one budget each: those who must be picked do not fit with the flips known so far."""
        self.askew, problem = True, self.market.problem
        if not self.few or not (len(problem.include) or problem.quotas.demanding):
            return
        for r in np.flatnonzero(self.market.traded).tolist():
            prices = self._thrift_prices.copy()
            prices[r] *= COLUMNS.askew
            self._search_at(self._of_all(prices), problem.cohort.order)

    def reprice(self) -> None:
        """Move to the program's dual prices without a search: D with the known flips alone is least there."""
        market, found = self.market, self._mixture(self._to_mix())
        if found is None:
            return
        self.used = [found.used]
        self._average(found)
        value = market.dual(found.prices)
        if value < market.value:
            market.prices, market.value = found.prices, value
        self.gap = market.most - found.worth

    def _follow(self, prices: Floats) -> None:
        """Search flips at smoothed prices, between the best known ones and the program's dual prices.

        The dual prices oscillate while columns are missing. The step is halved if it does not lower D, since the least
        D may lie far from both ends.
        """
        best = self.market.prices
        steps = COLUMNS.rough_descents if self.gap > COLUMNS.rough_gap * self.market.most else SHARD.descents
        better = self.market.visit(best + self.step * (prices - best), COLUMNS.nearby, steps)
        self.step = COLUMNS.half_way if better else self.step / 2

    def make_whole(self) -> None:
        """Diving: fix fractional samples until the fractional rest is worth less than one sample."""
        worth, kept = self.market.problem.worth, np.empty(0, dtype=np.int64)
        best, aim = kept, np.inf
        for _ in range(COLUMNS.dives if self.few else 0):
            found = self._mixture(self._to_mix(), kept)
            if found is None:
                break
            self._average(found)
            rows, taken = found.samples
            is_fractional = taken <= 1 - COLUMNS.least_part
            aim = min(aim, found.worth)
            if worth[found.whole].sum() > worth[best].sum():
                best = found.whole
            if not is_fractional.any():
                return
            if worth[best].sum() > aim - self.market.least_worth:
                break
            if self.market.has_spent(COLUMNS.spent):
                break
            surest = rows[is_fractional][taken[is_fractional].argmax()]
            kept = np.unique([*kept, surest, *rows[is_fractional & (taken > COLUMNS.sure)]])
            self._follow(found.prices)
        self.draw_less(best)

    def draw_less(self, rows: Rows) -> None:
        """Search flips with which these samples together draw less. The search is at the dual prices of

        min  sum_c t_c x_c    s.t.  sum_c a_rc x_c <= B_r,   sum_c x_c = 1 for each sample     t_c: total draw of flip c
        """
        problem, traded, weights = self.market.problem, self.market.traded, self._thrift_prices
        if not self.few:
            tilt = COLUMNS.tilt * self.market.typical_worth / max(float(problem.thrift_weights[traded].sum()), 1e-300)
            self._search_at(self.market.prices + self._of_all(tilt * weights), rows)
            return
        least, saved = np.inf, COLUMNS.least_saving_tiny if self.tiny else COLUMNS.least_saving
        for _ in range(COLUMNS.savings_tiny if self.tiny else COLUMNS.savings):
            columns = self._to_mix()
            found = self._mixture(columns.of(np.isin(columns.rows, rows)), rows, thrifty=True)
            if found is None or -found.worth > least - saved:
                return
            least = -found.worth
            drawn = found.columns.bill(problem).consumption.T @ found.parts
            self.left = np.where(np.isfinite(self.market.amounts), self.market.amounts - drawn, 0.0)
            self._average(found)
            if self.market.has_spent(COLUMNS.spent_saving) and not self.tiny:
                return
            self._search_at(self._of_all(weights) + found.prices, rows)

    def _of_all(self, prices: Floats) -> Floats:
        """(m + Q,): these prices of budgets (m,), and 0 for quotas"""
        return np.append(prices, np.zeros(len(self.market.problem.quotas)))

    @property
    def _thrift_prices(self) -> Floats:
        """(m,): thrift weight / amount, at which the cost of a change is its total draw"""
        traded = self.market.traded
        return np.where(traded, self.market.problem.thrift_weights / np.where(traded, self.market.amounts, 1.0), 0.0)

    def _search_at(self, prices: Floats, rows: Rows) -> None:
        """Search flips of these rows at these prices, and add them to the columns."""
        found = self.market.held.ask(lambda shard: shard.flips_at(prices, np.inf, np.setdiff1d(shard.rows, rows)))
        self.add(FlipSet.all(found))

    def fill(self, rounds: int) -> None:
        """Search flips that fit into what a selection leaves, as long as that wins something. Then search flips with
        which the selection draws less. An earlier selection stays if it is worth more."""
        problem, market = self.market.problem, self.market
        before, won = self.picked, -1.0
        for _ in range(rounds):
            selected = self._selected()
            if selected is None:
                break
            worth = float(problem.worth[selected.rows].sum())
            is_best = market.most - worth < market.least_worth * (1 - 1e-9)
            left = market.amounts - selected.bill(problem).spent()
            left = np.maximum(left, COLUMNS.least_left * market.amounts)
            found = None if worth <= won or is_best else self._fitting(left, selected.rows)
            if worth > won:
                self.picked, won = selected, worth
            if found is None or not len(found.rows):
                break
            self.add(found)
        if before is not None and float(problem.worth[before.rows].sum()) > won:
            self.picked = before
        if self.picked is not None:
            self.left = market.amounts - self.picked.bill(problem).spent()
            self.draw_less(np.unique(self.picked.rows))
            if market.is_capped and market.weighs:  # other samples may draw less
                if not market.has_spent(STAGES.unspent):
                    self.add(market.nearest(self._thrift_prices))
                else:
                    self._search_at(self._thrift_prices, problem.cohort.order)

    def _selected(self) -> FlipSet | None:
        """The selection that `choose` makes of the candidates. `solve` chooses again in the end.

        None if the samples that must be picked do not fit with the flips known so far.
        """
        problem, candidates = self.market.problem, self.candidates()
        candidates = candidates.of(admissible(problem, candidates.rows, candidates.changes))
        must = np.intersect1d(problem.include, candidates.rows)
        try:
            chosen = choose(problem, candidates.rows, candidates.changes, must, thrifty=False, branched=False)
        except ProblemError:
            return None
        return FlipSet(candidates.rows[chosen], candidates.changes[chosen])

    def _fitting(self, left: Floats, taken: Rows) -> FlipSet:
        """Flips of samples outside `taken` that fit into `left` (m,).

        At prices of 1 / (m left_r) a flip that fits costs at most 1. If none fits, the budgets that are exceeded least
        by the flips nearest to fitting become cheaper, and the search is repeated.
        """
        problem, traded = self.market.problem, self.market.traded
        prices = np.zeros(len(left))
        prices[traded] = self.market.typical_worth / (traded.sum() * left[traded])
        for _ in range(COLUMNS.fill_turns):
            found = self._flips_at(prices, taken)
            share = found.bill(problem).consumption[:, traded] / left[traded]
            most = share.max(axis=1, initial=0.0)
            if (most <= 1.0).any() or not len(most):
                return found.of(most <= 1.0)
            best = share[np.argsort(most, kind="stable")[: COLUMNS.fill_best]]
            prices[traded] *= np.clip((best / best.max(axis=1, keepdims=True)).mean(axis=0), COLUMNS.fill_factor, 1.0)
        return found.of(most <= 1.0)

    def _flips_at(self, prices: Floats, taken: Rows) -> FlipSet:
        return FlipSet.all(self.market.held.ask(lambda shard: shard.flips_at(prices, 1.0, taken)))

    @property
    def outcome(self) -> tuple[Floats, float]:
        """What the selection leaves of each budget, (m,), and its worth; zeros without a selection."""
        if self.picked is None or self.left is None:
            return np.zeros(len(self.market.amounts)), 0.0
        return self.left, float(self.market.problem.worth[self.picked.rows].sum())

    def add(self, flips: FlipSet) -> None:
        """Add flips to the columns and to the known flips of the shards, which determine D."""
        self.added.append(flips)
        self.market.held.ask(lambda shard: shard.tell(flips))

    def candidates(self) -> FlipSet:
        """The flips to choose from."""
        if not self.used:
            return self._offered(COLUMNS.band, dearest=np.inf if self.tiny else COLUMNS.dearest)
        chosen = [] if self.picked is None else [self.picked]
        return FlipSet.all([self._offered(np.inf if self.few else COLUMNS.choice_band), *self.used, *chosen]).once

    def _to_mix(self) -> FlipSet:
        return FlipSet.all([self._offered(np.inf if self.few else COLUMNS.band, COLUMNS.every), *self.used]).once

    @cached_property
    def samples(self) -> int:
        return sum(self.market.held.ask(lambda shard: len(shard.rows)))

    @property
    def tiny(self) -> bool:
        """Whether every known flip stays a column."""
        return self.samples <= COLUMNS.tiny

    @property
    def few(self) -> bool:
        return self.samples <= COLUMNS.few

    def _offered(self, most: float, latest: int = SHARD.latest, dearest: float = np.inf) -> FlipSet:
        prices, band = self.market.prices, np.inf if self.tiny else COLUMNS.band
        least = None if len(self.market.problem.quotas) else dearest  # anybody may be needed to keep a quota
        parts = self.market.held.ask(lambda shard: shard.offered(prices, band, most, latest, least))
        return FlipSet.all([*parts, *self.added])

    def _mixture(self, columns: FlipSet, kept: Rows | None = None, *, thrifty: bool = False) -> Mixture | None:
        """The mixture of greatest worth, or of least total draw if `thrifty`, that takes all samples in `kept` whole;
        None if that is infeasible."""
        if not len(columns.rows):
            return None
        problem, traded, quotas = self.market.problem, self.market.traded, self.market.problem.quotas
        amounts = self.market.amounts[traded]
        # Counts are exact.
        used = np.where(problem.ledger.counts[traded], 1.0, COLUMNS.used_share)
        share = columns.bill(problem).consumption[:, traded] / (amounts * used)
        sample = in_order_of_appearance(columns.rows)
        must = np.isin(columns.rows, problem.include)
        if kept is not None:
            must |= np.isin(columns.rows, kept)
        worth = problem.worth[columns.rows]
        unit = unit_of(worth)
        value = -(share @ problem.thrift_weights[traded]) if thrifty else worth / unit
        scale = np.append(amounts, np.ones(len(quotas)))  # of a price for a whole budget, or for one person of a quota
        guess = None if thrifty else self.market.prices[self.market.priced] * scale / unit
        share = np.hstack([share, quotas.coefficients[:, columns.rows].T])
        most = self.market.part * quotas.amounts
        best = relaxed(Candidates(value, share, sample, must, quotas=most, steps=quotas.steps), guess)
        if best is None:
            return None
        prices = np.zeros(len(self.market.priced))
        prices[self.market.priced] = unit * best.prices / scale
        return Mixture(columns, best.x, unit * best.bound, prices)

    def _average(self, mixture: Mixture) -> None:
        """Where the mixture takes parts of several flips of a sample, add their average to the columns.
        An average is lengthened by one factor after another until it passes, and dropped if it never does."""
        columns, part = mixture.columns, mixture.parts
        some = np.flatnonzero((part > COLUMNS.least_part) & (part < 1 - COLUMNS.least_part))
        sample = in_order_of_appearance(columns.rows[some])
        rows = np.empty(int(sample.max(initial=-1)) + 1, dtype=np.int64)
        rows[sample] = columns.rows[some]
        whole = np.bincount(sample, weights=part[some], minlength=len(rows))
        several = np.bincount(sample, minlength=len(rows)) > 1
        changes = np.zeros((len(rows), columns.changes.shape[1]))
        np.add.at(changes, sample, part[some, None] * columns.changes[some])
        rows, changes = rows[several], changes[several] / whole[several, None]
        found = [FlipSet(rows[:0], changes[:0])]
        for factor in COLUMNS.stretches:
            longer = self.market.problem.settle(rows, factor * changes)
            flips: Mask = admissible(self.market.problem, rows, longer)
            found.append(FlipSet(rows[flips], longer[flips]))
            rows, changes = rows[~flips], changes[~flips]
        averages = FlipSet.all(found)
        if len(averages.rows):
            self.add(averages)
