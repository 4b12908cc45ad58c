"""The report as bytes, showing individual samples as `people` says."""

from __future__ import annotations

from typing import Any, get_args

from maxflip._util.messages import did_you_mean, listed, shown
from maxflip.errors import InputError
from maxflip.plan.plan import Plan
from maxflip.report import render
from maxflip.study.insight import Insight, People, misfits


def page(plan: Plan, insight: Insight | None, people: People) -> bytes:
    check_people(people)
    if insight is not None and not isinstance(insight, Insight):
        raise InputError(f"insight: got {shown(insight)}; wanted what look(problem, plan) returns.")
    faults = misfits(insight, plan) if insight is not None else []
    if faults:
        raise InputError([f"insight: {fault} Give what look(problem, plan) found of this plan." for fault in faults])
    return render(plan, insight=insight, people=people).encode()


def check_people(people: Any) -> None:
    known = get_args(People)
    if people not in known:
        raise InputError(f"people = {shown(people)}: must be one of {listed(known)}.{did_you_mean(people, known)}")
