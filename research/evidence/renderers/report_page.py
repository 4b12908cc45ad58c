"""docs/report.md: how large the page gets, and what the looks behind it take."""

from __future__ import annotations

from research.evidence.markdown import made_line, table
from research.evidence.registry import text
from research.evidence.results import Results


@text("report.sizes")
def sizes(results: Results) -> str:
    lines = [
        [
            f"{row['people']:,}",
            "rows of a table" if row["kind"] == "table" else "sequences",
            str(row["changes_each"]),
            f"{row['megabytes']:.1f} MB",
            f"{row['render_seconds']:.1f}",
            f"{row['open_seconds']:.1f}",
            f"{row['search_seconds']:.2f}",
        ]
        for row in results.rows("report")
    ]
    head = ["people", "who are", "changes of each", "page", "seconds to write it", "to open it", "to search it"]
    return made_line(results.made("report")) + "\n\n" + table(head, lines)


@text("report.looks")
def looks(results: Results) -> str:
    def seconds(value: float | None) -> str:
        return "" if value is None else f"{value:.1f}"

    lines = [
        [
            row["case"],
            f"{row['samples']:,}",
            seconds(row["solve_seconds"]),
            seconds(row["frontier_seconds"]),
            seconds(row["plausibility_seconds"]),
        ]
        for row in results.rows("insight")
    ]
    head = ["cohort", "samples", "seconds to solve", "for the frontier (six scales)", "for the likeness"]
    return made_line(results.made("insight")) + "\n\n" + table(head, lines)
