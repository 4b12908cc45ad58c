"""The tables and sentences of docs/hold.md, from the result files alone (evidence/renderers/hold.py)."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.hold.cases import AS_CLOSE, ENSEMBLE, MARGINS, UNCHANGED
from experiments.hold.points import DATASETS, KINDS, SOLVERS, Mean, Result, difference, number_of, point, share_of

LINES = (*SOLVERS, UNCHANGED, AS_CLOSE)


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rest))


def _share(mean: Mean) -> str:
    return f"{100 * mean.value:.0f}" + ("" if mean.half is None else f" ± {100 * mean.half:.0f}") + " %"


def _number(mean: Mean) -> str:
    return f"{mean.value:,.0f}" if mean.value >= 100 else f"{mean.value:.1f}"


def _brief(result: Result, solver: str, margin: float) -> str:
    """Of those flipped, the share and the number that hold; of unchanged people, the share alone."""
    found = point(result, solver, margin)
    if found is None:
        return "none flipped"
    share = _share(found.share)
    return share if solver in (UNCHANGED, AS_CLOSE) else f"{share} of {_number(found.count)}: {_number(found.number)}"


def table(results: Sequence[Result]) -> str:
    """Of each dataset, a line per solver and a column per margin."""
    parts = []
    for result in results:
        head = [DATASETS[result.dataset], *(f"margin {margin:g}" for margin in MARGINS)]
        lines = [[_named(line), *(_brief(result, line, margin) for margin in MARGINS)] for line in LINES]
        parts.append(_markdown([head, *lines]))
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
                    shares = (*found.kinds.values(), found.by_margin, found.anyway)
                    won = "" if found.won is None or solver in (UNCHANGED, AS_CLOSE) else f"{100 * found.won:.0f} %"
                    cells = [
                        *(f"{100 * share:.0f} %" for share in shares),
                        won,
                        f"{found.confidence:.2f}",
                        f"{found.cost:.2f}",
                    ]
                    lines.append([f"{margin:g}", _named(solver), *cells])
        parts.append(f"{DATASETS[result.dataset]}:\n\n{_markdown([head, *lines])}")
    return "\n\n".join(parts)


def _named(line: str) -> str:
    return {ENSEMBLE: "`Prices` for an `Ensemble`", UNCHANGED: "*unchanged*", AS_CLOSE: "*unchanged, as close*"}.get(
        line, f"`{line}`"
    )


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
                f"Without a margin `Prices` flips {_number(first.count)} of {first.people:.0f}, and "
                f"{_share(first.share)} of these hold: {_number(first.number)} people. With {high:g} it flips "
                f"{_number(last.count)}, and {_share(last.share)} hold: {_number(last.number)}."
            )
        if (AS_CLOSE, low) in each and (AS_CLOSE, high) in each:
            lines.append(
                f"Of unchanged people with the same confidence, {_share(each[AS_CLOSE, low].share)} are in the wanted "
                f"class of another model without a margin, and {_share(each[AS_CLOSE, high].share)} at {high:g}."
            )
        lines.append(
            f"Planned against the one network, most hold with `{best[0]}` and a margin of {best[1]:g}: "
            f"{_number(each[best].number)} of the {_number(each[best].count)} flipped. Planned against the ensemble, "
            f"with a margin of {together[1]:g}: {_number(each[together].number)} of {_number(each[together].count)}."
        )
        parts.append(" ".join(lines))
    return "\n\n".join(parts)


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
    return _markdown(lines) + "".join(f"\n\n{name}: not measured yet." for name in absent)


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
    }
    parts = []
    for result in results:
        lines = [[DATASETS[result.dataset], *(f"margin {margin:g}" for margin in MARGINS)]]
        for name, (first, second, value, times) in asked.items():
            found = [difference(result, margin, first, second, value) for margin in MARGINS]
            lines.append([name, *("" if mean is None else _signed(mean, times) for mean in found)])
        parts.append(_markdown(lines))
    return "\n\n".join(parts)


def _signed(mean: Mean, times: float) -> str:
    return f"{times * mean.value:+.1f}" + ("" if mean.half is None else f" ± {times * mean.half:.1f}")
