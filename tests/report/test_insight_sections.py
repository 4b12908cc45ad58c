"""What the page shows beyond the plan itself: other budgets, likeness to real people, groups, near and far, rounds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from maxflip.plan.plan import Fate
from maxflip.problem.question import Question
from maxflip.report import render
from maxflip.report.charts import Line, Quantiles, lines, ticks
from maxflip.study.groups import Group, Groups
from maxflip.study.insight import Insight, Outlook, Plausibility
from tests.report.plans import HOSTILE, Page, make

OUTLOOK = Outlook((0.5, 1.0, 2.0), (1, 2, 4), (1.5, 3.0, 6.0), (None, None, None), (1.5, 2.5, 4.75))


def shown(insight: Insight, **given: Any) -> str:
    return Page(render(make(**given), insight)).text


def likeness(before: Any, after: Any, **given: Any) -> Plausibility:
    settings: dict[str, Any] = {
        "typical": {0.05: 0.5, 0.25: 1.0, 0.5: 2.0, 0.75: 3.0, 0.95: 4.0},
        "references": 1200,
        "source": "the cohort",
        "measure": "Euclidean distance",
    } | given
    return Plausibility(before=np.array(before), after=np.array(after), **settings)


def test_the_frontier_shows_people_estimates_and_this_plan() -> None:
    text = shown(Insight(frontier=OUTLOOK))
    assert "Half of the budgets reaches 1; double reaches 4." in text
    assert "this plan" in text
    assert "estimated maximum (not proved)" in text
    assert "upper bound (proved)" not in text
    assert "0.512" in text
    assert "245" in text


def test_the_frontier_is_in_worth_where_people_count_differently() -> None:
    text = shown(Insight(frontier=OUTLOOK), worths=np.array([1.0, 2.0, 1.0, 1.0, 1.0]))
    assert "Half of the budgets reaches a worth of 1.5; double reaches a worth of 6." in text


def test_a_proved_bound_is_drawn_as_one() -> None:
    proved = Outlook((1.0, 2.0), (2, 4), (2.0, 4.0), (2.0, 5.9), (None, None))
    text = shown(Insight(frontier=proved))
    assert "upper bound (proved)" in text
    assert "(not proved)" not in text
    assert "245" in text  # nobody is nine tenths of a person


def test_numbers_of_the_frontier_are_not_below_what_they_stand_for() -> None:
    """A bound is rounded up where people count differently, and no estimate lies below what is reached."""
    worths = np.array([1.5, 0.5, 1.0, 1.0, 1.0])
    found = Outlook((1.0, 2.0), (2, 3), (2.0, 3.0), (None, 1234.5641), (None, 2.5))
    text = shown(Insight(frontier=found), worths=worths)
    assert "231,234.573" in text


def test_one_scale_is_no_frontier() -> None:
    assert "What larger or smaller" not in shown(Insight(frontier=Outlook((1.0,), (2,), (2.0,), (None,), (None,))))


def test_likeness_says_how_many_end_far_from_everyone_real() -> None:
    text = shown(Insight(plausibility=likeness([1.0, 3.0], [2.0, 5.0])))
    assert "50.0% would look unusual among real people of the wanted class" in text
    assert "The median distance to the nearest real person is 2 before the change and 3.5 after it" in text
    assert "Compared with 1,200 real people of the cohort." in text


def test_likeness_says_of_how_many_it_is_not_known() -> None:
    changes = [[-1.0, 0.0]] * 4
    found = Insight(plausibility=likeness([1.0, 3.0, np.nan, np.nan], [2.0, 5.0, np.nan, np.nan]))
    text = shown(found, changes=changes)
    assert "50.0% of the 2 people for whom this is known would look unusual" in text
    assert "For 2 people picked this is not known: there are too few real people of their wanted class." in text


def test_where_nobody_real_is_known_there_is_no_likeness_but_the_reason() -> None:
    nobody = Insight(plausibility=likeness([np.nan] * 2, [np.nan] * 2), notices=("a.csv: has fewer than 10 samples.",))
    text = shown(nobody)
    assert "Do they look" not in text
    assert "a.csv: has fewer than 10 samples." in text


def test_groups_with_shares_of_those_who_were_not_there() -> None:
    text = shown(
        Insight(groups=Groups("ward", (Group("north", 40, 20, 10, 5, -0.25), Group("south", 9, 9, 0, 0, None))))
    )
    assert "By group: ward" in text
    assert "north4020 (50.0%)10 (50.0%)525.0%−0.25" in text
    assert "south few99 (100%)0 (–)0––" in text
    assert "fewer than ten people: its shares say little" in text


def test_those_who_were_excluded_are_not_said_to_have_a_known_change() -> None:
    insight = Insight(groups=Groups("ward", (Group("north", 40, 20, 10, 5, -0.25),)))
    said = "People who must not be picked count as reachable."
    assert said not in shown(insight)
    assert said in shown(insight, exclude=np.array([4]))


def test_texts_of_an_insight_are_texts() -> None:
    groups = Groups("<b>ward</b>", tuple(Group(text, 20, 1, 2, 1, None) for text in HOSTILE))
    insight = Insight(None, likeness([1.0, 2.0], [1.0, 2.0], source="<i>file</i>"), groups, HOSTILE)
    page = Page(render(make(), insight))
    for text in ("<b>ward</b>", "<i>file</i>", *HOSTILE):
        assert text in page.bdi
    assert not page.others


# Near and far


def test_those_nearest_the_line_are_said_to_be_picked() -> None:
    before = np.concatenate([np.linspace(-0.2, 0.0, 10), np.linspace(-0.9, -0.3, 20)])
    plan = make(
        [[-1.0, 0.0]] * 10,
        others={Fate.LEFT_OUT: 15, Fate.NOT_FOUND: 5},
        confidence_before=before,
        question=Question((), "margin", 0.1),
    )
    text = Page(render(plan)).text
    assert "The median confidence before the change is −0.1 for people picked and −0.6 for people not picked." in text
    assert "The plan mostly picked people who were closer to the wanted class." in text
    assert "10 picked" in text
    assert "20 not picked" in text
    assert "required" in text


def test_where_the_picked_were_farther_the_page_does_not_say_nearest() -> None:
    before = np.concatenate([np.linspace(-0.9, -0.3, 10), np.linspace(-0.2, 0.0, 20)])
    text = Page(render(make([[-1.0, 0.0]] * 10, others={Fate.LEFT_OUT: 20}, confidence_before=before))).text
    assert "did not simply pick the people closest to the wanted class" in text


def test_of_a_handful_there_is_no_histogram() -> None:
    assert "How close people were" not in Page(render(make(others={Fate.LEFT_OUT: 300}))).text


# Rounds


def test_rounds_are_drawn_where_they_mean_something_and_listed_in_any_case() -> None:
    trace = {"step": ["first", "<b>"], "dual": [5.5, 2.5], "seconds": [0.1, 0.2], "spent: bmi": [1.0, 2.0]}
    page = Page(render(make(trace=trace)))
    assert "dual value at the current prices: from 5.5 to 2.5" in page.text
    assert "<b>" in page.bdi
    assert "spent: bmi" not in page.text
    alone = Page(render(make(trace={"step": [1], "found": [7], "note": [None]}))).text
    assert "Solver progress" in alone
    assert "17–" in alone
    assert "dual value" not in alone
    assert "Solver progress" not in Page(render(make())).text


def test_of_many_rounds_the_last_ones_are_listed() -> None:
    text = Page(render(make(trace={"worth": list(range(1000, 2000))}))).text
    assert "The last 30 of 1,000 rounds" in text
    assert "1,9691,970" not in text
    assert "1,970" in text


# Charts


def test_ticks_are_round_and_inside() -> None:
    for low, high in ((0.0, 1e-9), (-3.7, 12.2), (99.5, 100.79), (-1e12, 4e12)):
        marks = ticks(low, high)
        assert 2 <= len(marks) <= 5
        assert all(low - 1e-9 * abs(low) <= m <= high * (1 + 1e-9) for m in marks)


def test_lines_break_where_a_number_is_not_known_and_have_a_name_and_a_description() -> None:
    svg = lines(
        "k", "A <title>", "It & that", [Line("l", "plan", [0, 1, 2, 3], [1.0, float("nan"), 3.0, 4.0])], x_name="x"
    )
    path = re.search(r'<path class="line plan" d="(M[^h"]*)"', svg.split("</text>")[-1])
    assert path is not None
    assert [path[1].count("M"), path[1].count("L")] == [2, 1]
    assert '<title id="k-title">A &lt;title&gt;</title><desc id="k-desc">It &amp; that</desc>' in svg


def test_a_spread_is_made_of_quantiles() -> None:
    assert Quantiles.of(np.arange(101.0)) == Quantiles(5.0, 25.0, 50.0, 75.0, 95.0)


@pytest.mark.parametrize("values", [[0.0, 0.0], [1e300, 2e300], [-1.0, -1.0]])
def test_charts_of_odd_numbers_are_drawn(values: list[float]) -> None:
    insight = Insight(frontier=Outlook((1.0, 2.0), (0, 0), tuple(values), tuple(values), (None, None)))
    html = render(make(worths=np.full(5, 2.0), trace={"worth": values}), insight)
    assert "nan" not in html.split("<figure>", 1)[1].split("</figure>")[0]
    assert "inf" not in html.split("<figure>", 1)[1].split("</figure>")[0]
