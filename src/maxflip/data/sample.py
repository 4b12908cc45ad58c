"""Rows of a cohort on which a model or a function is tried before it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from maxflip._util.types import Floats, Rows
from maxflip.data.inputs import Inputs, TableInputs

ROWS = 256


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows to try a model on: `inputs(device)`, in which every slot can be changed, and their row numbers `rows`.

    step (K,): a change of a typical size   size: of the largest value
    hint: remedy if a model's output for one row depends on other rows
    """

    inputs: Callable[[torch.device], Inputs]
    rows: Rows
    step: Floats
    size: float
    hint: str = ""

    @classmethod
    def of_table(cls, values: Floats, order: Rows | None = None) -> Sample:
        """values (n, F)   order (n,): rows by id, so that any order of a file gives the same guard; None: as given"""
        chosen = chosen_rows(len(values))
        rows = chosen if order is None else order[chosen]
        some = values[rows]
        with np.errstate(over="ignore"):
            spread = some.std(axis=0)

        def inputs(device: torch.device) -> Inputs:
            return TableInputs(torch.tensor(some, device=device), torch.arange(some.shape[1], device=device))

        return cls(inputs, rows, np.where(spread > 0, spread, 1.0), float(np.abs(some).max(initial=0.0)))


def chosen_rows(n: int) -> Rows:
    """At most ROWS of n, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(ROWS, n)).astype(np.int64))
