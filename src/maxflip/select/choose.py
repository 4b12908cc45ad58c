"""At most one candidate flip per sample, within every budget, worth as much as possible.

    max  sum_c v_c z_c    s.t.  sum_c a_rc z_c / B_r <= 1 for every budget r,   at most one c per sample,  z in {0, 1}
                                sum_c a_qc z_c <= b_q for every quota q (`problem.quotas`)

This is the paper's final program with several candidates per sample. Its linear relaxation has at most one fractional
sample per row. A 0/1 program decides the band of samples in doubt, those with nearly equal options at the
relaxation's prices; all others stay as in the relaxation. The band is widened until the relaxation's bound is met. With
many samples, one sample less than the bound is accepted, and `local_search` usually finds that first. Rows are scaled
to budget 1, since HiGHS's tolerance is absolute. Budgets are then checked exactly; a selection that exceeds one is
excluded, and the program is solved again.

Ties in worth are broken by thrift: the selection with the smaller weighted sum of budget shares is preferred.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.faults import about
from maxflip._util.parallel import filled, lowest, rows_of
from maxflip._util.types import Floats, Mask, Rows
from maxflip.errors import ProblemError
from maxflip.plan.pool import first_of_each
from maxflip.problem.bill import Bill
from maxflip.problem.problem import Problem
from maxflip.problem.quotas import Quotas
from maxflip.select.local_search import exchanged, tabu_search, taken_whole
from maxflip.select.milp import solve_whole
from maxflip.select.refusal import infeasible
from maxflip.select.relaxation import Candidates, Demand, Relaxed, relaxed
from maxflip.select.settings import CHOICE, PROGRAMS
from maxflip.select.thrift import thriftier

GAVE_UP = (
    "The linear program of the final choice found no solution, so people were picked one by one, cheapest first: the "
    "plan keeps every budget, but may be worth less than possible. Worths or budgets of very unlike sizes can cause "
    "this; state them in other units."
)

Chosen = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Choice:
    """picked: indices of the chosen candidates, ascending   notices: sentences for the plan"""

    picked: Chosen
    notices: tuple[str, ...] = ()


def choose(
    problem: Problem,
    rows: Rows,
    changes: Floats,
    must: Rows | None = None,
    prices: Mapping[str, float] | None = None,
    *,
    quota_prices: Floats | None = None,
    thrifty: bool = True,
    branched: bool = True,
) -> Chosen:
    """Indices of the chosen candidates, ascending. Arguments as for `choice`."""
    how: dict[str, Any] = {"quota_prices": quota_prices, "thrifty": thrifty, "branched": branched}
    return choice(problem, rows, changes, must, prices, **how).picked


def choice(
    problem: Problem,
    rows: Rows,
    changes: Floats,
    must: Rows | None = None,
    prices: Mapping[str, float] | None = None,
    *,
    quota_prices: Floats | None = None,
    known: Chosen | None = None,
    effort: float = 1.0,
    thrifty: bool = True,
    branched: bool = True,
) -> Choice:
    """At most one of these candidates per sample.

    Args:
        rows: the sample of each candidate, (c,).
        changes: (c, F).
        must: rows that must be picked.
        prices: approximate prices of the budgets, if known; they only save time.
        quota_prices: the same of the quotas, (Q,); with quotas, prices of budgets alone are of no use.
        known: a feasible selection, as indices of candidates; the choice is worth no less.
        effort: share of the usual local search steps, if the known selection is one sample below the bound. Below 1,
            such a selection is not improved by branch and bound either.
        thrifty: among selections of the same worth, prefer those that draw little.
        branched: allow branch and bound if local search leaves a gap; it may take seconds.
    """
    needed = np.array([], dtype=np.int64) if must is None else must
    bill = problem.bill(rows, changes)
    without = needed[~np.isin(needed, rows[bill.can_be_paid])]
    if len(without):
        names = ", ".join(problem.cohort.ids[without[:10]])
        says = f"no flip is known for {len(without)} of these ids: {names}. Take them off the list, or widen limits."
        raise ProblemError([about("include", says)])
    whole = offer = offered(problem, rows, bill, needed)
    guess = per_share(problem, prices, quota_prices)
    if guess is not None and offer.candidates.share.size and offer.candidates.samples > CHOICE.exact:
        offer = _contending(whole, guess, known)
    if not len(offer.place):
        if problem.quotas.demanding:
            raise infeasible(problem, offer.candidates, rows[offer.place], needed)
        return Choice(offer.place)
    offer = replace(offer, branched=branched, effort=effort)
    offer, relaxation, picked = _solved(offer, guess, known)
    if picked is None and problem.quotas.demanding and len(offer.place) < len(whole.place):
        offer, relaxation, picked = _solved(replace(whole, branched=branched, effort=effort), guess, known)
    gave_up = picked is None and not len(needed) and not problem.quotas.demanding
    if gave_up:
        picked = offer.place[:0]  # `_insert` takes what fits
    if picked is None:
        raise infeasible(problem, offer.candidates, rows[offer.place], needed)
    picked = _insert(offer, picked)
    if offer.known is not None and _worth(offer, offer.known) > _worth(offer, picked):
        picked = offer.known
    if thrifty:
        picked = _thrifty(offer, picked, relaxation)
    if relaxation is not None and len(offer.place) < len(whole.place):
        there = np.flatnonzero(np.isin(whole.place, offer.place[picked]))
        offer, picked = whole, _filled(whole, there, relaxation.prices)
    chosen = np.sort(offer.place[_first_of_equals(offer, picked)])
    return Choice(chosen, (GAVE_UP,) if gave_up else ())


def _solved(offer: Offer, guess: Floats | None, known: Chosen | None) -> tuple[Offer, Relaxed | None, Chosen | None]:
    """The offer, with the indices in it of the known selection; its relaxation; and the best selection found."""
    relaxation = relaxed(offer.candidates, guess, gap=CHOICE.rough_gap if known is not None else 0.0)
    offer = replace(offer, known=None if known is None else _lawful(offer, known))
    return offer, relaxation, None if relaxation is None else _within(offer, relaxation)


def _worth(offer: Offer, picked: Chosen) -> float:
    return float(offer.candidates.worth[picked].sum())


def _filled(offer: Offer, picked: Chosen, prices: Floats) -> Chosen:
    """Insert samples that fit into what is left; exchange samples for others of greater worth."""
    picked = _insert(offer, picked)
    found = exchanged(offer.candidates, prices, _nearly_all(offer.candidates, picked), picked)
    return picked if found is None or not offer.keeps(found) else found


def _nearly_all(candidates: Candidates, picked: Chosen) -> Floats:
    """(m,): the room, of budgets a little less, but no less than what these draw"""
    room = candidates.whole_room.copy()
    own = candidates.budgets
    room[own] = np.maximum(1.0 - CHOICE.less, candidates.drawn_by(picked)[own])
    return room


def _lawful(offer: Offer, known: Chosen) -> Chosen | None:
    """Indices in the offer of the known selection; None if it is infeasible.   known: indices given to `choice`; those
    not offered are dominated"""
    there = np.flatnonzero(np.isin(offer.place, known))
    candidates = offer.candidates
    once = len(np.unique(candidates.sample[there])) == len(there)
    covers = candidates.must[there].sum() == candidates.must_samples.sum()
    return there if once and covers and offer.keeps(there) else None


def _thrifty(offer: Offer, picked: Chosen, relaxation: Relaxed | None) -> Chosen:
    """A selection of the same worth that draws less and keeps every budget exactly; `picked` if none is found."""
    candidates = offer.candidates
    if relaxation is None or not len(picked):
        return picked
    lead = Demand.at(relaxation.prices, candidates).lead
    band = CHOICE.band + CHOICE.band_per_budget * candidates.share.shape[1]
    free = lowest(lead, min(len(lead), CHOICE.local_bands * band))
    # Counts are exact; other budgets are reduced by HiGHS's tolerance.
    counts = offer.bill.ledger.counts[np.isfinite(offer.bill.ledger.amounts)]
    room = _nearly_all(candidates, picked)
    room[candidates.budgets][counts] = 1.0
    found = thriftier(candidates, offer.total_draw, picked, free, room)
    return found if offer.keeps(found) else picked


@dataclass(frozen=True, eq=False)
class Offer:
    """The candidates to choose from.   place (c,): index of each in the arguments of `choice`   bill: of the candidates

    rows (c,): of their samples   total_draw (c,): as in `_total_draw`   known: indices of a feasible selection
    """

    candidates: Candidates
    place: Chosen
    bill: Bill
    rows: Rows
    quotas: Quotas
    total_draw: Floats
    largest: float  # largest worth of a candidate, before the scaling in `candidates`
    branched: bool = True
    known: Chosen | None = None
    effort: float = 1.0

    def keeps(self, picked: Chosen) -> bool:
        """Whether this selection keeps every budget and quota; decided exactly."""
        return not self.bill.of(picked).overspent() and self.quotas.hold(self.rows[picked])


def offered(problem: Problem, rows: Rows, bill: Bill, must: Rows) -> Offer:
    """The candidates grouped by sample, with finite budgets only. Candidates that exceed a budget on their own, are
    worth nothing or are dominated are removed; but what is worth nothing may help to keep a quota."""
    quotas = problem.quotas
    is_must = np.isin(rows, must) if len(must) else np.zeros(len(rows), dtype=bool)
    helps = np.asarray((quotas.coefficients < 0).any(axis=0))[rows]
    wanted = ((problem.worth[rows] > 0) | is_must | helps) & bill.can_be_paid
    by_sample = np.argsort(in_order_of_appearance(rows), kind="stable")
    place = by_sample[(wanted & _undominated(rows, bill))[by_sample]]
    share = _shares(bill.of(place))
    fits = np.flatnonzero(filled(lambda part: (share[part] <= 1.0 + PROGRAMS.tolerance).all(axis=1), place.shape, bool))
    if np.isin(must, rows[place[fits]]).all():
        place, share = place[fits], rows_of(share, fits)
    else:  # a sample that must be picked does not fit: keep all, so that the program is infeasible
        place = by_sample[wanted[by_sample]]
        share = np.minimum(_shares(bill.of(place)), 2.0)
    sample = in_order_of_appearance(rows[place])
    worth = problem.worth[rows[place]]
    own, total = bill.of(place), _total_draw(problem, bill.of(place), share)
    tilt = np.hstack([share, quotas.coefficients[:, rows[place]].T]) if len(quotas) else share
    candidates = Candidates(
        worth / unit_of(worth), tilt, sample, is_must[place], quotas=quotas.amounts, steps=quotas.steps
    )
    return Offer(candidates, place, own, rows[place], quotas, total, float(worth.max(initial=0.0)))


def _contending(offer: Offer, per_share: Floats, known: Chosen | None) -> Offer:
    """Without candidates that are far too dear at these approximate prices, and without near-duplicates of a cheaper
    candidate of the same sample. This saves time. Candidates of a known selection stay."""
    candidates, own = offer.candidates, offer.candidates.budgets
    prices = per_share * (candidates.worth.max() / offer.largest)
    net = candidates.net(prices)
    best = candidates.per_sample_max(net)[candidates.sample]
    worth = candidates.worth
    if len(candidates.quotas):  # what a sample is worth with what it does for the quotas
        tilt = slice(own.stop, None)
        worth = np.maximum(worth, worth - candidates.share[:, tilt] @ prices[tilt])
    is_rival = (net >= best - CHOICE.rival * worth) & (net >= -CHOICE.dear * worth)
    near = candidates.must | is_rival
    share = candidates.share[:, own]
    size = candidates.per_sample_max(share.max(axis=1, initial=0.0))[candidates.sample]
    by_net = np.flatnonzero(near)[np.argsort(-net[near], kind="stable")]
    alike = np.round(share[by_net] / np.maximum(CHOICE.alike * size[by_net], 1e-300)[:, None])
    places = np.sort(by_net[first_of_each(candidates.sample[by_net], alike)])
    kept = np.zeros(len(near), dtype=bool)
    kept[places] = True
    if known is not None:
        kept |= np.isin(offer.place, known)
        places = np.flatnonzero(kept)
    return replace(
        offer,
        candidates=candidates.of(kept),
        place=offer.place[places],
        bill=offer.bill.of(places),
        rows=offer.rows[places],
        total_draw=offer.total_draw[places],
    )


def _total_draw(problem: Problem, bill: Bill, share: Floats) -> Floats:
    """(c,): sum_r weight_r share_r over the finite budgets, with the weights of `thrift`.

    If only counts are finite: |d / spread|^2 of the change d. If only fees are, which differ: the sum, and of equal
    ones the smaller change.
    """
    ledger = problem.ledger
    finite = np.isfinite(ledger.amounts)
    weights = problem.thrift_weights[finite]
    if ledger.draws[finite].any():
        return filled(lambda part: share[part] @ weights, (len(share),))
    moved = bill.moved[:, problem.actionable] / problem.spread
    size = filled(lambda part: (moved[part] ** 2).sum(axis=1), (len(moved),))
    if (share == share[:1]).all():
        return size
    return np.asarray(share @ weights + CHOICE.tie * size / max(float(size.max(initial=0.0)), 1e-300))


def _shares(bill: Bill) -> Floats:
    """(c, m): consumption / amount, for the finite budgets"""
    amounts = bill.ledger.amounts
    finite = np.isfinite(amounts)
    drawn = bill.consumption

    def shares(part: slice) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(drawn[part][:, finite] > 0, drawn[part][:, finite] / amounts[finite], 0.0)

    return filled(shares, (len(drawn), int(finite.sum())))


def _undominated(rows: Rows, bill: Bill) -> NDArray[np.bool_]:
    """(c,): False for dominated candidates: another one of the sample changes no feature more, so it draws no more.

    Above all this removes duplicates: with two equal candidates for each of n samples, cuts would exclude 2^n equal
    selections one by one.
    """
    order = np.argsort(rows, kind="stable")
    sample, needed = rows[order], np.ones(len(rows), dtype=bool)
    for apart in range(1, len(rows)):
        first = np.flatnonzero(sample[apart:] == sample[:-apart])
        if not len(first):
            break
        one, other = order[first], order[first + apart]
        sizes, other_sizes = bill.of(one).sizes, bill.of(other).sizes
        above = (other_sizes >= sizes).all(axis=1)
        below = (other_sizes <= sizes).all(axis=1)
        needed[other[above]] = False
        needed[one[below & ~above]] = False
    return needed


def unit_of(worth: Floats) -> float:
    """A power of two by which very large or small worths are divided, since HiGHS's tolerances are absolute; 1 for
    ordinary worths, so that whole numbers stay whole."""
    exponent = math.frexp(float(worth.max(initial=0.0)))[1]
    return 1.0 if 0 <= exponent <= CHOICE.ordinary_exponent else math.ldexp(1.0, exponent)


def in_order_of_appearance(rows: Rows) -> Rows:
    """(c,): samples renumbered 0, 1, ... in order of first appearance, so that results do not depend on row numbers."""
    order = np.argsort(rows, kind="stable")
    begins = np.append(True, rows[order][1:] != rows[order][:-1])[: len(rows)]
    first = order[begins]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    sample = np.empty(len(rows), dtype=np.int64)
    sample[order] = rank[np.cumsum(begins) - 1]
    return sample


def per_share(problem: Problem, prices: Mapping[str, float] | None, quota_prices: Floats | None) -> Floats | None:
    """(m,): price_r amount_r of the finite budgets, and the prices of the quotas; None if some are not known"""
    if prices is None or (quota_prices is None and len(problem.quotas)):
        return None
    ledger = problem.ledger
    known = np.array([prices.get(name, 0.0) for name in ledger.names])
    finite = np.isfinite(ledger.amounts)
    own = known[finite] * ledger.amounts[finite]
    return own if quota_prices is None else np.concatenate([own, quota_prices])


def _within(offer: Offer, relaxation: Relaxed) -> Chosen | None:
    """The best selection found that keeps every budget exactly; None if the samples that must be picked do not fit."""
    method = _with_cuts if offer.candidates.samples <= CHOICE.exact else _with_less
    return method(offer, relaxation)


def _with_cuts(offer: Offer, relaxation: Relaxed) -> Chosen | None:
    """HiGHS may exceed a budget by its tolerance. Such a selection is excluded by cover cuts, and the program is solved
    again."""
    cuts: list[tuple[Floats, float]] = []
    room = offer.candidates.whole_room
    picked = _pick(offer, relaxation, room, cuts)
    for _ in range(CHOICE.cut_rounds):
        over = [] if picked is None else offer.bill.of(picked).overspent()
        if picked is None or not over:
            return picked
        cuts += [_too_many(offer, r, picked) for r in over]
        picked = _pick(offer, relaxation, room, cuts)
    return None if picked is None else _shed(offer, picked)


def _with_less(offer: Offer, relaxation: Relaxed) -> Chosen | None:
    """If a budget is exceeded within the tolerance, reduce it slightly and pick again. This rarely costs a sample."""
    finite = np.flatnonzero(np.isfinite(offer.bill.ledger.amounts))
    room = offer.candidates.whole_room.copy()
    picked = _pick(offer, relaxation, room, [])
    while picked is not None and (over := offer.bill.of(picked).overspent()):
        slipped = np.searchsorted(finite, over)
        # Each budget is reduced once. If the fixed samples alone still exceed it, or the samples that must be picked no
        # longer fit, samples are dropped instead.
        again = None
        if (room[slipped] == 1.0).any():
            room[slipped] = 1.0 - CHOICE.less
            again = _pick(offer, relaxation, room, [])
        if again is None:
            return _shed(offer, picked)
        picked = again
    return picked


def _too_many(offer: Offer, r: int, picked: Chosen) -> tuple[Floats, float]:
    """An extended cover inequality row . z <= most that every selection within budget r satisfies, but not `picked`.

    The cover is `picked` without its smallest candidates, as many as together draw less than the excess. It is extended
    by all candidates that draw at least as much as the largest in the cover.
    """
    bill = offer.bill
    load = bill.consumption[:, r]
    ascending = picked[np.argsort(load[picked], kind="stable")]
    spare = np.cumsum(load[ascending]) < bill.of(picked).excess(r) * (1.0 - 1e-6)
    cover = ascending[~spare & (load[ascending] > 0)]
    largest = load[cover[-1]]
    size = bill.sizes_for(r)
    above_all = size[cover[load[cover] >= largest * (1.0 - 1e-9)]].max(axis=0)
    row = (load > largest * (1.0 + 1e-9)) | (size >= above_all).all(axis=1)
    row[cover] = True
    return row.astype(np.float64), float(len(cover) - 1)


def _pick(offer: Offer, relaxation: Relaxed, room: Floats, cuts: list[tuple[Floats, float]]) -> Chosen | None:
    """The best selection within the node limit; None if the samples that must be picked do not fit.

    room (m,): available share of each budget. With more than `CHOICE.exact` samples, a selection one sample below the
    bound is accepted, since closing the last gap can take very long.
    """
    candidates, worth = offer.candidates, offer.candidates.worth
    is_whole = bool(np.all(worth == np.floor(worth)))
    ceiling = float(np.floor(relaxation.bound + 1e-6)) if is_whole else relaxation.bound * (1 - 1e-9)
    lead = Demand.at(relaxation.prices, candidates).lead
    lead[candidates.sample[np.abs(relaxation.x - np.round(relaxation.x)) > 1e-7]] = 0.0
    m = candidates.share.shape[1]
    band = CHOICE.band + CHOICE.band_per_budget * m
    best: Chosen | None = None
    enough, gap, nodes = ceiling, 1.0 - 1e-6 if is_whole else 1e-9 * max(1.0, relaxation.bound), CHOICE.nodes
    if len(lead) > CHOICE.few:
        best = _by_local_search(offer, relaxation, room, _among(lead, CHOICE.local_bands * band), ceiling)
        if not is_whole:
            enough, gap = relaxation.bound * (1 - CHOICE.fine_gap), CHOICE.fine_gap * relaxation.bound
            nodes = max(1, CHOICE.nodes // max(1, m))
    usual = float(np.median(worth[worth > 0])) if (worth > 0).any() else 0.0
    if len(lead) > CHOICE.exact or (len(lead) > CHOICE.few and m > CHOICE.branched_budgets):
        # If worths differ much, a typical sample may be a large part of the total; then the fine gap is required.
        one_less = ceiling - usual if is_whole else max(enough, ceiling - usual)
        enough = one_less if m <= CHOICE.branched_budgets else min(ceiling - usual, CHOICE.nearly * ceiling)
        gap, nodes = relaxation.bound - enough, max(1, CHOICE.nodes // max(1, m))
    if best is not None and (not offer.branched or (offer.effort < 1 and worth[best].sum() >= ceiling - usual)):
        return best
    while best is None or worth[best].sum() < enough:
        picked = _pick_in_band(
            candidates, relaxation, room, cuts, _among(lead, band)[candidates.sample], gap, nodes, best
        )
        if picked is not None and (best is None or worth[picked].sum() > worth[best].sum()):
            best = picked
        if band >= len(lead) or (best is not None and band >= CHOICE.widest_band):
            break
        band *= CHOICE.band_growth
    better = None if best is None or is_whole else exchanged(candidates, relaxation.prices, room, best)
    return best if better is None else better


def _by_local_search(offer: Offer, relaxation: Relaxed, room: Floats, free: Mask, ceiling: float) -> Chosen | None:
    """The best selection that local search finds. Its aim starts at the ceiling and is lowered by bisection."""
    candidates, worth, most = offer.candidates, offer.candidates.worth, ceiling
    best = exchanged(candidates, relaxation.prices, room, taken_whole(candidates, relaxation))
    if offer.known is not None and (best is None or _worth(offer, offer.known) >= _worth(offer, best)):
        best = offer.known
    have = -np.inf if best is None else _worth(offer, best)
    is_whole = bool((worth == np.floor(worth)).all())
    step = float(worth[worth > 0].min(initial=np.inf)) if is_whole else CHOICE.aim_distance * ceiling
    aim = most
    for _ in range(CHOICE.aims):
        if have >= most - 0.5 * step:
            break
        nearly_there = best is offer.known and have >= most - 1.5 * step
        found = tabu_search(candidates, relaxation, room, free, aim, aim, offer.effort if nearly_there else 1.0)
        if found is not None and worth[found].sum() > have:
            best, have = found, float(worth[found].sum())
        if have < aim:
            most = aim - step
        aim = most if not np.isfinite(have) else most - np.floor((most - have) / (2 * step)) * step
    return best


def _among(lead: Floats, band: int) -> NDArray[np.bool_]:
    """(samples,): whether each is one of the `band` samples with the smallest lead."""
    free = np.zeros(len(lead), dtype=bool)
    free[lowest(lead, band)] = True
    return free


def _pick_in_band(
    candidates: Candidates,
    relaxation: Relaxed,
    room: Floats,
    cuts: list[tuple[Floats, float]],
    free: NDArray[np.bool_],
    gap: float,
    nodes: int,
    start: Chosen | None,
) -> Chosen | None:
    """The 0/1 program over the free candidates; the others stay as in the relaxation.   start: a known selection"""
    whole = np.where(free, 0.0, np.round(relaxation.x))
    left = room - candidates.share.T @ whole
    left[candidates.budgets] = np.maximum(left[candidates.budgets], 0.0)
    program = candidates.of(free).program(left)
    program = program.with_rows([(row[free], max(0.0, most - float(row @ whole))) for row, most in cuts])
    answer = solve_whole(
        program,
        gap=gap,
        bound=relaxation.bound - float(candidates.worth @ whole),
        nodes=nodes,
        start=None if start is None else np.isin(np.flatnonzero(free), start).astype(np.float64),
    )
    if answer is None:
        return None
    whole[free] = np.round(answer.x)
    return np.flatnonzero(whole > 0.5)


def _first_of_equals(offer: Offer, chosen: Chosen) -> Chosen:
    """Of samples with equal changes and equal worth, those that come first are picked."""
    candidates = offer.candidates
    drawn = filled(lambda part: candidates.share[part].sum(axis=1), candidates.worth.shape)
    ascending = np.sort(drawn)
    shared = ascending[1:][ascending[1:] == ascending[:-1]]
    if not len(shared):
        return chosen
    twins = np.flatnonzero(np.isin(drawn, shared))  # candidates whose shares have different sums cannot tie
    tilt = candidates.share[twins, candidates.budgets.stop :]
    alike = np.column_stack([offer.bill.of(twins).sizes, candidates.worth[twins], candidates.must[twins], tilt])
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


def _shed(offer: Offer, picked: Chosen) -> Chosen | None:
    """Drop samples of least worth until every budget and quota is kept exactly; None if dropping some does not help."""
    candidates, chosen = offer.candidates, picked
    while not offer.keeps(chosen):
        excess, load = _broken(offer, chosen)
        droppable = ~candidates.must[chosen] & (load > 0)
        if not droppable.any():
            return None
        worth = np.where(droppable, candidates.worth[chosen], np.inf)
        # Of those with the least worth, the smallest that suffices; if none does, the largest.
        dropped = np.lexsort((np.where(load >= excess, load, -load), load < excess, worth))[0]
        chosen = np.delete(chosen, dropped)
    return chosen


def _broken(offer: Offer, picked: Chosen) -> tuple[float, Floats]:
    """By how much a selection exceeds the first budget or quota that it breaks, and what each of it adds to that."""
    bill = offer.bill.of(picked)
    over = bill.overspent()
    if over:
        return bill.excess(over[0]), bill.consumption[:, over[0]]
    q = offer.quotas.broken(offer.rows[picked])[0]
    load = offer.quotas.coefficients[q, offer.rows[picked]]
    return float(load.sum() - offer.quotas.amounts[q]), load


def _insert(offer: Offer, picked: Chosen) -> Chosen:
    """Insert further samples that fit, greedily by worth."""
    candidates, chosen = offer.candidates, picked
    left = candidates.whole_room - candidates.drawn_by(chosen)
    is_taken = np.zeros(candidates.samples, dtype=bool)
    is_taken[candidates.sample[chosen]] = True
    room = left + PROGRAMS.tolerance
    fits = filled(lambda part: (candidates.share[part] <= room).all(axis=1), candidates.worth.shape, bool)
    open_ = np.flatnonzero(fits & ~is_taken[candidates.sample])
    open_ = open_[np.lexsort((candidates.share[open_].sum(axis=1), -candidates.worth[open_]))]
    tries = CHOICE.exact_terms // max(1, len(chosen))
    while len(open_) and tries:
        best, open_ = open_[0], open_[1:]
        more = np.append(chosen, best)
        if not offer.keeps(more):  # it fits within the tolerance, but not exactly
            tries -= 1
            continue
        chosen, left = more, left - candidates.share[best]
        open_ = open_[candidates.sample[open_] != candidates.sample[best]]
        open_ = open_[(candidates.share[open_] <= left + PROGRAMS.tolerance).all(axis=1)]
    return chosen
