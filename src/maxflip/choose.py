"""At most one candidate flip per sample, within every budget, worth as much as possible.

    max  sum_c v_c z_c    s.t.  sum_c a_rc z_c / B_r <= 1 for every budget r,   at most one c per sample,  z in {0, 1}

The paper's final program, with several candidates per sample allowed. Its linear relaxation has at most one fractional
sample per budget, so nearly everyone is decided by it: those far from the margin keep what the relaxation says, and a
small 0/1 program decides the band around it, wider until the relaxation's bound is met. Of many samples one less than
the bound is enough, and swaps among those in doubt find that sooner. Rows are scaled to budget 1, since the solver's
tolerance is absolute; what it lets slip is found by exact arithmetic, forbidden, and picked again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from maxflip.budgets import Bill
from maxflip.engine import Rows
from maxflip.errors import ProblemError
from maxflip.exact import Floats
from maxflip.problem import Problem
from maxflip.program import TOLERANCE, solve_whole
from maxflip.relaxation import Candidates, Options, Relaxed, relaxed
from maxflip.suggest import counted
from maxflip.swaps import reach

NODES = 500
BAND, PER_BUDGET = 100, 10  # samples in the first band, and so many more per budget
CUTS = 100  # selections over budget by a rounding error that are forbidden
LESS = (
    4 * TOLERANCE
)  # of a budget: what it is given less after such a selection, where there are more samples than EXACT
WIDEST = 2000  # samples: a wider band that is known to be feasible is not tried
EXACT = 300  # samples up to which the optimum itself is sought
SWAPPED = 2  # times the first band: samples among which swaps are tried
EXACT_TERMS = 1_000_000  # numbers that may be summed exactly for insertions that fail by a rounding error
ORDINARY = 40  # worths of up to 2 to this power, or down to its inverse, are left as they are

Chosen = NDArray[np.int64]


def choose(
    problem: Problem,
    rows: Rows,
    changes: Floats,
    must: Rows | None = None,
    prices: Mapping[str, float] | None = None,
) -> Chosen:
    """Indices of the chosen candidates, ascending. rows (c,)   changes (c, F)   must: rows that have to be picked

    prices: of the budgets, where some are known that ought to be about right; they only save time
    """
    needed = np.array([], dtype=np.int64) if must is None else must
    bill = problem.bill(rows, changes)
    without = needed[~np.isin(needed, rows[bill.can_be_paid])]
    if len(without):
        names = ", ".join(problem.cohort.ids[without[:10]])
        raise ProblemError(
            f"include: no flip is known for {len(without)} of these ids: {names}. "
            "Take them off the list, or widen limits."
        )
    candidates, kept = _candidates(problem, rows, bill, needed)
    if not len(kept):
        return kept
    bill = bill.of(kept)
    picked = _within(candidates, bill, _per_share(problem, prices))
    if picked is None:
        raise ProblemError(
            f"include: the budgets do not suffice for {counted(len(needed), 'sample')} that must be picked. "
            "Raise the budgets or shorten the list."
        )
    chosen = _insert(candidates, bill, picked)
    return np.sort(kept[_first_of_equals(candidates, bill, chosen)])


def _candidates(problem: Problem, rows: Rows, bill: Bill, must: Rows) -> tuple[Candidates, Chosen]:
    """Without infinite budgets, and without candidates that exceed a budget alone, are worth nothing or are outdone."""
    ledger = problem.ledger
    finite = np.isfinite(ledger.amounts)
    amounts = ledger.amounts[finite]
    spent = bill.consumption[:, finite]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(spent > 0, spent / amounts, 0.0)
    is_must = np.isin(rows, must) if len(must) else np.zeros(len(rows), dtype=bool)
    wanted = ((problem.worth[rows] > 0) | is_must) & bill.can_be_paid
    fits = (share <= 1.0 + TOLERANCE).all(axis=1)
    kept = np.flatnonzero(fits & wanted & _smallest(rows, bill))
    if not np.isin(must, rows[kept]).all():
        kept = np.flatnonzero(wanted)  # let the program find that it is infeasible
        share = np.minimum(share, 2.0)
    worth = problem.worth[rows[kept]]
    return Candidates(_scaled(worth), share[kept], in_order_of_appearance(rows[kept]), is_must[kept]), kept


def _smallest(rows: Rows, bill: Bill) -> NDArray[np.bool_]:
    """(c,): whether no other candidate of the sample changes every feature as little, and so draws as little from all.

    Twins above all: of n samples with two each, 2^n selections at the last bit of a budget would be tried one by one.
    """
    order = np.argsort(rows, kind="stable")
    sample, needed = rows[order], np.ones(len(rows), dtype=bool)
    for apart in range(1, len(rows)):
        first = np.flatnonzero(sample[apart:] == sample[:-apart])
        if not len(first):
            break
        one, other = order[first], order[first + apart]
        above = (bill.sizes[other] >= bill.sizes[one]).all(axis=1)
        below = (bill.sizes[other] <= bill.sizes[one]).all(axis=1)
        needed[other[above]] = False
        needed[one[below & ~above]] = False
    return needed


def _scaled(worth: Floats) -> Floats:
    """Huge and tiny worths are brought to about 1 by a power of two; all others stay as they are, and whole."""
    exponent = math.frexp(float(worth.max(initial=0.0)))[1]
    return worth if abs(exponent) <= ORDINARY else np.ldexp(worth, -exponent)


def in_order_of_appearance(rows: Rows) -> Rows:
    """0, 1, ... for the sample of each candidate, so that nothing depends on where it stands in the cohort."""
    order = np.argsort(rows, kind="stable")
    begins = np.append(True, rows[order][1:] != rows[order][:-1])[: len(rows)]
    first = order[begins]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    sample = np.empty(len(rows), dtype=np.int64)
    sample[order] = rank[np.cumsum(begins) - 1]
    return sample


def _per_share(problem: Problem, prices: Mapping[str, float] | None) -> Floats | None:
    """What all of each finite budget is worth at these prices."""
    if prices is None:
        return None
    ledger = problem.ledger
    known = np.array([prices.get(name, 0.0) for name in ledger.names])
    finite = np.isfinite(ledger.amounts)
    return np.asarray(known[finite] * ledger.amounts[finite])


def _within(candidates: Candidates, bill: Bill, guess: Floats | None) -> Chosen | None:
    """The optimum, or as near as the limits allow, within every budget exactly; None if what must be picked is not."""
    limit = relaxed(candidates, guess)
    if limit is None:
        return None
    method = _with_cuts if candidates.samples <= EXACT else _with_less
    return method(candidates, bill, limit)


def _with_cuts(candidates: Candidates, bill: Bill, limit: Relaxed) -> Chosen | None:
    """The program lets a budget slip by its tolerance. A selection that does so shows which candidates do not go
    together; that is told to the program, and it picks again."""
    cuts: list[tuple[Floats, float]] = []
    room = np.ones(candidates.share.shape[1])
    picked = _pick(candidates, limit, room, cuts)
    for _ in range(CUTS):
        over = [] if picked is None else bill.of(picked).overspent()
        if picked is None or not over:
            return picked
        cuts += [_too_many(bill, r, picked) for r in over]
        picked = _pick(candidates, limit, room, cuts)
    return None if picked is None else _shed(candidates, bill, picked)


def _with_less(candidates: Candidates, bill: Bill, limit: Relaxed) -> Chosen | None:
    """Of many samples, so little less of a budget that slipped hardly ever costs one of them."""
    finite = np.flatnonzero(np.isfinite(bill.ledger.amounts))
    room = np.ones(len(finite))
    picked = _pick(candidates, limit, room, [])
    while picked is not None and (over := bill.of(picked).overspent()):
        slipped = np.searchsorted(finite, over)
        # Once is enough, unless those slip who stay as they are, or what must be picked needs that last bit.
        again = None
        if (room[slipped] == 1.0).any():
            room[slipped] = 1.0 - LESS
            again = _pick(candidates, limit, room, [])
        if again is None:
            return _shed(candidates, bill, picked)
        picked = again
    return picked


def _too_many(bill: Bill, r: int, picked: Chosen) -> tuple[Floats, float]:
    """(row, most): row . z <= most holds for every selection within budget r, but not for the one picked.

    Those picked overspend; leaving out the smallest changes nothing as long as they draw less than that. Of these, and
    of all that draw as much as the largest of them, at least one must go.
    """
    load = bill.consumption[:, r]
    ascending = picked[np.argsort(load[picked], kind="stable")]
    spare = np.cumsum(load[ascending]) < bill.of(picked).excess(r) * (1.0 - 1e-6)
    cover = ascending[~spare & ((load[ascending] > 0) | bool(bill.ledger.count[r]))]
    largest = load[cover[-1]]
    size = bill.sizes_for(r)
    above_all = size[cover[load[cover] >= largest * (1.0 - 1e-9)]].max(axis=0)
    row = (load > largest * (1.0 + 1e-9)) | (size >= above_all).all(axis=1)
    row[cover] = True
    return row.astype(np.float64), float(len(cover) - 1)


def _pick(candidates: Candidates, limit: Relaxed, room: Floats, cuts: list[tuple[Floats, float]]) -> Chosen | None:
    """The optimum, or as near as the node limit allows; None if what must be picked does not fit.   room (m,): of 1

    Beyond EXACT samples one less than the bound is good enough: closing that last one can take for ever.
    """
    worth = candidates.worth
    is_whole = bool(np.all(worth == np.floor(worth)))
    ceiling = float(np.floor(limit.bound + 1e-6)) if is_whole else limit.bound * (1 - 1e-9)
    doubt = Options.at(limit.prices, candidates).doubt
    doubt[candidates.sample[np.abs(limit.x - np.round(limit.x)) > 1e-7]] = 0.0
    by_doubt = np.argsort(doubt, kind="stable")
    band = BAND + PER_BUDGET * candidates.share.shape[1]
    best: Chosen | None = None
    if len(doubt) <= EXACT:
        enough, gap = ceiling, 1.0 - 1e-6 if is_whole else 1e-9 * max(1.0, limit.bound)
    else:
        enough = ceiling - float(worth.max())
        gap = limit.bound - enough
        best = reach(candidates, limit, room, _among(by_doubt, SWAPPED * band), ceiling, enough)
    while best is None or worth[best].sum() < enough:
        picked = _pick_in_band(candidates, limit, room, cuts, _among(by_doubt, band)[candidates.sample], gap)
        if picked is not None and (best is None or worth[picked].sum() > worth[best].sum()):
            best = picked
        if band >= len(doubt) or (best is not None and band >= WIDEST):
            break
        band *= 8
    return best


def _among(by_doubt: Rows, band: int) -> NDArray[np.bool_]:
    """(samples,): whether each is one of the first."""
    free = np.zeros(len(by_doubt), dtype=bool)
    free[by_doubt[:band]] = True
    return free


def _pick_in_band(
    candidates: Candidates,
    limit: Relaxed,
    room: Floats,
    cuts: list[tuple[Floats, float]],
    free: NDArray[np.bool_],
    gap: float,
) -> Chosen | None:
    """The 0/1 program over the free candidates, all others as the relaxation has them."""
    whole = np.where(free, 0.0, np.round(limit.x))
    left = np.maximum(room - candidates.share.T @ whole, 0.0)
    program = candidates.of(free).program(left)
    program = program.with_rows([(row[free], max(0.0, most - float(row @ whole))) for row, most in cuts])
    answer = solve_whole(program, gap=gap, bound=limit.bound - float(candidates.worth @ whole), nodes=NODES)
    if answer is None:
        return None
    whole[free] = np.round(answer.x)
    return np.flatnonzero(whole > 0.5)


def _first_of_equals(candidates: Candidates, bill: Bill, chosen: Chosen) -> Chosen:
    """The tie rule: of samples that could be picked by the very same change and worth, those that come first are."""
    drawn = candidates.share.sum(axis=1)
    order = np.argsort(drawn, kind="stable")
    same = drawn[order][1:] == drawn[order][:-1]
    twins = np.sort(order[np.append(same, False) | np.append(False, same)])  # all others are unlike in what they draw
    if not len(twins):
        return chosen
    alike = np.column_stack([bill.of(twins).sizes, candidates.worth[twins], candidates.must[twins]])
    _, kind, size = np.unique(alike, axis=0, return_inverse=True, return_counts=True)
    is_chosen = np.zeros(len(candidates.worth), dtype=bool)
    is_chosen[chosen] = True
    picked = np.bincount(kind, weights=is_chosen[twins]).astype(np.int64)
    by_kind = twins[np.argsort(kind, kind="stable")]
    starts = np.cumsum(size) - size
    for k in np.flatnonzero((picked > 0) & (picked < size)):
        own = by_kind[starts[k] : starts[k] + size[k]]
        free = own[is_chosen[own] | ~np.isin(candidates.sample[own], candidates.sample[is_chosen])]
        _, first = np.unique(candidates.sample[free], return_index=True)  # once per sample, in order
        is_chosen[own] = False
        is_chosen[free[first[: picked[k]]]] = True
    return np.flatnonzero(is_chosen)


def _shed(candidates: Candidates, bill: Bill, picked: Chosen) -> Chosen | None:
    """Within every budget exactly, by dropping what is worth least; None if what must be picked is too much."""
    chosen = list(picked)
    while over := bill.of(chosen).overspent():
        r = over[0]
        excess = bill.of(chosen).excess(r)
        load = bill.consumption[chosen, r]
        droppable = ~candidates.must[chosen] & (load > 0)
        if not droppable.any():
            return None
        worth = np.where(droppable, candidates.worth[chosen], np.inf)
        # Among those worth least, the smallest that is enough, or else the largest.
        chosen.pop(int(np.lexsort((np.where(load >= excess, load, -load), load < excess, worth))[0]))
    return np.array(chosen, dtype=np.int64)


def _insert(candidates: Candidates, bill: Bill, picked: Chosen) -> Chosen:
    """What is left over may do for one more."""
    chosen = picked.tolist()
    left = 1.0 - candidates.share[chosen].sum(axis=0)
    taken = np.isin(candidates.sample, candidates.sample[chosen])
    tries = EXACT_TERMS // max(1, len(chosen))
    while True:
        fits = ~taken & (candidates.share <= left + TOLERANCE).all(axis=1)
        if not fits.any() or not tries:
            return np.array(chosen, dtype=np.int64)
        open_ = np.flatnonzero(fits)
        best = open_[np.lexsort((candidates.share[open_].sum(axis=1), -candidates.worth[open_]))[0]]
        if not bill.of([*chosen, best]).fits():
            taken[best] = True  # within the tolerance, but not exactly
            tries -= 1
            continue
        chosen.append(int(best))
        left = left - candidates.share[best]
        taken |= candidates.sample == candidates.sample[best]
