"""Which reader reads a model: told by the object's library, or by a file's content."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maxflip_wall
from maxflip._util.messages import first_line, shown
from maxflip.errors import InputError, ModelError, as_ours
from maxflip.models.trees import catboost, lightgbm, sklearn, xgboost
from maxflip.models.trees.build import Read

OBJECTS: dict[str, Callable[[Any], Read]] = {
    "lightgbm": lightgbm.from_object,
    "xgboost": xgboost.from_object,
    "catboost": catboost.from_object,
    "sklearn": sklearn.from_object,
}
FILES: dict[str, Callable[[Any], Read]] = {
    "lightgbm": lightgbm.from_text,
    "xgboost": xgboost.from_tables,
    "catboost": catboost.from_tables,
}
WANTED = (
    "a fitted model of LightGBM, XGBoost or CatBoost, a forest or gradient boosting of scikit-learn, or the path of a "
    "file that one of the first three saved"
)


def read_trees(model: Any) -> Read:
    """The trees of a fitted model, or of the file at a path. Raises MaxflipError; a model's faults name its class."""
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        try:
            return read_tree_file(maxflip_wall.read(path), str(path))
        except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
            raise as_ours(error) from error
    kind = type(model).__name__
    library = _library(model)
    if library is None or (library == "sklearn" and not sklearn.is_read(model)):
        raise InputError(f"model: got {shown(model)}; wanted {WANTED}.")
    try:
        return OBJECTS[library](model)
    except ModelError as error:
        raise ModelError([f"model: {kind}: {sentence}." for sentence in error.problems]) from error
    except Exception as error:  # attributes that differ from those of fit(), or a library's own refusal
        why = f"{type(error).__name__}: {first_line(error)}"
        raise ModelError(f"model: {kind} could not be read: {why}.") from error


def read_tree_file(data: bytes, name: str) -> Read:
    """The trees in the content of a file; `name` is used in messages."""
    try:
        found = maxflip_wall.parse_trees(data, name)
    except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
        raise as_ours(error) from error
    try:
        return FILES[found.library](found.content)
    except ModelError as error:
        raise ModelError([f"{name}: {sentence}." for sentence in error.problems]) from error


def _library(model: object) -> str | None:
    """The library of the model's class, or of one that it is made from."""
    modules = (of.__module__.partition(".")[0] for of in type(model).__mro__)
    return next((module for module in modules if module in OBJECTS), None)
