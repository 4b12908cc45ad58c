"""Levers: switches beside the features of a table. A lever that is on changes features in a fixed way.

What the model sees of a sample with start x, switches z and changes d of its features:

    E(x, z) + d,    E applies the effects of the levers that are on, one after the other, in the order of the levers

Each effect is one float64 operation on one feature: v + number, v * number, or the number itself. Whoever repeats them
in this order gets the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from maxflip._util.frozen import Frozen, freeze
from maxflip._util.types import Floats, Mask, Rows

if TYPE_CHECKING:
    import torch

Way = Literal["add", "times", "set"]
MOST_ALTERNATIVES = 10_000  # combinations of levers that are gone through for every sample
Values = TypeVar("Values", Floats, "torch.Tensor")


@dataclass(frozen=True)
class Effect:
    """What a lever does to one feature.   feature: its column"""

    feature: int
    way: Way
    number: float

    def after(self, values: Values) -> Values:
        if self.way == "add":
            return values + self.number
        return values * self.number if self.way == "times" else values * 0.0 + self.number


@dataclass(frozen=True, eq=False)
class Levers(Frozen):
    """L levers of n samples.

    names: (L,)   effects: of each   allowed (1 or n, L): who may get which
    apart (L, L): which two may not go together   counted (L,): which count towards `most`
    """

    names: tuple[str, ...]
    effects: tuple[tuple[Effect, ...], ...]
    allowed: Mask
    apart: Mask
    counted: Mask
    most: int

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.names)

    def done(self, x: Values, z: Values) -> Values:
        """E(x, z), as arrays or as tensors.   x (B, F)   z (B, L) of 0 and 1"""
        moved = x + 0.0  # a copy
        for lever, effects in enumerate(self.effects):
            on = z[:, lever] != 0
            for effect in effects if bool(on.any()) else ():
                moved[on, effect.feature] = effect.after(moved[on, effect.feature])
        return moved

    def touched(self, z: Floats, width: int) -> Mask:
        """(B, F): the features that the levers change that are on in z (B, L)   width: F"""
        changes = np.zeros((len(self), width), dtype=bool)
        for lever, effects in enumerate(self.effects):
            changes[lever, [effect.feature for effect in effects]] = True
        return np.asarray((z != 0) @ changes)

    def lawful(self, rows: Rows, z: Floats) -> Mask:
        """(B,): whether these switches z (B, L) are 0 or 1, allowed for the samples, and may go together."""
        on = z == 1.0
        known = (on | (z == 0.0)).all(axis=1)
        allowed = self.allowed if len(self.allowed) == 1 else self.allowed[rows]
        clash = ((on.astype(np.float64) @ self.apart) * on).any(axis=1)
        return np.asarray(known & (on <= allowed).all(axis=1) & ~clash & (on[:, self.counted].sum(axis=1) <= self.most))

    def alternatives(self) -> Mask:
        """(M, L): which levers may be on together, whoever gets them; the first is none of them"""
        found: list[tuple[int, ...]] = [()]
        for chosen in found:  # grows while it is gone through: a set of levers is followed by those with one more
            for lever in range(chosen[-1] + 1 if chosen else 0, len(self)):
                more = (*chosen, lever)
                if not self.apart[lever, list(chosen)].any() and self.counted[list(more)].sum() <= self.most:
                    found.append(more)
            if len(found) > MOST_ALTERNATIVES:
                break
        switches = np.zeros((len(found), len(self)), dtype=bool)
        for number, chosen in enumerate(found):
            switches[number, list(chosen)] = True
        return switches
