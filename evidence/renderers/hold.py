"""docs/hold.md: do the flips hold?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evidence.registry import text
from experiments.hold import kinds, page
from experiments.hold.points import Result, read


def _register(name: str, part: Callable[[Sequence[Result]], str]) -> None:
    text(f"hold.{name}")(lambda results: part(read(results.folder)))


for _part in (kinds.short, page.said, page.table, page.differences, kinds.kinds, page.detail, page.made):
    _register(_part.__name__, _part)
