"""Notices of frozen columns that are sums of others: told where a change would break one, and not otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from maxflip import Budget, Problem, TorchClassifier
from maxflip.data.derived import Derived
from maxflip.problem.relations import find_relations, notices_of
from tests.examples import linear_net

Floats = NDArray[np.float64]
RNG = np.random.default_rng(0)
N = 300
SYSTOLIC, DIASTOLIC = np.round(RNG.normal(135, 15, N)), np.round(RNG.normal(82, 10, N))
AGE, TEMPERATURE = np.round(RNG.normal(50, 9, N)), np.round(RNG.normal(37, 0.5, N), 1)
SHARES = 100 * RNG.dirichlet([2, 2, 2], N)
LEVEL = RNG.integers(0, 3, N)


Table = dict[str, Floats]


def told(moving: set[str], columns: Table, derived: dict[str, str] | None = None) -> dict[str, str]:
    """{column: expression} of the notices, where the columns `moving` may change"""
    names, values = list(columns), np.column_stack(list(columns.values()))
    rules, faults = Derived.read(derived, names)
    assert not faults
    places = frozenset(i for i, name in enumerate(names) if name in moving or name in rules.texts)
    texts = notices_of(find_relations(values, places, rules), names, places)
    expressions = {}
    for text in texts:
        name, _, rest = text.partition(" = ")
        expressions[name] = rest.partition(" in every row")[0]
        assert f"write derived={{{name!r}: {expressions[name]!r}}}" in text
    following, faults = Derived.read(expressions, names)
    assert not faults
    assert not list(following.start_faults(values, names, str))  # what is offered can be taken
    return expressions


@pytest.mark.parametrize(
    ("column", "expression"),
    [
        (SYSTOLIC - DIASTOLIC, "'systolic BP' - diastolic"),
        (SYSTOLIC + DIASTOLIC, "'systolic BP' + diastolic"),
        ((SYSTOLIC + 2 * DIASTOLIC) / 3, "'systolic BP' / 3 + 2 * diastolic / 3"),
        (250 - SYSTOLIC - DIASTOLIC, "250 - 'systolic BP' - diastolic"),
        (SYSTOLIC, "'systolic BP'"),
        (SYSTOLIC / 12, "'systolic BP' / 12"),
        (SYSTOLIC * 0.1333223874, "0.1333223874 * 'systolic BP'"),
        (2.5 * SYSTOLIC - 7, "5 * 'systolic BP' / 2 - 7"),
        (-SYSTOLIC, "-'systolic BP'"),
        (300 - SYSTOLIC, "300 - 'systolic BP'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("noise", [0.0, 1e-13])
def test_sums_and_ratios_are_told_as_they_can_be_written(column: Floats, expression: str, noise: float) -> None:
    known = {"systolic BP": SYSTOLIC, "diastolic": DIASTOLIC, "age": AGE}
    off = column * (1 + noise * RNG.choice([-1.0, 0.0, 1.0], N))
    assert told({"systolic BP"}, known | {"it": off}) == {"it": expression}
    assert told({"age"}, known | {"it": off}) == {}
    assert told({"systolic BP", "diastolic", "it"}, known | {"it": off}) == {}  # nothing of it is frozen


def test_what_is_no_simple_sum_is_not_told() -> None:
    known = {"systolic": SYSTOLIC, "diastolic": DIASTOLIC, "age": AGE}
    standard = (SYSTOLIC - SYSTOLIC.mean()) / SYSTOLIC.std()
    nearly = SYSTOLIC - DIASTOLIC
    nearly[17] += 0.01
    for column in (standard, nearly, SYSTOLIC * DIASTOLIC, np.sqrt(SYSTOLIC), 0.3127 * SYSTOLIC + 0.7741 * DIASTOLIC):
        assert told({"systolic"}, known | {"it": column}) == {}
        assert told({"it"}, known | {"it": column}) == {}


def test_one_hot_groups_flags_and_constants_are_no_relations() -> None:
    levels = {f"level {k}": np.where(k == LEVEL, 1.0, 0.0) for k in range(3)}
    flags = {"yes": np.where(AGE > 50, 1.0, 0.0), "no": np.where(AGE > 50, 0.0, 1.0)}
    others = {"age": AGE, "one": np.ones(N), "zero": np.zeros(N), "any": 1 - levels["level 0"]}
    for moving in ("level 0", "yes", "any", "age", "one"):
        assert told({moving}, levels | flags | others) == {}


def test_shares_that_add_up_are_told_once() -> None:
    columns = {f"share {k}": SHARES[:, k] for k in range(3)}
    assert told({"share 0"}, columns) == {"share 2": "100 - 'share 0' - 'share 1'"}


def test_relations_that_say_the_same_are_told_once_and_in_no_circle() -> None:
    pulse = SYSTOLIC - DIASTOLIC
    mean = DIASTOLIC + pulse / 3
    known = {"systolic": SYSTOLIC, "diastolic": DIASTOLIC, "pulse": pulse, "mean": mean}
    assert told({"diastolic"}, known) == {"pulse": "systolic - diastolic", "mean": "diastolic + pulse / 3"}
    assert told({"diastolic"}, known, {"pulse": "systolic - diastolic"}) == {"mean": "diastolic + pulse / 3"}
    both = {"pulse": "systolic - diastolic", "mean": "diastolic + pulse / 3"}
    assert told({"diastolic"}, known, both) == {}


def test_few_rows_and_many_columns_tell_nothing() -> None:
    known = {"systolic": SYSTOLIC, "diastolic": DIASTOLIC, "pulse": SYSTOLIC - DIASTOLIC}
    for n, count in ((5, 0), (19, 0), (20, 1)):
        assert len(told({"systolic"}, {name: column[:n] for name, column in known.items()})) == count
    wide = {f"x{i}": RNG.normal(size=N) for i in range(58)}
    assert told({"systolic"}, known | wide) == {}
    wide.popitem()
    assert told({"systolic"}, known | wide) == {"pulse": "systolic - diastolic"}


@pytest.mark.parametrize(
    "loaded", [load_diabetes(scaled=False), load_breast_cancer(), load_wine()], ids=["a", "b", "c"]
)
def test_ordinary_columns_tell_nothing(loaded: Any) -> None:
    for moving in (frozenset({0}), frozenset(range(0, loaded.data.shape[1], 2))):
        assert find_relations(loaded.data, moving, Derived()) == ()


def test_random_whole_numbers_tell_nothing() -> None:
    for seed in range(40):
        x = np.random.default_rng(seed).integers(0, 9, size=(20, 12)).astype(float)
        assert find_relations(x, frozenset(range(6)), Derived()) == ()


def test_extreme_columns_are_passed_over() -> None:
    columns = {
        "a": SYSTOLIC,
        "huge": 1e300 * SYSTOLIC,
        "larger": np.where(AGE > 50, 1.7e308, -1.7e308),
        "tiny": 1e-320 * AGE,
    }
    assert told({"a"}, columns).keys() <= {"huge"}
    constant = {"a": SYSTOLIC, "tenths": np.full(N, 0.1), "ones": np.full(N, 1e17) + np.arange(N) % 2}
    assert told({"a", "tenths"}, constant) == {}


def test_a_problem_tells_it_for_the_features_that_draw_on_a_budget() -> None:
    x = np.column_stack([SYSTOLIC, DIASTOLIC, SYSTOLIC - DIASTOLIC])
    settings: dict[str, Any] = {
        "classifier": TorchClassifier(linear_net([-0.01, -0.01, -0.03]), output="logits"),
        "cohort": x,
        "features": ["systolic", "diastolic", "pulse"],
        "target": 1,
        "margin": 0.1,
    }

    def notices(problem: Problem) -> list[str]:
        return [text for text in problem.notices if "in every row" in text]

    problem = Problem(**settings, budgets={"systolic": 1.0})
    (text,) = notices(problem)
    assert text.startswith(
        "pulse = systolic - diastolic in every row, and pulse would not follow a change of systolic."
    )
    assert notices(problem.changed(budgets={"systolic": 2.0})) == [text]
    assert "a change of systolic or diastolic." in notices(problem.changed(budgets={"diastolic": Budget(1.0)}))[0]
    assert not notices(Problem(**settings, budgets={"systolic": 1.0, "pulse": 1.0, "diastolic": 1.0}))
    assert not notices(Problem(**settings, budgets={"systolic": 1.0}, derived={"pulse": "systolic - diastolic"}))
