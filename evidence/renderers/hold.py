"""docs/hold.md: do the flips hold?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evidence.markdown import made_line, table
from evidence.registry import text
from evidence.results import Results
from experiments.hold import kinds, page
from experiments.hold.points import Result, read


def _register(name: str, part: Callable[[Sequence[Result]], str]) -> None:
    text(f"hold.{name}")(lambda results: part(read(results.folder)))


for _part in (kinds.short, page.said, page.table, page.differences, kinds.kinds, page.detail, page.made):
    _register(_part.__name__, _part)


COHORTS = {"demo": "demo, patients with diabetes", "credit": "credit customers", "icu": "intensive care"}
REQUIRED = {
    "nothing": "nothing",
    "uptake": "`Uptake(0.8)`",
    "rounded": "`Rounded`, usual digits",
    "both": "both",
}


@text("hold.changes")
def changes(results: Results) -> str:
    """A line per cohort and requirement: how many are flipped, and how many of them still pass."""
    head = ["cohort", "must hold", "flipped", "90 %", "80 %", "50 %", "rounded", "processor seconds"]
    lines = []
    for row in results.rows("hold_changes"):
        whose = f"{COHORTS[row['cohort']]} ({row['open']} not there)" if row["must_hold"] == "nothing" else ""
        still = [_of(row[case], row["count"]) for case in ("at_90", "at_80", "at_50", "rounded")]
        lines.append([whose, REQUIRED[row["must_hold"]], str(row["count"]), *still, f"{row['cpu_seconds']:.1f}"])
    return made_line(results.made("hold_changes")) + "\n\n" + table(head, lines)


def _of(count: int, flipped: int) -> str:
    return f"{count} ({100 * count / flipped:.0f} %)" if flipped else "0"
