"""What a model reveals about its training columns: their names, and the statistics of its first scaler.

Only reliable sources are used: scikit-learn scalers of raw columns; `shift` and `scale` of maxflip's networks; and in
other torch modules a batch norm, or buffers such as `mean` and `std`, of a part that receives the raw values. Such
parts are found by calling the model with a few rows, or from the graph of an exported program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from maxflip._util.types import Floats
from maxflip.errors import ModelError
from maxflip.models.base import Member
from maxflip.models.torch_module import TorchClassifier
from maxflip.networks.base import SequenceNetwork

CENTRES, SPREADS = ("mean", "mu", "centre", "center"), ("std", "sd", "sigma", "spread")  # names of buffers
FORGOTTEN = 0.01  # a batch norm is untrained if its initial statistics still weigh more than this


@dataclass(frozen=True, eq=False)
class FittedOn:
    """centre, spread (F,): location and scale of each column in the model; NaN where unknown

    is_range: they come from the minimum and maximum (their middle, and a quarter of the range), not from mean and
    standard deviation   what: their source, in words
    """

    what: str
    centre: Floats
    spread: Floats
    is_range: np.ndarray[Any, np.dtype[np.bool_]]


def fitted_on(member: Member, x: torch.Tensor | None) -> FittedOn | None:
    """x (b, F): some rows of a table; None for sequences"""
    inner = getattr(member, "classifier", member)  # Tempered
    seen = getattr(inner, "seen", None)
    if seen is not None:
        known = seen.scaled
        return FittedOn(
            "the scaler inside the model",
            np.where(known, seen.centre, np.nan),
            np.where(known, seen.spread, np.nan),
            seen.is_range,
        )
    if not isinstance(inner, TorchClassifier) or not isinstance(inner.module, nn.Module):
        return None
    if x is None:
        return _of_network(inner)
    return _of_module(inner, inner.module, x)


def names_of(member: Member) -> Sequence[str] | None:
    """Training columns named by a torch module; None for other kinds of models, which are checked elsewhere."""
    module = getattr(getattr(member, "classifier", member), "module", None)
    names = getattr(module, "feature_names_in_", getattr(module, "feature_names", None))
    if isinstance(names, (list, tuple, np.ndarray)) and all(isinstance(name, str) for name in names):
        return list(names)
    return None


def _of_network(classifier: TorchClassifier) -> FittedOn | None:
    net = classifier.module
    if not isinstance(net, SequenceNetwork) or classifier.call is not None:
        return None
    return _of_tensors("the network's `shift` and `scale`", net.shift, net.scale)


def _of_module(classifier: TorchClassifier, module: nn.Module, x: torch.Tensor) -> FittedOn | None:
    if isinstance(module, torch.fx.GraphModule):
        return _of_graph(module, x.shape[1])
    if isinstance(module, torch.jit.ScriptModule):
        return None
    known = [(part, found) for part in module.modules() if (found := _statistics(part, x.shape[1])) is not None]
    if not known:
        return None
    given = x.to(classifier.device, classifier.dtype)
    raw: list[nn.Module] = []

    def note(part: nn.Module, arguments: tuple[Any, ...]) -> None:
        first = arguments[0] if arguments else None
        if isinstance(first, torch.Tensor) and first.shape == given.shape and torch.equal(first.to(given), given):
            raw.append(part)

    hooks = [part.register_forward_pre_hook(note) for part, _ in known]
    try:
        with classifier.borrowed(), torch.no_grad():
            out = classifier.raw(x)
    except ModelError:  # rows not yet tried by the probe; later calls report the error
        return None
    finally:
        for hook in hooks:
            hook.remove()
    for part, found in known:
        is_norm = isinstance(part, nn.BatchNorm1d)
        # Buffers with the width of the output may belong to the output.
        if part in raw and (is_norm or out.shape[-1] != x.shape[1]):
            return found
    return None


def _of_graph(module: torch.fx.GraphModule, width: int) -> FittedOn | None:
    """For an exported program: (x - centre) / spread, or a batch norm, applied to the input itself."""
    aten = torch.ops.aten
    for node in module.graph.nodes:
        first = _first(node)
        if node.target is aten.batch_norm.default and _is_input(first):
            mean, var = (_held(module, held) for held in node.args[3:5])
            batches = _held(module, str(node.args[3]).replace("running_mean", "num_batches_tracked"))
            if mean is not None and var is not None and len(mean) == width and not _is_new(batches, node.args[6]):
                return _of_tensors("the batch norm at the model's entrance", mean, var.sqrt())
        is_centred = getattr(first, "target", None) is aten.sub.Tensor and _is_input(_first(first))
        if node.target is aten.div.Tensor and is_centred:
            centre, spread = _held(module, first.args[1]), _held(module, node.args[1])
            if centre is not None and spread is not None and centre.numel() == spread.numel() == width:
                return _of_tensors("the scaler at the model's entrance", centre, spread)
    return None


def _first(node: Any) -> Any:
    """The first argument of a node of the graph."""
    return node.args[0] if isinstance(node, torch.fx.Node) and node.args else None


def _is_input(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and node.op == "placeholder"


def _held(module: torch.fx.GraphModule, node: Any) -> torch.Tensor | None:
    """The tensor that a node of the graph (given itself or by name) reads from the module."""
    if isinstance(node, str):
        node = next((other for other in module.graph.nodes if other.name == node), None)
    if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
        return None
    held: Any = module
    for name in str(node.target).split("."):
        held = getattr(held, name, None)
    return held if isinstance(held, torch.Tensor) else None


def _statistics(part: nn.Module, width: int) -> FittedOn | None:
    """Statistics stored in this part; they describe the columns if it receives the raw values."""
    if isinstance(part, nn.BatchNorm1d):
        if part.num_features != width or part.running_mean is None or part.running_var is None:
            return None
        if _is_new(part.num_batches_tracked, part.momentum):
            return None
        return _of_tensors("the batch norm at the model's entrance", part.running_mean, part.running_var.sqrt())
    buffers = dict(part.named_buffers(recurse=False))
    for centre in CENTRES:
        for spread in SPREADS:
            pair = [buffers.get(centre), buffers.get(spread)]
            if all(t is not None and t.is_floating_point() and t.numel() == width for t in pair):
                return _of_tensors(f"the model's buffers `{centre}` and `{spread}`", *pair)
    return None


def _of_tensors(what: str, centre: Any, spread: Any) -> FittedOn | None:
    middle, size = _floats(centre), _floats(spread)
    if not (np.isfinite(middle).all() and np.isfinite(size).all() and (size > 0).all()):
        return None
    known = size != 1.0  # 1: never set, or a constant column
    if not known.any():
        return None
    return FittedOn(
        what, np.where(known, middle, np.nan), np.where(known, size, np.nan), np.zeros(len(middle), dtype=bool)
    )


def _is_new(batches: torch.Tensor | None, momentum: float | None) -> bool:
    seen = 0 if batches is None else int(batches)
    return seen == 0 or (momentum is not None and (1 - momentum) ** seen > FORGOTTEN)


def _floats(tensor: torch.Tensor) -> Floats:
    return tensor.detach().double().flatten().cpu().numpy()
