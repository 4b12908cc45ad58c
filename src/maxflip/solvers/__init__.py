"""The solvers, by the names that a job file uses."""

from maxflip.solvers.nearest import Nearest
from maxflip.solvers.prices import Prices
from maxflip.solvers.proposal import Proposal, Run, Solver

SOLVERS: dict[str, type[Solver]] = {"prices": Prices, "nearest": Nearest}

__all__ = ["SOLVERS", "Nearest", "Prices", "Proposal", "Run", "Solver"]
