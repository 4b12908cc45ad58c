"""What a plan alone does not know: what other budgets buy, how near changed samples are to real ones, who is picked."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from maxflip import Cohort, InputError, Insight, Plan, Prices, Problem, TorchClassifier, look, solve
from maxflip._util.events import Advanced, Event, Finished, Started
from maxflip.solvers.base import Proposal, Run, Solver
from maxflip.study.groups import Group, Groups
from maxflip.study.insight import for_people
from maxflip.study.plausibility import nearest
from tests.conftest import LONG
from tests.examples import linear_net, linear_problem, net_problem
from tests.sequences.examples import Total


@pytest.fixture(scope="module")
def asked() -> tuple[Problem, Plan]:
    problem = net_problem()
    return problem, solve(problem)


# --- what other budgets buy ---


def test_at_scale_one_stands_the_plan_itself(asked: tuple[Problem, Plan]) -> None:
    problem, plan = asked
    ahead = look(problem, plan, scales=[2, 1, 0.5]).frontier
    assert ahead is not None
    assert ahead.scales == (0.5, 1.0, 2.0)
    assert (ahead.counts[1], ahead.worths[1]) == (plan.count, plan.worth)
    assert (ahead.bounds[1], ahead.estimates[1]) == (plan.bound, plan.estimate)
    assert ahead.counts[0] < plan.count < ahead.counts[2]


class Idle(Solver):
    """Finds nothing."""

    def propose(self, problem: Problem, run: Run) -> Proposal:
        return Proposal(rows=np.empty(0, np.int64), changes=np.empty((0, problem.width)))


def test_more_of_all_budgets_is_never_worth_less_than_the_plan() -> None:
    """A solver that does nothing still has the plan to begin with, and all flips that it keeps."""
    n, amount = (60, 2.0) if LONG else (24, 0.5)
    problem = net_problem(n, budgets={f"x{i}": amount for i in range(4)})
    plan = solve(problem)
    ahead = look(problem, replace(plan, pool=None), scales=[1.5, 3.0], solver=Idle()).frontier
    assert ahead is not None
    assert ahead.counts == (plan.count, plan.count)
    more = look(problem, plan, scales=[1.5, 3.0], solver=Idle()).frontier
    assert more is not None
    assert plan.count < more.counts[0] < more.counts[1]


def test_a_better_plan_that_is_found_on_the_way_takes_the_place_of_the_plan() -> None:
    """Of five at distance 1 with a budget for three, a plan that knows one flip alone makes way for three."""
    problem = linear_problem([1.0], np.full((5, 1), 2 * math.atanh(0.1) - 1.0), [3.5])
    poor = replace(solve(problem.changed(budgets={"x0": 1.5})), budgets=problem.budgets, pool=None, bound=None)
    assert poor.count == 1
    found = look(problem, poor, scales=[0.5, 1.0, 2.0], group={"kind": list("abbba")})
    assert found.plan is not None
    assert found.frontier is not None
    assert found.groups is not None
    assert found.frontier.counts == (1, 3, 5)
    assert found.plan.count == 3
    assert sum(group.picked for group in found.groups.groups) == 3
    assert found.plan.spend["x0"] <= 3.5
    assert found.plan.status == "optimal"


def test_linear_flips_that_cost_one_each_are_counted_by_hand() -> None:
    """Ten samples at distance 1 from the line, budget 4: scale s buys 4 s of them, and no more than ten."""
    need = 2 * math.atanh(0.1)
    problem = linear_problem([1.0], np.full((10, 1), need - 1.0), [4.0 + 1e-3])
    ahead = look(problem, solve(problem), scales=(0.25, 0.5, 1, 2, 8)).frontier
    assert ahead is not None
    assert ahead.counts == (1, 2, 4, 8, 10)


def test_an_insight_shows_no_single_samples(asked: tuple[Problem, Plan]) -> None:
    shown = repr(look(*asked, scales=[1.0]))
    assert "typical=" in shown
    assert "array(" not in shown


def test_no_scales_no_solves(asked: tuple[Problem, Plan]) -> None:
    events: list[Event] = []
    assert look(*asked, scales=None, watch=events.append).frontier is None
    assert not events


def test_each_solve_is_told(asked: tuple[Problem, Plan]) -> None:
    events: list[Event] = []
    look(*asked, scales=(0.5, 1, 2), watch=events.append)
    stage = "Asking what other budgets buy"
    assert events == [Started(stage, 2), Advanced(stage, 1), Advanced(stage, 1), Finished(stage)]


@pytest.mark.parametrize("scales", [[0.0], ["x"], [], 1.0, [math.inf]])
def test_scales_are_finite_numbers_above_zero(asked: tuple[Problem, Plan], scales: Any) -> None:
    with pytest.raises(InputError, match="scales"):
        look(*asked, scales=scales)


def test_a_plan_of_another_problem_is_refused(asked: tuple[Problem, Plan]) -> None:
    with pytest.raises(InputError, match="other samples or features"):
        look(net_problem(25), asked[1], scales=None)
    with pytest.raises(InputError, match="problem: has other budgets than the plan"):
        look(asked[0].changed(budgets={"x0": 5.0}), asked[1], scales=None)
    with pytest.raises(InputError, match=r"problem: got 3; wanted the Problem"):
        look(3, asked[1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"plan: got 3"):
        look(asked[0], 3)  # type: ignore[arg-type]


# --- whether changed samples look like real ones ---


def by_hand() -> tuple[Problem, Plan]:
    """On a line: real ones of the wanted class at 1, 2, ..., 11, one sample at -2 that is moved just over the line."""
    x = np.array([-2.0, *range(1, 12)])[:, None]
    problem = linear_problem([1.0], x, [100.0])
    return problem, solve(problem)


def test_distances_by_hand() -> None:
    problem, plan = by_hand()
    found = look(problem, plan, scales=None).plausibility
    spread = problem.cohort.values.std()
    assert found is not None
    assert plan.count == 1
    landed = -2.0 + plan.moves[0, 0]
    assert landed == pytest.approx(2 * math.atanh(0.1), abs=1e-5)
    assert found.before.tolist() == pytest.approx([3.0 / spread])
    assert found.after.tolist() == pytest.approx([(1.0 - landed) / spread])
    assert found.typical == pytest.approx(dict.fromkeys((0.05, 0.25, 0.5, 0.75, 0.95), 1.0 / spread))
    assert found.references == 11
    assert found.far_share == 0.0
    assert "standard deviation in the cohort" in found.measure


def test_those_that_end_far_from_all_real_ones_are_told() -> None:
    """The real ones have y = 0 and lie close together; those picked have y = 50 or 0, and y is frozen."""
    real = np.column_stack([np.linspace(1.0, 3.0, 21), np.zeros(21)])
    problem = linear_problem([1.0, 0.0], np.vstack([real, [[-1.0, 50.0], [-1.0, 0.0], [0.15, 0.0]]]), {"x0": 100.0})
    plan = solve(problem)
    assert plan.selected.tolist() == [21, 22, 23]
    found = look(problem, plan, scales=None, reference=np.vstack([real, [[0.25, 0.0]], [[-9.0, 50.0]]])).plausibility
    assert found is not None
    assert found.references == 22  # the last one of the reference is not in the wanted class
    assert found.far.tolist() == [True, False, False]
    assert found.far_share == pytest.approx(1 / 3)
    assert found.source == "reference"


def test_nearest_is_what_brute_force_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    points, among = rng.normal(size=(70, 5)), rng.normal(size=(90, 5))
    points[3], among[4] = among[5], among[5]
    brute = np.sqrt(((points[:, None] - among[None]) ** 2).sum(axis=2))
    own = np.sqrt(((among[:, None] - among[None]) ** 2).sum(axis=2))
    np.fill_diagonal(own, np.inf)
    for at_a_time in (1, 1000, 10**9):
        monkeypatch.setattr("maxflip.study.plausibility.AT_A_TIME", at_a_time)
        assert nearest(points, among) == pytest.approx(brute.min(axis=1), abs=1e-12)
        assert nearest(among) == pytest.approx(own.min(axis=1), abs=1e-12)
    assert nearest(points, among)[3] == 0.0
    assert nearest(among)[4] == nearest(among)[5] == 0.0


def test_very_many_distances_need_little_memory() -> None:
    rng = np.random.default_rng(1)
    points, among = rng.normal(size=(10_000, 20)), rng.normal(size=(10_000, 20))
    tracemalloc.start()
    nearest(points, among)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6  # all at once they would take 800 MB


def test_of_very_many_real_ones_a_part_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maxflip.study.plausibility.MOST_REAL", 10)
    found = look(*by_hand(), scales=None).plausibility
    assert found is not None
    assert found.references == 10


def test_with_too_few_real_ones_nothing_is_said() -> None:
    problem = linear_problem([1.0], [[-1.0], [2.0]], [100.0])
    insight = look(problem, solve(problem), scales=None)
    assert insight.plausibility is None
    assert insight.notices[0].startswith("cohort: has fewer than 10 samples in the wanted class")


def test_where_nobody_is_picked_there_is_nothing_to_compare() -> None:
    problem = linear_problem([1.0], [[-1.0], [2.0]], [0.1])
    insight = look(problem, solve(problem), scales=None)
    assert insight.plausibility is None
    assert insight.notices[0].startswith("Nobody is picked")


def test_each_is_compared_with_those_that_want_the_same_class() -> None:
    """Two samples in the middle want opposite classes; the real ones of each are on opposite sides."""
    left, right = -np.arange(1.0, 12.0), np.arange(2.0, 13.0)
    x = np.concatenate([left, right, [0.01, -0.01]])[:, None]
    target = [0] * 11 + [1] * 11 + [0, 1]
    problem = linear_problem([1.0], x, [100.0], target=target)
    plan = solve(problem)
    assert plan.selected.tolist() == [22, 23]
    found = look(problem, plan, scales=None).plausibility
    assert found is not None
    assert found.before * x.std() == pytest.approx([1.01, 2.01])
    assert found.references == 22


def test_a_reference_has_the_same_features() -> None:
    problem, plan = by_hand()
    other = Cohort.table([[1.0]], features=["age"], source="others.csv")
    with pytest.raises(InputError, match=r"reference: others\.csv has the features 'age'; wanted .* 'x0'"):
        look(problem, plan, scales=None, reference=other)


def test_sequences_are_compared_by_their_last_and_mean_values() -> None:
    rng = np.random.default_rng(2)
    values = [np.column_stack([[x - 1.0, x], [np.nan, np.nan]]) for x in (-1.0, *np.linspace(1.0, 4.0, 12))]
    values[1][0, 1] = 7.0
    static = rng.normal(size=(13, 1))
    cohort = Cohort.sequences(values, static=static)
    classifier = TorchClassifier(Total([1.0, 0.0]), output="logits", call=lambda net, b: net(b.x, b.observed))
    problem = Problem(classifier=classifier, cohort=cohort, target=1, margin=0.1, budgets={"x0": 50.0}, steps="last 1")
    plan = solve(problem)
    assert plan.selected.tolist() == [0]
    found = look(problem, plan, scales=None).plausibility
    assert found is not None
    entries = np.array([[v[-1, 0], v[:, 0].mean(), s] for v, s in zip(values, static[:, 0], strict=True)])
    spread = entries.std(axis=0)
    # x1 was measured once, in row 1: there its distance from what was never measured is 0, its mean being its value
    changed = entries[0] + np.array([1.0, 0.5, 0.0]) * plan.moves[0].sum()
    far = [np.sqrt((((row - entries[1:]) / spread) ** 2).sum(axis=1)).min() for row in (entries[0], changed)]
    assert [found.before[0], found.after[0]] == pytest.approx(far)
    assert "last and the mean measured value" in found.measure
    again = look(problem, plan, scales=None, reference=cohort).plausibility
    assert again is not None
    assert again.after.tolist() == pytest.approx(found.after.tolist())
    with pytest.raises(InputError, match="wanted sequences"):
        look(problem, plan, scales=None, reference=[[1.0]])


# --- which groups those come from who are picked ---


def grouped(problem: Problem, plan: Plan, group: Any) -> Groups:
    groups = look(problem, plan, scales=None, group=group).groups
    assert groups is not None
    return groups


def test_groups_by_hand() -> None:
    """-1 is flipped, -5 is left out by the budget, 2 is there already; one of them has no label."""
    problem = linear_problem([1.0], [[-1.0], [-5.0], [2.0], [3.0]], [2.0])
    plan = solve(problem)
    assert plan.fates.tolist() == ["flipped", "left_out", "already", "already"]
    found = grouped(problem, plan, {"ward": ["a", "a", "b", None]})
    p = np.tanh(np.array([-1.0, -5.0, 2.0, 3.0]) / 2)  # p(1) - p(0)
    a, b, missing = found.groups
    assert found.column == "ward"
    assert (a.name, a.size, a.already, a.reachable, a.picked) == ("a", 2, 0, 2, 1)
    assert (b.name, b.size, b.already, b.reachable, b.picked) == ("b", 1, 1, 0, 0)
    assert missing.confidence == pytest.approx(p[3])
    assert replace(missing, confidence=None) == Group("missing", 1, 1, 0, 0, None)
    assert a.confidence == pytest.approx(p[:2].mean())
    assert a.is_small


def test_few_numbers_are_groups_and_many_are_quarters() -> None:
    problem = linear_problem([1.0], np.linspace(-1, 1, 20)[:, None], [1.0])
    plan = solve(problem)
    twelve = grouped(problem, plan, np.arange(20) % 12)
    assert [g.name for g in twelve.groups] == [str(k) for k in range(12)]
    many = grouped(problem, plan, [*range(1, 20), np.nan])
    # of 1 ... 19 the quartiles are 5.5, 10 and 14.5
    assert [(g.name, g.size) for g in many.groups] == [
        ("1 to 5", 5),
        ("6 to 10", 5),
        ("11 to 14", 4),
        ("15 to 19", 5),
        ("missing", 1),
    ]
    assert sum(g.picked for g in many.groups) == plan.count
    by_feature = grouped(problem, plan, "x0")
    assert by_feature.column == "x0"
    assert [g.size for g in by_feature.groups] == [5, 5, 5, 5]


def test_of_many_texts_the_rare_ones_stand_together() -> None:
    problem = linear_problem([1.0], np.linspace(-1, 1, 40)[:, None], [1.0])
    towns = [f"t{k % 13:02d}" for k in range(39)] + ["rare"]
    found = grouped(problem, solve(problem), {"town": towns})
    assert len(found.groups) == 12
    assert found.groups[-1].name == "3 others"
    assert found.groups[-1].size == 7
    assert sum(g.size for g in found.groups) == 40


def test_a_series_of_pandas_goes_by_its_index() -> None:
    import pandas as pd

    cohort = Cohort.table([[-1.0], [2.0]], ids=["p", "q"])
    classifier = TorchClassifier(linear_net([1.0]), output="logits")
    problem = Problem(classifier=classifier, cohort=cohort, target=1, margin=0.1, budgets={"x0": 9.0})
    series = pd.Series(["old", pd.NA], index=["q", "p"], name="age")
    found = grouped(problem, solve(problem), series)
    assert found.column == "age"
    assert [(g.name, g.already, g.picked) for g in found.groups] == [("old", 1, 0), ("missing", 0, 1)]


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("x00", r"no feature 'x00'\. Did you mean 'x0'\?"),
        ([1, 2], r"got 2 values; the cohort has 24 samples"),
        (5, r"group: got 5; wanted the name of a feature"),
        ({"a": [1], "b": [2]}, r"wanted one column"),
    ],
)
def test_a_group_that_is_none_is_refused(asked: tuple[Problem, Plan], group: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        look(*asked, scales=None, group=group)


def test_in_a_report_without_names_small_groups_stand_together() -> None:
    groups = (Group("a", 20, 5, 6, 4, 0.5), Group("b", 4, 1, 2, 1, 0.1), Group("c", 2, 0, 1, 1, 0.4))
    merged = for_people(Insight(groups=Groups("ward", groups)), "none")
    assert merged is not None
    assert merged.groups is not None
    a, others = merged.groups.groups
    assert a == groups[0]
    assert others.confidence == pytest.approx(0.2)
    assert replace(others, confidence=None) == Group("small groups", 6, 1, 3, 2, None)
    large = Group("d", 90, 0, 9, 9, None)
    four = Groups("ward", (large, *groups[:2])).merged()  # four alone would be what the others lack of the cohort
    assert [(g.name, g.size, g.picked) for g in four.groups] == [("d", 90, 9), ("small groups", 24, 5)]
    assert Groups("ward", groups[1:2]).merged().groups == ()
    assert Groups("ward", (large,)).merged().groups == (large,)
    alike = for_people(Insight(groups=Groups("ward", groups)), "pseudonyms")
    assert alike is not None
    assert alike.groups == merged.groups
    full = for_people(Insight(groups=Groups("ward", groups)), "full")
    assert full is not None
    assert full.groups is not None
    assert full.groups.groups == groups


def test_prices_is_the_solver_if_none_is_named(asked: tuple[Problem, Plan]) -> None:
    problem, plan = asked
    named = look(problem, plan, scales=[0.5], solver=Prices()).frontier
    assert look(problem, plan, scales=[0.5]).frontier == named
