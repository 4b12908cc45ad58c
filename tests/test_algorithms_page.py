"""docs/algorithms.md and docs/choosing.md: examples print what is said, links lead somewhere, options are named."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from maxflip import BCMS, CCMS, KL, MS
from tests.pages import printed_and_shown

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ["algorithms.md", "choosing.md"]


def test_the_examples_run_and_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    printed, shown = printed_and_shown((DOCS / "algorithms.md").read_text(), capsys)
    assert printed == shown


@pytest.mark.parametrize("page", PAGES)
def test_what_the_pages_point_to_is_there(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", (DOCS / page).read_text())
    assert targets
    for target in targets:
        assert (DOCS / target).exists(), target


@pytest.mark.parametrize("kind", [MS, BCMS, CCMS, KL])
def test_every_option_is_on_the_page(kind: Any) -> None:
    table = (DOCS / "algorithms.md").read_text().split("## Options")[1]
    for option in fields(kind):
        assert re.search(rf"^\|.*`{option.name}`", table, re.MULTILINE), option.name
