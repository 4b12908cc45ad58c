"""Why no selection is feasible: who must be picked, or who a quota asks for, does not fit into the budgets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from maxflip._util.faults import Fault, about
from maxflip._util.messages import counted
from maxflip._util.types import Mask, Rows
from maxflip.errors import ProblemError
from maxflip.problem.problem import Problem
from maxflip.select.relaxation import Candidates, relaxed


def infeasible(problem: Problem, candidates: Candidates, rows: Rows, must: Rows) -> ProblemError:
    """What to change.   rows (c,): of the candidates' samples   must: rows that must be picked"""
    if not len(problem.quotas):
        says = f"the budgets do not suffice for {counted(len(must), 'sample')} that must be picked."
        return ProblemError([about("include", f"{says} Raise the budgets or shorten the list.")])
    picked = f" with the {counted(len(must), 'sample')} that must be picked" if len(must) else ""
    says = f"the known flips cannot keep them all at once within the budgets{picked}. Ask for less, or raise budgets."
    return ProblemError([*_too_many(problem, candidates, rows)] or [about("quotas", says)])


def _too_many(problem: Problem, candidates: Candidates, rows: Rows) -> Iterator[Fault]:
    """A fault for each quota that alone asks for more people than the budgets pay for."""
    quotas = problem.quotas
    for side in (quotas.sides[q] for q in quotas.demanding):
        inside = quotas.inside[side.quota]
        most = _most(candidates, inside[rows])
        if most < side.number:
            who = f"{int(inside.sum())} in the group ({quotas.asked[side.quota].name})"
            less = f"Ask for at most {most}" if most else "Ask for fewer"
            says = (
                f"asks for {counted(side.number, 'person', 'people')}. A flip that the budgets pay for is known for "
                f"{len(np.unique(rows[inside[rows]]))} of the {who}; of these known flips at most {most} fit in "
                f"together. {less}, raise the budgets, widen limits, or search longer with Prices(effort=3)."
            )
            yield Fault((("quotas", "at_least"),), says, entries=(side.quota + 1,))


def _most(candidates: Candidates, inside: Mask) -> int:
    """How many members the budgets can pay for at most: the linear relaxation, without quotas, with worth 1 each."""
    if not inside.any():
        return 0
    alone = replace(
        candidates,
        worth=inside.astype(np.float64),
        share=candidates.share[:, candidates.budgets],
        must=np.zeros(len(inside), dtype=bool),
        quotas=np.empty(0),
        steps=np.empty(0),
    )
    answer = relaxed(alone.of(inside))
    return 0 if answer is None else math.floor(answer.bound + 1e-6)
