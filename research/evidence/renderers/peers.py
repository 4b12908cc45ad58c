"""docs/results/peers.md: maxflip beside other tools."""

from __future__ import annotations

from math import isnan
from statistics import mean

from research.evidence.markdown import made_line, percent, table
from research.evidence.registry import text
from research.evidence.results import Results


@text("peers.made")
def made(results: Results) -> str:
    """How, and with which version of each tool."""
    rows = results.rows("peers_tools")
    lines = [[row["tool"], row["version"] or row["note"], row["set_up"]] for row in rows]
    how = results.made("peers")
    return f"`{how.command}`\n\n{made_line(how)}\n\n" + table(["tool", "version", "set up, beyond its defaults"], lines)


@text("peers.cohorts")
def cohorts(results: Results) -> str:
    lines = [
        [
            row["cohort"],
            f"{row['features']}: {row['said']}",
            row["network"],
            str(row["budgets"]),
            f"{row['samples']}; slow methods: the first {row['few']}",
        ]
        for row in results.rows("peers_cohorts")
    ]
    return table(["cohort", "features", "network", "budgets", "samples"], lines)


@text("peers.everyone")
def everyone(results: Results) -> str:
    return "\n\n".join(_cohort(results, row["cohort"], row["samples"]) for row in results.rows("peers_cohorts"))


@text("peers.few")
def few(results: Results) -> str:
    return "\n\n".join(_cohort(results, row["cohort"], row["few"]) for row in results.rows("peers_cohorts"))


def _cohort(results: Results, cohort: str, n: int) -> str:
    rows = [row for row in results.rows("peers") if (row["cohort"], row["n"]) == (cohort, n)]
    within = [row for row in results.rows("peers_budgets") if (row["cohort"], row["n"]) == (cohort, n)]
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
                row["note"] if row["asked"] in (None, n) else f"asked the first {row['asked']} alone",
            ]
        )
    pace = next((row["samples_per_second"] for row in rows if row["relative_speed"] == 1.0), None)
    said = f"**{cohort}**, {n} samples."
    said += "" if pace is None else f" DDN: {pace:,.0f} samples per second of processor time."
    head = ["tool", "method", "flipped", "cost / best known", "speed / DDN", "peak MiB", *kinds, "note"]
    return f"{said}\n\n{table(head, lines)}"


def _counts(counts: list[int]) -> str:
    """One, or the mean of several draws."""
    return "" if not counts else f"{mean(counts):.1f}" if len(counts) > 1 else str(counts[0])


def _cell(value: float | None, form: str) -> str:
    return "" if value is None or isnan(value) else format(value, form)


@text("peers.exact")
def exact(results: Results) -> str:
    """Of draws whose optimum was proved; and who gave no answer, and why."""
    every = results.rows("peers_exact")
    notes = {(row["tool"], row["method"]): row["note"] for row in every if row.get("note")}  # older files have none
    rows = [row for row in every if row["optimum"] is not None]
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    counted = [row for row in rows if row["count"] is not None]
    lines = []
    for tool, method in dict.fromkeys([*((row["tool"], row["method"]) for row in rows), *notes]):
        cells = [tool, method]
        for name in problems:
            own = [r for r in counted if (r["tool"], r["method"], r["problem"]) == (tool, method, name)]
            # A plan may beat an optimum that SCIP proved: its budgets are a little tighter.
            met = sum(row["count"] >= row["optimum"] for row in own)
            cells += [str(sum(r["count"] for r in own)), str(met)] if own else ["", ""]
        lines.append([*cells, *([notes.get((tool, method), "")] if notes else [])])
    head, said = ["tool", "method"], []
    for name in dict.fromkeys(row["problem"] for row in every):
        draws = {row["draw"]: row for row in every if row["problem"] == name}
        known = [row["optimum"] for row in draws.values() if row["optimum"] is not None]
        sizes = sorted({row["n"] for row in draws.values()})
        said.append(
            f"{name}: {len(draws)} draws of {' or '.join(map(str, sizes))} samples, the optimum of {len(known)} proved"
        )
        if known:
            head += [f"{name}: flipped (optimum {sum(known)})", f"optimal, of {len(known)} draws"]
    head += ["note"] if notes else []
    return f"{'; '.join(said)}.\n\n{table(head, lines)}"
