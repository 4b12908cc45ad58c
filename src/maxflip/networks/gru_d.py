"""GRU-D: a gated recurrent unit with inputs for missing values and the time since the last observation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from maxflip.networks.base import Names, Numbers, SequenceNetwork
from maxflip.networks.steps import Steps


class GRUD(SequenceNetwork):
    """GRU-D of Che, Purushotham, Cho, Sontag and Liu (2018).

    A missing value decays from the last observed one towards `means` (raw units; `shift` if not given), and the state
    decays towards 0, both with the time since the feature was last observed. Before its first observation a feature has
    its mean. Static features are concatenated to the state before the output layer. Masks and gaps are constants. The
    last values are taken from the input x, so changing an observed value also changes the values carried forward.
    """

    means: Tensor

    def __init__(
        self,
        inputs: Names,
        hidden: int,
        classes: Names = 2,
        static: Names = 0,
        *,
        means: Numbers | None = None,
        shift: Numbers | None = None,
        scale: Numbers | None = None,
        static_shift: Numbers | None = None,
        static_scale: Numbers | None = None,
        time_scale: float = 1.0,
    ) -> None:
        super().__init__(
            *(inputs, hidden, classes, static),
            shift=shift,
            scale=scale,
            static_shift=static_shift,
            static_scale=static_scale,
            time_scale=time_scale,
        )
        self.takes = ("x", "observed", "time", "length") + (("static",) if self.static else ())
        self._keep("means", means, self.shift.clone())
        near = self.hidden**-0.5
        # Where w delta + b is negative there is no decay and no gradient: initialise with w >= 0.
        self.decay_x_weight = nn.Parameter(torch.empty(self.inputs).uniform_(0, near))
        self.decay_x_bias = nn.Parameter(torch.zeros(self.inputs))
        self.decay_h = nn.Linear(self.inputs, self.hidden)
        nn.init.uniform_(self.decay_h.weight, 0, near)
        nn.init.zeros_(self.decay_h.bias)
        self.gates = nn.Linear(2 * self.inputs, 3 * self.hidden)  # [W V]: values, then masks; rows of r, z, c stacked
        self.recurrent = nn.Linear(self.hidden, 3 * self.hidden, bias=False)  # U of r, z, c
        for weights in (self.gates.weight, self.gates.bias, self.recurrent.weight):
            nn.init.uniform_(weights, -near, near)
        self.head = self.make_head(self.hidden + self.static)

    def forward(
        self, x: Tensor, observed: Tensor, time: Tensor, length: Tensor, static: Tensor | None = None
    ) -> Tensor:
        """x (B, T, F), observed (B, T, F), time (B, T), length (B,), static (B, S) -> (B, k)"""
        steps = Steps.of(length, x.shape[1])
        x, mask, time = steps.packed(x), steps.packed(observed), steps.packed(time[:, :, None])[:, 0]
        latest = steps.latest(mask)
        mean = (self.means - self.shift) / self.scale
        last: Tensor = _Carried.apply((x - self.shift) / self.scale, mask, latest, mean, steps)  # type: ignore[no-untyped-call]
        # A gap starts at the last earlier step with an observation, or at the first step.
        since = torch.maximum(latest - 1, steps.first[:, None])[steps.previous]
        gaps = (time[:, None] - time[since]) / self.time_scale
        kept = torch.exp(-functional.relu(self.decay_x_weight * gaps + self.decay_x_bias))
        values = torch.lerp(mean, last, kept.masked_fill(mask, 1.0))
        decays = torch.exp(-functional.relu(self.decay_h(gaps)))
        given = self.gates(torch.cat([values, mask.to(values.dtype)], dim=1))
        h = self._walk(steps, decays, *torch.split(given, [2 * self.hidden, self.hidden], dim=1))
        return self.logits(self.head, h, self.standard_static(static))

    def _walk(self, steps: Steps, decays: Tensor, given_rz: Tensor, given_c: Tensor) -> Tensor:
        u_rz, u_c = torch.split(self.recurrent.weight.t(), [2 * self.hidden, self.hidden], dim=1)
        h, ended = decays.new_zeros(steps.counts[0], self.hidden), []
        for decay, rz, c in zip(*map(steps.split, (decays, given_rz, given_c)), strict=True):
            if len(decay) < len(h):
                h, done = torch.split(h, [len(decay), len(h) - len(decay)])
                ended.append(done)
            h = decay * h
            r, z = torch.addmm(rz, h, u_rz).sigmoid().chunk(2, dim=1)
            h = torch.lerp(h, torch.addmm(c, r * h, u_c).tanh(), z)
        return steps.final([*ended, h])


class _Carried(Function):
    """Last observed value of each feature up to a step, or its mean before the first observation.

    Many steps use the same value. Their gradients are summed backwards through time, in a fixed order. The backward
    pass of `gather` has no fixed order on a GPU, so its results would not be reproducible.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, latest: Tensor, mean: Tensor, steps: Steps) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.steps = steps
        return torch.cat([mean[None], x]).gather(0, latest)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (mask,) = ctx.saved_tensors
        total = gradient.clone()
        totals, missing = ctx.steps.split(total), ctx.steps.split((~mask).to(total.dtype))
        for t in range(len(totals) - 1, 0, -1):
            totals[t - 1][: len(totals[t])].addcmul_(totals[t], missing[t])
        return total * mask, None, None, None, None
