"""Budget: so much of something, shared by the whole cohort or by a part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from maxflip.problem.own import Own, Part, Weight, largest, shared

if TYPE_CHECKING:
    import torch

Cost = Literal["squared", "absolute", "count"]
CostFunction: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"
COSTS: tuple[Cost, ...] = ("squared", "absolute", "count")
POWERS: Mapping[str, int] = {"squared": 2, "absolute": 1}
HUGE = 1e150  # changes above this have squares beyond float64


@dataclass(frozen=True)
class Ways:
    """A weight of changes up and another of changes down, in the `uses` of a Budget.

    Args:
        up: number >= 0, or one of each sample's own: an array, or the name of a column; 0: such changes draw nothing.
        down: the same, of changes down.
    """

    up: Any
    down: Any


@dataclass(frozen=True)
class Budget:
    """So much of something, shared by the whole cohort, or by a part of it.

        sum over picked samples j of  fee_j + sum over features i of uses_ij * phi(change_ji)   <=  amount

    Args:
        amount: number >= 0; 0 freezes what it weighs, inf is no limit.
        uses: {feature: weight >= 0}; None: the feature that the budget is named after, with weight 1. A weight may be
            Ways(up=..., down=...), and one of each sample's own: an array, (n,), or the name of a column of the cohort.
        cost: what phi is: "squared" (d * d, the paper), "absolute" (|d|); or "count": picked samples, and no `uses`;
            or a function of the values before and after, (B, len(uses)) float64 tensors on the CPU whose columns are
            the features that `uses` lists, to what each sample draws, (B,): never negative, 0 where nothing changes,
            with a gradient. Then sum_j cost(x_j, x_j + d_j) <= amount. A plan has its name, "function NAME", instead.
        fee: what a picked sample draws whatever its change: a number >= 0, or one of each sample's own, as a weight.
            None: 1 of a count, else 0.
        only: the part of the cohort that draws on the budget: (column, value), or a list of ids; None: everybody. All
            others draw nothing from it; a feature that no budget of theirs weighs is frozen for them.
    """

    amount: float
    uses: Mapping[str, Any] | Sequence[str] | None = None
    cost: str | CostFunction = "squared"
    fee: Any = None
    only: Any = None

    @property
    def weights(self) -> Mapping[str, Any]:
        """By feature; 1 for those that are only listed."""
        if self.uses is None or isinstance(self.uses, Mapping):
            return self.uses or {}
        return dict.fromkeys(self.uses, 1.0)

    @property
    def drawing(self) -> tuple[str, ...]:
        """The features whose changes draw on it, once its weights are known."""
        return tuple(name for name, weight in self.weights.items() if max(map(largest, ways_of(weight))) > 0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the cohort that it names, each once: those of `numbers`, and the one that says who draws."""
        group = self.only.group if isinstance(self.only, Part) else self.only
        part = (group[0],) if isinstance(group, tuple) else ()
        return tuple(dict.fromkeys((*self.numbers, *part)))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns with a fee or a weight of each sample's own"""
        given = (*(way for weight in self.weights.values() for way in ways_of(weight)), self.fee)
        names = (one.column if isinstance(one, Own) else one for one in given)
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))

    @property
    def flat(self) -> Weight:
        """What a picked sample draws whatever its change, once that is known."""
        default = 1.0 if self.cost == "count" else 0.0
        return default if self.fee is None else self.fee

    @property
    def counts_people(self) -> bool:
        """Whether it counts those of its part of the cohort who are picked."""
        return self.cost == "count" and shared(self.flat) == 1.0

    @property
    def is_function(self) -> bool:
        return self.cost not in COSTS

    @property
    def cost_name(self) -> str:
        if isinstance(self.cost, str):
            return self.cost
        return f"function {getattr(self.cost, '__name__', type(self.cost).__name__)}"

    def detached(self) -> Budget:
        """With the name of the function in its place."""
        return replace(self, cost=self.cost_name)


def ways_of(weight: Any) -> tuple[Any, Any]:
    """A weight as those of changes up and of changes down"""
    return (weight.up, weight.down) if isinstance(weight, Ways) else (weight, weight)
