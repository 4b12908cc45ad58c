"""docs/api.md shows every public name, with the signature it has, and its examples run."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import maxflip

PAGE = (Path(__file__).parent.parent / "docs" / "api.md").read_text()


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) > 5
    for block in blocks:
        exec(block, space)
    assert space["plan"].count > 0
    assert space["events"]
    assert (tmp_path / "plan.html").exists()


@pytest.mark.parametrize("name", maxflip.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}\b|^## .*\b{name}\b", PAGE, re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Budget",
            "Problem",
            "solve",
            "Nearest",
            "Prices",
            "resolve",
            "frontier",
            "Frontier",
            "look",
            "suggest_margin",
            "SuggestedMargin",
            "tune",
            "Tuned",
        ),
        *("MS", "BCMS", "CCMS", "KL"),
        *("TorchClassifier", "SklearnClassifier", "TreeClassifier", "Ensemble", "Tempered", "Tempered.fit"),
        "Cohort.table",
    ],
)
def test_signatures_are_the_true_ones(name: str) -> None:
    thing: Any = maxflip
    for part in name.split("."):
        thing = getattr(thing, part)
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in inspect.signature(thing).parameters.values()]
    text = str(inspect.Signature(parameters)).replace("'", '"')
    assert f"`{name}{text}`" in PAGE


@pytest.mark.parametrize(
    "name",
    [
        *("Budget", "Problem", "solve", "Nearest", "Prices", "resolve", "frontier", "tune", "look"),
        *("TorchClassifier", "SklearnClassifier", "TreeClassifier", "Ensemble", "Tempered", "Tempered.fit"),
        *("Cohort.table", "Cohort.sequences"),
    ],
)
def test_help_has_a_line_for_every_argument(name: str) -> None:
    """In the form that the site's reference reads too."""
    thing: Any = maxflip
    for part in name.split("."):
        thing = getattr(thing, part)
    for argument in inspect.signature(thing).parameters:
        assert re.search(rf"^\s+{argument}: ", thing.__doc__, re.MULTILINE), argument


@pytest.mark.parametrize("name", ["Plan", "Frontier", "Tuned"])
def test_help_has_a_line_for_every_field(name: str) -> None:
    thing = getattr(maxflip, name)
    for field in fields(thing):
        assert re.search(rf"^\s+{field.name}: ", thing.__doc__, re.MULTILINE), field.name


@pytest.mark.parametrize("name", maxflip.__all__)
def test_every_public_name_has_a_docstring_of_its_own(name: str) -> None:
    thing = getattr(maxflip, name)
    assert "__doc__" in vars(thing) if isinstance(thing, type) else thing.__doc__
    assert thing.__doc__.strip()


def test_the_reference_has_every_public_name() -> None:
    reference = (Path(__file__).parent.parent / "docs" / "reference.md").read_text()
    assert set(re.findall(r"^::: maxflip\.(\w+)$", reference, re.MULTILINE)) == set(maxflip.__all__)
