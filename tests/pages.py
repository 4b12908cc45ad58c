"""Pages of the docs whose examples are run."""

from __future__ import annotations

import re
from typing import Any

import pytest


def printed_and_shown(page: str, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[str]]:
    """What the blocks of Python print, run one after the other, and what the page shows at these places.

    Behind a block that prints stands a block of text; where it is missing, the page shows "".
    """
    space: dict[str, Any] = {}
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.DOTALL)
    printed, shown = [], []
    for kind, text in [*blocks, ("end", "")]:
        out = capsys.readouterr().out
        if kind == "text" or out:
            printed.append(out)
            shown.append(text if kind == "text" else "")
        if kind == "python":
            exec(text, space)
    assert len(shown) >= 3
    return printed, shown
