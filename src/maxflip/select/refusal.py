"""Why no selection is feasible: who must be picked, or who a quota asks for, does not fit into the budgets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from maxflip._util.faults import Fault
from maxflip._util.messages import counted
from maxflip._util.types import Rows
from maxflip.errors import ProblemError
from maxflip.problem.problem import Problem
from maxflip.select.relaxation import Candidates, relaxed


def infeasible(problem: Problem, candidates: Candidates, rows: Rows, must: Rows) -> ProblemError:
    """What to change.   rows (c,): of the candidates' samples   must: rows that must be picked"""
    if not len(problem.quotas):
        return ProblemError(
            f"include: the budgets do not suffice for {counted(len(must), 'sample')} that must be picked. "
            "Raise the budgets or shorten the list."
        )
    faults = [*_too_many(problem, candidates, rows)]
    together = "the budgets" + (f", and with the {counted(len(must), 'sample')} that must be picked" if len(must) else "")
    says = f"no selection of the known flips keeps them all together within {together}. Ask for less, or raise the budgets."
    return ProblemError(faults or [Fault((("quotas",),), says)])


def _too_many(problem: Problem, candidates: Candidates, rows: Rows) -> Iterator[Fault]:
    """A fault for each quota that alone asks for more people than the budgets pay for."""
    quotas = problem.quotas
    for q in quotas.demanding:
        side = quotas.sides[q]
        inside = quotas.inside[side.quota]
        most = _most(candidates, inside[rows])
        if most < side.number:
            known = len(np.unique(rows[inside[rows]]))
            says = (
                f"asks for {counted(side.number, 'person', 'people')}. A flip that a budget pays for is known for "
                f"{known} of the {int(inside.sum())} in the group ({quotas.asked[side.quota].name}), and the budgets pay "
                f"for at most {most} of these together. Ask for at most {most}, raise the budgets, or widen limits."
            )
            yield Fault((("quotas", "at_least"),), says, entries=(side.quota + 1,))


def _most(candidates: Candidates, inside: np.ndarray) -> int:
    """How many members the budgets can pay for at most: the linear relaxation, without quotas, with worth 1 each."""
    own = candidates.budgets
    counted_alone = replace(
        candidates,
        worth=inside.astype(np.float64),
        share=candidates.share[:, own],
        must=np.zeros(len(inside), dtype=bool),
        quotas=np.empty(0),
        steps=np.empty(0),
    )
    if not inside.any():
        return 0
    answer = relaxed(counted_alone.of(inside))
    return 0 if answer is None else math.floor(answer.bound + 1e-6)
