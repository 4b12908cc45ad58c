"""Saving, loading and showing of plans and insights.

`Plan.save`, `Plan.load`, `Plan.to_csv`, `Plan.report`, `Insight.load` and notebooks import this module when they are
called. It is the only import from a lower room in docs/architecture.md.
"""

from __future__ import annotations

from pathlib import Path

from maxflip._util.atomic import write_bytes
from maxflip.io.csv_out import write_csv
from maxflip.io.plan_folder import load_insight, load_plan, save_asked, save_plan
from maxflip.plan.plan import Plan
from maxflip.report.notebook import html_of
from maxflip.report.page import page
from maxflip.study.insight import Insight, People

__all__ = ["html_of", "load_insight", "load_plan", "save_asked", "save_plan", "write_csv", "write_report"]


def write_report(plan: Plan, path: str | Path, insight: Insight | None, people: People) -> None:
    write_bytes(path, page(plan, insight, people))
