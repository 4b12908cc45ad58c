"""docs/algorithms.md and docs/choosing.md: examples print what is said, links lead somewhere, options are named."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from maxflip import BCMS, CCMS, KL, MS

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ["algorithms.md", "choosing.md"]


def test_the_examples_run_and_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {}
    blocks = re.findall(r"```(python|text)\n(.*?)```", (DOCS / "algorithms.md").read_text(), re.DOTALL)
    assert [kind for kind, _ in blocks].count("text") >= 3
    for kind, text in blocks:
        if kind == "python":
            assert capsys.readouterr().out == ""  # what was printed before stands on the page
            exec(text, space)
        else:
            assert capsys.readouterr().out == text


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
