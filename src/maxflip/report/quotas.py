"""How many of those picked belong to each group that a quota is about, and what the quota costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from maxflip.plan.kept import KeptQuota
from maxflip.plan.plan import Plan
from maxflip.report import charts
from maxflip.report.answer import has_worths
from maxflip.report.numbers import number, percent, whole
from maxflip.report.privacy import FEWEST
from maxflip.report.texts import isolated
from maxflip.study.insight import People

LEAST = 0.05  # of a person, or of the plan's worth per person: a smaller cost is said to be nothing


@dataclass(frozen=True)
class Row:
    """`is_hidden`: so few people are in the group that a page without names says nothing of it"""

    group: Markup
    asked: str
    bar: Markup
    picked: str
    share: str
    cost: str
    is_hidden: bool


def quotas(plan: Plan, people: People = "full") -> Sequence[Row]:
    return [_row(plan, kept, people) for kept in plan.quotas]


def _row(plan: Plan, kept: KeptQuota, people: People) -> Row:
    return Row(
        group=isolated(kept.quota.name),
        asked=kept.quota.bounds,
        bar=charts.bar(kept.count, plan.count),
        picked=f"{whole(kept.count)} of {whole(plan.count)}",
        share=percent(kept.count, plan.count),
        cost=cost_in_words(plan, kept),
        is_hidden=people != "full" and len(kept.members) < FEWEST,
    )


def cost_in_words(plan: Plan, kept: KeptQuota) -> str:
    """About how much more the plan would reach without the quota."""
    if kept.cost is None:
        return "not known"
    one = plan.worth / plan.count if plan.count else 1.0
    if kept.cost < LEAST * one:
        return "nothing"
    if has_worths(plan):
        return f"about {number(kept.cost, 2)} of worth"
    if kept.cost < 1:
        return "less than one person"
    shown = number(kept.cost, 2)
    return f"about {shown} {'person' if shown == '1' else 'people'}"
