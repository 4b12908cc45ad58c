"""What SIGINT and SIGTERM do: end the program at once while it starts, and by way of an exception while it works."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def leave_at_once() -> None:
    """For the time in which modules are imported and nothing is written."""
    for number in _CODES:
        signal.signal(number, _leave)


def unwind() -> None:
    """For the time in which something may have to be put away."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _unwind)


def ignore() -> None:
    """For the time in which all is done: a signal comes too late."""
    for number in _CODES:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def starting() -> Iterator[None]:
    """Around what takes long and writes nothing; does nothing where the program is not the process's own."""
    if signal.getsignal(signal.SIGTERM) is not _unwind:
        yield
        return
    leave_at_once()
    yield  # after an error there is nothing left to put away either
    unwind()


def _leave(number: int, _frame: object) -> None:
    """Not by an exception: a half-imported module may swallow it or turn it into an ImportError."""
    os._exit(_CODES[signal.Signals(number)])


def _unwind(_number: int, _frame: object) -> None:
    from maxflip.errors import Terminated

    raise Terminated
