"""Wording shared by error messages: close matches, and values shown without flooding the screen."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """' Did you mean 'chol'?' or nothing.

    >>> did_you_mean("cholesterl", ["age", "cholesterol"])
    " Did you mean 'cholesterol'?"
    """
    if not isinstance(name, str):
        return ""
    lowered = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), lowered, n=1, cutoff=0.6)
    return f" Did you mean {lowered[close[0]]!r}?" if close else ""


def shown(value: object, width: int = 40) -> str:
    """repr, cut at `width` characters."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def visible(text: str, width: int = 40) -> str:
    """The text itself where that is harmless; its repr, cut, where it holds control characters or has no end.

    >>> visible("P-0042"), visible("a\\nb")
    ('P-0042', "'a\\\\nb'")
    """
    return text if text.isprintable() and len(text) <= width else shown(text, width)


def listed(names: Iterable[str], most: int = 10) -> str:
    """'a', 'b' and 3 more"""
    quoted = [repr(n) for n in names]
    rest = len(quoted) - most
    return ", ".join(quoted[:most]) + (f" and {rest} more" if rest > 0 else "")


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "sample"), counted(2000, "sample")
    ('1 sample', '2,000 samples')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def first_line(error: BaseException) -> str:
    """What an exception of someone else's code says, on one line and without its full stop."""
    return (str(error).strip().splitlines() or ["no message"])[0][:300].rstrip(".")
