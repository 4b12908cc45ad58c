"""README.md: what the demo prints, and what its plan changes."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import indent

from evidence.markdown import table
from evidence.registry import text, values
from evidence.results import Results

_WORDS = {5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}


@text("demo.printed")
def printed(results: Results) -> str:
    (demo,) = results.rows("demo")
    return indent(demo["printed"].strip("\n"), "    ")


@text("demo.changes")
def changes(results: Results) -> str:
    lines = [
        [
            row["id"],
            row["feature"],
            row["unit"] or "",
            f"{row['before']:.2f}",
            f"{row['change']:+.2f}".replace("-", "−"),
            f"{row['after']:.2f}",
        ]
        for row in results.rows("demo_changes")
    ]
    return table(["id", "feature", "unit", "before", "change", "after"], lines, right=(3, 4, 5))


@values("demo")
def numbers(results: Results) -> Mapping[str, str]:
    (demo,) = results.rows("demo")
    units = round(1 / demo["price_bmi"])
    return {
        "count": f"{demo['count']}",
        "units_of_bmi": _WORDS.get(units, str(units)),
    }
