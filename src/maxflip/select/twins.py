"""Twins: samples with the same actionable values, limits, wanted classes, worth, numbers of their own in budgets, and
(rounded) confidence. They are offered the same flips, so that ties are broken by id: flips searched in different
batches differ in the last bits."""

from __future__ import annotations

import numpy as np

from maxflip import judge
from maxflip._util.types import Floats, Rows
from maxflip.plan.pool import Pool, first_of_each
from maxflip.problem.problem import Problem
from maxflip.select.settings import TWINS


def twins(problem: Problem, rows: Rows, confidence: Floats) -> Rows | None:
    """(n,): for samples of `rows` that have twins, a number that twins share; -1 for all others. None without twins.

    confidence (n,): of all samples at the start
    """
    low, high = problem.box(rows)
    wanted = problem.goal.wanted_for(rows).cpu().numpy()
    rounded = np.round(confidence[rows] / (TWINS.same_confidence * problem.guard))
    columns = [part[:, problem.actionable] for part in (problem.start[rows], low, high)]
    own = problem.ledger.own.numbers(rows)
    alike = np.nan_to_num(np.column_stack([*columns, wanted, rounded, problem.worth[rows], own]))
    # Equal rows have equal sums. If all sums differ, no rows are compared.
    sums = np.arctan(alike).sum(axis=1)
    ascending = np.sort(sums)
    shared = np.isin(sums, ascending[1:][ascending[1:] == ascending[:-1]])
    if not shared.any():
        return None
    some = np.flatnonzero(shared)
    _, kind, size = np.unique(alike[some], axis=0, return_inverse=True, return_counts=True)
    kind = kind.reshape(-1)
    if size.max() < 2:
        return None
    found = np.full(len(problem), -1)
    several = size[kind] > 1
    found[rows[some[several]]] = kind[several]
    return found


def evened(problem: Problem, flips: Pool, rows: Rows, confidence: Floats) -> Pool:
    """The flips in the order of ids, with those of twins among `rows` replaced by shared ones."""
    kind = twins(problem, rows, confidence)
    return in_order(problem, flips if kind is None else share_flips(problem, flips, kind))


def in_order(problem: Problem, flips: Pool) -> Pool:
    """The flips in the order of ids, whatever the order of the file."""
    rank = np.empty(len(problem), dtype=np.int64)
    rank[problem.cohort.order] = np.arange(len(problem))
    return flips.those(np.argsort(rank[flips.rows], kind="stable"))


def share_flips(problem: Problem, flips: Pool, kind: Rows) -> Pool:
    """The flips, with those of twins replaced by shared ones.   kind (n,): from `twins`"""
    own = kind[flips.rows]
    parts = [flips.those(own < 0)]
    for number in np.unique(own[own >= 0]):
        mine = flips.those(own == number)
        size = max(float(np.abs(mine.changes).max()), 1e-300)
        first = first_of_each(np.zeros(len(mine), dtype=np.int64), np.round(mine.changes / size / TWINS.same_change))
        amounts = problem.ledger.amounts
        weight = np.where((amounts > 0) & np.isfinite(amounts), 1.0 / np.maximum(amounts, 1e-100), 0.0)
        drawn = problem.bill(mine.rows[first], mine.changes[first]).consumption @ weight
        some = first[np.argsort(drawn, kind="stable")[: TWINS.shared]]
        members = np.flatnonzero(kind == number)
        rows = np.repeat(members, len(some))
        changes = np.tile(mine.changes[some], (len(members), 1))
        lawful = judge.admissible(problem, rows, changes)
        parts.append(Pool.of(problem, rows[lawful], changes[lawful]))
        parts.append(mine.those(~np.isin(mine.rows, rows[lawful])))  # twins that no shared flip flips keep their own
    return Pool.union(parts)
