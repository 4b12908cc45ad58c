"""Relaxed random selections: who is picked, as a number between 0 and 1 that can be differentiated by Pi.

Gumbel noise is g = -log E with E exponential; a difference of two is logistic. As omega tends to 0, draws become hard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

LEAST = 1e-6  # pi is kept so far from 0 (and, for Bernoulli, from 1) where its logarithm is taken
BLOCK = 2**22  # numbers of Categorical noise held at a time: 32 MiB, and about four times that while they are worked


def bernoulli(pi: torch.Tensor, omega: float, draws: int, generator: torch.Generator) -> torch.Tensor:
    """pi (n,) -> v (N, n), independent:

    v_nj = e^((log pi_j + g1)/omega) / (e^((log pi_j + g1)/omega) + e^((log(1 - pi_j) + g2)/omega))
         = sigmoid((logit pi_j + g1 - g2) / omega)
    """
    uniform = torch.rand(draws, len(pi), dtype=pi.dtype, device=pi.device, generator=generator)
    tiny = torch.finfo(pi.dtype).eps
    logistic = torch.logit(uniform.clamp(tiny, 1.0 - tiny))
    return torch.sigmoid((torch.logit(_inside(pi, 1.0 - LEAST)) + logistic) / omega)


def categorical(
    pi: torch.Tensor, omega: float, draws: int, choices: int, noise: Callable[[], torch.Generator]
) -> torch.Tensor:
    """pi (n,) -> sums (N, n) of K = `choices` relaxed Categorical choices; `hits` makes selections of them:

    sum_xi  e^((log pi_j + g_j,xi)/omega) / sum_k e^((log pi_k + g_k,xi)/omega)
    """
    summed: torch.Tensor = _Categorical.apply(_inside(pi, torch.inf), omega, draws, choices, noise)  # type: ignore[no-untyped-call]
    return summed


def hits(summed: torch.Tensor) -> torch.Tensor:
    """v = min(1, sum over the K choices); no gradient where that is 1."""
    return summed.clamp(max=1.0)


def _inside(pi: torch.Tensor, most: float) -> torch.Tensor:
    """pi, kept inside [LEAST, most]; its gradient is that of the nearest point inside, so that no 0 is for ever."""
    return pi + (pi.clamp(LEAST, most) - pi).detach()


class _Categorical(torch.autograd.Function):
    """The sums over K choices and their gradient, block by block: the N x K x n noise is never held at once.

    With w = (pi / E)^(1/omega) and y_j = w_j / sum_k w_k for each choice, a gradient q (N, n) of the sums becomes

        d/d pi_j = 1/(omega pi_j) sum_{n, xi} y_j (q_nj - sum_k q_nk y_k)
    """

    @staticmethod
    def forward(
        ctx: Any, pi: torch.Tensor, omega: float, draws: int, choices: int, noise: Callable[[], torch.Generator]
    ) -> torch.Tensor:
        ctx.drawn = lambda: _blocks(pi, omega, draws, choices, noise())
        if draws * choices * len(pi) <= BLOCK:  # no need to draw the same again for the gradient
            kept = list(ctx.drawn())
            ctx.drawn = lambda: kept
        ctx.pi, ctx.omega = pi, omega
        summed = pi.new_zeros(draws, len(pi))
        for part, y in ctx.drawn():
            summed[part] += y.sum(dim=1)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (q,) = gradients
        slope = torch.zeros_like(ctx.pi)
        for part, y in ctx.drawn():
            of_draw = q[part]
            along = torch.einsum("cn,ckn->ck", of_draw, y)
            slope += torch.einsum("cn,ckn->n", of_draw, y) - torch.einsum("ck,ckn->n", along, y)
        return slope / (ctx.omega * ctx.pi), None, None, None, None


def _blocks(
    pi: torch.Tensor, omega: float, draws: int, choices: int, generator: torch.Generator
) -> Iterator[tuple[slice, torch.Tensor]]:
    """(draws, y (c, kappa, n)): some choices of some draws at a time, cut by size alone."""
    n = max(1, len(pi))
    at_once = max(1, min(choices, BLOCK // n))
    side_by_side = max(1, min(draws, BLOCK // (n * at_once))) if at_once == choices else 1
    for begin in range(0, draws, side_by_side):
        part = slice(begin, min(begin + side_by_side, draws))
        for first in range(0, choices, at_once):
            shape = (part.stop - part.start, min(at_once, choices - first), len(pi))
            waiting = torch.empty(shape, dtype=pi.dtype, device=pi.device).exponential_(generator=generator)
            w = pi / waiting.clamp_min_(torch.finfo(pi.dtype).tiny)
            if omega != 1.0:
                w = (w / w.amax(dim=2, keepdim=True)) ** (1.0 / omega)
            yield part, w / w.sum(dim=2, keepdim=True)
