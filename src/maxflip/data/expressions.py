"""Expression: arithmetic of named columns, read from a text such as "systolic - diastolic".

    expression = term { ("+" | "-") term }          factor = "-" factor | number | name | "(" expression ")"
    term = factor { ("*" | "/") factor }                     | ("min" | "max") "(" expression { "," expression } ")"

A name that is no plain word is quoted: 'systolic BP' - 'diastolic BP'. The text is parsed by `ast` and never run:
tokens and nodes are looked up in short lists, and anything else is refused.

Values are computed in float64, operator by operator in the order of the tree, so that numpy, torch on any device and
the auditor's own code get the same bits.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np

from maxflip._util.messages import did_you_mean, shown

LONGEST = 4000  # characters of a text
DEEPEST = 200  # operators inside each other; a sum of so many terms is as deep

Array = TypeVar("Array")  # numpy arrays, or tensors

_TOKEN = re.compile(
    r"""[ \t]*(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])"""  # a number
    r"""|[A-Za-z_]\w*|'[^'\\\n]*'|"[^"\\\n]*"|[-+*/(),])""",
    re.ASCII,
)
_JOINTS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class BadExpression(ValueError):
    """A text that is no expression.   problems: what is wrong with it, in sentences without the text itself"""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(" ".join(self.problems))


@dataclass(frozen=True)
class Node:
    """kind: "number", "name", "negative", or what joins two parts: + - * / min max"""

    kind: str
    parts: tuple[Node, ...] = ()
    value: float = 0.0
    name: str = ""

    @property
    def is_number(self) -> bool:
        return self.kind == "number"


@dataclass(frozen=True)
class Linear:
    """weights . x + constant. What is computed in float64 differs from that by at most
    steps * 2^-52 * (sizes . |x| + size).

    weights, sizes: by name   constant, size: of what no name is in
    """

    weights: Mapping[str, float]
    constant: float
    sizes: Mapping[str, float]
    size: float
    steps: int = 0

    @property
    def is_finite(self) -> bool:
        return all(map(math.isfinite, (*self.weights.values(), *self.sizes.values(), self.constant, self.size)))

    def plus(self, other: Linear, sign: float) -> Linear:
        names = dict.fromkeys([*self.weights, *other.weights])
        return Linear(
            {n: self.weights.get(n, 0.0) + sign * other.weights.get(n, 0.0) for n in names},
            self.constant + sign * other.constant,
            {n: self.sizes.get(n, 0.0) + other.sizes.get(n, 0.0) for n in names},
            self.size + other.size,
            max(self.steps, other.steps) + 1,
        )

    def by(self, scale: Callable[[float], float], steps: int = 1) -> Linear:
        """scale: a product with a number, or a quotient by one"""
        return Linear(
            {n: scale(w) for n, w in self.weights.items()},
            scale(self.constant),
            {n: abs(scale(s)) for n, s in self.sizes.items()},
            abs(scale(self.size)),
            self.steps + steps,
        )


@dataclass(frozen=True)
class Expression:
    """text: as it was given   names: that it uses, in the order in which they first stand in it"""

    text: str
    tree: Node
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, names: Collection[str]) -> Expression:
        """The text as an expression of some of these names; BadExpression where it is none."""
        reader = _Reader(text)
        tree = reader.tree()
        unknown = [name for name in reader.places if name not in names]
        if unknown:
            raise BadExpression(
                f"character {reader.places[name]}: no feature is called {shown(name)}.{did_you_mean(name, names)}"
                for name in unknown
            )
        return cls(text, tree, tuple(reader.places))

    def on(self, columns: Mapping[str, Array]) -> Array:
        """The values of the expression on float64 arrays or tensors of one shape, by name.

        An expression without names has one value, a float.
        """
        with np.errstate(all="ignore"):
            value: Array = _value(self.tree, columns)
            return value

    def size(self, columns: Mapping[str, Array]) -> Array:
        """What `on` computes, with the sizes of terms added up: what the rounding of its values is relative to."""
        with np.errstate(all="ignore"):
            size: Array = _size(self.tree, columns)
            return size

    @cached_property
    def linear(self) -> Linear | None:
        """The expression as weights and a constant; None if it is not linear in its names."""
        found = _linear(self.tree)
        return found if found is not None and found.is_finite else None


def as_name(name: str) -> str:
    """A name as it is written in an expression.

    >>> print(as_name("bp"), as_name("systolic BP"), as_name("Mother's age"))
    bp 'systolic BP' "Mother's age"
    """
    if name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
        return name
    return f'"{name}"' if "'" in name else f"'{name}'"


class _Reader:
    """places: names, and the character, counted from 1, at which each first stands"""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[str, int] = {}
        self.lead = 0

    def tree(self) -> Node:
        if len(self.text) > LONGEST:
            raise BadExpression([f"has {len(self.text):,} characters; at most {LONGEST:,} are read."])
        self._check_tokens()
        stripped = self.text.strip(" \t")
        if not stripped:
            raise BadExpression(["is empty."])
        self.lead = len(self.text) - len(self.text.lstrip(" \t"))
        self.bytes = stripped.encode()
        try:
            parsed = ast.parse(stripped, mode="eval")
        except SyntaxError as error:
            raise self._wrong(self.lead + (error.offset or 1), "cannot be read from here on.") from None
        except (MemoryError, RecursionError, ValueError):
            raise BadExpression(["is nested too deeply."]) from None
        return self._node(parsed.body, 0)

    def _check_tokens(self) -> None:
        word, at, end = "", 0, len(self.text.rstrip(" \t"))
        while at < end:
            token = _TOKEN.match(self.text, at)
            if token is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip(" \t"))
                has = "numbers, names, + - * / ( ) and commas; other names are quoted, 'like this'"
                raise self._wrong(at + 1, f"{shown(self.text[at])} has no meaning here. There are {has}.")
            last, word, at = word, token[0].strip(" \t"), token.end()
            if (last, word) == (",", ")"):
                raise self._wrong(at, "a value is missing before the bracket.")
            if keyword.iskeyword(word):
                says = f"{word!r} is a word of Python. If it is the name of a feature, write it in quotes."
                raise self._wrong(at - len(word) + 1, says)

    def _wrong(self, place: int, says: str) -> BadExpression:
        return BadExpression([f"character {place}: {says}"])

    def _place(self, node: ast.expr) -> int:
        """`ast` counts bytes."""
        return self.lead + len(self.bytes[: node.col_offset].decode()) + 1

    def _node(self, node: ast.expr, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._wrong(self._place(node), f"more than {DEEPEST} operators are inside each other.")
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self._name(node, node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            part = self._node(node.operand, depth + 1)
            return Node("number", value=-part.value) if part.is_number else Node("negative", (part,))
        if isinstance(node, ast.BinOp) and type(node.op) in _JOINTS:
            parts = (self._node(node.left, depth + 1), self._node(node.right, depth + 1))
            return self._joined(_JOINTS[type(node.op)], parts, node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id, depth)
        has = "+ - * /, a minus sign, parentheses, min() and max(); a square is x * x"
        raise self._wrong(self._place(node), f"this cannot be computed. There are {has}.")

    def _constant(self, node: ast.Constant) -> Node:
        if isinstance(node.value, str):
            if (node.end_col_offset or 0) - node.col_offset != len(node.value.encode()) + 2:
                raise self._wrong(self._place(node), "a quoted name stands alone: 'like this'.")
            return self._name(node, node.value)
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            raise self._wrong(self._place(node), f"{shown(node.value)} is no number.")
        try:
            value = float(node.value)
        except OverflowError:
            value = math.inf
        if math.isinf(value):
            raise self._wrong(self._place(node), "the number is beyond float64.")
        return Node("number", value=value)

    def _name(self, node: ast.expr, name: str) -> Node:
        self.places.setdefault(name, self._place(node))
        return Node("name", name=name)

    def _call(self, node: ast.Call, name: str, depth: int) -> Node:
        if name not in ("min", "max"):
            raise self._wrong(self._place(node), f"there is no function {shown(name)}; there are min() and max().")
        if len(node.args) < 2 or node.keywords:
            raise self._wrong(self._place(node), f"{name}() takes two values or more, with commas between them.")
        parts = [self._node(part, depth + 1) for part in node.args]
        return reduce(lambda a, b: self._joined(name, (a, b), node), parts)

    def _joined(self, kind: str, parts: tuple[Node, Node], node: ast.expr) -> Node:
        left, right = parts
        if kind == "/" and right.is_number and right.value == 0:
            raise self._wrong(self._place(node), "divides by zero.")
        if not (left.is_number and right.is_number):
            return Node(kind, parts)
        if kind in ("min", "max"):
            first = right.value < left.value if kind == "min" else right.value > left.value
            return right if first else left
        value = _JOIN[kind](left.value, right.value)
        if not math.isfinite(value):
            raise self._wrong(self._place(node), "the number is beyond float64.")
        return Node("number", value=value)


def _least(a: Any, b: Any) -> Any:
    """The smaller one; a where they are equal, NaN where either is NaN. (Minima of numpy and torch take either of 0.0
    and -0.0.)"""
    return _where((b < a) | (b != b), b, a)  # noqa: PLR0124  b is NaN


def _greatest(a: Any, b: Any) -> Any:
    """The larger one, by the same rules."""
    return _where((b > a) | (b != b), b, a)  # noqa: PLR0124


def _where(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, (np.ndarray, np.generic)):
        return np.where(condition, a, b)
    import torch  # where there is a tensor, it is loaded already

    return torch.where(condition, a, b)


_JOIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "min": _least,
    "max": _greatest,
}


def _number(value: float, columns: Mapping[str, Any]) -> Any:
    """As an array or a tensor like the columns: torch on a GPU divides by a plain number less exactly."""
    like = next(iter(columns.values()), None)
    if like is None:
        return value
    return np.float64(value) if isinstance(like, (np.ndarray, np.generic)) else like.new_tensor(value)


def _value(node: Node, columns: Mapping[str, Any]) -> Any:
    if node.is_number:
        return _number(node.value, columns)
    if node.kind == "name":
        return columns[node.name]
    parts = [_value(part, columns) for part in node.parts]
    return -parts[0] if node.kind == "negative" else _JOIN[node.kind](*parts)


def _size(node: Node, columns: Mapping[str, Any]) -> Any:
    if node.is_number or node.kind == "name":
        return abs(_value(node, columns))
    sizes = [_size(part, columns) for part in node.parts]
    if node.kind == "negative":
        return sizes[0]
    if node.kind == "/":
        divisor = abs(_value(node.parts[1], columns))
        return sizes[0] / divisor * (sizes[1] / divisor)
    return _JOIN[{"-": "+", "min": "max"}.get(node.kind, node.kind)](*sizes)


def _linear(node: Node) -> Linear | None:
    if node.is_number:
        return Linear({}, node.value, {}, abs(node.value))
    if node.kind == "name":
        return Linear({node.name: 1.0}, 0.0, {node.name: 1.0}, 0.0)
    parts = [_linear(part) for part in node.parts]
    left, right = parts[0], parts[-1]
    if left is None or right is None:
        return None
    if node.kind == "negative":
        return left.by(operator.neg, steps=0)
    if node.kind in ("+", "-"):
        return left.plus(right, 1.0 if node.kind == "+" else -1.0)
    if node.kind == "*" and (node.parts[0].is_number or node.parts[1].is_number):
        number, other = (node.parts[0].value, right) if node.parts[0].is_number else (node.parts[1].value, left)
        return other.by(lambda w: w * number)
    if node.kind == "/" and node.parts[1].is_number:
        return left.by(lambda w: w / node.parts[1].value)
    return None
