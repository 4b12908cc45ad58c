"""Sparse Time LSTM: a long short-term memory with five kinds of input (a reconstruction)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from maxflip._util.messages import counted, did_you_mean, shown
from maxflip.errors import InputError
from maxflip.networks.base import Names, Numbers, SequenceNetwork
from maxflip.networks.steps import Steps

Columns = Sequence[int] | Sequence[str]


class SparseTimeLSTM(SequenceNetwork):
    """A RECONSTRUCTION of the Sparse Time LSTM of Stec, Klabjan and Utke (2018), not their code or exact equations.

    Columns of x: `sparse` ones write to the cell at steps where any of them is observed, `time` ones let part of its
    memory decay, and all others (dense) are inputs as in any LSTM. Static features: `static_time` ones let the last
    state decay, and all others are concatenated to it before the output layer. Columns are given by number, or by name
    if the network has names. Time columns are divided by their scale but not shifted, so that 0 means no time: their
    shift is set to 0. Timestamps of the steps are not used; add them as columns.
    """

    def __init__(
        self,
        inputs: Names,
        hidden: int,
        classes: Names = 2,
        static: Names = 0,
        *,
        sparse: Columns = (),
        time: Columns = (),
        static_time: Columns = (),
        shift: Numbers | None = None,
        scale: Numbers | None = None,
        static_shift: Numbers | None = None,
        static_scale: Numbers | None = None,
    ) -> None:
        super().__init__(
            *(inputs, hidden, classes, static),
            shift=shift,
            scale=scale,
            static_shift=static_shift,
            static_scale=static_scale,
        )
        self.takes = ("x", "observed", "length") + (("static",) if self.static else ())
        self.sparse = _numbers("sparse", sparse, self.inputs, self.features)
        self.time = _numbers("time", time, self.inputs, self.features)
        self.static_time = _numbers("static_time", static_time, self.static, self.static_features)
        if both := set(self.sparse) & set(self.time):
            raise InputError(f"columns {sorted(both)} are both sparse and time; wanted one of the two.")
        self.dense = [i for i in range(self.inputs) if i not in {*self.sparse, *self.time}]
        self.static_plain = [i for i in range(self.static) if i not in set(self.static_time)]
        if not self.dense:
            raise InputError("every column is sparse or time; wanted at least one dense one.")
        self.shift[self.time] = 0
        h = self.hidden
        self.gates = nn.Linear(len(self.dense), 4 * h)  # rows of i, f, o, g stacked
        self.recurrent = nn.Linear(h, 5 * h if self.sparse else 4 * h, bias=False)  # i, f, o, a (if sparse), g
        for weights in (self.gates.weight, self.gates.bias, self.recurrent.weight):
            nn.init.uniform_(weights, -(h**-0.5), h**-0.5)
        if self.sparse:
            self.sparse_gate = nn.Linear(len(self.sparse), h)
            self.sparse_value = nn.Linear(len(self.sparse), h)
        if self.time:
            self.fading = nn.Linear(len(self.time), h, bias=False)
            self.memory = nn.Linear(h, h)
        if self.static_time:
            self.static_shift[self.static_time] = 0
            self.static_fading = nn.Linear(len(self.static_time), h, bias=False)
        if self.static_plain:
            self.static_value = nn.Linear(len(self.static_plain), h)
        self.head = self.make_head(2 * h if self.static_plain else h)

    def arguments(self) -> dict[str, Any]:
        return super().arguments() | {"sparse": self.sparse, "time": self.time, "static_time": self.static_time}

    def forward(self, x: Tensor, observed: Tensor, length: Tensor, static: Tensor | None = None) -> Tensor:
        """x (B, T, F), observed (B, T, F), length (B,), static (B, S) -> (B, k)"""
        steps = Steps.of(length, x.shape[1])
        mask = steps.packed(observed)
        values = self.standard(steps.packed(x), mask)
        given, written, fades = self.gates(values[:, self.dense]), None, None
        if self.sparse:
            q = values[:, self.sparse]
            present = mask[:, self.sparse].any(dim=1, keepdim=True)
            written = torch.where(present, self.sparse_value(q).tanh(), 0.0)
            given = torch.cat([given[:, : -self.hidden], self.sparse_gate(q), given[:, -self.hidden :]], dim=1)
        if self.time:
            fades = -torch.expm1(-functional.relu(self.fading(values[:, self.time])))
        h = self._walk(steps, given, written, fades)
        known = self.standard_static(static)
        if known is None:
            return self.logits(self.head, h)
        if self.static_time:
            h = h * torch.exp(-functional.relu(self.static_fading(known[:, self.static_time])))
        plain = functional.relu(self.static_value(known[:, self.static_plain])) if self.static_plain else None
        return self.logits(self.head, h, plain)

    def _walk(self, steps: Steps, given: Tensor, written: Tensor | None, fades: Tensor | None) -> Tensor:
        """The last h of each sequence.   written: k q'   fades: 1 - gamma"""
        inward, size = self.recurrent.weight.t(), self.hidden
        h = c = given.new_zeros(steps.counts[0], size)
        ended = []
        parts = (repeat(None) if part is None else steps.split(part) for part in (written, fades))
        for gates, writes, fade in zip(steps.split(given), *parts, strict=False):
            if len(gates) < len(h):
                h, done = torch.split(h, [len(gates), len(h) - len(gates)])
                c = c[: len(gates)]
                ended.append(done)
            gates = torch.addmm(gates, h, inward)  # noqa: PLW2901
            i, f, o, *a = torch.split(gates[:, :-size].sigmoid(), size, dim=1)
            if fade is not None:
                c = torch.addcmul(c, fade, self.memory(c).tanh(), value=-1)
            c = torch.addcmul(i * gates[:, -size:].tanh(), f, c)
            if writes is not None:
                c = torch.addcmul(c, a[0], writes)
            h = o * c.tanh()
        return steps.final([*ended, h])


def _numbers(what: str, columns: Columns, size: int, names: tuple[str, ...] | None) -> list[int]:
    """Column numbers, ascending, from numbers or names."""
    found = []
    for column in columns:
        if isinstance(column, str) and column in (names or ()):
            found.append((names or ()).index(column))
        elif isinstance(column, int) and not isinstance(column, bool) and 0 <= column < size:
            found.append(column)
        else:
            hint = did_you_mean(column, names or ())
            raise InputError(f"{what}: {shown(column)} is none of the {counted(size, 'column')}.{hint}")
    if len(set(found)) < len(found):
        raise InputError(f"{what} names a column twice: {shown(columns)}.")
    return sorted(found)
