"""The contract of every solver. A new one joins by a line in SOLVERS."""

from __future__ import annotations

from maxflip import BCMS, CCMS, KL, MS, Nearest, Prices
from maxflip.solvers import Solver

SOLVERS: list[Solver] = [
    Prices(),
    Nearest(),
    Nearest(prices="unit"),
    MS.scale_free(outer=3, inner=25, optimizer="adam", keep_moving=True),
    BCMS.scale_free(outer=3, inner=25, optimizer="adam", draws=10),
    CCMS.scale_free(outer=3, inner=25, optimizer="adam", draws=10, choices=0.25, alpha=1e-4),
    KL.scale_free(outer=3, inner=25, optimizer="adam"),
]
