"""Cohort files: what is right is read to the last bit, what is wrong is refused with its place and a remedy."""

from __future__ import annotations

import gc
import hashlib
import io
import math
import os
import random
import re
import time
import weakref
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxflip import InputError, OutputError, ResourceError
from maxflip.io.cohort import csv_layout
from maxflip.io.cohort.cells import Amount, Extra, Label, Limit
from maxflip.io.cohort.tables import Reading, read_cohort, read_table
from maxflip.io.opening import read_from

PEOPLE = {"pid": ["007", "P-2", "P-3"], "age": [61.0, 48.0, 70.5], "bmi": [27.5, 31.0, 22.25]}
CSV = "pid,age,bmi\n007,61,27.5\nP-2,48,31\nP-3,70.5,22.25\n"


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(folder: Path, columns: dict[str, Any], name: str = "people.parquet") -> Path:
    pq.write_table(pa.table(columns), folder / name)
    return folder / name


def read(path: Path, features: Sequence[str] = ("age", "bmi"), extra: Sequence[Extra] = ()) -> Reading:
    return read_cohort(path, id="pid", features=features, extra_columns=extra, source=path.name)


def faults(path: Path, features: Sequence[str] = ("age", "bmi"), extra: Sequence[Extra] = ()) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read(path, features, extra)
    assert all(f.startswith(path.name) for f in caught.value.problems), caught.value.problems
    return caught.value.problems


def csv_faults(folder: Path, content: str | bytes, extra: Sequence[Extra] = ()) -> tuple[str, ...]:
    return faults(written(folder, "people.csv", content), extra=extra)


# What is right


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        "\ufeff" + CSV,
        CSV.replace("\n", "\r\n"),
        CSV.rstrip("\n"),
        CSV.replace("\n", "\n\n"),
        CSV.replace("P-2,48,31", '"P-2","48",31'),
        'bmi,note,age,pid\n27.5,"a, b",61,007\n31,"two\nlines",48,P-2\n22.25,"say ""x""",70.5,P-3\n',
    ],
    ids=["plain", "bom", "crlf", "no last newline", "empty lines", "quotes", "other order"],
)
def test_csv_means_the_same_cohort_however_it_is_written(tmp_path: Path, content: str) -> None:
    cohort = read(written(tmp_path, "people.csv", content)).cohort
    assert cohort.ids.tolist() == ["007", "P-2", "P-3"]
    assert cohort.values.tolist() == [[61.0, 27.5], [48.0, 31.0], [70.5, 22.25]]
    assert cohort.source == "people.csv"


def test_csv_and_parquet_give_the_same_cohort(tmp_path: Path) -> None:
    columns = {**PEOPLE, "steps": [4000, 9007199254740992, -3], "note": ["x", "y", "z"]}
    text = "note,bmi,pid,steps,age\nx,27.5,007,4000,61.0\ny,31.0,P-2,9007199254740992,48.0\nz,22.25,P-3,-3,70.5\n"
    features = ["bmi", "steps", "age"]
    a = read(parquet(tmp_path, columns), features).cohort
    b = read(written(tmp_path, "people.csv", text), features).cohort
    assert a.values.tobytes() == b.values.tobytes()
    assert a.ids.tolist() == b.ids.tolist()
    assert (a.features, a.whole_features, a.ignored) == (b.features, b.whole_features, b.ignored)
    assert a.whole_features == ("steps",)
    assert a.ignored == ("note",)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_come_back_bit_for_bit(tmp_path: Path, numbers: list[float]) -> None:
    text = "pid,x\n" + "".join(f"{j},{number!r}\n" for j, number in enumerate(numbers))
    from_csv = read(written(tmp_path, "people.csv", text), ["x"]).cohort
    from_parquet = read(parquet(tmp_path, {"pid": range(len(numbers)), "x": numbers}), ["x"]).cohort
    assert from_csv.values.tobytes() == from_parquet.values.tobytes() == np.array(numbers).tobytes()
    assert from_csv.ids.tolist() == from_parquet.ids.tolist()


@given(st.text(alphabet="0123456789+-.eE ,_naifx", min_size=1, max_size=8))
def test_a_cell_is_a_number_by_its_spelling_or_a_fault(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, "people.csv", f'pid,x,y\nA,"{text}",1\n')
    plain = text.strip(" _") == text and "_" not in text
    try:
        expected = float(text) if plain else math.nan
    except ValueError:
        expected = math.nan
    if math.isfinite(expected):
        assert read(path, ["x"]).cohort.values.tolist() == [[expected]]
    else:
        assert "row 1 (id A)" in faults(path, ["x"])[0]


@given(st.lists(st.text(min_size=1).filter(lambda t: "\0" not in t), min_size=1, unique=True))
def test_ids_come_back_as_they_were(tmp_path: Path, ids: list[str]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    text = "pid,x\n" + "".join(f"{quoted(i)},1\n" for i in ids)
    assert read(written(tmp_path, "people.csv", text), ["x"]).cohort.ids.tolist() == ids


def test_a_name_in_the_header_may_be_quoted_and_have_commas(tmp_path: Path) -> None:
    path = written(tmp_path, "people.csv", 'pid,"say ""x"", y"\nA,1\n')
    assert read(path, ['say "x", y']).cohort.values.tolist() == [[1.0]]


def test_extreme_numbers_work(tmp_path: Path) -> None:
    path = written(tmp_path, "people.csv", "pid,age,bmi\nA,-0.0,5e-324\nB,1e300,+1.\nC,.5,2.5E+3\n")
    assert read(path).cohort.values.tolist() == [[0.0, 5e-324], [1e300, 1.0], [0.5, 2500.0]]


def test_one_row_and_one_feature_work(tmp_path: Path) -> None:
    assert read(written(tmp_path, "people.csv", "pid,age\nA,1\n"), ["age"]).cohort.values.tolist() == [[1.0]]


def test_files_larger_than_a_block_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"P-{j}", j / 7, "note, with\na line" if j % 3 else "") for j in range(500)]
    text = "pid,x,note\n" + "".join(f'{i},{x!r},"{note}"\n' for i, x, note in rows)
    path = written(tmp_path, "people.csv", text)
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(csv_layout, "BLOCK", size)
        cohort = read(path, ["x"]).cohort
        assert cohort.ids.tolist() == [i for i, _, _ in rows]
        assert cohort.values[:, 0].tolist() == [x for _, x, _ in rows]


@pytest.mark.parametrize(
    ("cells", "kind", "is_whole"),
    [
        ([1.5, -2.0], pa.float32(), False),
        ([1.5, -2.0], pa.float16(), False),
        ([3, -2], pa.int8(), True),
        ([2**53, 2**60], pa.int64(), True),
        ([True, False], pa.bool_(), True),
        ([Decimal("0.10"), Decimal("-2.50")], pa.decimal128(10, 2), False),
        ([Decimal(2**60), Decimal(1)], pa.decimal128(30, 0), True),
    ],
    ids=str,
)
def test_parquet_types_that_hold_numbers(tmp_path: Path, cells: list[Any], kind: Any, is_whole: bool) -> None:
    path = parquet(tmp_path, {"pid": [1, 2], "x": pa.array(cells, kind)})
    cohort = read(path, ["x"]).cohort
    assert cohort.values[:, 0].tolist() == [float(c) for c in cells]
    assert cohort.whole_features == (("x",) if is_whole else ())
    assert cohort.ids.tolist() == ["1", "2"]


def test_parquet_dictionaries_are_decoded(tmp_path: Path) -> None:
    columns = {"pid": pa.array(["A", "B"]).dictionary_encode(), "x": pa.array([1.5, 2.5]).dictionary_encode()}
    cohort = read(parquet(tmp_path, columns), ["x"]).cohort
    assert (cohort.ids.tolist(), cohort.values.tolist()) == (["A", "B"], [[1.5], [2.5]])


def test_parquet_reads_the_column_that_is_meant_among_nested_ones(tmp_path: Path) -> None:
    columns = {"a.x": [1.0, 2.0], "a": [{"x": 5.0}, {"x": 6.0}], "pid": ["A", "B"]}
    assert read(parquet(tmp_path, columns), ["a.x"]).cohort.values.tolist() == [[1.0], [2.0]]


def test_columns_beside_the_features_are_used_and_not_ignored(tmp_path: Path) -> None:
    extra: list[Extra] = [Label("wanted", ("worse", "stable")), Amount("value"), Limit("low"), Limit("bmi")]
    text = "pid,wanted,age,bmi,value,low,note\nA,stable,1,2,0.5,,x\nB,0,3,4,2,7.5,y\n"
    columns = {
        "pid": ["A", "B"],
        "wanted": ["stable", "0"],
        "age": [1, 3],
        "bmi": [2, 4],
        "value": [0.5, 2.0],
        "low": [None, 7.5],
        "note": ["x", "y"],
    }
    for path in (written(tmp_path, "people.csv", text), parquet(tmp_path, columns)):
        cohort, arrays, _ = read(path, extra=extra)
        assert cohort.ignored == ("note",)
        assert arrays[extra[0]].tolist() == [1, 0]
        assert arrays[extra[1]].tolist() == [0.5, 2.0]
        assert np.isnan(arrays[extra[2]][0])
        assert arrays[extra[2]][1] == 7.5
        assert arrays[extra[3]].tolist() == [2.0, 4.0]


def test_an_integer_label_is_an_output_column_unless_it_is_a_name(tmp_path: Path) -> None:
    path = parquet(tmp_path, {**PEOPLE, "wanted": [1, 0, 1]})
    by_column, by_name = Label("wanted", ("a", "b")), Label("wanted", ("1", "0"))
    assert read(path, extra=[by_column]).columns[by_column].tolist() == [1, 0, 1]
    assert read(path, extra=[by_name]).columns[by_name].tolist() == [0, 1, 0]
    unnamed = Label("wanted", None)
    assert read(path, extra=[unnamed]).columns[unnamed].tolist() == [1, 0, 1]
    odd = faults(parquet(tmp_path, {**PEOPLE, "wanted": ["1", "-1", "a"]}), extra=[unnamed])
    assert [("wanted an output column, 0 or more: the classes have no names" in one) for one in odd] == [True, True]
    path = parquet(tmp_path, {**PEOPLE, "wanted": [1, 0, 1]})
    for kind in (pa.float64(), pa.float32(), pa.float16()):
        floats = parquet(tmp_path, {**PEOPLE, "wanted": pa.array(np.array([1, 0, 1], kind.to_pandas_dtype()), kind)})
        assert read(floats, extra=[by_column]).columns[by_column].tolist() == [1, 0, 1]


def test_only_columns_that_are_needed_are_converted(tmp_path: Path) -> None:
    text = "pid,age,bmi,visit\nA,1,2,not a date\n"
    assert read(written(tmp_path, "people.csv", text)).cohort.ignored == ("visit",)
    columns = {**PEOPLE, "visit": pa.array([10**15] * 3, pa.timestamp("ms"))}  # beyond what Python's dates hold
    assert read(parquet(tmp_path, columns)).cohort.ignored == ("visit",)


def test_a_table_says_all_its_names(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "people.csv", "b,a,b\n1,2,3\n"))
    assert (table.names, table.rows) == (("b", "a", "b"), 1)
    assert table.load(["a"])["a"].names() == ["2"]


@pytest.mark.long
def test_a_million_rows_take_seconds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10**6, 20))
    columns: dict[str, Any] = {f"f{i}": values[:, i] for i in range(20)}
    columns["pid"] = [f"P-{j}" for j in range(10**6)]
    pa.csv.write_csv(pa.table(columns), tmp_path / "people.csv")
    began = time.monotonic()
    cohort = read(tmp_path / "people.csv", [f"f{i}" for i in range(20)]).cohort
    assert time.monotonic() - began < 20
    assert cohort.values.tobytes() == values.tobytes()


# What is wrong in a cell


def test_nan_and_infinity_are_named_with_their_place(tmp_path: Path) -> None:
    csv = csv_faults(tmp_path, "pid,age,bmi\nA,nan,1\nB,2,-inf\nC,Infinity,1e999\n")
    assert csv == (
        "people.csv: column 'age', row 1 (id A): NaN; features must be finite numbers.",
        "people.csv: column 'age', row 3 (id C): +inf; features must be finite numbers.",
        "people.csv: column 'bmi', row 2 (id B): -inf; features must be finite numbers.",
        "people.csv: column 'bmi', row 3 (id C): +inf; features must be finite numbers.",
        "people.csv: 4 such cells in 2 columns. Correct them, fill them in, or drop the rows.",
    )
    assert "column 'age', row 2 (id P-2): NaN" in faults(parquet(tmp_path, {**PEOPLE, "age": [1.0, math.nan, 2.0]}))[0]


@pytest.mark.parametrize("text", ["12,5", "N/A", "1_000", " 5", "5 ", "0x10", "1e", "--5", "1.5.2", "٣", "true", "'5"])
def test_text_among_numbers_is_shown_and_never_coerced(tmp_path: Path, text: str) -> None:
    first, last = csv_faults(tmp_path, f'pid,age,bmi\nA,1,2\nB,"{text}",3\n')
    assert first == f"people.csv: column 'age', row 2 (id B): {text!r} is no number; features must be finite numbers."
    assert last.endswith("Correct them, fill them in, or drop the rows.")


def test_empty_cells_are_faults(tmp_path: Path) -> None:
    expected = "column 'age', row 2 (id P-2): the cell is empty; features must be finite numbers."
    assert expected in csv_faults(tmp_path, CSV.replace("48", ""))[0]
    for cells in ([1.0, None, 2.0], [1, None, 2], [True, None, False], ["1", None, "x"]):
        assert any(expected in f for f in faults(parquet(tmp_path, {**PEOPLE, "age": cells})))
    decimals = pa.array([Decimal("1.5"), None, Decimal("2.5")], pa.decimal128(5, 1))
    assert expected in faults(parquet(tmp_path, {**PEOPLE, "age": decimals}))[0]


def test_shown_text_is_escaped_and_cut(tmp_path: Path) -> None:
    fault = csv_faults(tmp_path, CSV.replace("48", '"\x1b[31m\n' + "x" * 1000 + '"'))[0]
    assert "'\\x1b[31m\\nxxx" in fault
    assert "\x1b" not in fault
    assert len(fault) < 150


def test_whole_numbers_that_float64_would_round_are_refused(tmp_path: Path) -> None:
    inexact = "column 'age', row 2 (id P-2): -9007199254740993 is not exactly representable in float64"
    assert inexact in csv_faults(tmp_path, CSV.replace("48", "-9007199254740993"))[0]
    assert inexact in csv_faults(tmp_path, CSV.replace("48", "-" + "0" * 5000 + "9007199254740993"))[0]
    assert inexact in faults(parquet(tmp_path, {**PEOPLE, "age": [1, -9007199254740993, 2]}))[0]
    assert any(inexact in f for f in faults(parquet(tmp_path, {**PEOPLE, "age": [None, -9007199254740993, 2]})))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([0, 1, 2], pa.date32()), "date32"),
        (pa.array([10**15] * 3, pa.timestamp("ms")), "timestamp"),
        (pa.array([[1.0], [2.0], []]), "list"),
        (pa.array([{"a": 1}] * 3), "struct"),
        (pa.array([b"1", b"2", b"3"]), "binary"),
    ],
    ids=str,
)
def test_types_without_numbers_are_refused_by_name(tmp_path: Path, column: Any, kind: str) -> None:
    (fault,) = faults(parquet(tmp_path, {**PEOPLE, "age": column}))
    assert fault.startswith(f"people.parquet: column 'age' has type {kind}")
    assert fault.endswith("; wanted numbers.")
    fault = faults(parquet(tmp_path, {**PEOPLE, "pid": column}))[0]
    assert fault.startswith(f"people.parquet: column 'pid' has type {kind}")
    assert fault.endswith("ids must be texts or integers.")


def test_texts_in_parquet_are_no_numbers(tmp_path: Path) -> None:
    assert "'N/A' is no number" in faults(parquet(tmp_path, {**PEOPLE, "age": ["N/A", "x", "y"]}))[0]


def test_every_fault_of_a_file_is_told(tmp_path: Path) -> None:
    text = "pid,age,bmi,value,wanted\nA,x,1,-1,c\nA,2,,nan,\n,3,4,N/A,b\n"
    told = csv_faults(tmp_path, text, [Amount("value"), Label("wanted", ("a", "b"))])
    for part in (
        "column 'pid': id 'A' is in row 1 and row 2. Ids must be unique.",
        "column 'pid', row 3: the id is empty. Every row needs an id.",
        "column 'age', row 1 (id A): 'x' is no number",
        "column 'bmi', row 2 (id A): the cell is empty",
        "column 'value', row 1 (id A): -1.0; wanted a finite number >= 0.",
        "column 'value', row 2 (id A): nan; wanted",
        "column 'value', row 3 (id ): 'N/A' is no number; wanted",
        "column 'wanted', row 1 (id A): 'c'; wanted one of 'a', 'b', or an output column from 0 to 1.",
        "column 'wanted', row 2 (id A): the cell is empty; wanted",
    ):
        assert any(part in f for f in told), part
    assert len(told) == 10  # and the count of faulty feature cells


def test_a_flood_of_faults_is_counted(tmp_path: Path) -> None:
    text = "pid,age,bmi,value\n" + "".join(f"{j},1,2,x\n" for j in range(1000))
    told = csv_faults(tmp_path, text, [Amount("value")])
    assert len(told) == 11
    assert told[-1] == "people.csv: column 'value': ... and 990 more in this column."
    told = csv_faults(tmp_path, "pid,age,bmi\n" + "1,2\n" * 1000)
    assert len(told) == 11
    assert told[-1] == "people.csv: ... and 990 more lines with a wrong number of fields."
    told = csv_faults(
        tmp_path,
        "pid,age,bmi\n" + "".join(f"{j % 2 or ''},{'x' if j else 5},{j if j < 15 else ''}\n" for j in range(100)),
    )
    parts = {
        part: sum(part in sentence for sentence in told) for part in ("'x'", "'bmi', row", "the id is empty", "id '1'")
    }
    assert parts == {"'x'": 10, "'bmi', row": 10, "the id is empty": 10, "id '1'": 10}
    assert [sentence for sentence in told if "... and" in sentence] == [
        "people.csv: column 'pid': ... and 40 more in this column.",
        "people.csv: column 'pid': ... and 39 more in this column.",
        "people.csv: column 'age': ... and 89 more in this column.",
        "people.csv: column 'bmi': ... and 75 more in this column.",
    ]
    assert told[-1].startswith("people.csv: 184 such cells in 2 columns.")


def test_limits_must_be_numbers(tmp_path: Path) -> None:
    told = csv_faults(tmp_path, "pid,age,bmi,low\nA,1,2,nan\nB,1,2,low\nC,1,2,-inf\nD,1,2,\n", [Limit("low")])
    assert told == (
        "people.csv: column 'low', row 1 (id A): NaN; wanted a number, or nothing for an open side.",
        "people.csv: column 'low', row 2 (id B): 'low' is no number; wanted a number, or nothing for an open side.",
    )
    dates = {**PEOPLE, "low": pa.array([0, 1, 2], pa.date32())}
    (fault,) = faults(parquet(tmp_path, dates), extra=[Limit("low")])
    assert "column 'low' has type date32[day]; wanted a number" in fault


def test_a_label_that_is_no_output_column_is_named(tmp_path: Path) -> None:
    told = faults(parquet(tmp_path, {**PEOPLE, "wanted": [0.5, math.nan, 2.0]}), extra=[Label("wanted", ("nan", "b"))])
    assert [fault.partition(": column ")[2].partition(";")[0] for fault in told] == [
        "'wanted', row 1 (id 007): 0.5",
        "'wanted', row 2 (id P-2): nan",
        "'wanted', row 3 (id P-3): 2.0",
    ]


# What is wrong with columns, ids and rows


def test_missing_columns_get_a_close_match(tmp_path: Path) -> None:
    told = csv_faults(tmp_path, "pid,agee,BMI,note,vallue\nA,1,2,x,1\n", [Amount("value")])
    assert told == (
        "people.csv: has no column 'age'. Did you mean 'agee'?",
        "people.csv: has no column 'bmi'. Did you mean 'BMI'?",
        "people.csv: has no column 'value'. Did you mean 'vallue'?",
        "people.csv: its other columns are 'agee', 'BMI', 'note', 'vallue'.",
    )
    assert faults(parquet(tmp_path, {"pid": ["A"], "agee": [1]}), ["age"])[0].endswith("Did you mean 'agee'?")


@pytest.mark.parametrize("other", ["age", "AGE", " age ", "a\u0301ge"])
def test_columns_of_the_same_name_are_refused_with_both_positions(tmp_path: Path, other: str) -> None:
    name = "\u00e1ge" if "\u0301" in other else "age"
    names = ["pid", name, "x", other]
    table = pa.Table.from_arrays([pa.array(["A"]), *[pa.array([1.0])] * 3], names=names)
    pq.write_table(table, tmp_path / "people.parquet")
    text = written(tmp_path, "people.csv", ",".join(names) + "\nA,1,2,3\n")
    for path in (tmp_path / "people.parquet", text):
        (fault,) = faults(path, [name])
        assert f"{name!r} (column 2) and {other!r} (column 4)" in fault
        assert fault.endswith("Rename one.")
        assert read(path, ["x"]).cohort.values.tolist() == [[2.0 if path is text else 1.0]]
        assert "(column 2) and" in faults(path, ["x"], [Amount(name)])[0]


def test_ids_stay_texts_and_must_be_unique_and_there(tmp_path: Path) -> None:
    assert "id '007' is in row 1 and row 3" in csv_faults(tmp_path, CSV.replace("P-3", "007"))[0]
    assert "column 'pid', row 2: the id is empty" in csv_faults(tmp_path, CSV.replace("P-2", ""))[0]
    for ids in (["A", None, "B"], [1, None, 2]):
        assert "column 'pid', row 2: the id is empty" in faults(parquet(tmp_path, {**PEOPLE, "pid": ids}))[0]
    (fault,) = faults(parquet(tmp_path, {**PEOPLE, "pid": [1.0, 2.0, 3.0]}))
    assert fault == "people.parquet: column 'pid' has type double; ids must be texts or integers."


def test_a_cohort_needs_rows_and_features(tmp_path: Path) -> None:
    expected = "cohort has 0 rows. It needs at least one."
    assert csv_faults(tmp_path, "pid,age,bmi\n") == (f"people.csv: {expected}",)
    assert csv_faults(tmp_path, "pid,age,bmi\n\n\n", [Limit("age"), Amount("bmi")]) == (f"people.csv: {expected}",)
    empty: dict[str, Any] = {"pid": pa.array([], pa.string()), "age": pa.array([], pa.float64())}
    assert faults(parquet(tmp_path, empty), ["age"]) == (f"people.parquet: {expected}",)
    assert "Name at least one in `features`" in faults(parquet(tmp_path, PEOPLE), [])[0]


# What is wrong with the file


def test_a_missing_file_gets_a_close_match(tmp_path: Path) -> None:
    written(tmp_path, "patients.csv", CSV)
    (fault,) = faults(tmp_path / "patient.csv")
    assert fault == f"patient.csv: no such file in {tmp_path}. Did you mean 'patients.csv'?"
    written(tmp_path, "patients.parquet", "")
    written(tmp_path, "planned.csv", CSV)
    (tmp_path / "patience").mkdir()
    assert "Did you mean 'patients.csv'?" in faults(tmp_path / "patient.csv")[0]
    assert "Did you mean 'patients.parquet'?" in faults(tmp_path / "patient.parquet")[0]
    assert faults(tmp_path / "plan.csv") == (f"plan.csv: no such file in {tmp_path}. Did you mean 'planned.csv'?",)
    assert faults(tmp_path / "lab.csv") == (f"lab.csv: no such file in {tmp_path}.",)  # .csv alone makes none alike
    assert f"there is no folder {tmp_path / 'nowhere'}" in faults(tmp_path / "nowhere" / "p.csv")[0]
    assert "p.csv: no such file" in faults(tmp_path / "patients.csv" / "p.csv")[0]


@pytest.mark.parametrize("name", ["~people.csv", "$HOME.csv"])
def test_paths_are_not_expanded(tmp_path: Path, name: str) -> None:
    assert "`~` and `$` are not expanded in paths; write them out." in faults(tmp_path / name)[0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/p.csv", "s3://bucket/p.parquet", "file:///etc/passwd"])
def test_urls_are_refused(url: str) -> None:
    for path in (url, Path(url)):
        with pytest.raises(InputError, match=r"is a URL, and nothing is fetched\. Download the file") as caught:
            read_cohort(path, id="pid", features=["age"])
        assert str(path) in str(caught.value)


def test_folders_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "people.csv").mkdir()
    assert faults(tmp_path / "people.csv") == ("people.csv: is a folder; wanted a file.",)
    os.mkfifo(tmp_path / "pipe.csv")
    began = time.monotonic()
    assert faults(tmp_path / "pipe.csv") == ("pipe.csv: is a pipe, socket or device; wanted a regular file.",)
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    assert "wanted a regular file" in faults(tmp_path / "zero.csv")[0]
    assert time.monotonic() - began < 5
    with pytest.raises(InputError, match="is not a path"):
        read_cohort("people\0.csv", id="pid", features=["age"])


def test_a_file_that_may_not_be_read_is_an_output_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = written(tmp_path, "people.csv", CSV)
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(OutputError, match=r"people\.csv: cannot be read: Permission denied\. Check its permissions"):
        read(path)


def test_the_extension_and_the_content_must_agree(tmp_path: Path) -> None:
    data = parquet(tmp_path, PEOPLE).read_bytes()
    assert "this is a Parquet file; name it .parquet" in csv_faults(tmp_path, data)[0]
    assert "If it is CSV, name it .csv." in faults(written(tmp_path, "people.parquet", CSV))[0]
    assert "perhaps an Excel workbook; save it as CSV" in csv_faults(tmp_path, b"PK\x03\x04\x14\0")[0]
    assert "compressed with gzip" in csv_faults(tmp_path, b"\x1f\x8b\x08\0")[0]
    assert "a .parquet or a .csv file" in faults(written(tmp_path, "people.xlsx", b"PK\x03\x04"))[0]
    assert read(written(tmp_path, "PEOPLE.CSV", CSV)).cohort.ids[0] == "007"


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    assert faults(written(tmp_path, name, "")) == (f"{name}: is empty. A cohort needs a header and at least one row.",)


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    data = parquet(tmp_path, PEOPLE).read_bytes()
    body = bytearray(data)
    body[4:60] = bytes(56)
    for damaged in (data[:4], data[:100], data[:-1], data[:-8], data + b"x", bytes(body), b"PAR1" + bytes(100)):
        began = time.monotonic()
        (fault,) = faults(written(tmp_path, "people.parquet", damaged))
        assert "is damaged or no Parquet file: " in fault
        assert fault.endswith("Write or copy it again.")
        assert "\n" not in fault
        assert time.monotonic() - began < 5


def test_parquet_texts_must_be_unicode(tmp_path: Path) -> None:
    bad = pa.array([b"A", b"\xff\xfe", b"C"]).view(pa.string())
    assert "Invalid UTF8" in faults(parquet(tmp_path, {**PEOPLE, "pid": bad}))[0]


# What is wrong with the layout of a CSV


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (CSV.replace(",", ";"), 1, "fields are separated by ';'. Save the file with commas."),
        (CSV.replace(",", "\t"), 1, "fields are separated by '\\t'. Save the file with commas."),
        (CSV.encode("utf-16"), 1, "this is UTF-16 text; save it as UTF-8."),
        (CSV.encode("utf-16-le"), 1, "holds a NUL byte. Save the file as UTF-8 text."),
        (CSV.encode("utf-16-be"), 1, "holds a NUL byte. Save the file as UTF-8 text."),
        (CSV.replace("P-2", "P\0"), 3, "holds a NUL byte. Save the file as UTF-8 text."),
        (CSV.replace("P-3", "é").encode("latin-1"), 4, "byte 0xe9 is not UTF-8. Save the file as UTF-8."),
        (CSV.replace("P-2,48", "P-2"), 3, "(row 2): 2 fields; the header has 3. Put a field that holds a comma"),
        (CSV.replace("31", "31,2"), 3, "(row 2): 4 fields; the header has 3. Put a field that holds a comma"),
        (CSV.replace("P-2", '"P\n2"').replace("22.25", "22,25"), 5, "(row 3): 4 fields; the header has 3."),
        (CSV.replace("P-2", 'P"2"'), 3, "there is a quote inside a field. Put the whole field in quotes"),
        (CSV.replace("P-2", '"P"2'), 3, "there is a quote inside a field. Put the whole field in quotes"),
        (CSV.replace("P-2", 'P"2'), 3, "there is a quote inside a field. Put the whole field in quotes"),
        (CSV.replace("P-2", '"P-2'), 3, "a quote is opened in this row and never closed. Close it"),
        (CSV.replace("31\n", "31\r"), 3, "a carriage return without a newline. Save the file with newlines."),
        (CSV.replace("\n", "\r"), 1, "a carriage return without a newline. Save the file with newlines."),
        (CSV.replace("P-2", "x" * 1_000_001), 3, "a field is longer than 1000000 bytes."),
        (CSV.replace("P-2", '"' + "x\n" * 5_000_000), 3, "a field is longer than 1000000 bytes. Is a quote left open?"),
        ("\n" + CSV, 1, "is empty; wanted column names."),
        (b"\xef\xbb\xbf\r\n", 1, "is empty; wanted column names."),
    ],
)
def test_layout_faults_are_told_with_their_line(tmp_path: Path, content: str | bytes, line: int, what: str) -> None:
    began = time.monotonic()
    fault = csv_faults(tmp_path, content)[0]
    assert fault.startswith((f"people.csv: line {line}: {what}", f"people.csv: line {line} {what}"))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "content",
    [
        CSV.replace("P-2", "P\0"),
        CSV.replace("P-2", 'P"2"'),
        CSV.replace("P-2", '"P"2'),
        CSV.replace("P-2", 'P"2'),
        CSV.replace("31\n", "31\r"),
        CSV.replace("\n", "\r"),
        CSV.replace("P-2", "x" * 1_000_001),
        "\n" + CSV,
        "pid,age,bmi,age\n007,61,27.5,1\nP-2,48,31,2\nP-3,70.5,22.25,3\n",
        CSV.replace("48", " 48"),
        CSV.replace("48", '"48 "'),
        CSV.replace("48", "9007199254740993"),
    ],
    ids=[
        *("nul", "quotes inside", "quotes before", "a quote inside", "a lone return", "returns", "a long field"),
        *("an empty line first", "a name twice", "a blank before", "a blank behind", "a rounded number"),
    ],
)
def test_what_pyarrow_would_take_if_it_were_asked_for_typed_columns(tmp_path: Path, content: str) -> None:
    """Why layout and cells are checked before and after it, on texts: it reads these without a word."""
    numbers = dict.fromkeys(("age", "bmi"), pa.float64())
    typed = pa.csv.ConvertOptions(column_types={"pid": pa.string(), **numbers}, include_columns=["pid", *numbers])
    typed.null_values, typed.strings_can_be_null = [], False
    read_alone = pa.csv.read_csv(pa.BufferReader(content.encode()), convert_options=typed)
    assert len(read_alone) == 3
    assert read_alone["age"].null_count == 0
    assert csv_faults(tmp_path, content)


def test_pyarrow_does_not_say_where_a_cell_is_wrong() -> None:
    typed = pa.csv.ConvertOptions(column_types={"age": pa.float64()}, null_values=[])
    with pytest.raises(pa.ArrowInvalid) as caught:
        pa.csv.read_csv(pa.BufferReader(CSV.replace("48", "x").encode()), convert_options=typed)
    assert not re.search("row|line|P-2", str(caught.value).replace("column", ""))


def test_a_long_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_layout, "LONGEST_LINE", 1000)
    monkeypatch.setattr(csv_layout, "BLOCK", 500)
    assert "line 2: is longer than 1000 bytes" in csv_faults(tmp_path, "pid,age,bmi\n" + "," * 5000)[0]


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_table_is_of_one_state_of_its_file(tmp_path: Path, name: str) -> None:
    path = parquet(tmp_path, PEOPLE, name) if name.endswith("parquet") else written(tmp_path, name, CSV)
    table = read_table(path)
    assert table.origin == (path, hashlib.sha256(path.read_bytes()).hexdigest())
    path.write_bytes(b"another")
    assert read_cohort(table, id="pid", features=["age"]).cohort.values.tolist() == [[61.0], [48.0], [70.5]]
    with pytest.raises(ValueError, match="was loaded already"):
        table.load(["bmi"])


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_the_bytes_of_a_file_do_not_stay_in_memory(tmp_path: Path, name: str) -> None:
    path = parquet(tmp_path, PEOPLE, name) if name.endswith("parquet") else written(tmp_path, name, CSV)
    table = read_table(path)
    assert table.read_columns is not None
    bytes_held = weakref.ref(table.read_columns)
    cells = table.load(["age"])
    gc.collect()
    assert bytes_held() is None
    assert cells["age"].gaps().tolist() == [False] * 3


def test_a_csv_that_is_parsed_otherwise_than_it_was_checked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan(layout: Any, file: Any) -> None:
        whole(layout, file)
        layout.rows += 1

    whole = csv_layout.Layout.scan
    monkeypatch.setattr(csv_layout.Layout, "scan", scan)
    expected = "people.csv: cannot be read as CSV: 3 rows were parsed, 4 were counted."
    assert csv_faults(tmp_path, CSV) == (expected,)


def test_a_file_beyond_the_memory_is_told() -> None:
    class Endless(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise MemoryError

    with pytest.raises(ResourceError, match=r"people\.csv: is too large for the memory of this machine"):
        read_from(Endless(), "people.csv")


# Whatever comes


def mutated(chance: random.Random, data: bytes) -> bytes:
    """A few bytes changed, cut, doubled or thrown in."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        place = chance.randrange(len(changed))
        match chance.randrange(5):
            case 0 | 1:
                changed[place] = chance.randrange(256)
            case 2:
                del changed[place : place + chance.randrange(30)]
            case 3:
                changed[place:place] = changed[: chance.randrange(50)]
            case _:
                changed[place:place] = chance.randbytes(5)
        if not changed:
            break
        if chance.random() < 0.1:
            changed = changed[: place + 1]
    return bytes(changed) or b"x"


@given(st.integers(0, 2**32))
def test_any_bytes_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(f'"P-{j}",{j * 1.1!r},{j},b,,"a ""b"", \nc"\r\n' for j in range(20))
    columns = {
        "pid": [f"P-{j}" for j in range(20)],
        "age": [j * 1.1 for j in range(20)],
        "bmi": pa.array(range(20)).cast(pa.decimal128(25, 2)),
        "wanted": pa.array(["a", "b"] * 10).dictionary_encode(),
        "low": [None, 1.5] * 10,
    }
    originals = {
        "people.csv": ("\ufeffpid,age,bmi,wanted,low,note\r\n" + text).encode(),
        "people.parquet": parquet(tmp_path, columns).read_bytes(),
    }
    for name, data in originals.items():
        assert is_read(written(tmp_path, name, data))
        for _ in range(3):
            is_read(written(tmp_path, name, mutated(chance, data)))


def is_read(path: Path) -> bool:
    """Whether the file is a cohort; any error but an InputError comes through."""
    try:
        values = read(path, extra=[Label("wanted", ("a", "b")), Limit("low")]).cohort.values
    except InputError:
        return False
    return bool(np.isfinite(values).all())
