"""The rows of PhysioNet 2012 (stay, minute, parameter, value), from its text files or from one long table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from maxflip._util.events import Advanced, Finished, Started, Watch
from maxflip._util.faults import ALIKE
from maxflip._util.messages import counted, did_you_mean, shown
from maxflip._util.types import Floats
from maxflip.datasets.physionet_variables import KNOWN
from maxflip.datasets.samples import Integers, Numbers
from maxflip.errors import InputError, OutputError
from maxflip.io.cohort.tables import read_table
from maxflip.io.opening import open_file

LAST_MINUTE = 48 * 60
_HEADER = b"Time,Parameter,Value"
_TIME = re.compile(r"(\d\d):([0-5]\d)")


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of one length. stay: position in the list of outcomes   parameter: position in `parameters`"""

    stay: Integers
    minute: Integers
    parameter: Integers
    value: Floats
    parameters: tuple[str, ...]
    nameless: int  # number of rows without a parameter name, which are left out
    unlisted: int  # number of stays missing in the outcomes, which are left out

    def is_parameter(self, name: str) -> NDArray[np.bool_]:
        code = self.parameters.index(name) if name in self.parameters else -1
        return np.equal(self.parameter, code)


def read_texts(folder: Path, ids: Integers, outcomes: Path, watch: Watch) -> Rows:
    """One file per stay: 132539.txt with the columns Time (HH:MM), Parameter, Value."""
    try:
        there = {entry.name for entry in os.scandir(folder) if re.fullmatch(r"\d+\.txt", entry.name)}
    except NotADirectoryError:
        raise InputError(f"{folder}: is a file; wanted a folder with one text file per stay.") from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be read: {error.strerror}. Check its permissions.") from error
    names = [f"{number}.txt" for number in ids.tolist()]
    _refuse_missing(folder, [name for name in names if name not in there], len(names), outcomes)
    paths = [folder / name for name in names]
    bodies = list(_bodies(paths, watch))
    lines = [body.count(b"\n") for body in bodies]
    table = _parsed(b"".join(bodies))
    if table is None or len(table) != sum(lines):
        raise InputError(_faults(paths, bodies))
    parameter = table.column("parameter").combine_chunks().dictionary_encode()
    parameters = tuple(parameter.dictionary.to_pylist())
    minutes, strange = _minutes(table.column("time"))
    if strange or not KNOWN.issuperset({*parameters} - {""}):
        raise InputError(_faults(paths, bodies))
    rows = Rows(
        stay=np.repeat(np.arange(len(ids)), lines),
        minute=minutes,
        parameter=parameter.indices.to_numpy().astype(np.int64),
        value=table.column("value").to_numpy(),
        parameters=parameters,
        nameless=0,
        unlisted=len(there.difference(names)),
    )
    _check_ids(rows, ids, paths)
    return _without_nameless(rows)


def read_parquet(path: Path, ids: Integers, outcomes: Path) -> Rows:
    """One table with the columns RecordID, minute, parameter, value."""
    wanted = ("RecordID", "minute", "parameter", "value")
    table = read_table(path)
    absent = [name for name in wanted if name not in table.names]
    if absent:
        raise InputError([f"{path}: has no column {name!r}.{did_you_mean(name, table.names)}" for name in absent])
    cells = {name: column.data for name, column in table.load(wanted).items()}
    faults = [
        f"{path}: column {name!r} has type {cells[name].type}; wanted {what}."
        for name, what, fits in (
            ("RecordID", "whole numbers", pa.types.is_integer),
            ("minute", "whole numbers", pa.types.is_integer),
            ("parameter", "texts", lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)),
            ("value", "numbers", pa.types.is_floating),
        )
        if not fits(cells[name].type)
    ]
    faults += [f"{path}: column {name!r} has empty cells." for name in wanted if cells[name].null_count]
    if faults:
        raise InputError(faults)
    record, minute = (cells[name].to_numpy().astype(np.int64) for name in ("RecordID", "minute"))
    parameter = cells["parameter"].combine_chunks().dictionary_encode()
    parameters = tuple(parameter.dictionary.to_pylist())
    faults = [_unknown(f"{path}", name) for name in parameters if name and name not in KNOWN]
    if ((minute < 0) | (minute > LAST_MINUTE)).any():
        row = int(np.argmax((minute < 0) | (minute > LAST_MINUTE)))
        faults.append(f"{path}: row {row + 1}: minute is {minute[row]}; wanted 0 to {LAST_MINUTE}.")
    if faults:
        raise InputError(faults)
    stay = np.minimum(np.searchsorted(ids, record), len(ids) - 1)
    listed = ids[stay] == record
    silent = np.setdiff1d(ids, record)
    _refuse_missing(path, [str(number) for number in silent.tolist()], len(ids), outcomes)
    rows = Rows(
        stay=stay[listed],
        minute=minute[listed],
        parameter=parameter.indices.to_numpy().astype(np.int64)[listed],
        value=_as_written(cells["value"].to_numpy())[listed],
        parameters=parameters,
        nameless=0,
        unlisted=len(np.unique(record[~listed])),
    )
    return _without_nameless(rows)


def _as_written(values: Numbers) -> Floats:
    """float32 36.6 as float64 36.6: converted by its decimal digits, without the rounding error of float32."""
    if values.dtype != np.float32:
        return values.astype(np.float64)
    distinct, place = np.unique(values, return_inverse=True)
    return np.array([float(str(value)) for value in distinct])[place]


def _without_nameless(rows: Rows) -> Rows:
    named = ~rows.is_parameter("")
    return Rows(
        rows.stay[named],
        rows.minute[named],
        rows.parameter[named],
        rows.value[named],
        rows.parameters,
        nameless=int((~named).sum()),
        unlisted=rows.unlisted,
    )


def _bodies(paths: list[Path], watch: Watch) -> Iterable[bytes]:
    """The lines below the header of each file."""
    watch(Started("reading stays", len(paths)))
    for path in paths:
        with open_file(path, str(path)) as file:
            header, _, body = file.read().replace(b"\r\n", b"\n").partition(b"\n")
        if header.strip() != _HEADER:
            raise InputError(
                f"{path}: line 1 is {shown(header.decode(errors='replace'))}; wanted {_HEADER.decode()!r}. "
                "Unpack the archive again."
            )
        yield body if not body or body.endswith(b"\n") else body + b"\n"
        watch(Advanced("reading stays", 1))
    watch(Finished("reading stays"))


def _parsed(text: bytes) -> pa.Table | None:
    """The three columns of all stays; None if any line is malformed."""
    columns = {"time": pa.string(), "parameter": pa.string(), "value": pa.float64()}
    if not text:
        return pa.table({name: pa.array([], kind) for name, kind in columns.items()})
    convert = pa.csv.ConvertOptions(column_types=columns, null_values=[], strings_can_be_null=False)
    try:
        return pa.csv.read_csv(
            BytesIO(text), read_options=pa.csv.ReadOptions(column_names=list(columns)), convert_options=convert
        )
    except pa.ArrowException:
        return None


def _minutes(times: pa.ChunkedArray) -> tuple[Integers, bool]:
    """Minutes since admission, and whether any text is not a valid time."""
    coded = times.combine_chunks().dictionary_encode()
    minutes = [_minute(text) for text in coded.dictionary.to_pylist()]
    if None in minutes:
        return np.empty(0, np.int64), True
    return np.array(minutes, dtype=np.int64)[coded.indices.to_numpy()], False


def _minute(text: str) -> int | None:
    match = _TIME.fullmatch(text)
    minute = 60 * int(match[1]) + int(match[2]) if match else LAST_MINUTE + 1
    return minute if minute <= LAST_MINUTE else None


def _faults(paths: list[Path], bodies: list[bytes]) -> list[str]:
    """The malformed lines, found one by one; called only if there are any."""
    faults = []
    for path, body in zip(paths, bodies, strict=True):
        for number, line in enumerate(body.decode(errors="replace").splitlines(), start=2):
            if what := _line_fault(line):
                faults.append(f"{path}: line {number}: {what}")
    shown_faults = faults[:ALIKE]
    if len(faults) > ALIKE:
        shown_faults.append(f"{paths[0].parent}: ... and {len(faults) - ALIKE} more such lines.")
    return shown_faults


def _line_fault(line: str) -> str:
    cells = line.split(",")
    if len(cells) != 3:
        return f"has {counted(len(cells), 'field')}: {shown(line)}; wanted Time,Parameter,Value."
    time, parameter, value = cells
    if _minute(time) is None:
        return f"time is {shown(time)}; wanted HH:MM from 00:00 to 48:00."
    if parameter and parameter not in KNOWN:
        return _unknown("", parameter).removeprefix(": ")
    try:
        pc.cast(pa.scalar(value), pa.float64())
    except pa.ArrowException:
        return f"value is {shown(value)}; wanted a number."
    return ""


def _unknown(place: str, parameter: str) -> str:
    return f"{place}: the challenge has no parameter {shown(parameter)}.{did_you_mean(parameter, KNOWN)}"


def _check_ids(rows: Rows, ids: Integers, paths: list[Path]) -> None:
    """Refuse files that do not state their stay's id: they are truncated or renamed."""
    named = rows.is_parameter("RecordID")
    said = np.full(len(ids), np.nan)
    said[rows.stay[named]] = rows.value[named]
    faults = []
    for j in np.flatnonzero(said != ids).tolist():
        what = "has no RecordID: it is cut off" if np.isnan(said[j]) else f"says that it is stay {said[j]:.0f}"
        faults.append(f"{paths[j]}: {what}. Unpack the archive again.")
    if faults:
        raise InputError(faults)


def _refuse_missing(place: Path, missing: list[str], stays: int, outcomes: Path) -> None:
    if not missing:
        return
    more = f" and {len(missing) - ALIKE:,} more" if len(missing) > ALIKE else ""
    raise InputError(
        f"{place}: {len(missing):,} of the {stays:,} stays in {outcomes.name} are not there: "
        f"{', '.join(missing[:ALIKE])}{more}. Unpack the archive again, as a whole."
    )
