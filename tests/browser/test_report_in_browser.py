"""The report in a real browser: search, sorting, one person; keyboard, phone, paper, dark; hostile texts."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxflip import Action, solve
from maxflip.data.places import SequencePlaces
from maxflip.plan.plan import Fate, Plan, Status
from maxflip.plan.used import SolverUsed
from maxflip.problem.budgets import Budget
from maxflip.problem.question import Lever, Question
from maxflip.study.groups import Group, Groups
from maxflip.study.insight import Insight, Outlook, Plausibility
from tests.browser.conftest import Open, Opened, missing
from tests.examples import linear_problem
from tests.report.plans import HOSTILE, following, make

AXE = Path(__file__).parents[2] / ".tools" / "axe.min.js"
COUNT = 60
SECTIONS = (
    *("What was asked", "Where the budgets went", "What larger or smaller budgets reach", "Which features change"),
    *("The people picked", "Everyone in the cohort", "Do they look like real people?", "By group: ward"),
    *("How it was made", "How close people were before the change"),
)


def clinic(**given: Any) -> Plan:
    """60 of 120 picked: the k-th lowers bmi by k / 10, raises bp by 30 - k / 2 and began at confidence -k / 100."""
    steps = np.arange(1, COUNT + 1)
    settings: dict[str, Any] = {
        "confidence_before": np.concatenate([-steps / 100, np.linspace(-0.99, -0.3, COUNT)]),
        "confidence_after": np.full(COUNT, 0.1 + 1e-6),
        "question": Question(("stable",), "margin", 0.1, (Lever("bmi"),)),
        "budgets": {
            "bmi": Budget(900.0, {"bmi": 1.0}),
            "bp": Budget(20_000.0, {"bp": 1.0}),
            "people": Budget(80, None, "count"),
        },
        "prices": {"bmi": 0.02, "bp": 0.001, "people": 0.0},
        "price_ranges": {"bmi": (800.0, 1000.0)},
        "estimate": 63.4,
        "status": Status.OPEN,
        "trace": {"step": ["a", "b", "c"], "dual": [90.0, 70.0, 63.4]},
        "notices": ("Columns are ignored: street.",),
        "made": "2026-01-31T12:00:00+00:00",
        "inputs": {"cohort": "ab" * 32},
    } | given
    return make(np.column_stack([-steps / 10, 30.0 - steps / 2]), others={Fate.LEFT_OUT: COUNT}, **settings)


def everything() -> Insight:
    rng = np.random.default_rng(0)
    return Insight(
        Outlook((0.5, 1.0, 2.0), (40, 60, 90), (40.0, 60.0, 90.0), (None,) * 3, (41.5, 63.4, 95.0)),
        Plausibility(
            before=rng.uniform(1, 3, COUNT),
            after=rng.uniform(1, 2, COUNT),
            typical={0.05: 0.5, 0.25: 0.8, 0.5: 1.1, 0.75: 1.5, 0.95: 2.2},
            references=50,
            source="cohort.csv",
            measure="Euclidean distance",
        ),
        Groups(
            "ward",
            (Group("north", 100, 0, 100, 55, -0.4), Group("south", 20, 0, 20, 5, None), Group("x", 3, 0, 1, 0, 0.0)),
        ),
        ("A remark.",),
    )


def stays() -> Plan:
    """Two patients, measured over time."""
    places = SequencePlaces(
        feature=np.array([0, 0, 1]),
        step=np.array([[1, 4, 4], [-1, 2, 2]]),
        time=np.array([[0.5, 7.25, 7.25], [np.nan, 3.0, 3.0]]),
        lengths=np.array([6, 3]),
    )
    moves = np.array([[-1.0, -2.5, 4.0], [0.0, -3.0, 0.0]])
    ledger_free = make(np.zeros((2, 2)))
    return dataclasses.replace(
        ledger_free,
        places=places,
        moves=moves,
        before=np.where(moves != 0, 31.2, np.nan),
        spend={"bmi": 16.25, "bp": 16.0},
    )


# What it does


def test_it_opens_without_a_word_and_asks_nobody(open_report: Open) -> None:
    opened = open_report(clinic(), everything())
    assert opened.page.title() == "Plan: 60 of 120 change to “stable”"
    assert len(opened.rows()) == 25


def test_search_finds_ids_and_features(open_report: Open) -> None:
    opened = open_report(clinic())
    page = opened.page
    assert page.locator("#people-found").inner_text() == "60 people"
    page.get_by_label("Search").fill("p-5")
    assert opened.rows() == ["P-5", *(f"P-{k}" for k in range(50, 60))]
    assert page.locator("#people-found").inner_text() == "11 of 60 people found"
    page.get_by_label("Search").fill("BMI")
    assert page.locator("#people-found").inner_text() == "60 of 60 people found"
    page.get_by_label("Search").fill("bp")  # the last person keeps their blood pressure
    assert page.locator("#people-found").inner_text() == "59 of 60 people found"
    page.get_by_label("Search").fill("nobody")
    assert opened.rows() == []


def test_columns_sort_both_ways_and_say_so(open_report: Open) -> None:
    opened = open_report(clinic())
    page = opened.page
    head = page.get_by_role("columnheader", name="Before")
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert (head.get_attribute("aria-sort"), opened.rows()[:2]) == ("ascending", ["P-59", "P-58"])
    head.get_by_role("button").click()
    assert (head.get_attribute("aria-sort"), opened.rows()[:2]) == ("descending", ["P-0", "P-1"])
    page.get_by_role("columnheader", name="Id").get_by_role("button").click()
    assert (head.get_attribute("aria-sort"), opened.rows()[:3]) == ("none", ["P-0", "P-1", "P-2"])  # not P-10


def test_pages_go_forth_and_back(open_report: Open) -> None:
    opened = open_report(clinic())
    page = opened.page
    pager = page.locator("#people-pager")
    assert pager.get_by_role("button", name="Previous").is_disabled()
    pager.get_by_role("button", name="Next").click()
    assert opened.rows()[0] == "P-25"
    pager.get_by_role("button", name="Next").click()
    assert (opened.rows()[-1], page.locator("#people-page").inner_text()) == ("P-59", "Page 3 of 3")
    assert pager.get_by_role("button", name="Next").is_disabled()
    pager.get_by_role("button", name="Previous").click()
    assert opened.rows()[0] == "P-25"


def test_rows_of_the_script_read_like_those_of_the_page(open_report: Open) -> None:
    """One wording, though two programs write it."""
    plan = clinic()
    live, plain = open_report(plan), open_report(plan, script=False)
    rows = [one.page.locator("#people-table tbody tr").all_inner_texts()[:25] for one in (live, plain)]
    assert rows[0] == rows[1]


def test_what_follows_is_in_the_table_and_in_the_view_of_a_person(open_report: Open) -> None:
    plan = following()
    opened, plain = open_report(plan), open_report(plan, script=False)
    page = opened.page
    rows = [one.page.locator("#people-table tbody tr").all_inner_texts() for one in (opened, plain)]
    assert rows[0] == rows[1]
    assert "follows: pulse <b> 60 → 52" in rows[0][0]
    page.get_by_label("Search").fill("pulse")
    assert opened.rows() == ["P-0"]
    page.get_by_role("button", name="P-0").click()
    table = page.locator("#person-body table").filter(has_text="What follows from these changes")
    assert table.locator("tbody tr").all_inner_texts() == ["pulse <b>\t60\t52\t−8"]
    assert not opened.faults


def test_small_and_large_changes_read_alike_too(open_report: Open) -> None:
    changes = [[c, 1.0] for c in (1e-300, -1e-9, 1e-3, 0.5, -77.125, 12345.678, 1e6, -1e20)]
    plan = make(
        changes,
        budgets={"bmi": Budget(np.inf, {"bmi": 1.0}, "absolute"), "bp": Budget(90.0, {"bp": 1.0})},
        confidence_before=np.array([-1e-9, 0.0005, 0.0015, -0.0005, -1234.5, 1e16, -0.5, 0.125, *[-0.5] * 3]),
        worths=np.array([1, 1e-7, 12345.678, 1.0005, 0.00012345, 3e20, 1, 1, 1, 1, 1]),
        question=Question((), "margin", 0.1),
    )
    live, plain = open_report(plan), open_report(plan, script=False)
    rows = [one.page.locator("#people-table tbody tr").all_inner_texts() for one in (live, plain)]
    assert rows[0] == rows[1]


def test_one_person_by_mouse(open_report: Open) -> None:
    opened = open_report(clinic())
    page = opened.page
    page.get_by_role("button", name="P-9", exact=True).click()
    view = page.get_by_role("dialog", name="P-9")
    assert view.is_visible()
    text = view.inner_text()
    assert "Confidence: −0.100 → 0.100 (0.1 required)." in text
    assert re.search(r"bmi\s+kg/m²\s+31.2\s+30.2\s+−1.0", text)
    assert re.search(r"bp\s+mmHg\s+31\s+56\s+\+25", text)
    assert re.search(r"bmi\s+0.1%", text)
    view.get_by_role("button", name="Next").click()
    assert page.get_by_role("dialog", name="P-10").is_visible()
    page.get_by_role("button", name="Close").click()
    assert page.get_by_role("dialog").count() == 0


def test_everything_by_keyboard(open_report: Open) -> None:
    opened = open_report(clinic())
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
    page.get_by_label("Search").focus()
    page.keyboard.type("P-1")
    assert len(opened.rows()) == 11
    sorting = page.get_by_role("columnheader", name="Before").get_by_role("button")
    sorting.focus()
    page.keyboard.press("Enter")
    assert opened.rows()[0] == "P-19"
    page.get_by_role("button", name="P-19", exact=True).focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog", name="P-19").is_visible()
    assert page.evaluate("document.activeElement.id") == "person-name"  # a screen reader says whose view this is
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the first button that can be pressed: the next person
    assert page.get_by_role("dialog", name="P-18").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    assert page.evaluate("document.activeElement.textContent") == "P-19"  # back where it began


def test_focus_is_visible(open_report: Open) -> None:
    page = open_report(clinic()).page
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    outline = page.evaluate(
        "(s => [s.outlineStyle, parseFloat(s.outlineWidth)])(getComputedStyle(document.activeElement))"
    )
    assert outline[0] == "solid"
    assert outline[1] >= 2


def test_sequences_are_shown_over_time(open_report: Open) -> None:
    page = open_report(stays()).page
    page.get_by_role("button", name="P-0", exact=True).click()
    view = page.get_by_role("dialog", name="P-0")
    assert view.get_by_role("img").count() == 2
    assert view.locator("svg title").all_text_contents() == [
        "bp, mmHg: one change, from 31.2 to 35.2",
        "bmi, kg/m²: 2 changes, the first from 31.2 to 30.2",
    ]
    view.get_by_text("The same in numbers").click()
    assert "step 4, time 7.25" in view.inner_text()
    assert "that change, over time 0.5 to 7.25. Hollow" in view.inner_text()
    view.get_by_role("button", name="Next").click()
    assert "that change, at time 3. Hollow" in page.get_by_role("dialog", name="P-1").inner_text()


def test_without_a_script_all_is_there_but_what_needs_one(open_report: Open) -> None:
    page = open_report(clinic(), everything(), script=False).page
    text = page.locator("body").inner_text()
    for section in SECTIONS:
        assert section in text
    assert page.locator("#people-table tbody tr").count() == COUNT
    assert not page.get_by_label("Search").is_visible()
    assert "need JavaScript" in text


# How it looks


def faults_by_axe(opened: Opened) -> list[str]:
    """axe runs beside the page's own policy, as a reader's extension would."""
    opened.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = opened.page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        f"{fault['impact']} {fault['id']}: {fault['nodes'][0]['html'][:200]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical", "moderate")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_axe_finds_no_fault(open_report: Open, scheme: str, width: int) -> None:
    if not AXE.is_file():
        missing("axe-core in .tools/")
    opened = open_report(clinic(below_margin=3), everything(), scheme=scheme, width=width)
    assert faults_by_axe(opened) == []
    opened.page.get_by_role("button", name="P-3", exact=True).click()
    assert faults_by_axe(opened) == []


def test_headings_go_down_one_step_at_a_time(open_report: Open) -> None:
    page = open_report(clinic(), everything()).page
    levels = page.evaluate("[...document.querySelectorAll('main h1, main h2, main h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_light_and_dark_follow_the_reader(open_report: Open) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = open_report(clinic(), scheme=scheme).page
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"))
    assert min(colours[0]) > 200
    assert max(colours[1]) < 60


@pytest.mark.parametrize("width", [390, 320, 1200])
def test_the_page_never_scrolls_sideways(open_report: Open, width: int) -> None:
    long = "a_feature_whose_name_has_no_end_and_no_place_to_break_it_" * 2
    budgets = {long: Budget(900.0), "bp": Budget(20_000.0)}
    plan = clinic(features=(long, "bp"), units={long: "very_long_units_of_measurement"}, budgets=budgets, prices=None)
    page = open_report(plan, everything(), width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.get_by_role("button", name="P-3", exact=True).click()
    assert page.evaluate("(d => d.scrollWidth - d.clientWidth)(document.getElementById('person'))") <= 0


def test_on_paper_everything_is_there(open_report: Open) -> None:
    opened = open_report(clinic(), everything())
    page = opened.page
    page.get_by_label("Search").fill("P-5")
    page.evaluate(
        """addEventListener("beforeprint", () => {
            window.rows = document.querySelectorAll("#people-table tbody tr").length;
            window.shut = document.querySelectorAll("details:not([open]) tbody tr").length;
            window.head = document.querySelector("#people-table thead").innerText;
        })"""
    )
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 4
    assert page.evaluate("window.rows") == 11
    assert page.evaluate("window.shut") > 12  # the long one alone stays folded
    assert page.evaluate("window.head").split() == ["Id", "Before", "After", "To", "spare", "Cost", "Changes"]
    assert page.get_by_role("columnheader", name="Before").get_by_role("button").count() == 1
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0
    page.emulate_media(media="print")
    for section in SECTIONS:
        assert page.get_by_role("heading", name=section).first.is_visible()
    assert page.locator("#people-table caption").inner_text().startswith("11 of 60. ")
    assert not page.get_by_label("Search").is_visible()
    assert not page.get_by_role("navigation").is_visible()


# Hostile texts


def test_hostile_texts_run_nowhere_and_are_shown_as_they_are(open_report: Open) -> None:
    texts = (*HOSTILE, "=cmd|' /C calc'!A0", "+1", "@SUM(A1)", "a\tb", "\u2028line", "a\u200fb")
    k = len(texts)
    plan = make(
        np.eye(k),
        features=texts,
        units={f: texts[(i + 7) % k] for i, f in enumerate(texts)},
        budgets={f: Budget(4.0, {f: 1.0}) for f in texts},
        notices=texts,
        question=Question(("</script><script>alert(1)</script>",), "margin", 0.1, tuple(map(Lever, texts))),
        inputs=dict.fromkeys(texts, "x"),
        versions=dict.fromkeys(texts, "x"),
        solver=SolverUsed(texts[0]),
        trace={texts[0]: [texts[1]], "dual": [1.0]},
    )
    plan = dataclasses.replace(plan, all_ids=np.array([*texts, *plan.all_ids[k:]], dtype=object))
    groups = Groups(texts[3], tuple(Group(t, 20, 1, 2, 1, None) for t in texts))
    opened = open_report(plan, Insight(groups=groups, notices=texts))
    page = opened.page
    seen: list[str] = []
    while True:
        seen += page.locator("#people-table tbody th bdi").all_text_contents()
        if not page.locator("#people-next").is_enabled() or not page.locator("#people-next").is_visible():
            break
        page.locator("#people-next").click()
    assert seen == list(texts)
    assert page.locator("script").count() == 2
    assert page.locator("img, iframe, form, base, link, style:not(head style)").count() == 0
    page.locator("#people-back").click()
    page.locator("#people-back").click()
    page.locator("#people-table tbody button").first.click()
    for _ in range(k - 1):
        assert page.locator("#person-name bdi").text_content() in texts
        page.locator("#person-next").click()
    assert page.locator("#person-name bdi").text_content() == texts[-1]


def test_characters_that_no_page_can_carry_are_replaced(open_report: Open) -> None:
    plan = make()
    ids = np.array(["a\x00b\x1b[31m", "c\ud800d", *plan.all_ids[2:]], dtype=object)
    opened = open_report(dataclasses.replace(plan, all_ids=ids))
    assert opened.rows() == ["a\ufffdb\ufffd[31m", "c\ufffdd"]


def test_a_right_to_left_mark_stays_in_its_cell(open_report: Open) -> None:
    """The cells beside it read the same as beside a harmless id."""
    plan = make()
    hostile = dataclasses.replace(plan, all_ids=np.array(["\u202eevil", "\u2067x", *plan.all_ids[2:]], dtype=object))
    places = []
    for one in (plan, hostile):
        page = open_report(one).page
        places.append(
            page.evaluate("[...document.querySelectorAll('#people-table tbody .changes')].map(c => c.innerText)")
        )
    assert places[0] == places[1]


@pytest.mark.parametrize("people", ["none", "pseudonyms"])
def test_pages_with_fewer_people_open_quietly_too(open_report: Open, people: str) -> None:
    opened = open_report(clinic(), everything(), people)
    assert opened.page.locator("#people-table").count() == (people == "pseudonyms")
    assert "P-1" not in opened.page.content()


def test_a_person_with_actions_alone_has_no_columns_of_amounts(open_report: Open) -> None:
    actions = [Action("call", {"x0": 3.0}, {"hours": 1.0})]
    plan = solve(linear_problem([1.0], [[-1.0]], {"hours": Budget(6.0, cost="absolute")}, actions=actions))
    page = open_report(plan).page
    page.get_by_role("button", name="0", exact=True).click()
    table = page.locator("#person-body table").filter(has_text="What is done")
    assert table.locator("thead th").all_inner_texts() == ["Action", "What it does"]
    assert table.locator("tbody tr").all_inner_texts() == ["call\tx0 + 3"]
