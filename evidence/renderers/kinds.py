"""docs/results/kinds.md"""

from __future__ import annotations

from collections.abc import Sequence

from evidence.markdown import made_line, percent, table
from evidence.registry import text, waits_for
from evidence.results import Results, Row

SHARE, GRADIENTS, TIMES = 0.995, 100, 3.0  # the bars: of the reference, per sample, of the time of squared budgets


@text("kinds.table")
@waits_for("kinds")
def cells(results: Results) -> str:
    rows = results.rows("kinds")
    head = ["model", "kind", "samples", "Prices", "estimate or bound", "reference", "of it", "best whole plan known"]
    head += ["Nearest", "resolved", "gradients", "seconds", "times squared"]
    lines = []
    for row in rows:
        ceiling = row["bound"] if row["bound"] is not None else row["estimate"]
        lines.append(
            [
                row["model"],
                row["kind"],
                f"{row['samples']:,}",
                number(row["worth"]) if row["worth"] is not None else "; ".join(row["stopped"]),
                number(ceiling),
                number(row["reference_value"]),
                percent(row["worth"] / row["reference_value"]) if row["worth"] and row["reference_value"] else "",
                number(row["reference_whole"]),
                number(max((row[name] for name in ("nearest", "unit") if row[name] is not None), default=None)),
                number(row["resolved"]),
                *(f"{row[name]:.1f}" if row[name] is not None else "" for name in ("gradients", "seconds")),
                times(row, rows),
            ]
        )
    return "\n\n".join([made_line(results.made("kinds")), table(head, lines)])


def number(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def times(row: Row, rows: Sequence[Row]) -> str:
    same = [r for r in rows if r["kind"] == "squared" and all(r[k] == row[k] for k in ("model", "samples", "seed"))]
    if not same or not same[0]["seconds"] or not row["seconds"]:
        return ""
    return f"{row['seconds'] / same[0]['seconds']:.1f}"
