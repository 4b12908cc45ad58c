"""Base class of the networks: sizes and names, values in raw units, static features, output logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxflip._util.messages import shown
from maxflip.errors import InputError

Names = int | Sequence[str]
Numbers = Sequence[float] | NDArray[Any] | Tensor


class SequenceNetwork(nn.Module):
    """Base class of the networks; a subclass maps the steps of a sequence to one state.

    Inputs are in the units of the cohort. Inside, they become (x - shift) / scale, and 0 where missing; time is divided
    by `time_scale`. Names of features or classes may be given in place of their numbers; files store them. With two
    classes there is one logit z, and the output is [0, z].
    """

    takes: tuple[str, ...]  # parts of a batch that are passed to the network, in order
    shift: Tensor
    scale: Tensor
    static_shift: Tensor
    static_scale: Tensor
    time_scale: Tensor

    def __init__(
        self,
        inputs: Names,
        hidden: int,
        classes: Names,
        static: Names,
        *,
        shift: Numbers | None,
        scale: Numbers | None,
        static_shift: Numbers | None,
        static_scale: Numbers | None,
        time_scale: float | None = None,
    ) -> None:
        super().__init__()
        faults: list[str] = []
        self.inputs, self.features = _size("inputs", inputs, 1, faults)
        self.static, self.static_features = _size("static", static, 0, faults)
        self.classes, self.class_names = _size("classes", classes, 2, faults)
        self.hidden, _ = _size("hidden", hidden, 1, faults)
        if faults:
            raise InputError(faults)
        self._keep("shift", shift, torch.zeros(self.inputs))
        self._keep("scale", scale, torch.ones(self.inputs))
        if time_scale is not None:
            self._keep("time_scale", time_scale, torch.ones(()))
        if self.static:
            self._keep("static_shift", static_shift, torch.zeros(self.static))
            self._keep("static_scale", static_scale, torch.ones(self.static))
        elif static_shift is not None or static_scale is not None:
            raise InputError("static_shift or static_scale is given, but static = 0: the network has no such features.")

    def arguments(self) -> dict[str, Any]:
        """Constructor arguments other than tensors, as stored in a file."""
        return {
            "inputs": _told(self.inputs, self.features),
            "hidden": self.hidden,
            "classes": _told(self.classes, self.class_names),
            "static": _told(self.static, self.static_features),
        }

    def standard(self, x: Tensor, observed: Tensor) -> Tensor:
        """Standardised values; 0 where missing, whatever x holds there."""
        return torch.where(observed, (x - self.shift) / self.scale, 0.0)

    def standard_static(self, static: Tensor | None) -> Tensor | None:
        if (static is not None) != bool(self.static):
            raise InputError(
                f"the network has {self.static} static features, but "
                + ("none were given." if static is None else "some were given.")
            )
        return None if static is None else (static - self.static_shift) / self.static_scale

    def make_head(self, width: int) -> nn.Linear:
        return nn.Linear(width, 1 if self.classes == 2 else self.classes)

    def logits(self, head: nn.Linear, *parts: Tensor | None) -> Tensor:
        """(B, k): logits of the parts that are not None, concatenated."""
        z: Tensor = head(torch.cat([part for part in parts if part is not None], dim=1))
        return torch.cat([torch.zeros_like(z), z], dim=1) if self.classes == 2 else z

    def value_faults(self) -> list[str]:
        """Errors in the tensors of the network, as sentences."""
        tensors = self.state_dict()
        faults = [f"{name} holds a value that is not finite." for name, t in tensors.items() if not t.isfinite().all()]
        for name in sorted({"scale", "static_scale", "time_scale"} & tensors.keys()):
            if not (tensors[name] > 0).all():
                faults.append(f"{name} must be above 0 everywhere, got {tensors[name].min().item()}.")
        return faults

    def _keep(self, name: str, given: Numbers | float | None, default: Tensor) -> None:
        """Register a buffer that training does not change; `default` gives its shape."""
        value = default if given is None else torch.as_tensor(given, dtype=default.dtype, device=default.device).clone()
        if value.shape != default.shape:
            raise InputError(f"{name} must have shape {tuple(default.shape)}, got {tuple(value.shape)}.")
        self.register_buffer(name, value)
        if not value.is_meta and (faults := self.value_faults()):
            raise InputError(faults)


def _size(what: str, given: Names, least: int, faults: list[str]) -> tuple[int, tuple[str, ...] | None]:
    """(number, names or None)"""
    names = None if isinstance(given, int | str) or not isinstance(given, Sequence) else tuple(given)
    if names is not None and (not all(isinstance(n, str) for n in names) or len(set(names)) < len(names)):
        faults.append(f"{what} must be different names, or their number, got {shown(given)}.")
        return least, None
    number = given if names is None else len(names)
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        faults.append(f"{what} must be a whole number >= {least}, got {shown(given)}.")
        return least, None
    return number, names


def _told(number: int, names: tuple[str, ...] | None) -> int | list[str]:
    return number if names is None else list(names)
