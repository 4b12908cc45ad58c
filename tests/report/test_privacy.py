"""What a page says of single people: ids, pseudonyms, or nothing."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from maxflip.plan.plan import Fate, Plan
from maxflip.problem.budgets import Budget
from maxflip.problem.question import Question
from maxflip.report import render
from maxflip.study.groups import Group, Groups
from maxflip.study.insight import Insight
from tests.report.plans import Page, make

COUNT = 30


def named(**given: Any) -> Plan:
    """30 people picked of 40, whose ids occur nowhere else; each changes by another amount."""
    changes = np.column_stack([-np.arange(1, COUNT + 1) / 7.0, np.zeros(COUNT)])
    given = {
        "question": Question(("stable",), "margin", 0.1),
        "include": np.array([3, 4]),
        "exclude": np.array([39]),
        "notices": ("include: already in the wanted class, so there is nothing to change: 'zq-5'.",),
        **given,
    }
    ids = np.array([f"zq-{j}" for j in range(COUNT + 10)], dtype=object)
    return make(changes, others={Fate.LEFT_OUT: 10}, all_ids=ids, **given)


def test_full_shows_everyone_by_id() -> None:
    page = Page(render(named()))
    assert page.data["ids"] == [f"zq-{j}" for j in range(COUNT)]
    assert "Must be picked'zq-3', 'zq-4'" in page.text
    assert "already in the wanted class" in page.text


def test_no_id_is_in_a_page_with_pseudonyms_or_without_people() -> None:
    for people in ("pseudonyms", "none"):
        html = render(named(), people=people)
        assert "zq-" not in html
        assert "1 notice is left out, because notices may name people" in Page(html).text
        assert "Must be picked" in html


def test_pseudonyms_are_new_for_every_page_and_the_order_tells_nothing() -> None:
    pages = [Page(render(named(), people="pseudonyms")) for _ in range(2)]
    for page in pages:
        assert page.data["ids"] == [f"Person {k}" for k in range(1, COUNT + 1)]
        assert "Person 7" in page.bdi
        assert "Names are made up for this page" in page.text
    first, second = ([change[-1] for change in page.data["changes"]] for page in pages)
    assert sorted(first) == sorted(second) == sorted(page_of_ids())
    assert len({tuple(first), tuple(second), tuple(page_of_ids())}) == 3  # 1 in 30! that chance says otherwise


def page_of_ids() -> list[float]:
    return [change[-1] for change in Page(render(named())).data["changes"]]


def test_a_page_without_people_has_no_row_about_anybody() -> None:
    html = render(named(), people="none")
    page = Page(html)
    assert "This page shows nothing about individual people." in page.text
    assert "<script" not in html
    assert "people-table" not in page.text
    assert "bmikg/m²30 (100%)30 lowered−3.3" in page.text  # but about all of them together


def test_without_people_amounts_of_fewer_than_five_are_left_out() -> None:
    changes = [[-1.0, 0.0]] * 6 + [[0.0, 4.0]] * 4
    text = Page(render(make(changes), people="none")).text
    assert "bmikg/m²6 (60.0%)6 lowered−1−1−1" in text
    assert "bpmmHg4 (40.0%)4 raised–––" in text
    assert "Amounts of fewer than five people are left out." in text
    assert "+4+4+4" in Page(render(make(changes))).text


def test_without_people_what_fewer_than_five_draw_is_left_out() -> None:
    """Of one person the root of a squared budget's spend is the change."""
    changes = [[-1.0, 0.0]] * 6 + [[0.0, 4.0]] * 4
    budgets = {
        "bmi": Budget(600.0, {"bmi": 1.0}),
        "bp": Budget(600.0, {"bp": 1.0}),
        "free": Budget(math.inf, {"bp": 2.0}),
        "people": Budget(10, None, "count"),
    }
    text = Page(render(make(changes, budgets=budgets), people="none")).text
    assert "bmisquared changes of this feature6 of 600 squared kg/m²" in text
    assert "bpsquared changes of this featurenot shown: fewer than five people draw on it" in text
    assert "bpnot shown: fewer than five people draw on it" in text
    assert "10 of 10 people" in text
    assert "64" not in text
    assert "64 of 600" in Page(render(make(changes, budgets=budgets))).text


def bars(plan: Plan, people: Any) -> list[int]:
    """How many people each bar of near and far stands for."""
    table = render(plan, people=people).split("<caption>Confidence before the change</caption>")[1].split("</table>")[0]
    of_picked, of_others = (re.findall(r"<tr><th[^>]*>[^<]*</th>" + cells, table) for cells in CELLS)
    counts = [round(float(share) / 100 * n) for shares, n in ((of_picked, 40), (of_others, 20)) for share in shares]
    return [count for count in counts if count]


CELLS = (r'<td class="n">([\d.]+)%', r'<td class="n">[^<]*</td><td class="n">([\d.]+)%')


def test_without_people_no_bar_of_near_and_far_stands_for_fewer_than_five() -> None:
    before = np.concatenate([np.linspace(-0.5111, 0.0, 40), np.linspace(-0.9222, -0.3, 20)])
    plan = make([[-1.0, 0.0]] * 40, others={Fate.LEFT_OUT: 20}, confidence_before=before)
    assert min(bars(plan, "full")) < 5
    assert min(bars(plan, "none")) >= 5
    assert sum(bars(plan, "none")) < 60
    assert "Bars of fewer than five people are left out." in Page(render(plan, people="none")).text
    assert "−0.922" in Page(render(plan)).text
    assert "−0.922" not in Page(render(plan, people="none")).text


def test_without_names_small_groups_are_not_told_apart() -> None:
    groups = (Group("a", 20, 5, 10, 5, 0.1), Group("b", 3, 0, 1, 1, 0.2), Group("c", 4, 0, 1, 0, 0.3))
    insight = Insight(groups=Groups("ward", groups))
    for people in ("none", "pseudonyms"):
        assert "small groupsfew7" in Page(render(named(), insight, people=people)).text.replace(" few", "few")
    assert "small groups" not in Page(render(named(), insight)).text


def test_a_column_of_ids_as_groups_names_nobody_without_names() -> None:
    groups = Groups("patient", tuple(Group(f"zq-{j}", 1, 0, 1, 1, -0.25) for j in range(COUNT)))
    for people in ("none", "pseudonyms"):
        assert "zq-" not in render(named(), Insight(groups=groups), people=people)
