"""TorchClassifier: any torch module that maps a batch to one output column per class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import torch

from maxflip.classifiers.affine import linear_form
from maxflip.classifiers.base import LinearForm, Scores
from maxflip.classifiers.snapshot import ModuleSnapshot
from maxflip.errors import InputError, ModelError, ResourceError
from maxflip.suggest import first_line


@dataclass(frozen=True, eq=False, init=False)
class TorchClassifier:
    """A module (B, F) -> (B, k), in any dtype, on any device.

    `output` says what the k columns are: "logits", "probabilities", or "decision" (scores of no probability, as those
    of support vector machines: a margin is then in their own units); it is never guessed. A model with a single
    logit z, or a single decision value, returns [0, z]. dtype and device follow the module's parameters unless given.
    The module is used in eval mode and left as it was found.
    """

    module: Callable[[Any], Any]
    output: Scores
    classes: tuple[str, ...] | None
    dtype: torch.dtype
    device: torch.device
    batch_size: int
    apart: float

    def __init__(
        self,
        module: Any,
        *,
        output: Scores,
        classes: Sequence[str] | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        batch_size: int = 8192,
    ) -> None:
        faults = []
        if not callable(module):
            faults.append(f"module must be a torch module, got {type(module).__name__}.")
        if output not in get_args(Scores):
            faults.append(f"output must be 'logits', 'probabilities' or 'decision', got {output!r}.")
        if classes is not None and (isinstance(classes, str) or len(set(classes)) != len(classes)):
            faults.append(f"classes must be different names, one per output column, got {classes!r}.")
        if batch_size < 1:
            faults.append(f"batch_size must be at least 1, got {batch_size}.")
        if dtype is not None and not dtype.is_floating_point:
            faults.append(f"dtype must be a floating point type, got {dtype}.")
        if faults:
            raise InputError(faults)
        example = _example_tensor(module)
        settle = object.__setattr__
        settle(self, "module", module)
        settle(self, "output", output)
        settle(self, "classes", None if classes is None else tuple(classes))
        settle(self, "dtype", dtype or (example.dtype if example is not None else torch.get_default_dtype()))
        settle(self, "device", torch.device(device or (example.device if example is not None else "cpu")))
        settle(self, "batch_size", batch_size)
        settle(self, "apart", 0.0)

    @property
    def members(self) -> tuple[TorchClassifier]:
        return (self,)

    @property
    def is_decision(self) -> bool:
        return self.output == "decision"

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        parts = list(self.module.modules()) if isinstance(self.module, torch.nn.Module) else []
        modes = [(part, part.training) for part in parts]
        try:
            # An exported program refuses eval(): its graph has no mode any more.
            if isinstance(self.module, torch.nn.Module) and not isinstance(self.module, torch.fx.GraphModule):
                self.module.eval()
            with torch.inference_mode(False):  # where the caller is in that mode, nothing would have a gradient
                yield
        finally:
            for part, training in modes:
                part.training = training

    def raw(self, x: torch.Tensor) -> torch.Tensor:
        try:
            result: torch.Tensor = self.module(x.to(self.device, self.dtype))
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise ResourceError(
                f"the model ran out of memory on a batch of shape {tuple(x.shape)}. Give the classifier a smaller "
                f"batch_size than {self.batch_size}."
            ) from error
        except (Exception, SystemExit) as error:
            raise ModelError(
                f"the model raised {type(error).__name__} on a batch of shape {tuple(x.shape)}, {self.dtype}: "
                f"{first_line(error)}.{_remedy(self.module, x)}"
            ) from error
        return result

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        return self.raw(x).double() if self.is_decision else self.probabilities(x)

    def log_scores(self, x: torch.Tensor) -> torch.Tensor:
        return self.raw(x).double() if self.is_decision else self.log_probabilities(x)

    def probabilities(self, x: torch.Tensor) -> torch.Tensor:
        """(B, F) -> (B, k)"""
        out = self._probabilistic(x)
        return torch.softmax(out, dim=1) if self.output == "logits" else out

    def log_probabilities(self, x: torch.Tensor) -> torch.Tensor:
        """(B, F) -> (B, k)"""
        out = self._probabilistic(x)
        if self.output == "logits":
            return torch.log_softmax(out, dim=1)
        return torch.log(out.clamp_min(torch.finfo(torch.float64).tiny))

    def _probabilistic(self, x: torch.Tensor) -> torch.Tensor:
        if self.is_decision:
            raise InputError("output='decision': the model has decision values, no probabilities. Use scores(x).")
        return self.raw(x).double()

    def check_features(self, features: Sequence[str]) -> None:
        """A torch module does not say which columns it was trained on; the probe tries their number."""

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:  # noqa: ARG002
        return []

    def snapshot(self) -> ModuleSnapshot:
        return ModuleSnapshot(self.module)

    def linear(self, width: int) -> LinearForm | None:
        with self.borrowed(), torch.no_grad():
            return linear_form(self.module, width, self.output)


def _example_tensor(module: object) -> torch.Tensor | None:
    """The first floating point parameter or buffer: the model computes where and as that one does."""
    if not isinstance(module, torch.nn.Module):
        return None
    tensors = [*module.parameters(), *module.buffers()]
    return next((t for t in tensors if t.is_floating_point()), None)


def _remedy(module: object, x: torch.Tensor) -> str:
    """What the structure of the module says about a batch that it does not take."""
    if isinstance(module, torch.fx.GraphModule):
        examples = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
        widths = [int(e.shape[1]) for e in examples if isinstance(e, torch.Tensor) and e.ndim == 2]
        if widths and widths[0] != x.shape[1]:
            return f" It was exported for {widths[0]} features; the cohort has {x.shape[1]}."
        return (
            " An exported model must take any number of rows: "
            "torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim('rows')},))."
        )
    parts = list(module.modules()) if isinstance(module, torch.nn.Module) else []
    first = next((part for part in parts if isinstance(part, torch.nn.Linear)), None)
    if first is not None and first.in_features != x.shape[-1]:
        return f" Its first linear layer takes {first.in_features} features; the cohort has {x.shape[-1]}."
    return ""
