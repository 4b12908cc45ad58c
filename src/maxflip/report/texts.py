"""Makes user texts (ids, names, units, notices) safe inside a sentence of the page."""

from __future__ import annotations

import re

from markupsafe import Markup

LONGEST = 160  # characters; longer texts are cut

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def isolated(text: object, most: int = LONGEST) -> Markup:
    """The text escaped and in <bdi>, so that a right-to-left override in an id does not affect the words around it.

    >>> isolated("<b>")
    Markup('<bdi>&lt;b&gt;</bdi>')
    """
    return Markup("<bdi>{}</bdi>").format(shortened(text, most))


def shortened(text: object, most: int = LONGEST) -> str:
    """The text cut in the middle to at most `most` characters; characters invalid in HTML become U+FFFD.

    >>> shortened("abcdefghij", most=7)
    'abcd…ij'
    """
    clean = _CONTROLS.sub("\ufffd", str(text))
    if len(clean) <= most:
        return clean
    tail = (most - 1) // 3
    return f"{clean[: most - 1 - tail]}…{clean[len(clean) - tail :]}"
