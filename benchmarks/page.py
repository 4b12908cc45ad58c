"""Sections of a results page that a benchmark writes."""

from __future__ import annotations

import re
from pathlib import Path


def put(page: Path, benchmark: str, name: str, text: str) -> None:
    """Between the section's marks."""
    begin, end = f"<!-- {name}: written by benchmarks/{benchmark} -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page.read_text()))
