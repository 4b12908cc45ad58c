"""Plan and Problem as a notebook shows them: a few lines of HTML, every text of the user's escaped and isolated."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from maxflip.plan import Plan
from maxflip.problem import Problem
from maxflip.question import asked
from maxflip.report.answer import headline, price_of
from maxflip.suggest import CAVEAT, one_line

MOST = 12  # rows of a table
LONGEST = 200  # characters of a cell


def html_of_plan(plan: Plan) -> str:
    """The answer, how good it is known to be, and what is spent of each budget."""
    rows = [
        (name, _number(plan.spend[name]), _amount(b.amount), "" if price is None else f"{price:.2g}")
        for name, b in plan.budgets.items()
        for price in (price_of(plan, name),)
    ]
    table = _table(("budget", "spent", "of", "price"), rows, "budgets")
    sentence = f"<p><strong>{_text(headline(plan))}</strong><br>{_text(plan.status.sentence)}</p>"
    return f"<div>{sentence}{table}<p><em>{CAVEAT}</em></p></div>"


def html_of_problem(problem: Problem) -> str:
    """Who is asked about, what is wanted of them, and what there is to spend."""
    kind = "samples" if problem.cohort.ragged is None else "sequences"
    lines = {"Cohort": f"{len(problem):,} {kind} of {len(problem.cohort.features):,} features", **asked(problem)}
    budgets = [(name, _amount(b.amount), b.cost_name) for name, b in problem.budgets.items()]
    return (
        f"<div>{_table(('asked', ''), list(lines.items()), 'lines')}"
        f"{_table(('budget', 'amount', 'cost'), budgets, 'budgets')}<p><em>{CAVEAT}</em></p></div>"
    )


def _table(head: Iterable[str], rows: Sequence[tuple[str, ...]], kind: str) -> str:
    columns = list(head)
    names = "".join(f"<th>{name}</th>" for name in columns)
    body = ["".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows[:MOST]]
    if len(rows) > MOST:
        body.append(f'<td colspan="{len(columns)}">and {len(rows) - MOST} more {kind}</td>')
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def _text(text: str) -> str:
    """In <bdi>: letters that run from right to left do not turn around the words next to them."""
    clean = one_line(text)
    clean = clean if len(clean) <= LONGEST else clean[: LONGEST - 1] + "…"
    return f"<bdi>{html.escape(clean)}</bdi>"


def _number(value: float) -> str:
    return f"{value:,.6g}"


def _amount(amount: float) -> str:
    return "no limit" if amount == math.inf else _number(amount)
