"""The contract of every solver. A new one joins by a line in SOLVERS."""

from __future__ import annotations

from maxflip import Nearest, Prices
from maxflip.solvers import Solver

SOLVERS: list[Solver] = [
    Prices(),
    Nearest(),
    Nearest(prices="unit"),
]
