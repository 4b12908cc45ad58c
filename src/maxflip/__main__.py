"""python -m maxflip, and the program `maxflip`: signals are answered before anything large is imported."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def main() -> None:
    """A signal ends the program at once while it starts, when nothing is written yet; later by way of an exception."""
    for number in _CODES:
        signal.signal(number, _leave)
    from maxflip.cli.main import run

    if not _only_asks():
        import maxflip.cli.run_job  # noqa: F401  torch and the solvers: what takes the time

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _unwind)
    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, int):
            _end(end.code)
        raise


def _only_asks() -> bool:
    """Whether help or the version is asked for, which needs none of the solvers."""
    given = sys.argv[1:]
    return not given or "--help" in given or given == ["--version"]


def _end(code: int) -> NoReturn:
    """Without the interpreter's leave-taking: threads may still be at work in a model, or give back a CSV file that
    pyarrow has read, and would abort the process."""
    for number in _CODES:  # what was asked for is done: a signal that comes now is too late
        signal.signal(number, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _leave(number: int, _frame: object) -> None:
    """Not by an exception: a half-imported module may swallow it or turn it into an ImportError."""
    os._exit(_CODES[signal.Signals(number)])


def _unwind(_number: int, _frame: object) -> None:
    from maxflip.errors import Terminated

    raise Terminated


if __name__ == "__main__":
    main()
