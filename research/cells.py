"""Units of work that are done once: each is written when it is finished, and a second run skips what is there.

The study and the benchmarks that take long go by cells. A run that is killed loses the cells under way and no others,
and its processes end with it. What a cell needs of others is handed to it; cells that nothing keeps waiting run side by
side, in processes of one torch thread each, or on threads where each waits for a process of its own. A file that
cannot be read, such as one cut short by a full disk, is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as first_of
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from maxflip._util.atomic import write_bytes
from maxflip._util.messages import first_line
from research.evidence.files import Made, commit, machine, made_here, versions_here

Payload = dict[str, Any]
PACKAGES = ("torch", "numpy")  # whose versions a result file names
RECORDED = (*PACKAGES, "scikit-learn")  # ... and a cell: all that some file names
NOT_RECORDED = "not recorded"
MADE = "made"  # in what is kept of a cell: where, from which code and how long
Work = Callable[[Any, Sequence[Payload], str], Payload]
Tell = Callable[["Cell", "str | None"], None]


@dataclass(frozen=True)
class Cell:
    """work(arguments, what `needs` gave, device) -> what is kept, as JSON can hold it

    label: for people   seconds: about what it takes on one core   suits_gpu: whether a GPU is of use to it
    leaves: a file that the work writes besides; without it the cell is not done
    """

    label: str
    work: Work
    arguments: Any
    needs: tuple[Cell, ...] = ()
    seconds: float = 1.0
    suits_gpu: bool = False
    leaves: Path | None = None

    @cached_property
    def key(self) -> str:
        """Of all that the result depends on but the code: other arguments, of a need too, make another cell."""
        story = repr((self.work.__module__, self.work.__qualname__, self.arguments, [need.key for need in self.needs]))
        return f"{self.label}-{hashlib.sha256(story.encode()).hexdigest()[:10]}"

    def path(self, out: Path) -> Path:
        return out / f"{self.key.replace('/', '%2F')}.json"

    def is_done(self, out: Path) -> bool:
        return self.kept(out) is not None

    def kept(self, out: Path) -> Payload | None:
        """What an earlier run has written."""
        return self._read(out) if self.leaves is None or self.leaves.is_file() else None

    def is_spoilt(self, out: Path) -> bool:
        """Whether there is a file that cannot be read."""
        return self.path(out).is_file() and self._read(out) is None

    def forget(self, out: Path) -> None:
        self.path(out).unlink(missing_ok=True)

    def _read(self, out: Path) -> Payload | None:
        try:
            found = json.loads(self.path(out).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def run(self, out: Path, device: str) -> Payload:
        needs = [need.kept(out) for need in self.needs]
        if None in needs:
            raise RuntimeError(f"{self.key}: a cell that it needs is not there")
        began = time.monotonic()
        found = self.work(self.arguments, [need for need in needs if need is not None], device)
        on = machine() if device == "cpu" else f"{machine()} and a GPU"
        found |= {
            MADE: {
                "machine": on,
                "commit": commit(),
                "versions": versions_here(RECORDED),
                "seconds": time.monotonic() - began,
            }
        }
        write_bytes(self.path(out), json.dumps(found).encode())
        return found


def made_of(command: str, kept: Sequence[Payload], packages: Sequence[str] = PACKAGES) -> Made:
    """How a result file of several cells came to be, some of them perhaps long ago and elsewhere.

    seconds: of all cells together, one after the other; None where that of one is not known
    """
    made = [payload.get(MADE) for payload in kept]
    known = [one for one in made if one is not None]
    unknown = ["one that is not recorded"] if len(known) < len(made) else []
    versions = [(one or {}).get("versions", {}) for one in made]
    return replace(
        made_here(command, None if unknown else sum(one["seconds"] for one in known), packages),
        machine=" or ".join([*dict.fromkeys(one["machine"] for one in known), *unknown]),
        commit=" or ".join([*dict.fromkeys(one["commit"] for one in known), *unknown]),
        versions={
            name: " or ".join(sorted({each.get(name, NOT_RECORDED) for each in versions}))
            for name in ("python", *packages)
        },
    )


@dataclass
class Outcome:
    """What a run came to. failed: label -> why   left: cells not done for want of time

    barred: label of a cell not done -> that of the one which failed and which it needs, perhaps by way of others
    """

    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    barred: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def with_needs(cells: Sequence[Cell]) -> list[Cell]:
    """Each once, behind all that it needs."""
    found: dict[str, Cell] = {}

    def add(cell: Cell) -> None:
        for need in cell.needs:
            add(need)
        found.setdefault(cell.key, cell)

    for cell in cells:
        add(cell)
    return list(found.values())


def run_cells(
    cells: Sequence[Cell],
    out: Path,
    *,
    devices: Sequence[str] = ("cpu",),
    at_once: int = 1,
    limit: float | None = None,
    tell: Tell | None = None,
) -> Outcome:
    """Everything that is not there yet.

    devices: one for each process that works; a single one: this process, where `at_once` cells go side by side, on
    threads if there are several
    limit: seconds after which no cell begins, and those under way in other processes are given up
    tell: told of each cell that is finished, and what went wrong with it; None: nobody is
    """
    out.mkdir(parents=True, exist_ok=True)
    everything = with_needs(cells)
    missing = {cell.key: cell for cell in everything if not cell.is_done(out)}
    queue = _Queue(out, missing, {cell.key for cell in everything} - missing.keys(), tell)
    ends = time.monotonic() + (limit if limit is not None else float("inf"))
    if len(devices) == 1 and at_once > 1:
        _on_threads(queue, devices[0], at_once, ends)
    elif len(devices) == 1:
        _here(queue, devices[0], ends)
    elif queue.waiting:
        _side_by_side(queue, devices, ends)
    queue.outcome.barred = queue.barred()
    queue.outcome.left = [cell.label for cell in queue.waiting.values() if cell.label not in queue.outcome.barred]
    return queue.outcome


@dataclass
class _Queue:
    out: Path
    waiting: dict[str, Cell]  # by key, with those under way; each behind all that it needs
    there: set[str]  # keys of what is finished
    tell: Tell | None
    under_way: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # key -> label
    outcome: Outcome = field(default_factory=Outcome)

    def ready(self) -> list[Cell]:
        """Those that others wait for first, then the longest."""
        needed = {need.key for cell in self.waiting.values() for need in cell.needs}
        able = [
            cell
            for key, cell in self.waiting.items()
            if key not in self.under_way and all(need.key in self.there for need in cell.needs)
        ]
        return sorted(able, key=lambda cell: (cell.key not in needed, -cell.seconds))

    def finished(self, cell: Cell, fault: str | None) -> None:
        del self.waiting[cell.key]
        self.under_way.discard(cell.key)
        if fault is None:
            self.there.add(cell.key)
            self.outcome.done += 1
        else:
            self.failed[cell.key] = cell.label
            self.outcome.failed[cell.label] = fault
        if self.tell is not None:
            self.tell(cell, fault)

    def barred(self) -> dict[str, str]:
        """As of Outcome."""
        cause, found = dict(self.failed), dict[str, str]()
        for key, cell in self.waiting.items():
            if (why := next((cause[need.key] for need in cell.needs if need.key in cause), None)) is not None:
                cause[key] = found[cell.label] = why
        return found


def _here(queue: _Queue, device: str, ends: float) -> None:
    while time.monotonic() < ends and (able := queue.ready()):
        queue.finished(able[0], _attempt(able[0], queue.out, device))


def _on_threads(queue: _Queue, device: str, at_once: int, ends: float) -> None:
    running: dict[Future[str | None], Cell] = {}
    with ThreadPoolExecutor(at_once) as pool:
        while True:
            able = queue.ready() if time.monotonic() < ends else []
            for cell in able[: at_once - len(running)]:
                queue.under_way.add(cell.key)
                running[pool.submit(_attempt, cell, queue.out, device)] = cell
            if not running:
                return
            for future in first_of(running, return_when=FIRST_COMPLETED).done:
                queue.finished(running.pop(future), future.result())


def _attempt(cell: Cell, out: Path, device: str) -> str | None:
    """What went wrong."""
    try:
        cell.run(out, device)
    except Exception as error:  # one cell that fails must not end the others
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {first_line(error)} ({Path(last.filename).name}, line {last.lineno})"
    return None


@dataclass
class _Worker:
    device: str
    process: BaseProcess
    line: Connection
    cell: Cell | None = None

    @classmethod
    def started(cls, out: Path, device: str) -> _Worker:
        spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=_serve, args=(theirs, out, device), daemon=True)
        process.start()
        theirs.close()
        return cls(device, process, ours)

    def answer(self) -> str | None:
        try:
            fault: str | None = self.line.recv()
        except (EOFError, OSError):  # the second where it ended before it had read the cell
            self.process.join()
            return f"its process ended with exit code {self.process.exitcode}; memory may be short: use fewer workers"
        return fault


def _serve(line: Connection, out: Path, device: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal's Ctrl-C, which ends the first process, and that us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    while True:
        try:
            cell: Cell = line.recv()
        except EOFError:
            return
        line.send(_attempt(cell, out, device))


def _end_with_parent() -> None:
    """In the middle of a cell too: nobody waits for it any more."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _side_by_side(queue: _Queue, devices: Sequence[str], ends: float) -> None:
    has_gpu = any(device != "cpu" for device in devices)
    staff = [_Worker.started(queue.out, where) for where in devices]
    try:
        while time.monotonic() < ends:
            for k, worker in enumerate(staff):
                if worker.cell is None and not worker.process.is_alive():
                    staff[k] = _Worker.started(queue.out, worker.device)
            for worker in staff:
                if worker.cell is None and (cell := _next(queue, worker.device, has_gpu)) is not None:
                    worker.cell = cell
                    queue.under_way.add(cell.key)
                    with suppress(OSError):  # its process has ended, which `answer` tells
                        worker.line.send(cell)
            busy = {worker.line: worker for worker in staff if worker.cell is not None}
            if not busy:
                return
            for line in wait(list(busy), max(0.0, min(ends - time.monotonic(), 1e6))):
                worker = busy[line]  # type: ignore[index]
                assert worker.cell is not None
                fault = worker.answer()
                queue.finished(worker.cell, fault)
                worker.cell = None
    finally:
        for worker in staff:
            worker.process.terminate()
        for worker in staff:
            worker.process.join()


def _next(queue: _Queue, device: str, has_gpu: bool) -> Cell | None:
    """A GPU takes the longest of those that suit it; a core what does not, and then the shortest of what does."""
    able = queue.ready()
    suited = [cell for cell in able if cell.suits_gpu]
    if device != "cpu":
        return suited[0] if suited else None
    others = able if not has_gpu else [cell for cell in able if not cell.suits_gpu]
    return others[0] if others else (suited[-1] if suited else None)
