"""CSV tables of public data, plain or gzipped: found by name, read in batches, errors reported with file and line."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from maxflip._util.messages import did_you_mean, first_line, listed
from maxflip.errors import InputError, OutputError
from maxflip.io.opening import open_file

BLOCK = 1 << 20  # bytes of text per batch; pyarrow reads a few dozen batches ahead
_PLACE = re.compile(
    r"(?:CSV parse error: |In CSV column #(?P<column>\d+): )?Row #(?P<row>\d+): (?P<what>.*)", re.DOTALL
)


def folder_of(root: str | Path) -> Path:
    folder = Path(root)
    try:
        if folder.is_dir():
            return folder
        there = folder.exists()
    except (OSError, ValueError) as error:
        raise OutputError(f"{folder}: cannot be read: {first_line(error)}. Check its permissions.") from error
    what = "is a file; wanted the folder that holds the data" if there else "there is no such folder"
    raise InputError(f"{folder}: {what}.")


def find(folder: Path, *names: str) -> Path | None:
    """The first of the names that exists in the folder, ignoring case."""
    try:
        there = {path.name.casefold(): path for path in folder.iterdir()}
    except OSError as error:
        raise OutputError(f"{folder}: cannot be read: {error.strerror}. Check its permissions.") from error
    return next((there[name.casefold()] for name in names if name.casefold() in there), None)


def find_tables(root: str | Path, stems: Sequence[str]) -> list[Path]:
    """The files NAME.csv or NAME.csv.gz for each of the stems; all missing ones are reported together."""
    folder = folder_of(root)
    found = [find(folder, f"{stem}.csv", f"{stem}.csv.gz") for stem in stems]
    missing = [stem for stem, path in zip(stems, found, strict=True) if path is None]
    if missing:
        raise InputError([f"{folder}: has no {stem}.csv and no {stem}.csv.gz." for stem in missing])
    return [path for path in found if path is not None]


def read_columns(
    path: Path, columns: Mapping[str, pa.DataType], *, gaps: Collection[str] = (), missing: Sequence[str] = ("",)
) -> dict[str, NDArray[Any]]:
    """Whole columns as numpy arrays; only those in `gaps` may have missing values. See `read_batches`."""
    batches = list(read_batches(path, columns, missing=missing))
    if not sum(map(len, batches)):
        raise InputError(f"{path}: has a header and no rows. Copy or download it again.")
    table = pa.Table.from_batches(batches)
    faults = [_gap(path, name, table.column(name)) for name in columns if name not in gaps]
    if any(faults):
        raise InputError([fault for fault in faults if fault])
    return {name: table.column(name).to_numpy() for name in columns}


def _gap(path: Path, name: str, column: pa.ChunkedArray) -> str:
    if not column.null_count:
        return ""
    row = int(np.argmax(column.is_null().to_numpy()))
    more = f", and so in {column.null_count - 1:,} more" if column.null_count > 1 else ""
    return f"{path}: row {row + 1}: column {name!r} is empty{more}. Every row needs a value there."


def read_batches(
    path: Path, columns: Mapping[str, pa.DataType], *, missing: Sequence[str] = ("",)
) -> Iterator[pa.RecordBatch]:
    """The named columns, in any order and ignoring case; others are skipped. `missing`: texts for a missing value."""
    with _opened(path) as file:
        written = _header(file, path)
    known = {name.casefold(): name for name in columns}
    names = [known.get(name.casefold(), f"other {i}") for i, name in enumerate(written)]
    absent = [name for name in columns if name not in names]
    if absent:
        raise InputError([f"{path}: has no column {name!r}.{did_you_mean(name, written)}" for name in absent])
    twice = [name for name in columns if names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: has more than one column {listed(twice)}. Wanted each once.")
    convert = pa.csv.ConvertOptions(
        column_types=dict(columns),
        include_columns=list(columns),
        null_values=list(missing),
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    read = pa.csv.ReadOptions(column_names=names, skip_rows=1, block_size=BLOCK, use_threads=False)
    with _opened(path) as file, _faults(path, names):
        try:
            yield from pa.csv.open_csv(file, read_options=read, convert_options=convert)
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                raise


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with open_file(path, str(path)) as file:
        if path.suffix != ".gz":
            yield file
            return
        try:
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{path}: is cut off or no gzip file: {first_line(error)}. Copy it again.") from error


def _header(file: BinaryIO, path: Path) -> list[str]:
    line = file.readline(1 << 20)
    if not line.strip():
        raise InputError(f"{path}: begins with no column names. Copy or download it again.")
    try:
        return next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")]))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: line 1 is no UTF-8 text: {first_line(error)}.") from error


@contextmanager
def _faults(path: Path, names: Sequence[str]) -> Iterator[None]:
    """The error of pyarrow with file name and line. None of these tables has line breaks in its cells."""
    try:
        yield
    except pa.ArrowException as error:
        place = _PLACE.match(str(error))
        if place is None:
            raise InputError(f"{path}: cannot be read as CSV: {first_line(error)}.") from error
        column = f", column {names[int(place['column'])]!r}" if place["column"] else ""
        what = place["what"].splitlines()[0][:200]
        line = _line_of(path, int(place["row"]))
        raise InputError(f"{path}: line {line}{column}: {what}. Copy or download it again.") from error


def _line_of(path: Path, row: int) -> int:
    """Line number including empty lines, which pyarrow does not count."""
    with _opened(path) as file:
        filled = (number for number, line in enumerate(file, start=1) if line.strip(b"\r\n"))
        return next(islice(filled, row - 1, None))
