"""Helpers for messages: suggestions of close names, and shortened values."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

CAVEAT = "A plan moves predictions, not outcomes."


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """' Did you mean 'chol'?' or nothing.

    >>> did_you_mean("cholesterl", ["age", "cholesterol"])
    " Did you mean 'cholesterol'?"
    """
    close = closest(name, {k: k for k in known})
    return f" Did you mean {close!r}?" if close else ""


def closest(name: object, known: Mapping[str, str]) -> str | None:
    """The value in `known` whose key is closest to the name; None if none is close."""
    if not isinstance(name, str):
        return None
    lowered = {k.casefold(): meant for k, meant in known.items()}
    close = difflib.get_close_matches(name.casefold(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def shown(value: object, width: int = 40) -> str:
    """repr, cut at `width` characters."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


def visible(text: str, width: int = 40) -> str:
    """The text itself if it is printable and short; otherwise its repr, cut at `width`.

    >>> visible("P-0042"), visible("a\\nb")
    ('P-0042', "'a\\\\nb'")
    """
    return text if text.isprintable() and len(text) <= width else shown(text, width)


def one_line(text: str) -> str:
    """The text with non-printable characters, such as newlines, replaced by their Python escapes.

    >>> one_line("a\\nb.csv: é")
    'a\\\\nb.csv: é'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def listed(names: Iterable[str], most: int = 10) -> str:
    """'a', 'b' and 3 more"""
    quoted = [repr(n) for n in names]
    rest = len(quoted) - most
    return ", ".join(quoted[:most]) + (f" and {rest} more" if rest > 0 else "")


def counted(number: int, noun: str, many: str | None = None) -> str:
    """many: the plural, where it is not the noun and an s

    >>> counted(1, "sample"), counted(2000, "sample"), counted(2, "class", "classes")
    ('1 sample', '2,000 samples', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def first_line(error: BaseException) -> str:
    """First line of an exception's message, without its full stop."""
    return (str(error).strip().splitlines() or ["no message"])[0][:300].rstrip(".")
