"""docs/results/steps.md: what whole steps cost."""

from __future__ import annotations

from research.evidence.markdown import made_line, table
from research.evidence.registry import text, waits_for
from research.evidence.results import Results

COHORTS = {"credit_default": "credit clients", "give_me_some_credit": "borrowers"}
ASKED = {"no steps": "none", "steps": "steps", "steps, few": "steps, at most 3 features"}


@text("steps.cost")
@waits_for("steps")
def cost(results: Results) -> str:
    """A line per question."""
    head = [
        "cohort",
        "people",
        "costs",
        "rules",
        "moved",
        "estimate",
        "moved / estimate",
        "not found",
        "features changed",
    ]
    head += ["gradients per person", "processor seconds"]
    lines = []
    for row in results.rows("steps"):
        held_out = ", others" if row["draw"] else ""
        lines.append(
            [
                COHORTS[row["cohort"]] + held_out,
                f"{row['people']:,}",
                row["cost"],
                ASKED[row["asked"]],
                f"{row['count']:,}",
                f"{row['estimate']:,.1f}",
                f"{100 * row['count'] / row['estimate']:.1f} %",
                str(row["not_found"]),
                f"{row['changed']:.1f}",
                f"{row['gradients']:.0f}",
                f"{row['cpu_seconds']:.1f}",
            ]
        )
    return made_line(results.made("steps")) + "\n\n" + table(head, lines)
