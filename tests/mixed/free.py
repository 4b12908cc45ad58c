"""The optimum of a question in which some features of a linear model change by any amount.

Two classes, so that somebody passes where slope . x >= lead, with derived features computed in. Each person has
alternatives y of levers, whole steps and features that may move, and changes u of these:

    max sum_j v_j sum_y z_jy    s.t.   sum_i |slope_i| u_jyi >= lack_jy z_jy,   least_i z_jy <= u_jyi <= room_jyi z_jy
                                       sum_jy (base_jy,r z_jy + sum_i w_ji,r t_jyi) <= B_r,   sum_y z_jy <= 1
                                       t = u, or t >= 2 c u - c^2 z for tangents c of the square; quotas

Tangents are added at each solution until what it draws truly is within the budgets. With fewer, the program is relaxed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from maxflip import Quota
from tests.mixed.levers import is_frozen, is_inside
from tests.mixed.models import Floats
from tests.mixed.questions import Question
from tests.mixed.reference import (
    Optimum,
    alternatives,
    amounts_of,
    bounds,
    changed,
    followed,
    is_open,
    most_changes,
    weight_of,
)

SLACK = 1e-5  # of what free features draw: they draw so much more or less in the program, which HiGHS solves by 1e-6
BEYOND = 1e-6  # of a score: flips this close to the one required may be told otherwise by another arithmetic
FAR = 1e3  # a change that no person needs
ROUNDS = 60
EXACT = 1e-6  # sums of quarters are the same if they are this close


@dataclass(frozen=True, eq=False)
class Way:
    """An alternative of a person, and which free features move beside it.

    base (m,): what it draws without these   lack: of the score   weights (m, f): of these
    slope, least, room (f,): of each of these, in the direction that helps
    """

    row: int
    base: Floats
    lack: float
    slope: Floats
    least: Floats
    room: Floats
    weights: Floats
    squared: Floats  # (m,): whether a budget draws squares


def lead_of(question: Question) -> float:
    t = question.required
    return math.log(t / (1 - t)) if question.is_threshold else 2 * math.atanh(t)


def score(question: Question, x: Floats) -> Floats:
    logits = question.network.logits(x)
    return np.asarray(logits[:, question.target[0]] - logits[:, 1 - question.target[0]])


def slopes(question: Question) -> Floats:
    """(F,): of the score in each feature, with what follows from it"""
    start = question.values[:1]
    moved = followed(question, start[0], np.vstack([start, start + np.eye(start.shape[1])]))
    found = score(question, moved)
    return np.asarray(found[1:] - found[0])


def ways_of(question: Question, row: int, close: float) -> list[Way]:
    """close: how far beyond its lead a score must be"""
    every, slope = alternatives(question, row), slopes(question)
    lacks = lead_of(question) + close - score(question, every.after)
    before = every.after  # without free changes, after those by steps
    more = most_changes(question) - changed(question, every.on, every.changes)
    found = []
    for place in range(len(every)):
        for names in _modes(question, row, lacks[place], int(more[place])):
            columns = [question.features.index(name) for name in names]
            limits = [bounds(question.limit(name)) for name in names]
            room = [_room(limit, float(before[place, i]), slope[i]) for limit, i in zip(limits, columns, strict=True)]
            least = [question.limit(name).smallest or 0.0 for name in names]
            way = Way(
                row, every.draws[place], lacks[place], np.abs(slope[columns]), np.array(least), np.array(room),
                _weights(question, row, names, slope[columns]),
                np.array([budget.cost == "squared" for budget in question.budgets.values()]),
            )  # fmt: skip
            if (way.room >= way.least).all() and way.slope @ way.room >= way.lack:
                found.append(way)
    return _undominated(found)


def _modes(question: Question, row: int, lack: float, most: int) -> Iterator[tuple[str, ...]]:
    """Which free features move: none where nothing is lacking; else each set, if leaving one out makes a difference"""
    if lack <= 0:
        yield ()
        return
    free = [name for name in question.free if not is_frozen(question, name, row)]
    is_plain = all(question.limit(name).smallest is None for name in free) and most >= len(free)
    for size in [len(free)] if is_plain else range(1, min(len(free), most) + 1):
        yield from itertools.combinations(free, size)


def _room(limit: tuple[float, float, int], start: float, slope: float) -> float:
    low, high, sign = limit
    if slope * sign < 0:
        return 0.0
    return float(np.clip(max(high, start) - start if slope > 0 else start - min(low, start), 0.0, FAR))


def _weights(question: Question, row: int, names: tuple[str, ...], slope: Floats) -> Floats:
    budgets = question.budgets.values()
    found = [
        [
            float(weight_of(budget, name, row, way)) * is_inside(question, budget.only, row)
            for name, way in zip(names, slope, strict=True)
        ]
        for budget in budgets
    ]
    return np.array(found).reshape(len(found), len(names))


def _undominated(ways: list[Way]) -> list[Way]:
    """Without those of which another one draws no more, lacks no more and has no less room for the same features"""

    def outdoes(one: Way, other: Way) -> bool:
        same = one.weights.shape == other.weights.shape and bool((one.slope == other.slope).all())
        enough = one.lack <= 0 or (same and bool((one.room >= other.room).all() and (one.least <= other.least).all()))
        return enough and one.lack <= other.lack and bool((one.base <= other.base).all())

    kept: list[Way] = []
    for way in ways:
        if not any(outdoes(one, way) for one in kept):
            kept = [*(one for one in kept if not outdoes(way, one)), way]
    return kept


class Program:
    """The program of these ways, with the tangents added so far.   columns: z, then u and t of each way"""

    def __init__(self, question: Question, ways: list[Way], amounts: Floats) -> None:
        self.question, self.ways, self.amounts = question, ways, amounts
        sizes = [len(way.slope) for way in ways]
        self.u = len(ways) + np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int) if ways else np.zeros(0, int)
        self.t = self.u + sum(sizes)
        self.width = len(ways) + 2 * sum(sizes)
        self.rows: list[tuple[dict[int, float], float]] = []  # of sum <= amount
        for y, way in enumerate(ways):
            self._link(y, way)
        for row in range(len(question)):
            self.rows.append(({y: 1.0 for y, way in enumerate(ways) if way.row == row}, 1.0))
        for quota in question.quotas:
            self._quota(quota)

    def _link(self, y: int, way: Way) -> None:
        need = {self.u[y] + i: -slope for i, slope in enumerate(way.slope)}
        self.rows.append(({**need, y: max(way.lack, 0.0)}, 0.0))
        for i, (least, room) in enumerate(zip(way.least, way.room, strict=True)):
            self.rows.append(({self.u[y] + i: 1.0, y: -room}, 0.0))
            self.rows.append(({self.u[y] + i: -1.0, y: least}, 0.0))
            self.touch(y, i, max(least, 0.25))

    def _quota(self, quota: Quota) -> None:
        for amount, sign in ((quota.at_least, -1.0), (quota.at_most, 1.0)):
            if amount is not None:
                share, number = (amount, 0.0) if isinstance(amount, float) else (0.0, amount)
                inside = {y: float(is_inside(self.question, quota.group, way.row)) for y, way in enumerate(self.ways)}
                self.rows.append(({y: sign * (one - share) for y, one in inside.items()}, sign * number + 1e-9))

    def touch(self, y: int, i: int, at: float) -> None:
        """Add the tangent of the square there."""
        self.rows.append(({self.u[y] + i: 2 * at, self.t[y] + i: -1.0, y: -(at**2)}, 0.0))

    def _budgets(self) -> Iterator[tuple[dict[int, float], float]]:
        for r, amount in enumerate(self.amounts):
            entries: dict[int, float] = {}
            for y, way in enumerate(self.ways):
                entries[y] = way.base[r] / amount
                for i, weight in enumerate(way.weights[r]):
                    entries[(self.t if way.squared[r] else self.u)[y] + i] = weight / amount
            yield entries, 1.0

    def solve(self) -> Floats | None:
        """(width,) or None if nothing keeps the quotas"""
        every = [*self.rows, *self._budgets()]
        entries = [(k, column, value) for k, (row, _) in enumerate(every) for column, value in row.items()]
        k, columns, values = zip(*entries, strict=True)
        matrix = coo_array((values, (k, columns)), shape=(len(every), self.width)).tocsr()
        cost, whole, upper = np.zeros(self.width), np.zeros(self.width), np.full(self.width, np.inf)
        cost[: len(self.ways)] = [-self.question.worths[way.row] for way in self.ways]
        whole[: len(self.ways)] = upper[: len(self.ways)] = 1
        limits = LinearConstraint(matrix, -np.inf, [amount for _, amount in every])
        found = milp(cost, constraints=limits, integrality=whole, bounds=Bounds(0, upper), options={"mip_rel_gap": 0})
        return None if found.x is None else np.asarray(found.x)

    def drawn(self, x: Floats) -> Floats:
        """(m,): what a solution draws truly"""
        total = np.zeros(len(self.amounts))
        for y in np.flatnonzero(x[: len(self.ways)] > 0.5).tolist():
            way, u = self.ways[y], self.changes(x, y)
            total += way.base + np.where(way.squared[:, None], way.weights * u**2, way.weights * u).sum(axis=1)
        return total

    def changes(self, x: Floats, y: int) -> Floats:
        return x[self.u[y] : self.u[y] + len(self.ways[y].slope)]

    def worth(self, x: Floats) -> float:
        return math.fsum(self.question.worths[self.ways[y].row] for y in np.flatnonzero(x[: len(self.ways)] > 0.5))


def optimum(question: Question) -> Optimum:
    """Of a question of a linear model in which some features change by any amount"""
    return Optimum(_best(question, 1), _best(question, -1))


def _best(question: Question, sign: int) -> float:
    """sign: 1 if it must surely be reached; -1 if it must surely not be exceeded"""
    rows = np.flatnonzero(is_open(question)).tolist()
    ways = [_dearer(way, sign * SLACK) for row in rows for way in ways_of(question, row, sign * BEYOND)]
    if not ways:
        return -math.inf if any(isinstance(q.at_least, int) for q in question.quotas) else 0.0
    amounts = amounts_of(question) * (1 - sign * SLACK * question.is_decimal)
    program, most = Program(question, ways, amounts), 0.0
    for _ in range(ROUNDS):
        x = program.solve()
        if x is None:
            return -math.inf
        most = program.worth(x)
        if (program.drawn(x) <= amounts * (1 + EXACT) + EXACT).all():
            return most
        for y in np.flatnonzero(x[: len(ways)] > 0.5).tolist():
            for i, at in enumerate(program.changes(x, y)):
                program.touch(y, i, float(at))
    return 0.0 if sign > 0 else most  # tangents lie outside: more than this is not possible


def _dearer(way: Way, by: float) -> Way:
    """What free features draw is rounded; what is drawn besides is not."""
    return replace(way, weights=way.weights * (1 + by))
