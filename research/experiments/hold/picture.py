"""docs/pictures/hold.svg: which share of flips holds, and how many, against the margin; from the result files alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from research.evidence import files
from research.experiments.hold.cases import AS_CLOSE, ENSEMBLE, MARGINS, UNCHANGED
from research.experiments.hold.points import DATASETS, SOLVERS, Mean, Point, Result, point
from research.experiments.styles import STYLES, marker_size

PICTURE = files.ROOT / "docs" / "pictures" / "hold.svg"
WIDTHS = {"Prices": 2.2, ENSEMBLE: 2.2}  # of lines, those of our own; others 1.2
BASES = {
    UNCHANGED: {"color": "#444444", "linestyle": (0, (6, 3)), "linewidth": 1.4},
    AS_CLOSE: {"color": "#444444", "linestyle": (0, (1, 2)), "linewidth": 1.8},
}
NAMES = {
    ENSEMBLE: "Prices for an Ensemble of 5",
    UNCHANGED: "nobody changed: all in the wanted class by the margin",
    AS_CLOSE: "nobody changed: confidence as asked of flips",
}
SHIFT = 0.006  # between solvers, so that their intervals do not hide each other


def draw(results: Sequence[Result], path: Path) -> Path:
    settings = {"svg.hashsalt": "hold", "svg.fonttype": "none", "font.size": 10}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(10.5, 3.9 * len(results) + 1.2), layout="constrained")
        panels = figure.subplots(len(results), 2, squeeze=False)
        for (left, right), result in zip(panels, results, strict=True):
            _panel(left, result, lambda found: found.share, 100.0, (*SOLVERS, *BASES))
            _panel(right, result, lambda found: found.number, 1.0, SOLVERS)
            left.set(title=f"{DATASETS[result.dataset]}: share of flips that hold", ylabel="%", ylim=(0, 103))
            right.set(title="Number of flips that hold, per cohort", ylabel="people")
            right.set_ylim(bottom=0)
        lines, names = panels[0][0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})
    return path


def _panel(axes: Any, result: Result, value: Callable[[Point], Mean], times: float, lines: Sequence[str]) -> None:
    for k, line in enumerate(lines):
        found = [(margin, value(p)) for margin in MARGINS if (p := point(result, line, margin)) is not None]
        across = [margin + (SHIFT * (k - len(SOLVERS) // 2) if line in SOLVERS else 0.0) for margin, _ in found]
        up = [times * mean.value for _, mean in found]
        if line in BASES:
            axes.plot(across, up, label=NAMES[line], **BASES[line])
        else:
            style = STYLES[line]
            axes.errorbar(
                across,
                up,
                [times * (mean.half or 0.0) for _, mean in found],
                color=style.colour,
                marker=style.marker,
                linestyle=style.line,
                markersize=1.3 * marker_size(style),
                linewidth=WIDTHS.get(line, 1.2),
                capsize=2,
                elinewidth=0.8,
                label=NAMES.get(line, line),
            )
    axes.set(xlabel="margin", xticks=MARGINS)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
