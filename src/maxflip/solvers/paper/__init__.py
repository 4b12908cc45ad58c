"""The four algorithms of Koo, Klabjan and Utke: MS, BCMS, CCMS, KL."""

from maxflip.solvers.paper.bcms import BCMS
from maxflip.solvers.paper.ccms import CCMS
from maxflip.solvers.paper.kl import KL
from maxflip.solvers.paper.ms import MS

__all__ = ["BCMS", "CCMS", "KL", "MS"]
