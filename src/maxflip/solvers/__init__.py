"""The solvers, by the names that a job file uses."""

from maxflip.solvers.nearest import Nearest
from maxflip.solvers.proposal import Proposal, Run, Solver

SOLVERS: dict[str, type[Solver]] = {"nearest": Nearest}

__all__ = ["SOLVERS", "Nearest", "Proposal", "Run", "Solver"]
