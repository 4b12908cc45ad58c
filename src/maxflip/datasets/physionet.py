"""PhysioNet / Computing in Cardiology Challenge 2012: the first 48 hours of stays in intensive care."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from maxflip._util.events import Watch, silent
from maxflip._util.frozen import FrozenMap, read_only
from maxflip._util.messages import did_you_mean
from maxflip._util.types import Floats
from maxflip.datasets.physionet_rows import Rows, read_parquet, read_texts
from maxflip.datasets.physionet_variables import DESCRIPTORS, LEFT_OUT, UNKNOWN, VARIABLES
from maxflip.datasets.reading import find, folder_of, read_columns
from maxflip.datasets.samples import Events, Integers, Sequences
from maxflip.errors import InputError

Grid = Literal["hour"] | None
Label = Literal["in_hospital", "30_day"]

CLASSES = ("survived", "died")
SETS = ("a", "b", "c")
HOURS = 48


def physionet2012(
    root: str | Path,
    set: str = "a",  # noqa: A002  name used by the source
    *,
    label: Label = "in_hospital",
    grid: Grid = "hour",
    watch: Watch = silent,
) -> Sequences:
    """The 4,000 stays of one set, as 33 variables over time (in hours) and five descriptors.

    grid="hour": a step for each hour with a measurement, with the means of that hour; None: a step for each minute with
    a measurement. Implausible values are dropped and counted. A stay without measurements has one empty step. Unknown
    descriptors are -1.

    Reads the official folders (set-a/132539.txt, Outcomes-a.txt) or long tables (set-a-long.parquet, Outcomes-a.csv).
    """
    _check_choices(set, label, grid)
    folder = folder_of(root)
    outcomes_path = _outcomes_path(folder, set)
    ids, labels = _outcomes(outcomes_path, label)
    rows = _rows(folder, set, ids, outcomes_path, watch)
    static, is_descriptor = _descriptors(rows, len(ids))
    events, dropped = _measurements(rows, is_descriptor)
    if grid == "hour":  # minute 48:00 belongs to the last hour
        events = Events(events.sample, np.minimum(events.time // 60, HOURS - 1), events.feature, events.value)
    values, times = events.steps(len(ids), len(VARIABLES))
    per_hour = 1 if grid == "hour" else 60
    return Sequences(
        values=values,
        times=tuple(read_only(steps / per_hour) for steps in times),
        static=read_only(static),
        ids=tuple(map(str, ids.tolist())),
        features=tuple(VARIABLES),
        static_features=tuple(
            f"{n} at admission" if n in VARIABLES else n for n in DESCRIPTORS
        ),  # Weight is both a variable and a descriptor
        units=FrozenMap({name: unit for name, (unit, _, _) in VARIABLES.items() if unit}),
        source=f"PhysioNet 2012 set {set}",
        labels=read_only(labels),
        classes=CLASSES,
        dropped=FrozenMap(dropped),
    )


def sets_in(root: str | Path) -> list[str]:
    """The sets with files in the folder."""
    folder = folder_of(root)
    names = ("Outcomes-{}.txt", "Outcomes-{}.csv", "set-{}", "set-{}-long.parquet")
    there = [s for s in SETS if find(folder, *(name.format(s) for name in names))]
    if not there:
        raise InputError(f"{folder}: holds no set of the challenge. Wanted Outcomes-a.txt and the folder set-a.")
    return there


def labels_of(root: str | Path, set: str, label: Label) -> Integers:  # noqa: A002
    """(stays,): the labels alone."""
    _check_choices(set, label, None)
    return _outcomes(_outcomes_path(folder_of(root), set), label)[1]


def _check_choices(chosen: str, label: str, grid: str | None) -> None:
    faults = [
        f"{name}: must be one of {', '.join(map(repr, known))}, got {given!r}.{did_you_mean(given, map(str, known))}"
        for name, given, known in (
            ("set", chosen, SETS),
            ("label", label, ("in_hospital", "30_day")),
            ("grid", grid, ("hour", None)),
        )
        if given not in known
    ]
    if faults:
        raise InputError(faults)


def _outcomes_path(folder: Path, chosen: str) -> Path:
    path = find(folder, f"Outcomes-{chosen}.txt", f"Outcomes-{chosen}.csv")
    if path is None:
        raise InputError(f"{folder}: has no Outcomes-{chosen}.txt, which lists the stays of set {chosen}.")
    return path


def _outcomes(path: Path, label: Label) -> tuple[Integers, Integers]:
    """Stays and labels. Survival is the number of days from admission to death, -1 if no death is known."""
    columns = read_columns(path, dict.fromkeys(("RecordID", "Survival", "In-hospital_death"), pa.int64()))
    ids, counts = np.unique(columns["RecordID"], return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{path}: stay {ids[counts > 1][0]} occurs more than once.")
    if label == "in_hospital":
        labels = columns["In-hospital_death"]
        other = (labels != 0) & (labels != 1)
        if other.any():
            row = int(np.argmax(other))
            raise InputError(f"{path}: row {row + 1}: In-hospital_death is {labels[row]}; wanted 0 or 1.")
    else:
        survival = columns["Survival"]
        labels = (survival >= 0) & (survival <= 30)
    order = np.argsort(columns["RecordID"])
    return ids, labels[order].astype(np.int64)


def _rows(folder: Path, chosen: str, ids: Integers, outcomes: Path, watch: Watch) -> Rows:
    texts = find(folder, f"set-{chosen}")
    if texts is not None:
        return read_texts(texts, ids, outcomes, watch)
    table = find(folder, f"set-{chosen}-long.parquet")
    if table is not None:
        return read_parquet(table, ids, outcomes)
    raise InputError(f"{folder}: has no folder set-{chosen}. Unpack set-{chosen}.tar.gz or set-{chosen}.zip there.")


def _descriptors(rows: Rows, stays: int) -> tuple[Floats, NDArray[np.bool_]]:
    """(stays, 5) and the rows they come from: those at minute 0; for weights the first one at minute 0."""
    static = np.full((stays, len(DESCRIPTORS)), UNKNOWN)
    taken = np.zeros(len(rows.stay), dtype=bool)
    for column, (name, (low, high)) in enumerate(DESCRIPTORS.items()):
        there = np.flatnonzero(rows.is_parameter(name) & (rows.minute == 0))
        owners, first = np.unique(rows.stay[there], return_index=True)
        chosen = there[first]
        taken[chosen] = True
        possible = (rows.value[chosen] >= low) & (rows.value[chosen] <= high)
        static[owners[possible], column] = rows.value[chosen[possible]]
    return static, taken


def _measurements(rows: Rows, is_descriptor: NDArray[np.bool_]) -> tuple[Events, dict[str, int]]:
    codes = {name: i for i, name in enumerate(VARIABLES)}
    of_code = np.array([codes.get(name, -1) for name in rows.parameters])
    feature = of_code[rows.parameter]
    measured = (feature >= 0) & ~is_descriptor
    low, high = (np.array([limits[i] for limits in VARIABLES.values()]) for i in (1, 2))
    possible = (rows.value >= low[feature]) & (rows.value <= high[feature])
    impossible = np.bincount(feature[measured & ~possible], minlength=len(VARIABLES))
    left_out = {name: int(rows.is_parameter(name).sum()) for name in LEFT_OUT}
    dropped = {f"impossible values of {name}": int(n) for name, n in zip(VARIABLES, impossible, strict=True) if n}
    dropped |= {f"values of {name}, which is not used": n for name, n in left_out.items() if n}
    if rows.nameless:
        dropped["rows without a parameter"] = rows.nameless
    if rows.unlisted:
        dropped["stays without an outcome"] = rows.unlisted
    return Events(rows.stay, rows.minute, feature, rows.value).where(measured & possible), dropped
