"""Strict reading of TOML: errors with line and column, and bounded time and memory for hostile text."""

from __future__ import annotations

import math
import re
import tomllib
from typing import Any

from maxflip.errors import InputError

LARGEST = 1_000_000  # bytes
DEEPEST = 32  # parts of a dotted key, and levels of nesting: the parser's time and memory grow with their square
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{DEEPEST}}}")
_TOO_DEEP = f"values are nested more than {DEEPEST} deep. No table of a job is."
# Matches strings and comments whole, so that only brackets outside them count as nesting.
_BRACKET = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'|#[^\n]*+|[\[{\]}]""", re.DOTALL
)
# Only from Python 3.14 on does an error of tomllib carry its line and column; before, they stand in its text alone.
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse_toml(raw: bytes) -> dict[str, Any]:
    """The tables of a TOML document; InputError with line and column if it is invalid."""
    if len(raw) > LARGEST:
        raise InputError(f"is larger than {LARGEST} bytes. A job is a page of text; is this the right file?")
    text = _decoded(raw)
    if deep := _DEEP_KEY.search(text):
        raise InputError(f"{_place(text, deep.start())}: the key has more than {DEEPEST} parts. No key of a job has.")
    if (nested := _deep_bracket(text)) is not None:
        raise InputError(f"{_place(text, nested)}: {_TOO_DEEP}")
    beyond: list[str] = []

    def parse_float(digits: str) -> float:
        number = float(digits)
        if math.isinf(number) and "inf" not in digits:
            beyond.append(digits)
        return number

    try:
        tables = tomllib.loads(text, parse_float=parse_float)
    except ValueError as error:  # TOMLDecodeError, or an integer of thousands of digits
        raise InputError(_toml_fault(str(error), text)) from error
    for key, value in tables.items():
        if _is_deep(value):
            raise InputError(f"[{key}]: {_TOO_DEEP}")
    if beyond:
        remedy = "is beyond float64. Write inf where no limit is meant."
        raise InputError([f"{_place(text, text.index(digits))}: {digits} {remedy}" for digits in beyond])
    return tables


def _decoded(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        place = _place(raw[: error.start].decode(), error.start)
        raise InputError(f"{place}: byte 0x{raw[error.start]:02x} is not UTF-8. Save the file as UTF-8.") from error
    if text.startswith("\ufeff"):
        raise InputError("line 1, column 1: a byte order mark, which TOML does not allow. Save the file without it.")
    return text


def _place(text: str, end: int) -> str:
    before = text[:end]
    return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


def _toml_fault(message: str, text: str) -> str:
    found = _POSITION.search(message)
    if found is None:
        return f"is no valid TOML: {message.partition(';')[0][:200]}."
    reason = message[: found.start()]
    place = f"line {found[1]}, column {found[2]}" if found[1] else _place(text, len(text))
    return f"{place}: {reason[:200]}. Correct the TOML there; each key and table may occur only once."


def _deep_bracket(text: str) -> int | None:
    """Position of the first bracket that is nested too deep; None if there is none."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > DEEPEST:
            return found.start()
    return None


def _is_deep(value: Any) -> bool:
    """Whether keys and brackets together nest too deep. Not recursive, since the depth is not limited."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
        ]
    return bool(level)
