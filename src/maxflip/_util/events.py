"""Typed events. The library never prints; it calls a Watch, which may drive a progress bar or a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Started:
    """A stage of `total` steps begins."""

    stage: str
    total: int


@dataclass(frozen=True)
class Advanced:
    """`steps` more steps of the stage are done."""

    stage: str
    steps: int


@dataclass(frozen=True)
class Finished:
    stage: str


@dataclass(frozen=True)
class Notice:
    """Something the user should know that is not an error."""

    text: str


Event = Started | Advanced | Finished | Notice
Watch = Callable[[Event], None]


def silent(_event: Event) -> None:
    """A Watch that ignores all events."""
