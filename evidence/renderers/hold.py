"""docs/hold.md: do the flips hold?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evidence.registry import text
from experiments import hold_page
from experiments.hold_points import Result, read


def _register(name: str, part: Callable[[Sequence[Result]], str]) -> None:
    text(f"hold.{name}")(lambda results: part(read(results.folder)))


for _part in (hold_page.said, hold_page.table, hold_page.differences, hold_page.detail, hold_page.made):
    _register(_part.__name__, _part)
