"""Actions, switches and whole numbers in the report: in words, with what they draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxflip import Action, Budget, Limit, Plan, solve
from maxflip.report import render
from maxflip.report.features import decimals_of
from maxflip.report.hold import headline
from tests.examples import linear_problem
from tests.report.plans import Page

STARTS = [[2.0, 1.0, 0.0, 0.0], [3.0, 0.0, 1.0, 0.0], [5.0, 1.0, 0.0, 0.0]]
ONE_HOT = {"plan": ["plan_basic", "plan_plus", "plan_pro"]}


def planned(**options: Any) -> Plan:
    budgets = {"hours": Budget(20.0, cost="absolute", uses={"late": 1.0} if "limits" in options else None)}
    return solve(
        linear_problem(
            [-1.0, 0.0, 0.5, 1.5], STARTS, options.pop("budgets", budgets), b=1.0,
            features=["late", "plan_basic", "plan_plus", "plan_pro"], **options,
        )
    )  # fmt: skip


def test_actions_are_told_with_what_they_draw() -> None:
    actions = [Action("call", {"late": -6.0}, {"hours": 2.0}), Action("gift", {"late": "x 0.9"}, {"hours": "0.5 late"})]
    page = Page(render(planned(actions=actions)))
    assert "calllate - 6hours: 23 (100%)" in page.text
    assert "1 action for nobody." in page.text
    assert "callfollows: late 2 → −4" in page.text
    assert "Features change by actions alone" in page.text
    assert "nobody is picked" not in page.text


def test_actions_are_carried_out_as_a_whole() -> None:
    plan = planned(actions=[Action("call", {"late": -6.0}, {"hours": 2.0})])
    assert headline(plan).startswith("Actions are carried out as a whole")
    text = Page(render(plan)).text
    assert "90% of each change" not in text


def test_categories_are_told_by_their_values() -> None:
    budgets = {"money": Budget(100.0, cost="absolute", uses={"plan": 5.0})}
    choices = {"plan": {"pro": 2.0, "basic -> pro": 1.0}}
    page = Page(render(planned(one_hot=ONE_HOT, choices=choices, budgets=budgets)))
    assert "plan: basic → pro" in page.text
    assert "follows: plan" not in page.text
    assert ["plan: basic → pro", "", 0, 1, "plan becomes pro"] in page.data["features"]
    assert not page.data["follows"][0]


def test_codes_are_told_by_their_numbers() -> None:
    page = Page(render(planned(choices={"late": {0: 1.0}}, budgets={"late": Budget(9.0, cost="absolute")})))
    assert "late: 3 → 0" in page.text


def test_whole_numbers_are_shown_as_such() -> None:
    page = Page(render(planned(limits={"late": Limit(step=1)})))
    assert "late 2 → 0 (−2)" in page.text


@pytest.mark.parametrize(
    ("moved", "others", "decimals"),
    [
        ([-2.0, 3.0], 0.0, 0),
        ([-2.0, 3.0], [4.0, 5.5], 1),
        ([-2.5, 3.0], 0.0, 1),
        ([40.0, 50.0], [0.25], 0),
        ([], 0.0, 0),
    ],
)
def test_numbers_are_whole_where_all_are(moved: list[float], others: Any, decimals: int) -> None:
    assert decimals_of(np.array(moved), np.array(others)) == decimals
