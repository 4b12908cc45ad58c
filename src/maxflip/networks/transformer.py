"""A small transformer for sequences with missing values and uneven timestamps."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from maxflip.errors import InputError
from maxflip.networks.base import Names, Numbers, SequenceNetwork

MOST_LAYERS = 100  # limit, so that a file cannot state an enormous number of layers


class SequenceTransformer(SequenceNetwork):
    """A transformer encoder over the steps; its outputs are averaged over the sequence.

    The input of a step is its values (0 where missing) and observation flags, projected linearly, plus sines and
    cosines of the time since the first step. Layers are torch's (norm first, gelu, no dropout), with padding masked.
    Static features are concatenated to the average before the output layer.
    """

    def __init__(
        self,
        inputs: Names,
        hidden: int,
        classes: Names = 2,
        static: Names = 0,
        *,
        heads: int = 4,
        layers: int = 2,
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
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (heads, layers))
        if not whole or not 1 <= layers <= MOST_LAYERS or heads < 1 or hidden % 2 or hidden % heads:
            raise InputError(
                f"hidden = {hidden}, heads = {heads}, layers = {layers}: wanted hidden to be even and a multiple of "
                f"heads, and 1 to {MOST_LAYERS} layers."
            )
        self.takes = ("x", "observed", "time", "length") + (("static",) if self.static else ())
        self.heads, self.layers = heads, layers
        self.step = nn.Linear(2 * self.inputs, hidden)
        layer = nn.TransformerEncoderLayer(
            *(hidden, heads, 4 * hidden), dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(hidden), enable_nested_tensor=False)
        self.head = self.make_head(hidden + self.static)

    def arguments(self) -> dict[str, Any]:
        return super().arguments() | {"heads": self.heads, "layers": self.layers}

    def forward(
        self, x: Tensor, observed: Tensor, time: Tensor, length: Tensor, static: Tensor | None = None
    ) -> Tensor:
        """x (B, T, F), observed (B, T, F), time (B, T), length (B,), static (B, S) -> (B, k)"""
        exists = torch.arange(x.shape[1], device=x.device) < length[:, None]
        values = torch.cat([self.standard(x, observed), observed.to(x.dtype)], dim=2)
        since = (time - time[:, :1]) / self.time_scale
        states = self.encoder(self.step(values) + waves(since, self.hidden), src_key_padding_mask=~exists)
        total = torch.where(exists[:, :, None], states, 0.0).sum(dim=1)
        return self.logits(self.head, total / length[:, None].to(x.dtype), self.standard_static(static))


def waves(time: Tensor, width: int) -> Tensor:
    """(B, T) -> (B, T, width): sines, then cosines, of frequencies from 1 down to nearly 1 / 10,000."""
    frequencies = [math.pow(10_000.0, -2 * k / width) for k in range(width // 2)]
    phases = time[:, :, None] * torch.tensor(frequencies, dtype=time.dtype, device=time.device)
    return torch.cat([phases.sin(), phases.cos()], dim=2)
