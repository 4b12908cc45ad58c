"""Question: what was asked, as values. A plan keeps it, so that it can be read and compared without its problem."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maxflip._util.frozen import FrozenMap
from maxflip.problem.quotas import Quota

if TYPE_CHECKING:
    from maxflip.problem.problem import Problem

Measure = Literal["margin", "threshold", "decision margin"]
Way = Literal["up", "down"]
_WAYS: Mapping[int, Way | None] = {0: None, 1: "up", -1: "down"}


@dataclass(frozen=True)
class Lever:
    """A feature that may change, and where its value may lie afterwards. Start values outside widen this for a sample.

    Attributes:
        feature: its name.
        low: at least so much; None: no limit, or one of each sample's own.
        high: at most so much; None: no limit, or one of each sample's own.
        own: whether samples have limits of their own.
        direction: the only way it may go, "up" or "down"; None: both.
        step: values change by whole steps of this size; None: by any amount.
        smallest: a change is at least so large; None: of any size.
        by_actions: actions alone change it.
    """

    feature: str
    low: float | None = None
    high: float | None = None
    own: bool = False
    direction: Way | None = None
    step: float | None = None
    smallest: float | None = None
    by_actions: bool = False

    @property
    def is_limited(self) -> bool:
        return self.own or (self.low, self.high, self.direction) != (None, None, None)

    def as_table(self) -> dict[str, Any]:
        """In values that JSON has; without a step, a smallest change and actions where there are none."""
        extra = ("step", "smallest", "by_actions")
        return {key: value for key, value in asdict(self).items() if key not in extra or value}


@dataclass(frozen=True)
class Question:
    """What was asked, besides samples, budgets and worths.

    Attributes:
        wanted: the wanted classes, by name or else by output column; any of them will do. Empty: each sample has its
            own.
        measure: what the confidence is: "margin" (probability of the wanted class minus that of the best other),
            "threshold" (probability of the wanted class) or "decision margin" (the same of decision values).
        required: what the confidence must reach.
        levers: the features that may change, also those with limits that actions alone change.
        steps: of sequences, the steps that may change, in words; of a table, "".
        digest: SHA-256 of what the other fields only sum up: the wanted classes, limits and steps of each sample, and
            who is in the groups of quotas.
        derived: {feature: expression} of the features that follow from others.
        menu: actions, choices and one_hot, as a job has them, and most_actions; empty where there are none.
        quotas: on who is picked.
        most_changes: features of a sample that may change, at most; None: all of them.
        digest: SHA-256 of what the other fields only sum up: the wanted classes, limits and steps of each sample.
    """

    wanted: tuple[str | int, ...]
    measure: Measure
    required: float
    levers: tuple[Lever, ...] = ()
    steps: str = ""
    digest: str = ""
    derived: Mapping[str, str] = field(default_factory=lambda: FrozenMap({}), hash=False)
    menu: Mapping[str, Any] = field(default_factory=dict, hash=False)
    quotas: tuple[Quota, ...] = ()
    most_changes: int | None = None

    @classmethod
    def of(cls, problem: Problem) -> Question:
        goal, names = problem.goal, problem.classifier.classes
        columns = np.flatnonzero(goal.wanted[0]).tolist() if len(goal.wanted) == 1 else []
        slots = problem.limited
        first = slots[np.unique(problem.slots.feature[slots], return_index=True)[1]]  # of each feature
        levers = [_lever(problem, slot) for slot in first.tolist()]
        return cls(
            wanted=tuple(columns if names is None else [names[i] for i in columns]),
            measure="threshold" if goal.is_threshold else "decision margin" if goal.is_decision else "margin",
            required=goal.required,
            levers=tuple(lever for lever in levers if not lever.by_actions or lever.is_limited),
            steps=problem.steps,
            digest=_digest(problem),
            derived=problem.derived.texts,
            menu=problem.menu.as_table(),
            quotas=problem.quotas.asked,
            most_changes=problem.few.most,
        )

    @property
    def wanted_name(self) -> str | None:
        """The wanted class, where it is one and has a name."""
        only = self.wanted[0] if len(self.wanted) == 1 else None
        return only if isinstance(only, str) else None

    def as_table(self) -> dict[str, Any]:
        """In values that JSON has; without `most_changes`, `derived` and `menu` where there is nothing of the kind, and
        without the quotas, which summary.json has in a table of their own."""
        of_some = ("most_changes", "derived", "menu", "quotas")
        table = {key: value for key, value in asdict(self).items() if key not in of_some}
        table |= {"wanted": list(self.wanted), "levers": [lever.as_table() for lever in self.levers]}
        table |= {} if self.most_changes is None else {"most_changes": self.most_changes}
        table |= {"derived": dict(self.derived)} if self.derived else {}
        return table | ({"menu": dict(self.menu)} if self.menu else {})

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Question:
        levers = tuple(Lever(**lever) for lever in table["levers"])
        derived = FrozenMap(table.get("derived", {}))
        return cls(**{**table, "wanted": tuple(table["wanted"]), "levers": levers, "derived": derived})


def _digest(problem: Problem) -> str:
    limits, slots = problem.limits, problem.slots
    everyone = np.arange(len(problem))
    parts = [problem.goal.wanted, limits.lower, limits.upper, limits.direction, slots.feature]
    parts += slots.places(everyone).named
    parts += [problem.quotas.inside] if problem.quotas.asked else []
    parts += [] if problem.menu.levers is None else [problem.menu.levers.allowed]
    found = hashlib.sha256()
    for part in parts:
        found.update(f"{part.shape} {part.dtype.str} ".encode())
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def _lever(problem: Problem, slot: int) -> Lever:
    lower, upper = problem.limits.lower[:, slot], problem.limits.upper[:, slot]
    own = not ((lower == lower[0]).all() and (upper == upper[0]).all())
    low, high = (None if own or np.isinf(side[0]) else float(side[0]) for side in (lower, upper))
    way = _WAYS[int(problem.limits.direction[slot])]
    grid = problem.grid
    step = float(grid.step[slot]) if grid.is_rule[slot] else None
    smallest = float(grid.smallest[slot]) or None
    by_actions = not problem.may_move[slot]
    name = problem.cohort.features[problem.slots.feature[slot]]
    return Lever(name, low, high, own, way, step, smallest, by_actions)
