"""docs/data.md states what the program prints for the real data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from maxflip._util.events import silent
from maxflip.cli.datasets import describe
from tests.real_data import real_data

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text()


@pytest.mark.parametrize("name", ["physionet2012", "oulad", "credit_default"])
def test_the_page_states_what_is_printed(name: str) -> None:
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert section
    stated = re.search(r"```text\n(.*?)```", section[1], re.DOTALL)
    assert stated
    printed = describe(name, real_data(name), silent).splitlines()
    assert [line for line in stated[1].splitlines() if line not in printed] == []
