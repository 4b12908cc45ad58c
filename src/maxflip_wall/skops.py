"""Safe loading of .skops files, for scikit-learn models.

A .skops file is a zip of NumPy arrays and a JSON tree, whose nodes name Python types and how to build them. skops
trusts and imports hundreds of types of scikit-learn. Here only the few types of convertible models are allowed, in
nodes that call nothing. The tree is checked as JSON before skops is imported, and recognised content is copied into a
new archive, which skops loads.
"""

import io
import json
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip_wall.allowlist import ALLOWED
from maxflip_wall.files import Refused, Unreadable, reading

SCHEMA = "schema.json"
LARGEST = 2 << 30  # unpacked size in bytes; larger files are refused
TYPES = {loader: frozenset(types.split()) for loader, types in ALLOWED["skops"].items()}
INSTALL = "Install it: pip install 'maxflip[sklearn]'"
ONE_JOB = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "null", "is_json": True}
REMEDY = (
    ". Only models that can be converted are opened, saved with skops.io.dump(model, 'model.skops'); of a search, save "
    "its best_estimator_"
)


@dataclass(frozen=True)
class LoadedEstimator:
    """A scikit-learn model that passed the audit."""

    estimator: Any
    notices: tuple[str, ...] = ()
    dtype: torch.dtype = torch.float64

    @property
    def features(self) -> list[str] | None:
        """The column names of the training data, if they had any."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def says(self) -> dict[str, Any]:
        """Entries of a job's [model] table that the file states."""
        output = "probabilities" if hasattr(self.estimator, "predict_proba") else "decision"
        return {"output": output, "classes": [str(label) for label in self.estimator.classes_]}

    def outputs(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, F) -> (n, k): predict_proba; for models without it decision_function d (for two classes [0, d]).

        NaN for rows that the model rejects, such as those with an unknown category.
        """
        rows = points if self.features is None else _frame(points, self.features)
        proba = self.says["output"] == "probabilities"
        try:
            with warnings.catch_warnings(action="ignore"):  # warnings about such categories
                ask = self.estimator.predict_proba if proba else self.estimator.decision_function
                output = np.asarray(ask(rows), dtype=np.float64)
            return output if output.ndim > 1 else np.column_stack([np.zeros_like(output), output])
        except ValueError:  # one such row fails the whole batch: split it
            if len(points) < 2:
                return np.full((len(points), len(self.estimator.classes_)), np.nan)
            half = len(points) // 2
            return np.concatenate([self.outputs(points[:half]), self.outputs(points[half:])])


def _frame(points: NDArray[np.float64], names: list[str]) -> Any:
    """A data frame, for models trained on named columns, which select columns by name."""
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(dict(zip(names, points.T, strict=True)))
        except ImportError:
            continue
    raise Unreadable(f"the model was trained on a table with names, which needs the package pandas. {INSTALL}")


def is_skops(data: bytes) -> bool:
    """Whether `data` is a zip with a schema.json, whatever the file is called."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return SCHEMA in archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):  # no zip, an unknown version, or damaged
        return False


def load_estimator(data: bytes, name: str) -> LoadedEstimator:
    """The scikit-learn estimator in `data`. Raises Refused or Unreadable."""
    archive = clean_archive(data, name)
    try:
        loads = import_module("skops.io").loads
    except ImportError as error:
        raise Unreadable(f"{name}: needs the package skops. {INSTALL}") from error
    with reading(f"{name}: passed the audit, but skops cannot load it"):
        with warnings.catch_warnings(record=True, action="always") as said:
            estimator = loads(archive, trusted=sorted(frozenset().union(*TYPES.values())))
        notices = {  # scikit-learn warns once per part of the model
            f"{name}: was trained with scikit-learn {warning.original_sklearn_version} and is run with "
            f"{warning.current_sklearn_version}, which may predict otherwise."
            for warning in (entry.message for entry in said)
            if hasattr(warning, "original_sklearn_version") and hasattr(warning, "current_sklearn_version")
        }
        return LoadedEstimator(estimator, tuple(sorted(notices)))


def clean_archive(data: bytes, name: str) -> bytes:
    """A new archive of what is recognised in `data`."""
    with reading(name, REMEDY):
        records = _records(data)
        tree = json.loads(records[SCHEMA])
        nodes = list(_nodes(tree))
        unknown = sorted({fault for node in nodes if (fault := _fault(node))})
        if unknown:
            raise Refused(f"holds what is not on the list of the harmless: {', '.join(unknown[:10])}")
        for array, content in records.items():
            _check_record(array, content)
        if missing := sorted({str(node["file"]) for node in nodes if "file" in node} - records.keys()):
            raise Unreadable(f"has no array {missing[0]!r:.120}")
        for content in (node["content"] for node in nodes if isinstance(node.get("content"), dict)):
            if "n_jobs" in content:  # no file may start processes
                content["n_jobs"] = ONE_JOB
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for array, content in (records | {SCHEMA: json.dumps(tree).encode()}).items():
                archive.writestr(array, content)
        return buffer.getvalue()


def _records(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        if len({info.filename for info in infos}) < len(infos):
            raise Refused("has two records with one name")
        if sum(info.file_size for info in infos) > LARGEST:
            raise Unreadable(f"unpacks to more than {LARGEST} bytes")
        return {info.filename: archive.read(info) for info in infos}


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every JSON table, at any depth, that names a loader. skops builds objects from these only."""
    if isinstance(value, dict):
        if "__loader__" in value:
            yield value
        for child in value.values():
            yield from _nodes(child)
    elif isinstance(value, list):
        for child in value:
            yield from _nodes(child)


def _fault(node: dict[str, Any]) -> str:
    """The type that the node may not name; empty if it is allowed."""
    loader, module, cls = (str(node.get(key))[:120] for key in ("__loader__", "__module__", "__class__"))
    if f"{module}.{cls}" not in TYPES.get(loader, frozenset()):
        return f"{module}.{cls} ({loader})"
    return ""


def _check_record(name: str, content: bytes) -> None:
    """Besides the tree, only arrays in NumPy's format without pickled objects are allowed."""
    if name == SCHEMA:
        return
    if not re.fullmatch(r"[\w-]{1,99}\.npy", name, re.ASCII) or not content.startswith(b"\x93NUMPY"):
        raise Refused(f"has the record {name!r:.120}, which is no NumPy array")
    head, npy = io.BytesIO(content), np.lib.format
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(head)]
    if read_header(head)[2].hasobject:
        raise Refused(f"{name} holds pickled objects, which run code when loaded")
