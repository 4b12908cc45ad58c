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


@text("steps.short")
@waits_for("steps")
def short(results: Results) -> str:
    """What rules cost where every feature has a budget of its own, and how near the plans come to the estimate."""
    rows = results.rows("steps")
    counts = {(row["cohort"], row["people"], row["draw"], row["cost"], row["asked"]): row["count"] for row in rows}
    lost = {
        asked: [
            100 * (1 - counts[*key, "squared", asked] / counts[*key, "squared", "no steps"])
            for key in sorted({key[:3] for key in counts})
        ]
        for asked in ("steps", "steps, few")
    }
    near = min(100 * row["count"] / row["estimate"] for row in rows)
    said = {asked: f"{min(some):.0f} to {max(some):.0f} %" for asked, some in lost.items()}
    return (
        f"With a budget for each feature, whole steps move {said['steps']} fewer people than the same budgets without "
        f"them; with at most three features per person, {said['steps, few']} fewer. With two broad budgets and a "
        f"cap on people they move as many. Every plan moves at least {near:.1f} % of its estimate."
    )
