"""What a run leaves: result files of what is finished, and whole ones alone where the pages are made from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evidence import files
from experiments import carry
from experiments.carry import Collected, Part, carry_out
from experiments.cells import Cell, Payload


def one_row(number: int, needs: Sequence[Payload], device: str) -> Payload:
    if number < 0:
        raise ValueError("no such row")
    return {"numbers": [{"number": number}]}


def part(asked: Sequence[int], protocol: Sequence[int]) -> Part:
    cells = {number: Cell(f"number-{number}", one_row, number) for number in (*asked, *protocol)}
    return Part(
        "numbers", [cells[k] for k in asked], [cells[k] for k in protocol], ("numbers",), "python -m x", ("numpy",)
    )


def rows(folder: Path) -> list[int]:
    return [row["number"] for row in files.read("numbers", folder)[0].to_pylist()]


def carried(what: Part, out: Path, results: Path, limit: float | None = None) -> tuple[int, list[Collected]]:
    return carry_out([what], out=out, results=results, devices=["cpu"], limit=limit)


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the place of docs/results/data, with an older file of rows 7, 8 and 9."""
    folder = tmp_path / "published"
    monkeypatch.setattr(files, "FOLDER", folder)
    files.write("numbers", [{"number": k} for k in (7, 8, 9)], files.made_here("python -m older"), folder)
    return folder


def test_a_whole_run_replaces_what_the_pages_are_made_from(tmp_path: Path, published: Path) -> None:
    faults, collected = carried(part([2, 1], [1, 2]), tmp_path / "out", published)
    assert (faults, collected) == (0, [Collected(published / "numbers.parquet", is_done=True)])
    assert rows(published) == [2, 1]
    made = files.read("numbers", published)[1]
    assert made.command == "python -m x"
    assert set(made.versions) == {"python", "numpy"}


@pytest.mark.parametrize(
    ("asked", "protocol", "is_done"),
    [([1, 2, -1], [1, 2, -1], False), ([1, 2], [1, 2, 3], True)],
    ids=["one failed", "fewer were asked for"],
)
def test_part_of_the_rows_goes_to_out_and_it_is_said(
    asked: list[int], protocol: list[int], is_done: bool, tmp_path: Path, published: Path, capsys: Any
) -> None:
    out = tmp_path / "out"
    faults, collected = carried(part(asked, protocol), out, published)
    assert faults == (not is_done)
    assert collected == [Collected(out / "results" / "numbers.parquet", is_done)]
    assert rows(out / "results") == [1, 2]
    assert rows(published) == [7, 8, 9]
    said = " ".join(capsys.readouterr().err.split())
    assert f"1 cells of a full run are missing here, so that its files went to {out / 'results'}" in said
    assert f"those in {published} stay as they are" in said
    assert is_done or "number--1 failed: ValueError: no such row" in said


def test_a_run_that_was_ended_collects_what_earlier_ones_have_finished(
    tmp_path: Path, published: Path, capsys: Any
) -> None:
    out = tmp_path / "out"
    carried(part([1], [1, 2]), out, published)
    carried(part([1, 2], [1, 2]), out, published, limit=0.0)
    assert rows(out / "results") == [1]
    assert rows(published) == [7, 8, 9]
    assert "1 cells are not done, such as number-2: run the same again" in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_was_named_takes_what_there_is(tmp_path: Path, published: Path, capsys: Any) -> None:
    _, collected = carried(part([1, -1], [1, -1]), tmp_path / "out", tmp_path / "mine")
    assert collected == [Collected(tmp_path / "mine" / "numbers.parquet", is_done=False)]
    assert "stay as they are" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "results", "pictures"),
    [
        ([], "published", "docs"),
        (["--quick"], "out/results", "out/pictures"),
        (["--results", "mine"], "mine", "out/pictures"),
        (["--results", "mine", "--pictures", "drawn"], "mine", "drawn"),
    ],
)
def test_figures_of_the_pages_are_drawn_from_the_files_of_the_pages(
    words: list[str], results: str, pictures: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FOLDER", Path("published"))
    monkeypatch.setattr(carry, "PICTURES", Path("docs"))
    parser = argparse.ArgumentParser()
    carry.add_arguments(parser, Path("out"))
    given = parser.parse_args(words)
    carry.settle_folders(given)
    assert (given.results, given.pictures) == (Path(results), Path(pictures))
