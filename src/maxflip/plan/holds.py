"""How many flips still pass if changes are carried out in part or rounded, or in other models: the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Holds:
    """How many flips of a plan still pass if changes are carried out in part or rounded.

    Attributes:
        uptake: {share of every change that is carried out: how many pass}, for 1, 0.9, 0.8 and 0.5.
        rounded: how many pass if every changed value is rounded to its usual digits.
        digits: {feature: its usual digits, as a number of decimals}.
    """

    uptake: Mapping[float, int]
    rounded: int
    digits: Mapping[str, int]


@dataclass(frozen=True)
class Judged:
    """How many of a plan's flips pass in another model.

    Attributes:
        name: of the model: its file, or "model 1", "model 2" in the order given.
        before: how many of the samples picked pass in it before any change.
        after: how many pass after their full change.
    """

    name: str
    before: int
    after: int
