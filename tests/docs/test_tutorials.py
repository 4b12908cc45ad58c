"""Tutorials run as they stand, and print what stands in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import printed_and_shown
from tests.real_data import real_data

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
DATA = {"actions.md": "credit_default", "credit.md": "credit_default", "intensive_care.md": "physionet2012"}


@pytest.mark.parametrize("name", sorted(path.name for path in TUTORIALS.glob("*.md")))
def test_a_tutorial_prints_what_it_shows(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in DATA:
        real_data(DATA[name])  # skips without it
    if name == "pipeline.md":
        pytest.importorskip("skops.io", reason="needs the extra `sklearn`")
    monkeypatch.chdir(ROOT)  # the trained network is named from there
    printed, shown = printed_and_shown((TUTORIALS / name).read_text(), capsys)
    assert printed == shown


def test_there_are_tutorials_for_all_data_named_here() -> None:
    assert set(DATA) < {path.name for path in TUTORIALS.glob("*.md")}
