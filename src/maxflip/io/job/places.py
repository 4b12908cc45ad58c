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
    **{
        name: ("goal", name)
        for name in ("target", "margin", "threshold", "include", "exclude", "most_actions", "most_changes", "tidy")
    },
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
    line = _line(fault, lines)
    words = fault.in_words(lambda place: dotted(*in_job(place)))
    return f"{source}: {words}" if line is None else f"{source}: line {line}: {words}"


def _line(fault: Fault, lines: Mapping[Place, int]) -> int | None:
    """The line of the first place, or of the innermost table around it."""
    place: Place = in_job(fault.places[0]) if fault.places else ()
    numbered = (*place[:1], *map(str, fault.entries[:1]))
    if len(numbered) == 2 and numbered in lines:  # one of several tables [[x]]
        place = (*numbered, *place[1:])
    for end in range(len(place), 0, -1):
        if place[:end] in lines:
            return lines[place[:end]]
    return None


def lines_of(text: str, tables: Mapping[str, Any]) -> dict[Place, int]:
    """The line, from 1, on which each key and table of `tables` begins. Entries of a value of several lines have the
    line of its key. The second table [[x]] is ("x", "2")."""
    found: dict[Place, int] = {}
    table: Place = ()
    inside = False  # a multi-line string
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        was_inside, inside = inside, inside ^ bool(len(_MULTILINE.findall(line)) % 2)
        if was_inside:
            continue
        header, key = _TABLE.fullmatch(line), _KEY.match(line)
        if header:
            place = table = _parsed(header[1])
            if table and line.lstrip().startswith("[["):
                found.setdefault(table, number)
                place = table = (*table, str(1 + sum(known[:-1] == table for known in found)))
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
        if isinstance(tables, list) and part.isdigit() and 0 < int(part) <= len(tables):
            tables = tables[int(part) - 1]
        elif isinstance(tables, Mapping) and part in tables:
            tables = tables[part]
        else:
            return False
    return True
