"""Number formats of the report: thousands separators, few digits, a typographic minus sign.

script.js formats numbers identically: both round the exact value, halves away from 0.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_HALF_UP, Context, Decimal

PLAIN = 1e15  # numbers from this size on are written as powers of ten
TINY = 1e-4  # numbers below this size are written as powers of ten

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def whole(n: int) -> str:
    """
    >>> whole(12345)
    '12,345'
    """
    return f"{n:,}".replace("-", "−")


def counted(n: int, one: str, many: str) -> str:
    """
    >>> counted(1, "person", "people"), counted(1200, "person", "people")
    ('1 person', '1,200 people')
    """
    return f"{whole(n)} {one if n == 1 else many}"


def number(x: float, digits: int = 4, *, up: bool = False) -> str:
    """At most `digits` significant digits, but always the full integer part. `up`: rounded up.

    >>> number(1234567.8), number(19.98765), number(-0.25), number(20.0), number(1e-7)
    ('1,234,568', '19.99', '−0.25', '20', '1 × 10⁻⁷')
    >>> number(412.3401, 5), number(412.3401, 5, up=True)
    ('412.34', '412.35')
    """
    if not math.isfinite(x):
        return "not a number" if math.isnan(x) else ("∞" if x > 0 else "−∞")
    if x == 0:
        return "0"
    rounding = ROUND_CEILING if up else ROUND_HALF_UP
    if not TINY <= abs(x) < PLAIN:
        return _power_of_ten(x, rounding)
    decimals = max(0, digits - 1 - exponent(x))
    text = f"{Decimal(x).quantize(Decimal(1).scaleb(-decimals), rounding):,f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def fixed(x: float, decimals: int, *, sign: bool = False) -> str:
    """x with a fixed number of decimals; `sign`: with a plus sign.

    >>> fixed(31.24, 1), fixed(-3.31, 1, sign=True), fixed(3.31, 1, sign=True), fixed(-0.01, 1)
    ('31.2', '−3.3', '+3.3', '0.0')
    """
    if not math.isfinite(x):
        return number(x)
    if abs(x) >= PLAIN:
        return ("+" if sign and x > 0 else "") + _power_of_ten(x, ROUND_HALF_UP)
    rounded = Decimal(x).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    return f"{rounded:{'+' if sign else 'z'},f}".replace("-", "−")


def exponent(x: float) -> int:
    """Decimal exponent of the leading digit: 0 for 1 to 9.99, 1 for 10 to 99.9.

    >>> exponent(31.2), exponent(0.05)
    (1, -2)
    """
    return math.floor(math.log10(abs(x)))


def decimals_for(typical: float) -> int:
    """Decimals that show two significant digits of a typical value.

    >>> decimals_for(3.3), decimals_for(120.0), decimals_for(0.0123)
    (1, 0, 3)
    """
    return min(6, max(0, 1 - exponent(typical))) if typical and math.isfinite(typical) else 0


def change_of(before: float, change: float, decimals: int) -> tuple[str, str, str]:
    """(before, after, change), with more decimals if `decimals` would hide the change.

    >>> change_of(31.2, -3.3, 1), change_of(31.2, -0.004, 1), change_of(31.2, 1e-9, 1)
    (('31.2', '27.9', '−3.3'), ('31.200', '31.196', '−0.004'), ('31.2', '31.2', '+1 × 10⁻⁹'))
    """
    needed = max(decimals, -exponent(change)) if change and math.isfinite(change) else decimals
    if needed > decimals + 3:
        size = ("+" if change > 0 else "") + _power_of_ten(change, ROUND_HALF_UP)
        return fixed(before, decimals), fixed(before + change, decimals), size
    return fixed(before, needed), fixed(before + change, needed), fixed(change, needed, sign=True)


def percent(part: float, all_of_it: float) -> str:
    """part / all_of_it in percent; rounding never gives 0% or 100%.

    >>> percent(187, 2000), percent(1, 1e6), percent(19.9999, 20.0), percent(20.0, 20.0), percent(0, 20.0)
    ('9.3%', '<0.1%', '>99.9%', '100%', '0%')
    """
    if not 0 < all_of_it < math.inf:
        return "–"
    share = 100 * (part / all_of_it)
    if part == 0 or part >= all_of_it:
        return "100%" if part else "0%"
    if share < 0.1:
        return "<0.1%"
    return ">99.9%" if share > 99.9 else f"{fixed(share, 1)}%"


def duration(seconds: float) -> str:
    """
    >>> duration(0.0312), duration(1.0), duration(75), duration(7384)
    ('0.031 seconds', '1 second', '1 min 15 s', '2 h 3 min')
    """
    if seconds < 60 or not math.isfinite(seconds):
        shown = number(seconds, 2 if seconds >= 0.01 else 1)
        return f"{shown} {'second' if shown == '1' else 'seconds'}"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _power_of_ten(x: float, rounding: str) -> str:
    """Two significant digits times a power of ten."""
    rounded = Context(prec=2, rounding=rounding).create_decimal(Decimal(x))
    power = rounded.adjusted()
    digits = f"{rounded.scaleb(-power).normalize():f}"
    return f"{digits} × 10{str(power).translate(_RAISED)}".replace("-", "−")
