"""MIMIC-III on tables written in its layout (version 1.4): who is used, which values, which label."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from maxflip._util.events import Event, Finished, Started
from maxflip.datasets import mimic3
from maxflip.datasets.mimic import LABS
from maxflip.errors import InputError

ADMITTED = datetime(2150, 6, 1, 20, 30)
PATIENTS = '"ROW_ID","SUBJECT_ID","GENDER","DOB","DOD","DOD_HOSP","DOD_SSN","EXPIRE_FLAG"'
ADMISSIONS = (
    '"ROW_ID","SUBJECT_ID","HADM_ID","ADMITTIME","DISCHTIME","DEATHTIME","ADMISSION_TYPE","ADMISSION_LOCATION",'
    '"DISCHARGE_LOCATION","INSURANCE","LANGUAGE","RELIGION","MARITAL_STATUS","ETHNICITY","EDREGTIME","EDOUTTIME",'
    '"DIAGNOSIS","HOSPITAL_EXPIRE_FLAG","HAS_CHARTEVENTS_DATA"'
)
LABEVENTS = '"ROW_ID","SUBJECT_ID","HADM_ID","ITEMID","CHARTTIME","VALUE","VALUENUM","VALUEUOM","FLAG"'


def at(**later: float) -> str:
    return (ADMITTED + timedelta(**later)).strftime("%Y-%m-%d %H:%M:%S")


class Tables:
    """Rows as they come, one admission per patient unless told otherwise."""

    def __init__(self) -> None:
        self.patients: list[str] = []
        self.admissions: list[str] = []
        self.labs: list[str] = []

    def admit(
        self,
        hadm: int,
        *,
        born: str = "2100-01-01 00:00:00",
        gender: str = "F",
        dod: str = "",
        death: str = "",
        diagnosis: str = "PNEUMONIA, OTHER",
        charted: int = 1,
    ) -> None:
        self.patients.append(f'{hadm},{hadm},"{gender}",{born},{dod},,,{int(bool(dod))}')
        self.admissions.append(
            f'{hadm},{hadm},{hadm},{at()},{at(days=9)},{death},"EMERGENCY","X","HOME","Private",,"X",,"X",,,'
            f'"{diagnosis}",0,{charted}'
        )

    def lab(self, hadm: int | str, item: int, when: str, value: float | str) -> None:
        self.labs.append(f'{len(self.labs)},1,{hadm},{item},{when},"{value}",{value},"mEq/L",')

    def write(self, folder: Path, *, gz: bool = False) -> Path:
        tables = (("PATIENTS", PATIENTS), ("ADMISSIONS", ADMISSIONS), ("LABEVENTS", LABEVENTS))
        for (name, header), rows in zip(tables, (self.patients, self.admissions, self.labs), strict=True):
            text = "\n".join([header, *rows]) + "\n"
            if gz:
                (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
            else:
                (folder / f"{name}.csv").write_text(text)
        return folder


@pytest.fixture
def tables() -> Tables:
    """One admission that is used, so that there always is one, with one potassium."""
    made = Tables()
    made.admit(1)
    made.lab(1, 50971, at(hours=3), 4.2)
    return made


def test_thirteen_labs() -> None:
    assert len(LABS) == len({item for item, _, _, _ in LABS.values()}) == 13
    assert LABS["chloride"][0] == 50902
    assert LABS["glucose"][0] == 50931


@pytest.mark.parametrize("gz", [False, True])
def test_steps_are_moments_in_which_something_was_taken(tables: Tables, tmp_path: Path, gz: bool) -> None:
    tables.lab(1, 50983, at(hours=1.5), 140)
    tables.lab(1, 50983, at(hours=3), 141)
    tables.lab(1, 99999, at(hours=4), 1)  # another item
    stays = mimic3(tables.write(tmp_path, gz=gz))
    sodium, potassium = (stays.features.index(name) for name in ("sodium", "potassium"))
    assert stays.ids == ("1",)
    assert stays.times[0].tolist() == [1.5, 3.0]
    assert stays.values[0][:, sodium].tolist() == [140, 141]
    assert stays.values[0][1, potassium] == 4.2
    assert int((~np.isnan(stays.values[0])).sum()) == 3
    assert stays.static.tolist() == [[50.0, 0.0]]
    assert stays.units["sodium"] == "mEq/L"
    assert stays.cohort().units["sodium"] == "mEq/L"


@pytest.mark.parametrize(("hours", "taken"), [(-0.1, False), (0, True), (48, True), (48.1, False)])
def test_the_first_48_hours(tables: Tables, tmp_path: Path, hours: float, taken: bool) -> None:
    tables.labs.clear()
    tables.lab(1, 50971, at(hours=hours), 4.2)
    assert bool(np.nanmax(np.nan_to_num(mimic3(tables.write(tmp_path)).values[0])) == 4.2) is taken


def test_an_admission_without_labs_is_one_empty_step(tables: Tables, tmp_path: Path) -> None:
    tables.admit(2, gender="M")
    stays = mimic3(tables.write(tmp_path))
    assert stays.ids == ("1", "2")
    assert stays.values[1].shape == (1, 13)
    assert np.isnan(stays.values[1]).all()
    assert stays.times[1].tolist() == [0.0]
    assert stays.static[1].tolist() == [50.0, 1.0]


@pytest.mark.parametrize("value", [0, -1, 999])
def test_impossible_values_are_dropped_and_counted(tables: Tables, tmp_path: Path, value: float) -> None:
    tables.lab(1, 50971, at(hours=5), value)
    stays = mimic3(tables.write(tmp_path))
    assert len(stays.values[0]) == 1
    assert dict(stays.dropped) == {"impossible laboratory values": 1}


def test_rows_that_cannot_be_used(tables: Tables, tmp_path: Path) -> None:
    tables.lab("", 50971, at(hours=5), 4.0)  # of no admission
    tables.lab(77, 50971, at(hours=5), 4.0)  # of an unknown one
    tables.lab(1, 50971, at(hours=5), "")  # without a number
    stays = mimic3(tables.write(tmp_path))
    assert len(stays) == 1
    assert len(stays.values[0]) == 1


@pytest.mark.parametrize(
    ("days", "died"), [(None, 0), (3, 1), (29, 1), (30, 0), (400, 0)]
)  # of the day of death after that of the admission
def test_the_label_goes_by_dates(tables: Tables, tmp_path: Path, days: int | None, died: int) -> None:
    day = "" if days is None else (ADMITTED + timedelta(days=days)).strftime("%Y-%m-%d 00:00:00")
    tables.admit(2, dod=day)
    stays = mimic3(tables.write(tmp_path))
    assert stays.labels.tolist() == [0, died]
    assert stays.classes == ("survived", "died")


@pytest.mark.parametrize(
    ("admission", "reason"),
    [
        ({"charted": 0}, "admissions without charted data"),
        ({"born": "2140-01-01 00:00:00"}, "admissions of people below 16"),
        ({"born": "2134-06-03 00:00:00"}, "admissions of people below 16"),
        ({"diagnosis": "ORGAN DONOR ACCOUNT"}, "organ donors"),
        ({"diagnosis": "s/p organ donor"}, "organ donors"),
        ({"death": at(hours=48), "dod": "2150-06-03 00:00:00"}, "deaths in the first 48 hours"),
        ({"dod": "2150-06-02 00:00:00"}, "deaths in the first 48 hours"),
        ({"dod": "2150-05-30 00:00:00"}, "deaths in the first 48 hours"),
    ],
)
def test_who_is_left_out(tables: Tables, tmp_path: Path, admission: dict[str, str], reason: str) -> None:
    tables.admit(2, **admission)  # type: ignore[arg-type]
    stays = mimic3(tables.write(tmp_path))
    assert stays.ids == ("1",)
    assert dict(stays.dropped) == {reason: 1}


@pytest.mark.parametrize(
    "admission",
    [
        {"born": "2134-05-30 00:00:00"},  # just 16
        {"death": at(hours=48.1), "dod": "2150-06-03 00:00:00"},
        {"dod": "2150-06-03 00:00:00"},  # some time on a day of which 48 hours take only a part
    ],
)
def test_who_is_just_used(tables: Tables, tmp_path: Path, admission: dict[str, str]) -> None:
    tables.admit(2, **admission)  # type: ignore[arg-type]
    assert mimic3(tables.write(tmp_path)).ids == ("1", "2")


def test_hidden_ages_count_as_90(tables: Tables, tmp_path: Path) -> None:
    tables.admit(2, born="1850-06-01 00:00:00")
    assert mimic3(tables.write(tmp_path)).static[1, 0] == 90.0


def test_a_large_table_is_read_in_pieces(tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for minute in range(1000):
        tables.lab(1, 50983, at(minutes=minute), 140 + minute % 7)
    tables.write(tmp_path)
    whole = mimic3(tmp_path)
    monkeypatch.setattr("maxflip.datasets.reading.BLOCK", 2000)
    pieces = mimic3(tmp_path)
    assert len(whole.values[0]) == 1000
    np.testing.assert_array_equal(whole.values[0], pieces.values[0])


def test_faults_are_named(tables: Tables, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        mimic3(tmp_path)
    assert [problem.split(": ")[1] for problem in caught.value.problems] == [
        f"has no {name}.csv and no {name}.csv.gz." for name in ("PATIENTS", "ADMISSIONS", "LABEVENTS")
    ]
    tables.write(tmp_path)
    (tmp_path / "LABEVENTS.csv").write_text(LABEVENTS + "\n1,1,1,50971,noon,4,4,,\n")
    with pytest.raises(InputError, match=r"LABEVENTS\.csv: line 2, column 'CHARTTIME'"):
        mimic3(tmp_path)
    (tmp_path / "LABEVENTS.csv").write_text(LABEVENTS + "\n")
    with pytest.raises(InputError, match=r"LABEVENTS\.csv: has a header and no rows"):
        mimic3(tmp_path)
    (tmp_path / "PATIENTS.csv").write_text(PATIENTS + '\n5,5,"F",2100-01-01 00:00:00,,,,0\n')
    with pytest.raises(InputError, match=r"ADMISSIONS\.csv: row 1: PATIENTS\.csv has no patient 1"):
        mimic3(tmp_path)


@pytest.mark.parametrize(("table", "name"), [("patients", "SUBJECT_ID"), ("admissions", "HADM_ID")])
def test_who_stands_in_a_table_twice(tables: Tables, tmp_path: Path, table: str, name: str) -> None:
    rows = getattr(tables, table)
    rows.append(rows[0])
    with pytest.raises(InputError, match=rf"{table.upper()}\.csv: {name} 1 occurs more than once"):
        mimic3(tables.write(tmp_path))


def test_progress_is_told(tables: Tables, tmp_path: Path) -> None:
    told: list[Event] = []
    mimic3(tables.write(tmp_path), watch=told.append)
    assert told == [Started("reading laboratory values", 1), Finished("reading laboratory values")]


def test_nobody_is_left(tmp_path: Path) -> None:
    none = Tables()
    none.admit(1, charted=0)
    with pytest.raises(InputError, match="no admission can be used: 1 admissions without charted data"):
        mimic3(none.write(tmp_path))
