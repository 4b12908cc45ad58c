"""scikit-learn models from .skops files, after an audit of our own.

A .skops file is a zip of a tree in JSON, whose nodes name Python types and how to build them, and of NumPy arrays.
skops trusts hundreds of types of scikit-learn and imports what it trusts; here only the few that a convertible model is
made of may be named, in nodes that call nothing. The tree is read as JSON before skops itself is imported, and what
is recognised goes into a new archive: skops never sees the file.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from maxflip.classifiers.sklearn_model import SklearnClassifier
from maxflip.errors import InputError, UnsafeError
from maxflip.suggest import listed
from maxflip_wall import Refused, Unreadable, read, reading

SCHEMA = "schema.json"
LARGEST = 2 << 30  # bytes, unpacked
REMEDY = (
    ". Only models that can be converted are opened, saved with skops.io.dump(model, 'model.skops'); of a search, save "
    "its best_estimator_"
)

_SCALARS = "bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 str_ object_ number"
_NUMPY = {f"numpy.{name}" for name in _SCALARS.split()}
# Which types each kind of node may name. The nodes that call a function, a method or a constructor with arguments
# from the file are not here, and of objects only holders of data: skops makes them empty and sets their attributes.
ALLOWED = {
    "JsonNode": {"builtins.str"},
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SliceNode": {"builtins.slice"},
    "TypeNode": {"builtins.bool", "builtins.int", "builtins.float", "builtins.str", "builtins.object"} | _NUMPY,
    "NdArrayNode": {"numpy.ndarray"} | _NUMPY,
    "DTypeNode": {"numpy.dtype"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "ObjectNode": {
        "sklearn.calibration.CalibratedClassifierCV",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer.ColumnTransformer",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.decomposition._pca.PCA",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "sklearn.frozen._frozen.FrozenEstimator",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.linear_model._logistic.LogisticRegression",
        "sklearn.linear_model._logistic.LogisticRegressionCV",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.multiclass.OneVsRestClassifier",
        "sklearn.neural_network._multilayer_perceptron.MLPClassifier",
        # Numbers of the last training step; on no list of skops, but plain classes without __setstate__.
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.MaxAbsScaler",
        "sklearn.preprocessing._data.MinMaxScaler",
        "sklearn.preprocessing._data.RobustScaler",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.preprocessing._encoders.OneHotEncoder",
        "sklearn.preprocessing._function_transformer.FunctionTransformer",  # its function would be a node of its own
        "sklearn.preprocessing._label.LabelBinarizer",
        "sklearn.svm._classes.LinearSVC",
    },
}


def is_skops(data: bytes) -> bool:
    """By content, whatever the file is called."""
    if not data.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return SCHEMA in archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return False


def load_skops(path: Path, *, classes: Sequence[str] | None = None) -> SklearnClassifier:
    """The converted classifier; `classes`, where given, must be those of the model."""
    try:
        estimator = load_estimator(read(Path(path)), str(path))
    except Refused as error:
        raise UnsafeError(str(error)) from error
    except Unreadable as error:
        raise InputError(str(error)) from error
    classifier = SklearnClassifier(estimator)
    if classes is not None and tuple(classes) != classifier.classes:
        raise InputError(f"{path}: its classes are {listed(classifier.classes or ())}, not {listed(classes)}.")
    return classifier


def load_estimator(data: bytes, name: str) -> Any:
    """The scikit-learn estimator in `data`. Raises Refused or Unreadable."""
    archive = clean_archive(data, name)
    try:
        loads = import_module("skops.io").loads
    except ImportError as error:
        raise Unreadable(f"{name}: needs the package skops. Install it: pip install 'maxflip[sklearn]'") from error
    with reading(f"{name}: passed the audit, but skops cannot load it"):
        return loads(archive, trusted=sorted(set.union(*ALLOWED.values())))


def clean_archive(data: bytes, name: str) -> bytes:
    """A new archive of what is recognised in `data`."""
    with reading(name, REMEDY):
        if not is_skops(data):
            raise Refused("is no .skops file, and a pickle or joblib file could run a program when it is opened")
        records = _records(data)
        tree = json.loads(records[SCHEMA])
        nodes = list(_nodes(tree))
        strangers = sorted({fault for node in nodes if (fault := _fault(node))})
        if strangers:
            raise Refused(f"holds what is not on the list of the harmless: {', '.join(strangers[:10])}")
        arrays = {node["file"] for node in nodes if "file" in node}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(SCHEMA, json.dumps(tree))
            for array in sorted(arrays):
                archive.writestr(array, _checked_array(records, array))
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
    """Every table in the JSON that names a loader, wherever it hides: skops builds nothing else."""
    if isinstance(value, dict):
        if "__loader__" in value:
            yield value
        for child in value.values():
            yield from _nodes(child)
    elif isinstance(value, list):
        for child in value:
            yield from _nodes(child)


def _fault(node: dict[str, Any]) -> str:
    """The type that the node may not name, or nothing."""
    loader, module, cls = (str(node.get(key))[:120] for key in ("__loader__", "__module__", "__class__"))
    if f"{module}.{cls}" not in ALLOWED.get(loader, set()):
        return f"{module}.{cls} ({loader})"
    return ""


def _checked_array(records: dict[str, bytes], name: str) -> bytes:
    """NumPy's own format; NumPy refuses pickled objects in it, and skops asks it to."""
    if not re.fullmatch(r"[\w-]{1,99}\.npy", name, re.ASCII) or name not in records:
        raise Unreadable(f"has no array {name!r:.120}")
    if not records[name].startswith(b"\x93NUMPY"):
        raise Refused(f"{name} is no NumPy array")
    return records[name]
