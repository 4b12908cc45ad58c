"""Whether changed people look like real people of the wanted class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip.report import charts
from maxflip.report.numbers import counted, number, percent, whole
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
    whose = "" if known.all() else f" of the {counted(int(known.sum()), 'person', 'people')} for whom this is known"
    rows = [
        ("typical", "Real people of the wanted class", charts.Quantiles(*_typical(found))),
        ("start", "People picked, before the change", charts.Quantiles.of(found.before[known])),
        ("flipped", "People picked, after the change", charts.Quantiles.of(found.after[known])),
    ]
    chart = charts.box_plots("likeness", "Distance to the nearest real person of the wanted class", rows, "distance")
    return Likeness(
        chart,
        sentence=(
            f"{percent(share, 1.0)}{whose} would look unusual among real people of the wanted class: they are farther "
            "from the nearest one than 95% of real people are from each other. The median distance to the nearest "
            f"real person is {number(rows[1][2].p50, 2)} before the change and {number(rows[2][2].p50, 2)} after it; "
            f"among real people it is {number(rows[0][2].p50, 2)}.{_unknown(int((~known).sum()))}"
        ),
        measured=Markup("{}. Compared with {} of {}.").format(
            found.measure, counted(found.references, "real person", "real people"), isolated(found.source)
        ),
    )


def _unknown(count: int) -> str:
    who = "one person picked" if count == 1 else f"{whole(count)} people picked"
    return f" For {who} this is not known: there are too few real people of their wanted class." if count else ""


def _typical(found: Plausibility) -> list[float]:
    return [float(found.typical[q]) for q in sorted(found.typical)]
