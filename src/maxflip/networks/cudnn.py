"""Gradients of nn.LSTM, nn.GRU and nn.RNN modules in eval mode, which cuDNN does not support."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def differentiable_in_eval(net: nn.Module) -> Iterator[None]:
    """Inside, recurrent torch layers support a backward pass with cuDNN, with the outputs of eval mode.

    cuDNN needs training mode for that. Its only other effect on such layers is dropout, which is set to 0; both are
    restored afterwards. Switching cuDNN off instead would be slower. The networks of maxflip do not need this.
    """
    layers = [part for part in net.modules() if isinstance(part, nn.RNNBase) and not part.training]
    dropouts = [layer.dropout for layer in layers]
    try:
        for layer in layers:
            layer.training, layer.dropout = True, 0.0
        yield
    finally:
        for layer, dropout in zip(layers, dropouts, strict=True):
            layer.training, layer.dropout = False, dropout
