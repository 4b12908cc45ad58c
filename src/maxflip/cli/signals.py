"""Handlers of SIGINT and SIGTERM: exit at once while the program starts, raise an exception while it works."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def leave_at_once() -> None:
    """Handlers for the time while modules are imported: nothing is written yet, so exit at once."""
    for number in _CODES:
        signal.signal(number, _leave)


def unwind() -> None:
    """Handlers for the time while files are written: an exception lets them be cleaned up."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _unwind)


def ignore() -> None:
    """Handlers for the time after the work: signals are ignored."""
    for number in _CODES:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def starting() -> Iterator[None]:
    """Around slow work that writes nothing: signals exit at once. Does nothing unless the program has set the
    handlers."""
    if signal.getsignal(signal.SIGTERM) is not _unwind:
        yield
        return
    leave_at_once()
    yield  # not in a `finally`: after an error there is nothing to clean up
    unwind()


def _leave(number: int, _frame: object) -> None:
    """Exit without an exception: a half-imported module may swallow it or turn it into an ImportError."""
    os._exit(_CODES[signal.Signals(number)])


def _unwind(_number: int, _frame: object) -> None:
    from maxflip.errors import Terminated

    raise Terminated
