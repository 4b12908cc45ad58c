"""Of selections that are worth the same, one that draws little.

    min  sum_c t_c z_c    s.t.  sum_c v_c z_c >= W,   sum_c a_rc z_c <= 1 for every budget r,   at most one c per sample

t_c >= 0 is what candidate c draws, in shares of the budgets (`draws`). W is the worth of the selection at hand, so its
worth never falls. Small cases are solved as a 0/1 program. For more, the relaxation of max sum_c (v_c - e t_c) z_c is
rounded by local search, for smaller and smaller e, until a selection worth W is found. Then single exchanges follow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from maxflip._util.types import Floats
from maxflip.select.local_search import tabu_search
from maxflip.select.milp import Program, solve_whole
from maxflip.select.relaxation import Candidates, Indices, relaxed
from maxflip.select.settings import PROGRAMS, THRIFT


def thriftier(candidates: Candidates, draws: Floats, picked: Indices, free: Indices, room: Floats) -> Indices:
    """A selection worth at least as much as `picked`, within `room` up to rounding, that draws no more.

    draws (c,): t   picked: candidates   free: samples that the local search may change, those in doubt
    room (m,): what there is of each budget, about 1
    """
    if not draws[picked].any():
        return picked
    best = picked
    for found in _proposed(candidates, draws, picked, free, room):
        if draws[found].sum() < draws[best].sum() - THRIFT.least_saving:
            best = found
    return _exchanged(candidates, draws, best, room)


def _proposed(candidates: Candidates, draws: Floats, picked: Indices, free: Indices, room: Floats) -> list[Indices]:
    if candidates.samples <= THRIFT.few:
        found = _program(candidates, draws, picked, room)
        return [] if found is None else [found]
    if len(room) == 0 or candidates.drawn_by(picked).min() > THRIFT.used_up:
        return []
    aim = float(candidates.worth[picked].sum()) * (1 - THRIFT.worth_tolerance)
    dearest = float((candidates.worth[picked] / np.maximum(draws[picked], 1e-300)).min())
    for part in THRIFT.tilts:
        tilted = replace(candidates, worth=candidates.worth - part * dearest * draws)
        offered = (tilted.worth > 0) | candidates.must
        limit = relaxed(tilted.of(offered), patient=False)
        if limit is None:
            continue
        x = np.zeros(len(draws))
        x[offered] = limit.x
        if float(candidates.worth @ x) < aim:
            continue
        parted = np.unique(candidates.sample[np.abs(x - np.round(x)) > 1e-7])
        may_change = np.zeros(candidates.samples, dtype=bool)
        may_change[free] = may_change[parted] = True
        found = tabu_search(candidates, replace(limit, x=x), room, may_change, aim, aim)
        if found is not None and candidates.worth[found].sum() >= aim:
            return [found]
    return []


def _program(candidates: Candidates, draws: Floats, picked: Indices, room: Floats) -> Indices | None:
    """The optimum; None where the solver finds none."""
    program = candidates.program(room)
    worth = float(candidates.worth[picked].sum()) * (1 - THRIFT.worth_tolerance)
    size = max(float(draws.max()), 1e-300)  # HiGHS has absolute tolerances
    least = Program(
        worth=-draws / size,
        matrix=sp.csc_matrix(sp.vstack([program.matrix, sp.csr_matrix(candidates.worth)])),
        row_lower=np.append(program.row_lower, worth - PROGRAMS.tolerance * max(1.0, worth)),
        row_upper=np.append(program.row_upper, np.inf),
        lower=program.lower,
        upper=program.upper,
    )
    answer = solve_whole(least, gap=1e-12, bound=0.0, nodes=THRIFT.nodes)
    if answer is None:
        return None
    found = np.flatnonzero(answer.x > 0.5)
    return found if candidates.worth[found].sum() >= worth else None


def _exchanged(candidates: Candidates, draws: Floats, picked: Indices, room: Floats) -> Indices:
    """Exchange a picked candidate for another that is worth as much, fits and draws least, while one is found."""
    share, sample, worth = candidates.share, candidates.sample, candidates.worth
    chosen = np.zeros(len(draws), dtype=bool)
    chosen[picked] = True
    left = room - candidates.drawn_by(picked)
    taken = np.zeros(candidates.samples, dtype=bool)
    taken[sample[picked]] = True
    ascending = np.argsort(draws, kind="stable")
    for old in picked[np.argsort(-draws[picked], kind="stable")][: THRIFT.exchanged]:
        cheaper = ascending[: int(np.searchsorted(draws[ascending], draws[old] - THRIFT.least_saving))]
        cheaper = cheaper[(worth[cheaper] >= worth[old]) & (~taken[sample[cheaper]] | (sample[cheaper] == sample[old]))]
        if candidates.must[old]:
            cheaper = cheaper[sample[cheaper] == sample[old]]
        fits = cheaper[(share[cheaper] <= left + share[old]).all(axis=1)]
        if len(fits):
            new = fits[0]
            chosen[old], chosen[new] = False, True
            taken[sample[old]], taken[sample[new]] = False, True
            left = left + share[old] - share[new]
    return np.flatnonzero(chosen)
