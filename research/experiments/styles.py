"""How solvers look, the same in every figure of the study and of `hold`.

They differ by colour (Okabe and Ito's, which the colour-blind can tell apart), marker and line, so that a grey print
can be read too.
"""

from __future__ import annotations

from typing import NamedTuple

from research.experiments.hold.cases import ENSEMBLE

Line = str | tuple[int, tuple[int, ...]]  # as matplotlib has it


class Style(NamedTuple):
    colour: str
    marker: str
    line: Line


STYLES = {
    "MS": Style("#E69F00", "v", (0, (1, 1))),
    "BCMS": Style("#0072B2", "o", "-"),
    "CCMS": Style("#56B4E9", "s", "--"),
    "KL": Style("#D55E00", "^", "-."),
    "Nearest": Style("#009E73", "D", (0, (5, 1, 1, 1, 1, 1))),
    "Prices": Style("#CC79A7", "*", (0, (7, 1))),
    ENSEMBLE: Style("#000000", "P", (0, (9, 1, 3, 1))),
}
STAR = 8  # size of this marker, whose points make it look small beside others of 5


def marker_size(style: Style) -> int:
    return STAR if style.marker == "*" else 5
