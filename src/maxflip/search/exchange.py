"""Cheaper flips by exchanges: one slot changes less or not at all, and another one makes up for it.

Every move of a slot i (a step less, a step more, back to the start, none) is crossed with every other slot j, which
goes to the first point at or beyond the tangent plane of m at the present flip. The cheapest of these pairs are judged
by m itself, and the cheapest that passes takes the flip's place, as long as one is found.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from maxflip.search.lattice import Lattice
from maxflip.search.plane import of_features
from maxflip.search.rates import Rates
from maxflip.search.settings import EXCHANGE, GRID
from maxflip.search.surface import Surface


def exchanged(surface: Surface, d: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The cheapest flips (b, A) found by exchanges from d (b, A), which are flips of the samples `at`."""
    best = d.clone()
    wide = min(d.shape[1], EXCHANGE.slots)
    size = max(1, EXCHANGE.pairs // wide**2)
    for begin in range(0, len(at), size):
        part = slice(begin, begin + size)
        best[part] = _Exchange(surface, at[part]).run(d[part])
    return best


@dataclass(frozen=True, eq=False)
class _Slots:
    """c slots of b samples, (b, c) each.   which: their numbers   others: how many other slots of the feature change

    features (b, 1): how many change
    """

    which: torch.Tensor
    lattice: Lattice
    rates: Rates
    features: torch.Tensor
    d: torch.Tensor
    g: torch.Tensor
    others: torch.Tensor


class _Exchange:
    """Exchanges in one flip each of the samples `at` (b,)."""

    def __init__(self, surface: Surface, at: torch.Tensor) -> None:
        self.surface, self.at, self.lattice = surface, at, Lattice.of(surface, at)
        self.rates = surface.rates.of(at)
        self.features = of_features(surface)
        self.most = surface.most or self.features.shape[1]

    def run(self, d: torch.Tensor) -> torch.Tensor:
        best, open_ = d.clone(), torch.arange(len(d), device=d.device)
        for _ in range(EXCHANGE.turns):
            if not len(open_):
                break
            m, g = self.surface.margin_and_gradient(best[open_], self.at[open_])
            pairs, price = self._cheapest_pairs(best[open_], m, g, open_)
            passing = self._passing(pairs, price, open_)
            new = torch.where(passing, price, torch.inf).min(dim=1)
            found = torch.isfinite(new.values)
            open_ = open_[found]
            best[open_] = pairs[found, new.indices[found]]
        return best

    def _passing(self, pairs: torch.Tensor, price: torch.Tensor, who: torch.Tensor) -> torch.Tensor:
        """(b, t): which pairs (b, t, A) are flips, as they would be stored; these take their places"""
        some, which = torch.nonzero(torch.isfinite(price), as_tuple=True)
        at = self.at[who[some]]
        exact = self.surface.moved(pairs[some, which], at)
        passing = torch.zeros_like(price, dtype=torch.bool)
        passing[some, which] = self.surface.margin(exact, at) >= -GRID.rounding
        pairs[some, which] = exact
        return passing

    def _slots(self, d: torch.Tensor, g: torch.Tensor, who: torch.Tensor) -> _Slots:
        """All slots or, if they are many, those that change and those that win m at least cost."""
        rates = self.rates.of(who).mapped(lambda part: part.expand_as(d))
        lattice = self.lattice.those(who)
        squared, absolute = rates.along(g)
        size = torch.maximum(lattice.spacing, lattice.least)
        rate = g.abs() / (squared * size + absolute).clamp_min(1e-300)
        order = torch.where(d != 0, torch.inf, rate).argsort(dim=1, descending=True, stable=True)
        which = order[:, : EXCHANGE.slots]
        changed = (d != 0).to(d)
        by_feature = changed @ self.features
        others = by_feature @ self.features.T - changed
        return _Slots(
            which,
            lattice.slots(which),
            rates.mapped(lambda part: part.gather(1, which)),
            (by_feature > 0).sum(dim=1, keepdim=True),
            *(part.gather(1, which) for part in (d, g, others)),
        )

    def _cheapest_pairs(
        self, d: torch.Tensor, m: torch.Tensor, g: torch.Tensor, who: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The cheapest changes (b, t, A) that pairs of moves make; and their prices (b, t), inf for no pair"""
        own = self._slots(d, g, who)
        c = own.d.shape[1]
        moves = self._moves(own)  # (b, 4 c)
        slot = torch.arange(c, device=d.device).repeat(4)  # of each move
        partner, extra = self._partners(own, moves, slot, m)  # (b, 4 c, c) each
        top = extra.flatten(1).topk(min(EXCHANGE.tried, extra[0].numel()), dim=1, largest=False)
        move, j = top.indices // c, top.indices % c
        pairs = d[:, None].repeat(1, top.indices.shape[1], 1)
        for where, to in ((slot[move], moves.gather(1, move)), (j, partner.flatten(1).gather(1, top.indices))):
            pairs.scatter_(2, own.which.gather(1, where)[..., None], to.nan_to_num()[..., None])
        now = self.rates.of(who).cost(d)[:, None]
        return pairs, torch.where(top.values < -EXCHANGE.least_saving * now, now + top.values, torch.inf)

    @staticmethod
    def _moves(own: _Slots) -> torch.Tensor:
        """(b, 4 c): where each slot may go: a step towards its start, a step that wins m, to its start, nowhere"""
        less, more = own.lattice.next(own.d, -own.d.sign()), own.lattice.next(own.d, own.g.sign())
        to_start = torch.where(own.d != 0, 0.0, torch.nan)
        return torch.cat([less, more, to_start, own.d], dim=1)

    def _partners(
        self, own: _Slots, moves: torch.Tensor, slot: torch.Tensor, m: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(b, 4 c, c): where slot j goes if slot i makes a move; and what both cost more, inf where they cannot"""
        b, c = own.d.shape
        d, g, now = own.d.repeat(1, 4), own.g.repeat(1, 4), own.rates.of_each(own.d)
        won = g * (moves - d)
        more = own.rates.mapped(lambda part: part.repeat(1, 4)).of_each(moves) - now.repeat(1, 4)
        left = m[:, None] + won
        divisor = torch.where(own.g != 0, own.g, torch.nan)[:, None]
        wanted = own.d[:, None] - left[:, :, None] / divisor
        every = torch.arange(b, device=d.device).repeat_interleave(4 * c)
        sign = own.g.sign()
        there = own.lattice.those(every).reaching(wanted.flatten(0, 1), sign[every]).view(b, 4 * c, c)
        extra = more[:, :, None] + own.rates.mapped(lambda part: part[:, None]).of_each(there) - now[:, None]
        is_own = slot[:, None] == torch.arange(c, device=d.device)
        is_own[3 * c :] = False  # who goes nowhere is a partner of none, and each j is tried once
        is_own[3 * c + 1 :] = True
        alone, begins = (d != 0) & (own.others.repeat(1, 4) == 0), (d == 0) & (own.others.repeat(1, 4) == 0)
        count = own.features - (alone & (moves == 0)).long() + (begins & (moves != 0)).long()
        alone, begins = (part[:, None, :c] for part in (alone, begins))
        count = count[:, :, None] - (alone & (there == 0)).long() + (begins & (there != 0)).long()
        return there, torch.where(is_own | torch.isnan(extra) | (count > self.most), torch.inf, extra)
