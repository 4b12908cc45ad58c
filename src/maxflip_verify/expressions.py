"""The auditor's own arithmetic of columns, from the grammar in docs/formats.md: texts become postfix programs.

A text is split into tokens, which two stacks put in order; nothing of it is run as Python. All operations are those of
numpy in float64, one by one in the order of the program.
"""

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxflip_verify.exact import Floats
from maxflip_wall import Unreadable

LONGEST = 4000  # characters
TOKEN = re.compile(
    r"""[ \t]*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))|(?P<call>(?:min|max)(?=[ \t]*\())"""
    r"""|(?P<name>[A-Za-z_]\w*)|'(?P<single>[^'\\\n]*)'|"(?P<double>[^"\\\n]*)"|(?P<sign>[-+*/(),]))""",
    re.ASCII,
)
BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "negative": 3}
Step = tuple[str, str | float]  # ("number", 2.0), ("column", "systolic"), or an operation and ""


@dataclass(frozen=True)
class Program:
    """The steps of an expression, each of which works on what the steps before it left on a stack."""

    steps: tuple[Step, ...]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(str(name) for kind, name in self.steps if kind == "column"))

    def run(self, columns: dict[str, Floats]) -> tuple[Floats, Floats]:
        """The values, and their sizes: the same with terms added up by their absolute values."""
        stack: list[tuple[Floats, Floats]] = []
        with np.errstate(all="ignore"):
            for kind, what in self.steps:
                if kind in ("number", "column"):
                    value = np.asarray(columns[what] if isinstance(what, str) else np.float64(what))
                    stack.append((value, np.abs(value)))
                elif kind == "negative":
                    value, size = stack.pop()
                    stack.append((-value, size))
                else:
                    (b, b_size), (a, a_size) = stack.pop(), stack.pop()
                    value = _joined(kind, a, b)
                    of_numbers = value.ndim == 0  # a part without columns, whose size is that of its value
                    stack.append((value, np.abs(value) if of_numbers else _joined_size(kind, b, a_size, b_size)))
        return stack[0]


def _joined(kind: str, a: Floats, b: Floats) -> Floats:
    if kind in ("min", "max"):
        is_second = (b < a if kind == "min" else b > a) | np.isnan(b)  # of equal ones the first
        return np.where(is_second, b, a)
    return np.asarray({"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[kind](a, b))


def _joined_size(kind: str, b: Floats, a_size: Floats, b_size: Floats) -> Floats:
    if kind == "/":
        return np.asarray(a_size / np.abs(b) * (b_size / np.abs(b)))
    return _joined({"-": "+", "min": "max"}.get(kind, kind), a_size, b_size)


def parse(text: str) -> Program:
    """Raises Unreadable if the text is no expression."""
    if len(text) > LONGEST:
        raise Unreadable(f"an expression of {len(text)} characters; at most {LONGEST} are read")
    done: list[Step] = []
    waiting: list[tuple[str, int]] = []  # operations, open brackets, and calls with the number of values so far
    wants_value = True
    for kind, word, at in _tokens(text):
        where = f"{text!r:.80}: character {at}: "
        if kind == "value" and wants_value:
            done.append(("number" if isinstance(word, float) else "column", word))
            wants_value = False
        elif kind == "call" and wants_value:
            waiting.append((str(word), 0))
        elif word == "-" and wants_value:
            waiting.append(("negative", 0))
        elif word == "(" and wants_value:
            if not (waiting and waiting[-1] == ("min", 0)) and not (waiting and waiting[-1] == ("max", 0)):
                waiting.append(("(", 0))
            else:
                waiting[-1] = (waiting[-1][0], 1)
        elif word in ("+", "-", "*", "/") and not wants_value:
            while waiting and BINDS.get(waiting[-1][0], 0) >= BINDS[str(word)]:
                done.append((waiting.pop()[0], ""))
            waiting.append((str(word), 0))
            wants_value = True
        elif word in (",", ")") and not wants_value:
            while waiting and waiting[-1][0] in BINDS:
                done.append((waiting.pop()[0], ""))
            wants_value = _closed(str(word), done, waiting, where)
        else:
            raise Unreadable(f"{where}{word!r} cannot stand there")
    while waiting and waiting[-1][0] in BINDS:
        done.append((waiting.pop()[0], ""))
    if wants_value or waiting:
        raise Unreadable(f"{text!r:.80}: ends too early")
    return Program(tuple(done))


def _closed(word: str, done: list[Step], waiting: list[tuple[str, int]], where: str) -> bool:
    """After a comma or a closing bracket; whether a value must come next. min and max join their values two by two."""
    if not waiting:
        raise Unreadable(f"{where}{word!r} without an open bracket")
    kind, values = waiting.pop()
    if values > 1:
        done.append((kind, ""))
    if word == ",":
        if kind == "(":
            raise Unreadable(f"{where}a comma outside of min() and max()")
        waiting.append((kind, values + 1))
    elif values == 1:
        raise Unreadable(f"{where}{kind}() of a single value")
    return word == ","


def _tokens(text: str) -> Iterator[tuple[str, str | float, int]]:
    """("value", number or name), ("call", "min") or ("sign", "+"), and the character at which each ends"""
    at = 0
    while text[at:].strip(" \t"):
        token = TOKEN.match(text, at)
        if token is None or keyword.iskeyword(token["name"] or ""):
            raise Unreadable(f"{text!r:.80}: cannot be read behind character {at}")
        at = token.end()
        kind, word = token.lastgroup or "", token[token.lastgroup or 0]
        if kind == "number":
            if not np.isfinite(float(word)):
                raise Unreadable(f"{text!r:.80}: {word!r:.80} is beyond float64")
            yield "value", float(word), at
        else:
            yield kind if kind in ("call", "sign") else "value", word, at
