"""Grouped: the paper's allocation. Each group of samples has its own part of every budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip._util.faults import about
from maxflip._util.messages import counted, shown
from maxflip._util.types import Floats, Rows
from maxflip.data.cohort import Cohort, in_cohort_order
from maxflip.data.tables import is_listing
from maxflip.errors import InputError, ProblemError
from maxflip.plan.pool import Pool
from maxflip.plan.used import SolverUsed
from maxflip.solvers.base import Proposal, Run, Solver

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Grouped(Solver):
    """A proportional allocation: each group of samples has its own part of every budget.

        max sum_j v_j z_j  within each group g alone, with (|S_g| / |S|) B_r of every budget, S the samples to be won

    The paper forms groups of sequences of similar length, because its programs need sequences of equal length. Every
    such plan is also one without groups, so groups never allow a better plan.

    Args:
        solver: the solver of each group, such as Prices().
        groups: number of groups, of sequences of similar lengths; or a label per sample, (n,).
    """

    solver: Solver
    groups: Any

    is_joint = False

    def propose(self, problem: Problem, run: Run) -> Proposal:
        """The selections of all groups, each within its part of the budgets."""
        from maxflip.judge import admissible
        from maxflip.select.choose import choose
        from maxflip.select.twins import evened

        if problem.quotas.asked:
            says = "a proportional allocation divides the cohort, and a quota is about everybody picked. Leave out one."
            raise ProblemError([about("quotas", says)])
        groups, wanted = read_groups(self.groups, problem.cohort), run.candidates_wanted(problem)
        must = problem.include[~run.standing.already[problem.include]]
        rows, changes, parts = [wanted[:0]], [np.empty((0, problem.width))], []
        for inside, part in self.parts(problem, run):
            proposal = self.solver.propose(part, run)
            ok = admissible(part, proposal.rows, proposal.changes)
            found = Pool.of(part, proposal.rows[ok], proposal.changes[ok])
            found = evened(part, found, inside, run.standing.confidence)
            chosen = choose(part, found.rows, found.changes, np.intersect1d(must, inside), proposal.prices)
            rows.append(found.rows[chosen])
            changes.append(found.changes[chosen])
            parts.append(replace(proposal, known=np.union1d(found.rows, proposal.known)))
        return Proposal(
            rows=np.concatenate(rows),
            changes=np.concatenate(changes),
            known=np.concatenate([wanted[:0], *(p.known for p in parts)]),
            unreachable=_motionless(problem, wanted),
            unusable=np.concatenate([wanted[:0], *(p.unusable for p in parts)]),
            notices=(
                f"The budgets were divided among {counted(len(parts), 'group')} in proportion to their sizes.",
                *_too_few(problem, np.unique(groups[wanted], return_counts=True)[1] / max(1, len(wanted))),
                *dict.fromkeys(notice for p in parts for notice in p.notices),
            ),
            search_prices=[p.sought_at(problem)[0] for p in parts],
            trace=_traces([p.trace for p in parts]),
        )

    def parts(self, problem: Problem, run: Run) -> Iterator[tuple[Rows, Problem]]:
        """For each group: the rows of its samples that a plan can win, and the problem restricted to them."""
        groups, wanted = read_groups(self.groups, problem.cohort), run.candidates_wanted(problem)
        for group in np.unique(groups[wanted]):
            inside = wanted[groups[wanted] == group]
            yield inside, problem.restricted(inside, len(inside) / len(wanted))

    def fits(self, problem: Problem, run: Run, rows: Rows, changes: Floats) -> bool:
        """Whether, in each group, these changes (c, K) of the samples `rows` keep its part of the budgets."""
        groups = [(part, np.isin(rows, inside)) for inside, part in self.parts(problem, run)]
        return all(part.bill(rows[own], changes[own]).fits() for part, own in groups)

    def used(self, problem: Problem) -> SolverUsed:
        """The solver of the groups, and how many there are."""
        groups = len(np.unique(read_groups(self.groups, problem.cohort)))
        return SolverUsed.of(self.solver, groups, labelled=not isinstance(self.groups, (int, np.integer)))


def _motionless(problem: Problem, rows: Rows) -> Rows:
    """Samples of which no feature may change; with levers, which change them too, nobody is known to be one."""
    if problem.is_lever.any():
        return rows[:0]
    low, high = problem.box(rows)
    return np.asarray(rows[((low == 0) & (high == 0)).all(axis=1)])


def _too_few(problem: Problem, shares: Floats) -> list[str]:
    """Notices for counts of which a group's part is less than one."""
    return [
        f"Budget {name!r} has less than one person for {counted(int(less.sum()), 'group')}: nobody is picked there."
        for name, budget in problem.budgets.items()
        if budget.counts_people and budget.only is None and (less := shares * budget.amount < 1).any()
    ]


def _traces(traces: list[Any]) -> dict[str, list[Any]]:
    """The groups' traces concatenated, with a column for the number of the group."""
    names = list(dict.fromkeys(name for trace in traces for name in trace))
    found: dict[str, list[Any]] = {"group": []} | {name: [] for name in names}
    for number, trace in enumerate(traces):
        length = max((len(column) for column in trace.values()), default=0)
        found["group"] += [number] * length
        for name in names:
            found[name] += list(trace.get(name, [None] * length))
    return found if found["group"] else {}


def read_groups(groups: Any, cohort: Cohort) -> Rows:
    """(n,): the group of each sample, from a number of groups (of similar lengths and sizes) or a label per sample."""
    if isinstance(groups, (int, np.integer)) and not isinstance(groups, bool):
        return cohort.layout.by_length(cohort.order, int(groups))
    if not is_listing(groups):
        raise InputError(f"groups: got {shown(groups)}; wanted how many, by length, or one label per sample.")
    labels = [str(label) for label in in_cohort_order(groups, cohort)]
    if len(labels) != len(cohort):
        raise InputError(f"groups: {counted(len(labels), 'label')} for {counted(len(cohort), 'sample')}.")
    return np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64)
