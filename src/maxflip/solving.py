"""solve = propose -> choose -> judge -> Plan."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip import judge
from maxflip._util.engine import Engine, Local, one_torch_thread, threads_of
from maxflip._util.events import Notice, Watch, silent
from maxflip._util.exact import fsum
from maxflip._util.faults import Fault
from maxflip._util.messages import counted, shown
from maxflip._util.parallel import filled, threads
from maxflip._util.rng import Streams
from maxflip._util.types import Floats, Rows
from maxflip.errors import InputError, ModelError, ProblemError
from maxflip.plan.bracket import Ceiling, most_allowed, most_payable
from maxflip.plan.holding import holds_of
from maxflip.plan.implied import Implied
from maxflip.plan.kept import KeptQuota
from maxflip.plan.plan import Fate, Plan, Status
from maxflip.plan.pool import Pool
from maxflip.plan.used import SolverUsed
from maxflip.problem.problem import Problem
from maxflip.problem.question import Question
from maxflip.problem.sanity import outcome_notices
from maxflip.select.choose import Choice, choice, choose
from maxflip.select.quota_costs import quota_costs
from maxflip.select.scarcity import needs, true_prices
from maxflip.select.settings import CHOICE
from maxflip.select.tidy import with_fewer_changes
from maxflip.select.twins import evened, in_order
from maxflip.solvers import Grouped, Prices, Proposal, Run, Solver


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
    """Find which samples to pick and what to change.

    Args:
        problem: the problem.
        solver: an object such as Prices(); None: Prices().
        seed: whole number; the same seed gives the same plan.
        start: an earlier Plan. Its flips are candidates too, and some solvers continue from it; None: no earlier plan.
        engine: runs the work; None: this process.
        watch: function called with progress events (maxflip.Event); None: no reports.
        allocation: "proportional" with `groups` is short for the solver Grouped(solver, groups).
        groups: as in Grouped; None for a joint allocation.
    """
    _check_arguments(problem, solver, seed, start, engine, watch)
    _check_allocation(allocation, groups)
    seed = int(seed)
    began = time.monotonic()
    tell = watch or silent
    for text in problem.notices:
        tell(Notice(text))
    used = solver if solver is not None else Prices()
    if groups is not None:
        used = Grouped(used, groups)
    worker = engine or Local(torch.get_num_threads())
    with _at_work(problem, worker):
        where = judge.standing(problem, worker, tell)
        earlier = None if start is None else _Earlier.of(problem, where, start)
        run = Run(Streams(seed), tell, worker, where, start, None if earlier is None else earlier.pool)
        must = problem.include[~where.already[problem.include]]
        _check_quotas(problem, run)
        before = [] if earlier is None else earlier.selections
        feasible = [some for some in before if _allowed(problem, run, used, must, some)]
        run = replace(run, won=max((_worth(problem, some) for some in feasible), default=0.0))
        proposal = _finite(used.propose(problem, run))
        offered = _admitted(problem, Pool.of(problem, proposal.rows, proposal.changes))
        found = offered if earlier is None else in_order(problem, Pool.union([offered, earlier.pool]))
        # A proportional allocation has already chosen within each group; flips of an earlier plan would mix the groups.
        shared = evened(problem, found, run.candidates_wanted(problem), where.confidence) if used.is_joint else offered
        selection, chosen = _chosen(problem, shared, feasible, must, proposal)
        if not np.isin(must, selection.rows).all():
            raise ModelError(
                "include: a flip that must be picked does not pass when the model evaluates the sample alone."
            )
        if proposal.pool is not None:
            found = Pool.union([found, _admitted(problem, proposal.pool)])
        selection = _tidied(problem, run, used, selection, proposal)
        found = Pool.union([found, Pool.of(problem, selection.rows, selection.changes)])
        pool = in_order(problem, Pool.union([_without(found, selection.dropped)]))
        proposal = replace(proposal, notices=(*proposal.notices, *chosen.notices))
        kept = _kept(problem, proposal, shared, must)
        proposal = _with_true_prices(problem, proposal, shared, selection)
        plan = replace(_plan(problem, run, proposal, selection, pool), quotas=_counted(kept, selection.rows))
    return replace(plan, solver=used.used(problem), seconds=time.monotonic() - began)


def choose_again(
    problem: Problem,
    plan: Plan,
    pool: Pool | None,
    *,
    others: Sequence[Plan] = (),
    ceilings: Sequence[Ceiling] = (),
    engine: Engine | None = None,
) -> Plan:
    """The plan, or a better one found without a new search.

    Args:
        problem: the problem of `plan`.
        plan: the result is worth at least as much.
        pool: candidate flips in the slots of the problem, including those of the plan, from solves of the same question
            with any budgets; None: no new choice is made.
        others: plans of the same question with other budgets; one that fits and is worth more replaces the plan.
        ceilings: of the same question with any budgets; they may lower the bound.
        engine: runs the work; None: this process.
    """
    worker = engine or Local(torch.get_num_threads())
    with _at_work(problem, worker):
        fates = plan.fates.astype(str)
        must = problem.include[fates[problem.include] != Fate.ALREADY]
        choices = [_mapped(problem, other.picked, other)[0] for other in others]
        choices = [known for known in choices if _fits(problem, known)]
        if pool is None:
            known = _mapped(problem, plan.flips, plan)[0]
        else:
            known = pool.those(judge.lawful(problem, pool.rows, pool.changes))
            choices.insert(0, known.those(choose(problem, known.rows, known.changes, must, plan.prices)))
        better = [choice for choice in choices if _worth(problem, choice) > plan.worth]
        selection = _best(problem, better) if better else None
        stands = selection is not None and problem.quotas.hold(selection.rows)
        if selection is not None and stands and fsum(problem.worth[selection.rows]) > plan.worth:
            plan = _replaced(problem, plan, selection)
            known = _without(known, selection.dropped)
        return _with_shared(problem, plan, known, ceilings)


def _chosen(
    problem: Problem, offered: Pool, feasible: Sequence[Pool], must: Rows, proposal: Proposal
) -> tuple[_Selection, Choice]:
    """The best of these flips, or of the earlier selections `feasible`; and the choice that was made.

    If a chosen flip fails when it is judged again, and those who are left break a quota, the choice is made again
    without that flip.
    """
    dropped: list[Pool] = []
    while True:
        made = [*feasible, *([] if proposal.picked is None else [proposal.picked])]
        known = offered.places_of(max(made, key=partial(_worth, problem))) if made else None
        effort = CHOICE.effort_again if feasible else 1.0
        how: dict[str, Any] = {"quota_prices": proposal.quota_prices, "known": known, "effort": effort}
        chosen = choice(problem, offered.rows, offered.changes, must, proposal.prices, **how)
        selection = _best(problem, [offered.those(chosen.picked), *feasible])
        dropped.append(selection.dropped)
        if problem.quotas.hold(selection.rows):
            return (selection if len(dropped) == 1 else replace(selection, dropped=Pool.union(dropped))), chosen
        offered = _without(offered, selection.dropped)
        left = [_without(some, selection.dropped) for some in feasible]
        feasible = [some for some in left if problem.quotas.hold(some.rows) and np.isin(must, some.rows).all()]


def _tidied(problem: Problem, run: Run, solver: Solver, selection: _Selection, proposal: Proposal) -> _Selection:
    """The same samples, with fewer changes where the budgets pay for that."""
    rows, changes = selection.rows, selection.changes.copy()
    for (inside, part), prices in zip(solver.parts(problem, run), proposal.sought_at(problem), strict=True):
        own = np.isin(rows, inside)
        changes[own] = with_fewer_changes(part, run.engine, rows[own], changes[own], prices)
    if np.array_equal(changes, selection.changes):
        return selection
    for _ in range(2):
        judged = _judged(problem, Pool.of(problem, rows, changes))
        failing = ~np.isin(rows, judged.rows)
        if not failing.any():
            return replace(judged, dropped=selection.dropped)
        changes[failing] = selection.changes[failing]
        if not solver.fits(problem, run, rows, changes):
            break
    return selection


def _check_quotas(problem: Problem, run: Run) -> None:
    """Refuse a quota that asks for more people than can still be won, before anything is searched."""
    quotas, wanted = problem.quotas, run.candidates_wanted(problem)
    faults = []
    for side in (quotas.sides[q] for q in quotas.demanding):
        inside = quotas.inside[side.quota]
        can, there = int(inside[wanted].sum()), int((inside & run.standing.already).sum())
        if can < side.number:
            says = (
                f"asks for {counted(side.number, 'person', 'people')} of {int(inside.sum())} in the group "
                f"({quotas.asked[side.quota].name}); {there} of them are in the wanted class already, and {can} can be "
                f"picked. Ask for at most {can}."
            )
            faults.append(Fault((("quotas", "at_least"),), says, entries=(side.quota + 1,)))
    if faults:
        raise ProblemError(faults)


def _kept(problem: Problem, proposal: Proposal, offered: Pool, must: Rows) -> tuple[KeptQuota, ...]:
    """The quotas, with what they cost, and nobody counted."""
    quotas = problem.quotas
    if not quotas.asked:
        return ()
    costs = quota_costs(problem, offered, must, proposal.prices, proposal.quota_prices)
    return tuple(
        KeptQuota(quota, np.flatnonzero(inside), 0, price, cost)
        for quota, inside, (price, cost) in zip(quotas.asked, quotas.inside, costs, strict=True)
    )


def _counted(kept: Sequence[KeptQuota], selected: Rows) -> tuple[KeptQuota, ...]:
    """The quotas, as these samples keep them."""
    return tuple(replace(one, count=int(np.isin(one.members, selected).sum())) for one in kept)


def _with_true_prices(problem: Problem, proposal: Proposal, offered: Pool, selection: _Selection) -> Proposal:
    """The proposal with the prices of budgets that do not limit the plan set to 0."""
    if proposal.prices is None:
        return proposal
    names = problem.ledger.names
    known = np.array([proposal.prices[name] for name in names])
    worth = problem.worth
    if proposal.quota_prices is not None:
        worth = problem.quotas.worth(worth, proposal.quota_prices)
    held = true_prices(problem, known, offered, Pool.of(problem, selection.rows, selection.changes), worth)
    shown = dict(zip(names, held.tolist(), strict=True))
    ranges = {name: span for name, span in proposal.price_ranges.items() if shown[name] > 0}
    return replace(proposal, prices=shown, price_ranges=ranges)


@contextmanager
def _at_work(problem: Problem, worker: Engine) -> Iterator[None]:
    with problem.classifier.borrowed(), threads(threads_of(worker)), one_torch_thread():
        yield


@dataclass(frozen=True, eq=False)
class _Earlier:
    """pool: the flips of an earlier plan that are flips of this problem
    selections: the plan's own, and the one of its `what_if` for the new budgets, without flips that fail here
    """

    pool: Pool
    selections: tuple[Pool, ...]

    @classmethod
    def of(cls, problem: Problem, where: judge.Standing, start: Plan) -> _Earlier:
        flips, which = _mapped(problem, start.flips, start)
        if not problem.is_smooth:  # budgets count the change on the grid
            flips = Pool.of(problem, flips.rows, problem.settle(flips.rows, flips.changes))
        asked = where.open[flips.rows] & ~np.isin(flips.rows, problem.exclude)
        asked[asked] = judge.admissible(problem, flips.rows[asked], flips.changes[asked])
        known = [np.arange(start.count)]
        if problem.budgets.keys() == start.budgets.keys():
            known.append(start.fitting({name: budget.amount for name, budget in problem.budgets.items()}))
        selections = tuple(flips.those(asked & np.isin(which, some)) for some in known)
        return cls(in_order(problem, flips.those(asked)), selections)


def _fits(problem: Problem, known: Pool) -> bool:
    return problem.quotas.hold(known.rows) and problem.bill(known.rows, known.changes).fits()


def _mapped(problem: Problem, flips: Pool, plan: Plan) -> tuple[Pool, Rows]:
    return flips.in_problem(problem, plan.all_ids, plan.features)


def _admitted(problem: Problem, flips: Pool) -> Pool:
    return flips.those(judge.admissible(problem, flips.rows, flips.changes))


def pooled(problem: Problem, plans: Sequence[Plan]) -> Pool:
    """All flips of several plans of the same question with any budgets."""
    return in_order(problem, Pool.union([_mapped(problem, plan.flips, plan)[0] for plan in plans]))


def _without(pool: Pool, dropped: Pool) -> Pool:
    """The pool without flips that failed when judged again."""
    kept = np.ones(len(pool), dtype=bool)
    for row, change in zip(dropped.rows.tolist(), dropped.changes, strict=True):
        own = np.flatnonzero(pool.rows == row)
        kept[own[(pool.changes[own] == change).all(axis=1)]] = False
    return pool.those(kept)


def _allowed(problem: Problem, run: Run, solver: Solver, must: Rows, known: Pool) -> bool:
    """Whether an earlier selection is feasible for this problem."""
    return bool(np.isin(must, known.rows).all()) and solver.fits(problem, run, known.rows, known.changes)


@dataclass(frozen=True, eq=False)
class _Selection:
    """A judged selection: rows (count,) ascending, changes (count, K), confidence (count,) after them.

    dropped: flips that were chosen but failed when judged again
    """

    rows: Rows
    changes: Floats
    confidence: Floats
    dropped: Pool


def _worth(problem: Problem, choice: Pool) -> float:
    return fsum(problem.worth[choice.rows])


def _best(problem: Problem, choices: Sequence[Pool]) -> _Selection:
    """The choice with the greatest worth after judging; ties are broken by order."""
    best: _Selection | None = None
    most = -math.inf
    for some in sorted(choices, key=lambda some: -_worth(problem, some)):
        if _worth(problem, some) <= most:
            break
        judged = _judged(problem, some)
        worth = fsum(problem.worth[judged.rows])
        if worth > most:
            best, most = judged, worth
    if best is None:
        raise ValueError("nothing to choose from")
    return best


def _judged(problem: Problem, choice: Pool) -> _Selection:
    verdict = judge.verdict(problem, choice.rows, choice.changes)
    kept = np.flatnonzero(verdict.kept)
    kept = kept[np.argsort(choice.rows[kept], kind="stable")]
    passing = choice.those(kept)
    return _Selection(passing.rows, passing.changes, verdict.confidence[kept], choice.those(~verdict.kept))


def _known(problem: Problem, proposal: Proposal, pool: Pool) -> Rows:
    """Rows that have a flip: decided by the judge if it was offered, otherwise by the solver."""
    known = np.zeros(len(problem), dtype=bool)
    for rows, is_so in ((proposal.known, True), (proposal.rows, False), (pool.rows, True)):
        known[rows] = is_so
    return np.flatnonzero(known)


def _finite(proposal: Proposal) -> Proposal:
    """The proposal without estimate, prices or ceilings that are not finite: files cannot hold them."""
    if proposal.estimate is not None and not math.isfinite(proposal.estimate):
        proposal = replace(proposal, estimate=None)
    if proposal.prices is not None and not all(map(math.isfinite, proposal.prices.values())):
        proposal = replace(proposal, prices=None)
    return replace(proposal, ceilings=tuple(ceiling for ceiling in proposal.ceilings if ceiling.is_finite))


def _check_arguments(problem: Any, solver: Any, seed: Any, start: Any, engine: Any, watch: Any) -> None:
    faults = []
    if not isinstance(problem, Problem):
        faults.append(f"problem: got {shown(problem)}; wanted a Problem(...).")
    if isinstance(solver, type):
        faults.append(f"solver: got the class {solver.__name__}; wanted a solver: {solver.__name__}().")
    elif solver is not None and not isinstance(solver, Solver):
        faults.append(f"solver: got {shown(solver)}; wanted a Solver, such as Prices().")
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


def _plan(problem: Problem, run: Run, proposal: Proposal, selection: _Selection, pool: Pool) -> Plan:
    where, selected = run.standing, selection.rows
    known = _known(problem, proposal, pool)
    fates = _fates(problem, proposal, where, known, selected)
    plain = _plain_bound(problem, _FATES[fates])
    bound = plain if proposal.bound is None else min(plain, proposal.bound)
    worth = fsum(problem.worth[selected])
    not_found = fates == _CODE[Fate.NOT_FOUND]
    doubts = outcome_notices(problem.cohort, problem.goal, where.confidence, where.already, not_found, len(known))
    for text in doubts:
        run.watch(Notice(text))
    return Plan(
        features=problem.cohort.features,
        units=problem.cohort.units,
        all_ids=problem.cohort.ids,
        **_selected(problem, selection),
        fates=_FATES[fates],
        worths=problem.worth,
        confidence_before=where.confidence,
        below_margin=int(where.below_margin.sum()),
        budgets={name: budget.detached() for name, budget in problem.budgets.items()},
        prices=proposal.prices,
        price_ranges=proposal.price_ranges,
        bound=bound if proposal.bound is not None or bound == worth else None,
        estimate=None if proposal.estimate is None else min(plain, max(worth, proposal.estimate)),
        status=_status(worth, bound, is_known=proposal.bound is not None or proposal.estimate is not None),
        solver=SolverUsed(""),
        seed=run.streams.seed,
        seconds=0.0,
        guard=problem.guard,
        notices=(*problem.notices, *proposal.notices, *doubts),
        trace=proposal.trace,
        versions=_versions(),
        question=Question.of(problem),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        include=problem.include,
        exclude=problem.exclude,
        ceilings=proposal.ceilings,
        needs={} if len(selected) else needs(problem, pool),
        pool=pool,
        must_hold=problem.scenarios.requirements,
    )


def _selected(problem: Problem, selection: _Selection) -> dict[str, Any]:
    """The fields of a plan that depend on the selection."""
    rows, changes = selection.rows, selection.changes
    return {
        "selected": rows,
        "moves": changes,
        "before": _where_changed(problem, rows, changes),
        "places": problem.cohort.layout.places(problem.slots, rows),
        "implied": Implied.of(problem, rows, changes),
        "confidence_after": selection.confidence,
        "spend": dict(zip(problem.ledger.names, problem.bill(rows, changes).spent().tolist(), strict=True)),
        "holds": holds_of(problem, rows, changes),
    }


def _replaced(problem: Problem, plan: Plan, selection: _Selection) -> Plan:
    """The plan with another selection."""
    fates = plan.fates.copy()
    fates[plan.selected] = Fate.LEFT_OUT
    fates[selection.rows] = Fate.FLIPPED
    return replace(plan, fates=fates, **_selected(problem, selection), quotas=_counted(plan.quotas, selection.rows))


def _with_shared(problem: Problem, plan: Plan, pool: Pool, ceilings: Sequence[Ceiling]) -> Plan:
    """The plan with flips and ceilings of other solves of the same question; updates fates, bound and status."""
    fates = plan.fates.copy()
    found = np.zeros(len(fates), dtype=bool)
    found[pool.rows] = True
    lost = (fates == Fate.NOT_FOUND) | ((fates == Fate.UNUSABLE) & np.isfinite(plan.confidence_before))
    fates[found & lost] = Fate.LEFT_OUT
    shared = (*plan.ceilings, *(c for c in ceilings if c.proved and c not in plan.ceilings))
    amounts = {name: budget.amount for name, budget in problem.budgets.items()}
    most = most_allowed(shared, amounts, problem.worth) if any(c.proved for c in shared) else math.inf
    plain = _plain_bound(problem, fates)
    bound = min(plain, most, math.inf if plan.bound is None else plan.bound)
    is_bound = plan.bound is not None or math.isfinite(most)
    return replace(
        plan,
        fates=fates,
        pool=pool,
        ceilings=shared,
        needs={} if plan.count else needs(problem, pool),
        bound=bound if is_bound or bound == plan.worth else None,
        estimate=None if plan.estimate is None else max(plan.worth, plan.estimate),
        status=_status(plan.worth, bound, is_known=is_bound or plan.estimate is not None),
    )


def _where_changed(problem: Problem, rows: Rows, changes: Floats) -> Floats:
    """(count, F): the values that change, NaN elsewhere"""
    return filled(
        lambda part: np.where(changes[part] != 0, problem.start[rows[part]], np.nan),
        changes.shape,
    )


_FATES = np.array(list(Fate), dtype=object)
_CODE = {fate: code for code, fate in enumerate(Fate)}
Codes = NDArray[np.int8]


def _fates(problem: Problem, proposal: Proposal, where: judge.Standing, known: Rows, selected: Rows) -> Codes:
    """(n,) indices into _FATES. Later assignments override earlier ones."""
    fates = np.full(len(problem), _CODE[Fate.NOT_FOUND], dtype=np.int8)
    fates[problem.exclude] = _CODE[Fate.LEFT_OUT]
    fates[known] = _CODE[Fate.LEFT_OUT]
    fates[proposal.unreachable] = _CODE[Fate.UNREACHABLE]
    fates[proposal.unusable] = _CODE[Fate.UNUSABLE]
    fates[selected] = _CODE[Fate.FLIPPED]
    fates[where.unusable] = _CODE[Fate.UNUSABLE]
    fates[where.already] = _CODE[Fate.ALREADY]
    return fates


def _plain_bound(problem: Problem, fates: NDArray[np.object_]) -> float:
    """Bound without prices: total worth of the samples that can be flipped, limited by fees and count budgets."""
    lost = (fates == Fate.ALREADY) | (fates == Fate.UNREACHABLE)
    lost[problem.exclude] = True
    rows = np.flatnonzero(~lost)
    return most_payable(problem.ledger, problem.ledger.amounts, problem.worth[rows], rows)


def _status(worth: float, bound: float, *, is_known: bool) -> Status:
    """is_known: whether a bound or an estimate is known"""
    if worth >= bound:
        return Status.OPTIMAL
    return Status.OPEN if is_known else Status.FEASIBLE


def _versions() -> dict[str, str]:
    from maxflip import __version__

    return {
        "maxflip": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
