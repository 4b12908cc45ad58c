"""Research uses the product; nothing of the product, or of its tests, uses research."""

from __future__ import annotations

import re

from research.evidence.files import ROOT

IMPORT = re.compile(r"^\s*(?:from|import)\s+research\b", re.MULTILINE)


def test_the_product_does_without_research() -> None:
    files = [path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    assert [str(path) for path in files if IMPORT.search(path.read_text())] == []
