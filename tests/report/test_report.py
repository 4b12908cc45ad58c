"""The report: what it says, that nothing in a plan can become markup, and that it stays small."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from maxflip._util.frozen import FrozenMap
from maxflip.data.places import SequencePlaces
from maxflip.plan.bracket import Ceiling
from maxflip.plan.holds import Holds, Judged
from maxflip.plan.plan import Fate, Plan, Status
from maxflip.plan.used import SolverUsed
from maxflip.problem.budgets import Budget, Ways
from maxflip.problem.own import Own, Part
from maxflip.problem.question import Question
from maxflip.report import render
from maxflip.report.answer import headline
from maxflip.report.budgets import budgets as budgets_of
from maxflip.report.people import people
from maxflip.study.insight import QUANTILES, Insight, People, Plausibility
from tests.report.plans import ATTRIBUTES, HOSTILE, TAGS, Page, following, make, read

# The answer


def test_the_answer_comes_first_and_the_warning_directly_after() -> None:
    question = Question(("stable",), "margin", 0.1)
    text = read(make(others={Fate.ALREADY: 33, Fate.LEFT_OUT: 1965}, question=question, bound=4.2, status=Status.OPEN))
    parts = (
        "2 of 2,000 change to “stable”",
        "No plan can reach more than 4",
        "This plan moves predictions, not outcomes.",
        "Including the 33 already there, 35 are predicted “stable” with the required confidence.",
        "What was asked Wanted class",
        "Where the budgets went",
        "Which features change",
        "The people picked",
        "Everyone in the cohort",
        "How it was made Settings and inputs",
    )
    body = text.split("Skip to the answer")[1]
    places = [body.index(p) for p in parts]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("stable",), "of 5 change to “stable” "),
        (("it's fine",), "change to “it's fine” "),
        (('it\'s "q" \n',), 'change to “it\'s "q" \\n” '),
        (("\u202ex",), r"change to “\u202ex” "),  # the title of the page has nothing to isolate it
        ((r"\N{no such}",), r"change to “\N{no such}” "),
        (("a", "b"), "change to the wanted class "),
        ((1,), "change to the wanted class "),
        ((), "change to the wanted class "),
    ],
)
def test_the_wanted_class_goes_by_its_name_where_it_has_one(wanted: tuple[str | int, ...], said: str) -> None:
    assert said in read(make(question=Question(wanted, "margin", 0.1)))


@pytest.mark.parametrize(
    ("before", "below", "said"),
    [
        ([0.05, -0.2], 1, "2 of 5: 1 changes to “slow”; 1 more becomes confident enough"),
        ([0.05, 0.02], 2, "2 of 5 become confident enough in “slow”"),
        ([-0.1, -0.2], 0, "2 of 5 change to “slow”"),
        ([0.05, -0.2], 3, "2 of 5 reach “slow” with the required confidence"),  # the counts do not agree
    ],
)
def test_who_had_the_wanted_class_already_is_told_apart(before: list[float], below: int, said: str) -> None:
    given: dict[str, Any] = {"confidence_before": np.array([*before, -0.3, -0.3, -0.3]), "below_margin": below}
    assert said in read(make(question=Question(("slow",), "margin", 0.1), **given))
    if below:
        threshold = read(make(question=Question(("slow",), "threshold", 0.7), **given))
        assert "2 of 5 reach “slow” with the required confidence" in threshold


@pytest.mark.parametrize(
    ("changes", "others", "sentence"),
    [
        (2, {Fate.LEFT_OUT: 3}, "The plan moves 2 of 5 into the wanted class."),
        (
            2,
            {Fate.ALREADY: 1998, Fate.UNUSABLE: 1},
            "The plan moves 2 of 2,001 into the wanted class; including the 1,998 already there, 2,000 are "
            "predicted in it with the required confidence.",
        ),
        (0, {Fate.ALREADY: 1}, "The plan moves 0 of 1 into the wanted class; 1 was already there."),
    ],
)
def test_the_headline_tells_those_moved_from_those_there(changes: int, others: dict[Fate, int], sentence: str) -> None:
    assert headline(make([[-3.3, 0.0]] * changes, others=others)) == sentence


def test_one_person_is_singular() -> None:
    text = read(make([[-3.3, 0.0]], others={Fate.ALREADY: 1}))
    assert "1 of 2 changes to the wanted class" in text
    assert "Including the 1 already there, 2 are predicted in the wanted class" in text
    alone = read(make([[-3.3, 0.0]], others={}))
    assert "maxflip plan for 1 person 1 of 1 changes" in alone
    assert "1 person in all" in alone


@pytest.mark.parametrize(
    ("given", "said", "unsaid"),
    [
        ({}, "Not known: Valid plan; its distance from the best possible is not known.", "Proved: No plan"),
        (
            {"bound": 4.9, "status": Status.OPEN},
            "Proved: No plan can reach more than 4 within these budgets and limits: at most 2 more.",
            "estimated maximum",
        ),
        ({"bound": 2.0, "status": Status.OPTIMAL}, "is 2; no plan can do better.", "at most"),
        ({"bound": 2.9, "status": Status.OPEN}, "is 2; no plan can do better.", "at most"),
        ({"bound": 2.9, "status": Status.OPEN}, "this one is the best possible", "at most"),
        (
            {"estimate": 3.6, "status": Status.OPEN},
            "Estimated: the maximum is 4 (not proved).",
            "Proved No plan",
        ),
        (
            {"estimate": 1.2, "status": Status.OPEN},
            "Close to the best: the estimated maximum is 2 (not proved).",
            "Proved: No plan",
        ),
        (
            {"bound": math.inf, "status": Status.FEASIBLE},
            "its distance from the best possible is not known",
            "Proved No plan",
        ),
        ({"status": Status.OPTIMAL}, "Proved: Valid plan, and no plan can be worth more.", "Not known"),
    ],
)
def test_only_what_is_proved_is_called_proved(given: dict[str, Any], said: str, unsaid: str) -> None:
    text = read(make(**given))
    assert said in text
    assert unsaid not in text


def test_bound_and_estimate_are_both_said() -> None:
    text = read(make(bound=5.0, estimate=3.0, status=Status.OPEN))
    assert "No plan can reach more than 5" in text
    assert "the maximum is 3" in text
    assert "is 5 (not proved)." in read(make(bound=5.4, estimate=7.0, status=Status.OPEN))  # that much is proved


def test_worth_is_named_where_people_count_differently() -> None:
    worths = np.array([1.5, 2.25, 1.0, 1.0, 0.125])
    text = read(make(worths=worths, bound=4.00001, status=Status.OPEN))
    assert "Their total worth is 3.75, out of 5.875 for everyone not already there." in text
    # a bound is never rounded down
    assert "No plan can be worth more than 4.00001 within these budgets and limits" in text
    assert "No plan can be worth more than 4.00001 " in read(make(worths=worths, bound=4.000001, status=Status.OPEN))
    assert "the maximum is a worth of 4.5 (not proved)." in read(make(worths=worths, estimate=4.5, status=Status.OPEN))
    assert "worth" not in read(make(bound=4.0, status=Status.OPEN))


# Nobody picked


def test_an_empty_plan_says_why() -> None:
    others = {Fate.ALREADY: 5, Fate.LEFT_OUT: 1200, Fate.NOT_FOUND: 1, Fate.UNREACHABLE: 30, Fate.UNUSABLE: 2}
    text = read(make([], others=others, below_margin=4))
    assert "0 of 1,238 reach the wanted class with the required confidence" in text
    assert "5 were already there." in text
    assert "Why nobody is picked" in text
    assert "1,200 were left out: the budgets do not pay" in text
    assert "For 1 no change was found" in text
    assert "30 were out of reach: it is proved" in text
    assert "2 were unusable" in text
    assert "No feature changes: nobody is picked." in text
    assert "; they may be" not in text


def test_everyone_there_already() -> None:
    text = read(make([], others={Fate.ALREADY: 5}, bound=0.0, status=Status.OPTIMAL))
    assert "Everyone is predicted in the wanted class already; there is nothing to change." in text


def test_a_plan_for_nobody_is_a_page_too() -> None:
    assert "0 of 0 change to" in read(make([], others={}))


# Budgets


@pytest.mark.parametrize(("between", "said"), [((6.5, 7.5), ""), ((5.5, 9.2), "valid for a budget from 6 to 9")])
def test_the_price_of_a_place_is_valid_for_whole_numbers_of_people(between: tuple[float, float], said: str) -> None:
    text = read(
        make(budgets={"people": Budget(7, None, "count")}, prices={"people": 1.0}, price_ranges={"people": between})
    )
    assert "valid for" in text if said else "valid for" not in text
    assert said in text


def test_budgets_in_words() -> None:
    budgets = {
        "bp": Budget(400.0, {"bp": 1.0}),
        "bmi": Budget(math.inf, {"bmi": 1.0}, "absolute"),
        "hours": Budget(8.0, {"bmi": 0.5, "bp": 0.25}, "absolute"),
        "both": Budget(1e9, {"bmi": 1.0, "bp": 1.0}),
        "people": Budget(4, None, "count"),
        "none": Budget(0.0, {"bp": 0.0}),
    }
    text = read(make(budgets=budgets, prices={"bp": 0.031, "people": 0.0}, price_ranges={"bp": (300.0, 450.0)}))
    assert (
        "bpsquared changes of this feature144 of 400 squared mmHg (36.0%)about 0.031 more people per squared mmHg"
        "one more person for about 32 squared mmHg; valid for a budget from 300 to 450"
    ) in text
    assert "bmichanges of this feature4.4 kg/m² (no limit)nothing more" in text
    assert "hourschanges: 0.5 per kg/m² of bmi, 0.25 per mmHg of bp5.2 of 8 (65.0%)not known" in text
    assert "bothsquared changes: bmi, bp156.1 of 1,000,000,000 (<0.1%)" in text
    assert "peopleeach person picked2 of 4 people (50.0%)nothing more" in text
    assert "nonenothing0 of 0 (–)" in text
    assert "a change of 3 mmHg costs 9 squared mmHg" in text
    assert "The limiting budget is bp. Each" in text  # nothing is known of some of the others


def test_what_holds_the_plan_back_is_said_as_far_as_prices_are_known() -> None:
    def said(**prices: float) -> str:
        return read(make(prices=prices)).split("Where the budgets went")[1].split("Each budget")[0].strip()

    assert said(bmi=1.0, bp=0.5) == "The limiting budgets are bmi and bp."
    assert said(bmi=1.0, bp=0.0) == "The limiting budget is bmi. More of bp alone would not help."
    assert said(bmi=0.0, bp=0.0).startswith("By their prices, no single budget limits the plan")
    assert said(bmi=0.0) == ""


MANY = (
    r"(people|persons|samples|places|units|squared units|flips|features|rounds|groups|budgets|values|seconds"
    r"|were|are|have|others|more (?!person|place|feature change\b)\w+s\b|still pass\b|of them pass\b)"
)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("fates", [{}, {Fate.LEFT_OUT: 1}, dict.fromkeys(set(Fate) - {Fate.FLIPPED}, 1)])
@pytest.mark.parametrize("below_margin", [0, 1])
def test_nothing_is_said_of_one_as_of_many(count: int, fates: dict[Fate, int], below_margin: int) -> None:
    budgets = {
        "bp": Budget(10.0, {"bp": 1.0}, "absolute"),
        "one": Budget(1.0, {"bmi": 1.0}, "absolute"),
        "free": Budget(math.inf, None, "count"),
        "people": Budget(1.0, None, "count"),
    }
    held = FrozenMap({1.0: count, 0.9: min(count, 1), 0.8: min(count, 1), 0.5: 0})
    plan = make(
        [(-0.5, 0.0), (-0.5, 2.0)][:count],
        others=fates,
        budgets=budgets,
        units={},
        spend={"bp": 1.0, "one": 0.5, "free": 1.0, "people": 1.0},
        prices={"bp": 1.0, "one": 0.0, "free": 0.0, "people": 0.5},
        price_ranges={"bp": (5.0, 20.0)},
        holds=Holds(held, min(count, 1), FrozenMap({f"x{i}": 0 for i in range(13)})),
        bound=count + 1.0,
        below_margin=below_margin,
        seconds=1.0,
    )
    near = Plausibility(
        np.array([1.0, math.nan][:count]), np.array([1.0, math.nan][:count]), {q: q for q in QUANTILES}, 1, "a.csv", "x"
    )
    insight = Insight(plausibility=near, judges=(Judged("b.pt2", 1, 1),))
    text = Page(render(plan, insight)).text
    assert not (found := re.findall(rf"(?<![\d.,−])1 {MANY}.*?\w+", text)), found


def test_budgets_too_small_for_any_flip_are_named() -> None:
    def said(people: People = "full", **given: Any) -> str:
        budgets = {"bp": Budget(1e-9, {"bp": 1.0}), "bmi": Budget(5.0, {"bmi": 1.0}, "absolute")}
        plan = make([], budgets=budgets, **{"others": {Fate.LEFT_OUT: 3}, **given})
        text = Page(render(plan, None, people)).text
        return text.split("Where the budgets went")[1].split("Each budget")[0].strip()

    words = "Nobody can be picked: even the cheapest change that is known takes"
    none = {"bp": 0.0, "bmi": 0.0}
    assert said(prices=none, needs={"bp": 12.25}) == f"{words} 12.3 squared mmHg of bp (there is 1 × 10⁻⁹)."
    assert said(needs={"bp": 12.25}) == f"{words} 12.3 squared mmHg of bp (there is 1 × 10⁻⁹)."
    both = f"{words} 1 squared mmHg of bp (there is 1 × 10⁻⁹) and 6 kg/m² of bmi (there is 5)."
    assert said(prices=none, needs={"bp": 1.0, "bmi": 6.0}) == both
    assert said(prices={"bp": 2.0, "bmi": 0.0}, needs={"bp": 1.0}).endswith(
        "The limiting budget is bp. More of bmi alone would not help."
    )
    # Amounts that are one person's stay off a page without people.
    assert said("none", prices=none, needs={"bp": 1.0}) == f"{words} more than there is of bp."
    # Of a plan saved before this was kept, and of groups with parts of the budgets, less is known.
    assert said(prices=none) == "The budgets do not pay for any change that is known to move somebody."
    assert said(prices=none, others={Fate.NOT_FOUND: 3}).startswith("By their prices, no single budget")
    page = read(make([], prices=none, needs={"bp": 1.0})).split("Where the budgets went")[1].split("Which features")[0]
    assert page.count("nothing more") == 1  # nothing is known of a first unit of bp
    assert page.count("not known") == 1
    places = {"people": Budget(0.0, None, "count")}
    assert f"{words} a place of people (there is none)." in read(make([], budgets=places, needs={"people": 1.0}))


def test_one_of_a_budget_is_one_person() -> None:
    def said(places: float) -> str:
        question = Question(("stable",), "margin", 0.1)
        return read(make(budgets={"people": Budget(places, None, "count")}, question=question))

    assert "Budgets people 1 person " in said(1.0).replace("Budgetspeople", "Budgets people")
    assert "Budgets people 3 people " in said(3.0).replace("Budgetspeople", "Budgets people")
    assert "2 of 1 person" in said(1.0)
    assert "one more person for about 1 unit; valid" in read(
        make(
            units={},
            budgets={"bp": Budget(20.0, {"bp": 1.0}, "absolute")},
            prices={"bp": 1.0},
            price_ranges={"bp": (9, 99)},
        )
    )


@pytest.mark.parametrize(("before", "words"), [(1, "this one was not picked."), (2, "0 of them were picked.")])
def test_one_below_the_margin_is_no_them(before: int, words: str) -> None:
    confidence = np.full(5, -0.25)
    confidence[3 : 3 + before] = 0.05
    question = Question(("stable",), "margin", 0.1)
    text = read(make(below_margin=before, confidence_before=confidence, question=question))
    assert words in text
    assert ("This one is counted under its own fate" in text) is (before == 1)


def test_a_tenth_more_of_a_budget_promises_no_more_than_the_bound() -> None:
    """2 of 5 are picked; D = 1 + 0.01 x 100 of bp + 0.2 x 3 people = 2.6, and 2.7 with 110 of bp."""
    given: dict[str, Any] = {
        "budgets": {"bp": Budget(100.0, {"bp": 1.0}), "people": Budget(3, None, "count")},
        "prices": {"bp": 0.01, "people": 0.3},
    }

    def said(proved: bool, **prices: float) -> str:
        return read(make(**given, ceilings=(Ceiling(prices, 1.0, proved),)))

    assert "10% more of this budget: nobody more" in said(True, bp=0.01, people=0.2)
    assert "10% more of this budget: about 0.1 more people" in said(True, bp=0.2, people=0.0)
    assert "one more place: about 0.3 more people" in said(True, bp=0.01, people=0.3)
    given["prices"] = {"bp": 0.3, "people": 0.3}
    assert "10% more of this budget: at most 1 more person" in said(True, bp=0.2, people=0.0)
    assert "10% more of this budget: at most about 1 more person" in said(False, bp=0.2, people=0.0)  # three places
    assert "10% more of this budget: at most about 0.7 more people" in said(False, bp=0.01, people=0.2)
    assert "10% more" not in read(make(**given))


def test_a_budget_does_not_hold_back_a_plan_that_uses_up_its_places() -> None:
    """Whatever the solver says of its price."""
    budgets = {"bp": Budget(400.0, {"bp": 1.0}), "people": Budget(2, None, "count")}
    text = read(make(budgets=budgets, prices={"bp": 0.091, "people": 1.0}))
    assert "The limiting budget is people. More of bp alone would not help." in text
    assert "(36.0%)nothing more" in text


def test_what_differs_between_people_is_in_words() -> None:
    """Fees, weights of each one's own, both ways, and whose changes a budget pays for."""
    own, inside = Own(np.arange(5.0) + 1, "hours"), np.array([True, False, True, True, False])
    budgets = {
        "visits": Budget(
            90.0, {"bmi": own, "bp": Ways(2.0, 0.5)}, "absolute", fee=2.5, only=Part(("site", "Oslo"), inside)
        ),
        "fees": Budget(9.0, None, "count", fee=own),
        "places": Budget(4.0, None, "count", only=Part(frozenset(["P-0", "P-3"]), inside)),
        "bmi": Budget(50.0, {"bmi": 1.0}, fee=0.1),
    }
    found = {row.name.striptags(): row for row in budgets_of(make(budgets=budgets)).rows}
    words = {name: str(row.pays_for.striptags()) for name, row in found.items()}
    assert words["visits"] == (
        "changes: each one's own per kg/m² of bmi, 2 up and 0.5 down per mmHg of bp; and 2.5 for each person picked; "
        "only of site = 'Oslo'"
    )
    assert words["fees"] == "a fee of each one's own for each person picked"
    assert words["places"] == "each person picked; only of 2 people named by id"
    assert words["bmi"] == "squared changes of this feature; and 0.1 for each person picked"
    assert [str(row.unit.striptags()) for row in found.values()] == [
        "",
        "",
        "people",
        "",
    ]  # fees have no unit of a feature
    assert [row.spent for row in found.values()] == ["5.8", "3", "1", "12.3"]


def test_a_person_pays_the_fee_and_their_own_weight() -> None:
    """P-0 changes bmi by -3.3 at the weight 1, and P-1 by -1.1 at 2, beside fees of 5 and 1."""
    budget = Budget(
        20.0, {"bmi": Own(np.array([1.0, 2.0, 1.0, 1.0, 1.0]))}, "absolute", fee=Own(np.array([5.0, 1.0, 0, 0, 0]))
    )
    plan = make([[-3.3, 0.0], [-1.1, 0.0]], budgets={"hours": budget})
    shown = people(plan, "full")
    assert shown is not None
    assert [row.cost for row in shown.rows] == ["41.5%", "16.0%"]


def test_what_few_people_pay_is_hidden() -> None:
    """Of two people picked, one draws on the budget of a site; a count of people tells nothing of anybody."""
    inside = Part(("site", "Oslo"), np.array([True, False, False, False, False]))
    budgets = {
        "site": Budget(9.0, {"bmi": 1.0}, only=inside),
        "fees": Budget(9.0, None, "count", fee=2.0, only=inside),
        "places": Budget(4.0, None, "count", only=inside),
    }
    assert [row.is_hidden for row in budgets_of(make(budgets=budgets), fewest=2).rows] == [True, True, False]
    assert not any(row.is_hidden for row in budgets_of(make(budgets=budgets)).rows)


def test_features_of_one_unit_share_it_in_their_budget() -> None:
    budgets = {"both": Budget(400.0, {"bmi": 1.0, "bp": 1.0}), "rest": Budget(9.0, {"bmi": 2.0, "bp": 1.0})}
    text = read(make(budgets=budgets, units={"bmi": "kg", "bp": "kg"}))
    assert "156.1 of 400 squared kg (39.0%)" in text
    assert re.search(r"of 9 \(", text)  # weighed, it is in units of its own


def test_a_whole_person_is_promised_only_as_far_as_the_price_holds() -> None:
    given: dict[str, Any] = {"budgets": {"bp": Budget(400.0, {"bp": 1.0})}, "prices": {"bp": 0.01}}
    near, far = ({"bp": (300.0, top)} for top in (499.0, 501.0))
    assert "one more person" not in read(make(**given, price_ranges=near))
    assert "one more person for about 100 squared mmHg" in read(make(**given, price_ranges=far))


def test_a_price_that_is_next_to_nothing_is_0() -> None:
    """Of 400 squared mmHg: all of them for less than a millionth of a person."""
    for price, shown in ((1e-10, "(36.0%)nothing more"), (1e-6, "about 1 × 10⁻⁶ more people")):
        assert shown in read(make(budgets={"bp": Budget(400.0, {"bp": 1.0})}, prices={"bp": price}))


def test_no_unit_brings_more_than_all_who_are_left() -> None:
    """Of a tiny budget a whole unit is far more than its price can hold for."""
    budgets, others = {"bp": Budget(1e-6, {"bp": 1.0})}, {Fate.ALREADY: 4, Fate.LEFT_OUT: 3, Fate.UNREACHABLE: 2}
    given: dict[str, Any] = {"changes": [[0.0, 1e-4]], "budgets": budgets, "others": others}
    assert "at most 5 more people per squared mmHg: nobody else is left" in read(make(**given, prices={"bp": 7000.0}))
    worths = np.array([9.0] * 5 + [0.5] * 5)
    assert "at most 2.5 more worth per" in read(make(**given, worths=worths, prices={"bp": 7000.0}))
    assert "about 4.9 more people per squared mmHg" in read(make(**given, prices={"bp": 4.9}))
    assert "about 1 more person per squared mmHg" in read(make(**given, prices={"bp": 1.004}))


def test_nothing_is_said_about_the_first_unit_of_a_budget_of_0() -> None:
    budgets = {"bmi": Budget(600.0, {"bmi": 1.0}), "bp": Budget(0.0, {"bp": 1.0})}
    text = read(make([[-3.3, 0.0]], budgets=budgets, prices={"bmi": 0.5, "bp": 0.0}))
    assert "0 of 0 squared mmHg (–)not known" in text
    assert "The limiting budget is bmi. Each" in text


def test_no_squared_budget_no_explanation_and_no_prices_no_column() -> None:
    text = read(make(budgets={"people": Budget(2, None, "count"), "bp": Budget(20.0, {"bp": 1.0}, "absolute")}))
    assert "A squared budget" not in text
    assert "What more would bring" not in text


def test_features_without_units() -> None:
    text = read(make(units={}))
    assert "squared units" in text
    assert "a change of 3 costs 9," in text
    assert "bmi 31.2 → 27.9 (−3.3)" in text


def test_nearly_all_is_not_all() -> None:
    text = read(make(budgets={"bmi": Budget(12.100001, {"bmi": 1.0})}, changes=[[-3.4785054, 0.0]]))
    assert ">99.9%" in text
    assert "100%" not in text.split("Which features")[0]


# Everyone, features, people


def test_every_fate_is_in_the_table_and_in_the_bar() -> None:
    others = {Fate.ALREADY: 10, Fate.LEFT_OUT: 1000, Fate.NOT_FOUND: 3, Fate.UNREACHABLE: 4, Fate.UNUSABLE: 1}
    page = Page(render(make(others=others, below_margin=6)))
    assert "Already there 10 (1.0%), Picked 2 (0.2%), Left out 1,000 (98.0%), No change found 3 (0.3%)" in page.text
    assert "1,020 people in all" in page.text
    for row in ("Already there101.0%Pred", "Picked20.2%The plan", "Left out1,00098.0%A ch", "Unreachable40.4%Proved"):
        assert row in page.text
    assert "For 6 of them the wanted class was the most likely one from the start" in page.text
    rects = [(a, v) for t, a, v in page.attributes if t == "rect" and a in ("x", "width") and v and v.count(".") == 1]
    pairs = [(float(x[:-1]), float(w[:-1])) for (a, x), (b, w) in pairwise(rects) if (a, b) == ("x", "width")]
    bar = pairs[-6:]
    assert [start for start, _ in bar] == sorted(start for start, _ in bar)
    assert bar[0][0] == 0
    assert sum(width for _, width in bar) == pytest.approx(100, abs=0.1)


def test_features_say_for_how_many_and_by_how_much() -> None:
    changes = [[-3.0, 0.0], [-1.0, 0.0], [5.0, 0.0], [-2.0, 40.0]]
    text = read(make(changes))
    assert "bmikg/m²4 (100%)3 lowered, 1 raised−2.3−1.5+0.5" in text
    assert "bpmmHg1 (25.0%)1 raised+40+40+40" in text


def test_people_in_words() -> None:
    text = read(make(question=Question((), "margin", 0.1)))
    assert "P-0−0.2500.1250.0251.8%bmibmi 31.2 → 27.9 (−3.3 kg/m²)" in text
    assert "bp 31 → 43 (+12 mmHg)" in text
    assert "All 2 picked." in text
    assert "0.1 is required" in text
    assert "To spare" not in read(make())


def test_what_follows_from_changes_is_shown_with_them() -> None:
    page = Page(render(following()))
    assert "bmi 31.2 → 27.9 (−3.3 kg/m²)follows: pulse <b> 60 → 52" in page.text
    assert page.text.count("follows: ") == 1
    assert "Follows from others'pulse <b>' = bp - 2 * bmi" in page.text
    assert page.data["follows"] == [[2, 60.0, 52.0], []]
    assert [name for name, *_ in page.data["features"]] == ["bmi", "bp", "pulse <b>"]
    assert "stays as it is" not in page.text
    plain = Page(render(make()))
    assert "follows" not in plain.data
    assert "follows" not in plain.text.lower()


def test_what_a_cost_is_part_of_where_there_is_no_limit() -> None:
    said = "(of a budget without a limit: the share of what is spent of it)"
    assert said not in read(make())
    free = read(make([[-3.0, 0.0], [-4.0, 0.0]], budgets={"bmi": Budget(math.inf, {"bmi": 1.0})}))
    assert said in free
    assert "36.0%bmi" in free  # 9 of the 25 that both draw


def test_of_many_changes_the_dearest_are_shown() -> None:
    features = tuple(f"f{i}" for i in range(9))
    budgets = {f: Budget(10.0 ** (9 - i), {f: 1.0}) for i, f in enumerate(features)}
    page = Page(render(make([[1.0] * 9], features=features, budgets=budgets, units={})))
    person = page.text.split("Changes")[-1].split("Everyone in the cohort")[0]
    assert re.findall(r"f\d", person) == ["f8", "f8", "f7", "f6"]  # the first is whose budget the cost is of
    assert "and 6 more" in person
    assert page.data["changes"] == [[n for i in range(8, -1, -1) for n in (i, 31.2, 1)]]


@pytest.mark.parametrize("change", [1e-300, 5e-324, -1e-9, 1e-3, 1e6, 1e200, -1.7e308])
def test_numbers_of_any_size_read_well(change: float) -> None:
    plan = make([[change, 1.0]], budgets={"bmi": Budget(math.inf, {"bmi": 1.0}, "absolute"), "bp": Budget(9.0)})
    text = read(plan)
    assert not re.search(r"\d{10}", text.replace(",", ""))
    assert not re.search(r"\de[+-]?\d", text)
    assert ("(+" if change > 0 else "(−") in text


def test_how_it_was_made() -> None:
    text = read(make(notices=("Columns are ignored: street.",)))
    for part in (
        "Columns are ignored: street.",
        "Nearest()",
        "Seed7",
        "feasible Valid plan",
        "1 × 10⁻⁹",
        "0.25 seconds",
    ):
        assert part in text


def test_what_was_asked_is_said_with_when_and_from_what() -> None:
    digest = "ab" * 32
    plan = make(
        question=Question(("<slow>",), "margin", 0.1), made="2026-01-31T12:00:00+00:00", inputs={"cohort": digest}
    )
    text = read(plan)
    assert (
        "May changenothing: every budget is 0 Budgetsbmi 600 squared kg/m²; bp 600 squared mmHg Where the budgets went"
    ) in text
    assert "Made2026-01-31T12:00:00+00:00" in text
    assert f"Inputscohort {digest} (SHA-256)" in text
    silent = read(make())
    assert "What was asked" not in silent
    assert "Inputsnot recorded" in silent


# The page as a page


def test_hostile_texts_stay_texts() -> None:
    assert len(set(HOSTILE)) >= 50
    k = len(HOSTILE)
    features = HOSTILE
    units = {f: HOSTILE[(i + 7) % k] for i, f in enumerate(features)}
    plan = make(
        np.eye(k),
        features=features,
        units=units,
        budgets={f: Budget(4.0, {f: 1.0}) for f in features}
        | {"shared " + f: Budget(9.0, {f: 2.0}, "absolute") for f in features},
        notices=HOSTILE,
        question=Question((HOSTILE[1],), "margin", 0.1),
        inputs={f: f for f in HOSTILE},
        versions={f: f for f in HOSTILE},
        solver=SolverUsed(HOSTILE[0]),
    )
    plan = dataclasses.replace(plan, all_ids=np.array([*HOSTILE, *plan.all_ids[k:]], dtype=object))
    page = Page(render(plan))
    assert set(page.tags) <= TAGS
    assert {name for _, name, _ in page.attributes} <= ATTRIBUTES
    assert {value for _, name, value in page.attributes if name == "href"} == {
        "#asked",
        "#budgets",
        "#everyone",
        "#features",
        "#people",
        "#made",
        "#main",
    }
    assert not page.others
    for text in HOSTILE:
        # id; feature in two tables and in a budget; its unit; budget; notice; version twice
        assert page.bdi.count(text) >= 9
        assert page.bdi.count("shared " + text) == 1
    # the same page with harmless texts has the same markup
    tame = {text: f"t{i}" for i, text in enumerate(HOSTILE)}
    twin = dataclasses.replace(
        plan,
        features=tuple(tame.values()),
        units={tame[f]: tame[u] for f, u in units.items()},
        all_ids=np.array([tame.get(i, i) for i in plan.all_ids], dtype=object),
        budgets={
            n: Budget(b.amount, {tame[f]: w for f, w in b.weights.items()}, b.cost) for n, b in _tamed(plan, tame)
        },
        spend={n: s for (n, _), s in zip(_tamed(plan, tame), plan.spend.values(), strict=True)},
        notices=tuple(tame.values()),
        versions={t: t for t in tame.values()},
        solver=SolverUsed("t"),
    )
    assert Page(render(twin)).tags == page.tags


def _tamed(plan: Plan, tame: dict[str, str]) -> list[tuple[str, Budget]]:
    names = [tame.get(n) or "shared " + tame[n.removeprefix("shared ")] for n in plan.budgets]
    return list(zip(names, plan.budgets.values(), strict=True))


def test_texts_that_no_page_can_carry_are_replaced_and_long_ones_cut() -> None:
    plan = make(notices=("a\x00b", "c\ud800d", "x" * 10_000))
    long = "start" + "x" * 500 + "end"
    plan = dataclasses.replace(plan, all_ids=np.array([long, *plan.all_ids[1:]], dtype=object))
    html = render(plan)
    html.encode()
    page = Page(html)
    assert "a\ufffdb" in page.bdi
    assert "c\ufffdd" in page.bdi
    assert any(t.startswith("start") and t.endswith("end") and "…" in t and len(t) == 60 for t in page.bdi)
    assert len(html) < 50_000


def test_one_self_contained_page() -> None:
    html = render(make(bound=4.0, prices={"bmi": 1.0}, status=Status.OPEN))
    page = Page(html)
    styles = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(styles) == len(scripts) == 1
    style, script = (base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in (*styles, *scripts))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert ("meta", "content", policy) in page.attributes
    assert html.index("Content-Security-Policy") < html.index("<title>")
    assert "http" not in html.replace("http-equiv", "")
    assert not re.search(r"url\(|@import|<link|<img", html)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", html)
    assert not any(name.startswith("on") or name == "style" for _, name, _ in page.attributes)
    assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("header") == 1
    assert page.tags.count("caption") == page.tags.count("table")
    assert page.tags.count("th") == sum(name == "scope" for _, name, _ in page.attributes)
    assert ("html", "lang", "en") in page.attributes
    assert ("meta", "name", "viewport") in page.attributes
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert "{{" not in html
    assert "{%" not in html


def test_the_script_is_short_and_stays_away_where_there_is_nobody_to_show() -> None:
    script = render(make()).split("<script>")[1].split("</script>")[0]
    assert len(script.splitlines()) < 400
    assert "<script" not in render(make([], others={Fate.ALREADY: 3}))


def test_the_same_plan_gives_the_same_page() -> None:
    assert render(make()) == render(make())


def test_the_last_bits_of_a_change_make_no_other_page() -> None:
    """Nor does the machine on which a page is compared with its plan."""
    plan = make(
        [[-3.3, 7.1], [1.9, -0.7]], budgets={"a": Budget(70.0, {"bmi": 0.3, "bp": 0.1}), "b": Budget(7e9, {"bmi": 0.7})}
    )
    moves = np.nextafter(plan.moves, 0.0)
    assert Page(render(dataclasses.replace(plan, moves=moves))).data == Page(render(plan)).data


def test_rendering_leaves_the_plan_alone() -> None:
    plan = make()
    changes, before = plan.changes.copy(), plan.before.copy()
    render(plan)
    np.testing.assert_array_equal(plan.changes, changes)
    np.testing.assert_array_equal(plan.before, before)


def test_a_large_plan_stays_under_two_megabytes() -> None:
    rng = np.random.default_rng(0)
    features = tuple(f"feature with a long name {i}" for i in range(20))
    units = dict.fromkeys(features, "mmol/mol per day")
    html = render(make(rng.normal(0, 100, (1000, 20)), features=features, units=units))
    assert len(html.encode()) < 2_000_000
    page = Page(html)
    assert page.text.count("and 17 more") == 200
    assert "The first 200 of 1,000." in page.text
    assert [len(page.data["ids"]), {len(c) for c in page.data["changes"]}] == [1000, {60}]


def test_beyond_ten_thousand_people_the_file_has_the_rest() -> None:
    page = Page(render(make(np.full((10_234, 2), 1.0))))
    assert "This page holds 10,000 of the 10,234 people; the others are in plan.parquet." in page.text
    assert page.data["ids"][-1] == "P-9999"
    assert "P-199" in page.bdi
    assert "P-200" not in page.bdi


def test_of_very_many_changes_the_dearest_are_held_and_the_page_says_so() -> None:
    """1,000 people with 100 changes each: 30 of each, so that the page stays small."""
    features = tuple(f"f{i}" for i in range(100))
    page = Page(render(make(np.ones((1000, 100)), features=features, units={})))
    assert "This page shows at most 30 changes per person" in page.text
    assert {len(c) for c in page.data["changes"]} == {90}
    assert set(page.data["more"]) == {70}
    assert "changes at most" not in read(make(np.ones((10, 100)), features=features, units={}))


@pytest.mark.parametrize(("count", "most"), [(1_000, 2_000_000), (10_000, 15_000_000)])
def test_sequences_with_many_long_numbers_and_ids_stay_small(count: int, most: int) -> None:
    """The largest page of that many people: 30 changes of each are held, and every number has all its digits."""
    rng = np.random.default_rng(0)
    features = tuple(f"feature with a long name {i:03d}" for i in range(35))
    budgets = {f: Budget(1e12, {f: 1.0}) for f in features[:11]} | {
        "rest": Budget(1e12, dict.fromkeys(features[11:], 1.0))
    }
    moves = rng.normal(scale=1e3, size=(count, 35))
    step = rng.integers(1000, 9999, size=moves.shape)
    plan = make(np.zeros((count, 35)), features=features, units={}, budgets=budgets, spend=dict.fromkeys(budgets, 1e11))
    plan = dataclasses.replace(
        plan,
        places=SequencePlaces(np.arange(35), step, step + rng.random(step.shape), np.full(count, 10_000)),
        moves=moves,
        before=rng.normal(scale=1e3, size=moves.shape),
        all_ids=np.array([f"{j:060d}" for j in range(count + 3)], dtype=object),
        confidence_before=rng.uniform(-1, 0, count + 3),
        worths=rng.uniform(1, 2, count + 3),
    )
    html = render(plan)
    assert most / 2 < len(html.encode()) < most


def test_many_features_and_budgets_are_cut_and_said_so() -> None:
    features = tuple(f"f{i}" for i in range(450))
    text = read(make(np.ones((1, 450)), features=features, units={}))
    assert "These are the most used; 250 more are in summary.json." in text
    assert "250 more features change" in text
