"""Pieces of Markdown that several pages have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from research.evidence.files import Made

_PROPER = {"python": "Python", "torch": "torch", "foolbox": "foolbox"}


def table(head: Sequence[str], lines: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """right: columns that are set flush right"""
    rule = ["---:" if column in right else "---" for column in range(len(head))]
    return "\n".join("|" + "|".join(map(_cell, row)) + "|" for row in [head, rule, *lines])


def _cell(text: str) -> str:
    return " " + text.replace("|", "\\|") + " " if text else " "


def made_line(made: Made) -> str:
    """When, from which code, where, with what, and how long it took."""
    tools = [f"{name} {made.versions[key]}" for key, name in _PROPER.items() if key in made.versions]
    took = "" if made.seconds is None else f"; {made.seconds:,.0f} s"
    return f"*{', '.join([made.date, f'commit {made.commit}', made.machine, *tools])}{took}.*"


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"
