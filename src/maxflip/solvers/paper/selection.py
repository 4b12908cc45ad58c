"""Relaxed random selections: numbers between 0 and 1 per sample, differentiable in Pi.

Gumbel noise is g = -log E with E exponential; the difference of two is logistic. As omega tends to 0, v becomes 0/1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from maxflip.solvers.paper.details import DETAILS

Block = tuple[slice, torch.Tensor, torch.Tensor]  # selections, w (selections, choices, n) and its sums over n


def bernoulli(pi: torch.Tensor, omega: float, draws: int, generator: torch.Generator) -> torch.Tensor:
    """pi (n,) -> v (N, n), independent:

    v_nj = e^((log pi_j + g1)/omega) / (e^((log pi_j + g1)/omega) + e^((log(1 - pi_j) + g2)/omega))
         = sigmoid((logit pi_j + g1 - g2) / omega)
    """
    # In place: with new memory for every operation, large cohorts would be slower per sample than small ones.
    v = torch.rand(draws, len(pi), dtype=pi.dtype, device=pi.device, generator=generator)
    tiny = torch.finfo(pi.dtype).eps
    v = v.clamp_(tiny, 1.0 - tiny).logit_().add_(torch.logit(_inside(pi, 1.0 - DETAILS.least_probability)))
    return v.div_(omega).sigmoid_() if omega != 1.0 else v.sigmoid_()


def categorical(
    pi: torch.Tensor, omega: float, draws: int, choices: int, noise: Callable[[], torch.Generator]
) -> torch.Tensor:
    """pi (n,) -> sums (N, n) over K = `choices` relaxed Categorical choices; `hits` turns them into selections:

    sum_xi  e^((log pi_j + g_j,xi)/omega) / sum_k e^((log pi_k + g_k,xi)/omega)
    """
    summed: torch.Tensor = _Categorical.apply(_inside(pi, torch.inf), omega, draws, choices, noise)  # type: ignore[no-untyped-call]
    return summed


def hits(summed: torch.Tensor) -> torch.Tensor:
    """v = min(1, sum over the K choices), with gradient 0 where v = 1."""
    return summed.clamp(max=1.0)


def _inside(pi: torch.Tensor, most: float) -> torch.Tensor:
    """pi clamped to [`least_probability`, `most`], with the gradient of the identity, so that a probability of 0 can
    rise again."""
    return pi + (pi.clamp(DETAILS.least_probability, most) - pi).detach()


class _Categorical(torch.autograd.Function):
    """The sums over K choices and their gradient, block by block.

    With w_j = (pi_j / E_j)^(1/omega) and y_j = w_j / sum_k w_k for each choice, a gradient q (N, n) of the sums becomes

        d/d pi_j = 1/(omega pi_j) sum_{n, xi} y_j (q_nj - sum_k q_nk y_k)
    """

    @staticmethod
    def forward(
        ctx: Any, pi: torch.Tensor, omega: float, draws: int, choices: int, noise: Callable[[], torch.Generator]
    ) -> torch.Tensor:
        blocks: Iterable[Block] = _blocks(pi, omega, draws, choices, noise())
        if draws * choices * len(pi) <= DETAILS.noise_kept:
            blocks = list(blocks)
        summed = pi.new_zeros(draws, len(pi))
        for part, w, total in blocks:
            summed[part] += torch.einsum("ck,ckn->cn", 1.0 / total, w)
        ctx.again = lambda: blocks if isinstance(blocks, list) else _blocks(pi, omega, draws, choices, noise())
        ctx.save_for_backward(pi, summed)
        ctx.omega = omega
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (q,), (pi, summed) = gradients, ctx.saved_tensors
        slope = (q * summed).sum(dim=0)
        for part, w, total in ctx.again():
            along = torch.einsum("cn,ckn->ck", q[part], w) / total
            slope -= torch.einsum("ck,ckn->n", along / total, w)
        return slope / (ctx.omega * pi), None, None, None, None


def _blocks(pi: torch.Tensor, omega: float, draws: int, choices: int, generator: torch.Generator) -> Iterator[Block]:
    """Blocks of some choices of some selections. Their sizes depend on the shapes alone."""
    n = max(1, len(pi))
    at_once = max(1, min(choices, DETAILS.noise_block // n))
    side_by_side = max(1, min(draws, DETAILS.noise_block // (n * at_once))) if at_once == choices else 1
    for begin in range(0, draws, side_by_side):
        part = slice(begin, min(begin + side_by_side, draws))
        for first in range(0, choices, at_once):
            shape = (part.stop - part.start, min(at_once, choices - first), len(pi))
            w = torch.empty(shape, dtype=pi.dtype, device=pi.device).uniform_(generator=generator)
            torch.div(pi, w.log_().neg_(), out=w)
            if omega != 1.0:
                w = w.div_(w.amax(dim=2, keepdim=True)).pow_(1.0 / omega)
            yield part, w, w.sum(dim=2)
