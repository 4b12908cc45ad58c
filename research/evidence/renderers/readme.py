"""README.md: what the demo prints, what its plan changes, and what maxflip buys beside others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from textwrap import indent

from research.evidence.claims.places import means
from research.evidence.gains import FOUR, full_cells, gained
from research.evidence.intervals import averaged, with_interval
from research.evidence.markdown import table
from research.evidence.registry import text, values
from research.evidence.results import Results
from research.evidence.rivals import OURS, best_of_others
from research.experiments.cohorts import MARGIN
from research.experiments.hold.kinds import ANOTHER
from research.experiments.hold.points import Result, difference, number_of, of_kind, point, read
from research.experiments.hold.words import share, signed, standing

_WORDS = {
    2: "two",
    3: "three",
    4: "four",
    5: "five",
    6: "six",
    7: "seven",
    8: "eight",
    9: "nine",
    10: "ten",
    11: "eleven",
    12: "twelve",
}
PEOPLE = {
    "icu": "patients in intensive care",
    "oulad": "students",
    "insurance": "customers of an insurer (made up)",
    "credit_default": "credit customers",
    "generated": "rows of a generated table",
}
_JUDGED = {"icu": "Patients", "credit": "Credit customers"}
_SETTINGS = {"icu": ", untuned there", "credit": ""}  # of the paper's four: research/experiments/hold/icu.py, credit.py
NEAREST = ((OURS, "Nearest, unit prices"), (OURS, "Nearest, 1/B"))
_BUDGETS = {"paper": "as the paper sets them", "binding": "ours, scarcer"}


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


@text("readme.bought")
def bought(results: Results) -> str:
    """How many are flipped: a line for each cohort and kind of budgets that was measured."""
    lines = [*(_of_the_study(results) if results.has("budget") else ()), *_of_the_peers(results)]
    head = [
        "people",
        "budgets",
        "`Prices`",
        "own cheapest flip",
        "more by `Prices`",
        "best of the paper, or of other tools",
        "more by `Prices`",
    ]
    return table(head, lines, right=(2, 3, 4, 6))


@text("readme.hold")
def hold(results: Results) -> str:
    """How many such flips other models agree with, and whether that leaves `Prices` ahead of the paper's best."""
    found = [said for result in read(results.folder) if (said := _held(result)) is not None]
    if not found:
        return "*Not measured yet: whether such flips hold in retrained models.*"
    where = f"[Measured](docs/hold.md) on smaller cohorts, by the same margin of {MARGIN:g}."
    return f"**Do flips hold in retrained models?** {where} {' '.join(found)}"


def _held(result: Result) -> str | None:
    """Beside that one of the paper's four of whose flips most hold."""
    ours, other = (point(of, "Prices", MARGIN) for of in (result, of_kind(result, ANOTHER)))
    four = {solver: of.number.value for solver in FOUR if (of := point(result, solver, MARGIN)) is not None}
    if ours is None or other is None or other.won is None or not four:
        return None
    best = max(four, key=lambda solver: four[solver])
    ahead = difference(result, MARGIN, "Prices", best, number_of)
    named = f"{best}{_SETTINGS[result.dataset]}"
    number = "" if ahead is None else f"; in number, `Prices` is {standing(ahead)} {named} ({signed(ahead)})"
    return (
        f"{_JUDGED[result.dataset]}: {share(ours.share)} of the flips of `Prices`, and {100 * other.won:.0f} % in "
        f"models of another kind, not counting people who passed there before any change{number}."
    )


def _more(ours: float, other: float) -> str:
    return f"{100 * (ours / other - 1):+.0f} %" if other else ""


def _of_the_study(results: Results) -> Iterator[list[str]]:
    """Means over draws and sizes of budgets, of cells that all solvers have; of the paper's four, the one that is best
    there. What Prices has more, paired over draws, with its interval."""
    rows = [row for of in full_cells(results.rows("budget")).values() for row in of.values()]
    people = {row["dataset"]: row["n"] for row in rows}
    by = means(rows, ("dataset", "budget_source", "solver"), "count")
    for dataset, source in dict.fromkeys(key[:2] for key in by):
        here = {solver: count for (*place, solver), count in by.items() if place == [dataset, source]}
        best = max(FOUR, key=lambda solver: here[solver])
        own = [row for row in rows if row["budget_source"] == source]
        nearest, other = (
            with_interval(averaged([gained(own, "Prices", over)[dataset]]), "+.0f") + " %" for over in ("Nearest", best)
        )
        yield [
            f"{people[dataset]} {PEOPLE[dataset]}",
            _BUDGETS[source],
            f"{here['Prices']:.1f}",
            f"{here['Nearest']:.1f}",
            nearest,
            f"{best}: {here[best]:.1f}",
            other,
        ]


def _of_the_peers(results: Results) -> Iterator[list[str]]:
    """Of each cohort, by those who were asked about all of it; the mean of all shapes of budgets. Of the two kinds of
    Nearest, the better with each shape."""
    every = results.rows("peers_budgets")
    for cohort in dict.fromkeys(row["cohort"] for row in every):
        most = max(row["n"] for row in every if row["cohort"] == cohort)
        rows = [row for row in every if (row["cohort"], row["n"]) == (cohort, most)]
        by_shape = means(rows, ("shape", "tool", "method"), "count")
        shapes = dict.fromkeys(shape for shape, _, _ in by_shape)
        by = {(tool, method): fmean(by_shape[shape, tool, method] for shape in shapes) for _, tool, method in by_shape}
        nearest = fmean(
            max(n for (of, tool, method), n in by_shape.items() if of == shape and (tool, method) in NEAREST)
            for shape in shapes
        )
        ours, best = by[OURS, "Prices"], best_of_others(by)
        theirs = ["", ""] if best is None else [f"{best[1]}: {best[0]:.1f}", _more(ours, best[0])]
        yield [
            f"{most} {PEOPLE[cohort]}",
            f"{_WORDS.get(len(shapes), len(shapes))} shapes",
            f"{ours:.1f}",
            f"{nearest:.1f}",
            _more(ours, nearest),
            *theirs,
        ]
