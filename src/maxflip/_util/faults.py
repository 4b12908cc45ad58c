"""Errors in the input as values: a Fault of an argument, or a BadCell of a column.

The caller that reports them turns them into sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from maxflip._util.messages import shown

ALIKE = 10  # at most this many bad cells of one kind are reported per column; the others are counted

Place = tuple[str, ...]  # names from the outside in, such as ("limits", "bp")


@dataclass(frozen=True)
class Fault:
    """An error in the input.

    Attributes:
        places: the arguments concerned; several if they contradict each other.
        says: what was expected and what to do, in sentences.
        got: the value as text, if `says` does not contain it.
        is_missing: whether the argument is missing.
        entries: position in a list, from 1; for nested lists one position per level.
        source: the file with the error, if it is not in the arguments themselves.
    """

    places: tuple[Place, ...]
    says: str
    got: str | None = None
    is_missing: bool = False
    entries: tuple[int, ...] = ()
    source: str | None = None

    def in_words(self, name: Callable[[Place], str] = ".".join) -> str:
        """The error as a sentence.   name: gives the name of a place; default: the argument's name in Python

        >>> Fault((("margin",),), "must lie in [0, 1).", "2").in_words()
        'margin = 2: must lie in [0, 1).'
        """
        if self.source is not None:
            return f"{self.source}: {self.says}"
        where = ", ".join(map(name, self.places)) + "".join(f", entry {entry}" for entry in self.entries)
        where += "" if self.got is None else f" = {self.got}"
        return f"{where} {self.says}" if self.is_missing else f"{where}: {self.says}"

    def __str__(self) -> str:
        return self.in_words()


def wrong(place: str | Place, value: object, says: str) -> Fault:
    """A fault of an unexpected value.

    >>> print(wrong("margin", 2, "must lie in [0, 1)."))
    margin = 2: must lie in [0, 1).
    """
    return Fault((_place(place),), says, shown(value))


def about(place: str | Place, says: str, *others: Place) -> Fault:
    """A fault of one argument, or between several, described by `says`.

    >>> print(about(("limits", "bp"), "min 2 is above max 1. Swap them."))
    limits.bp: min 2 is above max 1. Swap them.
    """
    return Fault((_place(place), *others), says)


def missing(place: str | Place, says: str) -> Fault:
    """
    >>> print(missing("target", "is missing; wanted a class."))
    target is missing; wanted a class.
    """
    return Fault((_place(place),), says, is_missing=True)


def within(source: str, says: str) -> Fault:
    """A fault in a file.

    >>> print(within("a.csv", "row 3: NaN."))
    a.csv: row 3: NaN.
    """
    return Fault((), says, source=source)


def _place(place: str | Place) -> Place:
    return (place,) if isinstance(place, str) else place


class Kind(Enum):
    """Kinds of errors in a cell."""

    EMPTY = auto()
    NO_NUMBER = auto()
    INEXACT = auto()  # a whole number that float64 would round
    NOT_FINITE = auto()
    NO_ID = auto()
    NO_TEXT = auto()
    VALUE = auto()  # a value that is not allowed here


@dataclass(frozen=True)
class BadCell:
    """An invalid cell of a column.   says: its content, in words"""

    kind: Kind
    says: str


EMPTY = BadCell(Kind.EMPTY, "the cell is empty")


def bad_value(cell: object) -> BadCell:
    """The BadCell of an empty cell, or of a value that is not allowed."""
    return EMPTY if cell is None or cell == "" else BadCell(Kind.VALUE, shown(cell))


def grouped(wrong: Mapping[int, BadCell], sentence: Callable[[int, str], str], column: str) -> list[str]:
    """A sentence per bad cell of a column, by row. Of each kind the first ALIKE, then the number of others.

    >>> rows = {j: EMPTY for j in range(12)} | {40: BadCell(Kind.NO_NUMBER, "'x' is no number")}
    >>> grouped(rows, lambda row, what: f"row {row + 1}: {what}", "a.csv: column 'b'")[-3:]
    ['row 10: the cell is empty', "a.csv: column 'b': ... and 2 more in this column.", "row 41: 'x' is no number"]
    """
    kinds: dict[Kind, list[int]] = {}
    for row, cell in wrong.items():
        kinds.setdefault(cell.kind, []).append(row)
    faults = []
    for rows in kinds.values():
        faults += [sentence(row, wrong[row].says) for row in rows[:ALIKE]]
        if len(rows) > ALIKE:
            faults.append(f"{column}: ... and {len(rows) - ALIKE} more in this column.")
    return faults
