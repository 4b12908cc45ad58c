"""Small questions whose budgets differ between people, and what is right, worked out without the library.

Linear models of two classes: sample j passes where slope . d >= lack_j. Everything that a budget draws is held here as
plain arrays, besides the Budget that asks for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from maxflip import Budget, Plan, Problem, Ways
from tests.examples import linear_problem, missing_score

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SLACK = 1e-6  # a subset counts only if it keeps every budget by so much: the guard moves flips by less


@dataclass(frozen=True, eq=False)
class Terms:
    """What a budget draws of each sample.   power: 2, 1, or 0 of a count

    up, down (n, F): weights   fee (n,)   inside (n,)   weighs (F,): whether it weighs the feature
    """

    amount: float
    power: int
    up: Floats
    down: Floats
    fee: Floats
    inside: Mask
    weighs: Mask

    def drawn(self, row: int, change: Floats) -> Fraction:
        if not self.inside[row]:
            return Fraction(0)
        total = Fraction(float(self.fee[row]))
        for i, d in enumerate(change.tolist()):
            weight = Fraction(float((self.up if d > 0 else self.down)[row, i]))
            total += weight * abs(Fraction(d)) ** self.power if self.power and d else Fraction(0)
        return total

    def spent(self, plan: Plan) -> Fraction:
        each = zip(plan.selected.tolist(), plan.changes, strict=True)
        return sum((self.drawn(row, change) for row, change in each), Fraction(0))


@dataclass(frozen=True, eq=False)
class Case:
    """slope (F,)   x (n, F)   lack (n,)   low, high (n, F): of changes, without what budgets freeze"""

    problem: Problem
    slope: Floats
    lack: Floats
    low: Floats
    high: Floats
    worth: Floats
    terms: dict[str, Terms]

    @property
    def box(self) -> tuple[Floats, Floats]:
        """(n, F) each: changes allowed by limits and budgets."""
        low, high = self.low.copy(), self.high.copy()
        weighed = np.zeros(low.shape, dtype=bool)
        for terms in self.terms.values():
            weighed |= terms.inside[:, None] & terms.weighs
            if terms.amount == 0 and terms.power:
                high[terms.inside[:, None] & (terms.up > 0)] = 0.0
                low[terms.inside[:, None] & (terms.down > 0)] = 0.0
        low[~weighed] = high[~weighed] = 0.0
        return low, high

    @property
    def rows(self) -> list[int]:
        """Those who do not pass."""
        return np.flatnonzero(self.lack > 0).tolist()

    def subsets(self, above: float) -> Iterator[list[int]]:
        """Those worth more than so much, the most valuable first."""
        some = [
            list(who)
            for size in range(1, len(self.rows) + 1)
            for who in itertools.combinations(self.rows, size)
            if math.fsum(self.worth[list(who)]) > above * (1 + 1e-9)
        ]
        yield from sorted(some, key=lambda who: -math.fsum(self.worth[who]))

    def fits(self, who: list[int]) -> bool:
        """Whether changes are found that flip all of them within the budgets: the largest share spent is minimised."""
        low, high = (side[who] for side in self.box)
        reach = np.where(self.slope > 0, high, -low) * np.abs(self.slope)
        if not (np.where(self.slope == 0, 0.0, reach).sum(axis=1) > self.lack[who] * (1 + SLACK)).all():
            return False
        priced = [t for t in self.terms.values() if t.inside[who].any() and t.amount < math.inf]
        flat = [math.fsum(t.fee[who][t.inside[who]]) for t in priced]
        moving = [(t, paid) for t, paid in zip(priced, flat, strict=True) if t.power and t.amount > 0]
        if any(paid > t.amount for t, paid in zip(priced, flat, strict=True)):
            return False
        return not moving or self._found(who, low, high, moving)

    def _found(self, who: list[int], low: Floats, high: Floats, moving: list[tuple[Terms, float]]) -> bool:
        shape = (len(who), len(self.slope))
        unit = np.maximum(np.abs(self.lack[who])[:, None] / np.maximum(np.abs(self.slope), 1e-9), 1e-9)

        def split(v: Floats) -> tuple[Floats, Floats]:
            up, down = v[:-1].reshape(2, *shape)
            return up * unit, down * unit

        def spare(v: Floats) -> Floats:
            up, down = split(v)
            shares = []
            for t, paid in moving:
                there = t.inside[who][:, None]
                drawn = (there * (t.up[who] * up**t.power + t.down[who] * down**t.power)).sum()
                shares.append((paid + float(drawn)) / t.amount)
            return np.asarray(v[-1] - np.array(shares))

        def passing(v: Floats) -> Floats:
            up, down = split(v)
            return np.asarray((self.slope * (up - down)).sum(axis=1) - self.lack[who])

        start = np.clip(self.lack[who][:, None] * self.slope / (self.slope**2).sum(), low, high)
        first = np.concatenate(
            [np.maximum(start, 0).ravel() / unit.ravel(), np.maximum(-start, 0).ravel() / unit.ravel()]
        )
        begun = np.append(first, 1.0 + max(0.0, -float(spare(np.append(first, 0.0)).min())))
        caps = [*(high / unit).ravel(), *(-low / unit).ravel()]
        found = minimize(
            lambda v: v[-1],
            begun,
            jac=lambda v: np.append(np.zeros(len(v) - 1), 1.0),
            bounds=[*((0.0, float(cap)) for cap in caps), (0.0, None)],
            constraints=[{"type": "ineq", "fun": spare}, {"type": "ineq", "fun": passing}],
            method="SLSQP",
            options={"maxiter": 150, "ftol": 1e-9},
        )
        return bool((passing(found.x) >= -1e-9).all() and (spare(np.append(found.x[:-1], 1.0 - SLACK)) >= 0).all())


def random_case(seed: int, most: int = 6, **asked: Any) -> Case:
    """Up to 6 people and 3 features; fees, parts, weights of one's own and of both ways among the budgets.

    asked: kinds that every budget has: fee, only, own, ways = True or False; None: by chance
    """
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(2, most + 1)), int(rng.integers(1, 4))
    slope = rng.normal(size=width) * rng.choice([0.3, 1.0, 2.0], size=width)
    x = rng.normal(size=(n, width)) - np.sign(slope) * rng.uniform(0, 1.5)
    lack = missing_score(slope, x)
    limits, low, high = _limits(rng, x)
    terms: dict[str, Terms] = {}
    budgets: dict[str, Budget] = {}
    for number in range(int(rng.integers(1, 4))):
        name = f"budget {number}"
        budgets[name], terms[name] = _budget(rng, n, width, lack, slope, asked)
    if not any(t.weighs.any() for t in terms.values()):
        budgets["all"] = Budget(math.inf, {f"x{i}": 1.0 for i in range(width)})
        ones = np.ones((n, width))
        terms["all"] = Terms(math.inf, 2, ones, ones, np.zeros(n), np.ones(n, bool), np.ones(width, bool))
    worth = np.ones(n) if rng.random() < 0.5 else rng.choice([0.5, 1.0, 2.0, 3.7], size=n)
    if limits:
        limits = {f"x{i}": limits[f"x{i}"] for i in range(width) if any(t.weighs[i] for t in terms.values())}
    problem = linear_problem(slope, x, budgets, limits=limits, worth=worth)
    return Case(problem, slope, lack, low, high, worth, terms)


def _limits(rng: np.random.Generator, x: Floats) -> tuple[dict[str, Any] | None, Floats, Floats]:
    if rng.random() < 0.6:
        return None, np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
    far = np.asarray(rng.uniform(0.5, 4.0, size=x.shape[1]))
    limits = {f"x{i}": (x[:, i] - far[i], x[:, i] + far[i]) for i in range(len(far))}
    return limits, np.broadcast_to(-far, x.shape).copy(), np.broadcast_to(far, x.shape).copy()


def _budget(
    rng: np.random.Generator, n: int, width: int, lack: Floats, slope: Floats, asked: dict[str, Any]
) -> tuple[Budget, Terms]:
    def chance(kind: str, part: float) -> bool:
        said = asked.get(kind)
        return bool(rng.random() < part) if said is None else bool(said)

    power = int(rng.choice([2, 1, 0], p=[0.45, 0.4, 0.15]))
    up, down = np.zeros((n, width)), np.zeros((n, width))
    uses: dict[str, Any] = {}
    for i in range(width) if power else ():
        if rng.random() < 0.25:
            continue
        ways = [_weight(rng, n, own=chance("own", 0.4)) for _ in range(2 if chance("ways", 0.35) else 1)]
        up[:, i], down[:, i] = (np.broadcast_to(way, n) for way in (ways[0], ways[-1]))
        uses[f"x{i}"] = ways[0] if len(ways) == 1 else Ways(up=ways[0], down=ways[1])
    power = power if uses else 0
    has_fee = chance("fee", 0.4)
    given = _weight(rng, n, own=chance("own", 0.5)) * rng.choice([0.1, 1.0])
    fee = np.broadcast_to(given, n) if has_fee else np.full(n, 0.0 if power else 1.0)
    inside = rng.random(n) < 0.6 if chance("only", 0.35) else np.ones(n, bool)
    inside = inside if inside.any() else np.ones(n, bool)
    rough = np.maximum(lack, 0.0)[:, None] * slope / (slope**2).sum()
    each = fee + (np.where(rough > 0, up, down) * np.abs(rough) ** power).sum(axis=1) * (power > 0)
    amount = float(rng.uniform(0.1, 0.9) * each[inside & (lack > 0)].sum() + 1e-3)
    if power == 0 and not has_fee:
        amount = float(max(1, round(amount)))
    weighs = np.asarray((np.maximum(up, down) > 0).any(axis=0))
    only = None if inside.all() and rng.random() < 0.5 else np.flatnonzero(inside).tolist()
    cost = {2: "squared", 1: "absolute", 0: "count"}[power]
    budget = Budget(amount, uses or None, cost, fee=given if has_fee else None, only=only)
    return budget, Terms(amount, power, up, down, fee, inside, weighs)


def _weight(rng: np.random.Generator, n: int, *, own: bool) -> Any:  # a number, or (n,)
    if not own:
        return float(rng.choice([0.25, 1.0, 3.0]))
    return rng.choice([0.0, 0.5, 1.0, 2.0], size=n, p=[0.1, 0.3, 0.3, 0.3]) * rng.uniform(0.5, 2.0, size=n)
