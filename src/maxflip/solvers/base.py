"""What a solver is, what it is given, and what it returns.

A solver with its options is made before torch is loaded, so that a wrong option is told at once: what needs torch is
imported where it proposes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from maxflip._util.events import Watch
from maxflip._util.faults import wrong
from maxflip._util.types import Floats, Rows
from maxflip.errors import InputError
from maxflip.plan.bracket import Ceiling
from maxflip.plan.plan import Columns, Plan
from maxflip.plan.pool import Pool, no_rows
from maxflip.plan.used import SolverUsed

if TYPE_CHECKING:
    from maxflip._util.engine import Engine
    from maxflip._util.rng import Streams
    from maxflip.judge import Standing
    from maxflip.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Run:
    """The context of one solve: random streams, progress, workers, the state of each sample, and a warm start.

    start: an earlier plan   pool: its flips that are flips of this problem too, judged, in the problem's order of
    samples; None without a start. `solve` offers them to `choose` in any case   won: worth of the earlier plan here, or
    of the part that fits
    """

    streams: Streams
    watch: Watch
    engine: Engine
    standing: Standing
    start: Plan | None = None
    pool: Pool | None = None
    won: float = 0.0

    def candidates_wanted(self, problem: Problem) -> Rows:
        """Rows that are open and not excluded, in the order of ids."""
        wanted = self.standing.open.copy()
        wanted[problem.exclude] = False
        return problem.cohort.order[wanted[problem.cohort.order]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Proposal:
    """Candidate flips, several per sample if the solver likes. `solve` judges all of them.

    rows (c,)   changes (c, F)   known: rows with a known flip, also if it is too dear to be offered
    unreachable: rows, proved   unusable: rows whose model output was not finite
    prices: by budget name   quota_prices (Q,): of the rows of `problem.quotas`, if the solver has any
    search_prices: for each of the solver's `parts`, prices (m,) of budgets at which flips are cheap; None: `prices`
    bound: proved for any plan   estimate: not proved
    notices: sentences about the run, for the plan
    ceilings: bound and estimate as functions of the budgets
    pool: all flips found that may be useful for another question; None: those offered here
    picked: a selection that the solver has made; if it is within the budgets, the plan is worth no less
    """

    rows: Rows
    changes: Floats
    known: Rows = field(default_factory=no_rows)
    unreachable: Rows = field(default_factory=no_rows)
    unusable: Rows = field(default_factory=no_rows)
    prices: Mapping[str, float] | None = None
    quota_prices: Floats | None = None
    search_prices: Sequence[Floats | None] | None = None
    price_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    bound: float | None = None
    estimate: float | None = None
    notices: tuple[str, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()
    pool: Pool | None = None
    picked: Pool | None = None
    trace: Columns = field(default_factory=dict)

    def sought_at(self, problem: Problem) -> Sequence[Floats | None]:
        """For each of the solver's parts: prices (m,) of budgets at which its flips are cheap"""
        if self.search_prices is not None:
            return self.search_prices
        return (None if self.prices is None else np.array([self.prices[name] for name in problem.ledger.names]),)


def check_whole_option(name: str, value: Any) -> None:
    """Refuse a count, such as "Prices.rounds", that is not a whole number >= 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError([wrong(tuple(name.split(".")), value, "must be a whole number >= 1.")])


def check_factor_option(name: str, value: Any) -> None:
    """Refuse a factor, such as "Prices.effort", that is not a number from 1 to 100."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 1 <= value <= 100:
        raise InputError([wrong(tuple(name.split(".")), value, "must be a number from 1 to 100.")])


class Solver(ABC):
    """Base of all solvers, which are frozen dataclasses of their options; repr(solver) reproduces a solver."""

    is_joint: ClassVar[bool] = True  # whether all samples share every budget: then any of their flips go together

    @abstractmethod
    def propose(self, problem: Problem, run: Run) -> Proposal:
        """Candidate flips for the samples that `run` has."""

    def parts(self, problem: Problem, run: Run) -> Iterator[tuple[Rows, Problem]]:  # noqa: ARG002
        """The rows of samples that share budgets, and the problem with these budgets."""
        yield np.arange(len(problem)), problem

    def fits(self, problem: Problem, run: Run, rows: Rows, changes: Floats) -> bool:  # noqa: ARG002
        """Whether the budgets pay for these changes (c, K) of the samples `rows`, who keep every quota."""
        return problem.quotas.hold(rows) and problem.bill(rows, changes).fits()

    def used(self, problem: Problem) -> SolverUsed:  # noqa: ARG002
        """What a plan of this problem says of the solver."""
        return SolverUsed.of(self)
