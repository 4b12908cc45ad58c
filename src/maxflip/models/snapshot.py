"""The stored state of a torch module: parameters, buffers and submodules."""

from __future__ import annotations

from typing import Any

import torch


class ModuleSnapshot:
    """Stores and restores the state of a torch module; does nothing for other objects."""

    def __init__(self, module: object) -> None:
        parts = list(module.modules()) if isinstance(module, torch.nn.Module) else []
        tables: list[dict[str, Any]] = [t for p in parts for t in (p._parameters, p._buffers, p._modules)]
        self._tables = [(table, dict(table)) for table in tables]
        tensors = [value for _, kept in self._tables for value in kept.values() if isinstance(value, torch.Tensor)]
        self._values = [(tensor, tensor.data.clone()) for tensor in tensors]

    def put_back(self) -> bool:
        altered = False
        for table, kept in self._tables:
            if list(table) != list(kept) or any(table[name] is not kept[name] for name in kept):
                altered = True
                table.clear()
                table.update(kept)
        for tensor, value in self._values:
            if not _same(tensor.data, value):
                altered = True
                if tensor.shape == value.shape:
                    tensor.data.copy_(value)  # in place, because other tensors may share its memory
                else:
                    tensor.data = value
        return altered


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are equal; NaN equals NaN."""
    return a.shape == b.shape and bool(torch.all((a == b) | ((a != a) & (b != b))))  # noqa: PLR0124
