"""Which actions are taken and which categories are switched, and for how many people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip.plan.plan import Plan
from maxflip.report import charts
from maxflip.report.budgets import listed, weight_of
from maxflip.report.numbers import percent, whole
from maxflip.report.texts import isolated

MOST_ROWS = 200  # actions and switches in the table
MOST_BUDGETS = 6  # budgets named for each


@dataclass(frozen=True)
class Row:
    name: Markup
    does: Markup
    takes: Markup
    count: str
    share: str
    bar: Markup


@dataclass(frozen=True)
class Actions:
    """`unused`: actions and switches that nobody gets"""

    rows: Sequence[Row]
    more: int
    unused: int


def actions(plan: Plan) -> Actions | None:
    """Sorted by people, ties in the order in which they were asked; None where nothing of the kind was asked."""
    if not plan.levers:
        return None
    columns = [plan.features.index(name) for name in plan.levers]
    people = np.count_nonzero(plan.moves[:, columns], axis=0)
    order = np.argsort(-people, kind="stable")
    order = order[people[order] > 0]
    names = list(plan.levers)
    rows = [
        Row(
            name=isolated(names[i]),
            does=isolated(plan.levers[names[i]]),
            takes=_takes(plan, names[i]),
            count=whole(int(people[i])),
            share=percent(int(people[i]), plan.count),
            bar=charts.bar(int(people[i]), plan.count),
        )
        for i in order[:MOST_ROWS].tolist()
    ]
    return Actions(rows, max(0, len(order) - MOST_ROWS), len(names) - len(order))


def _takes(plan: Plan, lever: str) -> Markup:
    """What it draws of each budget: numbers, or the expression that an action says."""
    menu = {} if plan.question is None else plan.question.menu
    said = menu.get("actions", {}).get(lever, {}).get("draws", {})
    uses = {name: budget.weights[lever] for name, budget in plan.budgets.items() if lever in budget.weights}
    parts = [
        Markup("{}: {}").format(
            isolated(name, 60), isolated(said[name], 60) if isinstance(said.get(name), str) else weight_of(weight)
        )
        for name, weight in uses.items()
    ]
    return listed(parts, MOST_BUDGETS) if parts else Markup("nothing")
