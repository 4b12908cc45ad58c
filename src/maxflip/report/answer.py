"""The first sentences of the page: how many are reached, how good the plan is known to be, and why nobody is picked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from maxflip._util.messages import one_line
from maxflip.plan.plan import Fate, Plan, Status
from maxflip.report.numbers import number, whole
from maxflip.report.texts import isolated

NEGLIGIBLE = 1e-6  # a budget whose price times amount is below this share of the plan's worth has the price 0
CLOSE = 0.05  # a plan within this share of the estimated maximum is called close to the best


@dataclass(frozen=True)
class Claim:
    """What is known about the best possible plan. `kind`: proved, estimated or unknown; sets the style on the page."""

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
    total, firmer = _total(plan, "in it"), below_margin_picked(plan)
    end = f"; {total[:1].lower()}{total[1:]}" if total else "."
    picked = f"{whole(plan.count)} of {whole(len(plan.fates))}"
    if not firmer:
        return f"The plan moves {picked} into the wanted class{end}"
    if firmer == plan.count:
        return f"The plan makes {picked} confident enough in the wanted class{end}"
    moved = whole(plan.count - firmer)
    return f"The plan moves {picked}: {moved} into the wanted class, {whole(firmer)} more become confident enough{end}"


def answer(plan: Plan) -> Answer:
    return Answer(
        count=whole(plan.count),
        rest=_rest(plan),
        details=_details(plan),
        claims=_claims(plan),
        note=_note(plan),
        reasons=() if plan.count else _reasons(plan),
        status_remark=_status_remark(plan),
    )


def _rest(plan: Plan) -> Markup:
    """The headline after the number of people picked."""
    everyone, target = whole(len(plan.fates)), _target(plan)
    firmer = below_margin_picked(plan)
    if firmer is None:
        verb = "reaches" if plan.count == 1 else "reach"
        return Markup("of {} {} {} with the required confidence").format(everyone, verb, target)
    if not firmer:
        return Markup("of {} {} to {}").format(everyone, _change(plan.count), target)
    if firmer == plan.count:
        verb = "becomes" if firmer == 1 else "become"
        return Markup("of {} {} confident enough in {}").format(everyone, verb, target)
    moved = plan.count - firmer
    return Markup("of {}: {} {} to {}; {} more {} confident enough").format(
        everyone, whole(moved), _change(moved), target, whole(firmer), "becomes" if firmer == 1 else "become"
    )


def _change(n: int) -> str:
    return "changes" if n == 1 else "change"


def below_margin_picked(plan: Plan) -> int | None:
    """How many of the people picked had the wanted class as their most likely one before; None if not known.

    A margin is positive exactly when a wanted class is the most likely one. A threshold does not tell with more than
    two classes. The count over the whole cohort must agree with `below_margin`.
    """
    if not plan.below_margin:
        return 0
    if plan.question is None or plan.question.measure == "threshold":
        return None
    confidence, kinds = plan.confidence_before, plan.fates.astype(str)
    below = (confidence > 0) & (confidence < plan.question.required) & (kinds != Fate.ALREADY)
    return int(below[plan.selected].sum()) if int(below.sum()) == plan.below_margin else None


def wanted(plan: Plan) -> Markup:
    """“class”, or "in the wanted class" if there are several or it has no name."""
    return _class_name(plan) or Markup("in the wanted class")


def _target(plan: Plan) -> Markup:
    return _class_name(plan) or Markup("the wanted class")


def _class_name(plan: Plan) -> Markup | None:
    name = None if plan.question is None else plan.question.wanted_name
    return None if name is None else Markup("“{}”").format(isolated(one_line(name), 80))


def required_confidence(plan: Plan) -> float | None:
    """What the confidence must reach; None if the plan does not state it."""
    return None if plan.question is None else plan.question.required


def has_worths(plan: Plan) -> bool:
    """Whether some samples have a worth other than 1."""
    return bool((plan.worths != 1).any())


def best_possible(plan: Plan) -> float | None:
    """The proved bound as shown on the page; None without a finite one."""
    return None if plan.bound is None or not math.isfinite(plan.bound) else whole_bound(plan, plan.bound)


def whole_bound(plan: Plan, bound: float) -> float:
    """The bound; rounded down if all worths are whole numbers, because every plan then has a whole worth."""
    are_whole = bool((plan.worths == np.floor(plan.worths)).all())
    return float(math.floor(bound)) if are_whole and math.isfinite(bound) else bound


def is_proved_best(plan: Plan) -> bool:
    ceiling = best_possible(plan)
    return plan.status is Status.OPTIMAL or (ceiling is not None and plan.worth >= ceiling)


def price_of(plan: Plan, budget: str) -> float | None:
    """Worth that one more unit of the budget would bring; None if not known.

    0 if price times amount is below a millionth of the plan's worth (solvers keep prices slightly above 0), or if no
    amount of the budget allows a better plan. Not known for a budget of 0: it freezes its features, so no solver has
    evaluated a first unit. Nor is a price of 0 known of a budget that is too small for every known flip.
    """
    price = None if plan.prices is None else plan.prices.get(budget)
    if price is None or plan.budgets[budget].amount == 0 or (price == 0.0 and budget in plan.needs):
        return None
    if plan.at_most({name: b.amount for name, b in plan.budgets.items()} | {budget: math.inf}) <= plan.worth:
        return 0.0
    return price if price * plan.budgets[budget].amount > NEGLIGIBLE * plan.worth else 0.0


def _details(plan: Plan) -> Markup:
    total = _total(plan, wanted(plan))
    details = [total] if total else []
    if has_worths(plan) and plan.count:
        open_worth = math.fsum(plan.worths[plan.fates.astype(str) != Fate.ALREADY])
        details.append(
            f"Their total worth is {number(plan.worth, 6)}, out of {number(open_worth, 6)} for everyone not already "
            "there."
        )
    return Markup(" ").join(details)


def _total(plan: Plan, where: str) -> str:
    """How many are in the wanted class after the plan, with those already there named separately."""
    already = plan.fate_counts()[Fate.ALREADY]
    if not already:
        return ""
    if not plan.count:
        return f"{whole(already)} {_were(already)} already there."
    everyone = whole(already + plan.count)
    sentence = Markup("Including the {} already there, {} are predicted {} with the required confidence.")
    return sentence.format(whole(already), everyone, where)


def _note(plan: Plan) -> str:
    if not plan.below_margin:
        return ""
    picked = below_margin_picked(plan)
    if picked == plan.below_margin:
        return ""  # the headline counts them
    who = "this one" if plan.below_margin == 1 else "some of them"
    if not plan.count:
        among = ""
    elif picked is None:
        among = f"; {who} may be among the {whole(plan.count)} picked"
    elif plan.below_margin == 1:
        among = "; this one was not picked"
    else:
        among = f"; {whole(picked)} of them {_were(picked)} picked"
    return (
        f"For {whole(plan.below_margin)} not counted as already there, the wanted class was the most likely one from "
        f"the start, but with less confidence than required{among}."
    )


def _claims(plan: Plan) -> tuple[Claim, ...]:
    where = "within these budgets, limits and quotas" if plan.quotas else "within these budgets and limits"
    if is_proved_best(plan) and plan.bound is not None:
        most = f"worth {number(plan.worth, 6)}" if has_worths(plan) else whole(plan.count)
        return (Claim("proved", "Proved", f"The maximum {where} is {most}; no plan can do better."),)
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
        claims.append(_estimate(plan, plan.estimate))
    if not claims:
        claims.append(Claim("unknown", "Not known", plan.status.sentence))
    return tuple(claims)


def _estimate(plan: Plan, estimate: float) -> Claim:
    ceiling = best_possible(plan)
    estimate = estimate if ceiling is None else min(estimate, ceiling)
    most = max(estimate, plan.worth) if has_worths(plan) else max(plan.count, round(estimate))
    shown = f"a worth of {number(most, 6)}" if has_worths(plan) else whole(int(most))
    if plan.worth >= (1 - CLOSE) * most:
        return Claim("estimated", "Close to the best", f"the estimated maximum is {shown} (not proved).")
    return Claim("estimated", "Estimated", f"the maximum is {shown} (not proved).")


def _reasons(plan: Plan) -> tuple[str, ...]:
    """Why nobody was picked: a sentence per fate."""
    counts = plan.fate_counts()
    if counts[Fate.ALREADY] == len(plan.fates) > 0:
        return ("Everyone is predicted in the wanted class already; there is nothing to change.",)
    quota = ", a quota leaves no place for them" if plan.quotas else ""
    texts = {
        Fate.LEFT_OUT: f"{{}} {{}} left out: the budgets do not pay for a change that moves them{quota}, or they were "
        "excluded.",
        Fate.NOT_FOUND: "For {} no change was found that moves them; one may exist.",
        Fate.UNREACHABLE: "{} {} out of reach: it is proved that no change within the limits and budgets moves them.",
        Fate.UNUSABLE: "{} {} unusable: the model gives no finite answer for them.",
    }
    return tuple(text.format(whole(counts[f]), _were(counts[f])) for f, text in texts.items() if counts[f])


def _status_remark(plan: Plan) -> str:
    if plan.status is Status.OPTIMAL or not is_proved_best(plan):
        return ""
    return "The bound allows no better plan: this one is the best possible."


def _were(n: int) -> str:
    return "was" if n == 1 else "were"
