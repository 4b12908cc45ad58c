"""Long files of sequences: read to the last bit, or refused with file, row, id and column."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maxflip import InputError
from maxflip.io.cohort.cells import Amount, Extra, Limit
from maxflip.io.cohort.sequences import Columns, Static, read_sequences, read_static
from maxflip.io.cohort.tables import Reading
from tests.sequences.stays import write_csv

STAYS: dict[str, list[Any]] = {
    "stay": ["B", "B", "A", "C", "C"],
    "hour": [0.0, 1.5, 7.0, 2.0, 2.0],
    "bp": [120.5, None, 131.0, None, None],
    "glucose": [None, 6.25, 0.1, None, 5.0],
    "late": [False, True, True, False, True],
}
STATIC: dict[str, list[Any]] = {"stay": ["A", "C", "B"], "age": [61.0, 48.0, 70.0], "value": [1.0, 2.0, 3.0]}
NAMES = Columns("stay", "hour", ["bp", "glucose"])


def parquet(folder: Path, columns: dict[str, Any], name: str = "stays.parquet") -> Path:
    pq.write_table(pa.table(columns), folder / name)
    return folder / name


def csv(folder: Path, columns: dict[str, Any], name: str = "stays.csv") -> Path:
    write_csv(columns, folder / name)
    return folder / name


def read(path: Path, names: Columns = NAMES, **options: Any) -> Reading:
    return read_sequences(path, names, source=path.name, **options)


def static(path: Path, features: list[str] | None = None, extra: list[Extra] | None = None) -> Static:
    wanted = ["age"] if features is None else features
    return read_static(path, id="stay", features=wanted, extra_columns=extra or [], source=path.name)


def faults(path: Path, names: Columns = NAMES, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(path, names, **options)
    return list(caught.value.problems)


# What is right


@pytest.mark.parametrize("write", [parquet, csv])
def test_a_step_is_a_row_and_what_is_empty_is_missing(tmp_path: Path, write: Any) -> None:
    cohort = read(write(tmp_path, STAYS)).cohort
    assert cohort.ids.tolist() == ["B", "A", "C"]  # in the order of the file
    assert cohort.ragged is not None
    assert cohort.ragged.lengths.tolist() == [2, 1, 2]
    assert cohort.ragged.times.tolist() == [0.0, 1.5, 7.0, 2.0, 2.0]
    nan = math.nan
    wanted = [[120.5, nan], [nan, 6.25], [131.0, 0.1], [nan, nan], [nan, 5.0]]
    np.testing.assert_array_equal(cohort.values, wanted)
    assert cohort.ignored == ("late",)


def test_nan_is_missing_too_and_ids_may_be_integers(tmp_path: Path) -> None:
    columns = {**STAYS, "stay": [7, 7, 10, 8, 8], "bp": [1.0, math.nan, 2.0, None, 3.0]}
    cohort = read(parquet(tmp_path, columns)).cohort
    assert cohort.ids.tolist() == ["7", "10", "8"]
    assert np.isnan(cohort.values[:, 0]).tolist() == [False, True, False, True, False]


def test_a_stay_without_measurements_and_a_column_without_any_are_legal(tmp_path: Path) -> None:
    columns = {**STAYS, "glucose": pa.nulls(5), "bp": [1.0, 2.0, None, 3.0, 4.0]}
    cohort = read(parquet(tmp_path, columns)).cohort
    assert np.isnan(cohort.values[:, 1]).all()
    assert np.isnan(cohort.values[2]).all()


@pytest.mark.parametrize("write", [parquet, csv])
def test_whole_columns_are_known_in_spite_of_gaps(tmp_path: Path, write: Any) -> None:
    columns = {**STAYS, "bp": pa.array([120, None, 131, None, 2**53 + 2]) if write is parquet else [120, None, 131] * 2}
    columns["bp"] = columns["bp"][:5]
    assert read(write(tmp_path, columns)).cohort.whole_features == ("bp",)


def test_other_kinds_of_numbers(tmp_path: Path) -> None:
    for kind in (pa.float32(), pa.int16(), pa.uint8(), pa.decimal128(6, 2)):
        cells = pa.array([1, None, 2, None, 3], pa.int16()).cast(pa.decimal128(10, 2)).cast(kind)
        values = read(parquet(tmp_path, {**STAYS, "bp": cells})).cohort.values[:, 0]
        np.testing.assert_array_equal(values, [1.0, math.nan, 2.0, math.nan, 3.0])


@pytest.mark.parametrize("write", [parquet, csv])
def test_static_values_go_by_id(tmp_path: Path, write: Any) -> None:
    beside = static(write(tmp_path, STATIC, f"static.{write.__name__}"), extra=[Amount("value")])
    reading = read(write(tmp_path, STAYS), static=beside, static_features=["age"], units={"age": "years"})
    assert reading.cohort.ragged is not None
    assert reading.cohort.ragged.static.tolist() == [[70.0], [61.0], [48.0]]
    assert reading.cohort.ragged.static_features == ("age",)
    assert reading.columns[Amount("value")].tolist() == [3.0, 1.0, 2.0]


def test_a_static_file_may_hold_what_is_no_feature_alone(tmp_path: Path) -> None:
    columns = {**STATIC, "low": [None, 3.0, None]}
    beside = static(parquet(tmp_path, columns, "static.parquet"), features=[], extra=[Limit("low")])
    reading = read(parquet(tmp_path, STAYS), static=beside)
    assert reading.cohort.ragged is not None
    assert reading.cohort.ragged.static.shape == (3, 0)
    np.testing.assert_array_equal(reading.columns[Limit("low")], [math.nan, math.nan, 3.0])
    assert reading.cohort.ignored == ("late", "age (static.parquet)", "value (static.parquet)")


@pytest.mark.parametrize(
    "cells", [[False, True, True, False, True], [0, 1, 1, 0, 1], ["False", "TRUE", "true", "0", "1"]], ids=str
)
@pytest.mark.parametrize("write", [parquet, csv])
def test_a_column_may_say_which_steps_may_change(tmp_path: Path, write: Any, cells: list[Any]) -> None:
    names = Columns("stay", "hour", ["bp", "glucose"], "late")
    reading = read(write(tmp_path, {**STAYS, "late": cells}), names)
    assert reading.may_change is not None
    assert [mask.tolist() for mask in reading.may_change] == [[False, True], [True], [False, True]]


# What is wrong


def changed(column: str, row: int, value: Any) -> dict[str, Any]:
    cells = list(STAYS[column])
    cells[row] = value
    return {**STAYS, column: cells}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "time goes backwards": (
        changed("hour", 1, -1.0),
        "stays.parquet: column 'hour', row 2 (id B): time goes backwards, -1 after 0; sort the rows of each id by "
        "time.",
    ),
    "no time": (
        changed("hour", 4, None),
        "stays.parquet: column 'hour', row 5 (id C): the cell is empty; every step has a time, a finite number.",
    ),
    "a time that is not finite": (
        changed("hour", 2, math.inf),
        "stays.parquet: column 'hour', row 3 (id A): inf; every step has a time, a finite number.",
    ),
    "times that are dates": (
        {**STAYS, "hour": pa.array([0, 1, 2, 3, 4], pa.timestamp("ms"))},
        "stays.parquet: column 'hour' has type timestamp[ms]; times must be numbers, such as hours since a beginning.",
    ),
    "an id that comes again": (
        changed("stay", 4, "B"),
        "stays.parquet: column 'stay', row 5: id B appears again after other ids; its first row is row 1. "
        "Put the rows of an id together, in the order of time.",
    ),
    "no id": (
        changed("stay", 2, None),
        "stays.parquet: column 'stay', row 3: the id is empty. Every row needs an id.",
    ),
    "ids of another type": (
        {**STAYS, "stay": [1.5] * 5},
        "stays.parquet: column 'stay' has type double; ids must be texts or integers.",
    ),
    "an infinite value": (
        changed("bp", 2, -math.inf),
        "stays.parquet: column 'bp', row 3 (id A): -inf; values must be finite numbers, or empty where nothing was "
        "measured.",
    ),
    "a value that is text": (
        {**STAYS, "bp": ["1", None, "high", "", None]},
        "stays.parquet: column 'bp', row 3 (id A): 'high' is no number; values must be finite numbers, or empty where "
        "nothing was measured.",
    ),
    "a value that float64 lacks": (
        {**STAYS, "bp": pa.array([2**53 + 1, None, 3, 4, 5])},
        "stays.parquet: column 'bp', row 1 (id B): 9007199254740993 is not exactly representable in "
        "float64; values must be finite numbers, or empty where nothing was measured.",
    ),
    "a column of another type": (
        {**STAYS, "bp": [[1.0]] * 5},
        "stays.parquet: column 'bp' has type list<element: double>; wanted numbers.",
    ),
    "no rows": (
        {name: pa.array([], pa.string()) for name in STAYS},
        "stays.parquet: cohort has 0 rows. It needs at least one.",
    ),
    "a column that is not there": (
        {name: cells for name, cells in STAYS.items() if name != "hour"},
        "stays.parquet: has no column 'hour'.",
    ),
    "two columns of one name": (
        {**STAYS, "BP": [1.0] * 5},
        "stays.parquet: 'bp' (column 3) and 'BP' (column 6) have the same name but for case or spaces. Rename one.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_with_its_place(name: str, tmp_path: Path) -> None:
    columns, sentence = BAD[name]
    assert sentence in faults(parquet(tmp_path, columns))


def test_the_same_of_a_csv(tmp_path: Path) -> None:
    path = csv(tmp_path, {**STAYS, "bp": [" ", "high", "", "1e999", 3], "hour": [0, "", "late", 1, 0]})
    assert faults(path) == [
        "stays.csv: column 'hour', row 2 (id B): the cell is empty; every step has a time, a finite number.",
        "stays.csv: column 'hour', row 3 (id A): 'late' is no number; every step has a time, a finite number.",
        "stays.csv: column 'bp', row 1 (id B): ' ' is no number; values must be finite numbers, or empty where "
        "nothing was measured.",
        "stays.csv: column 'bp', row 2 (id B): 'high' is no number; values must be finite numbers, or empty where "
        "nothing was measured.",
        "stays.csv: column 'bp', row 4 (id C): inf; values must be finite numbers, or empty where nothing was "
        "measured.",
    ]


def test_rows_of_unequal_length_are_named(tmp_path: Path) -> None:
    path = tmp_path / "stays.csv"
    path.write_text("stay,hour,bp,glucose\nA,0,1,2\nA,1,1\n")
    (sentence,) = faults(path)
    assert "stays.csv" in sentence
    assert "row 2" in sentence or "line 3" in sentence


def test_ten_of_a_kind_are_told_and_the_rest_counted(tmp_path: Path) -> None:
    columns = {"stay": ["A"] * 30, "hour": [float(-j) for j in range(30)], "bp": [1.0] * 30, "glucose": [1.0] * 30}
    found = faults(parquet(tmp_path, columns))
    assert len(found) == 11
    assert found[-1] == "stays.parquet: column 'hour': ... and 19 more in this column."
    twice = {**columns, "stay": [f"P{j % 15}" for j in range(30)]}
    found = faults(parquet(tmp_path, twice))
    assert len(found) == 11
    assert found[-1].endswith("... and 5 more in this column.")


@pytest.mark.parametrize(
    ("cell", "words"),
    [(None, "the cell is empty"), ("maybe", "'maybe'"), ("2", "'2'")],
    ids=["empty", "word", "number"],
)
def test_a_flag_must_be_true_or_false(tmp_path: Path, cell: Any, words: str) -> None:
    names = Columns("stay", "hour", ["bp", "glucose"], "late")
    columns = {**STAYS, "late": ["true", "false", cell, "true", "true"]}
    wanted = "wanted true or false, whether values of this step may change."
    assert faults(parquet(tmp_path, columns), names) == [
        f"stays.parquet: column 'late', row 3 (id A): {words}; {wanted}"
    ]
    columns = {**STAYS, "late": [0.5] * 5}
    assert faults(parquet(tmp_path, columns), names) == [
        "stays.parquet: column 'late' has type double; wanted true or false for each step."
    ]


def test_ids_that_stand_in_one_file_alone_are_named(tmp_path: Path) -> None:
    beside = static(parquet(tmp_path, {"stay": ["A", "X", "B", "Y"], "age": [1.0] * 4}, "static.parquet"))
    remedy = "A sequence without measurements needs one row there, with a time and nothing else."
    assert faults(parquet(tmp_path, STAYS), static=beside, static_features=["age"]) == [
        "static.parquet: has no row for id C of stays.parquet.",
        f"static.parquet: column 'stay', row 2 (id X): stays.parquet has no steps for it. {remedy}",
        f"static.parquet: column 'stay', row 4 (id Y): stays.parquet has no steps for it. {remedy}",
    ]


def test_many_ids_that_are_in_only_one_file_are_counted(tmp_path: Path) -> None:
    beside = static(parquet(tmp_path, {"stay": [f"X{j}" for j in range(30)], "age": list(range(30))}, "static.parquet"))
    found = faults(parquet(tmp_path, STAYS), static=beside, static_features=["age"])
    assert len(found) == 3 + 10 + 1
    assert found[-1] == "static.parquet: ... and 20 more ids that are in only one of the two files."


STATIC_BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an id twice": (
        {**STATIC, "stay": ["A", "A", "B"]},
        "static.parquet: column 'stay': id 'A' is in row 1 and row 2. Ids must be unique.",
    ),
    "an id that is empty": (
        {**STATIC, "stay": ["A", None, "B"]},
        "static.parquet: column 'stay', row 2: the id is empty. Every row needs an id.",
    ),
    "a feature that is empty": (
        {**STATIC, "age": [1.0, None, 2.0]},
        "static.parquet: column 'age', row 2 (id C): the cell is empty; features must be finite numbers.",
    ),
    "a worth below 0": (
        {**STATIC, "value": [1.0, 2.0, -3.0]},
        "static.parquet: column 'value', row 3 (id B): -3.0; wanted a finite number >= 0.",
    ),
    "no such column": (
        {"stay": STATIC["stay"], "Age": STATIC["age"], "value": STATIC["value"]},
        "static.parquet: has no column 'age'. Did you mean 'Age'?",
    ),
}


@pytest.mark.parametrize("name", STATIC_BAD)
def test_what_is_wrong_with_a_static_file_is_said_too(name: str, tmp_path: Path) -> None:
    columns, sentence = STATIC_BAD[name]
    with pytest.raises(InputError) as caught:
        static(parquet(tmp_path, columns, "static.parquet"), extra=[Amount("value")])
    assert sentence in caught.value.problems


@pytest.mark.parametrize("write", [parquet, csv])
def test_random_damage_is_read_or_refused(tmp_path: Path, write: Any) -> None:
    rng, names = random.Random(1), Columns("stay", "hour", ["bp", "glucose"], "late")
    path, beside = write(tmp_path, STAYS), write(tmp_path, STATIC, f"static.{write.__name__}")
    for i in range(300):
        damaged = (path, beside)[i % 2]
        whole = damaged.read_bytes()
        at, kind = rng.randrange(len(whole)), rng.randrange(3)
        cut = (whole[:at], bytes([rng.randrange(256)]) if kind else b"", whole[at + (kind != 1) :])
        damaged.write_bytes(b"".join(cut))
        problems: tuple[str, ...] = ()
        try:
            found = static(beside, extra=[Amount("value")])
            assert len(read(path, names, static=found, static_features=["age"]).cohort) == len(found.ids)
        except InputError as error:
            problems = error.problems
        assert all(sentence.startswith(("stays.", "static.")) for sentence in problems), problems
        damaged.write_bytes(whole)
