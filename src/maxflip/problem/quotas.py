"""Quotas: how many of those picked belong to a group. They are rows of the program beside the budgets.

    at least the share s of those picked    sum_j (s - q_j) z_j <= 0        q_j: whether sample j belongs to the group
    at most the share s of those picked     sum_j (q_j - s) z_j <= 0        z_j: whether it is picked
    at least k people                       sum_j -q_j z_j <= -k
    at most k people                        sum_j q_j z_j <= k

Whether a plan keeps them is decided in whole numbers. A share is the decimal number that is written: 0.4 is 2/5, not
the float64 beside it, of which 4 in 10 would fall short.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from maxflip._util.faults import Fault, about, wrong
from maxflip._util.frozen import Frozen, read_only
from maxflip._util.messages import counted, shown
from maxflip._util.types import Floats, Mask, Rows
from maxflip.data.cohort import Cohort
from maxflip.problem.members import group_from_table, group_name, group_table, read_group

Amount = int | float


@dataclass(frozen=True)
class Quota:
    """How many of those picked belong to a group: at least so many, at most so many, or both.

    A whole number (an int, such as 40) is a number of people, and a float, such as 0.4, a share of those picked: 1 is
    one person, 1.0 is everybody. Those in the wanted class already are not picked, and do not count.

    Args:
        group: (column, value): those with this value in a column, a feature or another column of the cohort; or a list
            of ids.
        at_least: an int >= 1, or a float in (0, 1]; None: any number.
        at_most: an int >= 0, or a float in (0, 1]; None: any number.
    """

    group: tuple[str, str | float] | Collection[str]
    at_least: Amount | None = None
    at_most: Amount | None = None

    @property
    def name(self) -> str:
        """The group in words: "sex = 'F'", "3 people named by id"."""
        return group_name(self.group)

    @property
    def in_words(self) -> str:
        return f"{self.name}: {self.bounds}"

    def as_table(self) -> dict[str, Any]:
        """The quota as a table of a job and of summary.json."""
        sides = {"at_least": self.at_least, "at_most": self.at_most}
        return {**group_table(self.group), **{side: amount for side, amount in sides.items() if amount is not None}}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Quota:
        """The other way."""
        return cls(group_from_table(table), table.get("at_least"), table.get("at_most"))

    @property
    def bounds(self) -> str:
        """ "at least 40 % of those picked", "at least 3 people, at most 20 people"."""
        sides = (("at least", self.at_least), ("at most", self.at_most))
        return ", ".join(f"{side} {amount_in_words(amount)}" for side, amount in sides if amount is not None)


def amount_in_words(amount: Amount) -> str:
    """
    >>> amount_in_words(0.125), amount_in_words(1200), amount_in_words(1)
    ('12.5 % of those picked', '1,200 people', '1 person')
    """
    if isinstance(amount, float):
        return f"{float(100 * share_of(amount)):.15g} % of those picked"
    return counted(amount, "person", "people")


def share_of(amount: float) -> Fraction:
    """The decimal number that a share is written as.

    >>> share_of(0.4)
    Fraction(2, 5)
    """
    return Fraction(repr(float(amount)))


@dataclass(frozen=True)
class Side:
    """One bound of a quota.   quota: its number among all   sign: 1 for at most, -1 for at least

    The group may have `count` of `picked` people if  sign (count - share picked) <= 0  or  sign (count - number) <= 0.
    """

    quota: int
    sign: int
    number: int
    share: Fraction | None

    @property
    def part(self) -> Fraction:
        """The share; 0 if it is a number."""
        return Fraction(0) if self.share is None else self.share

    def allows(self, count: Rows, picked: Rows) -> Mask:
        """(k,): whether `picked` (k,) people may include `count` (k,) of the group"""
        most = self.number if self.share is None else self.share.numerator * picked
        return np.asarray(self.sign * (count * self.part.denominator - most) <= 0)


@dataclass(frozen=True, eq=False)
class Quotas(Frozen):
    """Quotas over n samples, one row for each bound: picked samples z keep it if  coefficients z <= amounts.

    asked: as they are asked, with the rows of each group   inside (len(asked), n): who belongs to each group
    """

    asked: tuple[Quota, ...]
    inside: Mask

    def __len__(self) -> int:
        """Q: the number of rows"""
        return len(self.sides)

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """(Q,)

        Not more than n people are picked, so that a share may be replaced by the nearest fraction inside its bound with
        a denominator of at most n. Then what people add up to is a multiple of 1 / denominator, and rounding cannot
        hide that a quota is missed.
        """
        found, most = [], self.inside.shape[1]
        for number, quota in enumerate(self.asked):
            if isinstance(quota.at_least, float):
                found.append(Side(number, -1, 0, least_fraction(share_of(quota.at_least), most)))
            elif quota.at_least is not None:
                found.append(Side(number, -1, quota.at_least, None))
            if isinstance(quota.at_most, float):
                found.append(Side(number, 1, 0, 1 - least_fraction(1 - share_of(quota.at_most), most)))
            elif quota.at_most is not None:
                found.append(Side(number, 1, quota.at_most, None))
        return tuple(found)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the groups are values of."""
        return tuple(dict.fromkeys(quota.group[0] for quota in self.asked if isinstance(quota.group, tuple)))

    @cached_property
    def coefficients(self) -> Floats:
        """(Q, n)"""
        rows = [side.sign * (self.inside[side.quota] - float(side.part)) for side in self.sides]
        return read_only(np.array(rows, dtype=np.float64).reshape(len(rows), self.inside.shape[1]))

    @cached_property
    def amounts(self) -> Floats:
        """(Q,): the right sides b_q; 0 for shares"""
        return read_only(np.array([side.sign * side.number for side in self.sides], dtype=np.float64))

    @cached_property
    def steps(self) -> Floats:
        """(Q,): sums of a row's coefficients are multiples of this"""
        return read_only(np.array([1.0 / side.part.denominator for side in self.sides], dtype=np.float64))

    def counts(self, rows: Rows) -> Rows:
        """(len(asked),): how many of the samples `rows` belong to each group"""
        return np.asarray(self.inside[:, rows].sum(axis=1), dtype=np.int64)

    def broken(self, rows: Rows) -> list[int]:
        """The rows that a plan with these samples breaks; decided exactly."""
        counts, picked = self.counts(rows), np.array(len(rows))
        return [q for q, side in enumerate(self.sides) if not side.allows(counts[side.quota], picked)]

    def hold(self, rows: Rows) -> bool:
        """Whether a plan with these samples keeps all quotas; decided exactly."""
        return not self.broken(rows)

    def held_by_prefixes(self, rows: Rows) -> Mask:
        """(len(rows) + 1,): whether the first 0, 1, 2, ... of these samples keep all quotas"""
        picked = np.arange(len(rows) + 1)
        counts = np.zeros((len(self.asked), len(rows) + 1), dtype=np.int64)
        np.cumsum(self.inside[:, rows], axis=1, out=counts[:, 1:])
        kept = [side.allows(counts[side.quota], picked) for side in self.sides]
        return np.asarray(np.all([np.ones(len(rows) + 1, dtype=bool), *kept], axis=0))

    @property
    def demanding(self) -> tuple[int, ...]:
        """The rows that a plan without anybody breaks: at least so many people."""
        return tuple(q for q, side in enumerate(self.sides) if side.sign < 0 and side.share is None)

    def demanded(self) -> Rows:
        """Rows of the samples in the groups of these quotas."""
        asked = [self.sides[q].quota for q in self.demanding]
        return np.flatnonzero(self.inside[asked].any(axis=0))

    def worth(self, worth: Floats, prices: Floats) -> Floats:
        """(n,): v_j - sum_q price_q c_qj, what a sample is worth at prices (Q,) of the quotas"""
        return worth - prices @ self.coefficients if len(self) else worth


def least_fraction(share: Fraction, most: int) -> Fraction:
    """The least fraction >= share whose denominator is at most `most`.

    The neighbour above p / q in the Farey sequence of that order is a / b with a q - p b = 1 and the largest such b.

    >>> least_fraction(Fraction("0.3333333333333333"), 1000), least_fraction(Fraction("0.001"), 10)
    (Fraction(1, 3), Fraction(1, 10))
    """
    near = share.limit_denominator(most)
    if near >= share:
        return near
    p, q = near.numerator, near.denominator
    b = -pow(p, -1, q) % q
    b += (most - b) // q * q
    return Fraction(1 + b * p, b * q)


def keeping(quotas: Quotas, rows: Rows, first: int) -> Rows:
    """An order of these samples (c,), as places in `rows`, of which many prefixes keep the quotas.

    The next sample is the one with which the quotas are missed least; of those the one that comes first in `rows`. The
    `first` samples of `rows` stay before all others.
    """
    kinds, kind = np.unique(quotas.inside[:, rows], axis=1, return_inverse=True)
    kind = kind.reshape(-1)
    sides = [
        (side.sign, side.number, float(side.part), [int(inside) for inside in kinds[side.quota]])
        for side in quotas.sides
    ]
    counts = [0] * len(sides)
    order: list[int] = []

    def missed(k: int) -> float:
        """By how many people the quotas are missed in all, once one more of kind k is picked."""
        picked = len(order) + 1
        each = zip(counts, sides, strict=True)
        return sum(max(0.0, sign * (n + of[k] - number - share * picked)) for n, (sign, number, share, of) in each)

    for part in (np.arange(first), np.arange(first, len(rows))):
        waiting = [deque(part[kind[part] == k].tolist()) for k in range(kinds.shape[1])]
        while some := [k for k, those in enumerate(waiting) if those]:
            best = min(some, key=lambda k: (round(missed(k), 6), waiting[k][0]))
            order.append(waiting[best].popleft())
            counts = [n + of[best] for n, (_, _, _, of) in zip(counts, sides, strict=True)]
    return np.array(order, dtype=np.int64)


def read_quotas(given: Any, cohort: Cohort, exclude: Rows) -> tuple[Quotas, list[Fault]]:
    """quotas of a Problem, and their faults.   exclude: rows that must not be picked"""
    if given is None:
        return Quotas((), np.zeros((0, len(cohort)), dtype=bool)), []
    listed = [given] if isinstance(given, Quota) else list(given) if isinstance(given, (list, tuple)) else None
    if listed is None or not all(isinstance(one, Quota) for one in listed):
        wanted = "a list of Quota(('sex', 'F'), at_least=0.4)"
        return Quotas((), np.zeros((0, len(cohort)), dtype=bool)), [
            about("quotas", f"got {shown(given)}; wanted {wanted}.")
        ]
    asked, inside, faults = [], [], []
    for number, quota in enumerate(listed, start=1):
        group, members, found = read_group(("quotas", "group"), quota.group, cohort)
        sides = {name: getattr(quota, name) for name in ("at_least", "at_most")}
        found += bound_faults(sides)
        if not found:
            can_be_picked = members.copy()
            can_be_picked[exclude] = False
            found += _size_faults(quota, int(can_be_picked.sum()))
        faults += [replace(fault, entries=(number,)) for fault in found]
        asked.append(Quota(group, *(None if found else _plain(amount) for amount in sides.values())))
        inside.append(members)
    shape = (len(asked), len(cohort))
    return Quotas(tuple(asked), read_only(np.array(inside, dtype=bool).reshape(shape))), faults


def _is_number(amount: Any) -> bool:
    is_real = isinstance(amount, (int, float, np.integer, np.floating))
    return is_real and not isinstance(amount, bool) and (isinstance(amount, int) or np.isfinite(amount))


def _plain(amount: Any) -> Amount | None:
    if amount is None:
        return None
    return int(amount) if isinstance(amount, (int, np.integer)) else float(amount)


def bound_faults(sides: Mapping[str, Any]) -> Iterator[Fault]:
    """Of at_least and at_most by themselves, and beside each other."""
    given = {name: amount for name, amount in sides.items() if amount is not None}
    if not given:
        yield about(("quotas", "at_least"), "give at least one of the two.", ("quotas", "at_most"))
    says = {name: _bound_fault(amount, least=int(name == "at_least")) for name, amount in given.items()}
    yield from (wrong(("quotas", name), given[name], fault) for name, fault in says.items() if fault)
    if len(given) == 2 and not any(says.values()):
        low, high = given["at_least"], given["at_most"]
        if isinstance(low, (float, np.floating)) == isinstance(high, (float, np.floating)) and low > high:
            yield about(("quotas", "at_least"), f"{low} is above at_most {high}. Swap them.", ("quotas", "at_most"))


def _bound_fault(amount: Any, least: int) -> str:
    """What is wrong with one bound; "" if nothing is.   least: the least number of people"""
    if not _is_number(amount):
        return "must be a whole number of people, or a share of those picked in (0, 1]."
    if not isinstance(amount, (float, np.floating)):
        return "" if amount >= least else f"must be at least {least}, as a number of people."
    if amount.is_integer() and amount != 1:
        return f"a float is a share of those picked. Write {int(amount)} for so many people."
    return "" if 0 < amount <= 1 else "a float is a share of those picked, in (0, 1]."


def _size_faults(quota: Quota, size: int) -> Iterator[Fault]:
    """size: how many of the group may be picked"""
    if quota.at_least is not None and not isinstance(quota.at_least, (float, np.floating)) and quota.at_least > size:
        says = f"the group has only {counted(size, 'sample')} that may be picked. Ask for fewer."
        yield wrong(("quotas", "at_least"), quota.at_least, says)
