"""Entries of tables from files, with a clear ModelError where one is missing or of another kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.messages import shown
from maxflip.errors import ModelError


def entry(table: Mapping[str, Any], key: str, where: str = "") -> Any:
    if key not in table:
        raise ModelError(f"{where + ': ' if where else ''}{key} is missing")
    return table[key]


def table_in(table: Mapping[str, Any], key: str, where: str = "") -> Mapping[str, Any]:
    found = entry(table, key, where)
    if not isinstance(found, Mapping):
        raise ModelError(f"{where + ': ' if where else ''}{key}: wanted a table, got {shown(found)}")
    return found


def list_of(table: Mapping[str, Any], key: str, where: str = "") -> list[Any]:
    found = entry(table, key, where)
    if not isinstance(found, (list, np.ndarray)):
        raise ModelError(f"{where + ': ' if where else ''}{key}: wanted a list, got {shown(found)}")
    return list(found)


def numbers_in(table: Mapping[str, Any], key: str, where: str = "") -> NDArray[Any]:
    """Numbers, as a flat array."""
    found = entry(table, key, where)
    bad = f"{where + ': ' if where else ''}{key}: wanted a list of numbers, got {shown(found)}"
    if not isinstance(found, (list, np.ndarray)):
        raise ModelError(bad)
    try:
        numbers = np.asarray(found, dtype=None if len(found) else np.float64)
    except ValueError as error:
        raise ModelError(bad) from error
    if numbers.ndim != 1 or numbers.dtype.kind not in "iufb":
        raise ModelError(bad)
    return numbers


def text_in(table: Mapping[str, Any], key: str, where: str = "") -> str:
    found = entry(table, key, where)
    if not isinstance(found, str):
        raise ModelError(f"{where + ': ' if where else ''}{key}: wanted a text, got {shown(found)}")
    return found
