"""docs/prices.md: its examples run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import printed_and_shown

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "prices.md").read_text()


def test_the_examples_run_and_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    printed, shown = printed_and_shown(PAGE, capsys)
    assert printed == shown


def test_what_the_page_points_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert (DOCS / target).exists(), target
