"""Named actions and choices, beside answers known by trying everything."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

from maxflip import (
    MS,
    Action,
    BlackBoxClassifier,
    Budget,
    Fate,
    InputError,
    Nearest,
    Plan,
    Prices,
    Problem,
    ProblemError,
    TorchClassifier,
    Uptake,
    resolve,
    solve,
)
from maxflip._util.types import Floats
from maxflip.judge import admissible
from maxflip.search import FeaturePrices, cheapest_flips
from maxflip.search.levers import Pairs, cheapest_with
from maxflip.search.menu import menu_flips
from maxflip.select.choose import choose
from tests.conftest import LONG
from tests.examples import linear_net, linear_problem, small_net

MANY = 300 if LONG else 15


def shift(net: TorchClassifier, x: Floats) -> Floats:
    """Confidence of class 1 minus that of the others."""
    p = net.scores(torch.tensor(x)).detach().numpy()
    return np.asarray(p[:, 1] - np.delete(p, 1, axis=1).max(axis=1))


def combinations(actions: list[Action], most: int) -> list[tuple[int, ...]]:
    sets = [s for k in range(most + 1) for s in itertools.combinations(range(len(actions)), k)]
    names = [a.name for a in actions]
    return [s for s in sets if not any(names[b] in actions[a].excludes for a in s for b in s)]


def after(actions: list[Action], chosen: tuple[int, ...], x: Floats) -> Floats:
    """By hand, in the order of the list."""
    moved = x.copy()
    for a in chosen:
        for feature, effect in actions[a].effects.items():
            i = int(feature[1:])
            if isinstance(effect, str):
                moved[i] = moved[i] * float(effect[2:]) if effect.startswith("x ") else float(effect[2:])
            else:
                moved[i] = moved[i] + effect
    return moved


def some_actions(rng: np.random.Generator, budgets: list[str], width: int) -> list[Action]:
    found = []
    for a in range(int(rng.integers(1, 5))):
        way = rng.integers(3)
        number = float(rng.normal() * 1.5)
        effects: list[float | str] = [number, f"x {number}", f"= {number}"]
        draws = {str(rng.choice(budgets)): float(rng.integers(0, 4))}
        found.append(Action(f"a{a}", {f"x{rng.integers(width)}": effects[way]}, draws))
    if len(found) > 2 and rng.random() < 0.5:
        found[0] = Action(found[0].name, found[0].effects, found[0].draws, excludes=[found[1].name])
        found[1] = Action(found[1].name, found[1].effects, found[1].draws, excludes=[found[0].name])
    return found


def best_by_trying(options: list[list[Floats]], worth: Floats, amounts: Floats) -> float:
    """The greatest worth over all ways to give each sample nothing or one of its options, (m,) what each draws."""
    best = 0.0
    for picked in itertools.product(*[[None, *own] for own in options]):
        drawn = sum((d for d in picked if d is not None), np.zeros(len(amounts)))
        if (drawn <= amounts).all():
            best = max(best, sum(v for v, d in zip(worth, picked, strict=True) if d is not None))
    return best


@pytest.mark.parametrize("seed", range(MANY))
def test_a_menu_reaches_what_trying_everything_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, names = int(rng.integers(1, 6)), ["hours", "euro"]
    x = rng.normal(size=(n, 3))
    classifier = TorchClassifier(small_net(3, int(rng.integers(2, 4)), seed=seed), output="logits")
    actions, most = some_actions(rng, names, 3), int(rng.integers(1, 4))
    budgets = {"hours": float(rng.integers(0, 6)), "euro": float(rng.integers(0, 6))}
    used = {name: amount for name, amount in budgets.items() if any(name in a.draws for a in actions)}
    worth = rng.integers(1, 5, n).astype(float) if rng.random() < 0.5 else np.ones(n)
    problem = Problem(
        classifier=classifier, cohort=x, target=1, margin=0.05, budgets=used, actions=actions, most_actions=most,
        worth=worth,
    )  # fmt: skip
    options: list[list[Floats]] = [[] for _ in range(n)]
    amounts = np.array([used[name] for name in used])
    for chosen in combinations(actions, most)[1:]:
        draws = np.array([sum(float(actions[a].draws.get(name, 0.0)) for a in chosen) for name in used])
        for j in range(n):
            if shift(classifier, x[j : j + 1])[0] < 0.05 <= shift(classifier, after(actions, chosen, x[j])[None])[0]:
                options[j].append(draws)
    plan = solve(problem)
    optimum = best_by_trying(options, worth, amounts)
    assert plan.worth == optimum
    assert plan.bound is not None
    assert plan.bound >= optimum - 1e-9
    assert solve(problem, Nearest()).worth <= plan.worth


@pytest.mark.parametrize("seed", range(MANY))
def test_actions_beside_changes_reach_what_trying_everything_finds(seed: int) -> None:
    """A linear model and one budget of squared change: the cheapest change after each combination is known. Everyone
    picked draws a fee, and sometimes places are counted."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    x, w = rng.normal(size=(n, 3)), rng.normal(size=3)
    classifier = TorchClassifier(linear_net(w.tolist(), -1.0), output="logits")
    actions = some_actions(rng, ["hours"], 3)
    hours_there, care, fee = float(rng.integers(1, 5)), float(rng.uniform(0.1, 3)), float(rng.integers(0, 2)) / 2
    budgets: dict[str, Any] = {"hours": Budget(hours_there, fee=fee), "care": Budget(care, uses={"x0": 1, "x2": 2})}
    places = int(rng.integers(1, 6))
    if rng.random() < 0.5:
        budgets["people"] = Budget(places, cost="count")
    else:
        places = n
    problem = Problem(
        classifier=classifier, cohort=x, target=1, margin=0.2, budgets=budgets, actions=actions, most_actions=2
    )
    lead = 2 * np.arctanh(0.2 + problem.guard)
    start = np.array([shift(classifier, one[None])[0] for one in x])
    options: list[list[Floats]] = [[] for _ in range(n)]
    for chosen in combinations(actions, 2):
        hours = sum(float(actions[a].draws["hours"]) for a in chosen)
        for j in np.flatnonzero(start < 0.2):
            z = torch.tensor(after(actions, chosen, x[j]))
            out = classifier.module(z[None].to(torch.float64)).detach().numpy()[0]
            missing = max(0.0, lead - (out[1] - out[0]))
            options[j].append(np.array([hours + fee, missing**2 / (w[0] ** 2 + w[2] ** 2 / 2), 1.0]))
    plan = solve(problem)
    optimum = best_by_trying(options, np.ones(n), np.array([hours_there, care, float(places)]))
    assert plan.bound is not None
    assert plan.bound >= optimum
    assert optimum - 1 <= plan.worth <= optimum
    assert (plan.fates == Fate.UNREACHABLE).sum() == 0 or min(map(len, options)) == 0


def test_a_switch_takes_the_place_of_the_value() -> None:
    """plan is basic (0), plus (1) or pro (2); the model wants pro. Distances are known, the budget pays for three."""
    x = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [2.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    classifier = TorchClassifier(linear_net([4.0, 0.0], -6.0), output="logits")
    problem = Problem(
        classifier=classifier, cohort=x, features=["plan", "age"], target=1, margin=0.5,
        choices={"plan": {1: 2.0, "2": 5.0, "1 -> 2": 3.0}}, budgets={"euro": Budget(20.0, uses={"plan": 2.0})},
    )  # fmt: skip
    plan = solve(problem)
    assert plan.spend == {"euro": 12.0}
    assert plan.ids.tolist() == ["1", "4"]  # 1 -> 2 draws 2 x 3, and 0 -> 2 draws 2 x 5: 6 + 6 + 10 > 20
    assert plan.bound is not None
    assert 2 <= plan.bound < 3
    assert set(plan.table()["feature"].to_pylist()) == {"plan: 1 -> 2"}


def test_one_hot_codes_are_switched_as_one() -> None:
    codes = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    seen: list[Floats] = []

    def model(rows: Floats) -> Floats:
        seen.append(rows)
        wanted = 0.2 + 0.6 * rows[:, 2]
        return np.stack([1 - wanted, wanted], axis=1)

    problem = Problem(
        classifier=BlackBoxClassifier(model), cohort=np.hstack([codes, np.ones((6, 1))]),
        features=["plan_a", "plan_b", "plan_c", "age"], target=1, margin=0.1,
        one_hot={"plan": ["plan_a", "plan_b", "plan_c"]},
        choices={"plan": {"c": 1.0, "b": 1.0}}, budgets={"plan": 3.0},
    )  # fmt: skip
    plan = solve(problem)
    assert plan.count == 3
    assert plan.spend == {"plan": 3.0}
    assert plan.bound == 3.0
    assert all((rows[:, :3].sum(axis=1) == 1).all() and set(np.unique(rows[:, :3])) <= {0.0, 1.0} for rows in seen)


def test_trees_serve_with_actions_and_the_plan_is_proved() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 4))
    y = (x @ [1.0, 1.0, -1.0, 0.5] + 0.5 * x[:, 0] * x[:, 1] > 0.3).astype(int)
    forest = RandomForestClassifier(20, random_state=0).fit(x, y)
    actions = [
        Action("coaching", {"x0": 0.7}, {"hours": 1.0}),
        Action("calls", {"x1": 0.9, "x2": "x 0.5"}, {"hours": 0.5, "euro": 1.0}),
    ]
    problem = Problem(
        classifier=BlackBoxClassifier(forest.predict_proba, classes=["no", "yes"]), cohort=x, target="yes", margin=0.1,
        budgets={"hours": 12.0, "euro": 10.0}, actions=actions, most_actions=2,
    )  # fmt: skip
    plan = solve(problem)
    assert plan.bound is not None
    assert plan.bound - plan.count < 2
    changed = problem.cohort.layout.after(plan.selected, plan.moves)  # type: ignore[attr-defined]
    p = forest.predict_proba(changed)
    assert (p[:, 1] - p[:, 0] >= 0.1).all()
    assert plan.status == "optimal" or plan.gap < 2  # type: ignore[operator]
    again = resolve(problem, plan, budgets={"hours": 20.0})
    assert again.count >= plan.count


def test_the_bound_of_a_warm_start_counts_levers() -> None:
    x = np.random.default_rng(2).normal(size=(30, 3))
    problem = Problem(
        classifier=TorchClassifier(linear_net([1.0, 1.0, 2.0], -2.0), output="logits"), cohort=x, target=1, margin=0.1,
        budgets={"x0": 4.0, "hours": 6.0}, actions=[Action("coaching", {"x1": 1.5}, {"hours": 1.0})],
    )  # fmt: skip
    cold = solve(problem.changed(budgets={"x0": 6.0, "hours": 9.0}))
    warm = resolve(problem, solve(problem), budgets={"x0": 6.0, "hours": 9.0})
    assert warm.bound is not None
    assert cold.bound is not None
    assert warm.bound >= max(warm.worth, cold.worth)
    assert cold.bound >= max(warm.worth, cold.worth)


def test_free_changes_of_a_black_box_are_refused() -> None:
    model = BlackBoxClassifier(lambda rows: np.stack([1 - rows[:, 0], rows[:, 0]], axis=1))
    with pytest.raises(ProblemError, match="no gradients, so 'x1' cannot change by any amount"):
        Problem(classifier=model, cohort=np.array([[0.1, 1.0]]), target=1, margin=0.1, budgets={"x1": 1.0})


def test_who_may_get_an_action_and_limits_of_features_hold() -> None:
    x = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0], [0.0, 1.0]])
    classifier = TorchClassifier(linear_net([4.0, 0.0], -2.0), output="logits")
    common: dict[str, Any] = {"classifier": classifier, "cohort": x, "target": 1, "margin": 0.1}
    act = Action("lift", {"x0": 1.0}, {"hours": 1.0}, who=("x1", 1.0))
    assert solve(Problem(**common, budgets={"hours": 9.0}, actions=[act])).ids.tolist() == ["0", "2", "3"]
    by_id = Action("lift", {"x0": 1.0}, {"hours": 1.0}, who=["1", "3"])
    assert solve(Problem(**common, budgets={"hours": 9.0}, actions=[by_id])).ids.tolist() == ["1", "3"]
    far = Problem(
        **common, budgets={"hours": 9.0, "x0": 100.0}, limits={"x0": (None, 0.9)}, actions=[act], must_hold=Uptake(0.9)
    )
    plan = solve(far)
    assert "lift" not in plan.table()["feature"].to_pylist()
    assert plan.count == 4


def test_what_an_action_draws_may_be_a_part_of_a_feature() -> None:
    """A discount of 10 % costs a tenth of each premium: the budget of 25 pays for 10 + 12, and not for 10 + 12 + 20."""
    x = np.array([[100.0, 0.0], [200.0, 0.0], [120.0, 0.0], [90.0, 1.0]])
    model = BlackBoxClassifier(lambda rows: np.stack([0.8 - 0.6 * rows[:, 1], 0.2 + 0.6 * rows[:, 1]], axis=1))
    offer = Action("discount 10 %", {"premium": "x 0.9", "stays": "= 1"}, {"euro": "0.1 premium"})
    problem = Problem(
        classifier=model, cohort=x, features=["premium", "stays"], target=1, margin=0.1, actions=[offer],
        budgets={"euro": 25.0},
    )  # fmt: skip
    plan = solve(problem)
    assert plan.ids.tolist() == ["0", "2"]
    assert plan.spend["euro"] == 10.0 + 12.0
    assert plan.bound == 2
    assert plan.implied_table()["after"].to_pylist() == [90.0, 1.0, 108.0, 1.0]


def test_the_papers_algorithms_say_what_to_use_instead() -> None:
    classifier = TorchClassifier(linear_net([1.0, 0.0], 0.0), output="logits")
    problem = Problem(
        classifier=classifier, cohort=np.array([[-1.0, 0.0]]), target=1, margin=0.1, budgets={"hours": 3.0},
        actions=[Action("lift", {"x0": 3.0}, {"hours": 1.0})],
    )  # fmt: skip
    with pytest.raises(ProblemError, match=r"actions: MS .* Prices\(\) or Nearest\(\)"):
        solve(problem, MS())
    assert solve(problem, Prices()).count == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"actions": [Action("a", {"x9": 1.0})]}, "actions.a.effects.x9: no feature is called 'x9'"),
        ({"actions": [Action("a", {"x0": "much"})]}, "actions.a.effects.x0 = 'much': must be a finite number"),
        ({"actions": [Action("a", {"x0": 1.0}, {"b": 1.0})]}, "actions.a.draws.b: no budget is called 'b'"),
        ({"actions": [Action("x0", {"x0": 1.0})]}, "actions.x0: a feature has this name too"),
        ({"actions": [Action("a", {"x0": 1.0}, excludes=["b"])]}, "actions.a.excludes: no action is called 'b'"),
        ({"actions": [Action("a", {"x0": 1.0}, who=["nobody"])]}, "actions.a.who: no sample has the id 'nobody'"),
        (
            {"actions": [Action("a", {"x0": 1.0}, {"x1": "2 x7"})]},
            "actions.a.draws.x1: '2 x7': character 5: no feature is called 'x7'",
        ),
        (
            {"actions": [Action("a", {"x0": 1.0}, {"x1": "-1 * x1"})]},
            "actions.a.draws.x1: '-1 * x1' is -2 in row 1; it must be a finite number >= 0. max(-1 * x1, 0) is",
        ),
        ({"actions": [Action("a", {"x0": 1.0}, {"people": 1.0})]}, "actions.a.draws.people: the budget counts people"),
        ({"actions": [Action("a", {"x0": 1.0})], "most_actions": 0}, "most_actions = 0: must be a whole number >= 1"),
        (
            {"actions": [Action("a", {"c": "= x0"})], "one_hot": {"c": ["x0", "x1"]}},
            "actions.a.effects.c: it is a category: use choices.",
        ),
        ({"choices": {"x0": {"red": 1.0}}}, "choices.x0: the feature holds numbers, and 'red' is none"),
        ({"choices": {"y": {"red": 1.0}}}, "choices.y: no feature and no category of one_hot is called 'y'"),
        ({"choices": {"x0": {1: -1.0}}}, "choices.x0.1 = -1.0: must be a distance"),
        ({"one_hot": {"c": ["x0", "x1"]}}, "one_hot.c: row 1 has [0.5, 2.0]; one of them must be 1"),
        ({"one_hot": {"c": ["x0"]}}, "one_hot.c = ['x0']: must be a list of at least two features"),
        (
            {"actions": [Action(f"a{i}", {"x0": 1.0}) for i in range(20)], "most_actions": 9},
            "most_actions: more than 10,000 combinations",
        ),
    ],
)
def test_faults_name_the_argument(arguments: dict[str, Any], says: str) -> None:
    classifier = TorchClassifier(linear_net([1.0, 1.0], 0.0), output="logits")
    budgets: dict[str, Any] = {"x0": 1.0, "people": Budget(1, cost="count")}
    with pytest.raises(ProblemError) as error:
        Problem(
            classifier=classifier, cohort=np.array([[0.5, 2.0]]), target=1, margin=0.1, budgets=budgets, **arguments
        )
    assert says in str(error.value)


@pytest.mark.parametrize("seed", range(40 if LONG else 1))
def test_networks_with_actions_and_changes_are_near_what_a_wide_search_finds(seed: int) -> None:
    """Random price vectors, each combination of actions at each, and the best choice among all flips found."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    actions = [
        Action(f"a{a}", {f"x{rng.integers(4)}": float(rng.normal() * 1.2)}, {"hours": float(rng.integers(1, 4))})
        for a in range(3)
    ]
    amounts = rng.uniform(0.2, 1.0, 2) * n / 6
    problem = Problem(
        classifier=TorchClassifier(small_net(4, 2, seed=seed), output="logits"), cohort=rng.normal(size=(n, 4)),
        target=1, margin=0.1, most_actions=2, actions=actions,
        budgets={"hours": n / 3 + 1, "x0": float(amounts[0]), "x1": Budget(float(amounts[1]), cost="absolute")},
    )  # fmt: skip
    plan = solve(problem)
    open_ = np.flatnonzero(plan.fates != Fate.ALREADY)
    with problem.classifier.borrowed():
        alone = menu_flips(problem, open_)
        rows, changes = [alone.rows], [alone.changes(problem)]
        for prices in 10 ** rng.uniform(-1.5, 1.5, (12 if LONG else 4, 3)):
            plain = cheapest_flips(problem, open_, FeaturePrices.at(problem, prices, open_))
            rows.append(plain.rows[plain.found])
            changes.append(plain.changes[plain.found])
            pairs = Pairs.of(problem, open_)
            for number in np.unique(pairs.which):
                flips = cheapest_with(problem, pairs.at(pairs.which == number), prices)
                rows.append(flips.rows[flips.found])
                changes.append(flips.changes[flips.found])
        every, moved = np.concatenate(rows), np.concatenate(changes)
        fits = admissible(problem, every, moved)
        most = len(choose(problem, every[fits], moved[fits]))
    assert plan.count >= 0.98 * most


def test_what_draws_on_no_budget_is_told() -> None:
    budgets = {"hours": Budget(9.0, cost="absolute")}
    actions = [Action("call", {"x0": 1.0}, {"hours": 1.0}), Action("wish", {"x0": 2.0})]
    choices = {"x1": {3: 1.0}}
    free = linear_problem([1.0, 0.0], [[-1.0, 0.0]], budgets, actions=actions, choices=choices)
    assert any(notice.startswith("Draw on no budget, so they are free: wish, x1 = 3.") for notice in free.notices)
    paid = linear_problem([1.0, 0.0], [[-1.0, 0.0]], budgets, actions=actions[:1])
    assert not any("so they are free" in notice for notice in paid.notices)


def test_a_plan_of_a_black_box_is_saved_without_a_job(tmp_path: Path) -> None:
    model = BlackBoxClassifier(lambda rows: np.stack([0.8 - 0.6 * rows[:, 0], 0.2 + 0.6 * rows[:, 0]], axis=1))
    problem = Problem(
        classifier=model, cohort=np.array([[0.0]]), target=1, margin=0.1, budgets={"hours": 2.0},
        actions=[Action("a", {"x0": "= 1"}, {"hours": 1.0})],
    )  # fmt: skip
    plan = solve(problem)
    (tmp_path / "model.pt2").write_bytes(b"")
    with pytest.raises(InputError, match="no BlackBoxClassifier has one"):
        plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "model.pt2")
    plan.save(tmp_path / "plan")
    assert Plan.load(tmp_path / "plan").count == 1
