"""What a run leaves: result files of what is finished, and whole ones alone where the pages are made from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from research.cells import Cell, Payload
from research.evidence import files
from research.experiments import carry
from research.experiments.carry import Collected, Part, carry_out


def never(arguments: Any, needs: Sequence[Payload], device: str) -> Payload:
    raise ValueError("there are no data")


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
    return carry_out([what], out=out, results=results, aside=out / "results", devices=["cpu"], limit=limit)


def heard(capsys: Any) -> str:
    return " ".join(capsys.readouterr().err.split())


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


def test_a_fault_that_cells_share_is_told_once_and_who_waits_for_them(tmp_path: Path, capsys: Any) -> None:
    first, second = (Cell(f"learned-{k}", never, k) for k in (1, 2))
    after = [Cell(f"number-{k}", one_row, k, (first,)) for k in (1, 2)]
    what = Part("numbers", [*after, second], after, ("numbers",), "python -m x")
    assert carried(what, tmp_path, tmp_path / "mine") == (2, [])
    said = heard(capsys)
    assert "learned-1 and 1 others failed: ValueError: there are no data" in said
    assert said.count("there are no data") == 1
    assert "2 cells, such as number-1, wait for learned-1, which failed: mend that" in said
    assert "goes on from here" not in said


def test_a_cell_file_that_cannot_be_read_is_named_and_computed_again(tmp_path: Path, capsys: Any) -> None:
    what = part([1, 2], [1, 2])
    carried(what, tmp_path, tmp_path / "mine")
    path = what.cells[0].path(tmp_path)
    path.write_bytes(path.read_bytes()[:20])
    capsys.readouterr()
    carried(what, tmp_path, tmp_path / "mine")
    said = heard(capsys)
    assert f"{path} cannot be read" in said
    assert "numbers: 1 cells to do, 1 done before" in said
    assert rows(tmp_path / "mine") == [1, 2]


def test_quick_results_do_not_replace_those_that_the_pages_did_not_take() -> None:
    large, small = (argparse.Namespace(out=Path("out"), quick=is_quick) for is_quick in (False, True))
    assert [carry.aside(given, "results") for given in (large, small)] == [
        Path("out/results"),
        Path("out/results-quick"),
    ]


@pytest.mark.parametrize(
    ("words", "results", "pictures"),
    [
        ([], "published", "docs"),
        (["--quick"], "out/results-quick", "out/pictures-quick"),
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
