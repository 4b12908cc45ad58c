"""What the result files of experiments/hold.py say: points with intervals, tables and sentences for docs/hold.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from evidence import files
from experiments.held import AS_CLOSE, ENSEMBLE, MARGINS, UNCHANGED, Row

PAGE = files.ROOT / "docs" / "hold.md"
DATASETS = {"credit": "Credit customers", "icu": "Intensive care"}
SOLVERS = ("MS", "BCMS", "CCMS", "KL", "Nearest", "Prices", ENSEMBLE)
LINES = (*SOLVERS, UNCHANGED, AS_CLOSE)
KINDS = {"seed": "other seeds", "bootstrap": "bootstraps", "architecture": "another kind"}
CERTAINTY = 0.95


def name_of(dataset: str) -> str:
    return f"hold_{dataset}"


@dataclass(frozen=True)
class Result:
    dataset: str
    rows: list[Row]
    made: files.Made


def read(folder: Path = files.FOLDER) -> list[Result]:
    """Of the datasets that were measured."""
    found = []
    for dataset in DATASETS:
        if (folder / f"{name_of(dataset)}.parquet").exists():
            table, made = files.read(name_of(dataset), folder)
            found.append(Result(dataset, table.to_pylist(), made))
    return found


@dataclass(frozen=True)
class Mean:
    """of cohorts; half: half the width of the interval, None where there is but one"""

    value: float
    half: float | None


def mean(each: Sequence[float]) -> Mean:
    """With Student's interval."""
    if len(each) < 2:
        return Mean(float(np.mean(each)), None)
    error = np.std(each, ddof=1) / np.sqrt(len(each))
    return Mean(float(np.mean(each)), float(student.ppf(0.5 + CERTAINTY / 2, len(each) - 1) * error))


@dataclass(frozen=True)
class Point:
    """Of one solver and margin, over cohorts and judges.

    count: flipped   share: of these, in the wanted class of a judge   by_margin: ... by the margin   anyway: of these,
    there before any change   won: of those not there before, the share that holds; None where all were   number: that
    hold   kinds: share by kind of judge
    """

    people: float
    count: Mean
    share: Mean
    by_margin: float
    anyway: float
    won: float | None
    number: Mean
    kinds: dict[str, float]
    cost: float
    confidence: float


def point(result: Result, solver: str, margin: float) -> Point | None:
    """None where nobody was flipped in any cohort."""
    rows = [row for row in result.rows if row["solver"] == solver and row["margin"] == margin]
    cohorts = [[row for row in rows if row["seed"] == seed] for seed in dict.fromkeys(row["seed"] for row in rows)]
    flipped = [judges for judges in cohorts if judges[0]["count"]]  # a share of nobody is no number
    if not flipped:
        return None

    def shares(key: str, kind: str | None = None) -> list[float]:
        return [
            float(np.mean([row[key] / row["count"] for row in judges if kind in (None, row["kind"])]))
            for judges in flipped
        ]

    return Point(
        people=float(np.mean([judges[0]["people"] for judges in cohorts])),
        count=mean([judges[0]["count"] for judges in cohorts]),
        share=mean(shares("held")),
        by_margin=float(np.mean(shares("held_with_margin"))),
        anyway=float(np.mean(shares("anyway"))),
        won=_won(rows),
        number=mean([float(np.mean([row["held"] for row in judges])) for judges in cohorts]),
        kinds={kind: float(np.mean(shares("held", kind))) for kind in KINDS},
        cost=float(np.mean([judges[0]["cost"] for judges in flipped])),
        confidence=float(np.mean([judges[0]["confidence"] for judges in flipped])),
    )


def _won(rows: Sequence[Row]) -> float | None:
    """Of all who were not there anyway, over judges and cohorts."""
    others = sum(row["count"] - row["anyway"] for row in rows)
    return sum(row["won"] for row in rows) / others if others else None


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rest))


def _share(mean: Mean) -> str:
    return f"{mean.value:.0%}" + ("" if mean.half is None else f" ± {100 * mean.half:.0f}")


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
                    won = "" if found.won is None or solver in (UNCHANGED, AS_CLOSE) else f"{found.won:.0%}"
                    cells = [*(f"{share:.0%}" for share in shares), won, f"{found.confidence:.2f}", f"{found.cost:.2f}"]
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
    lines = [["", "cohorts", "people in each", "judges (AUC)", "made by", "on", "commit", "minutes on one core"]]
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
                f"{(result.made.seconds or 0) / 60:.1f}",
            ]
        )
    return _markdown(lines)


PARTS = {"table": table, "detail": detail, "said": said, "made": made}


def rendered(page: str, results: Sequence[Result]) -> str:
    """The page with its marked parts as these results have them."""
    for name, part in PARTS.items():
        begin, end = f"<!-- hold.{name} -->", "<!-- end -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        text = f"{begin}\n{part(results)}\n{end}"
        page, times = pattern.subn(lambda _, text=text: text, page)  # type: ignore[misc]
        if times != 1:
            raise ValueError(f"the page has {times} parts {begin}; wanted one.")
    return page


def renew(results: Sequence[Result], page: Path = PAGE) -> None:
    page.write_text(rendered(page.read_text(), results))
