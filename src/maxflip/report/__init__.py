"""Plan -> one self-contained HTML page: no script, no network, every text escaped."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jinja2
import numpy as np
from markupsafe import Markup

from maxflip.insight import Insight, People
from maxflip.plan import Plan
from maxflip.report import tables
from maxflip.report.answer import answer
from maxflip.report.numbers import counted, duration, number, whole
from maxflip.report.texts import isolated

__all__ = ["is_report", "render"]

_GENERATOR = Markup('<meta name="generator" content="maxflip">')


def render(plan: Plan, insight: Insight | None = None, people: People = "full") -> str:  # noqa: ARG001
    """The page as text; the same plan gives the same page."""
    if people != "full":  # nobody by name, and no text that may hold one
        order = np.random.default_rng().permutation(len(plan.all_ids))
        plan = replace(
            plan, all_ids=np.array([f"Person {k + 1}" for k in order], dtype=object), question={}, notices=()
        )
    return _template().render(
        plan=plan,
        generator=_GENERATOR,
        answer=answer(plan),
        budgets=tables.budgets(plan),
        fates=tables.fates(plan),
        features=tables.features(plan),
        people=tables.people(plan),
    )


def is_report(page: bytes) -> bool:
    """Whether a file that begins so is a page of ours, of this version or another."""
    return page.startswith(b"<!DOCTYPE html>") and _GENERATOR.encode() in page


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("maxflip.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(whole=whole, counted=counted, number=number, duration=duration, isolated=isolated)
    return environment.get_template("page.html.j2")
