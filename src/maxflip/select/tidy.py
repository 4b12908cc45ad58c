"""Of a selection, flips with fewer changes, as far as the budgets pay for them. Nobody loses a place for it."""

from __future__ import annotations

import numpy as np

from maxflip import judge
from maxflip._util.engine import Engine
from maxflip._util.events import silent
from maxflip._util.types import Floats, Mask, Rows
from maxflip.problem.problem import Problem
from maxflip.search.settings import TIDY
from maxflip.search.tidy import tidied
from maxflip.select.settings import TIDYING


def with_fewer_changes(problem: Problem, engine: Engine, rows: Rows, changes: Floats, prices: Floats | None) -> Floats:
    """Changes (c, K) of a selection, with fewer of them where the budgets allow.   rows (c,): ascending

    prices (m,): of budgets; None: every budget counts by the share that is spent
    """
    if not problem.tidy or not len(rows) or not problem.has_free_changes:
        return changes
    before = problem.bill(rows, changes)
    at = _prices(problem, before.consumption.sum(axis=0), prices)
    place = np.full(len(problem), -1)
    place[rows] = np.arange(len(rows))
    order = problem.cohort.order
    chunks = problem.chunks(order[place[order] >= 0], TIDY.chunk)
    parts = engine.map(lambda some: tidied(problem, some, changes[place[some]], at), chunks, stage="", watch=silent)
    fewer = changes.copy()
    for some, part in zip(chunks, parts, strict=True):
        fewer[place[some]] = part
    fewer = _that_pass(problem, rows, changes, fewer)
    paid = _paid(problem, rows, changes, fewer)
    chosen = np.where(paid[:, None], fewer, changes)
    return chosen if problem.bill(rows, chosen).fits() else changes


def _prices(problem: Problem, spent: Floats, prices: Floats | None) -> Floats:
    """(m,): prices at which no finite budget is free.   spent (m,)"""
    thrift = problem.thrift_prices
    if prices is None or not (prices @ spent > 0):
        return thrift
    return np.asarray(prices + TIDYING.tilt * (prices @ spent) / max(float(thrift @ spent), 1e-300) * thrift)


def _that_pass(problem: Problem, rows: Rows, changes: Floats, fewer: Floats) -> Floats:
    """`fewer` where these are flips with fewer changes, else `changes`."""
    kept = np.count_nonzero(fewer, axis=1) < np.count_nonzero(changes, axis=1)
    kept[kept] = judge.admissible(problem, rows[kept], fewer[kept])
    return np.where(kept[:, None], fewer, changes)


def _paid(problem: Problem, rows: Rows, changes: Floats, fewer: Floats) -> Mask:
    """(c,): whose flip the budgets let replace by the one with fewer changes, those that draw little more first"""
    before, after = (problem.bill(rows, some).consumption for some in (changes, fewer))
    finite = np.isfinite(problem.ledger.amounts)
    amounts = problem.ledger.amounts[finite]
    shares = np.where(amounts > 0, amounts, 1.0)
    more = (after - before)[:, finite] / shares
    room = np.where(amounts > 0, 1 - TIDYING.kept, 0.0) - before[:, finite].sum(axis=0) / shares
    open_ = np.flatnonzero((fewer != changes).any(axis=1))
    open_ = open_[np.argsort(more[open_].clip(0.0).max(axis=1, initial=0.0), kind="stable")]
    paid = np.zeros(len(rows), dtype=bool)
    for _ in range(TIDYING.skips):
        drawn = more[open_].cumsum(axis=0)
        over = ((drawn > room) & (more[open_] > 0)).any(axis=1)
        first = int(np.argmax(over)) if over.any() else len(open_)
        paid[open_[:first]] = True
        if first == len(open_):
            break
        room = room - (drawn[first - 1] if first else 0.0)
        open_ = open_[first + 1 :]
    return paid
