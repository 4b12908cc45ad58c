"""Engines run work over chunks of rows. Solvers use only this interface; a cluster would be another Engine.

Chunks depend on the problem alone (Problem.chunks), never on the number of workers, and results are returned in the
order of the chunks. So results do not depend on the engine or the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch

from maxflip._util import parallel as parts
from maxflip._util.events import Advanced, Finished, Started, Watch, silent
from maxflip._util.types import Rows

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
T = TypeVar("T")


class Held(Protocol[S_co]):
    """Objects made from chunks of rows. They stay in the worker that made them; only answers are sent back."""

    def ask(self, work: Callable[[S_co], T], *, stage: str = "", watch: Watch = silent) -> list[T]:
        """[work(thing) for each thing], in the order of the chunks. Reports progress if `stage` is given."""
        ...


class Engine(Protocol):
    def map(self, work: Callable[[Rows], T], chunks: Sequence[Rows], *, stage: str, watch: Watch) -> list[T]:
        """[work(chunk) for each chunk of rows], in order."""
        ...

    def hold(self, make: Callable[[Rows], S], chunks: Sequence[Rows]) -> Held[S]:
        """make(chunk) for each chunk of rows; the objects are kept for later calls of `ask`."""
        ...


@dataclass(frozen=True)
class Local:
    """Runs in this process: `workers` threads (None: as many as torch uses) take chunks, with one torch thread each.

    Threads inside a torch operation wait for each other at its end, which is slow on a busy machine, and may change the
    order of summation. Parallel chunks do neither.
    """

    workers: int | None = None

    def map(self, work: Callable[[Rows], T], chunks: Sequence[Rows], *, stage: str, watch: Watch) -> list[T]:
        return _each(chunks, work, [len(c) for c in chunks], self.workers, stage, watch)

    def hold(self, make: Callable[[Rows], S], chunks: Sequence[Rows]) -> Held[S]:
        sizes = [len(c) for c in chunks]
        return _HeldHere(_each(chunks, make, sizes, self.workers, "", silent), sizes, self.workers)


@dataclass(frozen=True, eq=False)
class _HeldHere(Held[S]):
    things: list[S]
    sizes: list[int]
    workers: int | None

    def ask(self, work: Callable[[S], T], *, stage: str = "", watch: Watch = silent) -> list[T]:
        return _each(self.things, work, self.sizes, self.workers, stage, watch)


def _each(
    things: Sequence[S], work: Callable[[S], T], sizes: list[int], workers: int | None, stage: str, watch: Watch
) -> list[T]:
    if stage:
        watch(Started(stage, sum(sizes)))
    results = []
    with one_torch_thread() as threads, _mapping(workers or threads) as mapped:
        at_once = (workers or threads) // max(1, len(things))  # with few chunks, each may use several threads

        def worked(thing: S) -> T:
            with parts.threads(max(1, at_once)):
                return work(thing)

        for size, result in zip(sizes, mapped(worked, things), strict=True):
            results.append(result)
            if stage:
                watch(Advanced(stage, size))
    if stage:
        watch(Finished(stage))
    return results


@contextmanager
def _mapping(workers: int) -> Iterator[Callable[[Callable[[S], T], Sequence[S]], Iterator[T]]]:
    if workers == 1:
        yield map
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield pool.map


def threads_of(engine: Engine) -> int:
    """Number of threads that this engine may use in this process."""
    own = engine.workers if isinstance(engine, Local) else None
    return own or torch.get_num_threads()


@contextmanager
def one_torch_thread() -> Iterator[int]:
    """Limits torch to one thread inside. Yields the number of threads before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
