"""A claim of the paper, and how it went where it was tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from research.evidence.intervals import paired

KINDS = ("paper", "binding")

Spot = tuple[str, str]  # where, of whom


@dataclass(frozen=True)
class Tried:
    """numbers: what decided   form: how they are said

    is_clear: whether chance is left out of how it went; None where the claim goes by means alone
    """

    holds: bool
    numbers: Mapping[str, float]
    form: str = ".3g"
    is_clear: bool | None = None

    @property
    def said(self) -> str:
        return ", ".join(f"{name} {number:{self.form}}" for name, number in self.numbers.items())


@dataclass
class Claim:
    """says: the paper   rule: when it holds in one place

    places: (where, of whom) -> how it went. A claim about several algorithms is tried of each.
    """

    says: str
    rule: str
    places: dict[Spot, Tried] = field(default_factory=dict)

    def tried(
        self,
        where: str,
        holds: bool,
        numbers: Mapping[str, float],
        form: str = ".3g",
        whom: str = "",
        decides: Iterable[float] | None = None,
    ) -> None:
        """decides: what is above 0 where the claim holds, for each seed"""
        is_clear = None if decides is None else paired(decides).sign == (1 if holds else -1)
        self.places[where, whom] = Tried(bool(holds), dict(numbers), form, is_clear)

    @property
    def held(self) -> int:
        return sum(place.holds for place in self.places.values())

    @property
    def has_intervals(self) -> bool:
        return any(place.is_clear is not None for place in self.places.values())

    @property
    def clear(self) -> int:
        """Places in which it holds clearly."""
        return sum(place.holds and bool(place.is_clear) for place in self.places.values())

    @property
    def clearly_not(self) -> int:
        return sum(not place.holds and bool(place.is_clear) for place in self.places.values())

    @property
    def verdict(self) -> str:
        if not self.places:
            return "not measured yet"
        if self.held == len(self.places) and (not self.has_intervals or 2 * self.clear >= len(self.places)):
            return "confirmed"
        mostly = 2 * self.held >= len(self.places)
        ours, theirs = (self.clear, self.clearly_not) if mostly else (self.clearly_not, self.clear)
        if ours < 2 * theirs:
            return "mixed"
        return "in part" if mostly else "not confirmed"

    def with_budgets(self, kind: str) -> Claim:
        """Of the places that have budgets of this kind. kind: one of KINDS"""
        return replace(self, places={spot: tried for spot, tried in self.places.items() if kind in spot[0].split()})

    @property
    def shares(self) -> str:
        """Of each algorithm, and with each kind of budgets, where there are several."""
        of_whom = self._tally([whom for _, whom in self.places])
        of_kind = self._tally([_kind(where) for where, _ in self.places])
        return "; ".join(part for part in (of_whom, of_kind) if part)

    def _tally(self, names: Sequence[str]) -> str:
        found: dict[str, list[bool]] = {}
        for name, place in zip(names, self.places.values(), strict=True):
            found.setdefault(name, []).append(place.holds)
        return ", ".join(f"{n} {sum(each)} of {len(each)}" for n, each in found.items()) if len(found) > 1 else ""

    @property
    def failing(self) -> dict[Spot, Tried]:
        return {spot: place for spot, place in self.places.items() if not place.holds}


def _kind(where: str) -> str:
    return next((f"{kind} budgets" for kind in KINDS if kind in where.split()), "")
