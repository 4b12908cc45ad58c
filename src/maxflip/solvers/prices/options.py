"""Prices and its options, which are known before torch is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maxflip.solvers.base import Proposal, Run, Solver, check_factor_option, check_whole_option

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Prices(Solver):
    """Each sample's cheapest flip, at budget prices at which demand equals supply.

    Args:
        rounds: number of price changes, at most, before flips are improved at nearly final prices.
        chunk: samples searched at a time.
        effort: 1 allows about 100 gradients per sample, 3 about 300. More effort finds cheaper flips of networks, above
            all with absolute budgets (measured in docs/results/kinds.md).
    """

    rounds: int = 12
    chunk: int = 4096
    effort: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rounds", "chunk"):
            check_whole_option(f"Prices.{name}", getattr(self, name))
        check_factor_option("Prices.effort", self.effort)

    def propose(self, problem: Problem, run: Run) -> Proposal:
        from maxflip.solvers.prices.solver import Trade

        return Trade(self).propose(problem, run)
