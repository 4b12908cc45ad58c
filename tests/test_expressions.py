"""Expressions: the same bits from numpy, torch and the auditor; and nothing but arithmetic is read."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from maxflip.data.expressions import BadExpression, Expression
from maxflip_verify.expressions import parse
from maxflip_wall import Unreadable

NAMES = ("systolic", "diastolic", "x_1", "systolic BP", 'a "b"', "it's", "é", "class", "min", "e5")
VALUES = (0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, 1e-300, -1e200, 1e17, 120.30000000000001)
Floats = NDArray[np.float64]


def quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and name != "class"
    return name if plain else f'"{name}"' if "'" in name else f"'{name}'"


def texts(depth: int = 4) -> st.SearchStrategy[str]:
    """Texts of the grammar, with brackets where they are needed and where they are not."""
    leaf = st.sampled_from([*map(quoted, NAMES), "2", "0.5", ".25", "3.", "1e-3", "1E+2", "7"])
    if depth == 0:
        return leaf
    inner = texts(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(inner, st.sampled_from([" + ", "-", " * ", "/ "]), inner).map("".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        st.tuples(st.sampled_from(["min", "max"]), st.lists(inner, min_size=2, max_size=3)).map(
            lambda pair: f"{pair[0]}({', '.join(pair[1])})"
        ),
    )


def columns(seed: int, n: int = 12) -> dict[str, Floats]:
    rng = np.random.default_rng(seed)
    drawn = {name: rng.choice(VALUES, size=n) for name in NAMES}
    return {name: np.where(rng.random(n) < 0.5, column, rng.normal(size=n)) for name, column in drawn.items()}


def bits(values: Any) -> list[int]:
    """NaN has many; all of them are one here."""
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(array), np.nan, array).view(np.int64).tolist()  # type: ignore[no-any-return]


@given(texts(), st.integers(0, 2**32 - 1))
def test_numpy_torch_and_the_auditor_get_the_same_bits(text: str, seed: int) -> None:
    try:
        expression = Expression.parse(text, NAMES)
    except BadExpression:  # it divides by a zero that comes of its numbers
        return
    values = columns(seed)
    if not expression.names:
        assert expression.on({}) == parse(text).run({})[0]
        return
    used = {name: values[name] for name in expression.names}
    found = expression.on(used)
    tensors = {name: torch.tensor(column) for name, column in used.items()}
    others, sizes = parse(text).run(values)
    assert bits(found) == bits(expression.on(tensors).numpy()) == bits(others)
    assert bits(expression.size(used)) == bits(sizes)
    assert parse(text).names == list(expression.names)


def exactly(text: str, values: dict[str, float]) -> Fraction:
    """By Python itself, in fractions: names become theirs, numbers too."""
    numbers = {name: Fraction(value) for name, value in values.items()}
    return eval(text.replace("3", "F(3)").replace("0.5", "F(1, 2)"), {"F": Fraction, **numbers})  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "weights", "constant"),
    [
        ("systolic - diastolic", {"systolic": 1.0, "diastolic": -1.0}, 0.0),
        ("-(systolic - 2 * diastolic) / 3 + 1", {"systolic": -1 / 3, "diastolic": 2 / 3}, 1.0),
        ("systolic - (systolic - 3)", {"systolic": 0.0}, 3.0),
        ("(systolic + 3) * 0.5 * 3", {"systolic": 1.5}, 4.5),
    ],
)
def test_linear_expressions_have_weights_that_bound_their_rounding(
    text: str, weights: dict[str, float], constant: float
) -> None:
    expression = Expression.parse(text, NAMES)
    linear = expression.linear
    assert linear is not None
    assert dict(linear.weights) == pytest.approx(weights)
    assert linear.constant == pytest.approx(constant)
    rng = np.random.default_rng(3)
    for _ in range(200):
        point = {name: float(rng.normal() * 10.0 ** rng.integers(-9, 9)) for name in expression.names}
        computed = float(expression.on({name: np.array([value]) for name, value in point.items()})[0])
        true = exactly(text.replace("2 *", "Z").replace("Z", "F(2) *").replace("+ 1", "+ F(1)"), point)
        plain = sum((Fraction(linear.weights[n]) * Fraction(v) for n, v in point.items()), Fraction(linear.constant))
        size = sum(linear.sizes[name] * abs(value) for name, value in point.items()) + linear.size
        for other in (true, plain):
            assert abs(Fraction(computed) - other) <= linear.steps * 2.0**-52 * size


@pytest.mark.parametrize(
    "text", ["x_1 * systolic", "1 / x_1", "min(x_1, 3)", "x_1 * (x_1 - x_1 + 2)", "x_1 * 1e300 * 1e300"]
)
def test_what_is_no_sum_has_no_weights(text: str) -> None:
    assert Expression.parse(text, NAMES).linear is None


def test_gradients_are_those_of_the_formula() -> None:
    x = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([2.0, 8.0], dtype=torch.float64, requires_grad=True)
    value = Expression.parse("min(x / y, 1) - x * x", ["x", "y"]).on({"x": x, "y": y})
    of_x, of_y = torch.autograd.grad(value.sum(), [x, y])
    assert of_x.tolist() == [0.0 - 6.0, 1 / 8 - 8.0]
    assert of_y.tolist() == [0.0, -4.0 / 64]


def test_equal_ones_and_nan_are_taken_alike_everywhere() -> None:
    zeros, nan = np.array([0.0, -0.0, 1.0, math.nan]), np.array([-0.0, 0.0, math.nan, 1.0])
    for text in ("min(x, y)", "max(x, y)"):
        expected = bits([0.0, -0.0, math.nan, math.nan])
        expression = Expression.parse(text, ["x", "y"])
        assert bits(expression.on({"x": zeros, "y": nan})) == expected
        assert bits(expression.on({"x": torch.tensor(zeros), "y": torch.tensor(nan)}).numpy()) == expected
        assert bits(parse(text).run({"x": zeros, "y": nan})[0]) == expected


HOSTILE = {
    "__import__('os').system('x')": "character 17: '.' has no meaning here",
    "__import__('os')": "there is no function '__import__'",
    "systolic.real": "character 9: '.' has no meaning here",
    "systolic[0]": "'[' has no meaning here",
    "lambda: 1": "'lambda' is a word of Python",
    "abs(systolic)": "there is no function 'abs'",
    "systolic ** 2": "this cannot be computed",
    "9 ** 9 ** 9 ** 9": "this cannot be computed",
    "systolic // 2": "this cannot be computed",
    "systolic % 2": "'%' has no meaning here",
    "[x for x in (1, 2)]": "character 1: '[' has no meaning here",
    "(systolic for x_1 in x_1)": "character 11: 'for' is a word of Python",
    "{}": "'{' has no meaning here",
    "systolic if x_1 else 1": "'if' is a word of Python",
    "systolic and x_1": "'and' is a word of Python",
    "True": "'True' is a word of Python",
    "systolic < x_1": "'<' has no meaning here",
    "(systolic := 2)": "':' has no meaning here",
    "min(systolic)": "min() takes two values or more",
    "min(*systolic)": "min() takes two values or more",
    "min(systolic, x_1, default=1)": "'=' has no meaning here",
    "max()": "max() takes two values or more",
    "min(systolic, 2,)": "a value is missing before the bracket",
    "+systolic": "this cannot be computed",
    "systolic, x_1": "this cannot be computed",
    "()": "this cannot be computed",
    "systolic x_1": "character 10: cannot be read from here on",
    "systolic -": "cannot be read from here on",
    "(systolic": "cannot be read from here on",
    "'systolic' 'BP'": "a quoted name stands alone",
    "f'{systolic}'": "this cannot be computed",
    "r'systolic'": "a quoted name stands alone",
    "'''systolic'''": "a quoted name stands alone",
    "b'systolic'": "b'systolic' is no number",
    "'systolic\\x20BP'": "has no meaning here",
    "systolic # a": "'#' has no meaning here",
    "systolic\n+ 1": "'\\n' has no meaning here",
    "systolic \\\n + 1": "'\\\\' has no meaning here",
    "systolic\x00": "'\\x00' has no meaning here",
    "\u202esystolic": "'\\u202e' has no meaning here",
    "é": "has no meaning here",
    "ｓystolic": "has no meaning here",  # Python would read it as "systolic"
    "1_000 * systolic": "has no meaning here",
    "0x10 * systolic": "has no meaning here",
    "007 * systolic": "cannot be read",
    "2j * systolic": "has no meaning here",
    "1e999 * systolic": "the number is beyond float64",
    "9" * 400: "the number is beyond float64",
    "1e200 * 1e200 * systolic": "the number is beyond float64",
    "systolic / 0": "divides by zero",
    "systolic / (2 - 2)": "divides by zero",
    "": "is empty",
    " \t": "is empty",
    "sistolic + zz": "character 1: no feature is called 'sistolic'. Did you mean 'systolic'? character 12: no feature",
    "(" * 1_000_000 + "systolic" + ")" * 1_000_000: "has 2,000,008 characters; at most 4,000 are read",
    "9" * 1_000_000: "has 1,000,000 characters",
    "(" * 1900 + "systolic" + ")" * 1900: "cannot be read",
    "-" * 3900 + "systolic": "is nested too deeply",
    "systolic" + "-1" * 500 + "- x_1" * 500: "more than 200 operators are inside each other",
    "-(" * 250 + "systolic" + ")" * 250: "cannot be read",
}
# What the auditor may read besides: it asks only that what the library reads means the same.
READ_BY_THE_AUDITOR = {
    "007 * systolic",
    "systolic / 0",
    "systolic / (2 - 2)",
    "1e200 * 1e200 * systolic",
    "sistolic + zz",
}
LONG_BUT_PLAIN = {text for text in HOSTILE if text[:2] in ("((", "--", "-(") or text.endswith("- x_1")}


@pytest.mark.parametrize("text", sorted(HOSTILE), ids=lambda text: text[:30])
def test_what_is_no_arithmetic_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadExpression) as caught:
        Expression.parse(text, ("systolic", "x_1"))
    says = str(caught.value)
    assert HOSTILE[text] in says
    assert "\n" not in says
    assert len(says) < 300


@pytest.mark.parametrize(
    "text", sorted(HOSTILE.keys() - READ_BY_THE_AUDITOR - LONG_BUT_PLAIN), ids=lambda text: text[:30]
)
def test_the_auditor_refuses_it_too(text: str) -> None:
    with pytest.raises(Unreadable) as caught:
        parse(text)
    assert len(str(caught.value)) < 300


@given(st.integers(0, 2**32 - 1))
def test_library_and_auditor_read_the_same_texts(seed: int) -> None:
    """Random rows of words, most of which are no expressions."""
    drawn = random.Random(seed)
    words = ["x", "y", "'x'", "2", ".5", "+", "-", "*", "/", "(", ")", ",", "min", "max", "min(", " ", "if", "**"]
    for _ in range(200):
        text = "".join(drawn.choice(words) for _ in range(drawn.randint(1, 9)))
        found: list[tuple[str, ...] | None] = []
        try:
            found.append(Expression.parse(text, ("x", "y", "min", "max")).names)
        except BadExpression as error:
            if "divides by zero" in str(error) or "no feature" in str(error):
                continue
            found.append(None)
        try:
            found.append(tuple(parse(text).names))
        except Unreadable:
            found.append(None)
        assert found[0] == found[1], text
