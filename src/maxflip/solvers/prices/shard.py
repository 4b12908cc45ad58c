"""Shard: some of the samples, the known flips of each, and a plane for each sample.

The plane g . d = r approximates the sample's surface near its flip. It predicts the cheapest flip at any prices, its
draw on the budgets and the derivative of the draw in the prices, without calling the classifier.

Prices are (m + Q,): of the budgets, then of the quotas; (m,) if those of the quotas are 0. The price of a quota changes
what a sample is worth: v_j - sum_q price_q c_qj. Its cheapest flips stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from maxflip._util.parallel import filled, joined
from maxflip._util.types import Floats, Mask, Rows
from maxflip.plan.pool import first_of_each
from maxflip.problem.bill import Bill
from maxflip.problem.ledger import Pair, Weights
from maxflip.problem.problem import Problem
from maxflip.search import gradient, linear, trust
from maxflip.search.draws import Draws
from maxflip.search.halfspace import HalfspaceFlip, cheapest_into_halfspace
from maxflip.search.lawful import lawful_flips
from maxflip.search.prices import FeaturePrices
from maxflip.search.settings import Gait
from maxflip.search.surface import Evaluations, Surface
from maxflip.solvers.prices.clearing import DualPart
from maxflip.solvers.prices.settings import CLEARING, SHARD


@dataclass(frozen=True, eq=False)
class FlipSet:
    """Flips: rows (c,), the sample of each   changes (c, F), as they may be stored. A sample may have several."""

    rows: Rows
    changes: Floats

    def of(self, kept: Mask) -> FlipSet:
        return FlipSet(self.rows[kept], self.changes[kept])

    @classmethod
    def all(cls, parts: list[FlipSet]) -> FlipSet:
        return cls(joined([p.rows for p in parts]), joined([p.changes for p in parts]))

    def bill(self, problem: Problem) -> Bill:
        return problem.bill(self.rows, self.changes)

    @property
    def once(self) -> FlipSet:
        """Without duplicates."""
        first = first_of_each(self.rows, self.changes)
        return self if len(first) == len(self.rows) else FlipSet(self.rows[first], self.changes[first])


def has_kinks(problem: Problem) -> bool:
    """Whether some feature draws on absolute budgets alone, of some sample, so that the cost of a change has a kink at
    0."""
    ledger = problem.ledger
    squared = (ledger.powers == 2) & np.isfinite(ledger.amounts)
    squared[sorted(ledger.own.inside)] = False
    draws = ledger.draws[:, problem.actionable]
    return bool((draws[ledger.powers == 1].any(axis=0) & ~draws[squared].any(axis=0)).any())


def _kinks(problem: Problem, weights: Weights) -> Weights:
    """Squared: absolute weights / spread, for features that draw on absolute budgets alone; 0 for others"""
    finite = np.isfinite(problem.ledger.amounts)[:, None]
    alone = ~((weights.up.squared + weights.down.squared > 0) & finite).any(axis=-2, keepdims=True)
    alone &= ~problem.is_lever[problem.actionable]

    def bent(pair: Pair) -> Pair:
        return Pair(np.where(alone, pair.absolute / problem.spread, 0.0), np.zeros_like(pair.absolute))

    up = bent(weights.up)
    return Weights(up, up if weights.down is weights.up else bent(weights.down))


class Shard:
    """levers (B, K): what the samples have got already, each of which may then stand here several times; None: nothing
    paid (B, m): what these levers draw"""

    def __init__(
        self, problem: Problem, rows: Rows, prices: Floats, levers: Floats | None = None, paid: Floats | float = 0.0
    ) -> None:
        self.problem, self.rows = problem, rows
        self.forms = problem.linear if linear.applies(problem.linear, problem.goal) else None  # None if not exact
        self.budgets = slice(len(problem.ledger.names))
        own = FeaturePrices.at(problem, prices[self.budgets], rows)
        self.surface = Surface(problem, rows, own, levers=levers)
        self.weights, self.flats = problem.weights(rows), problem.ledger.flats(rows) + paid
        self.bent, self.has_kinks = _kinks(problem, self.weights), has_kinks(problem)
        device = self.surface.low.device
        self.worth = torch.tensor(problem.worth[rows], device=device)
        self.must = torch.tensor(np.isin(rows, problem.include), device=device)
        self.quotas = torch.tensor(problem.quotas.coefficients[:, rows].T, device=device)  # (B, Q)
        self.draws = Draws.of(self.weights, self.flats, device)
        self.bend = Draws.of(self.bent, self.flats, device)
        self.change = torch.zeros_like(self.surface.low)
        self.found = torch.zeros(len(rows), dtype=torch.bool, device=device)
        self.unreachable = torch.zeros_like(self.found)
        self.g = torch.zeros_like(self.surface.low)
        self.r = torch.zeros_like(self.worth)
        self.seen: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.told: list[tuple[torch.Tensor, torch.Tensor]] = []  # flips that were not found here
        self.followed = 0  # number of calls of `follow`, if costs have kinks

    @property
    def evaluations(self) -> Evaluations:
        return self.surface.evaluations

    def first_flips(self, again: tuple[Floats, ...], *, polished: bool, led: bool) -> None:
        """Search a first flip for each sample.   again: prices at which samples without one, if few, are searched again
        polished: refine flips until they are about the cheapest   led: try other samples' directions; later searches
        start from the flips found here"""
        everyone = torch.arange(len(self.rows), device=self.worth.device)
        if self.forms is not None:
            exact, self.unreachable = linear.search_and_prove(self.surface, self.forms)
            self._keep_exact(exact)
            return
        best = gradient.Best.none(self.surface.low)
        if self.has_kinks:
            trust.begin(self.surface, best, everyone, SHARD.first_steps)
        gradient.explore(self.surface, best, everyone[~best.found])
        if polished:
            gradient.follow(self.surface, best, everyone[best.found], among=everyone[best.found])
            gradient.refine(self.surface, best, everyone[best.found])
        elif led and not self.has_kinks:
            gradient.follow(self.surface, best, everyone[best.found], among=everyone[best.found])
            gradient.track(self.surface, best, everyone[best.found], best.change.clone(), SHARD.descents)
        for prices in again:
            self._explore_again(best, prices)
        self._keep(self.surface, best, everyone[best.found])

    def _explore_again(self, best: gradient.Best, prices: Floats) -> None:
        """Search samples without a flip at these prices too, unless they are many."""
        lost = torch.nonzero(~best.found).flatten()
        if not 0 < len(lost) <= SHARD.lost * len(self.rows):
            return
        other = gradient.Best(best.change.clone(), best.cost.clone())
        gradient.explore(self.surface.repriced(FeaturePrices.at(self.problem, prices, self.rows)), other, lost)
        at = lost[other.found[lost]]
        price = self.surface.cost(other.change[at], at)
        best.record(at, other.change[at], price, torch.zeros_like(price))

    def begin_with(self, flips: FlipSet, prices: Floats) -> None:
        """Begin with known flips instead of a search; each sample takes its cheapest one at these prices."""
        self.tell(flips)
        best = self._best(self._at(prices))
        self.change, self.found = best.change, best.found

    def nearest(self, prices: Floats) -> FlipSet:
        """The cheapest flips at these prices, searched without known flips."""
        surface = self.surface.repriced(FeaturePrices.at(self.problem, prices, self.rows))
        if self.forms is not None:
            exact = linear.search_and_prove(surface, self.forms)[0]
            found, change = exact.found, exact.change
        else:
            best = gradient.search(surface)
            found, change = best.found, best.change
            if self.surface.has_rules:
                at = torch.nonzero(found).flatten()
                change[at], found[at] = lawful_flips(surface, change[at], at)
        at = torch.nonzero(found).flatten()
        return self._as_flips([self.rows[at.cpu().numpy()]], [change[at]])

    def lay_planes(self, prices: Floats, reach: float) -> None:
        """Compute the planes of the samples whose flip costs at most `reach` times their worth."""
        if self.forms is not None:
            self.reprice(prices, reach)
            return
        surface = self._at(prices)
        self._update_planes(surface, self._competitive(self._cost(surface), prices, reach))

    def explore(self, rows: Rows) -> None:
        """Search first flips for these rows, which have none."""
        at = torch.as_tensor(np.flatnonzero(np.isin(self.rows, rows)), device=self.worth.device)
        if not len(at):
            return
        if self.forms is not None:
            exact, unreachable = linear.search_and_prove(self.surface, self.forms)
            exact.found[:] &= torch.isin(torch.arange(len(self.rows), device=at.device), at)
            self.unreachable = unreachable & ~self.found
            self._keep_exact(exact)
            return
        best = gradient.Best(self.change.clone(), torch.where(self.found, 0.0, torch.inf).to(self.change))
        gradient.explore(self.surface, best, at)
        self._keep(self.surface, best, at[best.found[at]])

    def latest(self) -> FlipSet:
        """The flips found by the latest search, with levers."""
        at, change = self.seen[-1]
        return FlipSet(self.rows[at.cpu().numpy()], self.surface.stored(change, at))

    def reprice(
        self, prices: Floats, reach: float, steps: int = SHARD.descents, without: torch.Tensor | None = None
    ) -> None:
        """Search the cheapest flips at these prices, for samples whose flip costs at most `reach` times their worth.

        without (B,): samples to skip
        """
        surface = self._at(prices)
        if self.forms is not None:
            some = self.found if without is None else self.found & ~without
            self._keep_exact(linear.search(surface, self.forms, torch.nonzero(some).flatten()))
            return
        best, at = self._tracked(surface, prices, reach, without, steps)
        self._keep(surface, best, at)

    def _tracked(
        self,
        surface: Surface,
        prices: Floats,
        reach: float,
        without: torch.Tensor | None = None,
        steps: int = SHARD.descents,
    ) -> tuple[gradient.Best, torch.Tensor]:
        """Descend from the flips that the planes predict.   without (B,): samples to skip"""
        expected = self._onto_planes(surface)
        has_plane = (self.g != 0).any(dim=1)
        start = torch.where(has_plane[:, None], expected.change, self.change)
        price = surface.rates.cost(start)
        at = self._competitive(torch.minimum(price, self._cost(surface)), prices, reach)
        if without is not None:
            at = at[~without[at]]
        best = self._best(surface)
        gradient.track(surface, best, at, start, steps)
        return best, at

    def flips_at(self, prices: Floats, reach: float, taken: Rows) -> FlipSet:
        """The flips that `reprice` would find, except for the rows `taken`. They are not stored."""
        surface = self._at(prices)
        without = torch.as_tensor(np.isin(self.rows, taken), device=self.worth.device)
        if self.forms is not None:
            return self._exact_flips(surface, without)
        best, at = self._tracked(surface, prices, reach, without)
        if not self.surface.is_smooth:
            best, at = self._on_grid(surface, best, at)
        return self._as_flips([self.rows[at.cpu().numpy()]], [best.change[at]])

    def _exact_flips(self, surface: Surface, without: torch.Tensor | None = None) -> FlipSet:
        """The cheapest flips of a linear model at the surface's prices."""
        if self.forms is None:
            raise ValueError("the model is not linear")
        wanted = self.found if without is None else self.found & ~without
        exact = linear.search(surface, self.forms, torch.nonzero(wanted).flatten())
        at = torch.nonzero(wanted & exact.found).flatten()
        return self._as_flips([self.rows[at.cpu().numpy()]], [exact.change[at]])

    def gain_and_draws(self, prices: Floats) -> tuple[float, Floats]:
        """sum_j max(0, v_j - C_j) over these samples, and what those with v_j > C_j add to each row, (m + Q,)."""
        flips, gain, picked = self._picked_at(prices)
        drawn = flips.of(picked).bill(self.problem).consumption.sum(axis=0)
        counted = self.problem.quotas.coefficients[:, flips.rows[picked]].sum(axis=1)
        return float(gain[picked].sum()), np.concatenate([drawn, counted])

    def average_at(self, tried: Floats, weights: Floats) -> FlipSet:
        """Each sample's average flip at those of the prices tried (K, m) at which it is picked, with weights (K,); at
        all prices, if it is never picked.

        If the weighted draws of those picked fit the budgets, so does a mixture of averages, which is worth as much.
        The flips of a linear model form a convex set, so the average is a flip.
        """
        parts = [self._picked_at(prices) for prices in tried]
        rows = parts[0][0].rows
        same = [k for k, (flips, _, _) in enumerate(parts) if np.array_equal(flips.rows, rows)]
        weight = np.array([np.where(parts[k][2], weights[k], 0.0) for k in same])
        weight = np.where(weight.any(axis=0), weight, weights[same][:, None])
        mean = np.sum([w[:, None] * parts[k][0].changes for w, k in zip(weight, same, strict=True)], axis=0)
        return FlipSet(rows, self.problem.settle(rows, mean / weight.sum(axis=0)[:, None]))

    def _picked_at(self, prices: Floats) -> tuple[FlipSet, Floats, Mask]:
        """The cheapest flips, what each gains (b,), and which gain anything or must be picked (b,). The prices are
        straight: flips that are cheapest at bent prices cost more, and D would be too low."""
        flips = self._exact_flips(self._at(prices, softness=0.0))
        worth = self.problem.quotas.worth(self.problem.worth, prices[self.budgets.stop :])[flips.rows]
        gain = worth - flips.bill(self.problem).consumption @ prices[self.budgets]
        return flips, gain, (gain > 0) | np.isin(flips.rows, self.problem.include)

    def follow(self, prices: Floats, reach: float) -> None:
        """Search cheaper flips in the directions of samples whose flip costs at most `reach` times their worth. If
        samples are many, some try first, and all follow if that wins enough."""
        surface, best, among = self._known(prices, reach)
        if self.has_kinks:
            straight = self._at(prices, softness=0.0)
            best = self._best(straight)
            at = self._contested(best.cost, prices)
            trust.follow(straight, best, at, among, self._worth_at_least(), self.followed)
            self.followed += 1
            self._keep(surface, best, at)
            return
        at = torch.nonzero(best.found).flatten()
        own = self._worth_at(prices) - self._flat_cost(prices)
        worth = torch.where(self.must, torch.inf, own).clamp_min(0.0)
        some = at if len(at) < SHARD.many else at[:: len(at) // SHARD.some]
        before = best.cost.clone()
        gradient.follow(surface, best, some, among, worth)
        if len(some) < len(at) and (before - best.cost)[some].sum() > SHARD.pays * self.worth[some].sum():
            gradient.follow(surface, best, at, among, worth)
        changed = best.cost < before
        changed[among] = True
        self._keep(surface, best, torch.nonzero(changed).flatten())

    def touch_up(self, prices: Floats, reach: float, gait: Gait) -> None:
        """Search cheaper flips at these prices, close to the present ones."""
        surface, best, at = self._known(prices, reach)
        if self.has_kinks:
            straight = self._at(prices, softness=0.0)
            best = self._best(straight)
            at = self._contested(best.cost, prices)
            trust.descend(straight, best, at, best.change[at], self._worth_at_least())
        else:
            gradient.touch_up(surface, best, at, gait)
        self._keep(surface, best, at)

    def _worth_at_least(self) -> torch.Tensor:
        return self.worth.clamp_min(1e-300)

    def _worth_at(self, prices: Floats) -> torch.Tensor:
        """(B,): what each is worth at the prices of the quotas"""
        own = prices[self.budgets.stop :]
        return self.worth - self.quotas @ torch.as_tensor(own, device=self.worth.device) if len(own) else self.worth

    def _known(self, prices: Floats, reach: float) -> tuple[Surface, gradient.Best, torch.Tensor]:
        surface = self._at(prices)
        best = self._best(surface)
        return surface, best, self._competitive(best.cost, prices, reach)

    def dual_part(self, prices: Floats, softness: float) -> DualPart:
        """The part of these samples in the smoothed dual, as their planes predict it."""
        surface = self._at(prices, softness)
        weighed = self.draws.bent(self.bend, SHARD.bend * softness)
        flip = self._onto_planes(surface)
        taken = self.found & flip.reachable & (self.g != 0).any(dim=1)
        gain = torch.where(
            taken, self._worth_at(prices) - self._charged(surface.rates.cost(flip.change), prices), -torch.inf
        )
        draws = torch.cat([weighed.drawn(flip.change), self.quotas], dim=1)  # (B, m + Q)
        sure = self.must & taken
        if softness == 0:
            p = ((gain > 0) | sure).to(gain)
            value = torch.where(p > 0, gain, 0.0).sum()
            return DualPart(float(value), -(p @ draws).cpu().numpy(), np.zeros((len(prices), len(prices))))
        width = softness * self.worth.clamp_min(1e-300)
        soft = width * torch.nn.functional.softplus(gain / width)
        p = torch.where(sure, 1.0, torch.sigmoid(gain / width))
        value = torch.where(sure, gain, soft).sum()
        turn = torch.where(sure, 0.0, p * (1 - p) / width)
        rates = surface.rates.along(flip.change)
        hessian = draws.T @ (turn[:, None] * draws)
        hessian[self.budgets, self.budgets] += self._bend(p, flip.change, rates.squared, weighed)
        return DualPart(float(value), -(p @ draws).cpu().numpy(), hessian.cpu().numpy())

    def _onto_planes(self, surface: Surface) -> HalfspaceFlip:
        """The cheapest changes onto the planes."""
        rate = surface.rates.along(self.g)
        return cheapest_into_halfspace(self.g, self.r, *rate, surface.low, surface.high)

    def _bend(self, p: torch.Tensor, change: torch.Tensor, s: torch.Tensor, weighed: Draws) -> torch.Tensor:
        """-sum_j p_j (second derivative of C_j in the prices), (m, m).   s: squared prices   weighed: at bent prices

        For the features i that are free to move, y_i = (nu |g_i| - l_i) / (2 s_i) with sum_i |g_i| y_i = r. If prices
        change by dlambda, the marginal price of y_i changes by e_i = (E dlambda)_i = dl_i + 2 y_i ds_i, and
        d2C = -sum_i e_i^2 / (2 s_i) + (sum_i |g_i| e_i / (2 s_i))^2 / sum_i g_i^2 / (2 s_i).
        """
        y, cap = change.abs(), torch.where(self.g > 0, self.surface.high, -self.surface.low)
        w = torch.where((y > 0) & (y < cap), 0.5 / s, 0.0)
        pull = w * self.g.abs()
        size = (pull * self.g.abs()).sum(dim=1)
        part = torch.where(size > 0, p / size.clamp_min(1e-300), 0.0)
        squared, absolute = weighed.along(change)
        if squared.dim() == 2:
            shared = pull @ absolute.T + 2 * (pull * y) @ squared.T  # (B, m): E' W |g|
            s0, s1, s2 = p @ w, p @ (w * y), p @ (w * y**2)  # (A,)
            cross = (absolute * s1) @ squared.T
            own = (absolute * s0) @ absolute.T + 2 * (cross + cross.T) + 4 * (squared * s2) @ squared.T
        else:
            e = absolute + 2 * y[:, None] * squared  # (B, m, A)
            shared = torch.einsum("bma,ba->bm", e, pull)
            each = (e * (p[:, None] * w).sqrt()[:, None]).transpose(0, 1).flatten(1)
            own = each @ each.T
        return own - shared.T @ (part[:, None] * shared)

    def gains(self, prices: Floats) -> Floats:
        """(B,): v_j - C_j at these prices, with all known flips; -inf without one"""
        return self._worth_at(prices).cpu().numpy() - self.costs(prices[self.budgets])

    def costs(self, prices: Floats) -> Floats:
        """(B,): C_j at these prices of the budgets, with all known flips; inf without one

        Free features cost nothing here. (Searches give them a tiny price, so that changes stay finite.)
        """
        best = self._best(self.surface.repriced(FeaturePrices.of(self.weights, prices)))
        return np.asarray((best.cost + self._flat_cost(prices)).cpu().numpy())

    def value(self, prices: Floats) -> float:
        """sum_j max(0, v_j - C_j); v_j - C_j for samples that must be picked"""
        gain = self.gains(prices)
        must = self.must.cpu().numpy() & np.isfinite(gain)
        return float(np.where(must, gain, np.maximum(gain, 0.0)).sum())

    def relative_costs(self, prices: Floats) -> Floats:
        """C_j / v_j of the samples with a flip and a positive worth, without quotas"""
        costs, worth = self.costs(prices[self.budgets]), self.problem.worth[self.rows]
        some = np.isfinite(costs) & (worth > 0)
        return costs[some] / worth[some]

    def proved_gains(self, prices: Floats) -> Floats | None:
        """(B,): proved upper bounds of max(0, v_j - C_j), from lower bounds of C_j; None if nothing can be proved."""
        if self.forms is None or not linear.provable(self.forms):
            return None
        surface = self._at(prices, softness=0.0)
        at = torch.nonzero(~self.unreachable).flatten()
        lower = torch.full_like(self.worth, torch.inf)
        lower[at] = linear.lower_bounds(surface, self.forms, at)
        # Searches give a feature with price 0 a tiny one instead: subtract the cost that this adds.
        free = FeaturePrices.of(self.weights, prices[self.budgets]).free
        rates = surface.rates
        furthest = [
            torch.where(self._tensor(one), rate.squared * end**2, 0.0)
            for one, rate, end in zip(free, (rates.up, rates.down), (surface.high, surface.low), strict=True)
        ]
        saved = torch.maximum(*furthest).sum(dim=1)
        lower = torch.where(torch.isinf(lower), lower, (lower - saved).clamp_min(0.0))
        gain = self._worth_at(prices) - lower * (1 - 1e-12) - self._flat_cost(prices)
        gain = torch.where(self.must & torch.isfinite(gain), gain, gain.clamp_min(0.0))
        return np.asarray(gain.cpu().numpy())

    @property
    def is_unreachable(self) -> Mask:
        """(B,): proved to have no flip"""
        still = ((self.surface.low == 0) & (self.surface.high == 0)).all(dim=1)
        return np.asarray(((self.unreachable | still) & ~self.found).cpu().numpy())

    def rows_unreachable(self) -> Rows:
        return self.rows[self.is_unreachable]

    def rows_found(self) -> Rows:
        known = self.found.clone()
        for at, _ in self.told:
            known[at] = True
        return np.asarray(self.rows[known.cpu().numpy()])

    def rows_unusable(self) -> Rows:
        return np.asarray(self.rows[(self.surface.broken & ~self.found).cpu().numpy()])

    def offered(
        self, prices: Floats, band: float, most: float, latest: int = SHARD.latest, dearest: float | None = np.inf
    ) -> FlipSet:
        """Candidates at these prices: each sample's cheapest flip; its cheapest at bent prices, whose total draw is
        what the market cleared; and alternatives from the first and the latest searches.

        Alternatives are kept for samples whose net gain lies in [-band, most] x worth. They cost at most band x worth
        more than the cheapest flip. Samples whose net gain is below -dearest x worth offer nothing. If `dearest` is
        None, all offer something, also those that are worth nothing.
        """
        costs = self._costs(self._at(prices, softness=0.0))
        best = self._cheapest(costs)
        slack = band * self.worth
        gain = self._worth_at(prices) - self._charged(best.cost, prices)
        near = (gain >= -slack) & (gain <= most * self.worth)
        offered = best.found if dearest is None else best.found & (self.must | (gain >= -dearest * self.worth))
        rows, changes = [self.rows[offered.cpu().numpy()]], [best.change[offered]]
        if self.has_kinks:
            bent = self._best(self._at(prices)).change
            unlike = offered & (gain >= -slack) & (bent != best.change).any(dim=1)
            rows.append(self.rows[unlike.cpu().numpy()])
            changes.append(bent[unlike])
        known = list(zip(self.seen, costs[: len(self.seen)], strict=True))
        for (at, change), price in [*known[:1], *known[1:][-latest:]]:
            other = near[at] & (price <= (best.cost + slack)[at]) & (change != best.change[at]).any(dim=1)
            rows.append(self.rows[at[other].cpu().numpy()])
            changes.append(change[other])
        return self._as_flips(rows, changes)

    def _as_flips(self, rows: list[Rows], changes: list[torch.Tensor]) -> FlipSet:
        every = np.concatenate(rows)
        moved = torch.cat(changes).cpu().numpy()
        width = self.problem.width

        def stored(part: slice) -> Floats:
            full = np.zeros((len(every[part]), width))
            full[:, self.problem.actionable] = moved[part]
            return self.problem.settle(every[part], full)

        return FlipSet(every, filled(stored, (len(every), width)))

    def _at(self, prices: Floats, softness: float = CLEARING.final) -> Surface:
        """The surface at these prices, with absolute prices smoothed ("bent") as in the dual of that softness.

        Flips are searched at bent prices too, so that their total draw is what the market cleared. At straight prices
        all samples would move only the cheapest feature.
        """
        own = prices[self.budgets]
        plain = FeaturePrices.of(self.weights, own).floored(self.problem.spread)
        return self.surface.repriced(plain.bent(FeaturePrices.of(self.bent, own), SHARD.bend * softness))

    def _cost(self, surface: Surface) -> torch.Tensor:
        return surface.rates.cost(self.change)

    def _best(self, surface: Surface) -> gradient.Best:
        """Each sample's cheapest known flip at the surface's prices."""
        return self._cheapest(self._costs(surface))

    def tell(self, flips: FlipSet) -> None:
        """Add known flips; those of other shards' samples are ignored."""
        row_at = np.argsort(self.rows, kind="stable")
        own = np.flatnonzero(np.isin(flips.rows, self.rows))
        at = row_at[np.searchsorted(self.rows, flips.rows[own], sorter=row_at)]
        changes = flips.changes[own][:, self.problem.actionable]
        device = self.worth.device
        # Split them into parts with at most one flip per sample.
        turn = _turns(at)
        for k in range(int(turn.max(initial=-1)) + 1):
            part = turn == k
            self.told.append((torch.as_tensor(at[part], device=device), torch.as_tensor(changes[part], device=device)))

    def _costs(self, surface: Surface) -> list[torch.Tensor]:
        """Costs of all known flips."""
        return [surface.cost(change, at) for at, change in (*self.seen, *self.told)]

    def _cheapest(self, costs: list[torch.Tensor]) -> gradient.Best:
        best = gradient.Best.none(self.change)
        for (at, change), price in zip((*self.seen, *self.told), costs, strict=True):
            best.record(at, change, price, torch.zeros_like(price))
        return best

    def _competitive(self, price: torch.Tensor, prices: Floats, reach: float) -> torch.Tensor:
        affordable = self._charged(price, prices) <= reach * self._worth_at(prices)
        return torch.nonzero(self.found & (self.must | affordable)).flatten()

    def _contested(self, price: torch.Tensor, prices: Floats) -> torch.Tensor:
        """Samples for which a cheaper flip may matter: those whose flip is neither very cheap nor much dearer than
        their worth."""
        charged, worth = self._charged(price, prices), self._worth_at(prices)
        dear = SHARD.dear_later if self.followed > 1 else SHARD.dear
        some = (charged >= SHARD.cheap * worth) & (charged <= dear * worth)
        return torch.nonzero(self.found & (self.must | some)).flatten()

    def _charged(self, price: torch.Tensor, prices: Floats) -> torch.Tensor:
        """Cost of flips with this price, count budgets included. If all features are free, the price is only the tiny
        one of searches, and is not charged."""
        is_free = self._tensor(FeaturePrices.of(self.weights, prices[self.budgets]).all_free)
        return torch.where(is_free & torch.isfinite(price), 0.0, price) + self._flat_cost(prices)

    def _flat_cost(self, prices: Floats) -> torch.Tensor:
        """(), or (B,): what a picked sample pays whatever its change, such as for its place in a count budget"""
        return self._tensor(self.flats @ prices[self.budgets])

    def _tensor(self, values: Any) -> torch.Tensor:
        return torch.as_tensor(values, device=self.worth.device)

    def _keep(self, surface: Surface, best: gradient.Best, at: torch.Tensor) -> None:
        if not self.surface.is_smooth:
            best, at = self._on_grid(surface, best, at)
        self.change, self.found = best.change, best.found
        self.seen.append((at, best.change[at].clone()))
        self._update_planes(surface, at)

    def _on_grid(self, surface: Surface, best: gradient.Best, at: torch.Tensor) -> tuple[gradient.Best, torch.Tensor]:
        """Move the flips best.change[at] to the grid. Returns the best known flips, these included, and
        which of `at` have one."""
        change, found = lawful_flips(surface, best.change[at], at)
        known = self._best(surface)
        known.record(at, change, surface.cost(change, at), torch.where(found, 0.0, -1.0))
        return known, at[known.found[at]]

    def _update_planes(self, surface: Surface, at: torch.Tensor) -> None:
        """Compute the planes g . d = r of the samples `at`, at their flips."""
        here = self.change[at]
        m, g = surface.margin_and_gradient(here, at)
        self.g[at] = _supporting(surface, at, here, g)
        self.r[at] = (self.g[at] * here).sum(dim=1) - (m if self.surface.is_smooth else 0.0)

    def _keep_exact(self, exact: linear.Searched) -> None:
        at = torch.nonzero(exact.found).flatten()
        self.change[at], self.g[at], self.r[at] = exact.change[at], exact.pull[at], exact.offset[at]
        self.found |= exact.found
        self.seen.append((at, exact.change[at]))


def _turns(at: Rows) -> Rows:
    """(c,): number of earlier entries equal to each one"""
    order = np.argsort(at, kind="stable")
    begins = np.flatnonzero(np.append(True, at[order][1:] != at[order][:-1])[: len(at)])
    turn = np.empty(len(at), dtype=np.int64)
    turn[order] = np.arange(len(at)) - np.repeat(begins, np.diff(np.append(begins, len(at))))
    return turn


def _supporting(surface: Surface, at: torch.Tensor, d: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """(b, A): the surface's normal at the cheapest flips d (b, A).

    This is the gradient g of m, unless m has a kink there because two classes tie. Then optimality implies the gradient
    of the cost, 2 s_i d_i + l_i sign d_i, for the d_i that are free to move; for the others g is used.
    """
    squared, absolute = surface.rates.of(at).along(d)
    normal = 2 * squared * d + absolute * d.sign()
    free = (d != 0) & (d > surface.low[at]) & (d < surface.high[at]) & (squared > 0)
    scale = torch.where(free, 1.0 / torch.where(squared > 0, squared, 1.0), 0.0)
    along, own, other = (normal * g * scale).sum(1), (normal**2 * scale).sum(1), (g**2 * scale).sum(1)
    kinked = (along > 0) & (along < SHARD.kinked_cosine * (own * other).sqrt())
    factor = torch.where(kinked, along / own, 0.0)[:, None]
    return torch.where(kinked[:, None] & free, factor * normal, g)
