"""Pictures of a plan: axes carry the plan's own numbers, and texts of the user's stand in them as they are."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from maxflip import (
    BCMS,
    Action,
    Budget,
    Cohort,
    InputError,
    Nearest,
    Plan,
    Prices,
    Problem,
    TorchClassifier,
    frontier,
    solve,
)
from maxflip.report.plots import (
    plot_actions,
    plot_changes,
    plot_convergence,
    plot_frontier,
    plot_person,
    plot_prices,
    plot_spend,
)
from tests.examples import linear_net, linear_problem, net_problem
from tests.sequences.examples import Total

HOSTILE = ["$x_1$ & $\\frac{", "_hidden", "<b>a\nb</b>\u202e"]
IDS = ["$a$ $b$", "_P", "\u202eab<script>", "P-3"]


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


def widths(ax: Any) -> list[float]:
    return [bar.get_width() for bar in ax.patches]


def ticks(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Everyone is moved along both features; `people` and `open` never bind."""
    rng = np.random.default_rng(0)
    budgets = {"x0": 3.0, "x1": 8.0, "people": Budget(1000, cost="count"), "open": Budget(math.inf, uses={"x0": 1.0})}
    return linear_problem([1.0, -0.5], rng.normal(-1.0, 0.5, size=(60, 2)), budgets, b=-0.5)


@pytest.fixture(scope="module")
def plan(problem: Problem) -> Plan:
    found = solve(problem)
    assert 0 < found.count < 60
    return found


@pytest.fixture(scope="module")
def hostile() -> Plan:
    classifier = TorchClassifier(linear_net([1.0, 1.0, 1.0]), output="logits")
    people = Cohort.table(np.full((4, 3), -1.0), features=HOSTILE, ids=IDS, units={HOSTILE[0]: "$/m$"})
    asked = Problem(classifier=classifier, cohort=people, target=1, margin=0.1, budgets=dict.fromkeys(HOSTILE, 9.0))
    return solve(asked)


@pytest.fixture(scope="module")
def stays() -> Plan:
    cohort = Cohort.sequences(
        [[[-1.0, 2.0], [np.nan, 1.0]], [[-2.0, 1.0]], [[5.0, 5.0]]],
        times=[[0.0, 7.0], [3.0], [0.0]],
        features=["bp", "glucose"],
        ids=["S-1", "S-2", "S-3"],
    )
    classifier = TorchClassifier(Total([1.0, 0.5], -3.0), output="logits")
    return solve(
        Problem(
            classifier=classifier, cohort=cohort, target=1, margin=0.1, steps="all", budgets={"bp": 90, "glucose": 90}
        )
    )


def test_bars_of_spend_are_parts_of_the_budgets(plan: Plan) -> None:
    ax = plot_spend(plan)
    assert ticks(ax) == ["x0", "x1", "people", "open"]
    assert widths(ax) == [plan.spend["x0"] / 3, plan.spend["x1"] / 8, plan.count / 1000, 0.0]
    notes = [text.get_text() for text in ax.texts]
    assert notes[2] == f"{plan.count} of 1,000"
    assert notes[3].endswith(", no limit")


def test_bars_of_prices_are_what_all_of_a_budget_is_worth(plan: Plan) -> None:
    assert plan.prices is not None
    ax = plot_prices(plan)
    drawn = dict(zip(ticks(ax), widths(ax), strict=True))
    assert drawn == {n: plan.prices[n] * a for n, a in {"x0": 3, "x1": 8, "people": 1000}.items()} | {"open": 0.0}
    assert widths(ax) == sorted(widths(ax), reverse=True)
    assert drawn["x0"] > 0


def test_bars_of_changes_count_those_who_go_up_and_down(plan: Plan) -> None:
    ax = plot_changes(plan)
    assert ticks(ax) == ["x0", "x1"]
    assert widths(ax) == [plan.count, 0, 0, -plan.count]  # x0 up, x1 up, x0 down, x1 down
    median = float(np.median(plan.changes[:, 0]))
    assert ax.texts[0].get_text() == f"median {median:+.3g}"


def test_bars_of_actions_count_people() -> None:
    """The call is enough for -1 alone, and the rest of six hours pays for two visits."""
    actions = [Action("call", {"x0": 1.5}, {"hours": 1.0}), Action("visit", {"x0": 3.0}, {"hours": 2.0})]
    budgets = {"hours": Budget(6.0, cost="absolute")}
    plan = solve(linear_problem([1.0], [[-1.0], [-2.0], [-2.0], [-2.0]], budgets, actions=actions))
    ax = plot_actions(plan)
    assert ticks(ax) == ["visit", "call"]
    assert widths(ax) == [2.0, 1.0]
    assert [text.get_text() for text in ax.texts] == ["x0 + 3", "x0 + 1.5"]
    assert ticks(plot_changes(plan)) == []
    with pytest.raises(InputError, match="plot_actions: nothing of the kind was asked"):
        plot_actions(solve(linear_problem([1.0], [[-1.0]], [9.0])))


def test_a_person_is_drawn_in_parts_of_the_largest_changes(plan: Plan) -> None:
    ax = plot_person(plan, plan.ids[2])
    assert widths(ax) == pytest.approx(plan.changes[2] / np.abs(plan.changes).max(axis=0), rel=1e-12)
    assert ticks(ax) == ["x0", "x1"]
    before, change = plan.before[2, 1], plan.changes[2, 1]
    assert ax.texts[1].get_text() == f"{before:.4g} → {before + change:.4g}".replace("-", "−")


def test_a_sequence_is_drawn_over_time(stays: Plan) -> None:
    assert stays.ids.tolist() == ["S-1", "S-2"]
    ax: Any = plot_person(stays, "S-1")
    assert ticks(ax) == ["bp", "glucose"]
    (dots,) = ax.collections
    assert sorted(map(tuple, dots.get_offsets().tolist())) == [
        (0.0, 0.0),
        (0.0, 1.0),
        (7.0, 1.0),
    ]  # bp once, glucose twice
    rows = stays.table().to_pylist()
    largest = {f: max(abs(r["change"]) for r in rows if r["feature"] == f) for f in ("bp", "glucose")}
    own = {(r["time"], ["bp", "glucose"].index(r["feature"])): r for r in rows if r["id"] == "S-1"}
    for place, size in zip(map(tuple, dots.get_offsets().tolist()), dots.get_sizes(), strict=True):
        row = own[place]
        assert size == pytest.approx(6 + 154 * abs(row["change"]) / largest[row["feature"]])
    assert widths(plot_changes(stays))[:2] == [2, 3]


def test_a_frontier_is_drawn_with_its_bounds_and_the_plan(problem: Problem, plan: Plan) -> None:
    curve = frontier(problem, [0.5, 1.0, 2.0])
    ax: Any = plot_frontier(curve, plan)
    worths, bounds, level = ax.lines
    assert list(worths.get_xdata()) == [0.5, 1.0, 2.0]
    assert list(worths.get_ydata()) == [p.worth for p in curve.plans]
    assert list(bounds.get_ydata()) == [p.bound for p in curve.plans]
    assert bounds.get_label() == "proved bound"
    assert set(level.get_ydata()) == {plan.worth}


def test_an_estimate_is_not_called_a_bound() -> None:
    asked = net_problem(n=30)
    curve = frontier(asked, [0.1, 0.2])
    ax: Any = plot_frontier(curve, curve.plans[0])
    assert [line.get_label() for line in ax.lines] == ["plan", "estimate, not proved", "this plan"]


def test_convergence_shows_the_trace() -> None:
    asked = net_problem(n=30)
    by_prices = solve(asked, Prices())
    ax: Any = plot_convergence(by_prices)
    assert list(ax.lines[0].get_ydata()) == list(by_prices.trace["dual"])
    assert set(ax.lines[1].get_ydata()) == {by_prices.worth}
    searched = solve(asked, BCMS.scale_free(outer=3, inner=20))
    again: Any = plot_convergence(searched)
    assert list(again.lines[0].get_ydata()) == list(searched.trace["worth"])
    grouped = solve(asked, BCMS.scale_free(outer=3, inner=20), allocation="proportional", groups=[0, 1] * 15)
    assert [line.get_label() for line in plot_convergence(grouped).lines] == ["group 0", "group 1"]


def test_what_a_plan_does_not_have_is_told(plan: Plan, problem: Problem) -> None:
    nearest = solve(problem, Nearest())
    with pytest.raises(InputError, match=r"no prices. Solve with Prices\(\)"):
        plot_prices(nearest)
    with pytest.raises(InputError, match="no steps to draw"):
        plot_convergence(nearest)
    with pytest.raises(InputError, match="nobody has the id 'P-77'"):
        plot_person(plan, "P-77")
    left_out = str(next(i for i in plan.all_ids if i not in plan.ids))
    with pytest.raises(InputError, match=f"changes nothing for '{left_out}': left_out"):
        plot_person(plan, left_out)


def test_a_plan_that_moves_nobody_can_be_drawn() -> None:
    none = solve(linear_problem([1.0], [[-5.0]], {"x0": 0.001}))
    assert none.count == 0
    assert plot_changes(none).texts[0].get_text() == "The plan moves nobody."
    assert widths(plot_spend(none)) == [0.0]


def test_names_are_no_mathematics_and_no_markup(hostile: Plan) -> None:
    wanted = ["$x_1$ & $\\frac{", "_hidden", "<b>a\\nb</b>\\u202e"]
    for ax in (plot_spend(hostile), plot_prices(hostile), plot_changes(hostile), plot_person(hostile, IDS[0])):
        assert sorted(ticks(ax)) == sorted(wanted)
        ax.figure.canvas.draw()  # "$x_1$ & $\frac{" as mathtext would raise here
    assert plot_person(hostile, IDS[0]).get_title(loc="left").startswith("$a$ $b$: ")
    assert plot_person(hostile, IDS[2]).get_title(loc="left").startswith("\\u202eab<script>: ")


def test_long_names_and_many_budgets_are_cut() -> None:
    names = ["n" * 500, *(f"f{i}" for i in range(60))]
    classifier = TorchClassifier(linear_net(np.ones(61)), output="logits")
    asked = Problem(
        classifier=classifier,
        cohort=-np.ones((5, 61)),
        features=names,
        target=1,
        margin=0.1,
        budgets=dict.fromkeys(names, 9.0),
    )
    plan = solve(asked)
    for ax in (plot_spend(plan), plot_changes(plan), plot_person(plan, plan.ids[0])):
        assert len(ticks(ax)) == 30
        assert max(map(len, ticks(ax))) <= 32
        assert ax.get_title(loc="right").startswith("and 31 more")


def test_given_axes_are_drawn_on(plan: Plan) -> None:
    _, ax = plt.subplots()
    before = plt.get_fignums()
    assert plot_spend(plan, ax) is ax
    assert plot_person(plan, plan.ids[0], ax=ax) is ax
    assert plt.get_fignums() == before


def test_without_matplotlib_the_install_line_is_told(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    plan._repr_html_()
    with pytest.raises(InputError) as told:
        plot_spend(plan)
    assert str(told.value) == "Plots need matplotlib, which is not installed: pip install maxflip[plots]"


def test_a_notebook_shows_plan_and_problem(plan: Plan, problem: Problem) -> None:
    shown = plan._repr_html_()
    assert f"The plan moves {plan.count} of 60 into the wanted class" in shown
    assert shown.endswith("<p><em>A plan moves predictions, not outcomes.</em></p></div>")
    assert "<td><bdi>people</bdi></td>" in shown
    assert f"<td><bdi>{plan.count}</bdi></td><td><bdi>1,000</bdi></td>" in shown
    asked = problem._repr_html_()
    assert "60 samples of 2 features" in asked
    assert "margin 0.1" in asked
    assert "A plan moves predictions, not outcomes." in asked
    assert "no limit" in asked


def test_a_notebook_shows_hostile_texts_as_texts(hostile: Plan) -> None:
    shown = hostile._repr_html_()
    assert "<td><bdi>&lt;b&gt;a\\nb&lt;/b&gt;\\u202e</bdi></td>" in shown
    assert "<b>" not in shown
    classifier = TorchClassifier(linear_net([1.0]), output="logits", classes=["</bdi><script>", "ok<i>"])
    people = Cohort.table([[-1.0]], features=["<img src=x>"])
    asked = Problem(classifier=classifier, cohort=people, target="ok<i>", margin=0.1, budgets={"<img src=x>": 9.0})
    for text in (asked._repr_html_(), solve(asked)._repr_html_()):
        assert "<i>" not in text
        assert "<img" not in text
        assert "<script" not in text


def test_a_notebook_shows_a_dozen_budgets() -> None:
    names = [f"f{i}" for i in range(40)]
    classifier = TorchClassifier(linear_net(np.ones(40)), output="logits")
    cohort = Cohort.table(-np.ones((3, 40)), features=names)
    asked = Problem(classifier=classifier, cohort=cohort, target=1, margin=0.1, budgets=dict.fromkeys(names, 9.0))
    assert "and 28 more budgets" in asked._repr_html_()
    assert solve(asked)._repr_html_().count("<tr>") == 14  # a head, twelve budgets, how many more


def test_the_price_of_a_budget_of_0_is_not_known() -> None:
    plan = solve(linear_problem([1.0, 0.5], -np.ones((3, 2)), [9.0, 0.0]))
    assert plan.prices is not None
    assert [text.get_text() for text in plot_prices(plan).texts][-1] == "not known"
    assert "<td><bdi>0</bdi></td><td><bdi>0</bdi></td><td><bdi></bdi></td>" in plan._repr_html_()
