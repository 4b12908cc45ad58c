"""Pictures that are compared: what they say, their colours, and where lines and marks are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest


def texts(path: Path) -> str:
    return " ".join(
        "".join(element.itertext()).strip()
        for element in ET.parse(path).getroot().iter()
        if element.tag.endswith("}text")
    )


def places(svg: str) -> list[float]:
    """Of all lines and marks; letters are text."""
    found = re.findall(r' (?:d|x|y|transform)="([^"]*)"', svg)
    return [float(number) for path in found for number in re.findall(r"-?[\d.]+", path)]


def assert_same(new: Path, old: Path) -> None:
    """Another matplotlib may move a line by a hair; other results, solvers or styles are seen."""
    drawn, committed = new.read_text(), old.read_text()
    assert texts(new) == texts(old), new.name
    assert re.findall(r"#[0-9a-f]{6}", drawn) == re.findall(r"#[0-9a-f]{6}", committed), new.name
    assert len(places(drawn)) > 100
    assert places(drawn) == pytest.approx(places(committed), abs=0.5), f"{new.name}: draw it again"
