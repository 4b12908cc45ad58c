"""Places of faults in a job: the key in TOML, and the line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from maxflip._util.faults import Fault, Place

_QUOTED = r"""\"[^\"]*\"|'[^']*'"""
_TABLE = re.compile(rf"\s*\[\[?((?:[^\[\]\"']|{_QUOTED})+)\]\]?\s*(?:#.*)?")
_KEY = re.compile(rf"\s*((?:[^=#\"']|{_QUOTED})+?)\s*=")
_MULTILINE = re.compile(r"\"\"\"|'''")
# Arguments of Problem that are in another table of a job.
_ARGUMENTS: Mapping[str, Place] = {
    **{name: ("goal", name) for name in ("target", "margin", "threshold", "include", "exclude", "most_actions")},
    "steps": ("cohort", "steps"),
}


def at(key: str) -> Place:
    """
    >>> at("cohort.features")
    ('cohort', 'features')
    """
    return tuple(key.split("."))


def in_job(place: Place) -> Place:
    """The place of an argument of Problem in a job; places of jobs stay as they are.

    >>> in_job(("margin",)), in_job(("directions", "bp")), in_job(("budgets", "bp"))
    (('goal', 'margin'), ('limits', 'bp', 'direction'), ('budgets', 'bp'))
    """
    first, *rest = place
    if first == "directions" and rest:
        return ("limits", rest[0], "direction")
    return (*_ARGUMENTS.get(first, (first,)), *rest)


def dotted(*parts: str) -> str:
    """A key as TOML writes it."""
    return ".".join(p if re.fullmatch(r"[A-Za-z0-9_-]+", p) else f'"{p}"' for p in parts)


def told(fault: str | Fault, source: str, lines: Mapping[Place, int]) -> str:
    """The fault in words, with its file: another one, or the job, with the line if known."""
    if isinstance(fault, str):
        return f"{source}: {fault}"
    if fault.source is not None:
        return str(fault)
    line = _line([in_job(place) for place in fault.places], lines)
    words = fault.in_words(lambda place: dotted(*in_job(place)))
    return f"{source}: {words}" if line is None else f"{source}: line {line}: {words}"


def _line(places: list[Place], lines: Mapping[Place, int]) -> int | None:
    """The line of the first place, or of the innermost table around it."""
    for end in range(len(places[0]), 0, -1) if places else ():
        if places[0][:end] in lines:
            return lines[places[0][:end]]
    return None


def lines_of(text: str, tables: Mapping[str, Any]) -> dict[Place, int]:
    """The line, from 1, on which each key and table of `tables` begins. Entries of a value of several lines have the
    line of its key."""
    found: dict[Place, int] = {}
    table: Place = ()
    inside = False  # a multi-line string
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        was_inside, inside = inside, inside ^ bool(len(_MULTILINE.findall(line)) % 2)
        if was_inside:
            continue
        header, key = _TABLE.fullmatch(line), _KEY.match(line)
        if header:
            table = _parsed(header[1])
            place = table
        elif key:
            place = (*table, *_parsed(key[1]))
        else:
            continue
        if place and _is_in(place, tables):
            found.setdefault(place, number)
    return found


def _parsed(key: str) -> Place:
    """The parts of a dotted key; () if it is invalid."""
    try:
        value: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    parts = []
    while isinstance(value, dict):
        ((part, value),) = value.items()
        parts.append(part)
    return tuple(parts)


def _is_in(place: Place, tables: Any) -> bool:
    for part in place:
        if not isinstance(tables, Mapping) or part not in tables:
            return False
        tables = tables[part]
    return True
