"""A market that clears: `python -m research.benchmarks.draw_prices` draws docs/pictures/prices.svg for docs/prices.md.

4,000 people with five features, a 16-16 tanh network, one squared budget per feature. maxflip solves it; after every
change of the prices this notes the prices, and what those people would buy for whom a flip costs less than they are
worth. Everything drawn is from that one run. The table it prints stands in the page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import Fate, Plan, Prices, Problem, TorchClassifier, solve
from maxflip.solvers.prices.market import Market
from maxflip.solvers.prices.settings import MARKET, SHARD
from research.benchmarks.prices_cases import markets
from research.evidence.files import ROOT, made_here
from research.evidence.report import report

Floats = NDArray[np.float64]
AMOUNTS = {"weight": 20.0, "pressure": 60.0, "sugar": 120.0, "sleep": 240.0, "steps": 600.0}
WIDTH, HEIGHT = 340.0, 250.0  # of a panel
LEFT, TOP, BETWEEN, RIGHT, FOOT = 52.0, 46.0, 160.0, 66.0, 52.0
ALL = "all of it"
COLOURS = ("var(--a)", "var(--b)", "var(--c)", "var(--d)", "var(--e)")

STYLE = """
  :root { --paper: #ffffff; --ink: #1f2328; --quiet: #6e7781; --faint: #d0d7de;
    --a: #c2255c; --b: #b35900; --c: #0b7a75; --d: #1864ab; --e: #6f42c1; }
  @media (prefers-color-scheme: dark) {
    :root { --paper: #0d1117; --ink: #e6edf3; --quiet: #8b949e; --faint: #30363d;
      --a: #ff7eb0; --b: #f0a04b; --c: #3fb8af; --d: #74b9f5; --e: #b392f0; }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); }
  .note { fill: var(--quiet); }
  .head { font-weight: 600; }
  .grid { stroke: var(--faint); stroke-width: 1; }
  .clear { stroke: var(--ink); stroke-width: 1.4; stroke-dasharray: 6 4; }
  .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
"""


@dataclass(frozen=True, eq=False)
class Moment:
    """prices (m,)   bought (m,): in parts of the budgets   buyers: people whose flip costs less than they are worth"""

    prices: Floats
    bought: Floats
    buyers: int
    dual: float


def question() -> Problem:
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
    for parameter in net.parameters():
        parameter.data *= 2  # a freshly initialised network is nearly flat
    people = np.random.default_rng(0).normal(size=(4000, 5))
    return Problem(
        classifier=TorchClassifier(net.double().eval(), output="logits"),
        cohort=people,
        features=list(AMOUNTS),
        target=0,
        margin=0.1,
        budgets=AMOUNTS,
    )


def moment(market: Market, prices: Floats) -> Moment:
    """What is bought at these prices, by the flips found for them."""
    drawn, buyers = np.zeros(len(prices)), 0
    for rows, gains, offered in market.held.ask(lambda s: (s.rows, s.gains(prices), s.offered(prices, 0.0, 0.0))):
        buying = np.isin(offered.rows, rows[gains > 0])
        drawn += market.problem.ledger.consumption(offered.changes[buying]).sum(axis=0)
        buyers += int(buying.sum())
    return Moment(prices, drawn / market.amounts, buyers, market.dual(prices))


def watched(problem: Problem) -> tuple[list[Moment], Plan]:
    """The market's moments, from its opening on."""
    moments: list[Moment] = []

    class Told(Market):
        def open(self, *, scaled: bool, polished: bool, led: bool) -> None:
            super().open(scaled=scaled, polished=polished, led=led)
            moments.append(moment(self, self.prices))

        def visit(self, prices: Floats, reach: float = MARKET.reach, steps: int = SHARD.descents) -> bool:
            better = super().visit(prices, reach, steps)
            moments.append(moment(self, prices))
            return better

    with markets(Told):
        plan = solve(problem, Prices())
    return moments, plan


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines over the moments, (moments, m) values; x: its left edge; the names stand where the lines lie apart."""

    x: float
    title: str
    values: Floats
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool
    names_first: bool

    def across(self, k: float) -> float:
        return self.x + WIDTH * k / (len(self.values) - 1)

    def up(self, value: float) -> float:
        low, high, here = self.low, self.high, value
        if self.logarithmic:
            low, high, here = math.log(low), math.log(high), math.log(here)
        return TOP + HEIGHT * (high - here) / (high - low)

    def drawn(self, names: list[str]) -> str:
        lines = [self._line(self.values[:, r], colour) for r, colour in enumerate(COLOURS)]
        return "\n  ".join([self._frame(), *lines, self._names(names)])

    def _frame(self) -> str:
        parts = [f'<text class="head" x="{self.x:.1f}" y="{TOP - 22:.1f}">{self.title}</text>']
        side, kind = (self.x + WIDTH + 9, "note") if self.names_first else (self.x - 9, "note end")
        for value, label in self.ticks:
            y = self.up(value)
            style = "clear" if label == ALL else "grid"
            parts.append(
                f'<line class="{style}" x1="{self.x:.1f}" x2="{self.x + WIDTH:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            parts.append(f'<text class="{kind}" x="{side:.1f}" y="{y + 4:.1f}">{label}</text>')
        for k in range(len(self.values)):
            label = "start" if k == 0 else str(k)
            parts.append(
                f'<text class="note middle" x="{self.across(k):.1f}" y="{TOP + HEIGHT + 20:.1f}">{label}</text>'
            )
        middle = self.x + WIDTH / 2
        parts.append(f'<text class="note middle" x="{middle:.1f}" y="{TOP + HEIGHT + 38:.1f}">price changes</text>')
        return "\n  ".join(parts)

    def _line(self, values: Floats, colour: str) -> str:
        places = [(self.across(k), self.up(float(v))) for k, v in enumerate(values)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)
        return f'<g fill="{colour}"><polyline class="line" stroke="{colour}" points="{points}"/>{dots}</g>'

    def _names(self, names: list[str]) -> str:
        beside = self.values[0 if self.names_first else -1]
        placed = _apart(np.array([self.up(float(v)) for v in beside]), 16.0)
        x, anchor = (self.x - 9, "end") if self.names_first else (self.x + WIDTH + 9, "")
        return "\n  ".join(
            f'<text class="{anchor}" x="{x:.1f}" y="{y + 4:.1f}" style="fill: {colour}">{name}</text>'
            for y, name, colour in zip(placed, names, COLOURS, strict=True)
        )


def _apart(places: Floats, least: float) -> Floats:
    """The same order, neighbours at least so far from each other, about the same middle."""
    order = np.argsort(places, kind="stable")
    placed = places[order].copy()
    for _ in range(200):
        for k in range(1, len(placed)):
            short = least - (placed[k] - placed[k - 1])
            if short > 0:
                placed[k] += short / 2
                placed[k - 1] -= short / 2
    result = np.empty_like(placed)
    result[order] = placed
    return result


def decades(low: float, high: float) -> tuple[tuple[float, str], ...]:
    exponents = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return tuple((10.0**e, f"{10.0**e:g}") for e in exponents)


def svg(moments: list[Moment], names: list[str]) -> str:
    prices = np.array([m.prices for m in moments])
    bought = np.array([m.bought for m in moments])
    low, high = prices.min() / 1.6, prices.max() * 1.6
    most = max(1.25, 1.1 * bought.max())
    shares = ((0.0, "0"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, ALL))
    left = Panel(LEFT, "What one unit of each budget costs", prices, low, high, decades(low, high), True, False)
    x = LEFT + WIDTH + BETWEEN
    right = Panel(x, "What people buy of each budget", bought, 0.0, most, shares, False, True)
    width, height = right.x + WIDTH + RIGHT, TOP + HEIGHT + FOOT
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">
  <title>Prices converge over a few changes, and what is bought comes to what there is</title>
  <style>{STYLE}  </style>
  <rect width="{width:.0f}" height="{height:.0f}" fill="var(--paper)"/>
  {left.drawn(names)}
  {right.drawn(names)}
</svg>
"""


def main() -> None:
    torch.set_num_threads(1)
    problem = question()
    moments, plan = watched(problem)
    names = list(AMOUNTS)
    (ROOT / "docs" / "pictures" / "prices.svg").write_text(svg(moments, names))
    rows = [
        {
            "budgets": names,
            "amounts": list(AMOUNTS.values()),
            "prices": m.prices.tolist(),
            "bought": m.bought.tolist(),
            "buyers": m.buyers,
            "dual": m.dual,
            "count": plan.count,
            "estimate": plan.estimate,
            "open": len(problem) - plan.fate_counts()[Fate.ALREADY],
        }
        for m in moments
    ]
    report(
        {"prices_picture": rows}, made_here("python -m research.benchmarks.draw_prices"), ["market.changes"], keep=True
    )


if __name__ == "__main__":
    main()
