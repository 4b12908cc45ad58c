"""The cheapest flips that anything finds at given prices: the witness against which networks are judged.

Feature i is counted in units of 1 / sqrt(price_i), so that cost is squared length and methods that know no prices can
take part: 1,000 steps of DDN and of FMN (foolbox, as flips.py sets them up), ALMA with 3 x 1,000, and our
own search from random flips, again and again. Every flip is judged by the same surface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import Problem
from maxflip.search import FeaturePrices
from maxflip.search.gradient import search
from maxflip.search.surface import Surface
from research.benchmarks.alma import alma
from research.benchmarks.flips import MARGIN, WithMargin, long_rivals, random_flips

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
RESTARTS = 20
FURTHEST = 20.0  # foolbox wants bounds: a flip that is worth its price has length 1 at most


class Scaled(nn.Module):
    """The net as a function of u = sqrt(price) d, (B, A), for this very batch of samples."""

    def __init__(self, net: nn.Module, surface: Surface, unit: torch.Tensor) -> None:
        super().__init__()
        self.net, self.surface, self.unit = net, surface, unit

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        x = self.surface.x.index_add(1, self.surface.columns, u.double() * self.unit)
        logits: torch.Tensor = self.net(x.float())
        return logits


@dataclass(eq=False)
class ScaledSurface:
    """What alma() asks of a surface, in the same units."""

    surface: Surface
    unit: torch.Tensor

    def __post_init__(self) -> None:
        self.low, self.high = self.surface.low / self.unit, self.surface.high / self.unit
        self.squared, self.absolute = torch.ones_like(self.unit), torch.zeros_like(self.unit)

    def margin(self, u: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return self.surface.margin(u * self.unit, at)

    def margin_and_gradient(self, u: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        m, g = self.surface.margin_and_gradient(u * self.unit, at)
        return m, g * self.unit


def cheapest_known(problem: Problem, net: nn.Module, rows: Rows, prices: Floats, *, quick: bool) -> dict[str, Floats]:
    """What each method's flips of these rows cost at these prices, (B,) each; inf where it found none."""
    surface = Surface(problem, rows, FeaturePrices.at(problem, prices))
    unit = 1.0 / surface.rates.up.squared.sqrt()
    found = {"our search, restarted": _restarts(surface, 2 if quick else RESTARTS)}
    if not quick:
        found["ALMA, 3 x 1,000 steps"] = alma(ScaledSurface(surface, unit), steps=1000).numpy()  # type: ignore[arg-type]
        for name in ("DDN, 1,000 steps", "FMN, 1,000 steps"):
            attack = long_rivals(FURTHEST)[name]
            found[name] = _foolbox(surface, Scaled(net, surface, unit), unit, attack(), problem.guard)
    return found


def _restarts(surface: Surface, times: int) -> Floats:
    best = search(surface)
    everyone = torch.arange(len(surface.rows))
    generator = torch.Generator().manual_seed(0)
    for _ in range(times):
        again = search(surface, start=random_flips(surface, best.change, generator))
        best.record(everyone, again.change, again.cost, torch.where(again.found, 0.0, -1.0))
    return np.asarray(best.cost.numpy())


def _foolbox(surface: Surface, net: nn.Module, unit: torch.Tensor, attack: Any, guard: float) -> Floats:
    import foolbox as fb

    margin = MARGIN + 2.5 * guard  # the surface itself asks for two
    model = fb.PyTorchModel(WithMargin(net, margin).eval(), bounds=(-FURTHEST, FURTHEST))
    criterion = fb.criteria.TargetedMisclassification(torch.zeros(len(surface.rows), dtype=torch.long))
    _, u, _ = attack(model, torch.zeros(surface.low.shape), criterion, epsilons=None)
    d = u.detach().double() * unit
    passing = surface.margin(d, torch.arange(len(d))) >= 0
    price = surface.rates.cost(d)
    return np.asarray(torch.where(passing, price, torch.inf).numpy())
