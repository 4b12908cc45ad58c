"""Cells: done once, in the order of their needs, and nothing that is finished is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from research.cells import Cell, Payload, _next, _Queue, _Worker, made_of, run_cells, with_needs
from research.evidence.files import ROOT, commit, machine, versions_here


def add(numbers: tuple[str, int], needs: Sequence[Payload], device: str) -> Payload:
    """Leaves a line in a diary, so that work done twice is seen."""
    diary, number = numbers
    with Path(diary).open("a") as file:
        file.write(f"{number}\n")
    return {"sum": number + sum(need["sum"] for need in needs), "device": device}


def fail(arguments: Any, needs: Sequence[Payload], device: str) -> Payload:
    raise ValueError("no such thing")


def be_killed(arguments: Any, needs: Sequence[Payload], device: str) -> Payload:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def strike(arguments: Any, needs: Sequence[Payload], device: str) -> Payload:
    os.kill(os.getpid(), signal.SIGINT)
    return {}


def interrupted(arguments: Any, needs: Sequence[Payload], device: str) -> Payload:
    raise KeyboardInterrupt


def wait_for_ever(folder: str, needs: Sequence[Payload], device: str) -> Payload:
    Path(folder, f"{os.getpid()}.pid").touch()
    while True:
        time.sleep(0.05)


def chain(tmp_path: Path) -> tuple[Cell, Cell, Cell]:
    diary = str(tmp_path / "diary")
    first = Cell("first", add, (diary, 1))
    second = Cell("second", add, (diary, 10), (first,))
    return first, second, Cell("third", add, (diary, 100), (first, second))


def diary(tmp_path: Path) -> list[str]:
    return (tmp_path / "diary").read_text().split()


@pytest.mark.parametrize("devices", [("cpu",), ("cpu", "cpu")])
def test_cells_get_what_they_need(tmp_path: Path, devices: Sequence[str]) -> None:
    *_, third = chain(tmp_path)
    outcome = run_cells([third], tmp_path / "out", devices=devices)
    assert (outcome.done, outcome.failed, outcome.left) == (3, {}, [])
    kept = third.kept(tmp_path / "out") or {}
    assert (kept["sum"], kept["device"]) == (112, "cpu")
    assert diary(tmp_path) == ["1", "10", "100"]


def test_cells_on_threads_of_this_process_run_side_by_side(tmp_path: Path) -> None:
    both = Barrier(2)

    def meet(arguments: Any, needs: Sequence[Payload], device: str) -> Payload:
        both.wait(30)
        return {}

    cells = [Cell(f"{k}/2", meet, k) for k in range(2)]
    outcome = run_cells([*cells, Cell("broken", fail, None)], tmp_path, at_once=2)
    assert (outcome.done, list(outcome.failed)) == (2, ["broken"])
    assert all(cell.is_done(tmp_path) for cell in cells)
    cells[0].forget(tmp_path)
    assert [cell.is_done(tmp_path) for cell in cells] == [False, True]


def test_a_second_run_does_only_what_is_missing(tmp_path: Path) -> None:
    _, second, third = chain(tmp_path)
    run_cells([second], tmp_path / "out")
    outcome = run_cells([third], tmp_path / "out")
    assert outcome.done == 1
    assert diary(tmp_path) == ["1", "10", "100"]


def test_a_run_that_is_ended_loses_no_finished_cell(tmp_path: Path) -> None:
    first, second, _ = chain(tmp_path)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run_cells([first, Cell("ended", interrupted, None, (first,)), second], out)
    assert first.kept(out) is not None
    assert not list(out.glob("ended*"))
    run_cells([second], out)
    assert diary(tmp_path).count("1") == 1


def test_a_worker_that_is_killed_takes_its_own_cell_alone(tmp_path: Path) -> None:
    *_, third = chain(tmp_path)
    dead = Cell("dead", be_killed, None)
    outcome = run_cells(
        [dead, third, Cell("after", add, (str(tmp_path / "diary"), 5), (dead,))], tmp_path, devices=("cpu", "cpu")
    )
    assert list(outcome.failed) == ["dead"]
    assert "exit code -9" in outcome.failed["dead"]
    assert third.kept(tmp_path) is not None
    assert outcome.barred == {"after": "dead"}
    assert outcome.left == []


def harm_the_first_worker(monkeypatch: pytest.MonkeyPatch, harm: Callable[[_Worker], None]) -> None:
    started, first = _Worker.started, list[_Worker]()

    def harmed(out: Path, device: str) -> _Worker:
        worker = started(out, device)
        if not first:
            first.append(worker)
            harm(worker)
        return worker

    monkeypatch.setattr(_Worker, "started", harmed)


def kill(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()


def test_a_worker_that_died_while_it_had_nothing_to_do_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harm_the_first_worker(monkeypatch, kill)
    cells = [Cell(str(k), add, (str(tmp_path / "diary"), k)) for k in range(2)]
    outcome = run_cells(cells, tmp_path, devices=("cpu", "cpu"))
    assert (outcome.done, outcome.failed, outcome.left) == (2, {}, [])


@pytest.mark.parametrize("when", ["before it is sent", "before it is read"])
def test_a_worker_that_dies_with_its_cell_unread_takes_no_other(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe then breaks or is reset, which is no end of file."""

    def with_its_cell(worker: _Worker) -> None:
        send = worker.line.send

        def sent(cell: Cell) -> None:
            if when == "before it is sent":
                kill(worker)
            send(cell)
            kill(worker)  # it has hardly begun to start

        monkeypatch.setattr(worker.line, "send", sent)

    harm_the_first_worker(monkeypatch, with_its_cell)
    cells = [Cell(str(k), add, (str(tmp_path / "diary"), k)) for k in range(3)]
    outcome = run_cells(cells, tmp_path, devices=("cpu", "cpu"))
    assert (outcome.done, outcome.left) == (2, [])
    assert [fault[:34] for fault in outcome.failed.values()] == ["its process ended with exit code -"]


@pytest.mark.parametrize("spoilt", ["", '{"sum": 1, "dev', "[1]", "\x80"])
def test_a_cell_whose_file_cannot_be_read_is_done_anew(spoilt: str, tmp_path: Path) -> None:
    first, second, _ = chain(tmp_path)
    out = tmp_path / "out"
    run_cells([second], out)
    first.path(out).write_text(spoilt, encoding="latin-1")
    assert first.is_spoilt(out)
    assert not second.is_spoilt(out)
    assert not first.is_done(out)
    assert run_cells([second], out).done == 1
    assert (first.kept(out) or {})["sum"] == 1
    assert not first.is_spoilt(out)
    assert diary(tmp_path) == ["1", "10", "1"]


def test_those_that_wait_for_a_failed_cell_are_told_from_those_that_wait_for_time(tmp_path: Path) -> None:
    bad = Cell("bad", fail, None)
    after = Cell("after", add, ("", 1), (bad,))
    outcome = run_cells([Cell("last", add, ("", 2), (after,))], tmp_path)
    assert outcome.barred == {"after": "bad", "last": "bad"}
    assert outcome.left == []


RUN = """
import sys
from pathlib import Path
from research.cells import Cell, run_cells
from research.tests.test_cells import wait_for_ever
folder = sys.argv[1]
run_cells([Cell(name, wait_for_ever, folder) for name in "ab"], Path(folder, "out"), devices=("cpu", "cpu"))
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def until(happened: Callable[[], bool]) -> bool:
    """Whether it does within a minute, which is ages."""
    ends = time.monotonic() + 60
    while not happened() and time.monotonic() < ends:
        time.sleep(0.05)
    return happened()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc which processes there are")
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], cwd=ROOT, start_new_session=True)
    try:
        assert until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
        pids = [int(path.stem) for path in tmp_path.glob("*.pid")]
        assert all(map(is_running, pids))
        parent.terminate()
        parent.wait()
        assert until(lambda: not any(map(is_running, pids)))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)


def test_ctrl_c_is_left_to_the_process_that_started_the_workers(tmp_path: Path) -> None:
    """A terminal sends it to all of them; the first ends the others."""
    cells = [Cell("struck", strike, None), Cell("other", add, (str(tmp_path / "diary"), 1))]
    outcome = run_cells(cells, tmp_path, devices=("cpu", "cpu"))
    assert (outcome.done, outcome.failed) == (2, {})


def test_a_cell_that_fails_is_told_and_not_kept(tmp_path: Path) -> None:
    told: list[tuple[str, str | None]] = []
    bad = Cell("bad", fail, None)
    outcome = run_cells([bad], tmp_path, tell=lambda cell, fault: told.append((cell.label, fault)))
    assert outcome.failed["bad"].startswith("ValueError: no such thing (test_cells.py, line ")
    assert told == [("bad", outcome.failed["bad"])]
    assert bad.kept(tmp_path) is None


@pytest.mark.parametrize("devices", [("cpu",), ("cpu", "cpu")])
def test_nothing_is_begun_after_the_limit(tmp_path: Path, devices: Sequence[str]) -> None:
    *_, third = chain(tmp_path)
    outcome = run_cells([third], tmp_path / "out", devices=devices, limit=0.0)
    assert (outcome.done, outcome.left) == (0, ["first", "second", "third"])


def test_what_others_wait_for_comes_first_and_then_the_longest(tmp_path: Path) -> None:
    book = str(tmp_path / "diary")
    need = Cell("need", add, (book, 1), seconds=1)
    cells = [Cell("short", add, (book, 2), seconds=2), Cell("long", add, (book, 3), seconds=3)]
    run_cells([*cells, Cell("after", add, (book, 4), (need,), seconds=2.5)], tmp_path / "out")
    assert diary(tmp_path) == ["1", "3", "4", "2"]


def test_a_gpu_takes_the_longest_that_suits_it_and_a_core_the_shortest_of_the_rest(tmp_path: Path) -> None:
    cells = [Cell(f"{t}-{gpu}", add, ("", t), seconds=t, suits_gpu=gpu) for t in (1, 2, 3) for gpu in (False, True)]

    def taken(device: str, cells: Sequence[Cell], *, has_gpu: bool) -> str | None:
        cell = _next(_Queue(tmp_path, {c.key: c for c in cells}, set(), None), device, has_gpu)
        return None if cell is None else cell.label

    suited = [cell for cell in cells if cell.suits_gpu]
    assert taken("cuda", cells, has_gpu=True) == "3-True"
    assert taken("cpu", cells, has_gpu=True) == "3-False"
    assert taken("cpu", suited, has_gpu=True) == "1-True"
    assert taken("cpu", suited, has_gpu=False) == "3-True"
    assert taken("cuda", cells[:1], has_gpu=True) is None


def leave(path: str, needs: Sequence[Payload], device: str) -> Payload:
    Path(path).write_text("weights")
    return {"sum": 0}


def test_a_cell_whose_file_is_gone_is_done_anew_and_those_that_needed_it_are_not(tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "weights"
    learned = Cell("learned", leave, str(file), leaves=file)
    after = Cell("after", add, (str(tmp_path / "diary"), 1), (learned,))
    assert run_cells([after], out).done == 2
    assert run_cells([after], out).done == 0
    file.unlink()
    assert learned.kept(out) is None
    assert run_cells([after], out).done == 1
    assert file.read_text() == "weights"
    assert diary(tmp_path) == ["1"]


def test_other_arguments_of_a_need_make_another_cell() -> None:
    one, two = Cell("need", add, ("", 1)), Cell("need", add, ("", 2))
    assert one.key != two.key
    assert Cell("top", add, ("", 3), (one,)).key != Cell("top", add, ("", 3), (two,)).key
    assert Cell("top", add, ("", 3), (one,)).key == Cell("top", add, ("", 3), (Cell("need", add, ("", 1)),)).key
    assert [cell.label for cell in with_needs([Cell("top", add, ("", 3), (one,)), one])] == ["need", "top"]


def test_a_file_says_where_its_cells_were_made_not_where_they_were_collected(tmp_path: Path) -> None:
    first, *_ = chain(tmp_path)
    here = first.run(tmp_path, "cpu")
    assert made_of("x", [here]).machine == machine()
    assert made_of("x", [here]).commit == commit()
    assert made_of("x", [here]).versions == versions_here(("torch", "numpy"))
    there: Payload = {"made": {"machine": "16 cores (x86_64) and a GPU", "commit": "abc1234", "seconds": 7.0}}
    there["made"]["versions"] = {"python": "3.12", "torch": "2.11"}
    both = made_of("x", [there, there], ["torch", "numpy"])
    assert both.versions == {"python": "3.12", "torch": "2.11", "numpy": "not recorded"}
    assert (both.machine, both.commit, both.seconds) == ("16 cores (x86_64) and a GPU", "abc1234", 14.0)
    unknown = made_of("x", [there, {}])
    assert unknown.machine == "16 cores (x86_64) and a GPU or one that is not recorded"
    assert unknown.versions["torch"] == "2.11 or not recorded"
    assert unknown.seconds is None
