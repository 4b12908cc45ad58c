"""docs/prices.md: its examples run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "prices.md").read_text()


def test_the_examples_run_and_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {}
    blocks = re.findall(r"```(python|text)\n(.*?)```", PAGE, re.DOTALL)
    assert [kind for kind, _ in blocks].count("text") >= 3
    for kind, text in blocks:
        if kind == "python":
            assert capsys.readouterr().out == ""  # what was printed before stands on the page
            exec(text, space)
        else:
            assert capsys.readouterr().out == text


def test_what_the_page_points_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert (DOCS / target).exists(), target
