"""Budgets that are functions: what a sample draws is what the user's own function says of its values before and after.

Nobody can tell how such a function rounds. So the truth is what it says of each sample alone, on the CPU, in float64:
that is the number that anyone else gets who asks it. In batches it is asked for gradients only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip._util.messages import first_line, shown
from maxflip._util.types import Floats
from maxflip.errors import ProblemError
from maxflip.problem.budgets import Budget, CostFunction

ROWS = 32  # on which a function is tried
AGREE = 1e-9  # of the largest answer: what rounding may differ by between a batch and a sample alone
STEPS = (1.0, -1.0, 0.1, -0.1)  # spreads of its features by which a sample is moved


@dataclass(frozen=True, eq=False)
class FunctionCost:
    """columns (k,): the features whose values it is given, in the order of the budget's `uses`"""

    budget: str
    name: str
    columns: NDArray[np.int64]
    function: CostFunction

    @classmethod
    def of(cls, name: str, budget: Budget, features: tuple[str, ...]) -> FunctionCost:
        columns = np.array([features.index(feature) for feature in budget.weights], dtype=np.int64)
        if isinstance(budget.cost, str):
            raise TypeError(f"budgets.{name} is no function")
        return cls(name, budget.cost_name, columns, budget.cost)

    @property
    def where(self) -> str:
        return f"budgets.{self.budget}.cost: {self.name}"

    def ask(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        """(B, k) twice -> (B,)"""
        try:
            said = self.function(before, after)
        except Exception as error:
            raise ProblemError(
                f"{self.where} raised {type(error).__name__} for tensors of shape {tuple(before.shape)}: "
                f"{first_line(error)}."
            ) from error
        wanted = f"wanted a float64 tensor of shape ({len(before)},), one number per sample"
        if not isinstance(said, torch.Tensor):
            raise ProblemError(f"{self.where} returned {shown(said)}; {wanted}.")
        if said.shape != (len(before),) or said.dtype != torch.float64:
            kind = str(said.dtype).removeprefix("torch.")
            raise ProblemError(f"{self.where} returned {kind} of shape {tuple(said.shape)}; {wanted}.")
        return said

    def slope(self, before: torch.Tensor, after: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """(B, k): the gradient of sum_j weight_j cost_j with respect to `after`.

        Where nothing changes, the cost is least. So the gradient is 0 there, even if the function has none, as a
        square root has none at 0.
        """
        leaf = after.detach().clone().requires_grad_(True)
        with torch.enable_grad():
            said = self.ask(before, leaf)
            if not said.requires_grad:
                raise ProblemError(f"{self.where} gives no gradient: no detach(), no_grad(), numpy or rounding in it.")
            try:
                (slope,) = torch.autograd.grad((weight * said).sum(), leaf)
            except Exception as error:
                raise ProblemError(
                    f"{self.where} raised {type(error).__name__} when its gradient was taken: {first_line(error)}."
                ) from error
        return torch.where((before == after).all(dim=1)[:, None], 0.0, slope)

    def alone(self, start: Floats, changes: Floats) -> Floats:
        """(c, F) twice -> (c,): what it says of each, one at a time; inf where that is no number."""
        before = torch.tensor(start[:, self.columns])
        after = torch.tensor(start[:, self.columns] + changes[:, self.columns])
        said = np.zeros(len(start))
        with torch.no_grad():
            for j in torch.nonzero((before != after).any(dim=1)).flatten().tolist():
                said[j] = float(self.ask(before[j : j + 1].clone(), after[j : j + 1].clone()))
        said[np.isnan(said)] = np.inf
        return said


def probe(cost: FunctionCost, start: Floats, changes: Floats, where: Callable[[int], str]) -> list[str]:
    """Faults of a function, tried on some samples and lawful changes, (b, F) each; `where(j)` names a sample."""
    before, after = (torch.tensor(values[:, cost.columns]) for values in (start, start + changes))
    try:
        with torch.no_grad():
            still, moved, again = (cost.ask(before.clone(), to.clone()) for to in (before, after, after))
        wrong = _wrong_answers(before, after, still, moved, again)
        if wrong:
            j, sentence = wrong
            return [f"{cost.where} {sentence} ({where(j)})."]
        apart = np.abs(cost.alone(start, changes) - moved.numpy())
        if not (apart <= AGREE * float(moved.max())).all():
            return [
                f"{cost.where} says {apart.max():.3g} more or less of a sample alone than of the same one in a batch. "
                "What a sample draws must not depend on others: reduce over dim=1 only."
            ]
        slope = cost.slope(before, after, torch.ones_like(moved))
    except ProblemError as error:
        return list(error.problems)
    moves = bool((before != after).any())
    if moves and not bool((torch.isfinite(slope) & (slope != 0)).any()):
        return [f"{cost.where} has no gradient at any change tried. It must be differentiable: no rounding, no steps."]
    return []


def _wrong_answers(
    before: torch.Tensor, after: torch.Tensor, still: torch.Tensor, moved: torch.Tensor, again: torch.Tensor
) -> tuple[int, str] | None:
    """The first answer that breaks the contract: of which sample, and how."""
    for said, to, is_wrong, wanted in (
        (still, before, still != 0, "it must be exactly 0 where nothing changes"),
        (moved, after, ~torch.isfinite(moved), "it must be finite wherever the limits allow a change"),
        (moved, after, moved < 0, "it must be >= 0"),
        (again, after, again != moved, "asked before, it said another number"),
    ):
        wrong = torch.nonzero(is_wrong).flatten().tolist()
        if wrong:
            j = wrong[0]
            return j, f"said {said[j].item()!r} for {before[j].tolist()} -> {to[j].tolist()}; {wanted}"
    return None


def as_squares(cost: FunctionCost, start: Floats, steps: Floats) -> Floats:
    """(F,): the weights of a squared budget that draws as much where one feature alone moves by its step, (b, F); the
    median over the samples."""
    weights = np.zeros(start.shape[1])
    for i in cost.columns:
        change = np.zeros_like(steps)
        change[:, i] = steps[:, i]
        moved = np.flatnonzero(steps[:, i])
        if len(moved):
            each = cost.alone(start[moved], change[moved]) / steps[moved, i] ** 2
            weights[i] = np.median(each)
    return np.where(np.isfinite(weights), weights, 0.0)
