"""Members: who belongs to a group, which is a value of a column or a list of ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from maxflip._util.faults import Fault, Place, about
from maxflip._util.messages import counted, did_you_mean, shown
from maxflip._util.types import Mask
from maxflip.data.cohort import Cohort, plain_value
from maxflip.data.tables import is_listing

Group = tuple[str, str | float] | frozenset[str]  # (column, value), or ids
MOST_NAMED = 12  # values of a column that a message lists


def group_name(group: Any) -> str:
    """In words.

    >>> group_name(("sex", "F")), group_name(("tier", 2.0)), group_name(["P-1"])
    ("sex = 'F'", 'tier = 2', '1 person named by id')
    """
    if isinstance(group, tuple):
        column, value = group
        return f"{column} = {value!r}" if isinstance(value, str) else f"{column} = {value:.15g}"
    return f"{counted(len(group), 'person', 'people')} named by id"


def group_table(group: Any) -> dict[str, Any]:
    """As jobs and summary.json have it: `column` and `value`, or `ids`"""
    return {"column": group[0], "value": group[1]} if isinstance(group, tuple) else {"ids": sorted(group)}


def group_from_table(table: Mapping[str, Any]) -> Group:
    """The other way"""
    return (table["column"], table["value"]) if "column" in table else frozenset(table["ids"])


def read_group(place: Place, group: Any, cohort: Cohort) -> tuple[Group, Mask, list[Fault]]:
    """The group as values, who is in it (n,), and faults.

    A tuple is (column, value), of a feature or of another column of the cohort; any other listing has ids.
    """
    if isinstance(group, tuple):
        return _of_column(place, group, cohort)
    if not isinstance(group, (str, bytes)) and (is_listing(group) or isinstance(group, AbstractSet)):
        return _of_ids(place, group, cohort)
    nobody = np.zeros(len(cohort), dtype=bool)
    return frozenset(), nobody, [about(place, f"got {shown(group)}; wanted (column, value), or a list of ids.")]


def _of_ids(place: Place, group: Any, cohort: Cohort) -> tuple[Group, Mask, list[Fault]]:
    ids = frozenset(str(one) for one in group)
    inside = np.zeros(len(cohort), dtype=bool)
    unknown = sorted(ids - cohort.row_of.keys())
    inside[[cohort.row_of[one] for one in ids if one in cohort.row_of]] = True
    faults = [
        about(place, f"no sample has the id {shown(one)}.{did_you_mean(one, cohort.ids[:1000])}") for one in unknown
    ]
    if not ids:
        faults.append(about(place, "the list of ids is empty. Name at least one."))
    return ids, inside, faults


def _of_column(place: Place, group: tuple[Any, ...], cohort: Cohort) -> tuple[Group, Mask, list[Fault]]:
    nobody = np.zeros(len(cohort), dtype=bool)
    is_pair = len(group) == 2 and isinstance(group[0], str)
    if not is_pair or not isinstance(group[1], (str, bool, int, float, np.integer, np.floating, np.bool_)):
        says = f"got {shown(group)}; wanted (column, value) with a text or number as the value, or a list of ids."
        return frozenset(), nobody, [about(place, says)]
    column, value = group[0], plain_value(group[1])
    cells = cohort.column(column)
    if isinstance(group[1], (bool, np.bool_)) and cells is not None and value not in cells:
        value = float(group[1])  # flags of a frame are 0 and 1
    if cells is None:
        unknown = f"the cohort has no column {column!r}.{did_you_mean(column, cohort.columns)}"
        return (column, value), nobody, [about(place, unknown)]
    inside = np.array([type(cell) is type(value) and cell == value for cell in cells], dtype=bool)
    if inside.any():
        return (column, value), inside, []
    there = sorted({cell for cell in cells if cell is not None}, key=lambda cell: (str(type(cell)), cell))
    return (column, value), inside, [about(place, f"nobody has {_cell(value)} in column {column!r}. {_those(there)}")]


def _those(there: Collection[str | float]) -> str:
    names = [_cell(cell) for cell in there]
    rest = len(names) - MOST_NAMED
    return f"There are {', '.join(names[:MOST_NAMED])}{f' and {rest} more' if rest > 0 else ''}."


def _cell(cell: str | float) -> str:
    return repr(cell) if isinstance(cell, str) else f"{cell:.15g}"
