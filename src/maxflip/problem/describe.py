"""What was asked, in words: for reports and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maxflip._util.html import amount_of, table
from maxflip._util.messages import CAVEAT, counted, listed
from maxflip.problem.budgets import Budget
from maxflip.problem.menu import levers_in_words
from maxflip.problem.must_hold import Requirement, Uptake
from maxflip.problem.own import Own, Part
from maxflip.problem.question import Lever, Question

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem

MOST = 30  # features named
_MEASURES = {
    "threshold": "threshold {}: the wanted class has at least this probability",
    "decision margin": "margin {}: the decision value of the wanted class is ahead of every other's by at least this",
    "margin": "margin {}: the wanted class is ahead of every other by at least this probability",
}
_WAYS = {None: "", "up": ", upwards only", "down": ", downwards only"}


def in_words(
    question: Question, must_hold: Iterable[Requirement], picked: str = "", barred: str = ""
) -> dict[str, str]:
    """What a line is about -> what was asked.   picked, barred: who must and who must not be picked; "": nobody"""
    lines = {
        "Wanted class": _wanted(question.wanted),
        "Confidence": _MEASURES[question.measure].format(f"{question.required:.15g}"),
        "May change": "" if question.menu and not question.levers else _changeable(question.levers),
        "Changes": "" if question.most_changes is None else _most(question.most_changes),
        "Actions": _actions(question.menu),
        "Categories": _choices(question.menu),
        "Follows from others": "; ".join(f"{name!r} = {text}" for name, text in question.derived.items()),
        "Must hold": "; ".join(map(_requirement, must_hold)),
        "Steps that may change": question.steps,
        "Must be picked": picked,
        "Must not be picked": barred,
        "Quotas": "; ".join(quota.in_words for quota in question.quotas),
    }
    return {about: words for about, words in lines.items() if words}


def asked(problem: Problem) -> dict[str, str]:
    """What this problem asks, as `in_words` returns it: what a line is about -> words"""
    named = [listed(problem.cohort.ids[rows]) for rows in (problem.include, problem.exclude)]
    return in_words(Question.of(problem), problem.scenarios.requirements, *named)


def _most(changes: int) -> str:
    return f"at most {counted(changes, 'feature')} of each"


def _requirement(requirement: Requirement) -> str:
    if isinstance(requirement, Uptake):
        return f"if only {100 * requirement.share:.15g} % of each change is carried out"
    steps = ", ".join(f"{name!r} to multiples of {step:.15g}" for name, step in requirement.steps.items())
    return f"if values are rounded: {steps}"


def _wanted(wanted: Sequence[str | int]) -> str:
    if not wanted:
        return "one for each, by a column of the cohort or a list"
    names = [one for one in wanted if isinstance(one, str)]
    if names:
        return ("" if len(names) == 1 else "any of ") + listed(names)
    return f"output column {wanted[0]}" if len(wanted) == 1 else f"any of the output columns {list(wanted)}"


def _changeable(levers: Sequence[Lever]) -> str:
    parts = [_lever(lever) for lever in levers[:MOST]]
    rest = len(levers) - MOST
    return "; ".join(parts) + (f"; and {rest} more" if rest > 0 else "") or "nothing: every budget is 0"


def _actions(menu: Mapping[str, Any]) -> str:
    names = list(menu.get("actions", {}))
    if not names:
        return ""
    words = levers_in_words(menu)
    rest = f"; and {len(names) - MOST} more" if len(names) > MOST else ""
    most = menu["most_actions"]
    each = "; ".join(f"{name!r} ({words[name]})" for name in names[:MOST])
    return f"{each}{rest}; at most {most} of them per person" if len(names) > 1 else each


def _choices(menu: Mapping[str, Any]) -> str:
    return "; ".join(f"{name!r} to {listed(values, MOST)}" for name, values in menu.get("choices", {}).items())


def _lever(lever: Lever) -> str:
    low, high = ("" if side is None else f"{side:.6g}" for side in (lever.low, lever.high))
    if lever.own:
        words = "within limits of each one's own"
    elif low and high:
        words = f"from {low} to {high}"
    elif low or high:
        words = f"from {low}" if low else f"to {high}"
    else:
        words = "freely"
    step = "" if lever.step is None else f", in steps of {lever.step:.15g}"
    smallest = "" if lever.smallest is None else f", by at least {lever.smallest:.15g}"
    words = f"by actions alone, {words}" if lever.by_actions else words
    return f"{lever.feature!r} {words}{_WAYS[lever.direction]}{step}{smallest}"


def _cost(budget: Budget) -> str:
    fee = (
        ""
        if budget.fee is None
        else ", fees of each one's own"
        if isinstance(budget.fee, Own)
        else f", fee {budget.fee:.6g}"
    )
    return budget.cost_name + fee + (f", only of {budget.only.name}" if isinstance(budget.only, Part) else "")


def html_of(problem: Problem) -> str:
    """Who is asked about, what is wanted of them, and what there is to spend."""
    cohort = problem.cohort
    lines = {
        "Cohort": f"{counted(len(problem), cohort.layout.noun)} of {counted(cohort.layout.width, 'feature')}",
        **asked(problem),
    }
    budgets = [(name, amount_of(b.amount), _cost(b)) for name, b in problem.budgets.items()]
    return (
        f"<div>{table(('asked', ''), list(lines.items()), 'lines')}"
        f"{table(('budget', 'amount', 'cost'), budgets, 'budgets')}<p><em>{CAVEAT}</em></p></div>"
    )
