"""The first sentences of the page: the number, what it is worth, how good it is known to be, and why it may be 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip._util.messages import one_line
from maxflip.plan.plan import Fate, Plan, Status
from maxflip.report.numbers import number, whole
from maxflip.report.texts import isolated

NOTHING = 1e-6


@dataclass(frozen=True)
class Claim:
    """`kind`: proved, estimated or unknown; the page marks them differently."""

    kind: str
    label: str
    sentence: str


@dataclass(frozen=True)
class Answer:
    count: str
    rest: Markup
    details: Markup
    claims: tuple[Claim, ...]
    note: str
    reasons: tuple[str, ...]
    status_remark: str


def headline(plan: Plan) -> str:
    """The answer in one sentence, for a terminal."""
    together = _together(plan, "in it")
    end = f"; {together[:1].lower()}{together[1:]}" if together else "."
    return f"The plan moves {whole(plan.count)} of {whole(len(plan.fates))} into the wanted class{end}"


def answer(plan: Plan) -> Answer:
    n = len(plan.fates)
    verb = "is" if plan.count == 1 else "are"
    newly = "newly " if plan.fate_counts()[Fate.ALREADY] else ""
    return Answer(
        count=whole(plan.count),
        rest=Markup("of {} {} {}predicted {} after the change").format(whole(n), verb, newly, wanted(plan)),
        details=_details(plan),
        claims=_claims(plan),
        note=_note(plan),
        reasons=() if plan.count else _reasons(plan),
        status_remark=_status_remark(plan),
    )


def wanted(plan: Plan) -> Markup:
    """The wanted class by its name, where it is one and has one."""
    name = None if plan.question is None else plan.question.wanted_name
    return Markup("in the wanted class") if name is None else Markup("“{}”").format(isolated(one_line(name), 80))


def asked_confidence(plan: Plan) -> float | None:
    """What the confidence has to reach; None where the plan does not say."""
    return None if plan.question is None else plan.question.required


def has_worths(plan: Plan) -> bool:
    """Samples that count differently from one person, one point."""
    return bool((plan.worths != 1).any())


def best_possible(plan: Plan) -> float | None:
    """The proved bound, as it is said."""
    return None if plan.bound is None or not math.isfinite(plan.bound) else whole_bound(plan, plan.bound)


def whole_bound(plan: Plan, bound: float) -> float:
    """Where worths are whole numbers, no plan lies between two of those."""
    are_whole = bool((plan.worths == np.floor(plan.worths)).all())
    return float(math.floor(bound)) if are_whole and math.isfinite(bound) else bound


def is_proved_best(plan: Plan) -> bool:
    ceiling = best_possible(plan)
    return plan.status is Status.OPTIMAL or (ceiling is not None and plan.worth >= ceiling)


def price_of(plan: Plan, budget: str) -> float | None:
    """What one more unit of the budget would bring; None if that is not known.

    Solvers keep prices a little above 0: where all of a budget is not worth a millionth of the plan, it is 0. So it is
    where no amount of the budget would allow a better plan. A budget of 0 freezes its features, so no solver has seen
    what a first unit would bring.
    """
    price = None if plan.prices is None else plan.prices.get(budget)
    if price is None or plan.budgets[budget].amount == 0:
        return None
    if plan.at_most({name: b.amount for name, b in plan.budgets.items()} | {budget: math.inf}) <= plan.worth:
        return 0.0
    return price if price * plan.budgets[budget].amount > NOTHING * plan.worth else 0.0


def _details(plan: Plan) -> Markup:
    together = _together(plan, wanted(plan))
    details = [together] if together else []
    if has_worths(plan) and plan.count:
        who = "This one person is" if plan.count == 1 else f"The {whole(plan.count)} together are"
        open_worth = math.fsum(plan.worths[plan.fates.astype(str) != Fate.ALREADY])
        details.append(
            f"{who} worth {number(plan.worth, 6)}; "
            f"all who were not there yet are worth {number(open_worth, 6)} together."
        )
    return Markup(" ").join(details)


def _together(plan: Plan, where: str) -> str:
    """Whom the plan moves and who stood there before: never one number for both."""
    already = plan.fate_counts()[Fate.ALREADY]
    if not already:
        return ""
    if not plan.count:
        return f"{whole(already)} {_were(already)} there already."
    everyone = whole(already + plan.count)
    said = Markup("With the {} already there, {} are predicted {} as confidently as asked.")
    return said.format(whole(already), everyone, where)


def _note(plan: Plan) -> str:
    if not plan.below_margin:
        return ""
    who = "that one" if plan.below_margin == 1 else "they"
    among = f"; {who} may be among the {whole(plan.count)}" if plan.count else ""
    return (
        f"For {whole(plan.below_margin)} not counted as there already, the wanted class was the likeliest "
        f"from the start, but with less confidence than asked for{among}."
    )


def _claims(plan: Plan) -> tuple[Claim, ...]:
    where = "within these budgets and limits"
    if is_proved_best(plan) and plan.bound is not None:
        most = f"worth {number(plan.worth, 6)}" if has_worths(plan) else whole(plan.count)
        return (Claim("proved", "Proved", f"The most possible {where} is {most}, and no plan can do better."),)
    if plan.status is Status.OPTIMAL:
        return (Claim("proved", "Proved", plan.status.sentence),)
    claims = []
    ceiling = best_possible(plan)
    if ceiling is not None:
        more = number(ceiling - plan.worth, 6, up=True)
        can = "be worth" if has_worths(plan) else "reach"
        most = number(ceiling, 6, up=True)
        claims.append(Claim("proved", "Proved", f"No plan can {can} more than {most} {where}: at most {more} more."))
    if plan.estimate is not None and math.isfinite(plan.estimate):
        claims.append(Claim("estimated", "Not proved", _estimate(plan, plan.estimate)))
    if not claims:
        claims.append(Claim("unknown", "Not known", plan.status.sentence))
    return tuple(claims)


def _estimate(plan: Plan, estimate: float) -> str:
    ceiling = best_possible(plan)
    estimate = estimate if ceiling is None else min(estimate, ceiling)
    if has_worths(plan):
        return f"We estimate that no plan is worth much more than {number(max(estimate, plan.worth), 6)}."
    people = max(plan.count, round(estimate))
    return f"We estimate that no plan reaches many more than {whole(people)}."


def _reasons(plan: Plan) -> tuple[str, ...]:
    """Why nobody was picked, in the order of the fates."""
    counts = plan.fate_counts()
    if counts[Fate.ALREADY] == len(plan.fates) > 0:
        return ("Everyone is predicted in the wanted class already; there is nothing to change.",)
    texts = {
        Fate.LEFT_OUT: "{} {} left out: the budgets do not pay for a change that moves them, or they were excluded.",
        Fate.NOT_FOUND: "For {} no change was found that does it; there may be one.",
        Fate.UNREACHABLE: "{} {} out of reach: it is proved that no change within the limits and budgets moves them.",
        Fate.UNUSABLE: "{} {} unusable: the model gives no finite answer for them.",
    }
    return tuple(text.format(whole(counts[f]), _were(counts[f])) for f, text in texts.items() if counts[f])


def _status_remark(plan: Plan) -> str:
    if plan.status is Status.OPTIMAL or not is_proved_best(plan):
        return ""
    return "But the bound leaves no room for a better plan: this one is the best possible."


def _were(n: int) -> str:
    return "was" if n == 1 else "were"
