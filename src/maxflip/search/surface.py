"""The flip surface of a batch of samples: m(d), its gradient, and the cost of changes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from maxflip._util.types import Floats, Rows
from maxflip.models import log_scores
from maxflip.problem.problem import Problem
from maxflip.search.halfspace import HalfspaceFlip, cheapest_into_halfspace
from maxflip.search.prices import FeaturePrices
from maxflip.search.rates import Rates
from maxflip.search.settings import PRICING


@dataclass
class Evaluations:
    """Number of samples evaluated, with a gradient and without."""

    gradients: int = 0
    forwards: int = 0


@dataclass(eq=False)
class Surface:
    """The log-margin m(d), >= 0 exactly where the sample passes with `PRICING.guards` guards.

    d (B, A): changes of the actionable features, float64. With Uptake, m is the smallest over the shares of d; for an
    Ensemble, the smallest over its members. Rounded is ignored: `grid` moves flips to its grid afterwards.

    Methods take the samples `at` (b,) of the batch, so that finished ones cost nothing.
    """

    problem: Problem
    rows: Rows
    prices: FeaturePrices
    evaluations: Evaluations = field(default_factory=Evaluations)
    levers: Floats | None = None  # (B, K): changes of levers that come first, for each of the rows, which may repeat

    def __post_init__(self) -> None:
        device = self.problem.classifier.device
        self.columns = torch.as_tensor(self.problem.actionable, device=device)
        self.inputs = self.problem.inputs(self.rows, device, self.problem.actionable, levers=self.levers)
        self.start = self.problem.after_levers(self.rows, self.levers)  # (B, K): where changes begin
        # (B, F): the rows of a table, for linear models; sequences have none.
        self.x = self.inputs.x
        if self.problem.is_boundless:
            self.low = torch.full((len(self.rows), len(self.columns)), -torch.inf, dtype=torch.float64, device=device)
            self.high = -self.low
        else:
            low, high = self.problem.box(self.rows, self.levers)
            self.low = torch.as_tensor(low, device=device)[:, self.columns]
            self.high = torch.as_tensor(high, device=device)[:, self.columns]
        self.pinned = (self.low == 0) & (self.high == 0)
        self.rates = Rates.at(self.prices, device)
        self.wanted = self.problem.goal.wanted_for(self.rows, device)
        self.shares = torch.tensor([*self.problem.scenarios.shares, 1.0], dtype=torch.float64, device=device)
        # Decision values may have any size; in this unit they are near 1, as logits are.
        self.unit = self.problem.guard / PRICING.typical_guard if self.problem.goal.is_decision else 1.0
        # Samples whose output was ever not finite.
        self.broken = torch.zeros(len(self.rows), dtype=torch.bool, device=device)

    @cached_property
    def most(self) -> int | None:
        """How many features may change beside the levers; None: all"""
        few = self.problem.few
        if few.most is None or self.levers is None:
            return few.most
        return few.most - int(few.counts(self.levers).max(initial=0))

    @cached_property
    def must_be_few(self) -> bool:
        """Whether fewer features may change at a time than may change at all."""
        return self.problem.must_be_fewer_than_all(self.most)

    @property
    def is_smooth(self) -> bool:
        """Whether changes within the limits need not go by steps, be large or be few."""
        return self.problem.grid.is_free and not self.must_be_few

    @property
    def has_rules(self) -> bool:
        """Whether some changes within the limits are not lawful: by steps, size or number of features."""
        return self.problem.grid.has_rules or self.must_be_few

    def repriced(self, prices: FeaturePrices) -> Surface:
        """The same samples at other prices. Evaluations are counted in the same counter."""
        other = copy(self)
        other.prices = prices
        other.rates = Rates.at(prices, self.low.device)
        return other

    def stored(self, d: torch.Tensor, at: torch.Tensor) -> Floats:
        """(b, K): changes d (b, A) as they would be stored, with the levers that came first"""
        which = at.cpu().numpy()
        full = np.zeros((len(which), self.problem.width)) if self.levers is None else self.levers[which]
        full[:, self.problem.actionable] += d.cpu().numpy()
        return self.problem.settle(self.rows[which], full)

    def moved(self, d: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """(b, A): what `stored` makes of changes d (b, A)"""
        stored = self.stored(d, at)
        if self.levers is not None:
            stored -= self.levers[at.cpu().numpy()]
        return torch.tensor(stored[:, self.problem.actionable], device=d.device)

    def cost(self, d: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """(b,): of changes d (b, A)"""
        return self.rates.of(at).cost(d)

    def into_halfspace(
        self,
        g: torch.Tensor,
        r: torch.Tensor,
        at: torch.Tensor,
        low: torch.Tensor | None = None,
        high: torch.Tensor | None = None,
    ) -> HalfspaceFlip:
        """The cheapest changes with g . d >= r, inside the limits, or inside another box (b, A) that holds 0."""
        low, high = self.low[at] if low is None else low, self.high[at] if high is None else high
        return cheapest_into_halfspace(g, r, *self.rates.of(at).along(g), low, high)

    @property
    def neutral(self) -> Surface:
        """The same at prices 1 / spread^2, which depend on no budget."""
        return self.repriced(FeaturePrices.neutral(self.problem))

    def within(self, at: torch.Tensor, free: torch.Tensor) -> Surface:
        """The same surface where of the samples `at` only the features free (b, A) may change."""
        other = copy(self)
        other.low, other.high = self.low.clone(), self.high.clone()
        other.low[at], other.high[at] = torch.where(free, self.low[at], 0.0), torch.where(free, self.high[at], 0.0)
        other.pinned = (other.low == 0) & (other.high == 0)
        return other

    def metric(self, around: torch.Tensor, at: torch.Tensor, typical_cost: torch.Tensor | None = None) -> torch.Tensor:
        """Weights (b, A) with |weight d|^2 = cost(d) at d = around (b, A).

        w_i^2 = s_i + l_i / |d_i|, with |d_i| at least 1 % of cost / l_i. With `typical_cost` (b,), or (1,) for all,
        |d_i| = cost / l_i, and `around` only tells the way that each feature goes.
        """
        rates = self.rates.of(at)
        squared, absolute = rates.along(around)
        spent = typical_cost if typical_cost is not None else rates.cost(around)
        if not rates.has_absolute:
            return squared.sqrt().expand(max(len(spent), len(squared) if squared.dim() > 1 else 0), -1)
        least = 0.01 * spent.clamp_min(1e-300)[:, None] / absolute
        size = around.abs() if typical_cost is None else 100.0 * least
        bend = absolute / torch.maximum(size, least)
        return (squared + torch.where(absolute > 0, bend, 0.0)).sqrt()

    def _margin(self, d: torch.Tensor, at: torch.Tensor, guards: float = PRICING.guards) -> torch.Tensor:
        """(b,): m of d (b, A), carried out in full"""
        log_p = log_scores(self.problem.classifier, self.inputs.at(at, d))
        return self.problem.goal.log_margin(log_p, self.wanted[at], guards * self.problem.guard) / self.unit

    def _worst_share(self, d: torch.Tensor, at: torch.Tensor, guards: float) -> tuple[torch.Tensor, torch.Tensor]:
        """(b,), (b,): the smallest m over all shares of d (b, A), NaN if any is; and the share that has it"""
        with torch.no_grad():
            each = torch.stack([self._margin(share * d, at, guards) for share in self.shares])
        which = torch.where(torch.isnan(each), -torch.inf, each).argmin(dim=0)
        return each.gather(0, which[None])[0], self.shares[which]

    def margin(self, d: torch.Tensor, at: torch.Tensor, guards: float = PRICING.guards) -> torch.Tensor:
        """(b,): m(d); -inf if the model's output is not finite"""
        m = d.new_zeros(len(at))
        self.evaluations.forwards += len(at) * len(self.shares)
        for part in self.inputs.batches(at):
            m[part], _ = self._worst_share(d[part], at[part], guards)
        self.broken[at] |= torch.isnan(m)
        return m.nan_to_num(nan=-torch.inf)

    def margin_and_gradient(self, d: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(b,), (b, A): m(d) and its gradient

        The gradient is set to 0 if it is not finite, and for features that limits fix.
        """
        m, g = d.new_zeros(len(at)), torch.empty_like(d)
        self.evaluations.gradients += len(at)
        for part in self.inputs.batches(at):
            leaf = d[part].detach().clone().requires_grad_(True)
            share = self.shares[-1:]
            if len(self.shares) > 1:  # the gradient of the smallest m alone
                self.evaluations.forwards += len(leaf) * len(self.shares)
                share = self._worst_share(d[part], at[part], PRICING.guards)[1][:, None]
            with torch.enable_grad():
                value = self._margin(share * leaf, at[part])
                (g[part],) = torch.autograd.grad(value.sum(), leaf)
            m[part] = value.detach()
        bad = torch.isnan(m) | ~torch.isfinite(g).all(dim=1)
        self.broken[at] |= bad
        return torch.where(bad, -torch.inf, m), torch.where(bad[:, None] | self.pinned[at], 0.0, g)
