"""HTML of a plan for notebooks."""

from __future__ import annotations

from maxflip._util.html import amount_of, number, table, text_of
from maxflip._util.messages import CAVEAT
from maxflip.plan.plan import Plan
from maxflip.report.answer import headline, price_of


def html_of(plan: Plan) -> str:
    """The headline, the status, and the spending of each budget."""
    rows = [
        (name, number(plan.spend[name]), amount_of(b.amount), "" if price is None else f"{price:.2g}")
        for name, b in plan.budgets.items()
        for price in (price_of(plan, name),)
    ]
    budgets = table(("budget", "spent", "of", "price"), rows, "budgets")
    sentence = f"<p><strong>{text_of(headline(plan))}</strong><br>{text_of(plan.status.sentence)}</p>"
    return f"<div>{sentence}{budgets}<p><em>{CAVEAT}</em></p></div>"
