from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from research.evidence import files
from research.evidence.files import Made, commit, made_here, read, write


def test_a_result_file_says_how_it_was_made(tmp_path: Path) -> None:
    made = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 3.5)
    rows = [{"solver": "KL", "count": 3}, {"solver": "Prices", "count": 5}]
    write("counts", rows, made, tmp_path)
    table, said = read("counts", tmp_path)
    assert table.to_pylist() == rows
    assert said == made
    write("counts", pa.table({"a": [1.5]}), made_here("python -m y", 0.26), tmp_path)
    table, said = read("counts", tmp_path)
    assert table.column("a").to_pylist() == [1.5]
    assert said.command == "python -m y"
    assert said.seconds == 0.3
    assert said.versions["torch"][0].isdigit()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("counts", [{"count": 3}], made_here("python -m x"), tmp_path)

    def struck(table: pa.Table, where: Any) -> None:
        pq_write(table, where)
        raise KeyboardInterrupt

    pq_write = pq.write_table
    monkeypatch.setattr(pq, "write_table", struck)
    with pytest.raises(KeyboardInterrupt):
        write("counts", [{"count": 5}], made_here("python -m x"), tmp_path)
    assert read("counts", tmp_path)[0].to_pylist() == [{"count": 3}]
    assert [path.name for path in tmp_path.iterdir()] == ["counts.parquet"]


def test_a_column_that_the_first_row_lacks_is_not_lost_in_silence(tmp_path: Path) -> None:
    rows = [{"solver": "KL"}, {"solver": "Prices"}, {"solver": "MS", "count": 5, "worth": 2.0}]
    with pytest.raises(ValueError, match=r"counts: row 2 has 'count', 'worth', which the first row lacks.* solver"):
        write("counts", rows, made_here("python -m x"), tmp_path)
    assert not list(tmp_path.iterdir())
    write("counts", rows[::-1], made_here("python -m x"), tmp_path)  # the other way round nothing is lost
    assert read("counts", tmp_path)[0].column("count").to_pylist() == [5, None, None]
    write("counts", [], made_here("python -m x"), tmp_path)
    assert read("counts", tmp_path)[0].num_rows == 0


def test_a_copy_of_the_code_is_told_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAXFLIP_COMMIT", "abc1234")
    assert commit() == "abc1234"


def test_files_that_differ_from_the_commit_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    monkeypatch.delenv("MAXFLIP_COMMIT", raising=False)
    monkeypatch.setattr(files, "ROOT", tmp_path)
    git("init", "-q")
    (tmp_path / "code.py").write_text("1")
    git("add", ".")
    git("commit", "-q", "-m", "First")
    assert commit() == git("rev-parse", "--short", "HEAD").strip()
    (tmp_path / "code.py").write_text("2")
    assert commit() == git("rev-parse", "--short", "HEAD").strip() + "-dirty"
