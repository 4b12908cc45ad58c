"""The four algorithms of Koo, Klabjan and Utke: MS, BCMS, CCMS, KL."""

from maxflip.solvers.paper.solvers import BCMS, CCMS, KL, MS

__all__ = ["BCMS", "CCMS", "KL", "MS"]
