"""Stays in intensive care: from the official text files and from long tables, dirt and all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maxflip._util.events import Advanced, Event, Finished, Started
from maxflip.datasets import Sequences, physionet2012
from maxflip.datasets.physionet import labels_of, sets_in
from maxflip.datasets.physionet_variables import DESCRIPTORS, KNOWN, LABS, LEFT_OUT, VARIABLES
from maxflip.errors import InputError, OutputError
from tests.real_data import real_data

OUTCOMES = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n"
FIRST = ["00:00,Age,54", "00:00,Gender,0", "00:00,Height,-1", "00:00,ICUType,4", "00:00,Weight,80.5"]
STAYS = {
    101: [*FIRST, "00:07,HR,73", "00:07,Temp,36.6", "00:37,HR,77", "01:00,HR,80", "48:00,HR,90"],
    102: [*FIRST[:4], "00:00,Weight,-1"],
    103: [*FIRST, "02:30,K,4.1"],
}
ENDS = {101: (-1, 0), 102: (30, 0), 103: (31, 1)}


def write_texts(folder: Path, stays: dict[int, list[str]] = STAYS, ends: dict[int, tuple[int, int]] = ENDS) -> Path:
    texts = folder / "set-a"
    texts.mkdir(exist_ok=True)
    for number, lines in stays.items():
        rows = ["Time,Parameter,Value", f"00:00,RecordID,{number}", *lines]
        (texts / f"{number}.txt").write_text("\n".join(rows) + "\n")
    rows = [f"{number},6,1,5,{survival},{died}\n" for number, (survival, died) in ends.items()]
    (folder / "Outcomes-a.txt").write_text(OUTCOMES + "".join(rows))
    return folder


def write_parquet(folder: Path, **replaced: pa.Array) -> Path:
    """The same rows as one long table."""
    write_texts(folder)
    rows = []
    for number, lines in STAYS.items():
        for line in [f"00:00,RecordID,{number}", *lines]:
            time, parameter, value = line.split(",")
            rows.append((number, 60 * int(time[:2]) + int(time[3:]), parameter, float(value)))
        (folder / "set-a" / f"{number}.txt").unlink()
    (folder / "set-a").rmdir()
    columns = zip(*rows, strict=True)
    types = (pa.int32(), pa.int16(), pa.string(), pa.float32())
    names = ("RecordID", "minute", "parameter", "value")
    table = {name: pa.array(c, t) for name, c, t in zip(names, columns, types, strict=True)} | replaced
    pq.write_table(pa.table(table), folder / "set-a-long.parquet")
    return folder


def seen(stays: Sequences, j: int, variable: str) -> list[float]:
    return [float(value) for value in stays.values[j][:, stays.features.index(variable)]]


def only_measurement(stays: Sequences) -> list[float]:
    flat = np.concatenate(stays.values)
    return [float(value) for value in flat[~np.isnan(flat)]]


def same(left: Sequences, right: Sequences) -> None:
    assert left.ids == right.ids
    assert dict(left.dropped) == dict(right.dropped)
    np.testing.assert_array_equal(left.labels, right.labels)
    np.testing.assert_array_equal(left.static, right.static)
    for mine, theirs in zip((*left.values, *left.times), (*right.values, *right.times), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_33_variables() -> None:
    assert len(VARIABLES) == 33
    assert len(LEFT_OUT) == 4
    assert set(LABS) < set(VARIABLES)
    assert len(KNOWN) == 42  # of the challenge: RecordID, 5 descriptors, 37 over time, Weight being both
    assert len(LABS) == 9


def test_hours_are_averaged(tmp_path: Path) -> None:
    stays = physionet2012(write_texts(tmp_path))
    assert stays.ids == ("101", "102", "103")
    assert stays.times[0].tolist() == [0.0, 1.0, 47.0]  # 48:00 is the end of the last hour
    assert seen(stays, 0, "HR") == [75.0, 80.0, 90.0]
    assert seen(stays, 0, "Temp")[0] == 36.6
    assert np.isnan(seen(stays, 0, "Temp")[1:]).all()
    assert stays.times[2].tolist() == [2.0]


def test_without_a_grid_every_minute_is_a_step(tmp_path: Path) -> None:
    stays = physionet2012(write_texts(tmp_path), grid=None)
    assert stays.times[0].tolist() == [7 / 60, 37 / 60, 1.0, 48.0]
    assert seen(stays, 0, "HR") == [73.0, 77.0, 80.0, 90.0]


def test_a_stay_without_measurements_is_one_empty_step(tmp_path: Path) -> None:
    stays = physionet2012(write_texts(tmp_path))
    assert stays.values[1].shape == (1, 33)
    assert np.isnan(stays.values[1]).all()
    assert stays.times[1].tolist() == [0.0]


def test_stays_become_a_cohort(tmp_path: Path) -> None:
    cohort = physionet2012(write_texts(tmp_path)).cohort()
    assert len(cohort) == 3
    assert cohort.ragged is not None
    assert cohort.ragged.static.shape == (3, 5)


def test_descriptors(tmp_path: Path) -> None:
    stays = physionet2012(write_texts(tmp_path))
    assert tuple(DESCRIPTORS) == ("Age", "Gender", "Height", "ICUType", "Weight")
    assert stays.static_features == (*tuple(DESCRIPTORS)[:4], "Weight at admission")
    assert stays.static.tolist() == [[54, 0, -1, 4, 80.5], [54, 0, -1, 4, -1], [54, 0, -1, 4, 80.5]]
    assert np.isnan(seen(stays, 0, "Weight")).all()  # at admission it is a descriptor and no measurement


def test_a_second_weight_at_admission_and_later_ones_are_measurements(tmp_path: Path) -> None:
    lines = [*FIRST, "00:00,Weight,82", "03:00,Weight,84"]
    stays = physionet2012(write_texts(tmp_path, {101: lines}, {101: (-1, 0)}))
    assert stays.static[0, 4] == 80.5
    assert seen(stays, 0, "Weight") == [82.0, 84.0]


@pytest.mark.parametrize("height", ["431.8", "1.8", "-1"])
def test_an_impossible_descriptor_is_unknown(tmp_path: Path, height: str) -> None:
    stays = physionet2012(write_texts(tmp_path, {101: [f"00:00,Height,{height}"]}, {101: (-1, 0)}))
    assert stays.static[0].tolist() == [-1] * 5


@pytest.mark.parametrize(
    ("variable", "impossible", "possible"),
    [
        ("Temp", "-17.8", "36"),
        ("pH", "735", "7.35"),
        ("HR", "0", "300"),
        ("SysABP", "0", "20"),
        ("FiO2", "0.2", "0.21"),
        ("GCS", "2", "3"),
        ("Weight", "0", "80"),
        ("BUN", "0", "1"),
    ],
)
def test_what_no_patient_can_have_is_dropped_and_counted(
    tmp_path: Path, variable: str, impossible: str, possible: str
) -> None:
    lines = [*FIRST, f"01:00,{variable},{impossible}", f"01:10,{variable},{possible}"]
    stays = physionet2012(write_texts(tmp_path, {101: lines}, {101: (-1, 0)}), grid=None)
    assert only_measurement(stays) == [float(possible)]
    assert dict(stays.dropped) == {f"impossible values of {variable}": 1}


def test_no_urine_is_a_measurement(tmp_path: Path) -> None:
    stays = physionet2012(write_texts(tmp_path, {101: ["01:00,Urine,0"]}, {101: (-1, 0)}))
    assert only_measurement(stays) == [0.0]


def test_what_is_not_used_is_counted(tmp_path: Path) -> None:
    lines = ["01:00,MechVent,1", "01:00,NIMAP,70", "02:00,NIMAP,71", "03:00,,5"]
    write_texts(tmp_path, {101: lines}, {101: (-1, 0)})
    (tmp_path / "set-a" / "999.txt").write_text("Time,Parameter,Value\n00:00,RecordID,999\n")
    assert dict(physionet2012(tmp_path).dropped) == {
        "values of MechVent, which is not used": 1,
        "values of NIMAP, which is not used": 2,
        "rows without a parameter": 1,
        "stays without an outcome": 1,
    }


def test_labels(tmp_path: Path) -> None:
    write_texts(tmp_path)
    assert physionet2012(tmp_path).labels.tolist() == [0, 0, 1]
    assert physionet2012(tmp_path, label="30_day").labels.tolist() == [0, 1, 0]  # Survival 30 is within, 31 is not
    assert labels_of(tmp_path, "a", "30_day").tolist() == [0, 1, 0]


def test_labels_go_with_their_stays_in_any_order(tmp_path: Path) -> None:
    stays = physionet2012(write_texts(tmp_path, ends={number: ENDS[number] for number in (103, 101, 102)}))
    assert stays.ids == ("101", "102", "103")
    assert stays.labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize("grid", ["hour", None])
def test_both_layouts_give_the_same(tmp_path: Path, grid: Any) -> None:
    for name in ("texts", "table"):
        (tmp_path / name).mkdir()
    texts, table = write_texts(tmp_path / "texts"), write_parquet(tmp_path / "table")
    same(physionet2012(texts, grid=grid), physionet2012(table, grid=grid))


def test_texts_from_windows(tmp_path: Path) -> None:
    write_texts(tmp_path)
    wanted = physionet2012(tmp_path)
    for path in (tmp_path / "set-a").iterdir():
        path.write_bytes(path.read_bytes().rstrip(b"\n").replace(b"\n", b"\r\n"))
    same(physionet2012(tmp_path), wanted)


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[Event] = []
    physionet2012(write_texts(tmp_path), watch=told.append)
    stage = "reading stays"
    assert told == [Started(stage, 3), *[Advanced(stage, 1)] * 3, Finished(stage)]


def fault(root: Path) -> str:
    with pytest.raises(InputError) as caught:
        physionet2012(root)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("00:07,HR", "has 2 fields: '00:07,HR'; wanted Time,Parameter,Value."),
        ("7:00,HR,73", "time is '7:00'; wanted HH:MM from 00:00 to 48:00."),
        ("48:01,HR,73", "time is '48:01'; wanted HH:MM from 00:00 to 48:00."),
        ("00:07,Hr,73", "the challenge has no parameter 'Hr'. Did you mean 'HR'?"),
        ("00:07,HR,fast", "value is 'fast'; wanted a number."),
        ("00:07,HR,", "value is ''; wanted a number."),
        ("", "has 1 field: ''; wanted Time,Parameter,Value."),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, line: str, what: str) -> None:
    write_texts(tmp_path, {**STAYS, 103: [*FIRST, line, "02:30,K,4.1"]})
    assert fault(tmp_path) == f"{tmp_path / 'set-a' / '103.txt'}: line 8: {what}"


def test_many_faulty_lines_are_counted(tmp_path: Path) -> None:
    write_texts(tmp_path, {**STAYS, 101: ["x"] * 15})
    assert fault(tmp_path).splitlines()[-1] == f"{tmp_path / 'set-a'}: ... and 5 more such lines."


def test_a_partial_folder(tmp_path: Path) -> None:
    write_texts(tmp_path, ends={**ENDS, **dict.fromkeys(range(200, 212), (-1, 0))})
    message = fault(tmp_path)
    assert message.startswith(
        f"{tmp_path / 'set-a'}: 12 of the 15 stays in Outcomes-a.txt are not there: 200.txt, 201.txt"
    )
    assert "209.txt and 2 more." in message


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "line 1 is ''; wanted 'Time,Parameter,Value'"),
        ("Time,Value\n00:00,1\n", "line 1 is 'Time,Value'; wanted"),
        ("Time,Parameter,Value\n", "has no RecordID: it is cut off."),
        ("Time,Parameter,Value\n00:00,RecordID,101\n", "says that it is stay 101."),
    ],
)
def test_a_file_that_is_not_that_of_its_stay(tmp_path: Path, content: str, what: str) -> None:
    path = write_texts(tmp_path) / "set-a" / "102.txt"
    path.write_text(content)
    assert fault(tmp_path).startswith(f"{path}: {what}")


def test_missing_parts(tmp_path: Path) -> None:
    assert fault(tmp_path) == f"{tmp_path}: has no Outcomes-a.txt, which lists the stays of set a."
    (tmp_path / "Outcomes-a.txt").write_text(OUTCOMES + "101,1,1,1,-1,0\n")
    assert fault(tmp_path).startswith(f"{tmp_path}: has no folder set-a. Unpack")
    (tmp_path / "set-a").write_text("no folder")
    assert fault(tmp_path) == f"{tmp_path / 'set-a'}: is a file; wanted a folder with one text file per stay."


def test_outcomes_are_checked(tmp_path: Path) -> None:
    path = write_texts(tmp_path) / "Outcomes-a.txt"
    path.write_text(OUTCOMES + "101,1,1,1,-1,0\n101,1,1,1,-1,0\n")
    assert fault(tmp_path) == f"{path}: stay 101 occurs more than once."
    path.write_text(OUTCOMES + "101,1,1,1,-1,2\n")
    assert fault(tmp_path) == f"{path}: row 1: In-hospital_death is 2; wanted 0 or 1."
    path.write_text("RecordID,Survival\n101,1\n")
    assert fault(tmp_path) == f"{path}: has no column 'In-hospital_death'."


def test_choices(tmp_path: Path) -> None:
    wrong: dict[str, Any] = {"set": "d", "label": "30-day", "grid": "day"}
    with pytest.raises(InputError) as caught:
        physionet2012(tmp_path, **wrong)
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["set", "label", "grid"]
    assert "Did you mean '30_day'?" in caught.value.problems[1]


@pytest.mark.parametrize(
    ("replaced", "what"),
    [
        ({"minute": pa.array([9000] * 24)}, "row 1: minute is 9000; wanted 0 to 2880."),
        ({"minute": pa.array([0.5] * 24)}, "column 'minute' has type double; wanted whole numbers."),
        ({"parameter": pa.array(["Hr"] * 24)}, "the challenge has no parameter 'Hr'. Did you mean 'HR'?"),
        ({"value": pa.array([None] * 24, pa.float32())}, "column 'value' has empty cells."),
        ({"RecordID": pa.array([101] * 24)}, "2 of the 3 stays in Outcomes-a.txt are not there: 102, 103."),
    ],
)
def test_faults_of_a_long_table(tmp_path: Path, replaced: dict[str, pa.Array], what: str) -> None:
    root = write_parquet(tmp_path, **replaced)
    assert fault(root).startswith(f"{root / 'set-a-long.parquet'}: {what}")


def test_a_long_table_without_its_columns(tmp_path: Path) -> None:
    path = write_parquet(tmp_path) / "set-a-long.parquet"
    pq.write_table(pq.read_table(path).rename_columns(["RecordID", "minutes", "parameter", "value"]), path)
    assert fault(tmp_path) == f"{path}: has no column 'minute'. Did you mean 'minutes'?"


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_texts(tmp_path)
    opened = Path.open

    def denied(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == "102.txt":
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(OutputError, match=r"102\.txt: cannot be read: Permission denied"):
        physionet2012(tmp_path)


def test_sets_in_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no set of the challenge"):
        sets_in(tmp_path)
    write_texts(tmp_path)
    (tmp_path / "Outcomes-b.txt").write_text(OUTCOMES)
    assert sets_in(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    ("chosen", "in_hospital", "within_30_days", "silent", "measurements"),
    [("a", 554, 603, 3, 1_403_744), ("b", 568, 610, 7, 1_406_314)],
)
def test_the_real_sets(chosen: str, in_hospital: int, within_30_days: int, silent: int, measurements: int) -> None:
    root = real_data("physionet2012")
    minutes = physionet2012(root, chosen, grid=None)
    flat = np.concatenate(minutes.values)
    assert len(minutes) == 4000
    assert minutes.labels.sum() == in_hospital
    assert labels_of(root, chosen, "30_day").sum() == within_30_days
    assert sum(bool(np.isnan(steps).all()) for steps in minutes.values) == silent
    assert int((~np.isnan(flat)).sum()) == measurements
    hours = physionet2012(root, chosen)
    assert max(map(len, hours.values)) == 48
    cells = sum(int((~np.isnan(steps)).sum()) for steps in hours.values)
    assert 1 - cells / (4000 * 48 * 33) == pytest.approx(0.816, abs=1e-3)  # of the whole grid of hours
    assert np.isfinite(hours.static).all()


def test_real_stays_as_text_files(tmp_path: Path) -> None:
    """Some of the real rows, written as the challenge writes them, are read as from the long table."""
    root = real_data("physionet2012")
    rows = pq.read_table(root / "set-a-long.parquet").to_pandas()
    wanted = [132539, 132540, 140501, 140936, 141264]  # the last three have no measurements
    outcomes = (root / "Outcomes-a.csv").read_text().splitlines()
    chosen = [outcomes[0], *(line for line in outcomes if line.split(",")[0] in map(str, wanted))]
    (tmp_path / "Outcomes-a.txt").write_text("\n".join(chosen) + "\n")
    (tmp_path / "set-a").mkdir()
    for number in wanted:
        stay = rows[rows.RecordID == number]
        lines = [
            f"{minute // 60:02d}:{minute % 60:02d},{parameter},{value!s}"
            for minute, parameter, value in zip(stay.minute, stay.parameter, stay.value.to_numpy(), strict=True)
        ]
        (tmp_path / "set-a" / f"{number}.txt").write_text("\n".join(["Time,Parameter,Value", *lines]) + "\n")
    texts, table = physionet2012(tmp_path), physionet2012(root)
    part = table.take([table.ids.index(number) for number in texts.ids])
    for mine, theirs in zip((*texts.values, *texts.times), (*part.values, *part.times), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(texts.static, part.static)
    np.testing.assert_array_equal(texts.labels, part.labels)
    assert [bool(np.isnan(steps).all()) for steps in texts.values] == [False, False, True, True, True]
