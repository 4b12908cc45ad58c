"""The exception tree; each class knows its exit code.

MaxflipError              1   a bug of ours, when raised as such
  InputError (ValueError) 2   input missing, corrupt or wrong
    ProblemError              what is asked makes no sense
  ModelError (ValueError) 3   the model breaks its contract
  OutputError             4   cannot read, write or lock
  VerifyError             5   the plan did not pass the audit
  ResourceError           6   memory or a worker was lost
  UnsafeError             7   refused: opening it could run a program
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxflip_wall import Refused, Unreadable

SHOWN = 100  # a file with a million faults still gives a readable message


class MaxflipError(Exception):
    """Base of all errors; `problems` holds every fault found, one sentence each. `faults` holds the same; those of
    arguments as values (maxflip._util.faults.Fault), others as sentences."""

    exit_code = 1

    def __init__(self, problems: str | Sequence[object]) -> None:
        self.faults: tuple[Any, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        self.problems: tuple[str, ...] = tuple(map(str, self.faults))
        lines = list(self.problems[:SHOWN])
        if len(self.problems) > SHOWN:
            lines.append(f"... and {len(self.problems) - SHOWN} more.")
        super().__init__("\n".join(lines))


class InputError(MaxflipError, ValueError):
    """Input is missing, corrupt or wrong."""

    exit_code = 2


class ProblemError(InputError):
    """What is asked makes no sense: an unknown feature, a negative budget, a margin of 2."""


class ModelError(MaxflipError, ValueError):
    """The model breaks its contract."""

    exit_code = 3


class OutputError(MaxflipError):
    """A file cannot be read, written or locked."""

    exit_code = 4


class VerifyError(MaxflipError):
    """The plan did not pass its audit."""

    exit_code = 5


class ResourceError(MaxflipError):
    """Memory or a worker was lost."""

    exit_code = 6


class UnsafeError(MaxflipError):
    """Refused: opening it could run a program."""

    exit_code = 7


def as_ours(error: Refused | Unreadable) -> MaxflipError:
    """An error of maxflip_wall, as the one of ours with the same exit code."""
    kinds = {kind.exit_code: kind for kind in (InputError, ModelError, OutputError, UnsafeError)}
    return kinds[error.exit_code](str(error))


class Terminated(BaseException):
    """SIGTERM came. No error, and no SystemExit either, which a model may raise itself and which then is its fault."""

    exit_code = 143
