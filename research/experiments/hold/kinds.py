"""What judges of each kind say by themselves: networks trained again, and models of another kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from research.experiments.cohorts import MARGIN
from research.experiments.hold.cases import AS_CLOSE, ENSEMBLE, MARGINS
from research.experiments.hold.points import (
    DATASETS,
    KINDS,
    Mean,
    Point,
    Result,
    difference,
    number_of,
    of_kind,
    point,
    share_of,
)
from research.experiments.hold.words import all_of, markdown, number, often, share, signed, where

ANOTHER = "architecture"
HEAD = (
    "margin",
    "judges",
    "`Prices`",
    "*unchanged, as close*",
    "`Prices` less these, points",
    "`Ensemble` less `Prices`, points",
    "`Ensemble` less `Prices`, people",
    "there anyway",
    "of the others",
)


def kinds(results: Sequence[Result]) -> str:
    """Of each dataset, a line per margin and kind of judge."""
    parts = []
    for result in results:
        lines = [[f"{margin:g}", *_line(result, margin, kind)] for margin in MARGINS for kind in KINDS]
        parts.append(f"{DATASETS[result.dataset]}:\n\n{markdown([HEAD, *lines])}")
    return "\n\n".join(parts)


def _line(result: Result, margin: float, kind: str) -> Iterator[str]:
    judged = of_kind(result, kind)
    yield f"{KINDS[kind]} ({len({row['judge'] for row in judged.rows})})"
    ours, alike = (point(judged, line, margin) for line in ("Prices", AS_CLOSE))
    yield from ("" if found is None else share(found.share) for found in (ours, alike))
    yield _signed(gap(judged, margin), 100.0)
    yield _signed(difference(judged, margin, ENSEMBLE, "Prices", share_of), 100.0)
    yield _signed(difference(judged, margin, ENSEMBLE, "Prices", number_of), 1.0)
    yield "" if ours is None else _percent(ours.anyway)
    yield "" if ours is None or ours.won is None else _percent(ours.won)


def gap(result: Result, margin: float) -> Mean | None:
    """What flips fall short of unchanged people who stand as close to the line."""
    return difference(result, margin, "Prices", AS_CLOSE, share_of)


def _signed(mean: Mean | None, times: float) -> str:
    return "" if mean is None else signed(mean, times)


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def short(results: Sequence[Result]) -> str:
    """What the kinds of judges say, in sentences; which margins are named goes by the intervals."""
    return "\n".join(f"- **{DATASETS[result.dataset]}.** {' '.join(_sentences(result))}" for result in results)


def _sentences(result: Result) -> Iterator[str]:
    points = {kind: _points(of_kind(result, kind)) for kind in KINDS}
    asked = all_of([f"{margin:g}" for margin in points[ANOTHER]])
    each = [f"{_shares(points[kind], lambda found: found.share.value)} in {KINDS[kind]}" for kind in KINDS]
    yield f"Of `Prices`' flips by margins of {asked}, there hold {'; '.join(each)}."
    gaps = {kind: _gaps(of_kind(result, kind)) for kind in KINDS}
    if all(gaps.values()):
        said = [f"in {KINDS[kind]} {where(gaps[kind])}" for kind in KINDS]
        listed = all_of([signed(mean, 100.0) for mean in gaps[ANOTHER].values()])
        yield f"Beside unchanged people as close to the line: {'; '.join(said)} (there by {listed} points)."
    if all(found.won is not None for found in points[ANOTHER].values()):
        won = _shares(points[ANOTHER], lambda found: found.won or 0.0)
        yield f"Not counting people who passed in them before any change, {won} hold in these."
    yield from _of_the_ensemble(of_kind(result, ANOTHER))


def _of_the_ensemble(other: Result) -> Iterator[str]:
    """Whose members are all of one kind: what it buys in another."""
    shares = _by_margin(lambda margin: difference(other, margin, ENSEMBLE, "Prices", share_of))
    people = _by_margin(lambda margin: difference(other, margin, ENSEMBLE, "Prices", number_of))
    if shares and people:
        listed = all_of([signed(mean, 100.0) for mean in shares.values()])
        yield (
            "Flips for the ensemble hold in another kind, beside those for the network alone: as a share, "
            f"{where(shares)} ({listed} points); in number, "
            f"{where(people, 'clearly fewer people', 'clearly more people')}."
        )


def _gaps(result: Result) -> dict[float, Mean]:
    return _by_margin(lambda margin: gap(result, margin))


def _points(result: Result) -> dict[float, Point]:
    return {margin: found for margin in MARGINS if (found := point(result, "Prices", margin)) is not None}


def _by_margin(asked: Callable[[float], Mean | None]) -> dict[float, Mean]:
    return {margin: mean for margin in MARGINS if (mean := asked(margin)) is not None}


def _shares(points: dict[float, Point], part: Callable[[Point], float]) -> str:
    return f"{all_of([f'{100 * part(found):.0f}' for found in points.values()])} %"


def in_brief(result: Result) -> Iterator[str]:
    """One dataset in docs/results.md: with the study's margin and with the largest, beside unchanged people; and in
    models of another kind alone, not counting people who passed there before any change."""
    margins = (MARGIN, MARGINS[-1])
    own = [point(result, "Prices", margin) for margin in margins]
    gaps = [gap(result, margin) for margin in margins]
    another = [point(of_kind(result, ANOTHER), "Prices", margin) for margin in margins]
    if None in own or None in gaps or None in another:
        return
    shares = ", ".join(
        f"{share(at.share)} with a margin of {margin:g} ({number(at.count)} of {at.people:.0f} flipped)"
        for margin, at in zip(margins, own, strict=True)
        if at is not None
    )
    beside = " and ".join(f"{often(found)} ({signed(found, 100)} points)" for found in gaps if found is not None)
    won = [_percent(at.won) for at in another if at is not None and at.won is not None]
    yield f"{DATASETS[result.dataset]}: {shares}; that is, beside unchanged people as close to the line, {beside}."
    if won:
        yield f"In models of another kind, {all_of(won)} not counting people who passed there before any change."
