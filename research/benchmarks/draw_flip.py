"""One flip in two dimensions: `python -m research.benchmarks.draw_flip` draws docs/pictures/flip.svg for docs/flips.md.

A tanh network is trained on two half-moons; maxflip finds the cheapest flips of one sample at two price vectors, and at
the second once more within limits. All that is drawn is computed: the confidence on a grid, the flips, and for each
flip the ellipse of all changes that cost the same. Its table stands in the page too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import Problem, TorchClassifier
from maxflip.judge import confidence_after, is_flip
from maxflip.search import FeaturePrices, cheapest_flips
from research.evidence.files import ROOT, made_here
from research.evidence.report import report

Floats = NDArray[np.float64]
MARGIN = 0.1
START = np.array([1.05, 0.4])
LIMITS = {"x0": (0.3, 1.8), "x1": (0.1, 0.9)}
WINDOW = (-0.5, 2.2, -0.7, 1.3)  # left, right, bottom, top
SCALE = 270.0  # pixels per unit
CELLS = (135, 100)
FINE = 2001

STYLE = """
  :root { --paper: #ffffff; --ink: #1f2328; --quiet: #6e7781; --wanted: #0b7a75;
    --one: #b35900; --two: #6f42c1; --three: #c2255c; }
  @media (prefers-color-scheme: dark) {
    :root { --paper: #0d1117; --ink: #e6edf3; --quiet: #8b949e; --wanted: #3fb8af;
      --one: #f0a04b; --two: #b392f0; --three: #ff7eb0; }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); }
  .note { fill: var(--quiet); }
  .inside { fill: var(--wanted); fill-opacity: 0.13; fill-rule: evenodd; }
  .level { fill: none; stroke: var(--quiet); stroke-opacity: 0.45; stroke-width: 0.8; }
  .surface { fill: none; stroke: var(--wanted); stroke-width: 2.4; }
  .limits { fill: none; stroke: var(--ink); stroke-width: 1.3; stroke-dasharray: 6 4; }
  .same { fill: none; stroke-width: 1.5; }
  .move { stroke-width: 2.2; }
  .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round; }
"""

LEGEND = (
    f"thick line: confidence {MARGIN}, shaded beyond it (deeper from 0.5 and 0.9); thin lines: -0.1, -0.5, -0.9;",
    "ellipse: all changes that cost as much as the flip of its colour, at the same prices",
)


@dataclass(frozen=True, eq=False)
class Flip:
    """A flip as it is drawn: prices and change (2,); `on_grid` is the cheapest cost of all points of a fine grid."""

    name: str
    colour: str
    prices: Floats
    change: Floats
    confidence: float
    on_grid: float
    label_at: tuple[float, float]  # pixels from the flip

    @property
    def cost(self) -> float:
        return float(self.prices @ self.change**2)


def moons(samples: int = 600) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, math.pi, samples)
    label = np.arange(samples) % 2
    x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
    points = np.stack([x, y], axis=1) + 0.22 * rng.normal(size=(samples, 2))
    return torch.tensor(points, dtype=torch.float32), torch.tensor(label)


def trained() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
    points, labels = moons()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=1e-3)
    for _ in range(200):
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(net(points), labels))
        optimizer.step()
    return net.eval()


def problem_of(net: nn.Module, **options: Any) -> Problem:
    classifier = TorchClassifier(net, output="logits")
    cohort = START[None, :]
    return Problem(
        classifier=classifier, cohort=cohort, target=1, margin=MARGIN, budgets={"x0": 1.0, "x1": 1.0}, **options
    )


def flip_of(problem: Problem, prices: Floats, name: str, colour: str, label_at: tuple[float, float]) -> Flip:
    found = cheapest_flips(problem, np.array([0]), FeaturePrices.at(problem, prices))
    if not found.found[0]:
        raise SystemExit(f"no flip was found at prices {prices}")
    confidence = float(confidence_after(problem, found.rows, found.changes)[0])
    return Flip(name, colour, prices, found.changes[0], confidence, cheapest_on_grid(problem, prices), label_at)


def cheapest_on_grid(problem: Problem, prices: Floats) -> float:
    """Over all points of the window, FINE in each direction, that the limits allow and that pass."""
    low, high = problem.box(np.array([0]))
    changes = grid(FINE, FINE).reshape(-1, 2) - START
    changes = changes[((changes >= low) & (changes <= high)).all(axis=1)]
    passing = is_flip(problem, np.zeros(len(changes), np.int64), changes)
    return float((changes[passing] ** 2 @ prices).min())


def grid(columns: int, rows: int) -> Floats:
    """(columns, rows, 2): points over the whole window"""
    left, right, bottom, top = WINDOW
    axes = np.linspace(left, right, columns), np.linspace(bottom, top, rows)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def confidence_on_grid(problem: Problem) -> Floats:
    """(columns + 1, rows + 1)"""
    points = grid(CELLS[0] + 1, CELLS[1] + 1)
    changes = points.reshape(-1, 2) - START
    return confidence_after(problem, np.zeros(len(changes), np.int64), changes).reshape(points.shape[:2])


def pixel(x: float, y: float) -> tuple[float, float]:
    return (x - WINDOW[0]) * SCALE, (WINDOW[3] - y) * SCALE


Point = tuple[float, float]


def marching_squares(values: Floats, level: float) -> list[list[Point]]:
    """Lines, in cells of the grid, on which the values equal `level`; closed ones end where they begin."""
    above = values >= level
    steps: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
    # An edge is (column, row, 0) toward the next column or (column, row, 1) toward the next row.
    for i, j in np.ndindex(values.shape[0] - 1, values.shape[1] - 1):
        edges = [(i, j, 0), (i + 1, j, 1), (i, j + 1, 0), (i, j, 1)]
        corners = [above[i, j], above[i + 1, j], above[i + 1, j + 1], above[i, j + 1]]
        crossed = [e for e, a, b in zip(edges, corners, corners[1:] + corners[:1], strict=True) if a != b]
        if len(crossed) == 4 and corners[0] == (values[i : i + 2, j : j + 2].mean() >= level):
            crossed = [crossed[0], crossed[1], crossed[2], crossed[3]]  # a saddle: cut off the other two corners
        elif len(crossed) == 4:
            crossed = [crossed[3], crossed[0], crossed[1], crossed[2]]
        for a, b in zip(crossed[::2], crossed[1::2], strict=True):
            steps.setdefault(a, []).append(b)
            steps.setdefault(b, []).append(a)

    def place(edge: tuple[int, int, int]) -> Point:
        i, j, along_rows = edge
        k, m = (i, j + 1) if along_rows else (i + 1, j)
        part = float((level - values[i, j]) / (values[k, m] - values[i, j]))
        return i + part * (k - i), j + part * (m - j)

    lines = []
    ends = [e for e, others in steps.items() if len(others) == 1]
    for begin in [*ends, *steps]:
        line = [begin]
        while steps[line[-1]]:
            following = steps[line[-1]].pop()
            steps[following].remove(line[-1])
            line.append(following)
        if len(line) > 1:
            lines.append([place(e) for e in line])
    return lines


def path(lines: list[list[Point]]) -> str:
    left, right, bottom, top = WINDOW
    parts = []
    for line in lines:
        pixels = [pixel(left + u * (right - left) / CELLS[0], bottom + v * (top - bottom) / CELLS[1]) for u, v in line]
        parts.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in pixels))
    return "".join(parts)


def region(values: Floats, level: float) -> str:
    """The outline of where the values are at least `level`, closed along the window's edge."""
    ring = np.pad(values, 1, constant_values=level - 1e3)
    lines = marching_squares(ring, level)
    (columns, rows) = CELLS
    return path([[(min(max(u - 1, 0), columns), min(max(v - 1, 0), rows)) for u, v in line] for line in lines]) + "Z"


def drawn_flip(flip: Flip) -> str:
    x, y = pixel(*START)
    to_x, to_y = pixel(*(START + flip.change))
    rx, ry = (math.sqrt(flip.cost / price) * SCALE for price in flip.prices)
    label_x, label_y = to_x + flip.label_at[0], to_y + flip.label_at[1]
    return f"""
  <g stroke="{flip.colour}" fill="{flip.colour}">
    <ellipse class="same" cx="{x:.1f}" cy="{y:.1f}" rx="{rx:.1f}" ry="{ry:.1f}"/>
    <line class="move" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>
    <circle cx="{to_x:.1f}" cy="{to_y:.1f}" r="5" stroke="none"/>
  </g>
  <text class="halo" x="{label_x:.1f}" y="{label_y:.1f}" style="fill: {flip.colour}">{flip.name}</text>"""


def svg(values: Floats, flips: list[Flip]) -> str:
    left, right, bottom, top = WINDOW
    width, height = (right - left) * SCALE, (top - bottom) * SCALE
    x, y = pixel(*START)
    box_x, box_y = pixel(LIMITS["x0"][0], LIMITS["x1"][1])
    box_width = (LIMITS["x0"][1] - LIMITS["x0"][0]) * SCALE
    box_height = (LIMITS["x1"][1] - LIMITS["x1"][0]) * SCALE
    inside = "\n".join(f'  <path class="inside" d="{region(values, level)}"/>' for level in (MARGIN, 0.5, 0.9))
    levels = path([line for level in (-0.9, -0.5, -0.1) for line in marching_squares(values, level)])
    surface = path(marching_squares(values, MARGIN))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height + 44:.0f}" role="img">
  <title>The cheapest flips of one sample at two price vectors, and within limits</title>
  <style>{STYLE}  </style>
  <rect width="{width:.0f}" height="{height + 44:.0f}" fill="var(--paper)"/>
{inside}
  <path class="level" d="{levels}"/>
  <path class="surface" d="{surface}"/>
  <rect class="limits" x="{box_x:.1f}" y="{box_y:.1f}" width="{box_width:.1f}" height="{box_height:.1f}"/>
  <text class="note halo" x="{box_x + 6:.1f}" y="{box_y + 16:.1f}">limits</text>
{"".join(drawn_flip(flip) for flip in flips)}
  <circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="var(--ink)" stroke="var(--paper)" stroke-width="1.5"/>
  <text class="halo" x="{x - 46:.1f}" y="{y + 4:.1f}">start</text>
  <text class="note" x="8" y="{height + 18:.0f}">{LEGEND[0]}</text>
  <text class="note" x="8" y="{height + 36:.0f}">{LEGEND[1]}</text>
</svg>
"""


def main() -> None:
    torch.set_num_threads(1)
    net = trained()
    free, limited = problem_of(net), problem_of(net, limits=LIMITS)
    across, down = np.array([1.0, 4.0]), np.array([4.0, 1.0])
    flips = [
        flip_of(free, across, "1: prices (1, 4)", "var(--one)", (14, -4)),
        flip_of(free, down, "2: prices (4, 1)", "var(--two)", (20, 40)),
        flip_of(limited, down, "3: prices (4, 1), within the limits", "var(--three)", (14, 12)),
    ]
    (ROOT / "docs" / "pictures" / "flip.svg").write_text(svg(confidence_on_grid(free), flips))
    rows = [
        {
            "flip": flip.name,
            "change": flip.change.tolist(),
            "cost": flip.cost,
            "on_grid": flip.on_grid,
            "confidence": flip.confidence,
        }
        for flip in flips
    ]
    report({"flip_picture": rows}, made_here("python -m research.benchmarks.draw_flip"), ["flips.picture"], keep=True)


if __name__ == "__main__":
    main()
