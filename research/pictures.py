"""How pictures of the pages are saved: letters as text, and the same figure as the same file."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from research.evidence.files import ROOT

PICTURES = ROOT / "docs" / "pictures"
INK, QUIET, FAINT = "#1f2328", "#6e7781", "#d0d7de"


def save(figure: Figure, path: Path) -> Path:
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "maxflip"}):
        figure.savefig(path, metadata={"Date": None})
    return path


def plain(axes: Axes) -> Axes:
    """Two edges, and lines to read heights by."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    return axes
