"""The tables of docs/results/peers.md, from its result files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.page import put
from benchmarks.peers_tools import TOOLS
from benchmarks.prices_cases import table
from evidence.files import FOLDER, ROOT, Made, read

PAGE = ROOT / "docs" / "results" / "peers.md"
Row = dict[str, Any]


def rendered(folder: Path = FOLDER) -> dict[str, str]:
    """Each section of the page, by the name of its marks."""
    (peers, made), (budgets, _), (exact, _) = (read(name, folder) for name in ("peers", "peers_budgets", "peers_exact"))
    rows, within = peers.to_pylist(), budgets.to_pylist()
    sizes = sorted({row["n"] for row in rows}, reverse=True)
    few = sizes[-1]
    return {
        "made": _made(made, rows),
        "everyone": _cohort([r for r in rows if r["n"] == sizes[0]], [r for r in within if r["n"] == sizes[0]]),
        "few": _cohort([r for r in rows if r["n"] == few], [r for r in within if r["n"] == few]),
        "exact": _exact(exact.to_pylist()),
    }


def write_page(folder: Path = FOLDER, page: Path = PAGE) -> None:
    for name, text in rendered(folder).items():
        put(page, "peers.py", name, text)


def _made(made: Made, rows: list[Row]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in made.versions.items())
    took = "" if made.seconds is None else f"; {made.seconds / 60:.0f} minutes"
    lines = [f"*`{made.command}`, {made.date}, commit {made.commit}, {made.machine}, {versions}{took}.*\n"]
    head = ["tool", "version", "set up, beyond its defaults"]
    held = {row["tool"]: row["version"] or row["note"] for row in rows}
    lines.append(table(head, [[tool.name, held.get(tool.name, "below"), tool.said] for tool in TOOLS]))
    return "\n".join(lines)


def _cohort(rows: list[Row], within: list[Row]) -> str:
    kinds = list(dict.fromkeys(row["shape"] for row in within))
    head = ["tool", "method", "flipped", "cost / best known", "speed / DDN", "peak MiB", *kinds, ""]
    lines = []
    for row in rows:
        counts = {
            kind: [
                w["count"] for w in within if (w["tool"], w["method"], w["shape"]) == (row["tool"], row["method"], kind)
            ]
            for kind in kinds
        }
        lines.append(
            [
                row["tool"],
                row["method"],
                _cell(row["flipped"], "{:.1%}"),
                _cell(row["cost_over_best"], "{:.3g}" if (row["cost_over_best"] or 0) >= 10 else "{:.3f}"),
                _cell(row["relative_speed"], "{:.3g}"),
                _cell(row["peak_mib"], "{:,.0f}"),
                *(_cell(np.mean(c) if c else None, "{:.1f}" if len(c) > 1 else "{:.0f}") for c in counts.values()),
                row["note"],
            ]
        )
    pace = next((r["samples_per_second"] for r in rows if r["relative_speed"] == 1.0), None)
    said = f"{rows[0]['n']} samples. "
    if pace is not None:
        said += f"DDN's pace here: {pace:,.0f} samples per second of processor time."
    return f"{said}\n\n{table(head, lines)}"


def _exact(rows: list[Row]) -> str:
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    methods = list(dict.fromkeys((row["tool"], row["method"]) for row in rows))

    def told(name: str) -> str:
        draws = {row["draw"]: row for row in rows if row["problem"] == name}
        best = sum(row["optimum"] for row in draws.values())
        each = next(iter(draws.values()))["n"]
        return f"{name}: {len(draws)} draws of {each}, optimum {best} in all"

    lines = []
    for tool, method in methods:
        cells = [tool, method]
        for name in problems:
            own = [r for r in rows if (r["tool"], r["method"], r["problem"]) == (tool, method, name)]
            met = sum(r["count"] == r["optimum"] for r in own)
            cells.append(f"{sum(r['count'] for r in own)} (optimal in {met} of {len(own)})" if own else "")
        lines.append(cells)
    return table(["tool", "method", *(told(name) for name in problems)], lines)


def _cell(value: float | None, form: str) -> str:
    return "" if value is None or np.isnan(value) else form.format(value)
