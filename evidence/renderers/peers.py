"""docs/results/peers.md: maxflip beside other tools."""

from __future__ import annotations

from math import isnan
from statistics import mean

from evidence.markdown import made_line, percent, table
from evidence.registry import text
from evidence.results import Results, Row


@text("peers.made")
def made(results: Results) -> str:
    """How, and with which version of each tool."""
    rows = results.rows("peers_tools")
    lines = [[row["tool"], row["version"] or row["note"], row["set_up"]] for row in rows]
    how = results.made("peers")
    return f"`{how.command}`\n\n{made_line(how)}\n\n" + table(["tool", "version", "set up, beyond its defaults"], lines)


@text("peers.everyone")
def everyone(results: Results) -> str:
    return _cohort(results, max(row["n"] for row in results.rows("peers")))


@text("peers.few")
def few(results: Results) -> str:
    return _cohort(results, min(row["n"] for row in results.rows("peers")))


def _cohort(results: Results, n: int) -> str:
    rows = [row for row in results.rows("peers") if row["n"] == n]
    within = [row for row in results.rows("peers_budgets") if row["n"] == n]
    kinds = list(dict.fromkeys(row["shape"] for row in within))
    lines = []
    for row in rows:
        own = [b for b in within if (b["tool"], b["method"]) == (row["tool"], row["method"])]
        lines.append(
            [
                row["tool"],
                row["method"],
                "" if row["flipped"] is None else percent(row["flipped"], 1),
                _cell(row["cost_over_best"], ".3f"),
                _cell(row["relative_speed"], ".3g"),
                _cell(row["peak_mib"], ",.0f"),
                *(_counts([b["count"] for b in own if b["shape"] == kind]) for kind in kinds),
                row["note"],
            ]
        )
    pace = next((row["samples_per_second"] for row in rows if row["relative_speed"] == 1.0), None)
    said = f"{n} samples." + ("" if pace is None else f" DDN: {pace:,.0f} samples per second of processor time.")
    head = ["tool", "method", "flipped", "cost / best known", "speed / DDN", "peak MiB", *kinds, "note"]
    return f"{said}\n\n{table(head, lines)}"


def _counts(counts: list[int]) -> str:
    """One, or the mean of several draws."""
    return "" if not counts else f"{mean(counts):.1f}" if len(counts) > 1 else str(counts[0])


def _cell(value: float | None, form: str) -> str:
    return "" if value is None or isnan(value) else format(value, form)


@text("peers.exact")
def exact(results: Results) -> str:
    rows = results.rows("peers_exact")
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    lines = []
    for tool, method in dict.fromkeys((row["tool"], row["method"]) for row in rows):
        cells = [tool, method]
        for name in problems:
            own = [r for r in rows if (r["tool"], r["method"], r["problem"]) == (tool, method, name)]
            met = sum(row["count"] == row["optimum"] for row in own)
            cells.append(f"{sum(r['count'] for r in own)} (optimal in {met} of {len(own)})" if own else "")
        lines.append(cells)
    return table(["tool", "method", *(_problem(rows, name) for name in problems)], lines)


def _problem(rows: list[Row], name: str) -> str:
    draws = {row["draw"]: row for row in rows if row["problem"] == name}
    best = sum(row["optimum"] for row in draws.values())
    return f"{name}: {len(draws)} draws of {draws[1]['n']} samples, optimum {best} in all"
