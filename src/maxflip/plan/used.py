"""The solver that a plan was made with, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from maxflip._util.frozen import FrozenMap


@dataclass(frozen=True)
class SolverUsed:
    """A solver with its options. str() gives the Python expression, "Prices(rounds=12, chunk=4096, effort=1.0)".

    Attributes:
        name: name of its class.
        options: {name: value} of all options.
        groups: number of groups with their own part of every budget (proportional allocation); None: all samples share
            every budget.
        labelled: whether the groups were given by a label per sample, and not by similar lengths.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=lambda: FrozenMap({}))
    groups: int | None = None
    labelled: bool = False

    @classmethod
    def of(cls, solver: object, groups: int | None = None, *, labelled: bool = False) -> SolverUsed:
        options = {f.name: getattr(solver, f.name) for f in fields(solver)} if is_dataclass(solver) else {}
        return cls(type(solver).__name__, FrozenMap(options), groups, labelled)

    @property
    def allocation(self) -> str:
        return "joint" if self.groups is None else "proportional"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"
