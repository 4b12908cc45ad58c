"""Grouped: the paper's allocation. Each group of samples has its own part of every budget, and none of the others'."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip._util.messages import counted, shown
from maxflip._util.types import Floats, Rows
from maxflip.data.cohort import Cohort, in_cohort_order, is_listing
from maxflip.errors import InputError
from maxflip.plan.pool import Pool
from maxflip.plan.used import SolverUsed
from maxflip.solvers.base import Proposal, Run, Solver

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Grouped(Solver):
    """A proportional allocation: each group of samples has its own part of every budget.

        max sum_j v_j z_j  within each group g alone, with (|S_g| / |S|) B_r of every budget, S the samples to be won

    The paper forms groups of sequences of similar length, because its programs want them to be equally long. A solver
    without groups can do whatever this can, and more.

    Args:
        solver: what solves each group, such as Prices().
        groups: how many groups, of sequences of similar lengths; or a label per sample, (n,).
    """

    solver: Solver
    groups: Any

    is_joint = False

    def propose(self, problem: Problem, run: Run) -> Proposal:
        """Of each group the flips that its part of the budgets pays for; together they fit into the whole."""
        from maxflip.judge import admissible
        from maxflip.select.choose import choose
        from maxflip.select.twins import evened

        groups, wanted = read_groups(self.groups, problem.cohort), run.candidates_wanted(problem)
        must = problem.include[~run.standing.already[problem.include]]
        rows, changes, parts = [wanted[:0]], [np.empty((0, problem.width))], []
        for inside, part in self._parts(problem, run):
            proposal = self.solver.propose(part, run)
            ok = admissible(part, proposal.rows, proposal.changes)
            found = Pool.of(part, proposal.rows[ok], proposal.changes[ok])
            found = evened(part, found, inside, run.standing.confidence)
            chosen = choose(part, found.rows, found.changes, np.intersect1d(must, inside), proposal.prices)
            rows.append(found.rows[chosen])
            changes.append(found.changes[chosen])
            parts.append(replace(proposal, known=np.union1d(found.rows, proposal.known)))
        low, high = problem.box(wanted)
        return Proposal(
            rows=np.concatenate(rows),
            changes=np.concatenate(changes),
            known=np.concatenate([wanted[:0], *(p.known for p in parts)]),
            unreachable=wanted[((low == 0) & (high == 0)).all(axis=1)],
            unusable=np.concatenate([wanted[:0], *(p.unusable for p in parts)]),
            notices=(
                f"The budgets were divided among {counted(len(parts), 'group')} in proportion to their sizes.",
                *_too_few(problem, np.unique(groups[wanted], return_counts=True)[1] / max(1, len(wanted))),
                *dict.fromkeys(notice for p in parts for notice in p.notices),
            ),
            trace=_traces([p.trace for p in parts]),
        )

    def fits(self, problem: Problem, run: Run, rows: Rows, changes: Floats) -> bool:
        """Whether every group pays for its own of these changes (c, K) of the samples `rows`."""
        bill_of = [(part, np.isin(rows, inside)) for inside, part in self._parts(problem, run)]
        return all(part.bill(rows[own], changes[own]).fits() for part, own in bill_of)

    def used(self, problem: Problem) -> SolverUsed:
        """The solver of the groups, and how many there are."""
        groups = len(np.unique(read_groups(self.groups, problem.cohort)))
        return SolverUsed.of(self.solver, groups, labelled=not isinstance(self.groups, (int, np.integer)))

    def _parts(self, problem: Problem, run: Run) -> Iterator[tuple[Rows, Problem]]:
        """The samples of each group that are to be won, and the problem of these alone."""
        groups, wanted = read_groups(self.groups, problem.cohort), run.candidates_wanted(problem)
        for group in np.unique(groups[wanted]):
            inside = wanted[groups[wanted] == group]
            yield inside, problem.restricted(inside, len(inside) / len(wanted))


def _too_few(problem: Problem, shares: Floats) -> list[str]:
    """Of whom whole groups get less than one."""
    return [
        f"Budget {name!r} has less than one person for {counted(int(less.sum()), 'group')}: nobody is picked there."
        for name, budget in problem.budgets.items()
        if budget.cost == "count" and (less := shares * budget.amount < 1).any()
    ]


def _traces(traces: list[Any]) -> dict[str, list[Any]]:
    """One under the other, with the number of the group."""
    names = list(dict.fromkeys(name for trace in traces for name in trace))
    found: dict[str, list[Any]] = {"group": []} | {name: [] for name in names}
    for number, trace in enumerate(traces):
        length = max((len(column) for column in trace.values()), default=0)
        found["group"] += [number] * length
        for name in names:
            found[name] += list(trace.get(name, [None] * length))
    return found if found["group"] else {}


def read_groups(groups: Any, cohort: Cohort) -> Rows:
    """(n,): from a number of groups of similar lengths and sizes, or from a label per sample."""
    if isinstance(groups, (int, np.integer)) and not isinstance(groups, bool):
        return cohort.layout.by_length(cohort.order, int(groups))
    if not is_listing(groups):
        raise InputError(f"groups: got {shown(groups)}; wanted how many, by length, or one label per sample.")
    labels = [str(label) for label in in_cohort_order(groups, cohort)]
    if len(labels) != len(cohort):
        raise InputError(f"groups: {counted(len(labels), 'label')} for {counted(len(cohort), 'sample')}.")
    return np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64)
