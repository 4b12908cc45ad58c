"""Five pictures for docs/concepts.md: `python -m research.benchmarks.draw_concepts` draws docs/pictures/concept-*.svg.

Eighty people with two features, a linear model, so that all of it can be seen in the plane and every plan is proved
the best. Everything drawn is from solves of that one problem, with other budgets or another margin.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from maxflip import Cohort, Fate, Nearest, Plan, Problem, TorchClassifier, resolve, solve
from research.pictures import FAINT, INK, PICTURES, QUIET, plain, save

Floats = NDArray[np.float64]
WEIGHTS, BIAS, MARGIN = np.array([-0.35, -0.06]), 17.6, 0.1  # logit of "well": BIAS + WEIGHTS . (bmi, pressure)
BUDGETS = {"bmi": 40.0, "pressure": 800.0}
LEAST = (27.5, 131.0)  # limits of the last picture
BMI, PRESSURE = (20.0, 36.0), (95.0, 165.0)  # the window
FLIPPED, ALREADY, LEFT_OUT, UNREACHABLE = "#0b7a75", "#57a0c9", "#8a94a0", "#b35900"
COLOURS = {"flipped": FLIPPED, "already": ALREADY, "left_out": LEFT_OUT, "unreachable": UNREACHABLE}
SIZE = (6.4, 3.6)  # inches
Points = Sequence[tuple[float, float]]


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


def blank() -> Figure:
    return Figure(figsize=SIZE, layout="constrained")


def line(axes: Axes, points: Points, label: str, colour: str, **style: Any) -> None:
    """Named at its end."""
    axes.plot(*zip(*points, strict=True), color=colour, **style)
    axes.annotate(label, points[-1], (6, 0), textcoords="offset points", color=colour, va="center")


def pressure_on_line(bmi: float) -> float:
    """Where the confidence is just the margin."""
    return float((2 * np.arctanh(MARGIN) - BIAS - WEIGHTS[0] * bmi) / WEIGHTS[1])


def plane(axes: Axes, problem: Problem, plan: Plan, colours: Mapping[str, str]) -> None:
    """Everyone as a dot, those picked with the way they go; and how many have which fate."""
    plain(axes).set(xlabel="bmi, kg/m²", ylabel="blood pressure, mmHg", xlim=BMI, ylim=PRESSURE)
    axes.plot(BMI, [pressure_on_line(bmi) for bmi in BMI], color=FLIPPED, linewidth=2)
    people = problem.cohort.values
    for (x, y), (dx, dy) in zip(people[plan.selected], plan.changes, strict=True):
        axes.plot([x, x + dx], [y, y + dy], color=FLIPPED, linewidth=1)
    for fate, n in plan.fate_counts().items():
        if n:
            some = people[[each == fate for each in plan.fates]]
            colour = colours.get(fate.value, LEFT_OUT)
            axes.scatter(some[:, 0], some[:, 1], s=16, color=colour, zorder=3, label=f"{n} {fate.value}")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, handletextpad=0.1)


def budget_picture(problem: Problem, plan: Plan) -> Figure:
    """Whom two budgets pay for, and how much of each is spent."""
    figure = blank()
    axes, bars = figure.subplots(1, 2, width_ratios=(4, 1))
    plane(axes, problem, plan, {name: COLOURS[name] for name in ("flipped", "already")})
    shares = [plan.spend[name] / amount for name, amount in BUDGETS.items()]
    bars.bar(list(BUDGETS), [1.0] * len(BUDGETS), color=FAINT, width=0.5)
    bars.bar(list(BUDGETS), shares, color=FLIPPED, width=0.5)
    bars.set_xticks(
        range(len(BUDGETS)), [f"{name}\n{plan.spend[name]:.1f}\nof {amount:g}" for name, amount in BUDGETS.items()]
    )
    bars.set(yticks=[], ylim=(0.0, 2.0))
    bars.spines[["top", "right", "left"]].set_visible(False)
    return figure


def margin_picture(problem: Problem) -> Figure:
    """How many are predicted well with a given margin, with and without the plan."""
    margins = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    plans = [solve(problem.changed(margin=m)) for m in margins]
    there = [p.fate_counts()[Fate.ALREADY] for p in plans]
    figure = blank()
    axes = plain(figure.subplots())
    axes.set(xlabel="margin", ylabel="people", xlim=(0.0, 0.98), ylim=(0, 80))
    both = [(m, p.count + a) for m, p, a in zip(margins, plans, there, strict=True)]
    line(axes, both, "with the plan", FLIPPED, marker="o")
    line(axes, list(zip(margins, there, strict=True)), "without", ALREADY, marker="o")
    return figure


def price_picture(problem: Problem, plan: Plan) -> Figure:
    """What more of one budget wins, and what its price promises."""
    amounts = [10.0, 20.0, 30.0, 40.0, 60.0, 80.0, 100.0, 120.0]
    counts = [(a, float(resolve(problem, plan, budgets={"bmi": a}).count)) for a in amounts]
    price = plan.prices["bmi"] if plan.prices else 0.0
    promised = [(a, plan.worth + price * (a - BUDGETS["bmi"])) for a in (10.0, 120.0)]
    figure = blank()
    axes = plain(figure.subplots())
    axes.set(xlabel="budget of bmi", ylabel="people moved", xlim=(0.0, 155.0), xticks=range(0, 121, 20))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    line(axes, promised, f"by the price,\n{price:.3f} per unit", UNREACHABLE, linestyle="--")
    line(axes, counts, "solved again", FLIPPED, marker="o")
    return figure


def bound_picture(problem: Problem) -> Figure:
    """Plans of two solvers below the proved bound, of budgets out of proportion: there a first look is far off."""
    scales = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0]
    lop = {"bmi": 4.0, "pressure": 3000.0}
    asked = [problem.changed(budgets={n: s * a for n, a in lop.items()}) for s in scales]
    best = [solve(p) for p in asked]
    quick = [solve(p, Nearest()) for p in asked]
    figure = blank()
    axes = plain(figure.subplots())
    axes.set(xlabel="both budgets, multiplied by", ylabel="people moved", xlim=(0.0, 3.6), ylim=(0, 60))
    axes.plot(scales, [p.bound or 0.0 for p in best], color=ALREADY, linewidth=7, alpha=0.45)
    axes.annotate("bound: proved", (3.0, best[-1].bound or 0.0), (6, 10), textcoords="offset points", color=ALREADY)
    axes.plot(scales, [p.count for p in best], color=FLIPPED, marker="o")
    axes.annotate("Prices()", (3.0, best[-1].count), (6, -6), textcoords="offset points", color=FLIPPED)
    axes.plot(scales, [p.count for p in quick], color=LEFT_OUT, marker="o")
    axes.annotate("Nearest()", (3.0, quick[-1].count), (6, -14), textcoords="offset points", color=QUIET)
    return figure


def fate_picture(problem: Problem) -> Figure:
    """The same people within limits, coloured by what became of them."""
    limited = Problem(
        classifier=problem.classifier,
        cohort=problem.cohort,
        target="well",
        margin=MARGIN,
        budgets={name: amount / 4 for name, amount in BUDGETS.items()},
        limits={"bmi": (LEAST[0], None), "pressure": (LEAST[1], None)},
        directions={"bmi": "down", "pressure": "down"},
    )
    figure = blank()
    axes = figure.subplots()
    plane(axes, limited, solve(limited), COLOURS)
    axes.plot([LEAST[0], LEAST[0], BMI[1]], [PRESSURE[1], LEAST[1], LEAST[1]], color=INK, linewidth=1, linestyle="--")
    return figure


def drawn() -> dict[str, Figure]:
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
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    torch.set_num_threads(1)
    for name, figure in drawn().items():
        save(figure, folder / name)


if __name__ == "__main__":
    main()
