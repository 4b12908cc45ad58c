"""What is spent of each budget, and what more of it would bring."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from maxflip.plan.plan import Fate, Plan
from maxflip.problem.budgets import Budget, Ways
from maxflip.problem.own import Own, Part, of_each
from maxflip.report import charts
from maxflip.report.answer import has_worths, price_of
from maxflip.report.numbers import number, percent, whole
from maxflip.report.texts import isolated

MOST_ROWS = 200  # budgets in the table
MOST_USES = 6  # features named per budget
MOST_NAMED = 30  # budgets named under "What was asked"
TENTH = 0.1  # increase of a budget, as a share of it, that serves as the example


@dataclass(frozen=True)
class Row:
    """`bar`: None for a budget without a limit   `price`, `tenth`, `holds`: empty if not known
    `is_hidden`: too few people draw on it, so the spending would reveal their changes"""

    name: Markup
    pays_for: Markup
    bar: Markup | None
    share: str
    spent: str
    amount: str
    unit: Markup
    price: Markup
    tenth: Markup
    holds: Markup
    is_hidden: bool


@dataclass(frozen=True)
class Budgets:
    """`asked`: amount of each budget   `scarce`: a sentence about the limiting budgets   `example`: what a squared
    budget counts"""

    rows: Sequence[Row]
    more: int
    has_prices: bool
    has_worths: bool
    asked: Markup
    scarce: Markup
    example: Markup | None


def budgets(plan: Plan, fewest: int = 1) -> Budgets:
    """Spending is hidden for budgets that fewer than `fewest` people draw on."""
    names = list(plan.budgets)
    if len(names) > MOST_ROWS:
        names = sorted(names, key=lambda name: -_used(plan, name))[:MOST_ROWS]
    rows = [_row(plan, name, fewest) for name in names]
    return Budgets(
        rows=rows,
        more=len(plan.budgets) - len(names),
        has_prices=plan.prices is not None,
        has_worths=has_worths(plan),
        asked=listed([_asked(row) for row in rows], MOST_NAMED, "; "),
        scarce=Markup(" ").join(filter(None, (_too_small(plan, fewest), _scarce(plan, names)))),
        example=_example(plan, names),
    )


def _used(plan: Plan, name: str) -> float:
    amount = plan.budgets[name].amount
    return plan.spend[name] / amount if amount > 0 else 0.0


def _row(plan: Plan, name: str, fewest: int) -> Row:
    budget, spent = plan.budgets[name], plan.spend[name]
    limited = math.isfinite(budget.amount)
    counted = number(budget.amount if limited else spent)
    return Row(
        name=isolated(name),
        pays_for=_pays_for(name, budget, plan),
        bar=charts.bar(spent, budget.amount) if limited else None,
        share=percent(spent, budget.amount),
        spent=number(spent),
        amount=number(budget.amount) if limited else "no limit",
        unit=unit_of(name, budget, plan.units, one=counted == "1", levers=plan.levers),
        price=_price(plan, name),
        tenth=_tenth(plan, name),
        holds=_holds(plan, name),
        is_hidden=not budget.counts_people and 0 < _drawing(plan, name) < fewest,
    )


def _drawing(plan: Plan, name: str) -> int:
    """Number of people with a fee or with changes that the budget pays for."""
    budget = plan.budgets[name]
    paid = np.isin(plan.slot_features, [plan.features.index(f) for f in uses_of(name, budget)])
    draws = plan.moves[:, paid].any(axis=1) | (of_each(budget.flat, len(plan.fates))[plan.selected] > 0)
    inside = budget.only.inside[plan.selected] if isinstance(budget.only, Part) else True
    return int((draws & inside).sum())


def _asked(row: Row) -> Markup:
    unit = Markup(" ") + row.unit if row.bar and row.unit else Markup("")
    return Markup("{} {}{}").format(row.name, row.amount, unit)


def _price(plan: Plan, name: str) -> Markup:
    price = price_of(plan, name)
    if price is None:
        return Markup("not known")
    if not price:
        return Markup("nothing more")
    left = _left(plan)
    prefix, end = ("at most", ": nobody else is left") if price > left else ("about", "")
    shown = number(min(price, left), 6 if end else 2)
    what = _more_of_what(plan, shown)
    unit = unit_of(name, plan.budgets[name], plan.units, levers=plan.levers, one=True)
    return Markup("{} <b>{}</b> {} per {}{}").format(prefix, shown, what, unit or "unit", end)


def _more_of_what(plan: Plan, shown: str) -> str:
    return "more worth" if has_worths(plan) else "more person" if shown == "1" else "more people"


def _tenth(plan: Plan, name: str) -> Markup:
    """What 10% more of the budget would bring, all else equal: by its price, limited by bound or estimate."""
    amount, price = plan.budgets[name].amount, price_of(plan, name)
    if not price or not plan.ceilings or not math.isfinite(amount):
        return Markup("")
    is_count = plan.budgets[name].counts_people
    more = float(math.ceil(TENTH * amount)) if is_count else TENTH * amount
    most = plan.at_most({n: b.amount for n, b in plan.budgets.items()} | {name: amount + more})
    is_proved = any(ceiling.proved for ceiling in plan.ceilings)
    limit = max(0.0, most - plan.worth)
    is_limited = price * more > limit
    shown = number(limit, 6 if is_proved else 2, up=is_proved) if is_limited else number(price * more, 2)
    more_of_it = (
        "10% more of this budget"
        if not is_count
        else "one more place"
        if more == 1.0
        else f"{whole(int(more))} more places"
    )
    if shown == "0":
        return Markup("{}: {} more").format(more_of_it, "nothing" if has_worths(plan) else "nobody")
    prefix = "about" if not is_limited else "at most" if is_proved else "at most about"
    return Markup("{}: {} {} {}").format(more_of_it, prefix, shown, _more_of_what(plan, shown))


def _left(plan: Plan) -> float:
    """Total worth of the samples that are not in the wanted class after the plan."""
    kinds = plan.fates.astype(str)
    return math.fsum(plan.worths[(kinds != Fate.ALREADY) & (kinds != Fate.FLIPPED)])


def _holds(plan: Plan, name: str) -> Markup:
    """Range of amounts in which the price holds, and the amount for one more person if it lies in that range."""
    price, between = price_of(plan, name), plan.price_ranges.get(name)
    if not price or between is None:
        return Markup("")
    low, high = between
    if plan.budgets[name].counts_people:  # in whole people
        low, high = math.ceil(low), math.floor(high)
        if low >= high:
            return Markup("")
    valid = Markup("valid for a budget from {} to {}").format(number(low, 3), number(high, 3))
    takes = 1 / price
    if has_worths(plan) or plan.budgets[name].counts_people or plan.budgets[name].amount + takes > high:
        return valid
    is_one = (shown := number(takes, 2)) == "1"
    unit = unit_of(name, plan.budgets[name], plan.units, levers=plan.levers, one=is_one) or (
        "unit" if is_one else "units"
    )
    return Markup("one more person for about {} {}; {}").format(shown, unit, valid)


def _too_small(plan: Plan, fewest: int) -> Markup:
    """If nobody is picked: which budgets are too small for even the cheapest known flip. Its amounts are those of one
    person, so a page without people does not show them."""
    if not is_too_dear(plan):
        return Markup("")
    if not plan.needs and plan.quotas:
        return Markup("The budgets and quotas leave no place for anybody whom a change is known to move.")
    if not plan.needs:
        return Markup("The budgets do not pay for any change that is known to move somebody.")
    named = list(plan.needs.items())
    if fewest > 1:
        short = _in_words([isolated(name) for name, _ in named])
        return Markup(
            "Nobody can be picked: even the cheapest change that is known takes more than there is of {}."
        ).format(short)
    parts = [_needed(plan, name, drawn) for name, drawn in named]
    return Markup("Nobody can be picked: even the cheapest change that is known takes {}.").format(_in_words(parts))


def is_too_dear(plan: Plan) -> bool:
    """Whether nobody is picked though flips are known, or must be dearer than the budgets."""
    left_out = plan.fates == Fate.LEFT_OUT
    left_out[plan.exclude] = False
    return not plan.count and bool(plan.needs or left_out.any())


def _needed(plan: Plan, name: str, drawn: float) -> Markup:
    """12 squared mmHg of bp, of which there is 1"""
    if plan.budgets[name].counts_people:
        return Markup("a place of {} (there is none)").format(isolated(name))
    shown = number(drawn, 3)
    unit = unit_of(name, plan.budgets[name], plan.units, levers=plan.levers, one=shown == "1")
    much = (
        Markup("{} {} of {}").format(shown, unit, isolated(name))
        if unit
        else Markup("{} of {}").format(shown, isolated(name))
    )
    return Markup("{} (there is {})").format(much, number(plan.budgets[name].amount, 3))


def _scarce(plan: Plan, names: Sequence[str]) -> Markup:
    if plan.prices is None:
        return Markup("")
    prices = [price_of(plan, name) for name in names]
    scarce = [isolated(name) for name, price in zip(names, prices, strict=True) if price]
    if None in prices and not scarce:
        return Markup("")
    if not scarce:
        if is_too_dear(plan):
            return Markup("")
        return Markup(
            "By their prices, no single budget limits the plan: more of any one of them alone would not help."
        )
    subject = "The limiting budget is" if len(scarce) == 1 else "The limiting budgets are"
    sentence = Markup("{} {}.").format(subject, _in_words(scarce))
    idle = [name for name, price in zip(names, prices, strict=True) if price == 0.0]
    if idle and None not in prices:
        sentence += Markup(" More {} alone would not help.").format(_idle(plan, idle))
    return sentence


def _idle(plan: Plan, names: Sequence[str]) -> Markup:
    """The budgets that do not limit the plan, after "More"."""
    if len(names) > 1:
        return Markup("of any of the other {}").format(whole(len(names)))
    is_count = plan.budgets[names[0]].counts_people
    return Markup("places") if is_count else Markup("of {}").format(isolated(names[0]))


def _in_words(parts: Sequence[Markup]) -> Markup:
    """A list with "and" before the last item."""
    if len(parts) == 1 or len(parts) > MOST_USES:
        return listed(parts, MOST_USES)
    return Markup("{} and {}").format(Markup(", ").join(parts[:-1]), parts[-1])


def uses_of(name: str, budget: Budget) -> dict[str, Any]:
    """The features whose changes draw on it, with their weights"""
    if not budget.weights:
        return {} if budget.cost == "count" else {name: 1.0}
    return {feature: budget.weights[feature] for feature in budget.drawing}


def unit_of(
    name: str, budget: Budget, units: Mapping[str, str], *, one: bool = False, levers: Collection[str] = ()
) -> Markup:
    """The unit in words if all features of the budget have the same unit and weight 1; otherwise empty.

    levers: actions and switches, which have no unit
    """
    if budget.counts_people:
        return Markup("person") if one else Markup("people")
    uses = uses_of(name, budget)
    if any(feature in levers for feature in uses):
        return Markup("")
    known = {units.get(feature, "") for feature in uses}
    is_plain = all(weight == 1.0 for weight in uses.values()) and budget.fee is None and not budget.is_function
    if not uses or not is_plain or (len(uses) > 1 and (len(known) > 1 or "" in known)):
        return Markup("")
    return _cost_unit(next(iter(uses)), budget, units, "unit" if one else "units")


def _cost_unit(feature: str, budget: Budget, units: Mapping[str, str], plain: str = "units") -> Markup:
    unit = units.get(feature)
    shown = isolated(unit) if unit else Markup(plain)
    return Markup("squared {}").format(shown) if budget.cost == "squared" else shown


def _pays_for(name: str, budget: Budget, plan: Plan) -> Markup:
    """... and of whom"""
    parts = [_changes_paid(name, budget, plan)] if budget.cost != "count" else []
    if budget.cost == "count" or budget.fee is not None:
        parts.append(_fee(budget))
    only = Markup("; only of {}").format(isolated(budget.only.name)) if isinstance(budget.only, Part) else Markup("")
    return Markup("; and ").join(parts) + only


def _fee(budget: Budget) -> Markup:
    if budget.counts_people:
        return Markup("each person picked")
    if isinstance(budget.flat, Own):
        return Markup("a fee of each one's own for each person picked")
    return Markup("{} for each person picked").format(number(budget.flat, 6))


def _changes_paid(name: str, budget: Budget, plan: Plan) -> Markup:
    uses = uses_of(name, budget)
    if not uses:
        return Markup("nothing")
    whole_ones = [
        Markup("{} for each {}").format(weight_of(w), isolated(f)) for f, w in uses.items() if f in plan.levers
    ]
    free = {f: w for f, w in uses.items() if f not in plan.levers}
    parts = [_for_changes(name, budget, free, plan.units)] if free else []
    return Markup("; ").join([*parts, *([listed(whole_ones, MOST_USES)] if whole_ones else [])])


def _for_changes(name: str, budget: Budget, uses: Mapping[str, Any], units: Mapping[str, str]) -> Markup:
    """uses: weights of features that change by amounts"""
    if budget.is_function:
        function = isolated(budget.cost_name.removeprefix("function "))
        return Markup("changes, by the function {}: {}").format(
            function, listed([isolated(f) for f in uses], MOST_USES)
        )
    squared = "squared " if budget.cost == "squared" else ""
    if list(uses) == [name] and uses[name] == 1.0:
        return Markup("{}changes of this feature").format(squared)
    if all(weight == 1.0 for weight in uses.values()):
        parts = [isolated(f) for f in uses]
    else:
        parts = [
            Markup("{} per {} of {}").format(weight_of(w), _cost_unit(f, budget, units, "unit"), isolated(f))
            for f, w in uses.items()
        ]
    return Markup("{}changes: {}").format(squared, listed(parts, MOST_USES))


def weight_of(weight: Any) -> Markup:
    if isinstance(weight, Ways):
        return Markup("{} up and {} down").format(weight_of(weight.up), weight_of(weight.down))
    return Markup("each one's own") if isinstance(weight, Own) else Markup(number(weight, 3))


def listed(parts: Sequence[Markup], most: int, between: str = ", ") -> Markup:
    rest = len(parts) - most
    text = Markup(between).join(parts[:most])
    return text + Markup(" and {} more").format(whole(rest)) if rest > 0 else text


def _example(plan: Plan, names: Sequence[str]) -> Markup | None:
    squared = [
        n
        for n in names
        if plan.budgets[n].cost == "squared" and not plan.levers.keys() >= uses_of(n, plan.budgets[n]).keys()
    ]
    if not squared:
        return None
    for name in squared:
        feature = next(iter(uses_of(name, plan.budgets[name])), "")
        if plan.units.get(feature):
            unit = isolated(plan.units[feature])
            return Markup("a change of 3 {} costs 9 squared {}").format(unit, unit)
    return Markup("a change of 3 costs 9")
