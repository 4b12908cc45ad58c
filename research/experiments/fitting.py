"""One way to train every network here: AdamW, and the weights that were best on an inner validation part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from maxflip._util.rng import Streams
from maxflip.data.inputs import Batch
from maxflip.networks import SequenceNetwork
from research.experiments.metrics import Floats, Labels
from research.experiments.packed import Packed, called, logits_of

Score = Callable[[Floats, Labels], float]
LONGEST_STEP = 1.0  # norm that gradients are cut to: single extreme measurements must not throw the weights about


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train.

    dropout: of what the head reads   hidden_share: of the measurements, at random in each batch, taken for missing
    averaging: weights that are judged and kept are a moving average, of which each step renews 1 - averaging
    """

    rate: float = 1e-3
    decay: float = 0.0
    dropout: float = 0.0
    hidden_share: float = 0.0
    averaging: float = 0.0
    batch: int = 64
    epochs: int = 40
    patience: int = 6


@dataclass(frozen=True)
class Epoch:
    number: int
    loss: float
    inner: float  # the score on the inner validation part
    best: bool


def seeded(build: Callable[[], SequenceNetwork], seed: int) -> SequenceNetwork:
    """A new network whose first weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(Streams(seed).key("weights"))
        return build()


def fit(
    net: SequenceNetwork,
    data: Packed,
    train: Tensor,
    inner: Tensor,
    recipe: Recipe,
    score: Score,
    seed: int,
    tell: Callable[[Epoch], None] = lambda _: None,
) -> list[Epoch]:
    """Train on some rows of the data; leaves the network in eval mode with the weights that were best on `inner`."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    averaged = _copy(net)
    streams, history = Streams(seed), list[Epoch]()
    best, best_weights = -np.inf, _copy(net)
    for number in range(recipe.epochs):
        chance = streams.torch("epoch", number)
        net.train()
        total = 0.0
        with dropping(net, recipe.dropout, chance):
            for rows in data.shuffled(train, recipe.batch, chance):
                batch = thinned(data.batch(rows), recipe.hidden_share, chance)
                loss = functional.cross_entropy(called(net, batch), data.labels[rows])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(net.parameters(), LONGEST_STEP)
                optimizer.step()
                total += loss.item() * len(rows)
                for name, tensor in net.state_dict().items():
                    averaged[name].lerp_(tensor, 1 - recipe.averaging)
        walking = _copy(net)
        net.load_state_dict(averaged)
        now = score(logits_of(net, data, inner), data.labels[inner].numpy())
        epoch = Epoch(number, total / len(train), now, now > best)
        history.append(epoch)
        tell(epoch)
        if epoch.best:
            best, best_weights = now, _copy(net)
        net.load_state_dict(walking)
        if number - max(e.number for e in history if e.best) >= recipe.patience:
            break
    net.load_state_dict(best_weights)
    net.eval()
    return history


def thinned(batch: Batch, share: float, chance: torch.Generator) -> Batch:
    """The batch without some of its measurements."""
    if not share:
        return batch
    kept = batch.observed & (torch.rand(batch.observed.shape, generator=chance) >= share)
    return Batch(torch.where(kept, batch.x, 0.0), kept, batch.time, batch.length, batch.static)


@contextmanager
def dropping(net: SequenceNetwork, share: float, chance: torch.Generator) -> Iterator[None]:
    """Inside, a share of what the network's head reads is 0, and the rest larger by as much."""

    def drop(_head: nn.Module, given: tuple[Tensor]) -> Tensor:
        kept = torch.rand(given[0].shape, generator=chance) >= share
        return given[0] * kept / (1 - share)

    hook = net.get_submodule("head").register_forward_pre_hook(drop) if share else None
    try:
        yield
    finally:
        if hook is not None:
            hook.remove()


def _copy(net: SequenceNetwork) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}
