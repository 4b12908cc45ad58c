"""docs/results.md: what every solver flips, gains, and how every result file was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from research.evidence.claims.places import means, tuned
from research.evidence.claims.runtime import ITERATIONS
from research.evidence.gains import (
    BEST,
    FOUR,
    SIX,
    Standing,
    cells_by_size,
    compared,
    full_cells,
    gained,
    smallest,
    standing,
)
from research.evidence.intervals import averaged, with_interval
from research.evidence.markdown import made_line, table
from research.evidence.registry import text, waits_for
from research.evidence.results import Results, Row
from research.evidence.rivals import OURS, best_of_others

# What the paper says of each over KL, in %: insurance-like sequences by budget; patients, the mean of all budgets.
PUBLISHED = {
    ("insurance", "small"): {"BCMS": "+10", "CCMS": "+7"},
    ("insurance", "middle"): {"BCMS": "+9", "CCMS": "+6"},
    ("insurance", "large"): {"BCMS": "+7", "CCMS": "+4"},
    ("icu", "all"): {"MS": "+5", "BCMS": "+19", "CCMS": "+19"},
}
BY_SIZE = ("dataset", "allocation", "scaling", "start", "n")
PUBLISHED_BY_SIZE = {300: ("+20", "+13"), 600: ("+31", "+17.5"), 900: ("+34.5", "+20")}


@text("results.over_kl")
@waits_for("budget")
def over_kl(results: Results) -> str:
    """Gains of the paper's three and of Prices over KL, paired over seeds, beside what the paper states."""
    rows = compared(results.rows("budget"))
    solvers = ("MS", "BCMS", "CCMS", "Prices")
    lines = []
    for dataset, source in dict.fromkeys((row["dataset"], row["budget_source"]) for row in rows):
        here = [row for row in rows if (row["dataset"], row["budget_source"]) == (dataset, source)]
        for budget in (*dict.fromkeys(row["budget"] for row in here), "all"):
            some = [row for row in here if budget in (row["budget"], "all")]
            stated = PUBLISHED.get((dataset, budget), {}) if source == "paper" else {}
            said = ", ".join(f"{solver} {percent} %" for solver, percent in stated.items())
            lines.append([dataset, source, budget, *(gain(gained(some, s, "KL")) for s in solvers), said])
    head = ["dataset", "budgets", "size", *(f"{solver} over KL" for solver in solvers), "the paper"]
    return table(head, lines)


def gain(each: Mapping[str, Sequence[float]]) -> str:
    """In %, the mean of all datasets and its 95 % interval over seeds."""
    said = with_interval(averaged(each.values()), "+.1f")
    return f"{said} %" if said else ""


@text("results.gains")
@waits_for("budget")
def of_prices(results: Results) -> str:
    """Gains of Prices over each of the others, over all sizes of budgets."""
    rows = compared(results.rows("budget"))
    others = (*FOUR, BEST, "Nearest")
    places = dict.fromkeys((row["dataset"], row["budget_source"]) for row in rows)
    lines = []
    for dataset, source in places:
        here = [row for row in rows if (row["dataset"], row["budget_source"]) == (dataset, source)]
        lines.append([dataset, source, *(gain(gained(here, "Prices", other)) for other in others)])
    lines.append(["all", "both", *(gain(gained(rows, "Prices", other)) for other in others)])
    return table(["dataset", "budgets", *(f"over {other}" for other in others)], lines)


@text("results.losses")
@waits_for("budget")
def losses(results: Results) -> str:
    """Every cell in which Prices is not the best."""
    return _stands(standing(full_cells(results.rows("budget"))), ("budgets", "size"))


def _stands(found: Standing, columns: Sequence[str]) -> str:
    """columns: what a cell is known by, beside dataset and draw"""
    lines = []
    for loss in found.losses:
        dataset, seed, *where = loss.where
        numbers = [str(seed), str(loss.prices), _or_empty(loss.estimate, ".1f"), loss.best, str(loss.count)]
        lines.append([dataset, *map(str, where), *numbers])
    head = ["dataset", *columns, "draw", "Prices", "its estimate", "the best", "flips"]
    return said_of(found) + ("\n\n" + table(head, lines) if lines else "")


def said_of(found: Standing) -> str:
    cells = found.alone + found.tied + len(found.losses)
    behind = f"behind in {len(found.losses)}:" if found.losses else "behind in none."
    return (
        f"Of {cells} cells, `Prices` flips the most in {found.alone}, as many as the best other in {found.tied}, "
        f"and is {behind}"
    )


@text("results.carried")
@waits_for("budget", "tuning")
def carried(results: Results) -> str:
    """Whether settings that were chosen on one draw do as well on the others: share flipped at the middle budget."""
    middle = [row for row in tuned(results.rows("budget")) if row["budget"] == "middle"]
    shares = [row | {"share": 100 * row["count"] / row["n"]} for row in middle]
    by = means(shares, ("dataset", "budget_source", "solver"), "share")
    sizes = {row["dataset"]: row["n"] for row in middle}
    lines: dict[tuple[Any, ...], list[str]] = {}
    for row in results.rows("tuning"):
        place = row["dataset"], row["budget_source"]
        if row["chosen"] and (*place, row["solver"]) in by:
            line = lines.setdefault(place, [*place, f"{row['n']}", f"{sizes[row['dataset']]}", *[""] * len(FOUR)])
            then, now = 100 * row["count"] / row["n"], by[(*place, row["solver"])]
            line[4 + FOUR.index(row["solver"])] = f"{then:.0f} %, then {now:.0f} %"
    return table(["dataset", "budgets", "chosen on", "run on", *FOUR], lines.values())


@text("results.variants")
@waits_for("budget")
def variants(results: Results) -> str:
    """The paper's four as tuned, in its groups, and with its own settings, at the middle budgets."""
    rows = [row for row in results.rows("budget") if row["solver"] in FOUR and row["budget"] == "middle"]
    by = ("dataset", "budget_source", "protocol", "allocation", "solver")
    count, made = means(rows, by, "count"), means(rows, by, "iterations_made")
    named = {
        ("tuned", "joint"): "tuned, in one pool",
        ("tuned", "proportional"): "tuned, in groups",
        ("paper", "joint"): "the paper's settings, first draw",
    }

    def said(place: tuple[Any, ...], solver: str) -> str:
        if (*place, solver) not in count:
            return ""
        of = f" ({made[(*place, solver)]:,.0f} of {ITERATIONS[solver]:,} steps)" if "paper" in place[2:] else ""
        return f"{count[(*place, solver)]:.1f}{of}"

    lines = [
        [dataset, source, name, *(said((dataset, source, *run), solver) for solver in FOUR)]
        for dataset, source in dict.fromkeys((row["dataset"], row["budget_source"]) for row in rows)
        for run, name in named.items()
        if any((dataset, source, *run, solver) in count for solver in FOUR)
    ]
    return table(["dataset", "budgets", "run", *FOUR], lines)


@text("results.lengths")
@waits_for("iterations")
def lengths(results: Results) -> str:
    """What runs at the middle budget still won in their last outer iteration: the less, the less would longer ones
    change. Means over seeds."""
    rows = [row for row in tuned(results.rows("iterations")) if row["budget"] == "middle"]
    lines = []
    for dataset, source in dict.fromkeys((row["dataset"], row["budget_source"]) for row in rows):
        here = [row for row in rows if (row["dataset"], row["budget_source"]) == (dataset, source)]
        lines.append([dataset, source, *(_still_won([row for row in here if row["solver"] == s]) for s in FOUR)])
    return table(["dataset", "budgets", *FOUR], lines)


def _still_won(rows: Sequence[Row]) -> str:
    """Of one algorithm: the count before its last outer iteration, and after it"""
    by_seed: dict[int, list[float]] = {}
    for row in sorted(rows, key=lambda row: int(row["outer"])):
        by_seed.setdefault(row["seed"], []).append(float(row["count"]))
    runs = [run for run in by_seed.values() if len(run) > 1]
    if not runs:
        return ""
    before, after = (float(np.mean([run[k] for run in runs])) for k in (-2, -1))
    return f"{before:.1f}, then {after:.1f}"


@text("results.growth")
@waits_for("scalability")
def growth(results: Results) -> str:
    """Gains over KL by the number of samples, each start by itself; the smallest set has nothing to start from."""
    rows = results.rows("scalability")
    lines = []
    for place in _sizes(rows):
        dataset, allocation, scaling, start, n = place
        some = [row for row in rows if tuple(row[name] for name in BY_SIZE) == place]
        stated = PUBLISHED_BY_SIZE.get(n) if (dataset, allocation) == ("insurance", "proportional") else None
        said = f"BCMS {stated[0]} %, CCMS {stated[1]} %" if stated else ""
        gains = (gain(gained(some, s, "KL", BY_SIZE)) for s in ("BCMS", "CCMS", "Prices"))
        lines.append([dataset, allocation, scaling, start, str(n), *gains, said])
    head = [
        "dataset",
        "allocation",
        "budgets",
        "start",
        "samples",
        "BCMS over KL",
        "CCMS over KL",
        "Prices over KL",
        "the paper",
    ]
    return made_line(results.made("scalability")) + "\n\n" + table(head, lines)


def _sizes(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Places of the scalability experiment; the smallest set has nothing to start warm from."""
    least = smallest(rows)
    places = sorted({tuple(row[name] for name in BY_SIZE) for row in rows})
    return [place for place in places if place[3] == "random" or place[4] > least[place[0]]]


@text("results.grown")
@waits_for("scalability")
def grown(results: Results) -> str:
    """Means over seeds of every solver, and every cell in one pool in which Prices is not the best."""
    rows = results.rows("scalability")
    count, estimate = (means(rows, (*BY_SIZE, "solver"), of) for of in ("count", "estimate"))
    solvers = [solver for solver in SIX if any(row["solver"] == solver for row in rows)]
    lines = [
        [
            *map(str, place),
            *(f"{count[(*place, s)]:.1f}" if (*place, s) in count else "" for s in solvers),
            f"{estimate[(*place, 'Prices')]:.1f}" if (*place, "Prices") in estimate else "",
        ]
        for place in _sizes(rows)
    ]
    counted = table(["dataset", "allocation", "budgets", "start", "samples", *solvers, "estimate"], lines)
    return counted + "\n\n" + _stands(standing(cells_by_size(rows)), ("budgets", "start", "samples"))


@text("results.runtime")
@waits_for("runtime")
def runtime(results: Results) -> str:
    lines = [
        [
            row["solver"],
            *(_or_empty(row[name], ".2f") for name in ("seconds_inner", "seconds_outer")),
            "" if row["outer"] is None else f"{row['outer']} x {row['inner']:,}",
            _seconds(row["seconds_total"]) + ("" if row["is_measured"] else " (reckoned)"),
            f"{row['gradients_total']:,.0f}",
        ]
        for row in results.rows("runtime")
    ]
    head = ["solver", "seconds per inner iteration", "per outer one, on top", "iterations", "seconds in all"]
    return made_line(results.made("runtime")) + "\n\n" + table([*head, "gradients per sample in all"], lines)


def _seconds(number: float) -> str:
    """Also of a run that takes but a moment beside the others."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def _or_empty(number: float | None, form: str) -> str:
    return "" if number is None else f"{number:{form}}"


@text("results.counts")
@waits_for("budget")
def counts(results: Results) -> str:
    """Means over seeds of every solver, beside the estimate of Prices."""
    rows = compared(results.rows("budget"))
    where = ("dataset", "budget_source", "budget")
    count, estimate = means(rows, (*where, "solver"), "count"), means(rows, (*where, "solver"), "estimate")
    seeds = Counter(tuple(row[name] for name in (*where, "solver")) for row in rows)
    lines = [
        [
            *place,
            *(f"{count[(*place, s)]:.1f}" if (*place, s) in count else "" for s in SIX),
            f"{estimate[(*place, 'Prices')]:.1f}" if (*place, "Prices") in estimate else "",
            f"{min(seeds.get((*place, s), 0) for s in SIX)}",
        ]
        for place in dict.fromkeys(tuple(row[name] for name in where) for row in rows)
    ]
    return table(["dataset", "budgets", "size", *SIX, "estimate", "seeds"], lines)


@text("results.peers")
@waits_for("peers_budgets")
def peers(results: Results) -> str:
    """What the best of the other tools' changes come to within the same budgets, after the same choice; beside it
    maxflip's own Nearest, the better of its two kinds."""
    by = means(results.rows("peers_budgets"), ("cohort", "n", "shape", "tool", "method"), "count")
    lines = []
    for place in dict.fromkeys(key[:3] for key in by):
        here = {key[3:]: count for key, count in by.items() if key[:3] == place}
        best, ours = best_of_others(here), here.get((OURS, "Prices"))
        nearest = [count for (tool, method), count in here.items() if tool == OURS and method.startswith("Nearest")]
        if best is not None and ours is not None and nearest:
            cohort, n, shape = place
            most, whose = best
            gained = f"{100 * (ours / most - 1):+.0f} %" if most else ""
            counts = [f"{count:.1f}" for count in (ours, max(nearest), most)]
            lines.append([cohort, f"{n:,}", shape, *counts, whose, gained])
    head = [
        "cohort",
        "samples",
        "budgets",
        "Prices",
        "our Nearest",
        "best of other tools",
        "whose",
        "more by Prices",
    ]
    return made_line(results.made("peers_budgets")) + "\n\n" + table(head, lines)


@text("results.picture")
@waits_for("budget")
def picture(_: Results) -> str:
    """The one that tells most, which opens the page."""
    return "![Samples flipped against how much there is of every budget](pictures/study_frontier.svg)"


@text("results.figures")
@waits_for("budget")
def figures(results: Results) -> str:
    """All else that `python -m research.experiments figures` draws of the result files that are there."""
    rows = results.rows("budget")
    places = dict.fromkeys((row["dataset"], row["budget_source"]) for row in rows)
    shown = {"study_gap": "What is missing to the estimate"}
    if results.has("prices"):
        shown["study_prices"] = "Worth of each budget at its price"
    shown |= {f"study_budget_{d}_{s}": f"{d}, {s} budgets: panels a to d by size of budgets" for d, s in places}
    if results.has("scalability"):
        grown = [row for row in results.rows("scalability") if row["protocol"] != "paper"]
        for d, allocation, scaling in dict.fromkeys((r["dataset"], r["allocation"], r["scaling"]) for r in grown):
            shown[f"study_sizes_{d}_{allocation}_{scaling}"] = f"{d}, {allocation}, budgets {scaling}: panels a to d"
        shown |= {f"study_improvement_{r['dataset']}": f"{r['dataset']}: gains over KL by samples" for r in grown}
    if results.has("iterations"):
        curves = dict.fromkeys((row["dataset"], row["budget_source"]) for row in results.rows("iterations"))
        shown |= {f"study_iterations_{d}_{s}": f"{d}, middle of the {s} budgets: by outer iteration" for d, s in curves}
    return "\n\n".join(f"![{said}](pictures/{name}.svg)" for name, said in shown.items())


@text("results.made")
def made(results: Results) -> str:
    """Every result file there is."""
    lines = []
    for path in sorted(results.folder.glob("*.parquet")):
        held = results.made(path.stem)
        versions = ", ".join(f"{name} {number}" for name, number in held.versions.items())
        lines.append([f"`{path.stem}`", f"`{held.command}`", held.date, held.commit, held.machine, versions])
    return table(["result file", "made by", "on", "commit", "machine", "with"], lines)
