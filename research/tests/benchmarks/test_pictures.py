"""Pictures of docs/concepts.md are what their script draws, and the page says what they show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "concepts.md").read_text()


def test_the_pictures_are_drawn_from_solves(tmp_path: Path) -> None:
    script = ROOT / "research" / "benchmarks" / "draw_concepts.py"
    result = subprocess.run([sys.executable, script, tmp_path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert len(drawn) == 5
    for name, text in drawn.items():
        assert text == (ROOT / "docs" / "pictures" / name).read_text(), f"{name}: draw it again"
        assert f"](pictures/{name})" in PAGE


def test_the_price_on_the_page_is_that_of_the_picture() -> None:
    assert "0.143 per unit" in (ROOT / "docs" / "pictures" / "concept-price.svg").read_text()
    assert "at 0.143 per unit" in PAGE
