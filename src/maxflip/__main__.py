"""python -m maxflip, and the program `maxflip`: signals are answered before anything large is imported."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

from maxflip.cli import signals


def main() -> None:
    """A signal ends the program at once while it starts, when nothing is written yet; later by way of an exception."""
    signals.leave_at_once()
    from maxflip.cli.main import run

    signals.unwind()
    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, int):
            _end(end.code)
        raise


def _end(code: int) -> NoReturn:
    """Without the interpreter's leave-taking: threads may still be at work in a model, or give back a CSV file that
    pyarrow has read, and would abort the process."""
    signals.ignore()  # what was asked for is done
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
