"""Pictures of concepts, flips and prices are what their scripts draw, and docs/concepts.md says what its show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.benchmarks import draw_concepts, draw_flip, draw_prices
from research.evidence.files import ROOT
from research.evidence.results import Results
from research.pictures import PICTURES, save
from research.tests.pictures import assert_same, texts

PAGE = (ROOT / "docs" / "concepts.md").read_text()


def test_the_pictures_are_drawn_from_solves(tmp_path: Path) -> None:
    drawn = draw_concepts.drawn()
    assert len(drawn) == 5
    for name, figure in drawn.items():
        assert_same(save(figure, tmp_path / name), PICTURES / name)
        assert f"](pictures/{name})" in PAGE


def test_the_price_on_the_page_is_that_of_the_picture() -> None:
    assert "0.143 per unit" in texts(PICTURES / "concept-price.svg")
    assert "at 0.143 per unit" in PAGE


def test_the_picture_of_prices_is_that_of_its_result_file(tmp_path: Path) -> None:
    figure = draw_prices.picture(Results().rows("prices_picture"))
    assert_same(save(figure, tmp_path / "prices.svg"), PICTURES / "prices.svg")


def test_the_picture_of_flips_shows_those_of_its_result_file(tmp_path: Path) -> None:
    confidence, flips = draw_flip.asked()
    for flip, row in zip(flips, Results().rows("flip_picture"), strict=True):
        assert flip.name == row["flip"]
        np.testing.assert_allclose(flip.change, row["change"], atol=1e-3)
        assert flip.cost == pytest.approx(row["cost"], rel=1e-3)
    assert_same(save(draw_flip.picture(confidence, flips), tmp_path / "flip.svg"), PICTURES / "flip.svg")
