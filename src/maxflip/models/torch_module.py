"""TorchClassifier: any torch module that maps a batch, of rows or of sequences, to one output column per class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import torch

from maxflip._util.messages import counted, first_line, listed
from maxflip._util.types import Scores
from maxflip.data.inputs import Batch, Given
from maxflip.errors import InputError, ModelError, ResourceError
from maxflip.models.base import LinearForm
from maxflip.models.linear_form import linear_form
from maxflip.models.snapshot import ModuleSnapshot
from maxflip.networks.base import SequenceNetwork
from maxflip.networks.cudnn import differentiable_in_eval

Call = Callable[[Any, Batch], Any]
PLAIN = ("x", "length")  # default arguments of a module for sequences


@dataclass(frozen=True, eq=False, init=False)
class TorchClassifier:
    """A torch module (B, F) -> (B, k), in any dtype, on any device. It is used in eval mode; its state is restored.

    For sequences it is called as net(batch.x, batch.length): (B, T, F), padded, and (B,). A module with an attribute
    `takes`, a list of such names (x, observed, time, length, static), is called with these; `call` overrides both.

    Args:
        module: one output column per class. A model with a single logit z, or decision value, returns [0, z].
        output: what the k columns are: "logits", "probabilities", or "decision" (scores that are no probabilities, such
            as those of support vector machines; a margin is then in their units). It is never guessed.
        call: call(net, batch) -> (B, k), where the batch also has .observed, .time and .static.
        classes: names of the k columns; None: the module's `class_names` (maxflip.networks), or numbers.
        dtype: dtype of its input; None: that of its parameters.
        device: device of the module; None: that of its parameters.
        batch_size: largest number of rows per call; for sequences, a quarter of the number of steps.
    """

    module: Callable[..., Any]
    call: Call | None
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
        call: Any = None,
        classes: Sequence[str] | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        batch_size: int = 8192,
    ) -> None:
        faults = []
        if not callable(module):
            faults.append(f"module must be a torch module, got {type(module).__name__}.")
        if call is not None and not callable(call):
            faults.append(f"call must be a function of the module and a batch, got {type(call).__name__}.")
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
        assign = object.__setattr__
        assign(self, "module", module)
        assign(self, "call", call)
        assign(self, "output", output)
        names = classes if classes is not None else getattr(module, "class_names", None)
        assign(self, "classes", None if names is None else tuple(names))
        assign(self, "dtype", dtype or (example.dtype if example is not None else torch.get_default_dtype()))
        assign(self, "device", torch.device(device or (example.device if example is not None else "cpu")))
        assign(self, "batch_size", batch_size)
        assign(self, "apart", 0.0)

    @property
    def members(self) -> tuple[TorchClassifier]:
        return (self,)

    @property
    def is_decision(self) -> bool:
        return self.output == "decision"

    @property
    def has_gradients(self) -> bool:
        return True

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        parts = list(self.module.modules()) if isinstance(self.module, torch.nn.Module) else []
        modes = [(part, part.training) for part in parts]
        try:
            # An exported program does not support eval(): its graph has no mode.
            if isinstance(self.module, torch.nn.Module) and not isinstance(self.module, torch.fx.GraphModule):
                self.module.eval()
            # In the inference mode of a caller, there would be no gradients.
            with torch.inference_mode(False), differentiable_in_eval(torch.nn.ModuleList(parts[:1])):
                yield
        finally:
            for part, training in modes:
                part.training = training

    def raw(self, x: Given) -> torch.Tensor:
        try:
            given = x.to(self.device, self.dtype)
            result: torch.Tensor = self._of_sequences(given) if isinstance(given, Batch) else self.module(given)
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

    def _of_sequences(self, batch: Batch) -> Any:
        if self.call is not None:
            return self.call(self.module, batch)
        return self.module(*(getattr(batch, name) for name in self._takes))

    @property
    def _takes(self) -> tuple[str, ...]:
        return tuple(getattr(self.module, "takes", PLAIN))

    def scores(self, x: Given) -> torch.Tensor:
        return self.raw(x).double() if self.is_decision else self.probabilities(x)

    def log_scores(self, x: Given) -> torch.Tensor:
        return self.raw(x).double() if self.is_decision else self.log_probabilities(x)

    def probabilities(self, x: Given) -> torch.Tensor:
        """(B, F) -> (B, k)"""
        out = self._probabilistic(x)
        return torch.softmax(out, dim=1) if self.output == "logits" else out

    def log_probabilities(self, x: Given) -> torch.Tensor:
        """(B, F) -> (B, k)"""
        out = self._probabilistic(x)
        if self.output == "logits":
            return torch.log_softmax(out, dim=1)
        return torch.log(out.clamp_min(torch.finfo(torch.float64).tiny))

    def _probabilistic(self, x: Given) -> torch.Tensor:
        if self.is_decision:
            raise InputError("output='decision': the model has decision values, no probabilities. Use scores(x).")
        return self.raw(x).double()

    def check_features(self, features: Sequence[str]) -> None:
        """Checks the names for networks of maxflip.networks. For other modules the probe checks their number."""
        if isinstance(self.module, SequenceNetwork) and self.call is None:
            faults = _other_names("features", self.module.inputs, self.module.features, features, "x")
            if faults:
                raise ModelError(faults)

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:  # noqa: ARG002
        return []

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:
        if isinstance(self.module, torch.fx.GraphModule):
            return [
                "classifier: an exported program (.pt2) has one length of sequences built in. Give the module itself, "
                "or one of maxflip.networks as a .safetensors file."
            ]
        if some_missing and self.call is None and "observed" not in self._takes:
            return [
                "classifier: some values are missing, and the model is called net(x, length), which cannot tell them "
                "from 0. Give TorchClassifier a call that passes batch.observed too; or, if 0 is what the model was "
                "trained with, call=lambda net, batch: net(batch.x, batch.length)."
            ]
        if isinstance(self.module, SequenceNetwork) and self.call is None and self.module.static:
            net = self.module
            return _other_names("static features", net.static, net.static_features, static_features, "s")
        return []

    def snapshot(self) -> ModuleSnapshot:
        return ModuleSnapshot(self.module)

    def linear(self, width: int) -> LinearForm | None:
        with self.borrowed(), torch.no_grad():
            return linear_form(self.module, width, self.output)


def _other_names(what: str, number: int, names: Sequence[str] | None, given: Sequence[str], letter: str) -> list[str]:
    """The error if a network was trained on other names or another order; x0, x1, ... do not count as names."""
    unnamed = list(given) == [f"{letter}{i}" for i in range(len(given))]
    if len(given) == number and (unnamed or names is None or list(given) == list(names)):
        return []
    own = f"{number} {what}" + (f": {listed(names)}" if names else "")
    order = " Put them in the network's order." if names and sorted(given) == sorted(names) else ""
    return [f"the network takes {own}; the cohort has {len(given)}: {listed(given) or 'none'}.{order}"]


def _example_tensor(module: object) -> torch.Tensor | None:
    """The first floating point parameter or buffer, which gives the model's device and dtype."""
    if not isinstance(module, torch.nn.Module):
        return None
    tensors = [*module.parameters(), *module.buffers()]
    return next((t for t in tensors if t.is_floating_point()), None)


def _remedy(module: object, x: Given) -> str:
    """A hint, from the structure of the module, on why it rejects the batch."""
    if isinstance(x, Batch):
        return (
            " A module of sequences is called net(x, length); give TorchClassifier another `call` if it wants others."
        )
    if isinstance(module, torch.fx.GraphModule):
        examples = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
        widths = [int(e.shape[1]) for e in examples if isinstance(e, torch.Tensor) and e.ndim == 2]
        if widths and widths[0] != x.shape[1]:
            return f" It was exported for {counted(widths[0], 'feature')}; the cohort has {x.shape[1]}."
        return (
            " An exported model must take any number of rows: "
            "torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim('rows')},))."
        )
    parts = list(module.modules()) if isinstance(module, torch.nn.Module) else []
    first = next((part for part in parts if isinstance(part, torch.nn.Linear)), None)
    if first is not None and first.in_features != x.shape[-1]:
        return f" Its first linear layer takes {counted(first.in_features, 'feature')}; the cohort has {x.shape[-1]}."
    return ""
