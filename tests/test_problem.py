"""Problem: frozen, and validated once with every fault listed."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import nn

from maxflip import Budget, Cohort, InputError, Nearest, Problem, ProblemError, TorchClassifier, solve
from maxflip._util.engine import Local
from maxflip.plan.pool import Pool
from tests.examples import linear_net, linear_problem, small_net

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [-1.0, 0.0, 2.0]])


def problem(**options: Any) -> Problem:
    settings: dict[str, Any] = {
        "classifier": TorchClassifier(small_net(3), output="logits", classes=["bad", "good"]),
        "cohort": X,
        "features": ["a", "b", "c"],
        "target": "good",
        "margin": 0.1,
        "budgets": {"a": 4.0, "b": 1.0},
    } | options
    return Problem(**settings)


def faults(**options: Any) -> str:
    with pytest.raises(ProblemError) as caught:
        problem(**options)
    return str(caught.value)


def test_a_worth_below_zero_is_no_matter_of_units() -> None:
    assert faults(worth=[-1.0, 1.0, 1.0]) == "worth: row 1: -1.0; must be 0, or a number from 1e-100 to 1e+100."


WRONG: list[Any] = [
    None, 0, -1, True, "q", "", b"a", 1.5, math.nan, math.inf, 1j, 10**400, object(), object, len, range(3),
    [], [1], ["q"], [[1], [1, 2]], [None], [[]], [math.nan] * 3, [1j] * 3, [object()] * 3, ["x"] * 3, [10**400] * 3,
    (1, 2), {1, 2}, set(), {"a", 1}, {}, {"a": 1}, {1: 2}, {None: 1}, {"a": None}, {"a": "x"}, {"a": [1]}, {"a": {}},
    {"a": object()}, {"a": math.nan}, {"a": 10**400}, {"a": (1, 2, 3)}, {"a": (10**400, 1)}, {"a": (1j, 2)},
    np.float64(0.3), np.int64(1), np.array(0.5), np.array([1, 2]), np.array(["q"]), np.complex128(1),
    torch.tensor(0.5), torch.tensor([1.0, 2.0]), nn.Linear(3, 2), Nearest, Nearest(), {"a": Budget(1.0)},
]  # fmt: skip


def wrong_words(argument: str, call: Callable[[], object]) -> list[str]:
    """What is told if it does not work, unless it names the argument, in sentences and not in dumps. Any other error
    than ours passes through."""
    try:
        call()
    except InputError as error:
        told = error.problems
        is_good = argument in "\n".join(told) and "Error(" not in told[0] and len(told[0]) < 300
        return [] if is_good else list(told)
    return []


@pytest.mark.parametrize("value", WRONG, ids=lambda v: type(v).__name__)
def test_wrong_types_are_told_in_words(value: Any) -> None:
    named = ["classifier", "target", "budgets", "features", "units", "margin", "limits", "directions"]
    for argument in [*named, "worth", "include", "exclude"]:
        assert not wrong_words(argument, functools.partial(problem, **{argument: value}))
    assert not wrong_words("cohort", lambda: problem(cohort=value, features=None))
    assert not wrong_words("threshold", lambda: problem(margin=None, threshold=value))
    for field in ("amount", "uses", "cost"):
        given: dict[str, Any] = {"amount": 1.0, "uses": {"a": 1.0}} | {field: value}
        budget = Budget(**given)
        assert not wrong_words("budgets.h", functools.partial(problem, budgets={"a": 1.0, "h": budget}))
    assert not wrong_words("budgets.h.uses.a", lambda: problem(budgets={"b": 1.0, "h": Budget(1.0, {"a": value})}))


@pytest.mark.parametrize("value", WRONG, ids=lambda v: type(v).__name__)
def test_wrong_types_of_solve_are_told_in_words(value: Any) -> None:
    p = problem(cohort=X[:1])
    assert not wrong_words("problem", lambda: solve(value))
    for argument in ("solver", "seed", "start", "engine"):
        assert not wrong_words(argument, functools.partial(solve, p, **{argument: value}))
    if not callable(value):
        assert not wrong_words("watch", lambda: solve(p, watch=value))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"classifier": nn.Linear(3, 2)}, ["TorchClassifier(net, output='logits')"]),
        ({"classifier": LogisticRegression()}, ["SklearnClassifier(model)"]),
        ({"classifier": TorchClassifier}, ["classifier", "wanted a TorchClassifier(...)"]),
        ({"budgets": {1: 2.0}}, ["the name 1 is no text"]),
        ({"budgets": {"h": Budget(1.0, ["a"])}}, ["budgets.h.uses = ['a']: must be {feature: weight}"]),
        ({"target": [[1], [1, 0]]}, ["target: got [[1], [1, 0]]"]),
        ({"target": [0, 1]}, ["a list gives one class per sample", "give a set"]),
        ({"margin": "0.1"}, ["margin = '0.1'"]),
        ({"include": 5}, ["include: got 5; wanted a list of ids"]),
        ({"worth": {"0": 1.0}}, ["worth: says nothing of 2 samples: '1', '2'"]),
        ({"worth": "much"}, ["worth: got 'much'; wanted one number >= 0 per sample"]),
        (
            {"worth": [1.0, 1e101, math.inf]},
            ["worth: row 2: 1e+101; must be 0, or a number from 1e-100 to 1e+100. Use another unit.", "row 3: inf"],
        ),
    ],
)
def test_the_words_say_what_to_do(options: Any, parts: list[str]) -> None:
    text = faults(**options)
    for part in parts:
        assert part in text


def test_a_solver_is_made_not_named() -> None:
    with pytest.raises(InputError, match=r"got the class Nearest; wanted a solver: Nearest\(\)"):
        solve(problem(), Nearest)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"wanted a Solver, such as Prices\(\)"):
        solve(problem(), SimpleNamespace(propose=Nearest().propose))  # type: ignore[arg-type]
    assert isinstance(solve(problem(), seed=np.int64(3)).seed, int)  # type: ignore[arg-type]


def test_an_engine_holds_what_solvers_keep() -> None:
    maps_only: Any = SimpleNamespace(map=Local().map)
    with pytest.raises(InputError, match=r"engine: got .*; wanted an Engine"):
        solve(problem(), engine=maps_only)


def test_a_text_is_no_cohort() -> None:
    with pytest.raises(InputError, match="cohort: got str; wanted a 2-dimensional array"):
        problem(cohort="people.csv", features=None)


def test_nothing_in_a_problem_can_be_written_to_and_it_pickles() -> None:
    p = problem(limits={"a": (np.zeros(3), 9.0)}, include=["0"], exclude=["1"], units={"a": "kg"})
    for q in (p, pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        arrays = [q.worth, q.include, q.exclude, q.cohort.values, q.cohort.ids, q.limits.lower, q.ledger.amounts]
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[:1] = 0
        for mapping in (q.budgets, q.budgets["a"].uses, q.cohort.units):
            with pytest.raises(TypeError):
                mapping["a"] = 2  # type: ignore[index]
        assert q.budgets == p.budgets == {"a": Budget(4.0, {"a": 1.0}), "b": Budget(1.0, {"b": 1.0})}
        assert repr(solve(q)) == repr(solve(p))


def test_columns_of_1e300_may_stand_still_but_not_change() -> None:
    net = TorchClassifier(linear_net([1.0, 0.0]), output="logits")
    for size in (1e200, 1e300, 1.7e308):
        x = np.array([[-1.0, size], [-2.0, -size], [-3.0, 0.0]])
        options: dict[str, Any] = {"classifier": net, "cohort": x, "features": None, "target": 1}
        plan = solve(problem(budgets={"x0": 7.0}, **options))
        assert plan.count == 2
        text = faults(budgets={"x0": 7.0, "x1": 1.0}, **options)
        assert f"column 'x1' has values as large as {size:.3g} and draws on a budget" in text


def test_a_problem_is_frozen_and_prints_itself() -> None:
    p = problem()
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.guard = 0.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        p.cohort.values[0, 0] = 1.0
    assert repr(p) == "Problem(3 samples x 3 features, budgets: a, b)"
    assert p.actionable.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"budgets": {"a": -3.0}}, ["budgets.a = -3.0: must be >= 0"]),
        ({"budgets": {"a": float("nan")}}, ["budgets.a = nan"]),
        ({"budgets": {"a": True}}, ["budgets.a = True: must be a number"]),
        ({"budgets": {"a": "10%"}}, ["budgets.a = '10%'"]),
        ({"budgets": {}}, ["at least one"]),
        ({"budgets": {"people": Budget(3, cost="count")}}, ["no feature draws on a budget"]),
        ({"budgets": {"h": Budget(1.0, {"a": 0.0})}}, ["no feature draws on a budget"]),
        ({"budgets": {"aa": 1.0}}, ["budgets.aa: no feature is called 'aa'.", "Did you mean 'a'?"]),
        ({"budgets": {"h": Budget(1.0, {"x": 1.0})}}, ["budgets.h.uses.x"]),
        ({"budgets": {"h": Budget(1.0, {"a": -1.0})}}, ["budgets.h.uses.a = -1.0"]),
        ({"budgets": {"h": Budget(1.0, {"a": float("inf")})}}, ["budgets.h.uses.a = inf"]),
        ({"budgets": {"a": Budget(1.0, cost="cubic")}}, ["budgets.a.cost = 'cubic'"]),
        ({"budgets": {"a": 1.0, "p": Budget(1.0, {"a": 1.0}, "count")}}, ["budgets.p.uses"]),
        ({"margin": None}, ["margin, threshold: give one of the two", "neither"]),
        ({"threshold": 0.9}, ["both"]),
        ({"margin": 1.0}, ["[0, 1)"]),
        ({"margin": None, "threshold": 0.0}, ["(0, 1)"]),
        ({"margin": None, "threshold": 1 - 1e-7}, ["too close to 1"]),
        ({"target": "goood"}, ["Did you mean 'good'?"]),
        ({"target": 2}, ["columns 0 to 1"]),
        ({"limits": {"z": (0, 1)}}, ["limits.z"]),
        ({"limits": {"c": (0, 1)}}, ["limits.c", "draws on no budget"]),
        ({"directions": {"c": "up"}}, ["directions.c", "draws on no budget"]),
        ({"directions": {"a": "sideways"}}, ["directions.a = 'sideways'"]),
        ({"limits": {"a": (2, 1)}}, ["limits.a: min 2.0 is above max 1.0"]),
        ({"limits": {"a": (np.array([0.0, 5.0, 0.0]), 4.0)}}, ["limits.a: row 2: min is above max"]),
        ({"limits": {"a": (np.zeros(2), 1)}}, ["limits.a", "(3,)"]),
        ({"limits": {"a": (float("nan"), 1)}}, ["limits.a", "NaN"]),
        ({"limits": {"a": 5}}, ["limits.a = 5"]),
        ({"limits": {"a": ("x", 1)}}, ["limits.a"]),
        ({"limits": "seen"}, ["limits: got 'seen'"]),
        ({"limits": {"a": (None, -5)}, "directions": {"a": "up"}}, ["limits.a.max, directions.a"]),
        ({"limits": {"a": (9, None)}, "directions": {"a": "down"}}, ["limits.a.min, directions.a"]),
        ({"worth": [1.0, 2.0]}, ["worth: shape (2,)"]),
        ({"worth": [1.0, -2.0, 1.0]}, ["worth: row 2: -2.0"]),
        ({"worth": [0.0, 1e-100, 5e-324]}, ["worth: row 3: 5e-324; must be 0, or a number from 1e-100 to 1e+100."]),
        ({"worth": ["x", 1, 1]}, ["worth"]),
        ({"include": ["9"]}, ["include: no sample has the id '9'"]),
        ({"include": [0], "exclude": ["0"]}, ["include, exclude: id '0' is in both"]),
        ({"include": "012"}, ["wanted a list of ids"]),
    ],
)
def test_faults(options: Any, parts: list[str]) -> None:
    text = faults(**options)
    for part in parts:
        assert part in text


def test_all_faults_are_listed() -> None:
    text = faults(budgets={"a": -1.0, "zz": 1.0}, margin=7, worth=[1], include=["9"], limits={"q": (0, 1)})
    assert len(text.splitlines()) == 6


def test_a_wrong_budget_is_not_also_said_to_be_missing() -> None:
    text = faults(budgets={"a": -1.0}, directions={"a": "lower"})
    assert "budgets.a" in text
    assert "directions.a = 'lower'" in text
    assert "draws on no budget" not in text


def test_a_value_beyond_the_models_dtype_is_named() -> None:
    big = X.copy()
    big[1, 2] = 1e39
    text = faults(cohort=big)
    assert "column 'c', row 2: 1e+39 is beyond the model's float32" in text
    assert problem(cohort=big, classifier=TorchClassifier(small_net(3, dtype=torch.float64), output="logits"), target=1)


def test_a_cohort_keeps_its_names_and_units() -> None:
    cohort = Cohort.table(X, features=["a", "b", "c"], units={"a": "kg"})
    assert problem(cohort=cohort, features=None).cohort.units == {"a": "kg"}
    with pytest.raises(InputError, match="already has"):
        problem(cohort=cohort, features=["a", "b", "d"])
    with pytest.raises(InputError, match="carries its own"):
        problem(cohort=cohort, features=None, units={"b": "m"})


def test_notices_tell_what_was_done_with_the_data() -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.0, 1e12, 2.0], "c": [0.0, 1e-3, 1.0], "note": ["", "", ""]})
    notices = "\n".join(problem(cohort=frame, limits={"a": (2, 5)}).notices)
    assert "note" in notices
    assert "Whole-number columns may change by fractions: a" in notices
    assert "widen them for that sample: a 1" in notices
    assert "Ranges differ by more than 1e8 ('a': 2, 'b': 1e+12)" in notices or "('c': 1, 'b': 1e+12)" in notices


def test_a_second_campaign_excludes_the_first() -> None:
    """Ids come as arrays and Series too."""
    import pandas as pd

    for ids in (np.array(["0", "2"], dtype=object), pd.Series(["0", "2"]), (0, 2), np.array([0, 2])):
        assert problem(exclude=ids).exclude.tolist() == [0, 2]


def test_a_series_goes_by_its_labels_or_not_at_all() -> None:
    import pandas as pd

    cohort = Cohort.table(X, features=["a", "b", "c"], ids=["p", "q", "r"])
    options: dict[str, Any] = {"cohort": cohort, "features": None}
    shuffled = pd.Series([3.0, 1.0, 2.0], index=["r", "p", "q"])
    assert problem(worth=shuffled, **options).worth.tolist() == [1.0, 2.0, 3.0]
    assert problem(limits={"a": (-shuffled - 9, None)}, **options).limits.lower[:, 0].tolist() == [-10.0, -11.0, -12.0]
    assert problem(target=pd.Series([1, 0, 1], index=["q", "p", "r"]), **options).goal.wanted[:, 1].tolist() == [
        0,
        1,
        1,
    ]
    with pytest.raises(InputError, match="which value belongs to whom"):
        problem(worth=pd.Series([1.0, 2.0, 3.0], index=["x", "y", "z"]), **options)


def test_whole_numbers_as_column_names_and_other_odd_arguments() -> None:
    import pandas as pd

    frame = pd.DataFrame(X)
    assert problem(cohort=frame, features=["0", "1", "2"], budgets={"0": 1.0}).cohort.features == ("0", "1", "2")
    assert "directions: got 'down'" in faults(directions="down")
    assert "budgets.a" in faults(budgets={"a": 10**400})
    with pytest.raises(InputError, match="wanted a list of names"):
        problem(features="abc")


def test_frozen_free_and_forbidden_features() -> None:
    p = problem(budgets={"a": 0.0, "b": 1.0, "h": Budget(2.0, {"b": 1.0, "c": 0.0})})
    assert p.ledger.actionable.tolist() == [False, True, False]
    low, high = p.box(np.array([0, 1]))
    assert (low[:, [0, 2]] == 0).all()
    assert (high[:, 1] == np.inf).all()


def test_one_feature_may_draw_on_several_budgets_of_several_kinds() -> None:
    budgets = {"a": 4.0, "hours": Budget(3.0, {"a": 0.5, "b": 2.0}, "absolute"), "people": Budget(2, cost="count")}
    p = problem(budgets=budgets)
    consumption = p.ledger.consumption(np.array([[2.0, -1.0, 0.0]]))
    assert consumption.tolist() == [[4.0, 3.0, 1.0]]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(-1e6, 1e6), st.floats(0, 1e6), st.integers(-1, 1)
)
def test_settled_changes_never_leave_their_limits_by_one_bit(
    xs: list[float], low: float, span: float, way: int
) -> None:
    """2,000 and more boxes: x + d is inside them in float64 for changes that aim far outside, and for tiny ones."""
    x = np.array(xs)[:, None]
    directions = {0: {}, 1: {"x0": "up"}, -1: {"x0": "down"}}[way]
    try:
        p = linear_problem([1.0], x, [1.0], limits={"x0": (low, low + span)}, directions=directions)
    except ProblemError:
        return  # a direction in which nobody can go
    rows = np.arange(len(x))
    lower, upper = np.minimum(low, x), np.maximum(low + span, x)
    for aim in (-1e9, -1.0, -1e-9, 0.0, 1e-9, 1.0, 1e9):
        d = p.settle(rows, np.full_like(x, aim))
        assert ((x + d >= lower) & (x + d <= upper)).all()
        assert (d * way >= 0).all()
        assert not np.signbit(d[d == 0]).any()


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "limits.x0: row 1: min is above max."),
        (2, "limits.x0: min is above max for 2 samples: row 1, row 2. Swap them there."),
        (5, "limits.x0: min is above max for 5 samples: row 1, row 2, row 3, row 4, row 5. Swap them there."),
        (
            2000,
            "limits.x0: min is above max for 2,000 samples: row 1, row 2, row 3, row 4, row 5 and 1,995 more. "
            "Swap them there.",
        ),
    ],
)
def test_crossed_limits_are_one_fault_however_many_samples_have_them(n: int, words: str) -> None:
    low = np.where(np.arange(2500) < n, 2.0, 0.0)
    with pytest.raises(ProblemError) as caught:
        linear_problem([1.0], np.zeros((2500, 1)), [1.0], limits={"x0": (low, np.ones(2500))})
    assert caught.value.problems == (words,)


def test_one_sample_of_one_feature_is_said_so() -> None:
    p = linear_problem([1.0], [[0.0]], [1.0])
    assert repr(p) == "Problem(1 sample x 1 feature, budgets: x0)"
    assert "1 sample of 1 feature<" in p._repr_html_()
    assert repr(Pool.of(p, np.zeros(1, np.int64), np.zeros((1, 1)))) == "Pool(1 flip of 1 sample)"


def test_limits_per_sample_and_observed() -> None:
    p = problem(limits={"a": (np.array([0.0, 1.0, -5.0]), None), "b": "observed"})
    low, high = p.box(np.arange(3))
    assert low[:, 0].tolist() == [-1.0, -3.0, -4.0]
    assert high[:, 0].tolist() == [np.inf] * 3
    assert (low[:, 1].tolist(), high[:, 1].tolist()) == ([-2.0, -5.0, 0.0], [3.0, 0.0, 5.0])
    everything = problem(limits="observed")
    assert np.isinf(everything.limits.lower[0, 2])
    assert everything.limits.lower[0, :2].tolist() == [-1.0, 0.0]


def test_the_linear_form_is_found_through_the_problem() -> None:
    assert linear_problem([1.0, 2.0], X[:, :2], [1, 1]).linear is not None
    assert problem().linear is None
    assert linear_net([1.0]).weight.dtype == torch.float64
