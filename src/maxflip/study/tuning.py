"""Tuning of the paper's algorithms: the best setting of a grid, or of a random part of it within an allowance.

Every setting is solved with the same seed, so all see the same noise. The result does not depend on the number of
processes.
"""

from __future__ import annotations

import math
import multiprocessing
import pickle
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from maxflip._util.events import Advanced, Finished, Notice, Started, Watch, silent
from maxflip._util.messages import did_you_mean, first_line, shown
from maxflip._util.rng import Streams
from maxflip.errors import InputError, ResourceError
from maxflip.plan.plan import Fate, Plan
from maxflip.problem.problem import Problem
from maxflip.solvers import BCMS, CCMS, KL, MS
from maxflip.solving import solve

if TYPE_CHECKING:
    import pyarrow as pa

Algorithm = MS | BCMS | CCMS | KL
Grid = Mapping[str, Sequence[Any]]

_SHARED: Grid = {"beta": (0.01, 0.05, 0.1), "gamma": (0.5, 1.0), "eta": (0.5, 1.0)}
_STARTS: Grid = {"start_lambda": (1.0, 10.0), "start_mu": (1.0, 10.0)}
_CHANCES: Grid = {"alpha": (0.01, 0.05, 0.1), "tau": (30.0, 50.0)}
PAPER_GRIDS: Mapping[type[Algorithm], Grid] = {
    MS: {**_SHARED, **_STARTS},
    BCMS: {**_CHANCES, **_SHARED, **_STARTS},
    CCMS: {**_CHANCES, **_SHARED, **_STARTS, "choices": (1.0, 0.5, 0.25)},
    KL: {**_SHARED, **_STARTS, "a": (0.0, 0.01, 0.1, 1.0)},
}
_RELATIVE: Grid = {"start_lambda": (0.1, 1.0, 10.0)}  # shares of a budget are small numbers and need a small multiplier


def scale_free_grid(kind: type[Algorithm]) -> Grid:
    """The paper's grid, with each setting also for residuals relative to the budgets."""
    option = "indicator" if kind in (BCMS, CCMS) else "residual"
    return {**PAPER_GRIDS[kind], **_RELATIVE, option: ("raw", "relative")}


@dataclass(frozen=True, eq=False)
class Trial:
    """One setting and its result. `spent`: mean share of the budgets spent; `gradients`: per sample searched."""

    solver: Algorithm
    count: int
    worth: float
    spent: float
    gradients: float
    seconds: float
    notices: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best setting, and all settings tried.

    Attributes:
        solver: the best setting.
        plan: its plan.
        trials: all settings tried, in the order of the grid.
        options: names of the options that varied.
    """

    solver: Algorithm
    plan: Plan
    trials: tuple[Trial, ...]
    options: tuple[str, ...]

    def table(self) -> pa.Table:
        """A column for each option of the grid, then count, worth, spent, gradients, seconds, notice (pyarrow Table)"""
        import pyarrow as pa

        columns = {name: pa.array([getattr(t.solver, name) for t in self.trials]) for name in self.options}
        return pa.table(
            columns
            | {
                "count": pa.array([t.count for t in self.trials], pa.int64()),
                "worth": pa.array([t.worth for t in self.trials], pa.float64()),
                "spent": pa.array([t.spent for t in self.trials], pa.float64()),
                "gradients": pa.array([t.gradients for t in self.trials], pa.float64()),
                "seconds": pa.array([t.seconds for t in self.trials], pa.float64()),
                "notice": pa.array([" ".join(t.notices) for t in self.trials], pa.string()),
            }
        )


def tune(
    problem: Problem,
    solver: Algorithm | type[Algorithm],
    *,
    grid: Literal["paper", "scale_free"] | Grid = "paper",
    allowance: int | None = None,
    seed: int = 0,
    workers: int = 1,
    watch: Watch | None = None,
) -> Tuned:
    """Try settings. The best one has the plan with the greatest worth; ties are broken by the least spending.

    Args:
        problem: the problem.
        solver: MS, BCMS, CCMS or KL, or one of them with options, such as BCMS.paper(). The grid replaces some options.
        grid: {option: values}, all combinations; "paper": the sets of its section 5; "scale_free": the same, each also
            relative to the budgets.
        allowance: gradients per sample for all settings together (outer x inner x steps for each). Settings are drawn
            at random from the grid until it is used up, so that algorithms can be compared at equal cost; None: all.
        seed: whole number, for the draw and for every solve.
        workers: number of processes; the result is the same for any number. A script that uses several must call tune
            under `if __name__ == "__main__":`.
        watch: function called with progress events (maxflip.Event); None: no reports.
    """
    tell = watch or silent
    base = _checked(problem, solver, allowance, seed, workers, watch)
    chosen = _values(base, grid)
    settings = [replace(base, **dict(zip(chosen, values, strict=True))) for values in product(*chosen.values())]
    settings = _drawn(settings, allowance, Streams(int(seed)))
    stage = f"Tuning {type(base).__name__}"
    trials: list[Trial] = []

    def tried() -> Iterator[tuple[Trial, Plan]]:
        plans = _plans(_Task(problem, int(seed)), settings, min(workers, len(settings)), tell)
        for setting, plan in zip(settings, plans, strict=True):
            trials.append(_trial(problem, setting, plan))
            tell(Advanced(stage, 1))
            yield trials[-1], plan

    tell(Started(stage, len(settings)))
    best, plan = min(tried(), key=lambda one: (-one[0].worth, one[0].spent))  # ties: the first
    tell(Finished(stage))
    return Tuned(best.solver, plan, tuple(trials), tuple(chosen))


def _checked(problem: Any, solver: Any, allowance: Any, seed: Any, workers: Any, watch: Any) -> Algorithm:
    """The solver whose options the grid replaces."""
    faults = []
    if not isinstance(problem, Problem):
        faults.append(f"problem: got {shown(problem)}; wanted a Problem(...).")
    kind = solver if isinstance(solver, type) else type(solver)
    if kind not in PAPER_GRIDS:
        faults.append(f"solver: got {shown(solver)}; wanted MS, BCMS, CCMS or KL, or one of them with options.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        faults.append(f"seed = {shown(seed)}: must be a whole number.")
    for name, value in (("allowance", allowance), ("workers", workers)):
        if value is None and name == "allowance":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            faults.append(f"{name} = {shown(value)}: must be a whole number in [1, inf).")
    if watch is not None and not callable(watch):
        faults.append(f"watch: got {shown(watch)}; wanted a function that takes an event.")
    if faults:
        raise InputError(faults)
    made: Algorithm = solver() if isinstance(solver, type) else solver
    return made


def _values(base: Algorithm, grid: Any) -> dict[str, tuple[Any, ...]]:
    """{option: values}, checked against the solver."""
    if isinstance(grid, str) and grid in ("paper", "scale_free"):
        grid = PAPER_GRIDS[type(base)] if grid == "paper" else scale_free_grid(type(base))
    if not isinstance(grid, Mapping) or not grid:
        raise InputError(f"grid: got {shown(grid)}; wanted 'paper', 'scale_free' or {{option: [values]}}.")
    kind, known = type(base).__name__, [f.name for f in fields(base)]
    faults: list[str] = []
    for name, values in grid.items():
        if name not in known:
            faults.append(f"grid: {kind} has no option {shown(name)}.{did_you_mean(name, known)}")
        elif isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            faults.append(f"grid: {name}: got {shown(values)}; wanted a list of values to try.")
        else:
            faults += [f"grid: {fault}" for value in values for fault in _faults(base, name, value)]
    if faults:
        raise InputError(faults)
    return {name: tuple(values) for name, values in grid.items()}


def _faults(base: Algorithm, name: str, value: Any) -> tuple[str, ...]:
    options: dict[str, Any] = {name: value}
    try:
        replace(base, **options)
    except InputError as error:
        return error.problems
    return ()


def _gradients(solver: Algorithm) -> int:
    """Largest number of gradient steps per sample in a run."""
    return solver.outer * solver.inner * (solver.steps if isinstance(solver, (MS, KL)) else 1)


def _drawn(settings: list[Algorithm], allowance: int | None, streams: Streams) -> list[Algorithm]:
    """Random settings within the allowance, in the order of the grid."""
    if allowance is None:
        return settings
    least = min(map(_gradients, settings))
    if allowance < least:
        raise InputError(
            f"allowance = {allowance}: must be a whole number in [{least}, inf), since one setting takes {least} "
            "gradients per sample (outer x inner x steps). Raise it, or lower outer or inner."
        )
    order = torch.randperm(len(settings), generator=streams.torch("tune.settings")).tolist()
    kept, left = [], allowance
    for i in order:
        if _gradients(settings[i]) <= left:
            kept.append(i)
            left -= _gradients(settings[i])
    return [settings[i] for i in sorted(kept)]


def _trial(problem: Problem, setting: Algorithm, plan: Plan) -> Trial:
    amounts = {name: budget.amount for name, budget in problem.budgets.items() if 0 < budget.amount < math.inf}
    spent = math.fsum(plan.spend[name] / amount for name, amount in amounts.items()) / max(1, len(amounts))
    searched = max(1, len(problem) - plan.fate_counts()[Fate.ALREADY])
    gradients = plan.trace["gradients"][-1] / searched if plan.trace.get("gradients") else 0.0
    own = plan.notices[len(problem.notices) :]
    return Trial(setting, plan.count, plan.worth, spent, gradients, plan.seconds, own)


@dataclass(frozen=True, eq=False)
class _Task:
    """What all settings share; sent to each worker once."""

    problem: Problem
    seed: int

    def __call__(self, setting: Algorithm) -> Plan:
        return solve(self.problem, setting, seed=self.seed)


def _plans(task: _Task, settings: list[Algorithm], workers: int, tell: Watch) -> Iterator[Plan]:
    """The plans, in the order of the settings."""
    if workers == 1:
        yield from map(task, settings)
        return
    try:
        sent = pickle.dumps(task)
    except Exception as error:  # pickling a user's model may raise anything
        yield from _here(task, settings, error, tell)
        return
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(workers, spawn, _receive, (sent,)) as pool:
        try:
            fault = pool.submit(_fault).result()
            if fault is not None:
                yield from _here(task, settings, fault, tell)
            else:
                yield from pool.map(_work, settings)
        except BrokenProcessPool as error:
            raise ResourceError(
                "tune: a worker process was lost. A script must call tune with several workers under "
                "`if __name__ == '__main__':`; if it does, memory may be short: use fewer workers."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _here(task: _Task, settings: list[Algorithm], why: Exception, tell: Watch) -> Iterator[Plan]:
    tell(Notice(f"Tuning in one process: the problem cannot be sent to others ({first_line(why)})."))
    yield from map(task, settings)


_received: list[_Task | Exception] = []  # in a worker: the task, or why it could not be read


def _receive(sent: bytes) -> None:
    torch.set_num_threads(1)
    try:
        _received[:] = [pickle.loads(sent)]
    except Exception as error:  # a class of a notebook, say, is not known here
        _received[:] = [ImportError(f"{type(error).__name__}: {first_line(error)}")]


def _fault() -> Exception | None:
    (task,) = _received
    return task if isinstance(task, Exception) else None


def _work(setting: Algorithm) -> Plan:
    (task,) = _received
    if isinstance(task, Exception):
        raise task
    return task(setting)
