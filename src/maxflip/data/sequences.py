"""Ragged: sequences of different lengths, stacked in one table with a row per step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import Frozen, read_only
from maxflip._util.messages import counted, listed, shown
from maxflip._util.types import Floats

ALIKE = 10  # most sentences about one kind of fault


@dataclass(frozen=True, eq=False)
class Ragged(Frozen):
    """The rows of n sequences in a table of N rows, one per step.

    begin (n + 1,): sequence j has the rows begin[j] to begin[j + 1] - 1   times (N,)   static (n, S)
    """

    begin: NDArray[np.int64]
    times: Floats
    static: Floats
    static_features: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.begin) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(n,)"""
        return read_only(np.diff(self.begin))

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """(N,): the sequence of each row"""
        return read_only(np.repeat(np.arange(len(self)), self.lengths))

    def rows_of(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """The table's rows of these sequences, (sum of their lengths,), in order."""
        lengths = self.lengths[samples]
        first = np.repeat(self.begin[samples] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        return np.asarray(first + np.arange(lengths.sum()))


@dataclass(frozen=True, eq=False)
class Read:
    """The sequences read, stacked: values (N, F), NaN where missing."""

    values: Floats
    ragged: Ragged


def read_sequences(
    values: Any,
    observed: Any,
    times: Any,
    static: Any,
    *,
    features: Sequence[str] | None,
    static_features: Sequence[str] | None,
    who: Callable[[int], str],
) -> tuple[Read | None, list[str]]:
    """values, observed: a list of (T_j, F)   times: a list of (T_j,)   static (n, S)   who(j): name of sample j"""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or not len(values):
        return None, [f"values: got {shown(values)}; wanted a list with one (steps, features) array per sample."]
    parts, faults = _arrays("values", values, who, dimensions=2)
    if faults:
        return None, faults
    width = len(features) if features is not None else parts[0].shape[1]
    source = "`features` names" if features is not None else f"{who(0)} has"
    faults += _first(
        [j for j, part in enumerate(parts) if part.shape[1] != width],
        lambda j: f"values: {who(j)}: {counted(parts[j].shape[1], 'feature')}; {source} {width:,}.",
    )
    named = [column_names(one) for one in values]
    faults += _first(
        [j for j, own in enumerate(named) if own is not None and features is not None and own != list(features)],
        lambda j: f"values: {who(j)}: has the columns {listed(named[j] or [])}; wanted {listed(features or [])}.",
    )
    faults += _first(
        [j for j, part in enumerate(parts) if not len(part)],
        lambda j: (
            f"values: {who(j)}: has no steps. One without any measurement has one step, whose values are all NaN."
        ),
    )
    if not width:
        faults.append("values: there are no features. Each sequence needs at least one column.")
    if faults:
        return None, faults
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    begin = np.concatenate([[0], np.cumsum(lengths)])
    table = np.concatenate(parts)
    place = _Places(begin, who, features or [f"x{i}" for i in range(width)])
    faults += _first(
        np.argwhere(np.isinf(table)),
        lambda at: f"values: {place.of(*at)}: {table[*at]}; values must be finite, or NaN where missing.",
    )
    faults += _mask_faults(observed, table, lengths, place, who)
    stamps, time_faults = _times(times, lengths, place, who)
    fixed, names, static_faults = _static(static, static_features, len(parts), who)
    faults += time_faults + static_faults
    if faults:
        return None, faults
    ragged = Ragged(read_only(begin), read_only(stamps), read_only(fixed), names)
    return Read(read_only(table), ragged), []


@dataclass(frozen=True)
class _Places:
    begin: NDArray[np.int64]
    who: Callable[[int], str]
    features: Sequence[str]

    def of(self, row: int, column: int | None = None) -> str:
        """'P-7, step 3, column 'bp''; steps counted from 0, as in the plan's files"""
        j = int(np.searchsorted(self.begin, row, side="right")) - 1
        name = "" if column is None else f", column {self.features[column]!r}"
        return f"{self.who(j)}, step {row - self.begin[j]}{name}"


def _first(places: Sequence[Any] | NDArray[np.int64], sentence: Callable[[Any], str]) -> list[str]:
    """A sentence about each of the first faults, and the number of the others; there may be millions."""
    more = [f"... and {len(places) - ALIKE:,} more of this kind."] if len(places) > ALIKE else []
    return [sentence(place) for place in places[:ALIKE]] + more


def column_names(frame: Any) -> list[str] | None:
    """The column names of a pandas or polars frame; None if columns have no names."""
    names = list(getattr(frame, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _numbers(given: Any) -> Floats:
    """A new float64 array, NaN for masked entries. An error for texts, dates and complex numbers, which numpy would
    convert."""
    plain = given.detach().cpu().numpy() if hasattr(given, "detach") else given
    array = np.asarray(np.ma.filled(plain.astype(np.float64), np.nan) if np.ma.isMaskedArray(plain) else plain)
    if array.dtype.kind not in "buifO":
        raise TypeError(f"{array.dtype} are no numbers")
    return np.array(array, dtype=np.float64)


def _arrays(name: str, given: Any, who: Callable[[int], str], dimensions: int) -> tuple[list[Floats], list[str]]:
    parts: list[Floats] = []
    faults: list[str] = []
    wanted = "(steps, features)" if dimensions == 2 else "(steps,)"
    for j, one in enumerate(given):
        try:
            part = _numbers(one)
        except (TypeError, ValueError, OverflowError):
            faults.append(f"{name}: {who(j)}: got {shown(one)}; wanted numbers of shape {wanted}.")
            continue
        if part.ndim != dimensions:
            faults.append(f"{name}: {who(j)}: has the shape {part.shape}; wanted {wanted}.")
        parts.append(part)
    return parts, _first(faults, str)


def _mask_faults(
    observed: Any, table: Floats, lengths: NDArray[np.int64], place: _Places, who: Callable[[int], str]
) -> list[str]:
    if observed is None:
        return []
    if not hasattr(observed, "__len__") or len(observed) != len(lengths):
        return [f"observed: got {shown(observed)}; wanted one (steps, features) mask per sample."]
    masks, faults = _arrays("observed", observed, who, dimensions=2)
    if faults:
        return faults
    faults = _first(
        [j for j, mask in enumerate(masks) if mask.shape != (lengths[j], table.shape[1])],
        lambda j: (
            f"observed: {who(j)}: has the shape {masks[j].shape}; its values have {(int(lengths[j]), table.shape[1])}."
        ),
    )
    if faults:
        return faults
    mask = np.concatenate(masks)
    for row, i in np.argwhere((mask != 0) & (mask != 1))[:1]:
        return [f"observed: {place.of(row, i)}: {mask[row, i]}; wanted true or false."]
    faults = _first(
        np.argwhere((mask == 1) & np.isnan(table)),
        lambda at: f"observed: {place.of(*at)}: says that a value was measured, but it is NaN.",
    )
    faults += _first(
        np.argwhere((mask == 0) & ~np.isnan(table)),
        lambda at: (
            f"observed: {place.of(*at)}: says that nothing was measured, but the value is {table[*at]:g}. "
            "Make it NaN, or leave `observed` out."
        ),
    )
    return faults


def _times(
    times: Any, lengths: NDArray[np.int64], place: _Places, who: Callable[[int], str]
) -> tuple[Floats, list[str]]:
    """(N,): the times given, or 0, 1, 2, ... for each sequence."""
    if times is None:
        return np.concatenate([np.arange(length, dtype=np.float64) for length in lengths]), []
    if not hasattr(times, "__len__") or len(times) != len(lengths):
        return np.empty(0), [f"times: got {shown(times)}; wanted one (steps,) array per sample."]
    parts, faults = _arrays("times", times, who, dimensions=1)
    if faults:
        return np.empty(0), faults
    faults = _first(
        [j for j, part in enumerate(parts) if len(part) != lengths[j]],
        lambda j: f"times: {who(j)}: {counted(len(parts[j]), 'time')} for {counted(int(lengths[j]), 'step')}.",
    )
    if faults:
        return np.empty(0), faults
    stamps = np.concatenate(parts)
    bad = np.flatnonzero(~np.isfinite(stamps))
    if len(bad):
        return stamps, _first(bad, lambda row: f"times: {place.of(row)}: {stamps[row]}; times must be finite.")
    goes_on = np.ones(len(stamps), dtype=bool)
    goes_on[place.begin[:-1]] = False
    back = 1 + np.flatnonzero((np.diff(stamps) < 0) & goes_on[1:])
    return stamps, _first(
        back,
        lambda row: (
            f"times: {place.of(row)}: time goes backwards, {stamps[row]:.15g} after {stamps[row - 1]:.15g}. "
            "Sort the steps."
        ),
    )


def _static(
    static: Any, names: Sequence[str] | None, n: int, who: Callable[[int], str]
) -> tuple[Floats, tuple[str, ...], list[str]]:
    if static is None:
        faults = [f"static_features: {shown(names)} are named, but there is no `static`."] if names else []
        return np.empty((n, 0)), (), faults
    try:
        fixed = _numbers(static)
    except (TypeError, ValueError, OverflowError):
        return np.empty((n, 0)), (), [f"static: got {shown(static)}; wanted numbers of shape ({n}, static features)."]
    if fixed.ndim != 2 or len(fixed) != n:
        return fixed, (), [f"static: has the shape {fixed.shape}; wanted ({n}, static features)."]
    given = tuple(names) if names is not None else tuple(f"s{i}" for i in range(fixed.shape[1]))
    if len(given) != fixed.shape[1]:
        held = counted(fixed.shape[1], "column")
        return fixed, given, [f"static_features: {counted(len(given), 'name')} for {held} of `static`."]
    faults = _first(
        np.argwhere(~np.isfinite(fixed)),
        lambda at: (
            f"static: {who(at[0])}, column {given[at[1]]!r}: {fixed[*at]}; static values must be finite numbers."
        ),
    )
    return fixed, given, faults
