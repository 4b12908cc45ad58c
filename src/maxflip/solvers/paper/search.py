"""The samples that are searched, as tensors: their consumption, shortfall of confidence, and gradients of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from maxflip._util.types import Floats, Rows
from maxflip.data.inputs import Given
from maxflip.models import Classifier, log_scores, scores
from maxflip.problem.budget_functions import FunctionCost
from maxflip.problem.must_hold import rounded
from maxflip.problem.problem import Problem
from maxflip.search.draws import Draws
from maxflip.solvers.base import Run
from maxflip.solvers.paper.confidence import divergence, signed
from maxflip.solvers.paper.details import DETAILS
from maxflip.solvers.paper.settings import Units

At = torch.Tensor | slice  # some of the samples


@dataclass(eq=False)
class Search:
    """n samples in the order of their ids, A features that may change, m budgets that are limits (0 < B < inf).

    The search moves u (n, A) with change d = unit u: unit = 1 ("raw", the paper) or a standard deviation of each
    feature over these samples ("standard"). Everything is float64, on the model's device.

    a_jr(d) = sum_i squared_ri d_ji^2 + absolute_ri |d_ji| + flat_r (weights and flat may be of each sample's own), or a
    budget function of x_j and x_j + d_j

    Decision values may have any size: their shortfall is divided by the largest one at the start, so that it is at most
    about 1, as for probabilities.
    """

    problem: Problem
    rows: Rows
    units: Units
    flats: bool = True  # whether what does not depend on u, count budgets and fees, is included
    gradients: int = 0  # samples evaluated with a gradient

    def __post_init__(self) -> None:
        problem, columns = self.problem, self.problem.actionable
        ledger, device = problem.ledger, problem.classifier.device
        is_limit = (ledger.amounts > 0) & np.isfinite(ledger.amounts) & (self.flats | ~ledger.are_flat)
        self.budgets = np.flatnonzero(is_limit)
        low, high = problem.box(self.rows)
        self.spread = self._sizes()
        unit = np.ones(len(columns)) if self.units == "raw" else self.spread
        worth = problem.worth[self.rows]

        def tensor(array: Floats) -> torch.Tensor:
            return torch.tensor(array, dtype=torch.float64, device=device)

        self.inputs = problem.inputs(self.rows, device, columns, problem.classifier.batch_size)
        self.everyone = torch.arange(len(self.rows), device=device)
        self.unit = tensor(unit)
        self.start_values = tensor(problem.start[np.ix_(self.rows, columns)])
        self.low, self.high = tensor(low[:, columns] / unit), tensor(high[:, columns] / unit)
        self.amounts = tensor(ledger.amounts[is_limit])
        weights = ledger.weights(self.rows).at(columns).of_budgets(self.budgets)
        flat = ledger.flats(self.rows)[..., self.budgets]
        self.draws = Draws.of(weights, flat if self.flats else 0.0 * flat, device)
        self.functions = [
            (int(np.searchsorted(self.budgets, r)), function)
            for r, function in zip(ledger.functions, problem.functions, strict=True)
            if is_limit[r]
        ]
        self.worth = tensor(worth / worth.mean() if worth.any() else np.ones(len(worth)))
        self.wanted = problem.goal.wanted_for(self.rows, device)
        labels = problem.goal.distributions
        self.labels = None if labels is None else tensor(labels[self.rows])
        # Samples whose output was not finite: ever, and at the last gradient.
        self.broken = torch.zeros(len(self.rows), dtype=torch.bool, device=device)
        self.fallen = self.broken.clone()
        self.size = 1.0
        if problem.goal.is_decision:
            self.size = max(float(self.shortfall_only(torch.zeros_like(self.low)).max()), problem.guard)

    def _sizes(self) -> Floats:
        """(A,): the spread of each feature over these samples. If all its values are 0: the change that, made for all
        samples, would use up a budget, or 1."""
        columns, ledger, n = self.problem.actionable, self.problem.ledger, len(self.rows)
        some = self.problem.start[np.ix_(self.rows, columns)].any(axis=0)
        amounts = ledger.amounts[self.budgets, None] / n
        weights = ledger.weights(self.rows).at(columns).of_budgets(self.budgets).largest
        with np.errstate(divide="ignore"):
            of_squares = np.sqrt(amounts / weights.squared)
            of_sizes = amounts / weights.absolute
        largest = np.minimum(of_squares, of_sizes).min(axis=0, initial=np.inf)
        return np.where(some, self.problem.spread_over(self.rows), np.where(np.isfinite(largest), largest, 1.0))

    def start(self, run: Run) -> torch.Tensor:
        """u (n, A): the earlier plan's changes for samples that it flips, white noise for all others."""
        generator = run.streams.torch("paper.start")
        noise = torch.randn(self.low.shape, dtype=torch.float64, generator=generator).to(self.unit.device)
        u = DETAILS.start_noise * torch.tensor(self.spread, device=self.unit.device) / self.unit * noise
        if run.start is not None:
            rows, changes = run.start.moves_in(self.problem)
            place = np.full(len(self.problem), -1)
            place[self.rows] = np.arange(len(self.rows))
            known = place[rows] >= 0
            at = torch.as_tensor(place[rows[known]], device=u.device)
            u[at] = torch.tensor(changes[np.ix_(known, self.problem.actionable)], device=u.device) / self.unit
        return self.inside(u)

    def inside(self, u: torch.Tensor) -> torch.Tensor:
        """The nearest point that limits and directions allow; the start for samples without a finite output."""
        return torch.where(self.fallen[:, None], 0.0, torch.minimum(torch.maximum(u, self.low), self.high))

    def changes(self, u: torch.Tensor) -> Floats:
        """(n, F), as they may be stored"""
        changes = np.zeros((len(self.rows), self.problem.width))
        changes[:, self.problem.actionable] = (self.unit * u).cpu().numpy()
        return self.problem.settle(self.rows, changes)

    def consumption(self, u: torch.Tensor) -> torch.Tensor:
        """(n, A) -> a (n, m)"""
        drawn = self.draws.drawn(self.unit * u)
        for r, function in self.functions:
            with torch.no_grad():
                said = function.ask(*self._given(function, u)).to(drawn.device)
                drawn[:, r] += said * self._inside(r)
        return drawn

    def consumption_slope(self, u: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """(n, A): the gradient in u of sum_jr weight_jr a_jr; weight (n, m), or (m,) if equal for all samples"""
        by_change = self.draws.slope(self.unit * u, weight)
        for r, function in self.functions:
            own = by_change.new_zeros(len(u), self.problem.width)
            slope = function.slope(*self._given(function, u), (weight[..., r] * self._inside(r)).cpu())
            own[:, torch.as_tensor(function.columns, device=own.device)] = slope.to(own.device)
            by_change = by_change + own[:, torch.as_tensor(self.problem.actionable, device=own.device)]
        return self.unit * by_change

    def _inside(self, r: int) -> torch.Tensor | float:
        """(n,): 1 for those who draw on the r-th of these budgets, 0 for others; 1 where all do"""
        inside = self.problem.ledger.own.inside.get(int(self.budgets[r]))
        return 1.0 if inside is None else torch.as_tensor(inside[self.rows], device=self.unit.device).double()

    def _given(self, function: FunctionCost, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The arguments of a budget function: its features before and after the change, (n, k) each"""
        before = torch.tensor(self.problem.start[self.rows])
        after = before.index_add(1, torch.as_tensor(self.problem.actionable), (self.unit * u).cpu())
        return before[:, function.columns], after[:, function.columns]

    def shortfall(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The shortfall s (n,) of confidence, and its gradient in u (n, A)"""

        def lacks(moved: torch.Tensor, at: At) -> tuple[torch.Tensor, torch.Tensor]:
            s = signed(self.problem.goal, self._asked(scores, moved, at), self.wanted[at]) / self.size
            return s, s[:, None]

        values, slope = self._through_model(u, lacks)
        return values[:, 0], slope

    def shortfall_only(self, u: torch.Tensor) -> torch.Tensor:
        """s (n,)"""
        s = u.new_empty(len(u))
        with torch.no_grad():
            for at in self.inputs.batches(self.everyone):
                p = self._asked(scores, u[at], at)
                s[at] = signed(self.problem.goal, p, self.wanted[at]) / self.size
        return self._usable(s)

    def divergence_and_shortfall(
        self, u: torch.Tensor, mu: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """KL(label || f) (n,), s (n,), and the gradient in u (n, A) of worth_j KL_j + mu_j s_j

        For the divergence, decision values are taken as logits.
        """

        def both(moved: torch.Tensor, at: At) -> tuple[torch.Tensor, torch.Tensor]:
            log_p = self._asked(log_scores, moved, at)
            p = log_p if self.problem.goal.is_decision else log_p.exp()
            if self.problem.goal.is_decision:
                log_p = log_p.log_softmax(dim=2)
            distance = divergence(log_p, self.wanted[at], None if self.labels is None else self.labels[at])
            s = signed(self.problem.goal, p, self.wanted[at]) / self.size
            return self.worth[at] * distance + mu[at] * s, torch.stack([distance, s], dim=1)

        values, slope = self._through_model(u, both)
        return values[:, 0], values[:, 1], slope

    def _asked(self, model: Callable[[Classifier, Given], torch.Tensor], u: torch.Tensor, at: At) -> torch.Tensor:
        """u (b, A) -> scores (b, M, k) of every member, and with Uptake of every share of the change

        With Rounded, the model gets rounded values, and the gradient ignores the rounding (straight-through).
        """
        d, scenarios = self.unit * u, self.problem.scenarios
        if scenarios.step is not None:
            start, step = self.start_values[at].cpu().numpy(), scenarios.step[self.problem.actionable]
            whole = torch.as_tensor(rounded(start, d.detach().cpu().numpy(), step), device=d.device)
            d = d + (whole - d).detach()
        shares = (*scenarios.shares, 1.0)
        return torch.cat([model(self.problem.classifier, self.inputs.at(at, share * d)) for share in shares], dim=1)

    def _through_model(
        self, u: torch.Tensor, terms: Callable[[torch.Tensor, At], tuple[torch.Tensor, torch.Tensor]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """terms(u, at) -> (function to differentiate (b,), values (b, c))   returns values (n, c), gradient (n, A)

        If the output or gradient of a sample is not finite, its values are `DETAILS.worst_lack` and its gradient 0.
        """
        found, slopes = u.new_empty(len(u), 0), torch.empty_like(u)
        for at in self.inputs.batches(self.everyone):
            leaf = u[at].detach().clone().requires_grad_(True)
            with torch.enable_grad():
                value, values = terms(leaf, at)
                (slope,) = torch.autograd.grad(value.sum(), leaf)
            values = values.detach()
            bad = ~torch.isfinite(values).all(dim=1) | ~torch.isfinite(slope).all(dim=1)
            self.broken[at] |= bad
            self.fallen[at] = bad
            if not found.shape[1]:
                found = u.new_empty(len(u), values.shape[1])
            found[at] = torch.where(bad[:, None], DETAILS.worst_lack, values)
            slopes[at] = torch.where(bad[:, None], 0.0, slope)
        self.gradients += len(u)
        return found, slopes

    def _usable(self, s: torch.Tensor) -> torch.Tensor:
        bad = ~torch.isfinite(s)
        self.broken |= bad
        return torch.where(bad, DETAILS.worst_lack, s)
