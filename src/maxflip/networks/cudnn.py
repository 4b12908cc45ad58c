"""Gradients of users' own nn.LSTM, nn.GRU and nn.RNN in eval mode, which cuDNN refuses to give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def differentiable_in_eval(net: nn.Module) -> Iterator[None]:
    """Inside, recurrent layers of torch keep what cuDNN needs for a backward pass, and answer as in eval mode.

    cuDNN keeps it in training mode alone, whose only other effect on such a layer is its dropout: that is set to 0, and
    both are put back afterwards. So cuDNN stays in use, where switching it off would cost its speed. The networks of
    maxflip do not need this.
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
