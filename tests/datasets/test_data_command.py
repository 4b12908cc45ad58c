"""`maxflip data`: what it found, or what is wrong, with the exit code of its kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maxflip.cli.main import app
from tests.datasets.test_credit import write as write_credit
from tests.datasets.test_open_university import write as write_courses
from tests.datasets.test_physionet import write_texts


def invoke(*args: str | Path) -> Any:
    return CliRunner().invoke(app, ["data", *map(str, args)])


def test_without_a_name_all_are_listed() -> None:
    result = invoke()
    assert result.exit_code == 0
    for name in ("physionet2012", "mimic3", "oulad", "credit_default", "insurance"):
        assert f"\n{name}\n" in f"\n{result.stdout}"
    assert "https://physionet.org/content/challenge-2012/1.0.0/" in result.stdout


def test_stays_are_described(tmp_path: Path) -> None:
    result = invoke("physionet2012", "--root", write_texts(tmp_path))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:4] == [
        "PhysioNet 2012 set a: 3 sequences of 1 to 4 steps (2.0 on average), 33 variables, 5 that do not change",
        "measurements: 6; missing: 97.0% of the steps' cells; sequences without a measurement: 1",
        "labels: survived 2 (66.7%), died 1 (33.3%)",
        "after 30 days: survived 2 (66.7%), died 1 (33.3%)",
    ]
    (pulse,) = (line for line in lines if line.startswith("HR "))
    assert pulse.split() == ["HR", "bpm", "4", "1", "73", "80", "90"]
    (unmeasured,) = (line for line in lines if line.startswith("ALP "))
    assert unmeasured.split() == ["ALP", "IU/L", "0", "0"]


def test_courses_and_clients_are_described(tmp_path: Path) -> None:
    courses = invoke("oulad", "--root", write_courses(tmp_path)).stdout
    assert "OULAD: 3 sequences of 1 to 2 steps" in courses
    assert "left out: 1 exams" in courses
    clients = invoke("credit_default", "--root", write_credit(tmp_path, "0", "1", "1")).stdout
    assert "credit_default: 3 rows of 23 features\nlabels: paid 1 (33.3%), defaulted 2 (66.7%)" in clients


def test_the_generator_needs_no_folder(tmp_path: Path) -> None:
    assert "insurance(n=1000, seed=0): 1,000 sequences of 1 to " in invoke("insurance").stdout
    refused = invoke("insurance", "--root", tmp_path)
    assert refused.exit_code == 2
    assert "reads no folder" in refused.stderr


def test_quiet_says_nothing(tmp_path: Path) -> None:
    result = invoke("physionet2012", "--root", write_texts(tmp_path), "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["oulat", "--root", "."], "'oulat': no data of that name. Did you mean 'oulad'?"),
        (["oulad"], "--root: say in which folder oulad is"),
        (["--root", "."], "--root: name the data that the folder holds"),
        (["mimic3", "--root", "nowhere"], "nowhere: there is no such folder."),
    ],
)
def test_wrong_input_ends_with_2(args: list[str], message: str) -> None:
    result = invoke(*args)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")


def test_a_partial_folder_ends_with_2(tmp_path: Path) -> None:
    write_texts(tmp_path)
    (tmp_path / "set-a" / "102.txt").unlink()
    result = invoke("physionet2012", "--root", tmp_path)
    assert result.exit_code == 2
    assert "1 of the 3 stays in Outcomes-a.txt are not there: 102.txt." in result.stderr


def test_what_may_not_be_read_ends_with_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    result = invoke("oulad", "--root", tmp_path)
    assert result.exit_code == 4
    assert "cannot be read: Permission denied" in result.stderr
