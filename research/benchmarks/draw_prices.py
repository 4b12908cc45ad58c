"""A market that clears: `python -m research.benchmarks.draw_prices` draws docs/pictures/prices.svg for docs/prices.md.

4,000 people with five features, a 16-16 tanh network, one squared budget per feature. maxflip solves it; after every
change of the prices this notes the prices, and what those people would buy for whom a flip costs less than they are
worth. Everything drawn is from that one run. The table it prints stands in the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import nn

from maxflip import Fate, Plan, Prices, Problem, TorchClassifier, solve
from maxflip.solvers.prices.market import Market
from maxflip.solvers.prices.settings import MARKET, SHARD
from research.benchmarks.prices_cases import markets
from research.evidence.files import made_here
from research.evidence.report import report
from research.evidence.results import Row
from research.pictures import INK, PICTURES, plain, save

Floats = NDArray[np.float64]
AMOUNTS = {"weight": 20.0, "pressure": 60.0, "sugar": 120.0, "sleep": 240.0, "steps": 600.0}
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
COLOURS = ("#c2255c", "#b35900", "#0b7a75", "#1864ab", "#6f42c1")


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


def picture(rows: Sequence[Row]) -> Figure:
    """rows: of the result file, one for each moment"""
    figure = Figure(figsize=(9.2, 3.8), layout="constrained")
    prices, bought = (plain(axes) for axes in figure.subplots(1, 2))
    for r, (name, colour) in enumerate(zip(rows[0]["budgets"], COLOURS, strict=True)):
        for axes, of in ((prices, "prices"), (bought, "bought")):
            axes.plot([row[of][r] for row in rows], color=colour, marker="o", markersize=4, label=name)
    prices.set(title="What one unit of each budget costs", yscale="log")
    bought.set(title="What people buy of each budget", yticks=SHARES, yticklabels=[f"{s:.0%}" for s in SHARES])
    bought.set_ylim(bottom=0.0)
    bought.axhline(1.0, color=INK, linestyle="--", linewidth=1.2)
    for axes in (prices, bought):
        axes.set_xlabel("price changes")
        axes.set_xticks(range(len(rows)), ["start", *map(str, range(1, len(rows)))])
    figure.legend(*prices.get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def main() -> None:
    torch.set_num_threads(1)
    problem = question()
    moments, plan = watched(problem)
    names = list(AMOUNTS)
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
    save(picture(rows), PICTURES / "prices.svg")
    report(
        {"prices_picture": rows}, made_here("python -m research.benchmarks.draw_prices"), ["market.changes"], keep=True
    )


if __name__ == "__main__":
    main()
