"""Pages of the docs whose examples are run."""

from __future__ import annotations

import re
from typing import Any

import pytest


def run_examples(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every block of Python, one after the other; what they print must stand in the block of text behind them."""
    space: dict[str, Any] = {}
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.DOTALL)
    assert [kind for kind, _ in blocks].count("text") >= 3
    for kind, text in blocks:
        if kind == "python":
            assert capsys.readouterr().out == ""  # what was printed before stands on the page
            exec(text, space)
        else:
            assert capsys.readouterr().out == text
