"""docs/results.md: the paper's claims, gains over KL, and how every result file was made."""

from __future__ import annotations

from evidence.claims import SOLVERS, Claim, all_claims, means, tuned
from evidence.intervals import with_interval
from evidence.markdown import made_line, table
from evidence.registry import text
from evidence.results import Results, Row

# What the paper says of each over KL, in %: insurance-like sequences by budget; patients, the mean of all budgets.
PUBLISHED = {
    ("insurance", "small"): {"BCMS": "+10", "CCMS": "+7"},
    ("insurance", "middle"): {"BCMS": "+9", "CCMS": "+6"},
    ("insurance", "large"): {"BCMS": "+7", "CCMS": "+4"},
    ("icu", "all"): {"MS": "+5", "BCMS": "+19", "CCMS": "+19"},
}
PUBLISHED_BY_SIZE = {300: ("+20", "+13"), 600: ("+31", "+17.5"), 900: ("+34.5", "+20")}


@text("results.claims")
def claims(results: Results) -> str:
    lines = [[c.says, c.rule, _measured(c), f"**{c.verdict}**"] for c in all_claims(results)]
    return made_line(results.made("budget")) + "\n\n" + table(["the paper", "read as", "measured", "verdict"], lines)


def _measured(claim: Claim) -> str:
    held = f"in {claim.held} of {len(claim.places)} places" + (f" ({claim.shares})" if claim.shares else "")
    return f"{held}; not in {claim.why}" if claim.why else held


@text("results.over_kl")
def over_kl(results: Results) -> str:
    """Gains of the paper's three and of Prices over KL, paired over seeds, beside what the paper states."""
    rows = [row for row in results.rows("budget") if row["allocation"] == "joint" and row["protocol"] != "paper"]
    solvers = ("MS", "BCMS", "CCMS", "Prices")
    lines = []
    for dataset, source in dict.fromkeys((row["dataset"], row["budget_source"]) for row in rows):
        here = [row for row in rows if (row["dataset"], row["budget_source"]) == (dataset, source)]
        for budget in (*dict.fromkeys(row["budget"] for row in here), "all"):
            some = [row for row in here if budget in (row["budget"], "all")]
            stated = PUBLISHED.get((dataset, budget), {}) if source == "paper" else {}
            said = ", ".join(f"{solver} {percent} %" for solver, percent in stated.items())
            lines.append([dataset, source, budget, *(gain(some, solver) for solver in solvers), said])
    head = ["dataset", "budgets", "size", *(f"{solver} over KL" for solver in solvers), "the paper"]
    return table(head, lines)


def gain(rows: list[Row], solver: str, over: str = "KL") -> str:
    """In %, mean and 95 % interval over seeds; a seed's budgets are averaged first."""
    counts = means([row for row in rows if row["solver"] in (solver, over)], ("seed", "solver"), "count")
    seeds = sorted({seed for seed, _ in counts})
    each = [
        100 * (counts[seed, solver] / counts[seed, over] - 1)
        for seed in seeds
        if (seed, solver) in counts and counts.get((seed, over))
    ]
    said = with_interval(each, "+.1f")
    return f"{said} %" if said else ""


@text("results.growth")
def growth(results: Results) -> str:
    """Gains over KL by the number of samples, over both starts, as the paper averages them."""
    rows = results.rows("scalability")
    lines = []
    for allocation, scaling in dict.fromkeys((row["allocation"], row["scaling"]) for row in rows):
        for n in sorted({row["n"] for row in rows}):
            some = [row for row in rows if (row["allocation"], row["scaling"], row["n"]) == (allocation, scaling, n)]
            stated = PUBLISHED_BY_SIZE.get(n) if allocation == "proportional" else None
            said = f"BCMS {stated[0]} %, CCMS {stated[1]} %" if stated else ""
            lines.append([allocation, scaling, str(n), *(gain(some, s) for s in ("BCMS", "CCMS", "Prices")), said])
    head = ["allocation", "budgets", "samples", "BCMS over KL", "CCMS over KL", "Prices over KL", "the paper"]
    return made_line(results.made("scalability")) + "\n\n" + table(head, lines)


@text("results.runtime")
def runtime(results: Results) -> str:
    lines = [
        [
            row["solver"],
            *(_or_empty(row[name], ".2f") for name in ("seconds_inner", "seconds_outer")),
            "" if row["outer"] is None else f"{row['outer']} x {row['inner']:,}",
            f"{row['seconds_total']:,.0f}" + ("" if row["is_measured"] else " (reckoned)"),
            f"{row['gradients_total']:,.0f}",
        ]
        for row in results.rows("runtime")
    ]
    head = ["solver", "seconds per inner iteration", "per outer one, on top", "iterations", "seconds in all"]
    return made_line(results.made("runtime")) + "\n\n" + table([*head, "gradients per sample in all"], lines)


def _or_empty(number: float | None, form: str) -> str:
    return "" if number is None else f"{number:{form}}"


@text("results.counts")
def counts(results: Results) -> str:
    """Means over seeds of every solver, beside the estimate of Prices."""
    rows = [row for row in results.rows("budget") if row["allocation"] == "joint" and row["protocol"] != "paper"]
    where = ("dataset", "budget_source", "budget")
    count, estimate = means(rows, (*where, "solver"), "count"), means(rows, (*where, "solver"), "estimate")
    lines = [
        [
            *place,
            *(f"{count[(*place, s)]:.1f}" if (*place, s) in count else "" for s in SOLVERS),
            f"{estimate[(*place, 'Prices')]:.1f}" if (*place, "Prices") in estimate else "",
            f"{sum(1 for r in tuned(rows) if r['solver'] == 'BCMS' and tuple(r[w] for w in where) == place)}",
        ]
        for place in dict.fromkeys(tuple(row[name] for name in where) for row in rows)
    ]
    return table(["dataset", "budgets", "size", *SOLVERS, "estimate", "seeds"], lines)


@text("results.peers")
def peers(results: Results) -> str:
    """What the best of the other tools' changes come to within the same budgets, after the same choice."""
    by = means(results.rows("peers_budgets"), ("n", "shape", "tool", "method"), "count")
    lines = []
    for n, shape in dict.fromkeys(key[:2] for key in by):
        here = {(tool, method): count for (k, s, tool, method), count in by.items() if (k, s) == (n, shape)}
        others = {key: count for key, count in here.items() if key[0] != "maxflip"}
        ours = here.get(("maxflip", "Prices"))
        if others and ours is not None:
            best = max(others, key=lambda key: others[key])
            gained = f"{100 * (ours / others[best] - 1):+.0f} %" if others[best] else ""
            lines.append([f"{n:,}", shape, f"{ours:.1f}", f"{others[best]:.1f}", f"{best[0]}, {best[1]}", gained])
    head = ["samples", "budgets", "Prices", "the best of the others", "which", "more by Prices"]
    return made_line(results.made("peers_budgets")) + "\n\n" + table(head, lines)


@text("results.made")
def made(results: Results) -> str:
    """Every result file there is."""
    lines = []
    for path in sorted(results.folder.glob("*.parquet")):
        held = results.made(path.stem)
        versions = ", ".join(f"{name} {number}" for name, number in held.versions.items())
        lines.append([f"`{path.stem}`", f"`{held.command}`", held.date, held.commit, held.machine, versions])
    return table(["result file", "made by", "on", "commit", "machine", "with"], lines)
