"""The solvers, by the names that a job file uses."""

from maxflip.solvers.base import Proposal, Run, Solver
from maxflip.solvers.grouped import Grouped
from maxflip.solvers.nearest import Nearest
from maxflip.solvers.paper import BCMS, CCMS, KL, MS
from maxflip.solvers.prices import Prices

SOLVERS: dict[str, type[Solver]] = {
    "prices": Prices,
    "nearest": Nearest,
    "ms": MS,
    "bcms": BCMS,
    "ccms": CCMS,
    "kl": KL,
}

__all__ = [
    "BCMS",
    "CCMS",
    "KL",
    "MS",
    "SOLVERS",
    "Grouped",
    "Nearest",
    "Prices",
    "Proposal",
    "Run",
    "Solver",
]
