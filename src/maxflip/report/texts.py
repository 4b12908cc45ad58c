"""Texts from outside (ids, names, units, notices), made safe to stand inside a sentence."""

from __future__ import annotations

import re

from markupsafe import Markup

LONGEST = 160

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def isolated(text: object, most: int = LONGEST) -> Markup:
    """Escaped, and in <bdi>: a right-to-left override in an id cannot turn around the words next to it.

    >>> isolated("<b>")
    Markup('<bdi>&lt;b&gt;</bdi>')
    """
    return Markup("<bdi>{}</bdi>").format(shortened(text, most))


def shortened(text: object, most: int = LONGEST) -> str:
    """Cut in the middle, so that start and end stay; characters that no page can carry become U+FFFD.

    >>> shortened("abcdefghij", most=7)
    'abcd…ij'
    """
    clean = _CONTROLS.sub("\ufffd", str(text))
    if len(clean) <= most:
        return clean
    tail = (most - 1) // 3
    return f"{clean[: most - 1 - tail]}…{clean[len(clean) - tail :]}"
