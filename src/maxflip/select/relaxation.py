"""The linear relaxation of the choice among very many candidates, solved on a small core of samples.

    max  sum_c v_c z_c    s.t.  sum_c a_rc z_c <= b_r for every row r,   at most one c per sample,   0 <= z <= 1

A row is a budget, with a_rc >= 0 and b_r = 1, or a quota, with a_rc and b_r of any sign (`problem.quotas`).
At prices u >= 0 of the rows a sample takes the candidate of largest net gain v_c - u.a_c, or none (0), and

    L(u) = sum_r u_r b_r + sum_samples max(0, max_c v_c - u.a_c)   >=   the optimum.

At prices near the optimal ones, nearly every sample has one clearly best option. So prices are estimated on a part of
the samples and improved on all of them. A small program decides the core, the samples in doubt; all others keep their
best option. If the total worth equals L at the program's prices, both are optimal. Until then the core grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxflip._util.parallel import each_part, filled
from maxflip._util.types import Floats, Mask
from maxflip.select.milp import Program, ProgramResult, relax
from maxflip.select.settings import PROGRAMS, RELAXATION

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """worth (c,)   share (c, m): drawn of each row   sample (c,): 0, 1, ... in order of appearance   must (c,)

    quotas (Q,): amounts of the last Q rows, which are quotas   steps (Q,): what sums of theirs are multiples of
    """

    worth: Floats
    share: Floats
    sample: Indices
    must: Mask
    quotas: Floats = field(default_factory=lambda: np.empty(0))
    steps: Floats = field(default_factory=lambda: np.empty(0))

    @cached_property
    def budgets(self) -> slice:
        """The rows that are budgets."""
        return slice(self.share.shape[1] - len(self.quotas))

    @cached_property
    def room(self) -> Floats:
        """(m,): amounts of all rows"""
        return np.concatenate([np.ones(self.share.shape[1] - len(self.quotas)), self.quotas])

    @cached_property
    def whole_room(self) -> Floats:
        """(m,): for whole candidates: quotas have less than a step more, so that rounded sums keep them if people do"""
        room = self.room.copy()
        room[self.budgets.stop :] += np.minimum(0.5 * self.steps, PROGRAMS.loose)
        return room

    @cached_property
    def samples(self) -> int:
        return int(self.sample.max()) + 1

    @cached_property
    def _order(self) -> Indices | None:
        """(c,): candidates sorted by sample; None if they already are."""
        return None if (self.sample[1:] >= self.sample[:-1]).all() else np.argsort(self.sample, kind="stable")

    @cached_property
    def _begins(self) -> Indices:
        """(samples,): first position of each sample in that order."""
        sample = self._by_sample(self.sample)
        return np.flatnonzero(np.append(True, sample[1:] != sample[:-1]))

    def _by_sample(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self._order is None else values[self._order]

    @cached_property
    def must_samples(self) -> Mask:
        found = np.zeros(self.samples, dtype=bool)
        found[self.sample[self.must]] = True
        return found

    def per_sample_max(self, values: Floats) -> Floats:
        return np.asarray(np.maximum.reduceat(self._by_sample(values), self._begins))

    def per_sample_sum(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(self._by_sample(values), self._begins))

    def per_sample_share(self, parts: Floats) -> Floats:
        """(samples, m): what each sample draws if it takes these parts (c,) of its candidates"""
        begins = np.append(self._begins, len(parts))
        order = np.arange(len(parts)) if self._order is None else self._order
        mixed = sp.csr_matrix((self._by_sample(parts), order, begins), shape=(self.samples, len(parts)))
        return np.asarray(mixed @ self.share)

    def drawn_by(self, chosen: Indices) -> Floats:
        """(m,): what these candidates draw together"""
        drawn = each_part(lambda part: self.share[chosen[part]].sum(axis=0), len(chosen))
        return np.asarray(np.sum([np.zeros(self.share.shape[1]), *drawn], axis=0))

    def net(self, prices: Floats) -> Floats:
        """(c,): net gain v_c - prices . a_c"""
        return filled(lambda part: self.worth[part] - self.share[part] @ prices, self.worth.shape)

    def of(self, kept: Mask) -> Candidates:
        """The candidates `kept` (c,), their samples renumbered."""
        number = np.cumsum(np.bincount(self.sample[kept], minlength=self.samples) > 0) - 1
        return replace(
            self,
            worth=self.worth[kept],
            share=self.share[kept],
            sample=number[self.sample[kept]],
            must=self.must[kept],
        )

    def program(self, capacity: Floats) -> Program:
        """The linear program: a row per budget, and one per sample with several candidates.   capacity (m,)"""
        times = np.bincount(self.sample)
        several = np.flatnonzero(times > 1)
        in_group = times[self.sample] > 1
        position = np.searchsorted(several, self.sample[in_group])
        groups = sp.csr_matrix(
            (np.ones(in_group.sum()), (position, np.flatnonzero(in_group))), shape=(len(several), len(self.sample))
        )
        m = self.share.shape[1]
        return Program(
            worth=self.worth,
            matrix=sp.csc_matrix(sp.vstack([sp.csr_matrix(self.share.T), groups])),
            row_lower=np.concatenate([np.full(m, -np.inf), np.where(self.must_samples[several], 1.0, -np.inf)]),
            row_upper=np.concatenate([capacity, np.ones(len(several))]),
            lower=np.where(self.must & ~in_group, 1.0, 0.0),
            upper=np.ones(len(self.sample)),
        )


@dataclass(frozen=True, eq=False)
class Demand:
    """The best option of each sample at given prices: a candidate or none.

    taken (samples,): the candidate, -1 for none   best (samples,): its net gain
    lead (samples,): its net gain minus that of the second best option; small for samples in doubt
    """

    prices: Floats  # (m,)
    room: Floats  # (m,)
    net: Floats  # (c,): net gains
    best: Floats
    taken: Indices
    lead: Floats

    @classmethod
    def at(cls, prices: Floats, candidates: Candidates) -> Demand:
        net = candidates.net(prices)
        first = candidates.per_sample_max(net)
        is_first = np.flatnonzero(net == first[candidates.sample])[
            ::-1
        ]  # reversed, so that of equals the first one wins
        leader = np.empty(candidates.samples, dtype=np.int64)
        leader[candidates.sample[is_first]] = is_first
        rest = net.copy()
        rest[leader] = -np.inf
        second = candidates.per_sample_max(rest)
        nothing = np.where(candidates.must_samples, -np.inf, 0.0)
        best = np.maximum(first, nothing)
        return cls(
            prices=prices,
            room=candidates.room,
            net=net,
            best=best,
            taken=np.where(first > nothing, leader, -1),
            lead=best - np.maximum(second, np.minimum(first, nothing)),
        )

    def value(self, capacity: Floats) -> float:
        """L(u) with this capacity (m,) of each budget."""
        return float(self.prices @ capacity + self.best.sum())

    @property
    def bound(self) -> float:
        return self.value(self.room)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """x (c,)   bound: upper bound of every selection's worth   prices (m,): u with L(u) = bound"""

    x: Floats
    bound: float
    prices: Floats


def relaxed(
    candidates: Candidates, guess: Floats | None = None, *, patient: bool = True, gap: float = 0.0
) -> Relaxed | None:
    """Solve the linear relaxation; None if the samples that must be picked do not fit.

    Args:
        guess: approximate prices, (m,).
        patient: if False, also None if only the whole program is left, which can take minutes.
        gap: relative gap allowed between the worth of x and the bound, with more than `RELAXATION.small` samples.
    """
    known = None if guess is None else Demand.at(guess, candidates)
    found = _all_of_them(candidates, known) if candidates.share.shape[1] else None
    if found is not None:
        return found
    if candidates.samples > RELAXATION.small and candidates.share.shape[1]:
        few = len(candidates.worth) <= RELAXATION.moderate
        if known is not None:
            polished = _polished(candidates, known, RELAXATION.less_doubtful)
            found = _by_core(
                candidates, polished, widest=RELAXATION.narrow_core if few else RELAXATION.widest_core, gap=gap
            )
        if found is None and not (few and known is not None and patient):
            found = _by_core(candidates, _guessed(candidates), widest=candidates.samples // 2, gap=gap)
        if found is not None or not patient:
            return found
    answer = relax(candidates.program(candidates.room))
    return None if answer is None else Relaxed(answer.x, answer.bound, _prices(answer, candidates))


def near_least(candidates: Candidates, guess: Floats | None) -> tuple[float, Floats] | None:
    """L and the prices at which it is least, or nearly so with many samples; None if the program found no solution."""
    if candidates.samples > RELAXATION.small and candidates.share.shape[1]:
        known = None if guess is None else Demand.at(guess, candidates)
        demand = _guessed(candidates) if known is None else _polished(candidates, known, RELAXATION.doubtful)
        return demand.bound, demand.prices
    answer = relaxed(candidates, guess)
    return None if answer is None else (answer.bound, answer.prices)


def _all_of_them(candidates: Candidates, known: Demand | None) -> Relaxed | None:
    """The solution that takes all samples, or the most valuable ones that a count budget allows, each with its
    candidate that draws least; None if the budgets do not suffice for that.

    known: demand at some prices; if its bound shows that the budgets do not suffice, nothing is tried
    """
    if not candidates.samples:
        return None
    worths = candidates.per_sample_max(candidates.worth)
    capped, cap = _cap(candidates)
    demand = Demand.at(np.full(candidates.share.shape[1], RELAXATION.tiny_price * candidates.worth.max()), candidates)
    draws = -demand.best
    order = np.lexsort((draws, -worths, ~candidates.must_samples))[:cap]
    most = float(np.sort(worths)[::-1][:cap].sum())
    if known is not None and known.bound < most * (1 - RELAXATION.closed_gap):
        return None
    taken = demand.taken[order]
    drawn = candidates.drawn_by(taken)
    if (taken < 0).any() or candidates.must_samples.sum() > cap or (drawn > candidates.whole_room).any():
        return None
    x = np.zeros(len(candidates.worth))
    x[taken] = 1.0
    if float(candidates.worth @ x) < most:
        return None
    prices = np.zeros(candidates.share.shape[1])
    if cap < candidates.samples:
        # What is left of a budget is worth as much by the unit as what is spent: at a lower price all would want some.
        room = 1.0 / float(candidates.share[:, capped].max())
        prices[capped] = candidates.worth[taken].min(initial=np.inf) * max(cap, room) if cap else candidates.worth.max()
    return Relaxed(x, most, prices)


def _cap(candidates: Candidates) -> tuple[int, int]:
    """The tightest budget of which all candidates draw the same share, such as a count; and how many it allows."""
    share = candidates.share[:, candidates.budgets]
    least, largest = share.min(axis=0), share.max(axis=0)
    alike = np.flatnonzero((least == largest) & (largest > 0))
    if not len(alike):
        return 0, candidates.samples
    tightest = int(alike[largest[alike].argmax()])
    return tightest, min(candidates.samples, math.floor(1.0 / largest[tightest] + 1e-9))


def _guessed(candidates: Candidates) -> Demand:
    """Demand at prices estimated on a part of the samples and improved on all."""
    part = candidates.of(candidates.sample % RELAXATION.part == 0)
    found = relaxed(replace(part, share=part.share * RELAXATION.part))
    prices = np.zeros(candidates.share.shape[1]) if found is None else found.prices * RELAXATION.part
    own = prices[candidates.budgets]
    prices[candidates.budgets] = np.maximum(own, RELAXATION.first_prices * candidates.worth.sum() / max(1, len(own)))
    return _polished(candidates, Demand.at(prices, candidates), RELAXATION.doubtful)


def _prices(answer: ProgramResult, candidates: Candidates) -> Floats:
    return np.maximum(answer.duals[: candidates.share.shape[1]], 0.0)


def _by_core(candidates: Candidates, demand: Demand, widest: int, gap: float = 0.0) -> Relaxed | None:
    """Solve by growing cores, from these prices; None if more than `widest` samples would be needed."""
    closed = max(gap, RELAXATION.closed_gap if candidates.samples <= RELAXATION.many else RELAXATION.nearly_closed_gap)
    size = RELAXATION.core
    while size < min(widest, candidates.samples // 2):
        step = _one_core(candidates, demand, size)
        if step is None:
            return None
        x, suggested, bought = step
        after = Demand.at(suggested, candidates)
        if after.bound < demand.bound:  # dual prices of a small program may be far from unique
            demand = after
        bound = demand.bound
        if not bought and bound - float(candidates.worth @ x) <= closed * max(1.0, abs(bound)):
            return Relaxed(x, bound, demand.prices)
        size *= RELAXATION.core_growth
    return None


def _polished(candidates: Candidates, demand: Demand, doubtful: float) -> Demand:
    """Prices closer to the minimum of L, by Newton steps on a less and less smoothed L.

    doubtful: expected number of samples in doubt, divided by the square root of the number of samples
    """
    undecided = int(np.isfinite(demand.lead).sum())  # without those whose only candidate must be picked
    count = min(candidates.samples // RELAXATION.part, int(doubtful * candidates.samples**0.5), undecided - 1)
    inside, here, capacity = candidates, demand, candidates.room
    while count > RELAXATION.core // RELAXATION.doubt_end:
        width = float(np.partition(here.lead, count)[count])
        if width == 0.0:
            break
        # Samples with a large lead are left out from here on; they keep their best option.
        is_near = here.lead < RELAXATION.far * width
        capacity = capacity - inside.drawn_by(here.taken[~is_near & (here.taken >= 0)])
        inside = inside.of(is_near[inside.sample])
        here = Demand.at(here.prices, inside)
        moved = Demand.at(_newton(inside, here.prices, width, capacity), inside)
        if moved.value(capacity) < here.value(capacity):  # false if smoothing changes L too much
            here = moved
        count //= RELAXATION.doubt_division
    polished = Demand.at(here.prices, candidates)
    return polished if polished.bound < demand.bound else demand


def _newton(candidates: Candidates, prices: Floats, width: float, capacity: Floats) -> Floats:
    smoothed = _Smoothed.at(prices, candidates, width, capacity)
    for _ in range(RELAXATION.newton_steps):
        step = smoothed.newton_step(candidates)
        length = 1.0
        while length > RELAXATION.shortest_step:
            further = _Smoothed.at(np.maximum(prices + length * step, 0.0), candidates, width, capacity)
            if further.value < smoothed.value:
                break
            length /= RELAXATION.step_division
        else:
            break
        gained, prices, smoothed = smoothed.value - further.value, further.prices, further
        if gained < width:
            break
    return prices


@dataclass(frozen=True, eq=False)
class _Smoothed:
    """Smoothed L: sum_r u_r capacity_r + sum_samples width log sum_options exp(net / width)"""

    prices: Floats
    width: float
    capacity: Floats
    value: float
    gradient: Floats
    odds: Floats  # (c,): softmax of net / width over the options of a sample

    @classmethod
    def at(cls, prices: Floats, candidates: Candidates, width: float, capacity: Floats) -> _Smoothed:
        net = candidates.net(prices)
        nothing = np.where(candidates.must_samples, -np.inf, 0.0)
        best = np.maximum(candidates.per_sample_max(net), nothing)
        size = np.exp((net - best[candidates.sample]) / width)
        total = candidates.per_sample_sum(size) + np.exp((nothing - best) / width)
        odds = size / total[candidates.sample]
        value = float(prices @ capacity + (best + width * np.log(total)).sum())
        return cls(prices, width, capacity, value, capacity - candidates.share.T @ odds, odds)

    def newton_step(self, candidates: Candidates) -> Floats:
        """(m,): step to the minimum, over prices >= 0, of the second-order approximation."""
        undecided = candidates.per_sample_max(np.minimum(self.odds, 1.0 - self.odds)) > RELAXATION.least_odds
        inside = undecided[candidates.sample]
        if not inside.any():
            return np.zeros_like(self.prices)
        part, odds = candidates.of(inside), self.odds[inside]
        means = part.per_sample_share(odds)
        nothing = np.maximum(1.0 - part.per_sample_sum(odds), 0.0)
        # Computed as a sum of squares, so that rounding keeps it positive semidefinite.
        apart, from_nothing = part.share - means[part.sample], means * np.sqrt(nothing)[:, None]
        apart *= np.sqrt(odds)[:, None]
        curvature = (apart.T @ apart + from_nothing.T @ from_nothing) / self.width
        if not np.diag(curvature).max() > 0.0:
            return np.zeros_like(self.prices)
        scale = np.sqrt(np.maximum(np.diag(curvature), 1e-12 * np.diag(curvature).max()))
        scaled = curvature / np.outer(scale, scale) + 1e-6 * np.eye(len(scale))
        there = nonnegative_minimum(scaled, scaled @ (scale * self.prices) - self.gradient / scale)
        return np.asarray(there / scale - self.prices)


def nonnegative_minimum(curvature: Floats, pull: Floats) -> Floats:
    """argmin over v >= 0 of v . curvature v / 2 - pull . v, for positive definite curvature (m, m), pull (m,).

    An active set method: each iteration fixes all negative entries at 0 and frees all entries at 0 that would gain. It
    nearly always ends after a few iterations. If it cycles, the last v is clipped at 0.
    """
    free = np.ones(len(pull), dtype=bool)
    for _ in range(RELAXATION.turns):
        v = np.zeros(len(pull))
        v[free] = np.linalg.solve(curvature[np.ix_(free, free)], pull[free])
        gains = pull - curvature @ v
        wrong = np.where(free, v < 0, gains > RELAXATION.rounding * np.abs(pull).max())
        if not wrong.any():
            break
        free ^= wrong
    return np.maximum(v, 0.0)


def _one_core(candidates: Candidates, demand: Demand, size: int) -> tuple[Floats, Floats, bool] | None:
    """x (c,), the program's prices (m,), and whether it overspends; None if the solver gives up.

    The samples outside the core may overspend. So the program may exceed budgets, at a price far above their worth.
    """
    m, prices = candidates.share.shape[1], demand.prices
    by_lead = np.argpartition(demand.lead, size)
    width = demand.lead[by_lead[size]]
    in_core = np.zeros(candidates.samples, dtype=bool)
    in_core[by_lead[:size]] = True
    x = np.zeros(len(candidates.worth))
    decided = demand.taken[~in_core & (demand.taken >= 0)]
    x[decided] = 1.0
    rivals = in_core[candidates.sample] & (demand.net >= demand.best[candidates.sample] - width)
    inside = candidates.of(rivals)
    program = inside.program(candidates.room - candidates.drawn_by(decided))
    dear = RELAXATION.overspending * prices + (prices.max() or demand.best.sum())
    more = sp.csc_matrix((-np.ones(m), (np.arange(m), np.arange(m))), shape=(program.matrix.shape[0], m))
    answer = relax(
        Program(
            worth=np.concatenate([program.worth, -dear]),
            matrix=sp.csc_matrix(sp.hstack([program.matrix, more])),
            row_lower=program.row_lower,
            row_upper=program.row_upper,
            lower=np.concatenate([program.lower, np.zeros(m)]),
            upper=np.concatenate([program.upper, np.full(m, np.inf)]),
        )
    )
    if answer is None:
        return None
    x[np.flatnonzero(rivals)] = answer.x[:-m]
    return x, _prices(answer, inside), bool(answer.x[-m:].max() > 0)
