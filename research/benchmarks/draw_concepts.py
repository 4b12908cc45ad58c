"""Five pictures for docs/concepts.md: `python -m research.benchmarks.draw_concepts` draws docs/pictures/concept-*.svg.

Eighty people with two features, a linear model, so that all of it can be seen in the plane and every plan is proved
the best. Everything drawn is from solves of that one problem, with other budgets or another margin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip import Cohort, Fate, Nearest, Plan, Problem, TorchClassifier, resolve, solve

Floats = NDArray[np.float64]
WEIGHTS, BIAS, MARGIN = np.array([-0.35, -0.06]), 17.6, 0.1  # logit of "well": BIAS + WEIGHTS . (bmi, pressure)
BUDGETS = {"bmi": 40.0, "pressure": 800.0}
WIDTH, HEIGHT = 560.0, 330.0
LEFT, RIGHT, TOP, FOOT = 64.0, 150.0, 40.0, 52.0
LEAST = (27.5, 131.0)  # limits of the last picture
BMI, PRESSURE = (20.0, 36.0), (95.0, 165.0)  # the window

STYLE = """
  :root { --paper: #ffffff; --ink: #1f2328; --quiet: #6e7781; --faint: #d0d7de;
    --already: #57a0c9; --flipped: #0b7a75; --left_out: #8a94a0; --unreachable: #b35900; --wanted: #0b7a75; }
  @media (prefers-color-scheme: dark) {
    :root { --paper: #0d1117; --ink: #e6edf3; --quiet: #8b949e; --faint: #30363d;
      --already: #74b9f5; --flipped: #3fb8af; --left_out: #8b949e; --unreachable: #f0a04b; --wanted: #3fb8af; }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); }
  .note { fill: var(--quiet); }
  .grid { stroke: var(--faint); stroke-width: 1; }
  .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
  .wide { stroke-width: 8; stroke-opacity: 0.45; }
  .dashed { stroke-dasharray: 6 4; }
  .move { stroke: var(--flipped); stroke-width: 1.4; }
  .limit { stroke: var(--ink); stroke-width: 1.2; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
"""


def question() -> Problem:
    rng = np.random.default_rng(4)
    people = rng.normal([28.0, 132.0], [2.6, 11.0], size=(80, 2))
    net = torch.nn.Linear(2, 2, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(np.stack([0 * WEIGHTS, WEIGHTS])))
        net.bias.copy_(torch.tensor([0.0, BIAS]))
    return Problem(
        classifier=TorchClassifier(net, output="logits", classes=["ill", "well"]),
        cohort=Cohort.table(people, features=["bmi", "pressure"]),
        target="well",
        margin=MARGIN,
        budgets=BUDGETS,
    )


@dataclass(frozen=True)
class Frame:
    """A window in units of the data, on paper."""

    x: tuple[float, float]
    y: tuple[float, float]
    x_name: str
    y_name: str

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - FOOT - up * (HEIGHT - TOP - FOOT)

    def axes(self, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> str:
        parts = []
        for tick in y_ticks:
            x, y = self.at(self.x[0], tick)
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text class="note end" x="{x - 8:.1f}" y="{y + 4:.1f}">{tick:g}</text>')
        for tick in x_ticks:
            x, y = self.at(tick, self.y[0])
            parts.append(f'<text class="note middle" x="{x:.1f}" y="{y + 20:.1f}">{tick:g}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(f'<text class="note middle" x="{middle:.1f}" y="{HEIGHT - 12:.1f}">{escape(self.x_name)}</text>')
        parts.append(f'<text class="note" x="8" y="{TOP - 16:.1f}">{escape(self.y_name)}</text>')
        return "\n  ".join(parts)

    def line(self, points: Sequence[tuple[float, float]], colour: str, kind: str = "", dots: bool = True) -> str:
        places = [self.at(x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        marks = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places) if dots else ""
        return f'<g fill="{colour}"><polyline class="line {kind}" stroke="{colour}" points="{path}"/>{marks}</g>'

    def label(
        self, x: float, y: float, text: str, colour: str = "var(--ink)", shift: tuple[float, float] = (9, 4)
    ) -> str:
        left, top = self.at(x, y)
        return f'<text x="{left + shift[0]:.1f}" y="{top + shift[1]:.1f}" style="fill: {colour}">{escape(text)}</text>'


PLANE = Frame(BMI, PRESSURE, "bmi, kg/m²", "blood pressure, mmHg")


def pressure_on_line(bmi: float, margin: float) -> float:
    """Where the confidence is just `margin`."""
    return float((2 * np.arctanh(margin) - BIAS - WEIGHTS[0] * bmi) / WEIGHTS[1])


def surface(margin: float) -> str:
    """The line of a margin, within the window."""
    slope = pressure_on_line(1.0, margin) - pressure_on_line(0.0, margin)
    at_edges = [(p - pressure_on_line(0.0, margin)) / slope for p in (PRESSURE[1], PRESSURE[0])]
    ends = [(b, pressure_on_line(b, margin)) for b in np.clip(at_edges, *BMI).tolist()]
    return PLANE.line(ends, "var(--wanted)", dots=False)


def plane(problem: Problem, plan: Plan, colour: Callable[[str], str]) -> str:
    """Everyone as a dot, those picked with the way they go."""
    parts = [PLANE.axes(range(20, 37, 4), range(100, 161, 20)), surface(MARGIN)]
    for start, change in zip(problem.cohort.values[plan.selected], plan.changes, strict=True):
        (x, y), (to_x, to_y) = PLANE.at(*start), PLANE.at(*(start + change))
        parts.append(f'<line class="move" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>')
    for (bmi, pressure), fate in zip(problem.cohort.values, plan.fates, strict=True):
        x, y = PLANE.at(bmi, pressure)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{colour(str(fate))}"/>')
    return "\n  ".join(parts)


def legend(lines: Sequence[tuple[str, str]]) -> str:
    x = WIDTH - RIGHT + 16
    return "\n  ".join(
        f'<circle cx="{x:.1f}" cy="{TOP + 22 * k:.1f}" r="4" fill="{colour}"/>'
        f'<text x="{x + 10:.1f}" y="{TOP + 4 + 22 * k:.1f}">{escape(text)}</text>'
        for k, (text, colour) in enumerate(lines)
    )


def fates(plan: Plan) -> str:
    named = [(f"{n} {fate.value}", f"var(--{fate.value})") for fate, n in plan.fate_counts().items() if n]
    return legend(named)


def picture(title: str, body: str) -> str:
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img">
  <title>{escape(title)}</title>
  <style>{STYLE}  </style>
  <rect width="{WIDTH:.0f}" height="{HEIGHT:.0f}" fill="var(--paper)"/>
  {body}
</svg>
"""


def budget_picture(problem: Problem, plan: Plan) -> str:
    colours = {"flipped": "var(--flipped)", "already": "var(--already)"}
    bars = []
    for k, (name, amount) in enumerate(BUDGETS.items()):
        x, y, long = WIDTH - RIGHT + 16, TOP + 100 + 62 * k, 120.0
        share = plan.spend[name] / amount
        bars.append(f'<text x="{x:.1f}" y="{y - 8:.1f}">{name}</text>')
        bars.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{long:.1f}" height="9" fill="var(--faint)"/>')
        bars.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{long * share:.1f}" height="9" fill="var(--flipped)"/>')
        bars.append(f'<text class="note" x="{x:.1f}" y="{y + 25:.1f}">{plan.spend[name]:.1f} of {amount:g}</text>')
    body = [plane(problem, plan, lambda fate: colours.get(fate, "var(--left_out)")), fates(plan), *bars]
    return picture("Eighty people, the line of the model, and whom two budgets pay for", "\n  ".join(body))


def margin_picture(problem: Problem) -> str:
    margins = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    plans = [solve(problem.changed(margin=m)) for m in margins]
    there = [p.fate_counts()[Fate.ALREADY] for p in plans]
    frame = Frame((0.0, 0.8), (0.0, 80.0), "margin", "people")
    both = [(m, p.count + a) for m, p, a in zip(margins, plans, there, strict=True)]
    already = [(m, float(a)) for m, a in zip(margins, there, strict=True)]
    body = [
        frame.axes([0.0, 0.2, 0.4, 0.6, 0.8], range(0, 81, 20)),
        frame.line(both, "var(--flipped)"),
        frame.line(already, "var(--already)"),
        frame.label(*both[-1], "with the plan", "var(--flipped)"),
        frame.label(*already[-1], "without", "var(--already)"),
    ]
    return picture("How many are predicted well with a given margin, with and without the plan", "\n  ".join(body))


def price_picture(problem: Problem, plan: Plan) -> str:
    amounts = [10.0, 20.0, 30.0, 40.0, 60.0, 80.0, 100.0, 120.0]
    counts = [(a, float(resolve(problem, plan, budgets={"bmi": a}).count)) for a in amounts]
    price = plan.prices["bmi"] if plan.prices else 0.0
    promised = [(a, plan.worth + price * (a - BUDGETS["bmi"])) for a in (10.0, 120.0)]
    top = 5 * np.ceil(max(y for _, y in (*promised, *counts)) / 5)
    low = 5 * np.floor(min(y for _, y in (*promised, *counts)) / 5)
    frame = Frame((0.0, 120.0), (low, top), "budget of bmi", "people moved")
    body = [
        frame.axes(range(0, 121, 20), np.arange(low, top + 1, 5).tolist()),
        frame.line(promised, "var(--unreachable)", "dashed", dots=False),
        frame.line(counts, "var(--flipped)"),
        frame.label(*counts[-1], "solved again", "var(--flipped)"),
        frame.label(*promised[-1], "by the price,", "var(--unreachable)"),
        frame.label(*promised[-1], f"{price:.3f} per unit", "var(--unreachable)", (9, 20)),
    ]
    return picture("What more of one budget wins, and what its price promises", "\n  ".join(body))


def bound_picture(problem: Problem) -> str:
    """Budgets out of proportion, where a first look is far from the best."""
    scales = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0]
    lop = {"bmi": 4.0, "pressure": 3000.0}
    asked = [problem.changed(budgets={n: s * a for n, a in lop.items()}) for s in scales]
    best = [solve(p) for p in asked]
    quick = [solve(p, Nearest()) for p in asked]
    frame = Frame((0.0, 3.0), (0.0, 60.0), "both budgets, multiplied by", "people moved")
    bounds = [(s, float(p.bound or 0.0)) for s, p in zip(scales, best, strict=True)]
    counts = [(s, float(p.count)) for s, p in zip(scales, best, strict=True)]
    first = [(s, float(p.count)) for s, p in zip(scales, quick, strict=True)]
    body = [
        frame.axes([0, 1, 2, 3], range(0, 61, 20)),
        frame.line(bounds, "var(--already)", "wide", dots=False),
        frame.line(counts, "var(--flipped)"),
        frame.line(first, "var(--left_out)"),
        frame.label(*bounds[-1], "bound: proved", "var(--already)", (9, -8)),
        frame.label(*counts[-1], "Prices()", "var(--flipped)", (9, 10)),
        frame.label(*first[-1], "Nearest()", "var(--left_out)", (9, 16)),
    ]
    return picture("Plans of two solvers below the proved bound", "\n  ".join(body))


def fate_picture(problem: Problem) -> str:
    limited = Problem(
        classifier=problem.classifier,
        cohort=problem.cohort,
        target="well",
        margin=MARGIN,
        budgets={name: amount / 4 for name, amount in BUDGETS.items()},
        limits={"bmi": (LEAST[0], None), "pressure": (LEAST[1], None)},
        directions={"bmi": "down", "pressure": "down"},
    )
    plan = solve(limited)
    x, top = PLANE.at(LEAST[0], PRESSURE[1])
    _, y = PLANE.at(*LEAST)
    right = WIDTH - RIGHT
    box = f'<path class="limit dashed" fill="none" d="M{x:.1f} {top:.1f}V{y:.1f}H{right:.1f}"/>'
    body = [plane(limited, plan, lambda fate: f"var(--{fate})"), box, fates(plan)]
    return picture("The same people within limits, coloured by what became of them", "\n  ".join(body))


def drawn() -> dict[str, str]:
    problem = question()
    plan = solve(problem)
    return {
        "concept-budget.svg": budget_picture(problem, plan),
        "concept-margin.svg": margin_picture(problem),
        "concept-price.svg": price_picture(problem, plan),
        "concept-bound.svg": bound_picture(problem),
        "concept-fate.svg": fate_picture(problem),
    }


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
    torch.set_num_threads(1)
    for name, text in drawn().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
