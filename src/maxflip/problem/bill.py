"""Bill: what some changes of certain samples draw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.parallel import filled
from maxflip._util.types import Floats, Rows
from maxflip.problem.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Bill:
    """What c changes of certain samples draw, each function asked once.

    rows (C,): whose changes these are   changes (C, F)   called (C, k): see Ledger
    picked (c,): which of them; None: all. Changes stay where they are, since very many take long to copy.
    """

    ledger: Ledger
    rows: Rows
    changes: Floats
    called: Floats
    picked: Rows | None = None

    def of(self, which: Any) -> Bill:
        """Of these of the changes alone."""
        picked = np.arange(len(self.changes))[which] if self.picked is None else self.picked[which]
        return replace(self, picked=picked)

    def __len__(self) -> int:
        return len(self.changes) if self.picked is None else len(self.picked)

    @property
    def _own(self) -> Any:
        return slice(None) if self.picked is None else self.picked

    @property
    def moved(self) -> Floats:
        """(c, F): sizes of the changes"""
        return np.asarray(np.abs(self.changes[self._own]))

    @property
    def sizes(self) -> Floats:
        """(c, .): a change with no larger number among these draws no more from any budget."""
        return np.hstack([self._moved(slice(None)), self.called[self._own], *self._numbers()])

    def sizes_for(self, r: int) -> Floats:
        """(c, .): those on which budget r depends."""
        ledger = self.ledger
        of_changes = self.called[self._own][:, ledger.functions == r]
        if r not in ledger.functions:
            of_changes = self._moved(ledger.draws[r])
        return np.hstack([of_changes, *self._numbers(r)])

    def _moved(self, slots: Any) -> Floats:
        """How far these slots change; of budgets that price both ways differently, up and down apart"""
        changes = self.changes[self._own][:, slots]
        if self.ledger.is_two_way and all(up is down for up, down in self.ledger.own.weights.values()):
            return np.asarray(np.abs(changes))
        return np.hstack([np.maximum(changes, 0.0), np.maximum(-changes, 0.0)])

    def _numbers(self, r: int | None = None) -> list[Floats]:
        """What differs between the samples; nothing where all draw alike"""
        return [self.ledger.own.numbers(self.rows[self._own], r)] if self.ledger.own else []

    @property
    def can_be_paid(self) -> NDArray[np.bool_]:
        """(c,): no function says inf"""
        return np.asarray(np.isfinite(self.called[self._own]).all(axis=1))

    @cached_property
    def consumption(self) -> Floats:
        """(c, m), rounded"""
        return filled(self._consumption, (len(self), len(self.ledger.names)))

    def _consumption(self, part: slice) -> Floats:
        own = part if self.picked is None else self.picked[part]
        return self.ledger.consumption(self.changes[own], self.called[own], self.rows[own])

    def overspent(self) -> list[int]:
        return self.ledger.overspent(self.changes, self.called, self.picked, self.rows)

    def excess(self, r: int) -> float:
        return self.ledger.excess(r, self.changes[self._own], self.called[self._own], self.rows[self._own])

    def fits(self) -> bool:
        return not self.overspent()

    def spent(self) -> Floats:
        return self.ledger.spent(self.changes[self._own], self.called[self._own], self.rows[self._own])
