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
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle
from numpy.typing import NDArray
from torch import nn

from maxflip import Problem, TorchClassifier
from maxflip.judge import confidence_after, is_flip
from maxflip.search import FeaturePrices, cheapest_flips
from research.evidence.files import made_here
from research.evidence.report import report
from research.pictures import INK, PICTURES, QUIET, save

Floats = NDArray[np.float64]
MARGIN = 0.1
START = np.array([1.05, 0.4])
LIMITS = {"x0": (0.3, 1.8), "x1": (0.1, 0.9)}
WINDOW = (-0.5, 2.2, -0.7, 1.3)  # left, right, bottom, top
CELLS = (135, 100)
FINE = 2001

INSIDE, LEVELS = (MARGIN, 0.5, 0.9), (-0.9, -0.5, -0.1)  # of the confidence
WANTED = "#0b7a75"
SAID = (
    f"Thick line: confidence {MARGIN}, shaded beyond it (deeper from 0.5 and 0.9); thin lines: -0.1, -0.5, -0.9.\n"
    "Ellipse: all changes that cost as much as the flip of its colour, at the same prices."
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
    label_at: tuple[float, float]  # points from the flip

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


def picture(values: Floats, flips: list[Flip]) -> Figure:
    """values: of the confidence, on the grid"""
    left, right, bottom, top = WINDOW
    figure = Figure(figsize=(7.6, 6.2), layout="constrained")
    axes = figure.subplots()
    x, y = np.moveaxis(grid(CELLS[0] + 1, CELLS[1] + 1), -1, 0)
    for level in INSIDE:
        axes.contourf(x, y, values, (level, np.inf), colors=WANTED, alpha=0.13)
    axes.contour(x, y, values, LEVELS, colors=QUIET, linewidths=0.6, linestyles="solid", alpha=0.5)
    axes.contour(x, y, values, (MARGIN,), colors=WANTED, linewidths=2)
    (low_x, high_x), (low_y, high_y) = LIMITS.values()
    axes.add_patch(Rectangle((low_x, low_y), high_x - low_x, high_y - low_y, fill=False, linestyle="--"))
    axes.annotate("limits", (low_x, high_y), (4, -12), textcoords="offset points", color=QUIET)
    for flip in flips:
        end = START + flip.change
        across, up = (2 * math.sqrt(flip.cost / price) for price in flip.prices)
        axes.add_patch(Ellipse(tuple(START), across, up, fill=False, color=flip.colour, linewidth=1.3))
        axes.plot(*zip(START, end, strict=True), color=flip.colour, linewidth=2)
        axes.plot(*end, color=flip.colour, marker="o")
        axes.annotate(flip.name, tuple(end), flip.label_at, textcoords="offset points", color=flip.colour)
    axes.plot(*START, color=INK, marker="o", markersize=7)
    axes.annotate("start", tuple(START), (-34, -3), textcoords="offset points", color=INK)
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal", xticks=[], yticks=[], xlabel=SAID)
    return figure


def asked() -> tuple[Floats, list[Flip]]:
    """The confidence on the grid, and the flips."""
    net = trained()
    free, limited = problem_of(net), problem_of(net, limits=LIMITS)
    across, down = np.array([1.0, 4.0]), np.array([4.0, 1.0])
    return confidence_on_grid(free), [
        flip_of(free, across, "1: prices (1, 4)", "#b35900", (9, 5)),
        flip_of(free, down, "2: prices (4, 1)", "#6f42c1", (12, -26)),
        flip_of(limited, down, "3: prices (4, 1), within the limits", "#c2255c", (9, -10)),
    ]


def main() -> None:
    torch.set_num_threads(1)
    confidence, flips = asked()
    save(picture(confidence, flips), PICTURES / "flip.svg")
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
