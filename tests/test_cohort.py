"""Cohorts from whatever people keep tables in, and what wrong data is told."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from maxflip import Cohort, InputError
from tests.test_problem import WRONG, wrong_words

VALUES = np.array([[61.0, 27.5], [48.0, 31.0], [70.0, 22.25]])
COLUMNS = {"age": [61.0, 48.0, 70.0], "bmi": [27.5, 31.0, 22.25]}
IDS = ["P-1", "007", "P-3"]


@pytest.mark.parametrize(
    "data",
    [
        VALUES,
        VALUES.astype(np.float32),
        np.asfortranarray(VALUES),
        VALUES.tolist(),
        torch.tensor(VALUES),
        torch.tensor(VALUES, requires_grad=True),
        torch.tensor(VALUES, dtype=torch.float16),
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        pd.DataFrame(COLUMNS).astype("Float64"),
        pd.DataFrame(COLUMNS).astype(object),
    ],
    ids=lambda d: type(d).__name__,
)
def test_every_kind_of_table_gives_the_same_cohort(data: Any) -> None:
    cohort = Cohort.table(data, features=["age", "bmi"])
    np.testing.assert_array_equal(cohort.values, VALUES)
    assert cohort.values.dtype == np.float64
    assert not cohort.values.flags.writeable
    assert cohort.ids.tolist() == ["0", "1", "2"]


def test_the_callers_array_is_not_touched_or_shared() -> None:
    mine = VALUES.copy()
    cohort = Cohort.table(mine)
    mine[0, 0] = -1.0
    assert cohort.values[0, 0] == 61.0
    assert mine.flags.writeable
    assert cohort.features == ("x0", "x1")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_ids_units_order_and_extra_columns(frame: Any) -> None:
    data = frame({"note": ["a", "b", "c"], "bmi": COLUMNS["bmi"], "who": IDS, "age": COLUMNS["age"]})
    cohort = Cohort.table(data, features=["age", "bmi"], id="who", units={"age": "years"})
    np.testing.assert_array_equal(cohort.values, VALUES)
    assert cohort.ids.tolist() == IDS
    assert cohort.ignored == ("note",)
    assert cohort.units == {"age": "years"}
    assert cohort.order.tolist() == [1, 0, 2]
    assert cohort.row_of["007"] == 1
    assert cohort.where(1) == "row 2 (id 007)"


def test_a_pandas_index_holds_ids_unless_it_is_plain() -> None:
    assert Cohort.table(pd.DataFrame(COLUMNS, index=IDS)).ids.tolist() == IDS
    assert Cohort.table(pd.DataFrame(COLUMNS, index=[5, 6, 7])).ids.tolist() == ["5", "6", "7"]
    with pytest.raises(InputError, match="id '5' is in row 1 and row 3"):
        Cohort.table(pd.DataFrame(COLUMNS, index=[5, 6, 5]))


def test_integers_are_whole_and_must_be_exact() -> None:
    frame = pd.DataFrame({"age": [61, 48], "smokes": [True, False], "bmi": [27.5, 31.0]})
    cohort = Cohort.table(frame)
    assert cohort.whole_features == ("age", "smokes")
    np.testing.assert_array_equal(cohort.values, [[61, 1, 27.5], [48, 0, 31.0]])
    with pytest.raises(InputError, match=r"row 2: 9007199254740993 is not exactly representable in float64"):
        Cohort.table(pd.DataFrame({"a": [2**53, 2**53 + 1]}))


def frame_with(column: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"who": ["P-1", "P-2", "P-3"], "age": column, "bmi": [1.0, 2.0, 3.0]})


def test_a_column_of_texts_is_told_in_one_line() -> None:
    frame = pd.DataFrame({"name": [f"n{j}" for j in range(11)], "age": np.arange(11.0)})
    with pytest.raises(InputError) as caught:
        Cohort.table(frame)
    (told,) = caught.value.problems
    assert "column 'name' holds no number at all: row 1: 'n0' is no number. Leave it out" in told


def test_a_column_of_texts_and_gaps_is_told_in_one_line() -> None:
    frame = pd.DataFrame({"job": [None, *["office", "field"] * 6], "age": np.arange(13.0)})
    with pytest.raises(InputError) as caught:
        Cohort.table(frame)
    (told,) = caught.value.problems
    assert "column 'job' holds no number at all: row 2: 'office' is no number. Leave it out" in told


def test_a_wrong_id_column_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError) as caught:
        Cohort.table(pd.DataFrame({"pid": ["A"], "age": [1.0]}), id="who")
    assert caught.value.problems == ("cohort: has no column 'who'.", "cohort: its columns are 'pid', 'age'.")


def test_a_cohort_shows_neither_values_nor_ids() -> None:
    cohort = Cohort.table([[61.5, 27.5]], features=["age", "bmi"], ids=["P-1"])
    assert repr(cohort) == "Cohort(1 sample x 2 features: 'age', 'bmi')"
    assert repr(Cohort.sequences([[[1.0]], [[2.0]]], features=["bp"])) == "Cohort(2 sequences x 1 feature: 'bp')"


@pytest.mark.parametrize(
    ("column", "what"),
    [
        ([1.0, float("nan"), 2.0], "NaN"),
        ([1.0, float("inf"), 2.0], "+inf"),
        ([1.0, float("-inf"), 2.0], "-inf"),
        ([1.0, "12,5", 2.0], "'12,5' is no number"),
        ([1.0, "N/A", 2.0], "'N/A' is no number"),
        ([1.0, "", 2.0], "the cell is empty"),
        ([1.0, None, "x"], "the cell is empty"),
        ([1.0, "z" * 100, 2.0], "..."),
    ],
)
def test_a_bad_cell_is_named(column: list[Any], what: str) -> None:
    with pytest.raises(InputError) as caught:
        Cohort.table(frame_with(column), features=["age", "bmi"], id="who", source="people.csv")
    first = caught.value.problems[0]
    assert first.startswith("people.csv: column 'age', row 2 (id P-2): ")
    assert what in first
    assert "must be finite" in first
    assert len(first) < 200
    assert "such cell" in caught.value.problems[-1]


def test_all_bad_cells_are_listed_with_a_count() -> None:
    bad = np.full((300, 2), np.nan)
    bad[:, 1] = 1.0
    with pytest.raises(InputError) as caught:
        Cohort.table(bad)
    assert "300 such cells in 1 column" in caught.value.problems[-1]
    assert len(caught.value.problems) == 12


@pytest.mark.parametrize(
    ("data", "options", "parts"),
    [
        (np.zeros((0, 2)), {}, ["0 rows"]),
        (np.zeros((2, 0)), {}, ["no feature columns"]),
        (np.zeros(3), {}, ["(3,)", "two dimensions"]),
        ([[1.0, 2.0], [3.0]], {}, ["different lengths"]),
        (np.zeros((2, 2, 2)), {}, ["(2, 2, 2)"]),
        (np.array([["a", "b"]]), {}, ["<U1", "wanted numbers"]),
        (
            pd.DataFrame({"chol": [1.0], "age": [2.0]}),
            {"features": ["cholesterol", "age"]},
            ["'cholesterol'", "other columns"],
        ),
        (pd.DataFrame({"chol": [1.0]}), {"features": ["choll"]}, ["Did you mean 'chol'?"]),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), {}, ["column 1", "column 2"]),
        (pd.DataFrame([[1.0, 2.0]], columns=["BMI", "bmi "]), {}, ["'BMI' (column 1) and 'bmi ' (column 2)"]),
        (pd.DataFrame({"a": [1.0]}), {"features": ["a", "a"]}, ["named 2 times"]),
        (np.zeros((2, 2)), {"features": ["a"]}, ["1 name for 2 columns"]),
        (np.zeros((2, 1)), {"ids": ["a"]}, ["1 given for 2 rows"]),
        (np.zeros((2, 1)), {"ids": ["a", "a"]}, ["is in row 1 and row 2", "unique"]),
        (np.zeros((2, 1)), {"ids": ["a", ""]}, ["row 2", "empty"]),
        (np.zeros((2, 1)), {"ids": ["a", None]}, ["row 2", "empty"]),
        (np.zeros((2, 1)), {"ids": ["7", 7]}, ["mixes texts and integers"]),
        (np.zeros((2, 1)), {"ids": ["a", 1.5]}, ["1.5 is no id"]),
        (np.zeros((1, 1)), {"ids": ["\ud800"]}, ["Unicode"]),
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])}), {}, ["'t'", "Datetime"]),
        (pd.DataFrame({"a": [1.0]}), {"units": {"b": "kg"}}, ["units.b"]),
        (object(), {}, ["got object"]),
    ],
)
def test_wrong_tables(data: Any, options: Any, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Cohort.table(data, **options)
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.exit_code == 2
    assert isinstance(caught.value, ValueError)


def test_several_faults_are_listed_at_once() -> None:
    frame = pd.DataFrame({"who": ["a", "a", None], "x": [1.0, float("nan"), 2.0]})
    with pytest.raises(InputError) as caught:
        Cohort.table(frame, id="who")
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize("value", WRONG, ids=lambda v: type(v).__name__)
def test_wrong_types_are_told_in_words(value: Any) -> None:
    assert not wrong_words("cohort", lambda: Cohort.table(value))
    for argument in ("features", "id", "ids", "units", "source"):
        assert not wrong_words("", functools.partial(Cohort.table, VALUES, **{argument: value}))


def test_ids_come_from_one_place() -> None:
    with pytest.raises(InputError, match="not both"):
        Cohort.table(pd.DataFrame({"who": IDS, **COLUMNS}), id="who", ids=IDS)
