"""The tables and sentences of docs/results/hold.md, from the result files alone (evidence/renderers/hold.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from research.experiments.hold.cases import AS_CLOSE, ENSEMBLE, MARGINS, UNCHANGED
from research.experiments.hold.points import (
    DATASETS,
    KINDS,
    SOLVERS,
    Point,
    Result,
    difference,
    number_of,
    point,
    share_of,
)
from research.experiments.hold.words import (
    STANDINGS,
    all_of,
    at_margin,
    markdown,
    named,
    number,
    share,
    signed,
    standing,
)

LINES = (*SOLVERS, UNCHANGED, AS_CLOSE)
OTHERS = tuple(solver for solver in SOLVERS if solver not in ("Prices", ENSEMBLE))


def _brief(result: Result, solver: str, margin: float) -> str:
    """Of those flipped, the share and the number that hold; of unchanged people, the share alone."""
    found = point(result, solver, margin)
    if found is None:
        return "none flipped"
    said = f"{share(found.share)}{_fewer_cohorts(found)}"
    return said if solver in (UNCHANGED, AS_CLOSE) else f"{said} of {number(found.count)}: {number(found.number)}"


def _fewer_cohorts(found: Point) -> str:
    """A share of nobody is no number: then it is the mean of fewer cohorts than the count is."""
    return f" ({found.some} of {found.cohorts} cohorts)" if found.some < found.cohorts else ""


def table(results: Sequence[Result]) -> str:
    """Of each dataset, a line per solver and a column per margin."""
    parts = []
    for result in results:
        head = [DATASETS[result.dataset], *(f"margin {margin:g}" for margin in MARGINS)]
        lines = [[named(line), *(_brief(result, line, margin) for margin in MARGINS)] for line in LINES]
        parts.append(markdown([head, *lines]))
    return "\n\n".join(parts)


def detail(results: Sequence[Result]) -> str:
    head = [
        "margin",
        "solver",
        *KINDS.values(),
        "by the margin too",
        "there anyway",
        "of the others",
        "confidence",
        "cost of a flip",
    ]
    parts = []
    for result in results:
        lines = []
        for margin in MARGINS:
            for solver in LINES:
                found = point(result, solver, margin)
                if found is not None:
                    of_them = (*found.kinds.values(), found.by_margin, found.anyway)
                    won = "" if found.won is None or solver in (UNCHANGED, AS_CLOSE) else f"{100 * found.won:.0f} %"
                    cells = [
                        *(f"{100 * part:.0f} %" for part in of_them),
                        won,
                        f"{found.confidence:.2f}",
                        f"{found.cost:.2f}",
                    ]
                    lines.append([f"{margin:g}", f"{named(solver)}{_fewer_cohorts(found)}", *cells])
        parts.append(f"{DATASETS[result.dataset]}:\n\n{markdown([head, *lines])}")
    return "\n\n".join(parts)


def said(results: Sequence[Result]) -> str:
    """What stands out, in sentences; each is a number of the file."""
    parts = []
    for result in results:
        each = {(s, m): found for s in LINES for m in MARGINS if (found := point(result, s, m)) is not None}
        alone = {key: found for key, found in each.items() if key[0] in SOLVERS and key[0] != ENSEMBLE}
        low, high = MARGINS[0], MARGINS[-1]
        best = max(alone, key=lambda key: alone[key].number.value)
        together = max((key for key in each if key[0] == ENSEMBLE), key=lambda key: each[key].number.value)
        lines = [f"**{DATASETS[result.dataset]}.**"]
        if ("Prices", low) in each and ("Prices", high) in each:
            first, last = each["Prices", low], each["Prices", high]
            lines.append(
                f"Without a margin `Prices` flips {number(first.count)} of {first.people:.0f}, and "
                f"{share(first.share)} of these hold: {number(first.number)} people. With {high:g} it flips "
                f"{number(last.count)}, and {share(last.share)} hold: {number(last.number)}."
            )
        if (AS_CLOSE, low) in each and (AS_CLOSE, high) in each:
            lines.append(
                f"Of unchanged people with the same confidence, {share(each[AS_CLOSE, low].share)} are in the wanted "
                f"class of another model without a margin, and {share(each[AS_CLOSE, high].share)} at {high:g}."
            )
        lines.append(
            f"Planned against the one network, most hold with `{best[0]}` and a margin of {best[1]:g}: "
            f"{number(each[best].number)} of the {number(each[best].count)} flipped. Planned against the ensemble, "
            f"with a margin of {together[1]:g}: {number(each[together].number)} of {number(each[together].count)}."
        )
        lines += [*_best_margins(each), *_at_their_best(result, each), *_beside_the_others(result)]
        parts.append(" ".join(lines))
    return "\n\n".join(parts)


Points = dict[tuple[str, float], Point]


def _best_of(each: Points, solver: str) -> float:
    """The margin with which most hold."""
    return max((margin for of, margin in each if of == solver), key=lambda margin: each[solver, margin].number.value)


def _best_margins(each: Points) -> Iterator[str]:
    """Where the number that holds is largest, solver by solver."""
    best = {solver: _best_of(each, solver) for solver in SOLVERS if any(of == solver for of, _ in each)}
    found = [(margin, [named(solver) for solver in best if best[solver] == margin]) for margin in MARGINS]
    where = [f"{at_margin(margin)} for {all_of(names)}" for margin, names in found if names]
    yield f"The number that holds is largest {'; '.join(where)}."


def _at_their_best(result: Result, each: Points) -> Iterator[str]:
    if {"Prices", ENSEMBLE} <= {solver for solver, _ in each}:
        ours, alone = (_best_of(each, solver) for solver in (ENSEMBLE, "Prices"))
        found = difference(result, ours, ENSEMBLE, "Prices", number_of, alone)
        if found is not None:
            yield (
                "Each with the margin that is best for it, the ensemble is "
                f"{standing(found)} the network alone: {signed(found)} people."
            )


def _beside_the_others(result: Result) -> Iterator[str]:
    """Whom `Prices` is ahead of in the number that holds, and whom not."""
    found = {margin: said for margin in MARGINS if (said := _stands(result, margin))}
    alike = {said: [margin for margin in found if found[margin] == said] for said in found.values()}
    if alike:
        listed = "; ".join(f"{at_margin(*margins)} {said}" for said, margins in alike.items())
        yield f"In the number that holds, `Prices` is {listed}."


def _stands(result: Result, margin: float) -> str:
    """Beside the other solvers, in words; nothing where there are no intervals."""
    each = {other: difference(result, margin, "Prices", other, number_of) for other in OTHERS}
    known = {named(other): standing(mean) for other, mean in each.items() if mean is not None and mean.half is not None}
    groups = {words: [name for name in known if known[name] == words] for words in dict.fromkeys(known.values())}
    if len(groups) == 1 and len(known) == len(OTHERS):
        return f"{next(iter(groups))} all others"
    return ", ".join(f"{words} {all_of(groups[words])}" for words in STANDINGS if words in groups)


def made(results: Sequence[Result]) -> str:
    """How each file was made, in its own words."""
    lines = [["", "cohorts", "people in each", "judges (AUC)", "made by", "on", "commit", "processor minutes"]]
    for result in results:
        rows = [row for row in result.rows if row["auc"] is None]
        quality = {row["judge"]: row["auc"] for row in result.rows if row["auc"] is not None}
        lines.append(
            [
                DATASETS[result.dataset],
                str(len({row["seed"] for row in rows})),
                " or ".join(sorted({str(row["people"]) for row in rows})),
                f"{len(quality)} ({min(quality.values()):.3f} to {max(quality.values()):.3f})",
                f"`{result.made.command}`",
                f"{result.made.date}, {result.made.machine}, torch {result.made.versions['torch']}",
                result.made.commit,
                f"{_processor_seconds(result) / 60:.1f}",
            ]
        )
    absent = [name for dataset, name in DATASETS.items() if dataset not in {result.dataset for result in results}]
    return markdown(lines) + "".join(f"\n\n{name}: not measured yet." for name in absent)


def _processor_seconds(result: Result) -> float:
    """Of plans and base lines; every row of a plan, and of a cohort's base lines, names what these took together."""
    bases = (UNCHANGED, AS_CLOSE)
    each: dict[tuple[object, ...], float] = {
        (row["seed"], *(("base lines",) if row["solver"] in bases else (row["solver"], row["margin"]))): row["seconds"]
        for row in result.rows
    }
    return sum(each.values())


def differences(results: Sequence[Result]) -> str:
    """Of two lines, cohort by cohort."""
    asked = {
        "`Prices` less *unchanged, as close*: share that holds, points": ("Prices", AS_CLOSE, share_of, 100.0),
        "`Ensemble` less `Prices`: share that holds, points": (ENSEMBLE, "Prices", share_of, 100.0),
        "`Ensemble` less `Prices`: number that holds": (ENSEMBLE, "Prices", number_of, 1.0),
        **{f"`Prices` less `{other}`: number that holds": ("Prices", other, number_of, 1.0) for other in OTHERS},
    }
    parts = []
    for result in results:
        lines = [[DATASETS[result.dataset], *(f"margin {margin:g}" for margin in MARGINS)]]
        for name, (first, second, value, times) in asked.items():
            found = [difference(result, margin, first, second, value) for margin in MARGINS]
            lines.append([name, *("" if mean is None else signed(mean, times) for mean in found)])
        parts.append(markdown(lines))
    return "\n\n".join(parts)
