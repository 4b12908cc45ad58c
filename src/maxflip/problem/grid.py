"""Grid: which of the changes within the limits may be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property

import numpy as np

from maxflip._util.frozen import Frozen, read_only
from maxflip._util.types import Floats, Mask, Rows

SAME = 1e-6  # of a step: for Rounded, a limit this close to a multiple is that multiple, written otherwise
EXACT = 2**53  # whole numbers below this are float64


@dataclass(frozen=True, eq=False)
class Grid(Frozen):
    """The rules of single changes, over K slots: steps and smallest sizes. All arithmetic is in float64.

        g(v) = rint(v / step) * top / bottom: the multiple of the step that is nearest to v

    Where the step is that of a Limit (`is_rule`), a change d that is not 0 is lawful only if

        d = g(x + d) - x    where x = g(x): a start on the grid leads to another point of it
        d = g(d)            elsewhere: so many whole steps from the start

    A change that is not 0 is lawful only if |g(d)| >= smallest where the step is a rule, elsewhere if |d| >= smallest.
    Where Rounded alone gives the step, changes with d = g(x + d) - x are preferred, but others are lawful too.

    step, top, bottom (K,): step = top / bottom; 0 where there is none   is_rule (K,)   smallest (K,): 0 where none is
    """

    step: Floats
    top: Floats
    bottom: Floats
    is_rule: Mask
    smallest: Floats

    @classmethod
    def of(
        cls,
        features: Sequence[str],
        steps: Mapping[str, float],
        smallest: Mapping[str, float],
        rounded: Mapping[str, float],
    ) -> Grid:
        """steps, smallest: of limits, by feature   rounded: the steps of Rounded, which count where limits have none"""
        every = {name: (step, step, 1.0) for name, step in rounded.items()}
        every |= {name: (step, *as_fraction(step)) for name, step in steps.items()}
        step, top, bottom = np.array([every.get(name, (0.0, 0.0, 1.0)) for name in features]).T
        is_rule = np.array([name in steps for name in features])
        least = np.array([smallest.get(name, 0.0) for name in features])
        return cls(*map(read_only, (step.copy(), top.copy(), bottom.copy(), is_rule, least)))

    def at(self, columns: Rows) -> Grid:
        """The same for places, of which `columns` tells the feature."""
        return Grid(*(read_only(getattr(self, part.name)[columns]) for part in fields(self)))

    @cached_property
    def is_free(self) -> bool:
        """Whether every change within the limits is as good as any other."""
        return not (self.step.any() or self.smallest.any())

    @cached_property
    def has_rules(self) -> bool:
        """Whether some changes within the limits are not lawful."""
        return bool(self.is_rule.any() or self.smallest.any())

    @cached_property
    def least(self) -> Floats:
        """(K,): the size of the smallest lawful change: the first multiple that is large enough; 0 where any is"""
        steps = np.ceil(self.smallest / self._unit)
        steps -= (steps > 0) & ((steps - 1) * self.top / self.bottom >= self.smallest)  # the quotient may round up
        return np.where(self.is_rule, steps * self.top / self.bottom, self.smallest)

    @cached_property
    def _unit(self) -> Floats:
        return np.where(self.step > 0, self.step, 1.0)

    def multiple(self, values: Floats) -> Floats:
        """g(v); where there is no step, what is returned means nothing"""
        return np.asarray(np.rint(values / self._unit) * self.top / self.bottom)

    def origin(self, start: Floats) -> Floats:
        """(B, K): steps are counted from 0 where this is 0, and from the start x where it is x"""
        return np.where(self.is_rule & (start != self.multiple(start)), start, 0.0)

    def onto(self, start: Floats, changes: Floats) -> Floats:
        """Changes (B, K) to the nearest points of the grid, limits or not; 0 stays 0."""
        from_start = self.origin(start) != 0
        nearest = np.where(from_start, self.multiple(changes), self.multiple(start + changes) - start)
        return np.where((self.step > 0) & (changes != 0), nearest, changes)

    def broken(self, start: Floats, changes: Floats) -> Mask:
        """(B, K): which changes are off the grid or smaller than the smallest change"""
        size = np.where(self.is_rule, np.abs(self.multiple(changes)), np.abs(changes))
        is_small = (changes != 0) & (size < self.smallest)
        return np.asarray(is_small | (self.is_rule & (self.onto(start, changes) != changes)))

    def settled(
        self, start: Floats, changes: Floats, low: Floats, high: Floats, within: Callable[[Floats], Floats]
    ) -> Floats:
        """Changes (B, K) near these that may be stored.   within(d): d moved inside the limits to the last bit"""
        near = self._nearest(start, self._large_enough(changes, low, high), low, high)
        inside = within(near)
        if not self.has_rules:
            return inside
        one_less = self.onto(start, near - np.sign(near) * self.step)
        inside = np.where(self.is_rule & (inside != near), one_less, inside)
        return np.where(self.broken(start, inside), 0.0, inside) + 0.0  # -0.0 becomes 0.0

    def _large_enough(self, changes: Floats, low: Floats, high: Floats) -> Floats:
        """Changes that are too small become the smallest lawful one or 0, whichever is nearer."""
        size = np.abs(changes)
        raised = np.sign(changes) * self.least
        fits = (2 * size >= self.least) & (low <= raised) & (raised <= high)
        return np.where(size < self.least, np.where(fits, raised, 0.0), changes)

    def _nearest(self, start: Floats, changes: Floats, low: Floats, high: Floats) -> Floats:
        """Changes to the nearest points of the grid with low <= change <= high, but never past the start.

        Where no point lies between the start and the limits, the value stays as it is.
        """
        done = self.onto(start, changes)
        back = self.onto(start, done - np.sign(changes) * self.step)
        room = np.where(self.is_rule, 0.0, SAME * self.step)
        for other in (back, np.zeros_like(changes)):
            wrong = (done != changes) & (
                (done < low - room) | (done > high + room) | (np.sign(done) * np.sign(changes) <= 0)
            )
            done = np.where(wrong, other, done)
        return np.clip(done, low, high)


def as_fraction(step: float) -> tuple[float, float]:
    """(top, bottom) with step = top / bottom, as the shortest decimal text of the step says.

    So three steps of 0.1 are 3 / 10 = 0.3, as one writes it, and not 3 * 0.1 = 0.30000000000000004.

    >>> as_fraction(0.1), as_fraction(2.5), as_fraction(100.0)
    ((1.0, 10.0), (5.0, 2.0), (100.0, 1.0))
    """
    exact = Fraction(repr(step))
    if max(exact.numerator, exact.denominator) < EXACT:
        return float(exact.numerator), float(exact.denominator)
    return step, 1.0
