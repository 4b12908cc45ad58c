"""TorchClassifier: any torch module that maps a batch to one output column per class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from maxflip.classifiers.affine import linear_form
from maxflip.classifiers.base import LinearForm
from maxflip.errors import InputError

Output = Literal["logits", "probabilities"]


@dataclass(frozen=True, eq=False, init=False)
class TorchClassifier:
    """A module (B, F) -> (B, k), in any dtype, on any device.

    `output` says what the k columns are: "logits" or "probabilities"; it is never guessed. A model with a single
    logit z returns [0, z]. dtype and device follow the module's parameters unless given. The module is
    used in eval mode and left as it was found.
    """

    module: Callable[[Any], Any]
    output: Output
    classes: tuple[str, ...] | None
    dtype: torch.dtype
    device: torch.device
    batch_size: int
    apart: float

    def __init__(
        self,
        module: Any,
        *,
        output: Output,
        classes: Sequence[str] | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        batch_size: int = 8192,
    ) -> None:
        faults = []
        if not callable(module):
            faults.append(f"module must be a torch module, got {type(module).__name__}.")
        if output not in get_args(Output):
            faults.append(f"output must be 'logits' or 'probabilities', got {output!r}.")
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

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        if not isinstance(self.module, torch.nn.Module):
            yield
            return
        modes = [(part, part.training) for part in self.module.modules()]
        try:
            # An exported program refuses eval(): its graph has no mode any more.
            if not isinstance(self.module, torch.fx.GraphModule):
                self.module.eval()
            yield
        finally:
            for part, training in modes:
                part.training = training

    def raw(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.module(x.to(self.device, self.dtype))
        return result

    def probabilities(self, x: torch.Tensor) -> torch.Tensor:
        out = self.raw(x).double()
        return torch.softmax(out, dim=1) if self.output == "logits" else out

    def log_probabilities(self, x: torch.Tensor) -> torch.Tensor:
        out = self.raw(x).double()
        if self.output == "logits":
            return torch.log_softmax(out, dim=1)
        return torch.log(out.clamp_min(torch.finfo(torch.float64).tiny))

    def check_features(self, features: Sequence[str]) -> None:
        """A torch module does not say which columns it was trained on; the probe tries their number."""

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:  # noqa: ARG002
        return []

    def state(self) -> list[torch.Tensor]:
        if not isinstance(self.module, torch.nn.Module):
            return []
        return [t.data for t in [*self.module.parameters(), *self.module.buffers()]]

    def linear(self, width: int) -> LinearForm | None:
        with self.borrowed(), torch.no_grad():
            return linear_form(self.module, width, self.output)


def _example_tensor(module: object) -> torch.Tensor | None:
    """The first floating point parameter or buffer: the model computes where and as that one does."""
    if not isinstance(module, torch.nn.Module):
        return None
    tensors = [*module.parameters(), *module.buffers()]
    return next((t for t in tensors if t.is_floating_point()), None)
