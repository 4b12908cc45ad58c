"""docs/prices.md: the market that is drawn there."""

from __future__ import annotations

from collections.abc import Mapping

from research.evidence.markdown import table
from research.evidence.registry import text, values
from research.evidence.results import Results


@text("market.changes")
def changes(results: Results) -> str:
    rows = results.rows("prices_picture")
    names, amounts = rows[0]["budgets"], rows[0]["amounts"]
    head = ["", *(f"{name} (budget {amount:g})" for name, amount in zip(names, amounts, strict=True)), "would buy", "D"]
    lines = []
    for k, row in enumerate(rows):
        cells = [
            f"{price:.4f}: {100 * bought:.0f} %" for price, bought in zip(row["prices"], row["bought"], strict=True)
        ]
        name = "start" if k == 0 else f"change {k}"
        lines.append([name, *cells, str(row["buyers"]), f"{row['dual']:.1f}"])
    return table(head, lines)


@values("market")
def end(results: Results) -> Mapping[str, str]:
    last = results.rows("prices_picture")[-1]
    return {
        "flipped": f"{last['count']:,}",
        "open": f"{last['open']:,}",
        "estimate": f"{last['estimate']:,.1f}",
        "off": f"{100 * max(abs(bought - 1) for bought in last['bought']):.0f} %",
    }
