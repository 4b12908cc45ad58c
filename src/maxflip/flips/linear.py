"""Cheapest flips of a linear model with two classes: one half-space per sample, solved exactly and with a proof."""

from __future__ import annotations

import torch

from maxflip.classifiers import LinearForm
from maxflip.flips.halfspace import cheapest_into_halfspace
from maxflip.flips.surface import LIFT, Surface

# The model computes in its own dtype; where that rounds a flip back over the line, aim a little further.
FURTHER = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)


def applies(form: LinearForm | None) -> bool:
    """One wanted and one unwanted class: the accepted set is a half-space."""
    return form is not None and len(form.weight) == 2


def search(surface: Surface, form: LinearForm) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """change (B, A), found (B,), unreachable (B,): proved, for the far corner of its box falls short."""
    device = surface.x.device
    weight, bias = form.weight.to(device), form.bias.to(device)
    sign = torch.where(surface.wanted[:, 1], 1.0, -1.0)
    g = sign[:, None] * (weight[1] - weight[0])[surface.columns]
    score = sign * (surface.x @ (weight[1] - weight[0]) + bias[1] - bias[0])
    zero = torch.zeros_like(score)
    pair = torch.stack([torch.where(sign > 0, zero, score), torch.where(sign > 0, score, zero)], dim=1)
    log_p = torch.log_softmax(pair, dim=1)
    guard, goal = surface.problem.guard, surface.problem.goal
    missing = -goal.log_margin(log_p, surface.wanted, LIFT * guard)
    # Proof against rounding: out of reach means short of the line by a guard, with every value at its limit.
    furthest = (g.abs() * torch.where(g > 0, surface.high, -surface.low)).nan_to_num(nan=0.0).sum(dim=1)
    unreachable = furthest < -goal.log_margin(log_p, surface.wanted, -guard)

    change = torch.zeros_like(surface.low)
    found = torch.zeros(len(change), dtype=torch.bool, device=device)
    at = torch.arange(len(change), device=device)
    scale = 1.0 + missing.abs() + score.abs()
    for extra in FURTHER:
        r = missing[at] + extra * scale[at]
        flip = cheapest_into_halfspace(g[at], r, surface.squared, surface.absolute, surface.low[at], surface.high[at])
        passes = flip.reachable & (surface.margin(flip.change, at, guards=1.0) >= 0)
        change[at[passes]] = flip.change[passes]
        found[at[passes]] = True
        at = at[~passes & flip.reachable]
        if not len(at):
            break
    return change, found, unreachable
