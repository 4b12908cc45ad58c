"""Flips by levers alone: every combination of actions and switches is tried, so that nothing is missed.

The combinations are gone through in the order of what they draw. One that draws at least as much of every budget as a
combination that already flips the sample is not needed: the model is not asked about it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from maxflip import judge
from maxflip._util.types import Floats, Mask, Rows
from maxflip.problem.problem import Problem

GENEROUS = 1 + 1e-9  # what is drawn is rounded, and decided exactly later on


@dataclass(frozen=True, eq=False)
class MenuFlips:
    """All flips that no other one outdoes.

    rows (c,): the sample of each   switches (c, L)   sure (c,): whether it passes by the guard; others pass by less,
    and count in bounds alone   asked: how often the model was asked about a sample

    Flips that no budget pays for are among them: they count in bounds at larger budgets.
    """

    rows: Rows
    switches: Mask
    sure: Mask
    asked: int

    @classmethod
    def all(cls, parts: list[MenuFlips]) -> MenuFlips:
        return cls(
            np.concatenate([p.rows for p in parts]),
            np.concatenate([p.switches for p in parts]),
            np.concatenate([p.sure for p in parts]),
            sum(p.asked for p in parts),
        )

    def changes(self, problem: Problem) -> Floats:
        """(c, K)"""
        return as_changes(problem, self.switches)


def as_changes(problem: Problem, switches: Mask) -> Floats:
    """(c, L) -> (c, K)"""
    changes = np.zeros((len(switches), problem.width))
    changes[:, problem.is_lever] = switches
    return changes


def payable(problem: Problem, rows: Rows, changes: Floats) -> Mask:
    """(c,): changes (c, K) that the whole budgets pay for; rounding leaves out none of them"""
    return np.asarray((problem.bill(rows, changes).consumption <= problem.ledger.amounts * GENEROUS).all(axis=1))


def menu_flips(problem: Problem, rows: Rows, menu: Ordered | None = None) -> MenuFlips:
    """Those of the samples `rows`.   menu: the combinations, if they are known"""
    menu = Ordered.of(problem) if menu is None else menu
    flips = np.zeros((len(menu.switches), len(rows)), dtype=bool)
    barely = np.zeros_like(flips)
    asked = 0
    for number, switches in enumerate(menu.switches):
        open_ = np.flatnonzero(~flips[menu.outdone_by[number]].any(axis=0))
        changes = as_changes(problem, np.broadcast_to(switches, (len(open_), len(switches))))
        lawful = judge.lawful(problem, rows[open_], changes)
        open_, changes = open_[lawful], changes[lawful]
        least = judge.least_confidence_after(problem, rows[open_], changes)
        asked += len(open_)
        flips[number, open_] = least >= problem.goal.required + problem.guard
        barely[number, open_] = (least >= problem.goal.required) & ~flips[number, open_]
    sample, which = np.nonzero((flips | barely).T)
    return MenuFlips(rows[sample], menu.switches[which], flips[which, sample], asked)


@dataclass(frozen=True, eq=False)
class Ordered:
    """The combinations that a whole budget pays for, by what they draw; of equals the one with fewer levers first.

    switches (M, L)   outdone_by: of each, the earlier ones that draw no more of any budget, whoever gets them
    """

    switches: Mask
    outdone_by: list[Rows]

    @classmethod
    def of(cls, problem: Problem) -> Ordered:
        levers = problem.menu.levers
        if levers is None:
            raise ValueError("the problem has no levers")
        switches = levers.alternatives()[1:]
        switches = switches[(switches <= problem.may_move[problem.is_lever]).all(axis=1)]
        draws, own = _drawn_by_all(problem, switches), _of_own_weight(problem)
        limits = problem.ledger.amounts
        share = (draws / np.where(limits > 0, limits, 1.0)).sum(axis=1)
        order = np.lexsort((switches.sum(axis=1), draws.sum(axis=1), share))
        switches, ranks = switches[order], _ranks(problem, switches[order])
        outdone_by = [
            np.flatnonzero(
                (ranks[:number] <= ranks[number]).all(axis=1)
                & (switches[:number] & own <= switches[number] & own).all(axis=1)
            )
            for number in range(len(ranks))
        ]
        return cls(switches, outdone_by)


def _of_own_weight(problem: Problem) -> Mask:
    """(L,): levers of which people draw amounts of their own"""
    own = np.zeros(problem.width, dtype=bool)
    own[[slot for _, slot in problem.ledger.own.weights]] = True
    return own[problem.is_lever]


def _drawn_by_all(problem: Problem, switches: Mask) -> Floats:
    """(M, m): what combinations of levers draw, without fees and without the levers of `_of_own_weight`"""
    return np.asarray(switches.astype(np.float64) @ _weights(problem).T)


def _weights(problem: Problem) -> Floats:
    """(m, L)"""
    return (problem.ledger.squared + problem.ledger.absolute)[:, problem.is_lever]


def _ranks(problem: Problem, switches: Mask) -> Rows:
    """(M, m): the order of what combinations draw, decided exactly: as floats, 0.1 + 0.4 ties with 0.5"""
    parts = [[Fraction(float(weight)) for weight in row] for row in _weights(problem)]
    whole = math.lcm(*(part.denominator for row in parts for part in row))
    numbers = np.array([[int(part * whole) for part in row] for row in parts], dtype=object).reshape(
        -1, switches.shape[1]
    )
    drawn = switches.astype(object) @ numbers.T
    return np.stack([np.unique(column, return_inverse=True)[1] for column in drawn.T], axis=1)
