"""Tables of public data: what is wrong with a file is said with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from maxflip.datasets.reading import find, find_tables, folder_of, read_batches, read_columns
from maxflip.errors import InputError, OutputError

COLUMNS = {"ID": pa.int64(), "WHEN": pa.timestamp("s")}
GOOD = b'"id","other","when"\n1,x,2101-10-20 19:08:00\n2,"a, b",\n'


def write(folder: Path, content: bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_named_columns_are_read_in_capitals_or_not(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, gzip.compress(GOOD) if name.endswith("gz") else GOOD, name)
    columns = read_columns(path, COLUMNS, gaps=["WHEN"])
    assert columns["ID"].tolist() == [1, 2]
    assert [str(moment) for moment in columns["WHEN"]] == ["2101-10-20T19:08:00", "NaT"]


def test_a_file_larger_than_a_block_comes_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maxflip.datasets.reading.BLOCK", 1000)
    path = write(tmp_path, b"id\n" + b"".join(b"%d\n" % i for i in range(1000)))
    batches = list(read_batches(path, {"id": pa.int64()}))
    assert len(batches) > 2
    assert [number for batch in batches for number in batch.column(0).to_pylist()] == list(range(1000))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with no column names"),
        (b"id,when\n", "has a header and no rows"),
        (b"id,wen\n1,\n", "has no column 'WHEN'. Did you mean 'wen'?"),
        (b"id,when,ID\n1,,2\n", "has more than one column 'ID'"),
        (b"id,when\n1,\n\n1,2,3\n", "line 4: Expected 2 columns, got 3"),
        (b"id,when\n1,\nx,\n", "line 3, column 'ID': CSV conversion error to int64: invalid value 'x'"),
        (b"id,when\n1,soon\n", "line 2, column 'WHEN'"),
        (b"id,when\n1,\n,\n,\n", "row 2: column 'ID' is empty, and so in 1 more"),
        (b"\xff\xfei\x00", "line 1 is no UTF-8 text"),
    ],
)
def test_faults_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_columns(path, COLUMNS, gaps=["WHEN"])
    assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize("content", [gzip.compress(GOOD * 1000, mtime=0)[:-30], b"id,when\n1,\n"])
def test_a_broken_gzip_file(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content, "t.csv.gz")
    with pytest.raises(InputError, match=r"t\.csv\.gz: is cut off or no gzip file"):
        read_columns(path, COLUMNS)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    with pytest.raises(InputError, match="is a file; wanted the folder"):
        folder_of(file)
    with pytest.raises(InputError, match="there is no such folder"):
        folder_of(tmp_path / "nowhere")


def test_all_missing_tables_are_named(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "A.CSV")
    with pytest.raises(InputError) as caught:
        find_tables(tmp_path, ["a", "b", "c"])
    assert caught.value.problems == tuple(f"{tmp_path}: has no {n}.csv and no {n}.csv.gz." for n in "bc")


def test_what_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(OutputError, match="cannot be read: Permission denied"):
        find(tmp_path, "t.csv")
