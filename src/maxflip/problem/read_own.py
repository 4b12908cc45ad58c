"""What budgets are given of each sample's own: fees, weights, and the part of the cohort that draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxflip._util.faults import BadCell, Fault, Kind, Place, about, bad_value, grouped, wrong
from maxflip._util.messages import did_you_mean, shown
from maxflip._util.types import Floats
from maxflip.data.cohort import Cohort, in_cohort_order, is_number, real_numbers
from maxflip.data.tables import is_listing
from maxflip.problem.budgets import Ways
from maxflip.problem.members import read_group
from maxflip.problem.own import Own, Part, Weight

NUMBER = "must be a finite number >= 0."
MANY = "must be a finite number >= 0, an array with one per sample, or the name of a column."
Faults = list[str | Fault]


def read_weight(given: Any, cohort: Cohort, place: Place) -> tuple[Weight | Ways, Faults]:
    """A weight of `uses`: a number, or Ways of two."""
    if not isinstance(given, Ways):
        return read_number(given, cohort, place)
    up, faults = read_number(given.up, cohort, (*place, "up"))
    down, more = read_number(given.down, cohort, (*place, "down"))
    return Ways(up, down), faults + more


def read_number(given: Any, cohort: Cohort, place: Place) -> tuple[Weight, Faults]:
    """A number >= 0, or one of each sample's own: an array, or the name of a column."""
    if is_number(given):
        return (float(given), []) if 0 <= given < math.inf else (0.0, [wrong(place, given, NUMBER)])
    if isinstance(given, str):
        return _from_column(given, cohort, place)
    array = given.values if isinstance(given, Own) else in_cohort_order(given, cohort)
    try:
        values = real_numbers(array) if is_listing(array) else None
    except (TypeError, ValueError, OverflowError):
        values = None
    if values is None:
        return 0.0, [wrong(place, given, MANY)]
    if values.shape != (len(cohort),):
        return 0.0, [about(place, f"shape {values.shape}; wanted one number per sample, ({len(cohort)},).")]
    faults = _bad_numbers(values, {}, cohort, ".".join(place))
    return (0.0, faults) if faults else (given if isinstance(given, Own) else Own(values), [])


def _from_column(name: str, cohort: Cohort, place: Place) -> tuple[Weight, Faults]:
    cells = cohort.column(name)
    if cells is None:
        unknown = f"the cohort has no column {name!r} with one number per sample.{did_you_mean(name, cohort.columns)}"
        return 0.0, [about(place, unknown)]
    values = np.array([cell if isinstance(cell, float) else np.nan for cell in cells])
    bad = {j: bad_value(cell) for j, cell in enumerate(cells) if not isinstance(cell, float)}
    faults = _bad_numbers(values, bad, cohort, f"{'.'.join(place)}: column {name!r}")
    return (0.0, faults) if faults else (Own(values, name), [])


def _bad_numbers(values: Floats, bad: dict[int, BadCell], cohort: Cohort, what: str) -> Faults:
    rows = np.flatnonzero(~(np.isfinite(values) & (values >= 0))).tolist()
    cells = {j: bad.get(j, BadCell(Kind.VALUE, f"{values[j]}")) for j in rows}
    return [*grouped(cells, lambda j, says: f"{what}, {cohort.where(j)}: {says}; {NUMBER}", what)]


def read_part(given: Any, cohort: Cohort, place: Place) -> tuple[Part | None, Faults]:
    """The part of the cohort that draws on a budget: (column, value), or a list of ids."""
    if isinstance(given, Part):  # of a budget that was read before
        fits = len(given.inside) == len(cohort)
        return given, [] if fits else [about(place, f"got {shown(given.name)}, of another cohort.")]
    group, inside, faults = read_group(place, given, cohort)
    return Part(group, inside), [*faults]
