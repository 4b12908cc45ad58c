"""The target and the margin or threshold as a user gives them: read, and what is wrong with them.

Jobs are checked by it before torch is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.faults import Fault, about, wrong
from maxflip._util.messages import did_you_mean, listed, shown


def requirement_faults(margin: Any, threshold: Any, is_decision: bool = False) -> list[Fault]:
    """Exactly one of the two, inside its interval."""
    if (margin is None) == (threshold is None):
        got = "both" if margin is not None else "neither"
        return [about("margin", f"give one of the two; got {got}.", ("threshold",))]
    if is_decision and threshold is not None:
        return [
            wrong(
                "threshold",
                threshold,
                "a threshold is a probability, and this classifier gives decision values. Give a margin, in the units "
                "of its decision values; or calibrate the model.",
            )
        ]
    name, value, low_open = ("margin", margin, False) if margin is not None else ("threshold", threshold, True)
    interval = "(0, 1)" if low_open else "[0, 1)"
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if is_decision:
        fits = is_number and 0 <= value < math.inf
        return [] if fits else [wrong("margin", value, "must be a finite number >= 0, in units of decision values.")]
    if not is_number or not (0 < value < 1 or (value == 0 and not low_open)):
        return [wrong(name, value, f"must lie in {interval}; it is a probability.")]
    return []


def resolve_target(target: Any, n: int, k: int, names: tuple[str, ...] | None) -> tuple[Any, Any, list[Fault]]:
    """(wanted mask, label distributions or None, faults) from a column, name, set, one per sample, or (n, k) array."""
    if isinstance(target, (str, int, np.integer)) and not isinstance(target, bool):
        column, fault = _column(target, k, names)
        return _one_hot([[column]], k), None, [about("target", fault)] if fault else []
    if isinstance(target, AbstractSet):
        found = [_column(t, k, names) for t in sorted(target, key=str)]
        faults = [about("target", fault) for _, fault in found if fault]
        if not target or (not faults and len({c for c, _ in found}) >= k):
            faults.append(
                about("target", f"{len(target)} of {k} classes wanted; want at least one and leave one unwanted.")
            )
        return _one_hot([[c for c, _ in found]], k), None, faults
    if hasattr(target, "detach"):
        target = target.detach().cpu().numpy()
    if isinstance(target, Sequence) or hasattr(target, "__array__") or hasattr(target, "to_list"):
        array = np.asarray(target.to_list() if hasattr(target, "to_list") else target)
        return _distributions(array, n, k) if array.ndim == 2 else _per_sample(array, n, k, names)
    classes = f" The classes are {listed(names)}." if names else ""
    wanted = f"wanted an output column (0 to {k - 1}), a class name (a text), a set, or one per sample."
    return None, None, [about("target", f"got {shown(target)}; {wanted}{classes}")]


def _column(target: Any, k: int, names: tuple[str, ...] | None) -> tuple[int, str]:
    """(output column, fault)"""
    if isinstance(target, str):
        if names is None and target in map(str, range(k)):  # as a job may write it
            return int(target), ""
        if names is None:
            return (
                0,
                f"{target!r} is a name, but the classifier has none. Give it classes=[...], or use a column number.",
            )
        if target not in names:
            return (
                0,
                f"no class is called {target!r}; there are {listed(names)}.{did_you_mean(target, names)}",
            )
        return names.index(target), ""
    if isinstance(target, (int, np.integer)) and not isinstance(target, bool) and 0 <= target < k:
        return int(target), ""
    return 0, f"{shown(target)} is no output column; the model has columns 0 to {k - 1}."


def _one_hot(columns: list[list[int]], k: int) -> NDArray[np.bool_]:
    wanted = np.zeros((len(columns), k), dtype=bool)
    for row, chosen in zip(wanted, columns, strict=True):
        row[chosen] = True
    return wanted


def _per_sample(array: NDArray[Any], n: int, k: int, names: tuple[str, ...] | None) -> tuple[Any, Any, list[Fault]]:
    if array.ndim != 1 or len(array) != n:
        return (
            None,
            None,
            [about("target", f"shape {array.shape}; wanted one per sample, ({n},), or distributions, ({n}, {k}).")],
        )
    if array.dtype.kind == "f" and np.all(array == np.floor(array)):
        array = array.astype(np.int64)
    columns: dict[Any, tuple[int, str]] = {}
    for value in array.tolist():
        if value not in columns:
            columns[value] = _column(value, k, names)
    faults = [about("target", fault) for _, fault in columns.values() if fault]
    wanted = np.zeros((n, k), dtype=bool)
    wanted[np.arange(n), [columns[v][0] for v in array.tolist()]] = True
    return wanted, None, faults


def _distributions(array: NDArray[Any], n: int, k: int) -> tuple[Any, Any, list[Fault]]:
    """The paper's label vectors: the wanted class is the likeliest (the first of equals)."""
    if array.shape != (n, k):
        return None, None, [about("target", f"shape {array.shape}; label distributions must be ({n}, {k}).")]
    values = array.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)).all(axis=1) | (np.abs(values.sum(axis=1) - 1) > 1e-6))
    if len(bad):
        return (
            None,
            None,
            [about("target", f"row {bad[0] + 1} is no distribution (>= 0, sum 1); {len(bad)} such rows.")],
        )
    wanted = np.zeros((n, k), dtype=bool)
    wanted[np.arange(n), values.argmax(axis=1)] = True
    return wanted, values, []
