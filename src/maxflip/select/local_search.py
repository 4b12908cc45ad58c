"""Tabu search for a feasible selection of a given worth. It changes one sample in doubt at a time.

The relaxation has a few fractional samples. Rounded, it overspends a little or misses the aim. The violation is

    w_0 (aim - worth of z)+  +  sum_r w_r u_r (share of budget r that z draws - 1)+

with the relaxation's prices u, so that every term is in units of worth. A step makes the one change (another candidate
for a sample, or none) that leaves the least violation. A sample that was just changed is tabu for a few steps. At a
local minimum the weights w of the violated terms grow. If hundreds of samples have nearly the same net gain, this
reaches violation 0 at once, while branch and bound takes seconds.
"""

from __future__ import annotations

import numpy as np

from maxflip._util.types import Floats, Mask
from maxflip.select.relaxation import Candidates, Indices, Relaxed
from maxflip.select.settings import LOCAL_SEARCH


def tabu_search(
    candidates: Candidates,
    relaxation: Relaxed,
    room: Floats,
    free: Mask,
    aim: float,
    enough: float,
    effort: float = 1.0,
) -> Indices | None:
    """The best feasible selection found; None if there was none. Ends at worth `aim`, or soon after `enough`.

    room (m,): available share of each budget
    free (samples,): those that may change, including all that are fractional in the relaxation
    effort: share of the usual number of steps
    """
    inside = np.flatnonzero(free[candidates.sample])
    outside = np.flatnonzero(~free[candidates.sample] & (relaxation.x > 0.5))
    spare = room - candidates.drawn_by(outside) + LOCAL_SEARCH.rounding
    still = aim - float(candidates.worth[outside].sum())
    options = _TabuSearch(candidates.of(free[candidates.sample]), relaxation.x[inside], relaxation.prices)
    found = options.search(np.append(spare, -still), still - (aim - enough), effort)
    return None if found is None else np.sort(np.concatenate([outside, inside[found]]))


def taken_whole(candidates: Candidates, relaxation: Relaxed) -> Indices:
    """Candidates that the relaxation takes whole, or by more than half if their sample must be picked."""
    return np.flatnonzero(
        (relaxation.x > 1 - LOCAL_SEARCH.whole) | (candidates.must & (relaxation.x > LOCAL_SEARCH.half))
    )


def exchanged(candidates: Candidates, prices: Floats, room: Floats, known: Indices) -> Indices | None:
    """Improve a known selection: insert candidates that fit, or exchange a selected one for one of greater worth. None
    if the known one is infeasible.   prices (m,): candidates are tried in order of net gain at these prices"""
    share, sample, worth = candidates.share, candidates.sample, candidates.worth
    chosen = np.zeros(len(worth), dtype=bool)
    chosen[known] = True
    left = room - candidates.drawn_by(np.flatnonzero(chosen))
    covered = np.bincount(sample[chosen], minlength=candidates.samples)
    if (left < 0).any() or (covered > 1).any() or (candidates.must_samples & (covered == 0)).any():
        return None
    net = candidates.net(prices)
    by_net = np.argsort(-net, kind="stable")[: int((net > -LOCAL_SEARCH.near * worth).sum())]
    for _ in range(LOCAL_SEARCH.passes):
        won = 0.0
        for new in by_net[~chosen[by_net]][: LOCAL_SEARCH.line]:
            picked = np.flatnonzero(chosen)
            own = picked[sample[picked] == sample[new]]  # a sample has at most one candidate selected
            gives = share[own].sum(axis=0)
            if (share[new] <= left + gives).all():
                gone = own
            elif len(own):
                continue
            else:
                cheap = picked[(worth[picked] < worth[new]) & ~candidates.must[picked]]
                cheap = cheap[(share[new] <= left + share[cheap]).all(axis=1)]
                gone = cheap[worth[cheap].argsort(kind="stable")[:1]]
                if not len(gone):
                    continue
            gain = float(worth[new] - worth[gone].sum())
            if gain <= 0 and not (gain == 0 and net[new] > net[gone].sum()):
                continue
            chosen[gone], chosen[new] = False, True
            left = left + share[gone].sum(axis=0) - share[new]
            won += gain
        if won <= 0:
            break
    return np.flatnonzero(chosen)


class _TabuSearch:
    """Tabu search over the options of the samples: 0 to c - 1 are the candidates; c, c + 1, ... mean "none", one for
    each sample."""

    def __init__(self, candidates: Candidates, parts: Floats, prices: Floats) -> None:
        c, m = candidates.share.shape
        nothing = c + np.arange(candidates.samples)
        dearest = prices.max(initial=0.0)
        self.c = c
        self.scale = np.append(
            np.maximum(prices, LOCAL_SEARCH.least_price * dearest) if dearest > 0 else np.ones(m), 1.0
        )
        self.sample = np.concatenate([candidates.sample, np.arange(candidates.samples)])
        self.adds = np.zeros((c + candidates.samples, m + 1))  # scaled: shares drawn, and minus the worth
        self.adds[:c] = np.column_stack([candidates.share, -candidates.worth]) * self.scale
        self.barred = np.zeros(len(self.adds), dtype=bool)
        self.barred[nothing] = candidates.must_samples
        self.start = nothing.copy()
        by_part = np.argsort(parts, kind="stable")
        rounded = by_part[(parts[by_part] > 0.5) | candidates.must[by_part]]
        self.start[candidates.sample[rounded]] = rounded  # of several, the largest part

    def search(self, most: Floats, enough: float, effort: float) -> Indices | None:
        """Candidates whose sums of (shares, -worth) are at most `most`; else the best feasible ones found, or None."""
        current, adds, sample = self.start.copy(), self.adds, self.sample
        violation = adds[current].sum(axis=0) - most * self.scale
        weights, tabu_until = np.ones(len(violation)), np.zeros(len(current), dtype=np.int64)
        best, least_shortfall, near = None, np.inf, -most[-1] - enough
        steps = int(effort * min(LOCAL_SEARCH.steps, LOCAL_SEARCH.work // adds.size))
        for step in range(steps):
            if violation[-1] < least_shortfall and (violation[:-1] <= 0).all():
                best, least_shortfall = current.copy(), violation[-1]
            if least_shortfall <= 0 or (least_shortfall <= near and step > LOCAL_SEARCH.for_the_aim * steps):
                break
            after = np.maximum(violation + adds - adds[current[sample]], 0.0) @ weights
            after[self.barred | (tabu_until[sample] > step)] = np.inf
            after[current] = np.inf
            taken = int(after.argmin())
            if after[taken] >= np.maximum(violation, 0.0) @ weights:
                weights[violation > 0] += LOCAL_SEARCH.weight_step
                weights /= weights.mean()
            who = sample[taken]
            violation = violation + adds[taken] - adds[current[who]]
            current[who] = taken
            tabu_until[who] = step + 1 + LOCAL_SEARCH.tenure + 7 * step % LOCAL_SEARCH.tenure_range
        return None if best is None else best[best < self.c]
