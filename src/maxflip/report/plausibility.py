"""Whether changed people look like real ones of the wanted class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip.report import charts
from maxflip.report.numbers import number, percent, whole
from maxflip.report.texts import isolated
from maxflip.study.insight import Plausibility


@dataclass(frozen=True)
class Likeness:
    chart: charts.Chart
    sentence: str
    measured: Markup


def likeness(found: Plausibility) -> Likeness | None:
    known = np.isfinite(found.before) & np.isfinite(found.after)
    share = found.far_share
    if not known.any() or share is None:
        return None
    whose = "those picked" if known.all() else f"the {whole(int(known.sum()))} picked of whom it is known"
    rows = [
        ("typical", "Real ones of the wanted class, from each other", charts.Spread(*_typical(found))),
        ("start", "Those picked, before the change", charts.Spread.of(found.before[known])),
        ("flipped", "Those picked, after the change", charts.Spread.of(found.after[known])),
    ]
    chart = charts.spreads("likeness", "Distance to the nearest real person of the wanted class", rows, "distance")
    return Likeness(
        chart,
        sentence=(
            f"{percent(share, 1.0)} of {whose} end farther from every real person of the wanted class than "
            f"95% of those are from each other. Half of {whose} were within {number(rows[1][2].p50, 2)} of one "
            f"before the change, and are within {number(rows[2][2].p50, 2)} after it; among themselves, real ones are "
            f"within {number(rows[0][2].p50, 2)}.{_unknown(int((~known).sum()))}"
        ),
        measured=Markup("{}. Compared with {} real people of {}.").format(
            found.measure, whole(found.references), isolated(found.source)
        ),
    )


def _unknown(count: int) -> str:
    who = "one of those picked" if count == 1 else f"{whole(count)} of those picked"
    return f" Of {who} nothing is known: there are too few real people of their wanted class." if count else ""


def _typical(found: Plausibility) -> list[float]:
    return [float(found.typical[q]) for q in sorted(found.typical)]
