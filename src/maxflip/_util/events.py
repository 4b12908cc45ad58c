"""Typed events: the library never prints, it tells a Watch. A progress bar, a log and a page are three listeners."""

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
    """The Watch of someone who does not look."""
