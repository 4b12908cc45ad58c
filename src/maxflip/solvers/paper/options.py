"""Valid values of options, and faults of invalid ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from maxflip._util.faults import wrong
from maxflip._util.messages import listed
from maxflip.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Interval:
    """Numbers between low and high, with each end if it is closed.   why: appended to the fault of a wrong number"""

    low: float
    high: float
    low_closed: bool = False
    high_closed: bool = False
    why: str = ""

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            return False
        above = value >= self.low if self.low_closed else value > self.low
        below = value <= self.high if self.high_closed else value < self.high
        return above and below

    def __str__(self) -> str:
        """
        >>> str(Interval(0.0, 1.0, low_closed=True)), str(Interval(1.0, math.inf))
        ('[0, 1)', '(1, inf)')
        """
        return f"{'[' if self.low_closed else '('}{self.low:g}, {self.high:g}{']' if self.high_closed else ')'}"


POSITIVE = Interval(0.0, math.inf)
NOT_NEGATIVE = Interval(0.0, math.inf, low_closed=True)


def check_options(
    solver: object,
    *,
    numbers: Mapping[str, Interval],
    wholes: Iterable[str],
    choices: Mapping[str, tuple[str, ...]],
    flags: Iterable[str] = (),
) -> None:
    """Raise one InputError with a fault for each invalid option."""
    kind = type(solver).__name__
    faults = []
    value: Any
    for name, interval in numbers.items():
        value = getattr(solver, name)
        if value not in interval:
            faults.append(wrong((kind, name), value, f"must be a number in {interval}{interval.why}."))
    for name in wholes:
        value = getattr(solver, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            faults.append(wrong((kind, name), value, "must be a whole number in [1, inf)."))
    for name, legal in choices.items():
        value = getattr(solver, name)
        if not isinstance(value, str) or value not in legal:
            faults.append(wrong((kind, name), value, f"must be one of {listed(legal)}."))
    for name in flags:
        value = getattr(solver, name)
        if not isinstance(value, bool):
            faults.append(wrong((kind, name), value, "must be True or False."))
    if faults:
        raise InputError(faults)


def preset(kind: Callable[..., T], settings: Mapping[str, Any], options: Mapping[str, Any]) -> T:
    """kind(...) with these settings, some replaced by the options."""
    return kind(**{**settings, **options})
