"""A penalty method with multipliers in the manner of ALMA (Rony, Granger, Pedersoli, Ben Ayed, ICCV 2021).

    min cost(d) + P(-m(d))    P(y) = mu y + mu rho y^2 + rho^2 y^3 / 6  for y >= 0,   mu y / (1 - rho y)  for y < 0

Each sample has a multiplier mu, moved toward P'(y) at every step, and a penalty rho, which grows while the sample has
not crossed and does not come closer. The change itself goes by RMSProp with momentum and a falling step length. Here
y = -m, the log-margin that maxflip's own search uses, so that both aim at the same surface. It is slow and independent:
a witness, not a rival.
"""

from __future__ import annotations

import torch

from maxflip.search.surface import Surface

SMOOTH_MU, SMOOTH_SQUARES, MOMENTUM = 0.9, 0.99, 0.9
FIRST_STEPS = (0.03, 0.1, 0.3)  # per feature, of the distance to the surface; the best of the three runs counts
LAST_STEP = 0.01  # of the first one
CHECK_EVERY, ENOUGH, GROW = 10, 0.95, 1.2
LEAST_MU, MOST_MU = 1e-6, 1e12


def slope_of_penalty(y: torch.Tensor, rho: torch.Tensor, mu: torch.Tensor) -> torch.Tensor:
    outside = mu + 2 * mu * rho * y + rho**2 * y**2 / 2
    return torch.where(y >= 0, outside, mu / (1 - rho * y.clamp_max(0.0)) ** 2)


def alma(surface: Surface, steps: int) -> torch.Tensor:
    """(B,): the cost of the cheapest passing change seen, inf where there is none."""
    return torch.stack([_one_run(surface, steps, first_step) for first_step in FIRST_STEPS]).amin(dim=0)


def _one_run(surface: Surface, steps: int, first_step: float) -> torch.Tensor:
    everyone = torch.arange(len(surface.low))
    d = torch.zeros_like(surface.low)
    best = torch.full((len(d),), torch.inf, dtype=d.dtype)
    m, g = surface.margin_and_gradient(d, everyone)
    # Each sample in its own units: y is 1 at the start, and so is the distance to the surface, if it were flat.
    height = m.abs().clamp_min(1e-12)
    distance = height / g.norm(dim=1).clamp_min(1e-12)
    mu, rho = torch.ones_like(best), torch.ones_like(best)
    squares, velocity = torch.zeros_like(d), torch.zeros_like(d)
    at_last_check, crossed = torch.ones_like(best), torch.zeros_like(best, dtype=torch.bool)
    for k in range(steps):
        m, g = surface.margin_and_gradient(d, everyone)
        price = surface.rates.cost(d)
        best = torch.where(m >= 0, torch.minimum(best, price), best)
        crossed |= m >= 0
        y = -m / height
        mu = (SMOOTH_MU * mu + (1 - SMOOTH_MU) * slope_of_penalty(y, rho, mu)).clamp(LEAST_MU, MOST_MU)
        if k and k % CHECK_EVERY == 0:
            stuck = ~crossed & (y > ENOUGH * at_last_check)
            rho = torch.where(stuck, GROW * rho, rho)
            at_last_check, crossed = y, torch.zeros_like(crossed)
        of_cost = (2 * surface.rates.up.squared * d + surface.rates.up.absolute * torch.sign(d)) / distance[
            :, None
        ] ** 2
        pull = of_cost - (slope_of_penalty(y, rho, mu) / height)[:, None] * g
        squares = SMOOTH_SQUARES * squares + (1 - SMOOTH_SQUARES) * pull**2
        mean_square = squares / (1 - SMOOTH_SQUARES ** (k + 1))
        velocity = MOMENTUM * velocity + (1 - MOMENTUM) * pull / (mean_square.sqrt() + 1e-12)
        step = first_step * LAST_STEP ** (k / steps) * distance[:, None]
        d = (d - step * velocity).clamp(surface.low, surface.high)
    m = surface.margin(d, everyone)
    return torch.where(m >= 0, torch.minimum(best, surface.rates.cost(d)), best)
