"""docs/results/sequences.md"""

from __future__ import annotations

from research.evidence.markdown import made_line, table
from research.evidence.registry import text
from research.evidence.results import Results

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
