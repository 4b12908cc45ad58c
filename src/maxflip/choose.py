"""At most one candidate flip per sample, within every budget, worth as much as possible.

    max  sum_c v_c z_c    s.t.  sum_c a_rc z_c / B_r <= 1 for every budget r,   at most one c per sample,  z in {0, 1}

The paper's final program, with several candidates per sample allowed. Its linear relaxation has at most one fractional
sample per budget, so nearly everyone is decided by it: those far from the margin keep what the relaxation says, and a
small 0/1 program decides the band around it. The band widens until the relaxation's bound is met, or nearly so for many
samples. Rows are scaled to budget 1, since the solver's tolerance is absolute; what it lets slip is repaired by exact
arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxflip.engine import Rows
from maxflip.errors import ProblemError
from maxflip.exact import Floats
from maxflip.problem import Problem
from maxflip.program import TOLERANCE, Answer, Program, relax, solve_whole

NODES = 2000
BAND, PER_BUDGET = 100, 10  # samples in the first band, and so many more per budget
TRIES = 100  # insertions that may fail by a rounding error before the rest is left alone
WIDEST = 2000  # samples: a wider band that is known to be feasible is not tried
EXACT = 1000  # samples up to which the optimum itself is sought

Chosen = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """rows (c,)   worth (c,)   share (c, m) of each finite budget   must (c,): the sample has to be picked"""

    rows: Rows
    worth: Floats
    share: Floats
    must: NDArray[np.bool_]

    @property
    def whole_worth(self) -> bool:
        return bool(np.all(self.worth == np.floor(self.worth)))


def choose(problem: Problem, rows: Rows, changes: Floats, must: Rows | None = None) -> Chosen:
    """Indices of the chosen candidates, ascending. rows (c,)   changes (c, F)   must: rows that have to be picked"""
    needed = np.array([], dtype=np.int64) if must is None else must
    without = np.setdiff1d(needed, rows)
    if len(without):
        names = ", ".join(problem.cohort.ids[without[:10]])
        raise ProblemError(
            f"include: no flip is known for {len(without)} of these ids: {names}. Take them off the list."
        )
    candidates, kept = _candidates(problem, rows, changes, needed)
    if not len(kept):
        return kept
    picked = _pick(candidates)
    if picked is None:
        raise ProblemError(
            f"include: the budgets do not suffice for all that must be picked ({len(needed)}). "
            "Raise the budgets or shorten the list."
        )
    chosen = _repair(problem, candidates, changes[kept], picked)
    return np.sort(kept[_first_of_equals(candidates, changes[kept], chosen)])


def _candidates(problem: Problem, rows: Rows, changes: Floats, must: Rows) -> tuple[_Candidates, Chosen]:
    """Without infinite budgets, and without candidates that exceed a budget alone or are worth nothing."""
    ledger = problem.ledger
    finite = np.isfinite(ledger.amounts)
    amounts = ledger.amounts[finite]
    spent = ledger.consumption(changes)[:, finite]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(spent > 0, spent / amounts, 0.0)
    is_must = np.isin(rows, must)
    fits = (share <= 1.0 + TOLERANCE).all(axis=1)
    kept = np.flatnonzero(fits & ((problem.worth[rows] > 0) | is_must))
    if len(np.setdiff1d(must, rows[kept])):
        kept = np.flatnonzero((problem.worth[rows] > 0) | is_must)  # let the program find that it is infeasible
    return _Candidates(rows[kept], problem.worth[rows[kept]], share[kept], is_must[kept]), kept


def _pick(candidates: _Candidates) -> Chosen | None:
    """The optimum, or as near as the node limit allows; None if what must be picked does not fit."""
    program, sample = _program(candidates)
    relaxed = relax(program)
    if relaxed is None:
        return None
    ceiling = np.floor(relaxed.bound + 1e-6) if candidates.whole_worth else relaxed.bound * (1 - 1e-9)
    doubt = np.full(sample.max() + 1, np.inf)  # per sample: how little would turn the relaxation's mind
    np.minimum.at(doubt, sample, np.where(np.abs(relaxed.x - np.round(relaxed.x)) > 1e-7, 0.0, np.abs(relaxed.reduced)))
    by_doubt = np.argsort(doubt, kind="stable")
    band = BAND + PER_BUDGET * candidates.share.shape[1]
    # Beyond EXACT samples one less than the bound is good enough: closing that last one can take for ever.
    allowed = 0.0 if len(doubt) <= EXACT else float(candidates.worth.max())
    gap = 1.0 - 1e-6 if candidates.whole_worth else max(allowed, 1e-9 * max(1.0, relaxed.bound))
    best: Chosen | None = None
    while True:
        free = np.zeros(len(doubt), dtype=bool)
        free[by_doubt[:band]] = True
        picked = _pick_in_band(program, relaxed, free[sample], gap)
        if picked is not None and (best is None or candidates.worth[picked].sum() > candidates.worth[best].sum()):
            best = picked
        if band >= len(doubt):
            return best
        if best is not None and (candidates.worth[best].sum() >= ceiling - allowed or band >= WIDEST):
            return best
        band *= 8


def _program(candidates: _Candidates) -> tuple[Program, Chosen]:
    """The relaxation's program, and the sample (0, 1, ...) of each candidate.

    A row per budget, and one per sample that has several candidates or must be picked with them.
    """
    _, sample, times = np.unique(candidates.rows, return_inverse=True, return_counts=True)
    several = np.flatnonzero(times > 1)
    in_group = np.isin(sample, several)
    position = np.searchsorted(several, sample[in_group])
    groups = sp.csr_matrix(
        (np.ones(in_group.sum()), (position, np.flatnonzero(in_group))), shape=(len(several), len(sample))
    )
    group_must = np.zeros(len(several))
    group_must[position] = candidates.must[in_group]
    m = candidates.share.shape[1]
    matrix = sp.csc_matrix(sp.vstack([sp.csr_matrix(candidates.share.T), groups]))
    return Program(
        worth=candidates.worth,
        matrix=matrix,
        row_lower=np.concatenate([np.full(m, -np.inf), np.where(group_must > 0, 1.0, -np.inf)]),
        row_upper=np.ones(m + len(several)),
        lower=np.where(candidates.must & ~in_group, 1.0, 0.0),
        upper=np.ones(len(sample)),
    ), sample


def _pick_in_band(program: Program, relaxed: Answer, free: NDArray[np.bool_], gap: float) -> Chosen | None:
    """The 0/1 program over the free candidates, all others as the relaxation has them."""
    fixed = np.where(free, 0.0, np.round(relaxed.x))
    used = program.matrix @ fixed
    inside = Program(
        worth=program.worth[free],
        matrix=program.matrix[:, free],
        row_lower=program.row_lower - used,
        row_upper=np.maximum(program.row_upper - used, 0.0),
        lower=program.lower[free],
        upper=program.upper[free],
    )
    answer = solve_whole(inside, gap=gap, nodes=NODES)
    if answer is None:
        return None
    whole = fixed.copy()
    whole[free] = np.round(answer.x)
    return np.flatnonzero(whole > 0.5)


def _first_of_equals(candidates: _Candidates, changes: Floats, chosen: Chosen) -> Chosen:
    """The tie rule: of samples with the very same change and worth, those that come first are picked."""
    if len(np.unique(candidates.share.sum(axis=1))) == len(candidates.rows):
        return chosen
    _, sample, times = np.unique(candidates.rows, return_inverse=True, return_counts=True)
    alike = np.column_stack([np.abs(changes), candidates.worth, times[sample], candidates.must])
    _, kind = np.unique(alike, axis=0, return_inverse=True)
    is_chosen = np.zeros(len(kind), dtype=bool)
    is_chosen[chosen] = True
    single = times[sample] == 1
    by_kind = np.lexsort((np.arange(len(kind)), kind))
    starts = np.searchsorted(kind[by_kind], np.arange(kind.max() + 1))
    place = np.empty(len(kind), dtype=np.int64)
    place[by_kind] = np.arange(len(kind)) - starts[kind[by_kind]]
    picked_of_kind = np.bincount(kind, weights=is_chosen)
    return np.flatnonzero(np.where(single, place < picked_of_kind[kind], is_chosen))


def _repair(problem: Problem, candidates: _Candidates, changes: Floats, picked: Chosen) -> Chosen:
    """Within every budget exactly: drop what the solver's tolerance let slip in, then use what is left over."""
    chosen = list(picked)
    while over := problem.ledger.overspent(changes[chosen]):
        finite = np.flatnonzero(np.isfinite(problem.ledger.amounts))
        load = candidates.share[chosen][:, np.isin(finite, over)].sum(axis=1)
        droppable = ~candidates.must[chosen] & (load > 0)
        if not droppable.any():
            raise ProblemError("include: the budgets do not suffice for the samples that must be picked.")
        worth = np.where(droppable, candidates.worth[chosen], np.inf)
        # Among those worth least, the one that draws least: an overspend by rounding needs no more.
        chosen.pop(int(np.lexsort((load, worth))[0]))
    return _insert(problem, candidates, changes, chosen)


def _insert(problem: Problem, candidates: _Candidates, changes: Floats, chosen: list[int]) -> Chosen:
    left = 1.0 - candidates.share[chosen].sum(axis=0)
    taken = np.isin(candidates.rows, candidates.rows[chosen])
    refused = 0
    while True:
        fits = ~taken & (candidates.share <= left + TOLERANCE).all(axis=1)
        if not fits.any():
            return np.array(chosen, dtype=np.int64)
        open_ = np.flatnonzero(fits)
        best = open_[np.lexsort((candidates.share[open_].sum(axis=1), -candidates.worth[open_]))[0]]
        if not problem.ledger.fits(changes[[*chosen, best]]):
            taken[best] = True  # within the tolerance, but not exactly
            refused += 1
            if refused > TRIES:
                return np.array(chosen, dtype=np.int64)
            continue
        chosen.append(int(best))
        left = left - candidates.share[best]
        taken |= candidates.rows == candidates.rows[best]
