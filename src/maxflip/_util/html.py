"""Small pieces of HTML for notebooks. All user texts are escaped and isolated."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from maxflip._util.messages import one_line

MOST = 12  # rows of a table
LONGEST = 200  # characters of a cell


def table(head: Iterable[str], rows: Sequence[tuple[str, ...]], kind: str) -> str:
    columns = list(head)
    names = "".join(f"<th>{name}</th>" for name in columns)
    body = ["".join(f"<td>{text_of(cell)}</td>" for cell in row) for row in rows[:MOST]]
    if len(rows) > MOST:
        body.append(f'<td colspan="{len(columns)}">and {len(rows) - MOST} more {kind}</td>')
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def text_of(text: str) -> str:
    """The text escaped, cut, and in <bdi>, so that right-to-left letters do not affect the words around it."""
    clean = one_line(text)
    clean = clean if len(clean) <= LONGEST else clean[: LONGEST - 1] + "…"
    return f"<bdi>{html.escape(clean)}</bdi>"


def number(value: float) -> str:
    return f"{value:,.6g}"


def amount_of(amount: float) -> str:
    return "no limit" if amount == math.inf else number(amount)
