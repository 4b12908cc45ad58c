"""The two loops that all four algorithms share; each has its own inner iteration."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from maxflip._util.events import Advanced, Finished, Notice, Started
from maxflip._util.messages import counted
from maxflip._util.types import Rows
from maxflip.errors import ProblemError
from maxflip.plan.pool import no_rows
from maxflip.problem.problem import Problem
from maxflip.solvers.base import Proposal, Run
from maxflip.solvers.paper.details import DETAILS
from maxflip.solvers.paper.multipliers import Multipliers
from maxflip.solvers.paper.search import Search
from maxflip.solvers.paper.settings import Loops
from maxflip.solvers.paper.solution import Finisher, Solution


class Diverged(Exception):
    """A number of the algorithm is no longer finite."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """L at the end of an inner loop, its gradients in the multipliers (m,), (n,), and more entries of the trace."""

    value: float
    of_lambda: torch.Tensor
    of_mu: torch.Tensor
    more: dict[str, float]


class Algorithm(Protocol):
    """The part that differs between the four algorithms."""

    u: torch.Tensor

    def begin(self) -> None:
        """Before every inner loop."""
        ...

    def iterate(self, t: int, k: int) -> bool:
        """One inner iteration; False if the loop is to end."""
        ...

    def slopes(self, t: int) -> Slopes: ...


@dataclass(frozen=True, eq=False)
class Setting:
    """The arguments of an algorithm."""

    search: Search
    multipliers: Multipliers
    u: torch.Tensor
    run: Run


def check_finite(what: str, *tensors: torch.Tensor) -> None:
    if not all(bool(torch.isfinite(t).all()) for t in tensors):
        raise Diverged(what)


def run_loops(
    solver: Loops,
    problem: Problem,
    run: Run,
    make: Callable[[Setting], Algorithm],
    *,
    is_max: bool,
    flats: bool = True,
) -> Proposal:
    """is_max: whether L is maximised in the multipliers (KL) instead of minimised   flats: see Search"""
    if problem.menu.levers is not None:
        name = type(solver).__name__
        raise ProblemError(f"actions: {name} changes features alone. Solve with Prices() or Nearest().")
    if not problem.classifier.has_gradients:
        name = type(solver).__name__
        raise ProblemError(
            f"classifier: {name} needs gradients, and trees have none. Solve with Prices() or Nearest()."
        )
    wanted = run.candidates_wanted(problem)
    low, high = problem.box(wanted)
    stuck = ((low == 0) & (high == 0)).all(axis=1)
    rows = wanted[~stuck]
    if not len(rows):
        return Proposal(rows=no_rows(), changes=np.empty((0, problem.width)), unreachable=wanted)
    search = Search(problem, rows, solver.units, flats)
    sizes, values = (len(search.budgets), len(rows)), (solver.start_lambda, solver.start_mu)
    multipliers = Multipliers.first(sizes, values, (solver.gamma, solver.eta), run.streams).to(search.low.device)
    algorithm = make(Setting(search, multipliers, search.start(run), run))
    finisher = Finisher(problem, run, rows)
    best, trace, told = _Loop(solver, run, algorithm, multipliers, finisher, search, is_max).go()
    lost = _unusable(search, finisher)
    return Proposal(
        rows=best.rows,
        changes=best.changes,
        unreachable=wanted[stuck],
        unusable=no_rows() if told else lost,  # after divergence, outputs that are not finite prove nothing
        notices=told or _lost_ones(solver, lost),
        trace=trace,
    )


def _lost_ones(solver: Loops, lost: Rows) -> tuple[str, ...]:
    if not len(lost):
        return ()
    return (
        f"{type(solver).__name__} moved {counted(len(lost), 'sample')} to where the model's output is not finite, and "
        f"put them back to their start. If the model is sound, lower beta ({solver.beta:g}).",
    )


def _unusable(search: Search, finisher: Finisher) -> Rows:
    return search.rows[search.broken.cpu().numpy() & ~finisher.found]


@dataclass(eq=False)
class _Loop:
    solver: Loops
    run: Run
    algorithm: Algorithm
    multipliers: Multipliers
    finisher: Finisher
    search: Search
    is_max: bool
    left: int = 0  # inner iterations
    k: int = 1

    @property
    def stage(self) -> str:
        return f"Searching with {type(self.solver).__name__}"

    def go(self) -> tuple[Solution, dict[str, list[Any]], tuple[str, ...]]:
        """The best final solution, the trace, and a notice if the algorithm diverged."""
        solver, watch = self.solver, self.run.watch
        self.left = solver.outer * solver.inner
        watch(Started(self.stage, self.left))
        best = Solution(no_rows(), np.empty((0, self.search.problem.width)), 0.0, -1, {})
        trace: dict[str, list[Any]] = {}
        told: tuple[str, ...] = ()
        stale = 0
        for t in range(1, solver.outer + 1):
            began = time.monotonic()
            try:
                done = self._inner_loop(t)
                inner_seconds = time.monotonic() - began
                slopes = self.algorithm.slopes(t)
                check_finite("the Lagrangian", torch.tensor(slopes.value), slopes.of_lambda, slopes.of_mu)
            except Diverged as what:
                told = (self._divergence(t, str(what)),)
                watch(Notice(told[0]))
                break
            solution = self.finisher.finish(self.search.changes(self.algorithm.u))
            self._record(trace, t, done, slopes, solution, (time.monotonic() - began, inner_seconds))
            stale = 0 if solution.rank > best.rank else stale + 1
            best = solution if stale == 0 else best
            (self.multipliers.ascend if self.is_max else self.multipliers.descend)(slopes.of_lambda, slopes.of_mu)
            if self._is_done(best, stale):
                break
        self._advance(self.left)
        watch(Finished(self.stage))
        return best, trace, told

    def _inner_loop(self, t: int) -> int:
        """Run the inner loop; return the number of iterations. Skipped ones count as done for the progress."""
        inner = self.solver.inner
        every = max(1, inner // DETAILS.told)
        self.algorithm.begin()
        self.k = 1
        while self.k <= inner and self.algorithm.iterate(t, self.k):
            if self.k % every == 0:
                self._advance(every)
            self.k += 1
        self._advance(self.left - (self.solver.outer - t) * inner)
        return self.k - 1

    def _advance(self, steps: int) -> None:
        if steps:
            self.run.watch(Advanced(self.stage, steps))
            self.left -= steps

    def _is_done(self, best: Solution, stale: int) -> bool:
        """Whether all samples are won, or `patience` outer iterations brought no better solution."""
        patience = self.solver.patience
        if patience is None:
            return False
        all_won = best.worth >= math.fsum(self.search.problem.worth[self.search.rows])
        return all_won or (best.worth > 0 and stale >= patience)

    def _divergence(self, t: int, what: str) -> str:
        solver = self.solver
        at = f"outer iteration {t}, inner iteration {min(self.k, solver.inner)}"
        scale = ", or count in units='standard'" if solver.units == "raw" else ""
        return (
            f"{type(solver).__name__} diverged in {at}: {what} is no finite number. Lower beta ({solver.beta}) or "
            f"gamma ({solver.gamma}){scale}. The best plan of the iterations before is kept."
        )

    def _record(
        self,
        trace: dict[str, list[Any]],
        t: int,
        k: int,
        slopes: Slopes,
        solution: Solution,
        seconds: tuple[float, float],
    ) -> None:
        """Add a row to the trace, with the multipliers of the inner loop."""
        row: dict[str, Any] = {
            "outer": t,
            "inner": k,
            "lagrangian": slopes.value,
            "mean_lambda": _mean(self.multipliers.of_budgets),
            "mean_mu": _mean(self.multipliers.of_samples),
            "slope_lambda": float(slopes.of_lambda.norm()),
            "slope_mu": float(slopes.of_mu.norm()),
            **slopes.more,
            **solution.numbers,
            "gradients": self.search.gradients,
            "seconds": seconds[0],
            "seconds_inner": seconds[1] / max(1, k),
        }
        for key, value in row.items():
            trace.setdefault(key, []).append(value)


def _mean(values: torch.Tensor) -> float:
    return float(values.mean()) if len(values) else 0.0
