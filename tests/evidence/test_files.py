from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from evidence.files import Made, made_here, read, write


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
