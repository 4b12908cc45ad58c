"""The linear relaxation of choosing among very many candidates, by a small core of them.

    max  sum_c v_c z_c    s.t.  sum_c a_rc z_c <= 1 for every budget r,   at most one c per sample,   0 <= z <= 1

At prices u >= 0 of the budgets a sample takes the candidate of largest net worth v_c - u.a_c, or none (0), and

    L(u) = sum_r u_r + sum_samples max(0, max_c v_c - u.a_c)   >=   the optimum.

Near the right prices nearly every sample has one clearly best candidate. So the prices are estimated on a part of the
samples and polished on all of them. Samples in doubt (the core) go into a small program; all others keep what they
would take. If the value of what is taken equals L at the program's prices, both are the optimum. Until then the core
grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxflip._util.parallel import each_part, filled
from maxflip._util.types import Floats, Mask
from maxflip.select.milp import Program, ProgramResult, relax
from maxflip.select.settings import RELAXATION

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """worth (c,)   share (c, m) of each budget   sample (c,): 0, 1, ... in order of appearance   must (c,)"""

    worth: Floats
    share: Floats
    sample: Indices
    must: Mask

    @cached_property
    def samples(self) -> int:
        return int(self.sample.max()) + 1

    @cached_property
    def _order(self) -> Indices | None:
        """By sample; None where they are in that order."""
        return None if (self.sample[1:] >= self.sample[:-1]).all() else np.argsort(self.sample, kind="stable")

    @cached_property
    def _begins(self) -> Indices:
        """(samples,): where each begins in that order."""
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
        """(samples, m): what each draws that takes such parts (c,) of its candidates"""
        begins = np.append(self._begins, len(parts))
        order = np.arange(len(parts)) if self._order is None else self._order
        mixed = sp.csr_matrix((self._by_sample(parts), order, begins), shape=(self.samples, len(parts)))
        return np.asarray(mixed @ self.share)

    def drawn_by(self, chosen: Indices) -> Floats:
        """(m,): what these candidates draw together"""
        drawn = each_part(lambda part: self.share[chosen[part]].sum(axis=0), len(chosen))
        return np.asarray(np.sum([np.zeros(self.share.shape[1]), *drawn], axis=0))

    def net(self, prices: Floats) -> Floats:
        """(c,) worth less price"""
        return filled(lambda part: self.worth[part] - self.share[part] @ prices, self.worth.shape)

    def of(self, kept: Mask) -> Candidates:
        """Those candidates, their samples counted anew."""
        number = np.cumsum(np.bincount(self.sample[kept], minlength=self.samples) > 0) - 1
        return Candidates(self.worth[kept], self.share[kept], number[self.sample[kept]], self.must[kept])

    def program(self, capacity: Floats) -> Program:
        """A row per budget, and one per sample that has several candidates."""
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
    """What each sample would take at given prices: a candidate or none.

    taken (samples,): the candidate, -1 for none   doubt (samples,): by how much it is better than the second best
    """

    prices: Floats  # (m,)
    net: Floats  # (c,) worth less price
    best: Floats  # (samples,)
    taken: Indices
    doubt: Floats

    @classmethod
    def at(cls, prices: Floats, candidates: Candidates) -> Demand:
        net = candidates.net(prices)
        first = candidates.per_sample_max(net)
        is_first = np.flatnonzero(net == first[candidates.sample])[::-1]  # of equals, the one that comes first
        leader = np.empty(candidates.samples, dtype=np.int64)
        leader[candidates.sample[is_first]] = is_first
        rest = net.copy()
        rest[leader] = -np.inf
        second = candidates.per_sample_max(rest)
        nothing = np.where(candidates.must_samples, -np.inf, 0.0)
        best = np.maximum(first, nothing)
        return cls(
            prices=prices,
            net=net,
            best=best,
            taken=np.where(first > nothing, leader, -1),
            doubt=best - np.maximum(second, np.minimum(first, nothing)),
        )

    def value(self, capacity: Floats) -> float:
        """L, where there is so much of each budget."""
        return float(self.prices @ capacity + self.best.sum())

    @property
    def bound(self) -> float:
        return self.value(np.ones(len(self.prices)))


@dataclass(frozen=True, eq=False)
class Relaxed:
    """x (c,); the optimum, which bounds every selection; prices (m,) that prove it."""

    x: Floats
    bound: float
    prices: Floats


def relaxed(
    candidates: Candidates, guess: Floats | None = None, *, patient: bool = True, gap: float = 0.0
) -> Relaxed | None:
    """None if what must be picked does not fit.

    Args:
        guess: prices that may be about right, (m,).
        patient: if not, also None where many samples would have to be handed to the program as they are, which can take
            minutes.
        gap: of the bound. With more than `RELAXATION.small` samples, x may be worth so much less; the bound holds.
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
    answer = relax(candidates.program(np.ones(candidates.share.shape[1])))
    return None if answer is None else Relaxed(answer.x, answer.bound, _prices(answer, candidates))


def _all_of_them(candidates: Candidates, known: Demand | None) -> Relaxed | None:
    """Every sample, or as many of the most valuable ones as a count budget allows, if the budgets suffice for the
    candidates that draw least; None if they do not.

    known: at some prices; if these prove a lower bound than that, nothing is tried
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
    if (taken < 0).any() or candidates.must_samples.sum() > cap or (candidates.drawn_by(taken) > 1.0).any():
        return None
    x = np.zeros(len(candidates.worth))
    x[taken] = 1.0
    if float(candidates.worth @ x) < most:
        return None
    prices = np.zeros(candidates.share.shape[1])
    if cap < candidates.samples:
        prices[capped] = candidates.worth[taken].min(initial=np.inf) * cap if cap else candidates.worth.max()
    return Relaxed(x, most, prices)


def _cap(candidates: Candidates) -> tuple[int, int]:
    """The budget that counts samples, if there is one, and how many may be picked: it has the same share of all."""
    least, largest = candidates.share.min(axis=0), candidates.share.max(axis=0)
    alike = np.flatnonzero((least == largest) & (largest > 0))
    if not len(alike):
        return 0, candidates.samples
    tightest = int(alike[largest[alike].argmax()])
    return tightest, min(candidates.samples, math.floor(1.0 / largest[tightest] + 1e-9))


def _guessed(candidates: Candidates) -> Demand:
    """Prices estimated on a part of the samples, polished on all."""
    part = candidates.of(candidates.sample % RELAXATION.part == 0)
    found = relaxed(Candidates(part.worth, part.share * RELAXATION.part, part.sample, part.must))
    prices = np.zeros(candidates.share.shape[1]) if found is None else found.prices * RELAXATION.part
    prices = np.maximum(prices, RELAXATION.first_prices * candidates.worth.sum() / len(prices))
    return _polished(candidates, Demand.at(prices, candidates), RELAXATION.doubtful)


def _prices(answer: ProgramResult, candidates: Candidates) -> Floats:
    return np.maximum(answer.duals[: candidates.share.shape[1]], 0.0)


def _by_core(candidates: Candidates, demand: Demand, widest: int, gap: float = 0.0) -> Relaxed | None:
    """From these prices; None if the core would have to hold more samples than `widest`."""
    closed = max(gap, RELAXATION.closed_gap if candidates.samples <= RELAXATION.many else RELAXATION.nearly_closed_gap)
    size = RELAXATION.core
    while size < min(widest, candidates.samples // 2):
        step = _one_core(candidates, demand, size)
        if step is None:
            return None
        x, suggested, bought = step
        after = Demand.at(suggested, candidates)
        if after.bound < demand.bound:  # a small program may have many dual prices, of which it suggests any
            demand = after
        bound = demand.bound
        if not bought and bound - float(candidates.worth @ x) <= closed * max(1.0, abs(bound)):
            return Relaxed(x, bound, demand.prices)
        size *= RELAXATION.core_growth
    return None


def _polished(candidates: Candidates, demand: Demand, doubtful: float) -> Demand:
    """Prices nearer to the minimum of L, by Newton steps on L smoothed less and less.

    doubtful: how many samples the present prices leave in doubt, in square roots of their number
    """
    undecided = int(np.isfinite(demand.doubt).sum())  # not those that must be picked and have one candidate
    count = min(candidates.samples // RELAXATION.part, int(doubtful * candidates.samples**0.5), undecided - 1)
    inside, here, capacity = candidates, demand, np.ones(candidates.share.shape[1])
    while count > RELAXATION.core // RELAXATION.doubt_end:
        width = float(np.partition(here.doubt, count)[count])
        if width == 0.0:
            break
        # Samples far from doubt are left out from here on; they keep what they take.
        is_near = here.doubt < RELAXATION.far * width
        capacity = capacity - inside.drawn_by(here.taken[~is_near & (here.taken >= 0)])
        inside = inside.of(is_near[inside.sample])
        here = Demand.at(here.prices, inside)
        moved = Demand.at(_newton(inside, here.prices, width, capacity), inside)
        if moved.value(capacity) < here.value(capacity):  # not if smoothing changes L much
            here = moved
        count //= RELAXATION.doubt_division
    polished = Demand.at(here.prices, candidates)
    return polished if polished.bound < demand.bound else demand


def _newton(candidates: Candidates, prices: Floats, width: float, capacity: Floats) -> Floats:
    rounded = _Rounded.at(prices, candidates, width, capacity)
    for _ in range(RELAXATION.newton_steps):
        step = rounded.newton_step(candidates)
        length = 1.0
        while length > RELAXATION.shortest_step:
            further = _Rounded.at(np.maximum(prices + length * step, 0.0), candidates, width, capacity)
            if further.value < rounded.value:
                break
            length /= RELAXATION.step_division
        else:
            break
        gained, prices, rounded = rounded.value - further.value, further.prices, further
        if gained < width:
            break
    return prices


@dataclass(frozen=True, eq=False)
class _Rounded:
    """L with its corners smoothed: sum_r u_r capacity_r + sum_samples width log sum_candidates exp(net / width)"""

    prices: Floats
    width: float
    capacity: Floats
    value: float
    gradient: Floats
    odds: Floats  # (c,) of each candidate to be taken

    @classmethod
    def at(cls, prices: Floats, candidates: Candidates, width: float, capacity: Floats) -> _Rounded:
        net = candidates.net(prices)
        nothing = np.where(candidates.must_samples, -np.inf, 0.0)
        best = np.maximum(candidates.per_sample_max(net), nothing)
        size = np.exp((net - best[candidates.sample]) / width)
        total = candidates.per_sample_sum(size) + np.exp((nothing - best) / width)
        odds = size / total[candidates.sample]
        value = float(prices @ capacity + (best + width * np.log(total)).sum())
        return cls(prices, width, capacity, value, capacity - candidates.share.T @ odds, odds)

    def newton_step(self, candidates: Candidates) -> Floats:
        """To the minimum of the quadratic model over prices >= 0."""
        undecided = candidates.per_sample_max(np.minimum(self.odds, 1.0 - self.odds)) > RELAXATION.least_odds
        inside = undecided[candidates.sample]
        if not inside.any():
            return np.zeros_like(self.prices)
        part, odds = candidates.of(inside), self.odds[inside]
        means = part.per_sample_share(odds)
        nothing = np.maximum(1.0 - part.per_sample_sum(odds), 0.0)
        # A sum of squares, so that no rounding makes it less than one.
        apart, from_nothing = part.share - means[part.sample], means * np.sqrt(nothing)[:, None]
        apart *= np.sqrt(odds)[:, None]
        curvature = (apart.T @ apart + from_nothing.T @ from_nothing) / self.width
        if not np.diag(curvature).max() > 0.0:
            return np.zeros_like(self.prices)
        scale = np.sqrt(np.maximum(np.diag(curvature), 1e-12 * np.diag(curvature).max()))
        round_ = curvature / np.outer(scale, scale) + 1e-6 * np.eye(len(scale))
        there = nonnegative_minimum(round_, round_ @ (scale * self.prices) - self.gradient / scale)
        return np.asarray(there / scale - self.prices)


def nonnegative_minimum(curvature: Floats, pull: Floats) -> Floats:
    """The v >= 0 with the least v.curvature v / 2 - pull.v, curvature being positive definite.

    An active set method: in each turn all negative entries are fixed at 0, and all entries at 0 that would gain are
    freed. It nearly always ends after a few turns. If it cycles, its last answer is clipped at 0.
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
    """x, the prices it suggests, and whether it needs more than there is; None if the program's solver gives up.

    The samples outside may overspend. So the core may buy more of a budget, at a price above its worth.
    """
    m, prices = candidates.share.shape[1], demand.prices
    by_doubt = np.argpartition(demand.doubt, size)
    width = demand.doubt[by_doubt[size]]
    in_core = np.zeros(candidates.samples, dtype=bool)
    in_core[by_doubt[:size]] = True
    x = np.zeros(len(candidates.worth))
    decided = demand.taken[~in_core & (demand.taken >= 0)]
    x[decided] = 1.0
    rivals = in_core[candidates.sample] & (demand.net >= demand.best[candidates.sample] - width)
    inside = candidates.of(rivals)
    program = inside.program(1.0 - candidates.drawn_by(decided))
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
