"""docs/results/sequences.md"""

from __future__ import annotations

from collections.abc import Mapping

from evidence.markdown import made_line, table
from evidence.registry import text, values
from evidence.results import Results

FOUR = ("KL", "MS", "BCMS", "CCMS")


@text("sequences.reach")
def reach(results: Results) -> str:
    lines = [
        [
            row["model"],
            *(str(row[name]) for name in ("wanted", "samples", "plain", "ours")),
            f"{row['gradients']:.0f}",
            str(row["stronger"]),
            f"{row['stronger_gradients']:.0f}",
            str(row["stronger_alone"]),
        ]
        for row in results.rows("sequences_reach")
    ]
    head = [
        "model",
        "wanted",
        "samples",
        "plain steps",
        "ours",
        "gradients",
        "stronger search",
        "gradients",
        "it alone",
    ]
    return made_line(results.made("sequences_reach")) + "\n\n" + table(head, lines)


@text("sequences.time")
def time(results: Results) -> str:
    lines = [
        [
            f"{row['sequences']} of {row['steps']} x {row['features']} (`{row['options']}`)",
            row["where"],
            row["measured"],
            f"{row['seconds']:.{1 if row['seconds'] < 10 else 0}f}",
            str(row["count"]),
            f"{row['estimate']:.1f}",
            str(row["known"]),
            f"{row['gradients']:.0f}",
            f"{row['main_gib']:.1f} GiB",
        ]
        for row in results.rows("sequences_time")
    ]
    head = ["sequences", "where", "measured", "seconds", "flipped", "estimate", "a flip is known for"]
    return table([*head, "gradients per sample", "main memory"], lines)


@text("sequences.clinic")
def clinic(results: Results) -> str:
    rows = results.rows("clinic")
    by = {(row["share"], row["solver"], row["allocation"]): row for row in rows}
    lines = []
    for share, solver in dict.fromkeys((row["share"], row["solver"]) for row in rows):
        joint, parts = (by[share, solver, allocation] for allocation in ("joint", "proportional"))
        lines.append(
            [
                f"{share:.0%}",
                solver,
                str(joint["count"]),
                "" if joint["estimate"] is None else f"{joint['estimate']:.1f}",
                f"{joint['left_over']:.0%}",
                f"{joint['seconds']:.0f}",
                str(parts["count"]),
                f"{parts['left_over']:.0%}",
                f"{parts['seconds']:.0f}",
            ]
        )
    head = ["budgets", "solver", "one pool: flipped", "estimate", "left over", "seconds"]
    head += ["in 5 groups: flipped", "left over", "seconds"]
    return made_line(results.made("clinic")) + "\n\n" + table(head, lines)


@values("sequences.clinic")
def told(results: Results) -> Mapping[str, str]:
    rows = results.rows("clinic")
    four = [row["count"] for row in rows if row["solver"] in FOUR]
    ours = [row["count"] for row in rows if row["solver"] not in FOUR]
    return {
        "patients": str(rows[0]["patients"]),
        "unlimited": str(rows[0]["unlimited_count"]),
        "reached": str(max(ours)),
        "four": f"{min(four)} to {max(four)}",
    }
