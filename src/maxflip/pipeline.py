"""solve = propose -> choose -> judge -> Plan."""

from __future__ import annotations

import math
import platform
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip import judge
from maxflip.choose import choose
from maxflip.engine import Engine, Local, Rows, one_torch_thread, threads_of
from maxflip.errors import InputError, ModelError
from maxflip.exact import Floats, fsum
from maxflip.holds import holds_of
from maxflip.parts import filled, joined, rows_of, threads
from maxflip.plan import Fate, Places, Plan, Status
from maxflip.problem import Problem
from maxflip.question import asked
from maxflip.solvers import Grouped, Prices, Proposal, Run, Solver, read_groups
from maxflip.streams import Streams
from maxflip.suggest import shown
from maxflip.watch import Notice, Watch, silent


def solve(
    problem: Problem,
    solver: Solver | None = None,
    *,
    seed: int = 0,
    start: Plan | None = None,
    engine: Engine | None = None,
    watch: Watch | None = None,
    allocation: Literal["joint", "proportional"] = "joint",
    groups: Any = None,
) -> Plan:
    """Whom to pick and what to change.

    Args:
        problem: what is asked.
        solver: an object such as Prices(); None: Prices().
        seed: whole number; the same seed gives the same plan.
        start: an earlier Plan, for solvers that can go on from one; None: from nothing.
        engine: who does the work; None: this process.
        watch: function that is told what happens (maxflip.watch.Event); None: nobody.
        allocation: "joint": all samples share every budget; "proportional" (the paper, for sequences): each group has
            a part of every budget of its own.
        groups: of a proportional allocation: how many, of similar lengths, or one label per sample, (n,); None: none.
    """
    _check_arguments(problem, solver, seed, start, engine, watch)
    _check_allocation(allocation, groups)
    seed = int(seed)
    began = time.monotonic()
    tell = watch or silent
    for text in problem.notices:
        tell(Notice(text))
    used = solver if solver is not None else Prices()
    worker = engine or Local(torch.get_num_threads())
    with problem.classifier.borrowed(), threads(threads_of(worker)), one_torch_thread():
        where = judge.standing(problem, worker, tell)
        run = Run(Streams(seed), tell, worker, where, start)
        earlier_rows, earlier_changes = _earlier(problem, where, start)
        alone = used if allocation == "joint" else Grouped(used, read_groups(groups, problem.cohort))
        proposal = _finite(alone.propose(problem, run))
        rows = joined([proposal.rows, earlier_rows])
        changes = joined([proposal.changes, earlier_changes])
        admitted = np.flatnonzero(judge.admissible(problem, rows, changes))
        rows, changes = rows_of(rows, admitted), rows_of(changes, admitted)
        must = problem.include[~where.already[problem.include]]
        chosen = choose(problem, rows, changes, must, proposal.prices)
        if len(earlier_rows):
            is_earlier = np.flatnonzero(admitted >= len(proposal.rows))
            chosen = _no_worse(problem, rows, changes, must, chosen, is_earlier)
        selection = _judged(problem, rows[chosen], rows_of(changes, chosen))
        if len(earlier_rows) and len(selection.dropped):  # less than was chosen: perhaps less than there was before
            again = _no_worse(problem, rows, changes, must, chosen[np.isin(rows[chosen], selection.rows)], is_earlier)
            selection = _judged(problem, rows[again], rows_of(changes, again))
        if not np.isin(must, selection.rows).all():
            raise ModelError("include: a flip that must be picked does not hold when the model sees the sample alone.")
        known = _known(problem, proposal, rows, selection.dropped)
        plan = _plan(problem, run, proposal, selection, known)
    return replace(plan, solver=repr(used), seconds=time.monotonic() - began)


@dataclass(frozen=True, eq=False)
class _Selection:
    """What stands of what was chosen: rows (count,) ascending, changes (count, F), confidence (count,) after them"""

    rows: Rows
    changes: Floats
    confidence: Floats
    dropped: Rows  # chosen, but no flips when judged again


def _judged(problem: Problem, rows: Rows, changes: Floats) -> _Selection:
    verdict = judge.verdict(problem, rows, changes)
    kept = np.flatnonzero(verdict.kept)
    kept = kept[np.argsort(rows[kept], kind="stable")]
    return _Selection(rows[kept], rows_of(changes, kept), verdict.confidence[kept], rows[~verdict.kept])


def _known(problem: Problem, proposal: Proposal, admitted: Rows, dropped: Rows) -> Rows:
    """Rows that have a flip: by the judge's word where it was offered, by the solver's where that was too dear."""
    known = np.zeros(len(problem), dtype=bool)
    for rows, is_so in ((proposal.known, True), (proposal.rows, False), (admitted, True), (dropped, False)):
        known[rows] = is_so
    return np.flatnonzero(known)


def _finite(proposal: Proposal) -> Proposal:
    """Without an estimate or prices that are no numbers: nothing can be read from them, and no file can hold them."""
    if proposal.estimate is not None and not math.isfinite(proposal.estimate):
        proposal = replace(proposal, estimate=None)
    if proposal.prices is not None and not all(map(math.isfinite, proposal.prices.values())):
        proposal = replace(proposal, prices=None)
    return proposal


def _earlier(problem: Problem, where: judge.Standing, start: Plan | None) -> tuple[Rows, Floats]:
    """The flips of an earlier plan that are still asked for, by id."""
    if start is None:
        return np.empty(0, np.int64), np.empty((0, problem.width))
    rows, changes = start.moves_in(problem)
    asked = where.open[rows] & ~np.isin(rows, problem.exclude)
    return rows[asked], changes[asked]


def _no_worse(problem: Problem, rows: Rows, changes: Floats, must: Rows, chosen: Rows, earlier: Rows) -> Rows:
    """The earlier plan's selection, where it still holds and is worth more than what was chosen."""
    covers = bool(np.isin(must, rows[earlier]).all())
    better = fsum(problem.worth[rows[earlier]]) > fsum(problem.worth[rows[chosen]])
    return earlier if better and covers and problem.bill(rows, changes).of(earlier).fits() else chosen


def _check_arguments(problem: Any, solver: Any, seed: Any, start: Any, engine: Any, watch: Any) -> None:
    faults = []
    if not isinstance(problem, Problem):
        faults.append(f"problem: got {shown(problem)}; wanted a Problem(...).")
    if isinstance(solver, type):
        faults.append(f"solver: got the class {solver.__name__}; wanted a solver: {solver.__name__}().")
    elif solver is not None and not callable(getattr(solver, "propose", None)):
        faults.append(f"solver: got {shown(solver)}; wanted a solver, such as Prices().")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        faults.append(f"seed = {shown(seed)}: must be a whole number.")
    if start is not None and not isinstance(start, Plan):
        faults.append(f"start: got {shown(start)}; wanted an earlier Plan.")
    works = all(callable(getattr(engine, name, None)) for name in ("map", "hold"))
    if engine is not None and (isinstance(engine, type) or not works):
        faults.append(f"engine: got {shown(engine)}; wanted an Engine, such as Local().")
    if watch is not None and (isinstance(watch, type) or not callable(watch)):
        faults.append(f"watch: got {shown(watch)}; wanted a function that takes an event.")
    if faults:
        raise InputError(faults)


def _check_allocation(allocation: Any, groups: Any) -> None:
    if allocation not in ("joint", "proportional"):
        raise InputError(f"allocation = {shown(allocation)}: must be 'joint' or 'proportional'.")
    if (allocation == "proportional") != (groups is not None):
        raise InputError(
            f"allocation = {allocation!r}, groups = {shown(groups)}: a proportional allocation needs `groups`, and a "
            "joint one has none."
        )


def _plan(problem: Problem, run: Run, proposal: Proposal, selection: _Selection, known: Rows) -> Plan:
    where, selected, changes = run.standing, selection.rows, selection.changes
    fates = _fates(problem, proposal, where, known, selected)
    bound = _proved_bound(problem, fates, proposal.bound)
    worth = fsum(problem.worth[selected])
    return Plan(
        features=problem.cohort.features,
        units=problem.cohort.units,
        all_ids=problem.cohort.ids,
        selected=selected,
        moves=changes,
        before=_where_changed(problem, selected, changes),
        places=_places(problem, selected),
        fates=_FATES[fates],
        worths=problem.worth,
        confidence_before=where.confidence,
        confidence_after=selection.confidence,
        below_margin=int(where.below_margin.sum()),
        budgets={name: budget.detached() for name, budget in problem.budgets.items()},
        spend=dict(zip(problem.ledger.names, problem.bill(selected, changes).spent().tolist(), strict=True)),
        prices=proposal.prices,
        price_ranges=proposal.price_ranges,
        bound=bound if proposal.bound is not None or bound == worth else None,
        estimate=proposal.estimate,
        status=_status(worth, bound, proposal),
        solver="",
        seed=run.streams.seed,
        seconds=0.0,
        guard=problem.guard,
        notices=(*problem.notices, *proposal.notices),
        trace=proposal.trace,
        versions=_versions(),
        question=asked(problem),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        must_hold=problem.scenarios.requirements,
        holds=holds_of(problem, selected, changes),
    )


def _places(problem: Problem, selected: Rows) -> Places | None:
    ragged, slots = problem.cohort.ragged, problem.slots
    if ragged is None or slots.step is None:
        return None
    step = slots.step[selected]
    time = np.where(step >= 0, ragged.times[ragged.begin[selected][:, None] + step], np.nan)
    return Places(slots.feature, step, time, ragged.lengths[selected])


def _where_changed(problem: Problem, rows: Rows, changes: Floats) -> Floats:
    """(count, F): the values that change, NaN elsewhere"""
    return filled(
        lambda part: np.where(changes[part] != 0, problem.start[rows[part]], np.nan),
        changes.shape,
    )


_FATES = np.array([fate.value for fate in Fate], dtype=object)
_CODE = {fate: code for code, fate in enumerate(Fate)}
Codes = NDArray[np.int8]


def _fates(problem: Problem, proposal: Proposal, where: judge.Standing, known: Rows, selected: Rows) -> Codes:
    """(n,) places in _FATES. Later lines overrule earlier ones."""
    fates = np.full(len(problem), _CODE[Fate.NOT_FOUND], dtype=np.int8)
    fates[problem.exclude] = _CODE[Fate.LEFT_OUT]
    fates[known] = _CODE[Fate.LEFT_OUT]
    fates[proposal.unreachable] = _CODE[Fate.UNREACHABLE]
    fates[proposal.unusable] = _CODE[Fate.UNUSABLE]
    fates[selected] = _CODE[Fate.FLIPPED]
    fates[where.unusable] = _CODE[Fate.UNUSABLE]
    fates[where.already] = _CODE[Fate.ALREADY]
    return fates


def _proved_bound(problem: Problem, fates: Codes, solver_bound: float | None) -> float:
    """The solver's, or the plain one if lower: nobody outside these can be won, and count budgets cap how many."""
    lost = (fates == _CODE[Fate.ALREADY]) | (fates == _CODE[Fate.UNREACHABLE])
    lost[problem.exclude] = True
    worths = problem.worth[~lost]
    caps = problem.ledger.amounts[problem.ledger.count > 0]
    most = np.floor(caps.min(initial=np.inf))
    plain = fsum(worths if most >= len(worths) else np.sort(worths)[::-1][: int(most)])
    return plain if solver_bound is None else min(plain, solver_bound)


def _status(worth: float, bound: float, proposal: Proposal) -> Status:
    if worth >= bound:
        return Status.OPTIMAL
    return Status.FEASIBLE if proposal.bound is None and proposal.estimate is None else Status.OPEN


def _versions() -> dict[str, str]:
    from maxflip import __version__

    return {
        "maxflip": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
