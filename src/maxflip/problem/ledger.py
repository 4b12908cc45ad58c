"""Ledger: all budgets of a problem, compiled to matrices, and what differs between samples beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxflip._util.exact import ExactSum
from maxflip._util.exact import Part as SumPart
from maxflip._util.frozen import Frozen, FrozenMap, read_only
from maxflip._util.parallel import each, each_part, filled
from maxflip._util.types import Floats, Rows
from maxflip.problem.budgets import HUGE, POWERS, Budget, ways_of
from maxflip.problem.own import Differences, Own, Part, Weight, largest, of_each, shared

TINY = 2.0**-1000


class Pair(NamedTuple):
    """Weights of squared and of absolute changes: (m, K) where all samples weigh alike, else (B, m, K)"""

    squared: Floats
    absolute: Floats


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of some samples: of changes up and down, the very same pair where both ways weigh alike."""

    up: Pair
    down: Pair

    def at(self, slots: NDArray[np.int64]) -> Weights:
        """Of some of the slots."""
        return self._each(lambda part: part[..., slots])

    def of_budgets(self, budgets: NDArray[np.int64]) -> Weights:
        return self._each(lambda part: part[..., budgets, :])

    def _each(self, some: Callable[[Floats], Floats]) -> Weights:
        up = Pair(*map(some, self.up))
        return Weights(up, up if self.down is self.up else Pair(*map(some, self.down)))

    @property
    def largest(self) -> Pair:
        """(m, K): the larger one of both ways, and of all samples"""
        both = (np.maximum(up, down) for up, down in zip(self.up, self.down, strict=True))
        return Pair(*(part if part.ndim == 2 else part.max(axis=0, initial=0.0) for part in both))


@dataclass(frozen=True, eq=False)
class Ledger(Frozen):
    """Budgets r = 1..m over features i = 1..F. What a change d of a picked sample draws:

        a_r(d) = flat_r + sum_i squared_ri d_i^2 + absolute_ri |d_i|

    amounts (m,)   flat (m,): what everybody picked draws whatever their change; 1 of a count
    squared, absolute (m, F): weights of changes up   squared_down, absolute_down: of changes down, the very same arrays
    where both ways weigh alike
    draws (m, F): whether a change of the feature draws on the budget
    powers (m,): 2 of squared budgets, 1 of absolute ones, 0 of others
    counts (m,): the budgets that count people: each one draws 1, or nothing outside the part of the cohort that draws
    functions (k,): the budgets that are functions of more than d. What these draw is asked of the problem (`Bill`), and
    given to the methods below as `called` (c, k).
    own: what differs between samples; there the arrays above hold 0. With it, methods need the `rows` (c,) of changes.
    """

    names: tuple[str, ...]
    amounts: Floats
    flat: Floats
    squared: Floats
    absolute: Floats
    squared_down: Floats
    absolute_down: Floats
    draws: NDArray[np.bool_]
    powers: NDArray[np.int64]
    counts: NDArray[np.bool_]
    functions: NDArray[np.int64]
    own: Differences = field(default_factory=Differences)

    @classmethod
    def compile(cls, budgets: Mapping[str, Budget], features: tuple[str, ...]) -> Ledger:
        """Budgets must be valid, with their `uses` filled in and columns read (Problem sees to all of that)."""
        known = list(budgets.values())
        up, down, draws = (np.zeros((len(known), len(features))) for _ in range(3))
        own: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        position = {name: i for i, name in enumerate(features)}
        for r, budget in enumerate(known):
            for name, weight in budget.weights.items():
                at, both = (r, position[name]), ways_of(weight)
                draws[at] = max(map(largest, both))
                up[at], down[at] = (0.0, 0.0) if budget.is_function else map(shared, both)
                if np.isnan(up[at] + down[at]):
                    up[at], down[at], own[at] = 0.0, 0.0, _of_each_way(*both)
        fees = {r: b.flat.values for r, b in enumerate(known) if isinstance(b.flat, Own) and np.isnan(shared(b.flat))}
        inside = {r: b.only.inside for r, b in enumerate(known) if isinstance(b.only, Part) and not b.only.inside.all()}
        powers = np.array([POWERS.get(b.cost_name, 0) for b in known], dtype=np.int64)
        one_way = {power: read_only(np.where(powers[:, None] == power, up, 0.0)) for power in (1, 2)}
        other = (
            one_way
            if (up == down).all()
            else {p: read_only(np.where(powers[:, None] == p, down, 0.0)) for p in one_way}
        )
        return cls(
            names=tuple(budgets),
            amounts=read_only(np.array([b.amount for b in known], dtype=np.float64)),
            flat=read_only(np.nan_to_num(np.array([shared(b.flat) for b in known]))),
            squared=one_way[2],
            absolute=one_way[1],
            squared_down=other[2],
            absolute_down=other[1],
            draws=read_only(draws > 0),
            powers=read_only(powers),
            counts=read_only(np.array([b.counts_people for b in known], dtype=bool)),
            functions=read_only(np.flatnonzero([b.is_function for b in known])),
            own=Differences(FrozenMap(own), FrozenMap(fees), FrozenMap(inside)),
        )

    def at(self, columns: NDArray[np.int64]) -> Ledger:
        """The same budgets over places, of which `columns` tells the feature: a change counts wherever it is made."""
        squared, absolute = read_only(self.squared[:, columns]), read_only(self.absolute[:, columns])
        return replace(
            self,
            squared=squared,
            absolute=absolute,
            squared_down=squared if self.is_two_way else read_only(self.squared_down[:, columns]),
            absolute_down=absolute if self.is_two_way else read_only(self.absolute_down[:, columns]),
            draws=read_only(self.draws[:, columns]),
            own=self.own.at(columns),
        )

    @cached_property
    def are_flat(self) -> NDArray[np.bool_]:
        """(m,): the budgets on which no change draws: those that count people, or add up their fees"""
        flat = self.powers == 0
        flat[self.functions] = False
        return np.asarray(flat)

    @property
    def is_two_way(self) -> bool:
        """Whether changes up and down of the same size draw the same."""
        return self.squared is self.squared_down and self.absolute is self.absolute_down

    @cached_property
    def actionable(self) -> NDArray[np.bool_]:
        """(F,): features that some budget weighs and no empty budget forbids, to everybody and both ways."""
        return np.asarray(self.draws.any(axis=0) & ~self.forbidden)

    @cached_property
    def forbidden(self) -> NDArray[np.bool_]:
        """(F,): features that an empty budget weighs, for everybody and both ways"""
        weighs = (self.squared + self.absolute > 0) & (self.squared_down + self.absolute_down > 0)
        weighs[self.functions] = self.draws[self.functions]
        weighs[sorted(self.own.inside)] = False
        return np.asarray(weighs[self.amounts == 0].any(axis=0))

    @cached_property
    def closes(self) -> bool:
        """Whether some actionable feature is closed to some sample, or one way alone."""
        if self.own.inside:
            return True
        empty = np.flatnonzero((self.amounts == 0) & (self.powers > 0))
        return bool(len(empty) and (not self.is_two_way or any(r in empty for r, _ in self.own.weights)))

    def closed(self, rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(B, F) twice: features that these samples may not change upwards, and downwards: those of no budget that the
        sample draws on, and those of an empty one."""
        members = np.ones((len(rows), len(self.names)), dtype=bool)
        for r, inside in self.own.inside.items():
            members[:, r] = inside[rows]
        frozen = members.astype(np.float64) @ self.draws == 0
        up, down = frozen, frozen.copy()
        called = self.draws & (self.powers == 0)[:, None]
        for r in np.flatnonzero(self.amounts == 0).tolist():
            up |= members[:, r, None] & (self.squared + self.absolute + called)[r].astype(bool)
            down |= members[:, r, None] & (self.squared_down + self.absolute_down + called)[r].astype(bool)
        for (r, i), own in self.own.weights.items():
            if self.amounts[r] == 0:
                up[:, i] |= members[:, r] & (own[0][rows] > 0)
                down[:, i] |= members[:, r] & (own[1][rows] > 0)
        return up, down

    def weights(self, rows: Rows | None = None, more: Floats | float = 0.0) -> Weights:
        """Of these samples, of which there may be none given where all draw alike.   more (m, F): squared, added"""
        squared = self.squared + more
        plain = Pair(squared, self.absolute), Pair(self.squared_down + more, self.absolute_down)
        if not self.own.weights and not self.own.inside:
            return Weights(plain[0], plain[0] if self.is_two_way else plain[1])
        known = _rows_known(rows)
        up = self._of_each(plain[0], known, 0)
        is_two_way = self.is_two_way and all(one is other for one, other in self.own.weights.values())
        return Weights(up, up if is_two_way else self._of_each(plain[1], known, 1))

    def _of_each(self, plain: Pair, rows: Rows, way: int) -> Pair:
        """(B, m, F) each.   way: 0 up, 1 down"""
        pair = Pair(*(np.repeat(part[None], len(rows), axis=0) for part in plain))
        for (r, i), both in self.own.weights.items():
            pair[2 - self.powers[r]][:, r, i] = both[way][rows]
        for r, inside in self.own.inside.items():
            for part in pair:
                part[~inside[rows], r] = 0.0
        return pair

    def flats(self, rows: Rows) -> Floats:
        """What these samples draw whatever their change: (m,) where all draw alike, else (B, m)"""
        if not self.own.fees and not self.own.inside:
            return self.flat
        flat = np.repeat(self.flat[None], len(rows), axis=0)
        for r, fee in self.own.fees.items():
            flat[:, r] = fee[rows]
        for r, inside in self.own.inside.items():
            flat[~inside[rows], r] = 0.0
        return flat

    def consumption(self, changes: Floats, called: Floats | None = None, rows: Rows | None = None) -> Floats:
        """(c, F) changes -> (c, m) consumption, rounded: for solvers. Decisions use `fits`."""
        largest = max(each_part(lambda part: np.abs(changes[part]).max(initial=0.0), len(changes)), default=0.0)
        if largest < HUGE:
            drawn = filled(lambda part: self._plain_consumption(changes[part]), (len(changes), len(self.names)))
        else:
            with np.errstate(over="ignore"):  # what is beyond float64 is inf, and fits no budget
                drawn = np.stack([self._consumption(r, changes) for r in range(len(self.names))], axis=1)
        if len(self.functions):
            drawn[:, self.functions] = _known(called) + self.flat[self.functions]
        if self.own:
            self._add_own(drawn, changes, _rows_known(rows))
        return drawn

    def _add_own(self, drawn: Floats, changes: Floats, rows: Rows) -> None:
        """In place, to what all draw alike (c, m)."""
        for (r, i), (up, down) in self.own.weights.items():
            weight = np.where(changes[:, i] > 0, up[rows], down[rows])
            with np.errstate(over="ignore"):
                drawn[:, r] += _drawn_by(weight, changes[:, i], self.powers[r])
        for r, fee in self.own.fees.items():
            drawn[:, r] += fee[rows]
        for r, inside in self.own.inside.items():
            drawn[~inside[rows], r] = 0.0

    def by_slot(self, rows: Rows, slots: Rows, change: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """(e,) each: what a change of one slot of a sample draws, summed over the budgets that are no functions; and on
        how many budgets it draws, a function counting twice, as what it says depends on all changes"""
        cost, number = np.zeros(len(slots)), np.zeros(len(slots), dtype=np.int64)
        for r, power in enumerate(self.powers.tolist()):
            draws = self.draws[r, slots]
            if r in self.own.inside:
                draws = draws & self.own.inside[r][rows]
            number += draws * (1 if power else 2)
            if power:
                up, down = self._weights_of(r, rows, slots)
                cost += np.where(draws, np.where(change > 0, up, down) * np.abs(change) ** power, 0.0)
        return cost, number

    def _weights_of(self, r: int, rows: Rows, slots: Rows) -> tuple[Floats, Floats]:
        """(e,) each: the weights of changes of one slot of a sample, up and down"""
        up, down = (self.squared + self.absolute)[r, slots], (self.squared_down + self.absolute_down)[r, slots]
        for (budget, i), own in self.own.weights.items():
            if budget == r:
                up, down = (np.where(slots == i, w[rows], a) for w, a in zip(own, (up, down), strict=True))
        return up, down

    @cached_property
    def _own_feature(self) -> NDArray[np.int64] | None:
        """(m,): the feature that each budget weighs, squared, where it is one for each: the paper's case"""
        alone = (self.squared > 0).sum(axis=1) == 1
        is_all = alone.all() and self.is_two_way and not self.absolute.any() and not self.flat.any()
        return self.squared.argmax(axis=1) if is_all else None

    def _plain_consumption(self, changes: Floats) -> Floats:
        if self._own_feature is not None:
            weight = self.squared[np.arange(len(self.names)), self._own_feature]
            with np.errstate(over="ignore"):
                return np.asarray(changes[:, self._own_feature] ** 2 * weight)
        with np.errstate(over="ignore"):
            if not self.is_two_way:
                return self._drawn_one_way(np.maximum(changes, 0.0), self.squared, self.absolute) + (
                    self._drawn_one_way(np.maximum(-changes, 0.0), self.squared_down, self.absolute_down) + self.flat
                )
            return np.asarray(self._drawn_one_way(changes, self.squared, self.absolute) + self.flat)

    def _drawn_one_way(self, changes: Floats, squared: Floats, absolute: Floats) -> Floats:
        drawn = changes**2 @ squared.T
        if absolute.any():
            drawn += np.abs(changes) @ absolute.T
        return np.asarray(drawn)

    def _consumption(self, r: int, changes: Floats) -> Floats:
        """(c,), whatever the size: a weight is multiplied in before the square, and a weight of 0 not at all."""
        drawn = np.full(len(changes), self.flat[r])
        for i, up, down in self._weighed(r):
            weight = np.where(changes[:, i] > 0, up, down)
            drawn += _drawn_by(weight, changes[:, i], self.powers[r])
        return drawn

    def _weighed(self, r: int) -> Iterator[tuple[int, float, float]]:
        """(feature, weight of changes up, weight of changes down), of those that all samples weigh alike"""
        up, down = self.squared[r] + self.absolute[r], self.squared_down[r] + self.absolute_down[r]
        for i in np.flatnonzero((up > 0) | (down > 0)).tolist():
            yield i, float(up[i]), float(down[i])

    def _exact(
        self,
        changes: Floats,
        called: Floats | None,
        picked: Rows | None,
        budgets: Sequence[int],
        rows: Rows | None,
    ) -> dict[int, ExactSum]:
        """What a plan with these changes (c, F), or those picked of them, draws from some budgets.
        What a function draws is the float64 that it says; their sum is exact like any other."""
        own = slice(None) if picked is None else picked
        count = len(changes) if picked is None else len(picked)
        whose = None if rows is None else rows[own]
        columns = np.empty((changes.shape[1], count))  # one after the other, so that a whole one is added up at once

        def fill(part: slice) -> None:
            columns[:, part] = changes[part if picked is None else picked[part]].T

        def total(r: int) -> ExactSum:
            said = None
            if r in self.functions:  # what is no number is seen before it would be added up
                said = self._said(r, called)[own]
                said = np.where(np.isfinite(said), said, 0.0)
            return self._exact_sum(r, columns, said, whose)

        if budgets:
            each_part(fill, count)
        return dict(zip(budgets, each(total, budgets), strict=True))

    def _exact_sum(self, r: int, columns: Floats, said: Floats | None, rows: Rows | None) -> ExactSum:
        """columns (F, count)   said (count,): by the function   rows (count,)"""
        inside = self.own.inside.get(r)
        if inside is not None:
            there = inside[_rows_known(rows)]
            columns, said = columns[:, there], None if said is None else said[there]
            rows = _rows_known(rows)[there]
        power: Any = int(self.powers[r])
        parts: list[SumPart] = [] if said is None else [(1.0, said, 1)]
        for i, up, down in self._weighed(r):
            if up == down:
                parts.append((up, columns[i], power))
            else:
                parts += [(up, np.maximum(columns[i], 0.0), power), (down, np.minimum(columns[i], 0.0), power)]
        for (budget, i), (up_own, down_own) in self.own.weights.items():
            if budget == r:
                own = np.where(columns[i] > 0, up_own[_rows_known(rows)], down_own[_rows_known(rows)])
                parts.append((own, columns[i], power))
        if r in self.own.fees:
            parts.append((1.0, self.own.fees[r][_rows_known(rows)], 1))
        elif self.flat[r]:
            parts.append((1.0, np.full(columns.shape[1], self.flat[r]), 1))
        return ExactSum(parts)

    def _said(self, r: int, called: Floats | None) -> Floats:
        """(c,): what the function of budget r says"""
        return np.asarray(_known(called)[:, np.searchsorted(self.functions, r)])

    def overspent(
        self, changes: Floats, called: Floats | None = None, picked: Rows | None = None, rows: Rows | None = None
    ) -> list[int]:
        """The budgets that the plan with these changes (c, F), or those picked of them, exceeds; decided exactly."""
        own = slice(None) if picked is None else picked
        count = len(changes) if picked is None else len(picked)
        doubtful = np.flatnonzero(~self._clearly_within(changes, picked)).tolist()
        exact = self._exact(changes, called, picked, [r for r in doubtful if not self._plain_counts[r]], rows)
        over = [
            r
            for r in doubtful
            if not (count <= self.amounts[r] if self._plain_counts[r] else exact[r].at_most(self.amounts[r]))
        ]
        unpaid = [r for r in self.functions.tolist() if not np.isfinite(self._said(r, called)[own]).all()]
        return sorted({*over, *unpaid})

    @cached_property
    def _plain_counts(self) -> NDArray[np.bool_]:
        """(m,): counts of all who are picked"""
        plain = self.counts.copy()
        plain[sorted(self.own.inside)] = False
        return plain

    @cached_property
    def _is_plain(self) -> NDArray[np.bool_]:
        """(m,): whether all draw alike, both ways, and nothing whatever their change"""
        alike = (self.squared == self.squared_down) & (self.absolute == self.absolute_down)
        plain = alike.all(axis=1) & (self.flat == 0)
        plain[sorted(self.own.budgets)] = False
        return np.asarray(plain)

    def _clearly_within(self, changes: Floats, picked: Rows | None) -> NDArray[np.bool_]:
        """(m,): by sums of each column in plain floats, and what rounding can have done; of plain budgets alone.

        Nothing in such a sum is negative, so that no rounding of a product, or of one of the sums, takes away more than
        2**-53 of the whole; nor more than TINY, where products are below the smallest float64, times the weight that a
        square is multiplied by afterwards.
        """

        def sizes(part: slice) -> Floats:
            some = np.abs(changes[part if picked is None else picked[part]])
            with np.errstate(over="ignore"):
                return np.stack([np.einsum("ci,ci->i", some, some), some.sum(axis=0)])

        count = len(changes) if picked is None else len(picked)
        squares, absolutes = np.sum([np.zeros((2, changes.shape[1])), *each_part(sizes, count)], axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            drawn = np.where(self.squared > 0, self.squared * squares, 0.0).sum(axis=1)
            drawn += np.where(self.absolute > 0, self.absolute * absolutes, 0.0).sum(axis=1)
            most = drawn * (1.0 + 4.0 * (count + self.squared.shape[1] + 4) * 2.0**-53)
            most += count * TINY * (1.0 + self.squared.sum(axis=1))
        clear = (most < self.amounts) & self._is_plain
        clear[self.functions] = False
        return np.asarray(clear)

    def excess(self, r: int, changes: Floats, called: Floats | None = None, rows: Rows | None = None) -> float:
        """What the plan draws from budget r beyond its amount, rounded once."""
        amount = float(self.amounts[r])
        if self._plain_counts[r]:
            return len(changes) - amount
        return self._exact(changes, called, None, [r], rows)[r].beyond(amount)

    def fits(self, changes: Floats, rows: Rows | None = None) -> bool:
        return not self.overspent(changes, rows=rows)

    def spent(self, changes: Floats, called: Floats | None = None, rows: Rows | None = None) -> Floats:
        """(m,): exact consumption of a plan, rounded once to the nearest float64."""
        exact = self._exact(changes, called, None, np.flatnonzero(~self._plain_counts).tolist(), rows)
        return np.array(
            [float(len(changes)) if counts else exact[r].rounded() for r, counts in enumerate(self._plain_counts)],
            dtype=float,
        )


def _drawn_by(weight: Floats, change: Floats, power: int) -> Floats:
    """(c,): weight phi(change)"""
    return (np.sqrt(weight) * change) ** 2 if power == 2 else weight * np.abs(change)


def _of_each_way(up: Weight, down: Weight) -> tuple[Floats, Floats]:
    """(n,) each; the very same array where both ways weigh alike"""
    n = next(len(way.values) for way in (up, down) if isinstance(way, Own))
    first = read_only(of_each(up, n))
    return first, first if up == down else read_only(of_each(down, n))


def _rows_known(rows: Rows | None) -> Rows:
    if rows is None:
        raise ValueError("samples differ in what they draw: whose changes these are is needed (Problem.bill)")
    return rows


def _known(called: Floats | None) -> Floats:
    if called is None:
        raise ValueError("a budget is a function: what the changes draw depends on where they start (Problem.bill)")
    return called
