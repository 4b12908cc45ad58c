"""Of selections of the same worth, one that draws little on the budgets.

    min  sum_c t_c z_c    s.t.  sum_c v_c z_c >= W,   sum_c a_rc z_c <= 1 for every budget r,   at most one c per sample

t_c >= 0 is the total draw of candidate c, a weighted sum of budget shares. W is the worth of the given selection, so no
worth is lost. Small cases are solved as a 0/1 program. Otherwise the relaxation of max sum_c (v_c - e t_c) z_c is
rounded by local search, for decreasing e, until a selection worth W is found. Then single exchanges follow.
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


def thriftier(candidates: Candidates, total_draw: Floats, picked: Indices, free: Indices, room: Floats) -> Indices:
    """A selection worth at least as much as `picked` that draws no more; within `room`, up to rounding.

    total_draw (c,): t   picked: indices of candidates   free: samples that local search may change, those in doubt
    room (m,): available share of each budget, about 1
    """
    if not total_draw[picked].any():
        return picked
    best = picked
    for found in _proposed(candidates, total_draw, picked, free, room):
        if total_draw[found].sum() < total_draw[best].sum() - THRIFT.least_saving:
            best = found
    return _exchanged(candidates, total_draw, best, room)


def _proposed(
    candidates: Candidates, total_draw: Floats, picked: Indices, free: Indices, room: Floats
) -> list[Indices]:
    if candidates.samples <= THRIFT.few:
        found = _program(candidates, total_draw, picked, room)
        return [] if found is None else [found]
    if candidates.budgets.stop == 0 or candidates.drawn_by(picked)[candidates.budgets].min() > THRIFT.used_up:
        return []
    aim = float(candidates.worth[picked].sum()) * (1 - THRIFT.worth_tolerance)
    dearest = float((candidates.worth[picked] / np.maximum(total_draw[picked], 1e-300)).min())
    for part in THRIFT.tilts:
        tilted = replace(candidates, worth=candidates.worth - part * dearest * total_draw)
        offered = (tilted.worth > 0) | candidates.must
        relaxation = relaxed(tilted.of(offered), patient=False)
        if relaxation is None:
            continue
        x = np.zeros(len(total_draw))
        x[offered] = relaxation.x
        if float(candidates.worth @ x) < aim:
            continue
        fractional = np.unique(candidates.sample[np.abs(x - np.round(x)) > 1e-7])
        may_change = np.zeros(candidates.samples, dtype=bool)
        may_change[free] = may_change[fractional] = True
        found = tabu_search(candidates, replace(relaxation, x=x), room, may_change, aim, aim)
        if found is not None and candidates.worth[found].sum() >= aim:
            return [found]
    return []


def _program(candidates: Candidates, total_draw: Floats, picked: Indices, room: Floats) -> Indices | None:
    """The optimum; None if the solver finds no selection."""
    program = candidates.program(room)
    worth = float(candidates.worth[picked].sum()) * (1 - THRIFT.worth_tolerance)
    size = max(float(total_draw.max()), 1e-300)  # HiGHS has absolute tolerances
    least = Program(
        worth=-total_draw / size,
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


def _exchanged(candidates: Candidates, total_draw: Floats, picked: Indices, room: Floats) -> Indices:
    """Exchange picked candidates, those that draw most first, for the ones that draw least of those that fit and are
    worth as much."""
    share, sample, worth = candidates.share, candidates.sample, candidates.worth
    chosen = np.zeros(len(total_draw), dtype=bool)
    chosen[picked] = True
    left = room - candidates.drawn_by(picked)
    taken = np.zeros(candidates.samples, dtype=bool)
    taken[sample[picked]] = True
    ascending = np.argsort(total_draw, kind="stable")
    for old in picked[np.argsort(-total_draw[picked], kind="stable")][: THRIFT.exchanged]:
        cheaper = ascending[: int(np.searchsorted(total_draw[ascending], total_draw[old] - THRIFT.least_saving))]
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
