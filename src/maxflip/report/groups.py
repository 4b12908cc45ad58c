"""The cohort and the people picked, by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from maxflip.report import charts
from maxflip.report.numbers import fixed, percent, whole
from maxflip.report.texts import isolated
from maxflip.study.groups import Groups


@dataclass(frozen=True)
class Row:
    """`already_share`: of the group   `reachable_share`, `picked_share`: of its people who are not already there"""

    name: Markup
    size: str
    already: str
    already_share: str
    reachable: str
    reachable_share: str
    picked: str
    picked_share: str
    bar: Markup
    confidence: str
    is_small: bool


@dataclass(frozen=True)
class ByGroup:
    column: Markup
    rows: Sequence[Row]
    has_small: bool


def by_group(groups: Groups) -> ByGroup | None:
    rows = []
    for group in groups.groups:
        open_ = group.size - group.already
        rows.append(
            Row(
                name=isolated(group.name, 60),
                size=whole(group.size),
                already=whole(group.already),
                already_share=percent(group.already, group.size),
                reachable=whole(group.reachable),
                reachable_share=percent(group.reachable, open_),
                picked=whole(group.picked),
                picked_share=percent(group.picked, open_),
                bar=charts.bar(group.picked, open_),
                confidence="–" if group.confidence is None else fixed(group.confidence, 2),
                is_small=group.is_small,
            )
        )
    return ByGroup(isolated(groups.column), rows, any(row.is_small for row in rows)) if rows else None
