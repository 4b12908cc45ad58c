"""A selection of a given worth within the budgets, sought by changing one sample in doubt at a time.

The relaxation has a few samples in parts. Rounded, it overspends a little or falls short; what is missing then is

    need(z) = w_0 (aim - worth of z)+  +  sum_r w_r (what z draws of budget r - all of it)+

at the relaxation's prices, so that all is counted in worth. A step makes the one change (another candidate for a
sample, or none) that leaves the least need; who has changed waits some steps. Where no change helps, the weights w of
what is violated grow until one does. Among hundreds of samples whom the prices hardly tell apart this ends in a moment
at no need at all, where branching and bounding takes seconds.
"""

from __future__ import annotations

import numpy as np

from maxflip.exact import Floats
from maxflip.relaxation import Candidates, Indices, Mask, Relaxed

STEPS, WORK = 4000, 10**8  # at most so many, and so many numbers looked at
FOR_THE_AIM = 0.2  # of them, where what is enough has been found
ROUNDING = 1e-12  # of a budget; what it lets slip is decided exactly elsewhere
LEAST_PRICE = 1e-3  # of the highest: a budget that suffices has no price, and must be kept all the same
WAIT, WAIT_MORE = 4, 11  # steps, and up to so many more
LOUDER = 0.1  # of the mean weight
WHOLE, HALF = 1e-6, 0.5  # what is missing of a candidate that counts as taken; the part of one that must be
NEAR = 0.5  # of its worth: a candidate that costs so much more than it is worth is not exchanged
PASSES = 5  # over all candidates
LINE = 500  # candidates that are tried, those that gain most first


def reach(
    candidates: Candidates,
    limit: Relaxed,
    room: Floats,
    free: Mask,
    aim: float,
    enough: float,
    effort: float = 1.0,
) -> Indices | None:
    """The best selection on the way to `aim`, worth `enough` where that was found; None if none kept the budgets.

    room (m,): all that there is of each budget
    free (samples,): those that may change, all whom the relaxation has in parts among them
    effort: part of the usual number of steps
    """
    inside = np.flatnonzero(free[candidates.sample])
    outside = np.flatnonzero(~free[candidates.sample] & (limit.x > 0.5))
    spare = room - candidates.drawn_by(outside) + ROUNDING
    still = aim - float(candidates.worth[outside].sum())
    options = _Options(candidates.of(free[candidates.sample]), limit.x[inside], limit.prices)
    found = options.search(np.append(spare, -still), still - (aim - enough), effort)
    return None if found is None else np.sort(np.concatenate([outside, inside[found]]))


def taken_whole(candidates: Candidates, limit: Relaxed) -> Indices:
    """What the relaxation takes whole, or must take."""
    return np.flatnonzero((limit.x > 1 - WHOLE) | (candidates.must & (limit.x > HALF)))


def exchanged(candidates: Candidates, prices: Floats, room: Floats, known: Indices) -> Indices | None:
    """A selection within the budgets, from a known one: others join it where they fit, or take the place of one that is
    worth less; None if the known one does not fit.   prices (m,): those who gain most are tried first"""
    share, sample, worth = candidates.share, candidates.sample, candidates.worth
    chosen = np.zeros(len(worth), dtype=bool)
    chosen[known] = True
    left = room - candidates.drawn_by(np.flatnonzero(chosen))
    covered = np.bincount(sample[chosen], minlength=candidates.samples)
    if (left < 0).any() or (covered > 1).any() or (candidates.must_samples & (covered == 0)).any():
        return None
    net = candidates.net(prices)
    line = np.argsort(-net, kind="stable")[: int((net > -NEAR * worth).sum())]
    for _ in range(PASSES):
        won = 0.0
        for new in line[~chosen[line]][:LINE]:
            picked = np.flatnonzero(chosen)
            own = picked[sample[picked] == sample[new]]  # its sample's present candidate has to go in any case
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


class _Options:
    """What each sample may have: one of its c candidates, or nothing (options c, c + 1, ...: one for each sample)."""

    def __init__(self, candidates: Candidates, parts: Floats, prices: Floats) -> None:
        c, m = candidates.share.shape
        nothing = c + np.arange(candidates.samples)
        dearest = prices.max(initial=0.0)
        self.c = c
        self.scale = np.append(np.maximum(prices, LEAST_PRICE * dearest) if dearest > 0 else np.ones(m), 1.0)
        self.sample = np.concatenate([candidates.sample, np.arange(candidates.samples)])
        self.adds = np.zeros((c + candidates.samples, m + 1))  # to what is drawn of each budget, and less worth
        self.adds[:c] = np.column_stack([candidates.share, -candidates.worth]) * self.scale
        self.barred = np.zeros(len(self.adds), dtype=bool)
        self.barred[nothing] = candidates.must_samples
        self.start = nothing.copy()
        by_part = np.argsort(parts, kind="stable")
        rounded = by_part[(parts[by_part] > 0.5) | candidates.must[by_part]]
        self.start[candidates.sample[rounded]] = rounded  # of several, the largest part

    def search(self, most: Floats, enough: float, effort: float) -> Indices | None:
        """Candidates whose sum is at most `most`, or the best seen that keep the budgets."""
        current, adds, sample = self.start.copy(), self.adds, self.sample
        need = adds[current].sum(axis=0) - most * self.scale
        weights, waits = np.ones(len(need)), np.zeros(len(current), dtype=np.int64)
        best, best_need, near = None, np.inf, -most[-1] - enough
        steps = int(effort * min(STEPS, WORK // adds.size))
        for step in range(steps):
            if need[-1] < best_need and (need[:-1] <= 0).all():
                best, best_need = current.copy(), need[-1]
            if best_need <= 0 or (best_need <= near and step > FOR_THE_AIM * steps):
                break
            after = np.maximum(need + adds - adds[current[sample]], 0.0) @ weights
            after[self.barred | (waits[sample] > step)] = np.inf
            after[current] = np.inf
            taken = int(after.argmin())
            if after[taken] >= np.maximum(need, 0.0) @ weights:
                weights[need > 0] += LOUDER
                weights /= weights.mean()
            who = sample[taken]
            need = need + adds[taken] - adds[current[who]]
            current[who] = taken
            waits[who] = step + 1 + WAIT + 7 * step % WAIT_MORE
        return None if best is None else best[best < self.c]
