"""The contract of every solver. A new one joins by a line in SOLVERS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from maxflip import BCMS, CCMS, KL, MS, Nearest, Prices
from maxflip.solvers import Solver
from tests.conftest import LONG

SOLVERS: list[Solver] = [
    Prices(),
    Nearest(),
    Nearest(prices="unit"),
    MS.scale_free(outer=2, inner=25, optimizer="adam", keep_moving=True),
    BCMS.scale_free(outer=2, inner=25, optimizer="adam", draws=10),
    CCMS.scale_free(outer=2, inner=25, optimizer="adam", draws=10, choices=0.25, alpha=1e-4),
    KL.scale_free(outer=3, inner=25, optimizer="adam"),
]

# What users get who set nothing, but for the number of iterations. Steps and multipliers are in raw units, so whom
# these find depends on units; the laws that do not ask for that hold for them too.
DEFAULTS: list[Solver] = [
    MS(outer=2, inner=30),
    BCMS(outer=2, inner=30),
    CCMS(outer=2, inner=30),
    KL(outer=2, inner=30),
]


def named(value: Any) -> str:
    """As an id of a test."""
    return value if isinstance(value, str) else repr(value)


def by_turns(
    solvers: Sequence[Solver], names: Iterable[str], every: int, *, always: Sequence[str] = ()
) -> list[tuple[Solver, str]]:
    """Pairs: all in the long run. In the short one each solver has one name in `every`, and each name one solver in
    `every`; the names `always` have all solvers."""
    return [
        (solver, name)
        for i, name in enumerate(names)
        for j, solver in enumerate(solvers)
        if LONG or name in always or (i + j) % every == 0
    ]
