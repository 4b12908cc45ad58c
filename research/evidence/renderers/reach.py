"""docs/results/flips.md, the section on flips within limits."""

from __future__ import annotations

from collections.abc import Mapping

from research.evidence.markdown import made_line, table
from research.evidence.registry import text, values
from research.evidence.results import Results, Row

BAR = 0.01  # of those who can be flipped: so many may be missed


def _pairs(results: Results, *, limits: bool) -> list[tuple[Row, Row]]:
    """Of each network and solver: without the last resort, and with it."""
    rows = [row for row in results.rows("reach") if row["limits"] == limits]
    return list(zip(rows[::2], rows[1::2], strict=True))


@text("reach.limits")
def limits(results: Results) -> str:
    lines = [
        [
            with_it["network"],
            with_it["solver"],
            f"{with_it['reachable']} of {with_it['samples']}",
            f"{without['missed']} -> {with_it['missed']}",
            str(with_it["beyond"]),
            f"{without['flipped']} -> {with_it['flipped']}",
            f"{without['gradients']:.0f} -> {with_it['gradients']:.0f}",
            f"{without['forwards']:.0f} -> {with_it['forwards']:.0f}",
        ]
        for without, with_it in _pairs(results, limits=True)
    ]
    head = ["network", "solver", "flipped by 100 restarts", "of these not found", "found beyond these"]
    head += ["flipped within the budgets", "gradients per person", "forwards per person"]
    return made_line(results.made("reach")) + "\n\n" + table(head, lines)


@text("reach.unlimited")
def unlimited(results: Results) -> str:
    lines = [
        [
            with_it["network"],
            with_it["solver"],
            f"{without['not_found']} -> {with_it['not_found']}",
            f"{without['flipped']} -> {with_it['flipped']}",
            f"{without['gradients']:.1f} -> {with_it['gradients']:.1f}",
        ]
        for without, with_it in _pairs(results, limits=False)
    ]
    return table(["network", "solver", "not found", "flipped within the budgets", "gradients per person"], lines)


@values("reach.bars")
def bars(results: Results) -> Mapping[str, str]:
    shares = [with_it["missed"] / with_it["reachable"] for _, with_it in _pairs(results, limits=True)]
    before = [without["missed"] / without["reachable"] for without, _ in _pairs(results, limits=True)]
    return {
        "holds": "holds in every row" if max(shares) <= BAR else "**does not hold in every row**",
        "most": f"{100 * max(shares):.1f} %",
        "before": f"{100 * max(before):.1f} %",
    }
