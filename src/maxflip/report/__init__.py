"""Plan -> one self-contained HTML page: no network access, all text escaped, no code but its own short script."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from maxflip.plan.plan import Plan
from maxflip.report import privacy
from maxflip.report.actions import actions
from maxflip.report.answer import answer, wanted
from maxflip.report.budgets import budgets
from maxflip.report.convergence import convergence
from maxflip.report.fates import fates, risk
from maxflip.report.features import features
from maxflip.report.groups import by_group
from maxflip.report.hold import holding
from maxflip.report.numbers import counted, duration, number, whole
from maxflip.report.outlook import frontier
from maxflip.report.people import people as people_picked
from maxflip.report.plausibility import likeness
from maxflip.report.quotas import quotas
from maxflip.report.texts import isolated
from maxflip.study.insight import Insight, People, for_people

__all__ = ["is_report", "render"]

_GENERATOR = Markup('<meta name="generator" content="maxflip">')


def render(plan: Plan, insight: Insight | None = None, people: People = "full") -> str:
    """The page as text. The same plan gives the same page, except with pseudonyms, which are new each time.

    insight  results of `look`: frontier, plausibility, groups, other models
    people   "full": rows with ids; "pseudonyms": shuffled rows with made-up names; "none": no individual people
    """
    fewest = privacy.FEWEST if people == "none" else 1
    known = for_people(insight, people) or Insight()
    return _template().render(
        plan=plan,
        kind=people,
        generator=_GENERATOR,
        policy=_policy(),
        style=Markup(_text("style.css")),
        script=Markup(_text("script.js")),
        answer=answer(plan),
        wanted=wanted(plan),
        question=privacy.question(plan, people),
        notices=privacy.notices(plan, people),
        budgets=budgets(plan, fewest),
        quotas=quotas(plan, people),
        frontier=known.frontier and frontier(plan, known.frontier),
        actions=actions(plan),
        features=features(plan, fewest),
        holding=holding(plan, known.judges) if plan.count >= fewest else None,
        people=people_picked(plan, people),
        fates=fates(plan),
        risk=risk(plan, fewest),
        likeness=likeness(known.plausibility) if known.plausibility and plan.count >= fewest else None,
        groups=known.groups and by_group(known.groups),
        remarks=known.notices,
        convergence=convergence(plan),
    )


def is_report(page: bytes) -> bool:
    """Whether the file content is a maxflip report, of any version."""
    return page.startswith(b"<!DOCTYPE html>") and _GENERATOR.encode() in page


@cache
def _text(name: str) -> str:
    return resources.files("maxflip.report").joinpath(name).read_text("utf-8")


@cache
def _policy() -> str:
    """Content security policy: nothing is loaded; only this style and this script, given by their hashes, may apply."""
    style, script = (
        base64.b64encode(hashlib.sha256(f"\n{_text(name)}".encode()).digest()).decode()
        for name in ("style.css", "script.js")
    )
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; "
        "form-action 'none'"
    )


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
