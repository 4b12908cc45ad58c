"""docs/networks.md: its examples print what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from maxflip.networks import GRUD, save_network
from maxflip_wall import read, read_tensors
from tests.pages import printed_and_shown

PAGE = Path(__file__).parent.parent.parent / "docs" / "networks.md"


def test_the_examples_run_and_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    printed, shown = printed_and_shown(PAGE.read_text(), capsys)
    assert printed == shown


def test_the_header_on_the_page_is_the_true_one(tmp_path: Path) -> None:
    save_network(GRUD(["systolic", "glucose"], 16, ["worse", "stable"]), tmp_path / "model.safetensors")
    shown = re.search(r"^    (\{\"format\".*?\}\})$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert shown is not None
    held = read_tensors(read(tmp_path / "model.safetensors"), "model.safetensors")
    assert {key: json.loads(text) for key, text in held.metadata.items()} == {"maxflip": json.loads(shown.group(1))}


def test_what_the_page_points_to_is_there() -> None:
    assert "## Your own modules" in PAGE.read_text()  # its one link leads there
    assert re.findall(r"\]\(([^)]+)\)", PAGE.read_text()) == ["#your-own-modules"]
