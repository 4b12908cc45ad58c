"""MIMIC-III: 13 laboratory values in the first 48 hours of an admission; label: death within 30 days."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from maxflip._util.events import Finished, Started, Watch, silent
from maxflip._util.frozen import FrozenMap, read_only
from maxflip._util.types import Floats
from maxflip.datasets.reading import find_tables, read_batches, read_columns
from maxflip.datasets.samples import Events, Integers, Sequences
from maxflip.errors import InputError

TABLES = ("PATIENTS", "ADMISSIONS", "LABEVENTS")
# Lab: (item, unit, smallest plausible value, largest plausible value)
LABS: Mapping[str, tuple[int, str, float, float]] = FrozenMap(
    {
        "chloride": (50902, "mEq/L", 50, 200),
        "potassium": (50971, "mEq/L", 1, 15),
        "bicarbonate": (50882, "mEq/L", 1, 60),
        "sodium": (50983, "mEq/L", 90, 200),
        "hematocrit": (51221, "%", 5, 75),
        "hemoglobin": (51222, "g/dL", 1, 25),
        "MCV": (51250, "fL", 40, 160),
        "platelets": (51265, "K/uL", 1, 2500),
        "WBC": (51301, "K/uL", 0.1, 500),
        "RDW": (51277, "%", 5, 50),
        "BUN": (51006, "mg/dL", 1, 300),
        "creatinine": (50912, "mg/dL", 0.1, 30),
        "glucose": (50931, "mg/dL", 10, 2000),
    }
)
STATIC = ("age", "is_male")
CLASSES = ("survived", "died")
OLD = 90.0  # age used for patients above 89, whose ages MIMIC reports as about 300
_TIME = pa.timestamp("s")
_HOUR = np.timedelta64(3600, "s")
_DAY = 24 * _HOUR
_WINDOW = 48 * _HOUR
_YEAR = 365.2425 * 24 * 3600  # seconds


def mimic3(root: str | Path, *, watch: Watch = silent) -> Sequences:
    """One sequence per admission, with a step for each time at which any of the 13 labs was taken; times in hours.

    Included: admissions at age 16 or above, with charted data, no organ donations, patient alive after 48 hours.
    Label: death within 30 days of the admission. LABEVENTS is read in pieces, so that only the measurements used are
    in memory.
    """
    patients_path, admissions_path, labs_path = find_tables(root, TABLES)
    patients = _patients(patients_path)
    stays, dropped = _admissions(admissions_path, patients, patients_path)
    events, dropped_labs = _lab_events(labs_path, stays, watch)
    values, times = events.steps(len(stays["HADM_ID"]), len(LABS))
    return Sequences(
        values=values,
        times=tuple(read_only(seconds / 3600) for seconds in times),
        static=read_only(np.stack([stays["age"], stays["is_male"]], axis=1)),
        ids=tuple(map(str, stays["HADM_ID"].tolist())),
        features=tuple(LABS),
        static_features=STATIC,
        units=FrozenMap({name: unit for name, (_, unit, _, _) in LABS.items()}),
        source="MIMIC-III",
        labels=read_only(stays["died"].astype(np.int64)),
        classes=CLASSES,
        dropped=FrozenMap({what: n for what, n in (dropped | dropped_labs).items() if n}),
    )


def _patients(path: Path) -> dict[str, NDArray[Any]]:
    columns = {"SUBJECT_ID": pa.int64(), "GENDER": pa.string(), "DOB": _TIME, "DOD": _TIME}
    patients = read_columns(path, columns, gaps=["DOD"])
    _refuse_twice(path, "SUBJECT_ID", patients["SUBJECT_ID"])
    order = np.argsort(patients["SUBJECT_ID"])
    return {name: cells[order] for name, cells in patients.items()}


def _admissions(
    path: Path, patients: Mapping[str, NDArray[Any]], patients_path: Path
) -> tuple[dict[str, NDArray[Any]], dict[str, int]]:
    """The admissions used, by HADM_ID, and {reason: number left out}, by the first reason that applies."""
    cells = read_columns(
        path,
        {
            "SUBJECT_ID": pa.int64(),
            "HADM_ID": pa.int64(),
            "ADMITTIME": _TIME,
            "DEATHTIME": _TIME,
            "DIAGNOSIS": pa.string(),
            "HAS_CHARTEVENTS_DATA": pa.int64(),
        },
        gaps=["DEATHTIME", "DIAGNOSIS"],
    )
    _refuse_twice(path, "HADM_ID", cells["HADM_ID"])
    known = patients["SUBJECT_ID"]
    patient = np.minimum(np.searchsorted(known, cells["SUBJECT_ID"]), len(known) - 1)
    mismatched = known[patient] != cells["SUBJECT_ID"]
    if mismatched.any():
        row = int(np.argmax(mismatched))
        raise InputError(
            f"{path}: row {row + 1}: {patients_path.name} has no patient {cells['SUBJECT_ID'][row]}. "
            "The files must come from one archive."
        )
    admitted, died = cells["ADMITTIME"], patients["DOD"][patient]
    age = (admitted - patients["DOB"][patient]).astype(np.int64) / _YEAR
    donor = np.array(["ORGAN DONOR" in (text or "").upper() for text in cells["DIAGNOSIS"]])
    # The time of death if known, else the end of that day. Comparisons with a missing date are false.
    death = np.where(np.isnat(cells["DEATHTIME"]), died + _DAY, cells["DEATHTIME"])
    reasons = {
        "admissions without charted data": cells["HAS_CHARTEVENTS_DATA"] != 1,
        "admissions of people below 16": age < 16,
        "organ donors": donor,
        "deaths in the first 48 hours": death <= admitted + _WINDOW,
    }
    used = np.ones(len(admitted), dtype=bool)
    dropped = {}
    for reason, applies in reasons.items():
        dropped[reason] = int((used & applies).sum())
        used &= ~applies
    if not used.any():
        why = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count)
        raise InputError(f"{path}: no admission can be used: {why}.")
    order = np.flatnonzero(used)[np.argsort(cells["HADM_ID"][used])]
    day = admitted.astype("datetime64[D]")
    return {
        "HADM_ID": cells["HADM_ID"][order],
        "admitted": admitted[order],
        "age": np.where(age > 89, OLD, np.floor(age))[order],
        "is_male": (patients["GENDER"][patient] == "M").astype(float)[order],
        "died": (died.astype("datetime64[D]") < day + np.timedelta64(30, "D"))[order],
    }, dropped


def _refuse_twice(path: Path, name: str, numbers: Integers) -> None:
    distinct, counts = np.unique(numbers, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{path}: {name} {distinct[counts > 1][0]} occurs more than once. Download it again.")


def _lab_events(path: Path, stays: Mapping[str, NDArray[Any]], watch: Watch) -> tuple[Events, dict[str, int]]:
    """Times are in seconds since the admission."""
    items = np.array([item for item, _, _, _ in LABS.values()])
    by_item = np.argsort(items)
    low, high = (np.array([lab[i] for lab in LABS.values()]) for i in (2, 3))
    hadm = stays["HADM_ID"]
    kept: list[tuple[Integers, Integers, Integers, Floats]] = []
    impossible = 0
    columns = {"HADM_ID": pa.int64(), "ITEMID": pa.int64(), "CHARTTIME": _TIME, "VALUENUM": pa.float64()}
    watch(Started("reading laboratory values", 1))
    for batch in read_batches(path, columns):
        # Rows without an admission, an item, a time or a number cannot be used.
        rows = batch.filter(_complete(batch))
        item, stay = rows.column("ITEMID").to_numpy(), rows.column("HADM_ID").to_numpy()
        lab = by_item[np.minimum(np.searchsorted(items, item, sorter=by_item), len(items) - 1)]
        owner = np.minimum(np.searchsorted(hadm, stay), len(hadm) - 1)
        since = (rows.column("CHARTTIME").to_numpy() - stays["admitted"][owner]).astype(np.int64)
        inside = (since >= 0) & (since <= _WINDOW.astype(np.int64))
        ours = (items[lab] == item) & (hadm[owner] == stay) & inside
        value = rows.column("VALUENUM").to_numpy()
        possible = (value >= low[lab]) & (value <= high[lab])
        impossible += int((ours & ~possible).sum())
        chosen = ours & possible
        kept.append((owner[chosen], since[chosen], lab[chosen], value[chosen]))
    watch(Finished("reading laboratory values"))
    if not kept:
        raise InputError(f"{path}: has a header and no rows. Copy or download it again.")
    owner, since, lab, value = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    return Events(owner, since, lab, value), {"impossible laboratory values": impossible}


def _complete(batch: pa.RecordBatch) -> pa.Array:
    gaps = [batch.column(name).is_null().to_numpy(zero_copy_only=False) for name in batch.schema.names]
    return pa.array(~np.any(gaps, axis=0))
