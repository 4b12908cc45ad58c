"""Of the others the best is named, ties are told, and maxflip is none of them."""

from __future__ import annotations

from research.evidence.rivals import best_of_others


def test_the_best_of_others_is_never_ours() -> None:
    ours = {("maxflip", "Prices"): 9.0, ("maxflip", "Nearest, 1/B"): 8.0}
    assert best_of_others(ours) is None
    assert best_of_others(ours | {("DiCE", "random"): 0.0}) == (0.0, "DiCE, random")


def test_ties_are_told() -> None:
    counts = {("foolbox", "FMN"): 3.0, ("foolbox", "DDN"): 5.0, ("ART", "C&W"): 4.9, ("maxflip", "Nearest"): 5.0}
    assert best_of_others(counts) == (5.0, "foolbox, DDN")
    assert best_of_others(counts | {("ART", "JSMA"): 5.0}) == (5.0, "foolbox, DDN (and 1 more)")
