"""The report: what it says, that nothing in a plan can become markup, and that it stays small."""

from __future__ import annotations

import dataclasses
import math
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from maxflip.budgets import Budget
from maxflip.plan import Fate, Plan, Status
from maxflip.report import render
from maxflip.report.answer import headline

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "aside", "nav", "div"),
    *("h1", "h2", "p", "a", "b", "i", "em", "strong", "small", "span", "bdi", "code", "ul", "li", "dl", "dt", "dd"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "rect", "text"),
}
ATTRIBUTES = {
    *("lang", "dir", "charset", "http-equiv", "content", "name", "class", "id", "href", "role", "tabindex"),
    *("aria-label", "aria-hidden", "scope", "colspan", "rowspan", "width", "height", "x", "y", "rx"),
}
VOID = {"meta", "rect"}

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    '"onx="alert(1)',
    "'onx='alert(1)",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "` onerror=alert(1) `",
    "{{7*7}}",
    "{% raw %}",
    "{# comment #}",
    "${7*7}",
    "<%= 7*7 %>",
    "{{ plan.__class__.__mro__ }}",
    "\u202ereversed",
    "\u202dforced\u202c",
    "\u2067isolated",
    "<b>",
    "</b>",
    "</bdi><b>bold</b>",
    "</td></tr></table>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE x>",
    "<?php echo 1 ?>",
    "&lt;script&gt;",
    "&amp;",
    "&#60;script&#62;",
    "&",
    "<",
    ">",
    "<svg onload=alert(1)>",
    "<svg/onload=alert(1)>",
    "<img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "javascript:alert(1)",
    "<a href='javascript:alert(1)'>x</a>",
    "<math><mi xlink:href='data:x,1'>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil>",
    "<base href=//evil>",
    "<meta charset=utf-7>",
    "<form action=//evil><button>",
    "<plaintext>",
    "<textarea>",
    "\\u003cscript\\u003e",
    "+ADw-script+AD4-",
    "%3Cscript%3E",
)


class Page(HTMLParser):
    """Checks that the tags close in order; keeps the texts and what stands in each <bdi>."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.bdi: list[str] = []
        self.words: list[str] = []
        self.others: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "bdi":
            self.bdi.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)
        if self.open and self.open[-1] == "bdi":
            self.bdi[-1] += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)


def read(plan: Plan) -> str:
    return Page(render(plan)).text


def make(changes: Any = ((-3.3, 0.0), (-1.1, 12.0)), *, others: dict[Fate, int] | None = None, **given: Any) -> Plan:
    """Whoever has changes comes first and is flipped; the `others` follow."""
    change = np.array(changes, dtype=np.float64)
    features = given.pop("features", ("bmi", "bp"))
    change = change.reshape(-1, len(features))
    count = len(change)
    fates = [Fate.FLIPPED.value] * count
    for fate, number in ({Fate.LEFT_OUT: 3} if others is None else others).items():
        fates += [fate.value] * number
    n = len(fates)
    budgets = given.pop("budgets", {f: Budget(600.0, {f: 1.0}) for f in features})
    ids = np.array([f"P-{j}" for j in range(n)], dtype=object)
    plan = Plan(
        **{
            "features": features,
            "units": {"bmi": "kg/m²", "bp": "mmHg"},
            "all_ids": ids,
            "selected": np.arange(count),
            "moves": change,
            "before": np.where(change != 0, 31.2, np.nan),
            "fates": np.array(fates, dtype=object),
            "worths": np.ones(n),
            "confidence_before": np.full(n, -0.25),
            "confidence_after": np.full(count, 0.125),
            "below_margin": 0,
            "budgets": budgets,
            "spend": dict.fromkeys(budgets, 0.0),
            "prices": None,
            "bound": None,
            "estimate": None,
            "status": Status.FEASIBLE,
            "solver": "Nearest()",
            "seed": 7,
            "seconds": 0.25,
            "guard": 1e-9,
            "versions": {"maxflip": "0.1.0"},
            **given,
        }
    )
    if "spend" in given:
        return plan
    spend = dict(zip(budgets, plan.ledger.spent(change).tolist(), strict=True))
    return dataclasses.replace(plan, spend=spend)


# The answer


def test_the_answer_comes_first_and_the_warning_directly_after() -> None:
    text = read(make(others={Fate.ALREADY: 33, Fate.LEFT_OUT: 1965}))
    parts = (
        "2 of 2,000 are moved into the wanted class by the plan",
        "With the 33 already there, 35 are predicted in it as confidently as asked.",
        "This plan moves predictions, not outcomes.",
        "Where the budgets went",
        "What became of everyone",
        "Which features change",
        "The people picked",
        "Notices, and how it was made",
    )
    places = [text.index(p) for p in parts]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("changes", "others", "sentence"),
    [
        (2, {Fate.LEFT_OUT: 3}, "The plan moves 2 of 5 into the wanted class."),
        (
            2,
            {Fate.ALREADY: 1998, Fate.UNUSABLE: 1},
            "The plan moves 2 of 2,001 into the wanted class; with the 1,998 already there, 2,000 are predicted in it "
            "as confidently as asked.",
        ),
        (0, {Fate.ALREADY: 1}, "The plan moves 0 of 1 into the wanted class; 1 was there already."),
    ],
)
def test_the_headline_tells_those_moved_from_those_there(changes: int, others: dict[Fate, int], sentence: str) -> None:
    assert headline(make([[-3.3, 0.0]] * changes, others=others)) == sentence


def test_one_person_is_singular() -> None:
    text = read(make([[-3.3, 0.0]], others={Fate.ALREADY: 1}))
    assert "1 of 2 is moved into the wanted class by the plan" in text
    assert "With the 1 already there, 2 are predicted in it" in text
    alone = read(make([[-3.3, 0.0]], others={}))
    assert "maxflip plan for 1 person 1 of 1 is moved" in alone
    assert "1 person in all" in alone


@pytest.mark.parametrize(
    ("given", "said", "unsaid"),
    [
        ({}, "Not known Valid plan; how far it is from the best possible is not known.", "Proved No plan"),
        (
            {"bound": 4.9, "status": Status.OPEN},
            "Proved No plan can reach more than 4 within these budgets and limits: at most 2 more.",
            "estimate that",
        ),
        ({"bound": 2.0, "status": Status.OPTIMAL}, "is 2, and no plan can do better.", "at most"),
        ({"bound": 2.9, "status": Status.OPEN}, "is 2, and no plan can do better.", "at most"),
        ({"bound": 2.9, "status": Status.OPEN}, "this one is the best possible", "at most"),
        (
            {"estimate": 3.6, "status": Status.OPEN},
            "Not proved We estimate that no plan reaches many more than 4.",
            "Proved No plan",
        ),
        ({"estimate": 1.2, "status": Status.OPEN}, "no plan reaches many more than 2.", "Proved No plan"),
        ({"bound": math.inf, "status": Status.LIMIT}, "a limit you set ended the run", "Proved No plan"),
        ({"bound": 4.0, "status": Status.LIMIT}, "A limit that was set ended the run", "can do better"),
        ({"status": Status.OPTIMAL}, "Proved Valid plan, and no plan can be worth more.", "Not known"),
    ],
)
def test_only_what_is_proved_is_called_proved(given: dict[str, Any], said: str, unsaid: str) -> None:
    text = read(make(**given))
    assert said in text
    assert unsaid not in text


def test_bound_and_estimate_are_both_said() -> None:
    text = read(make(bound=5.0, estimate=3.0, status=Status.OPEN))
    assert "No plan can reach more than 5" in text
    assert "no plan reaches many more than 3" in text


def test_worth_is_named_where_people_count_differently() -> None:
    worths = np.array([1.5, 2.25, 1.0, 1.0, 0.125])
    text = read(make(worths=worths, bound=4.00001, status=Status.OPEN))
    assert "The 2 together are worth 3.75; all who were not there yet are worth 5.875 together." in text
    # a bound is never rounded down
    assert "No plan can be worth more than 4.00001 within these budgets and limits" in text
    assert "No plan can be worth more than 4.00001 " in read(make(worths=worths, bound=4.000001, status=Status.OPEN))
    assert "no plan is worth much more than 4.5." in read(make(worths=worths, estimate=4.5, status=Status.OPEN))
    assert "worth" not in read(make(bound=4.0, status=Status.OPEN))


# Nobody picked


def test_an_empty_plan_says_why() -> None:
    others = {Fate.ALREADY: 5, Fate.LEFT_OUT: 1200, Fate.NOT_FOUND: 1, Fate.UNREACHABLE: 30, Fate.UNUSABLE: 2}
    text = read(make([], others=others, below_margin=4))
    assert "0 of 1,238 are moved into the wanted class by the plan" in text
    assert "5 were there already." in text
    assert "Why nobody is picked" in text
    assert "1,200 were left out: the budgets do not pay" in text
    assert "For 1 no change was found" in text
    assert "30 were out of reach: it is proved" in text
    assert "2 were unusable" in text
    assert "No feature changes: nobody is picked." in text
    assert "among the 0" not in text


def test_everyone_there_already() -> None:
    text = read(make([], others={Fate.ALREADY: 5}, bound=0.0, status=Status.OPTIMAL))
    assert "Everyone is predicted in the wanted class already; there is nothing to change." in text


def test_a_plan_for_nobody_is_a_page_too() -> None:
    assert "0 of 0 are moved" in read(make([], others={}))


# Budgets


def test_budgets_in_words() -> None:
    budgets = {
        "bp": Budget(400.0, {"bp": 1.0}),
        "bmi": Budget(math.inf, {"bmi": 1.0}, "absolute"),
        "hours": Budget(8.0, {"bmi": 0.5, "bp": 0.25}, "absolute"),
        "both": Budget(1e9, {"bmi": 1.0, "bp": 1.0}),
        "people": Budget(2, None, "count"),
        "none": Budget(0.0, {"bp": 0.0}),
    }
    page = Page(render(make(budgets=budgets, prices={"bp": 0.031, "people": 0.0})))
    text = page.text
    assert "bpchanges of this feature36.0%144400squared mmHg0.031" in text
    assert "bmichanges of this feature–4.4no limitkg/m²0" in text
    assert "hourschanges: 0.5 per kg/m² of bmi, 0.25 per mmHg of bp65.0%5.28–" in text
    assert "bothsquared changes: bmi, bp<0.1%156.11,000,000,000–" in text
    assert "peopleeach person picked100%22people0" in text
    assert "nonenothing–00" in text
    assert "a change of 3 mmHg costs 9 squared mmHg" in text
    assert "about how many more people one more unit of that budget would bring" in text


def test_a_price_that_is_next_to_nothing_is_0() -> None:
    """Of 400 squared mmHg: all of them for less than a millionth of a person."""
    for price, shown in ((1e-10, "squared mmHg0 "), (1e-6, "squared mmHg1 × 10⁻⁶")):
        page = Page(render(make(budgets={"bp": Budget(400.0, {"bp": 1.0})}, prices={"bp": price})))
        assert shown in page.text


def test_no_squared_budget_no_explanation_and_no_prices_no_column() -> None:
    text = read(make(budgets={"people": Budget(2, None, "count"), "bp": Budget(20.0, {"bp": 1.0}, "absolute")}))
    assert "A squared budget" not in text
    assert "Price" not in text


def test_features_without_units() -> None:
    text = read(make(units={}))
    assert "squared units" in text
    assert "a change of 3 costs 9," in text
    assert "bmi 31.2 → 27.9 (−3.3)" in text


def test_nearly_all_is_not_all() -> None:
    text = read(make(budgets={"bmi": Budget(12.100001, {"bmi": 1.0})}, changes=[[-3.4785054, 0.0]]))
    assert ">99.9%" in text
    assert "100%" not in text.split("What became")[0]


# Everyone, features, people


def test_every_fate_is_in_the_table_and_in_the_bar() -> None:
    others = {Fate.ALREADY: 10, Fate.LEFT_OUT: 1000, Fate.NOT_FOUND: 3, Fate.UNREACHABLE: 4, Fate.UNUSABLE: 1}
    plan = make(others=others, below_margin=6)
    page = Page(render(plan))
    label = "There already 10, Flipped 2, Left out 1,000, Not found 3, Unreachable 4, Unusable 1"
    assert ("svg", "aria-label", label) in page.attributes
    assert "1,020 people in all" in page.text
    for fate in Fate:
        assert fate.meaning[1:] in page.text
    assert "6 of them had the wanted class as their likeliest at the start" in page.text
    widths = [float(v[:-1]) for t, a, v in page.attributes if t == "rect" and a == "width" and v and v != "100%"]
    starts = [float(v[:-1]) for t, a, v in page.attributes if t == "rect" and a == "x" and v]
    assert len(starts) == 6
    assert sorted(starts) == starts
    assert sum(widths[2:8]) == pytest.approx(100, abs=0.1)


def test_features_say_both_directions_apart() -> None:
    changes = [[-3.0, 0.0], [-1.0, 0.0], [5.0, 0.0], [-2.0, 40.0]]
    text = read(make(changes))
    assert "bmi43−2.0−3.01+5.0+5.0kg/m²" in text
    assert "bp1–––1+40+40mmHg" in text


def test_people_in_words() -> None:
    text = read(make())
    assert "P-0−0.250 → 0.125bmi 31.2 → 27.9 (−3.3 kg/m²)" in text
    assert "bp 31 → 43 (+12 mmHg)" in text
    assert "All 2 picked, in the order of the cohort." in text


def test_of_many_changes_the_dearest_are_shown() -> None:
    features = tuple(f"f{i}" for i in range(9))
    budgets = {f: Budget(10.0 ** (9 - i), {f: 1.0}) for i, f in enumerate(features)}
    text = read(make([[1.0] * 9], features=features, budgets=budgets, units={}))
    person = text.split("Changes")[-1]
    assert re.findall(r"f\d", person) == ["f8", "f7", "f6", "f5", "f4", "f3"]
    assert "and 3 more" in person


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
    plan = make(question={"Wanted class": "'<slow>'"}, made="2026-01-31T12:00:00+00:00", inputs={"cohort": digest})
    text = read(plan)
    assert "What was asked Wanted class'<slow>' Where the budgets went" in text
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
        question={f: f for f in HOSTILE},
        inputs={f: f for f in HOSTILE},
        versions={f: f for f in HOSTILE},
        solver=HOSTILE[0],
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
        solver="t",
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
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    page = Page(html)
    assert ("meta", "content", policy) in page.attributes
    assert html.index("Content-Security-Policy") < html.index("<title>")
    assert "http" not in html.replace("http-equiv", "")
    assert not re.search(r"url\(|@import|//|<script|<link|<img", html)
    assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("title") == 1
    assert page.tags.count("caption") == page.tags.count("table") == 4
    assert page.tags.count("th") == sum(name == "scope" for _, name, _ in page.attributes)
    assert ("html", "lang", "en") in page.attributes
    assert ("meta", "name", "viewport") in page.attributes
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert "{{" not in html
    assert "{%" not in html


def test_the_same_plan_gives_the_same_page() -> None:
    assert render(make()) == render(make())


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
    assert page.text.count("and 14 more") == 1000
    assert "All 1,000 picked" in page.text


def test_beyond_a_thousand_people_the_file_has_the_rest() -> None:
    page = Page(render(make(np.full((1234, 2), 1.0))))
    assert "The first 1,000 of 1,234, in the order of the cohort. See plan.parquet for the rest." in page.text
    assert "The other 234 people are in plan.parquet." in page.text
    assert "P-999" in page.bdi
    assert "P-1000" not in page.bdi


def test_many_features_and_budgets_are_cut_and_said_so() -> None:
    features = tuple(f"f{i}" for i in range(450))
    text = read(make(np.ones((1, 450)), features=features, units={}))
    assert "These are the most used; 250 more are in summary.json." in text
    assert "250 more features change" in text
