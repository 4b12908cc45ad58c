"""Models from disk, after the audit: loading a model is running a program unless shown otherwise.

The checks are in maxflip_wall, which the library and the auditor share.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import maxflip_wall
from maxflip._util.events import Notice, Watch, silent
from maxflip._util.messages import listed, shown
from maxflip._util.types import Scores
from maxflip.data.cohort import Cohort
from maxflip.errors import InputError, MaxflipError, ModelError, ProblemError, as_ours
from maxflip.models import Classifier, SklearnClassifier, TorchClassifier, TreeClassifier
from maxflip.models.trees.reading import read_tree_file
from maxflip.networks.store import parse_network


def read_model(path: Path) -> bytes:
    """The bytes at `path`, of a regular file that is not too large; they are audited where a model is made of them."""
    try:
        return maxflip_wall.read(path)
    except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
        raise as_ours(error) from error


def load_classifier(
    path: Path,
    *,
    data: bytes | None = None,
    output: Scores | None = None,
    classes: Sequence[str] | None = None,
    named: bool = True,
    watch: Watch = silent,
) -> TorchClassifier | TreeClassifier:
    """The model at `path`, its kind told by its content; `data` is that, where it was read already.

    A .pt2 needs `output` and `classes`: what its columns are, and their names, without which it goes where nothing is
    called by them (`named`). A .skops says both itself; what is given must agree, but classes may be called otherwise.
    Trees give probabilities; the files of LightGBM and XGBoost have no names of classes.
    """
    data = read_model(path) if data is None else data
    if maxflip_wall.is_tree_file(data):
        return _of_trees(data, path, output, classes, named=named)
    try:
        if _is_network(data):
            raise InputError(
                f"{path}: a .safetensors file holds a network for sequences, and the cohort is a table. Write "
                'kind = "sequences" in [cohort]; for a table, export the model as .pt2.'
            )
        loaded = maxflip_wall.load_model(data, str(path))
    except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
        raise as_ours(error) from error
    if isinstance(loaded, maxflip_wall.LoadedEstimator):
        for sentence in loaded.notices:
            watch(Notice(sentence))
        return _converted(loaded, path, output, classes)
    if output is None or (named and classes is None):
        wanted = {
            "output": "'logits', 'probabilities' or 'decision'",
            "classes": "the names of the model's output columns, in order",
        }
        asked = {"output": output, **({"classes": classes} if named else {})}
        absent = [key for key, given in asked.items() if given is None]
        raise ProblemError(
            [f"model.{key} is missing, and {path.name} does not say it; wanted {wanted[key]}." for key in absent]
        )
    return TorchClassifier(loaded.module, output=output, classes=classes, dtype=loaded.dtype)


def _of_trees(
    data: bytes, path: Path, output: Scores | None, classes: Sequence[str] | None, *, named: bool = False
) -> TreeClassifier:
    """The trees in a file; `named`: whether the job calls classes by names, which the file may not have."""
    found = read_tree_file(data, str(path))
    faults = []
    if output not in (None, "probabilities"):
        faults.append(f"model.output = {output!r}: {path.name} holds trees and gives probabilities. Leave it out.")
    own = found.classes or tuple(map(str, range(found.forest.n_classes)))
    if classes is not None and _misnamed(classes, own):
        faults.append(_other_classes(classes, own, path))
    if named and classes is None and found.classes is None:
        faults.append(
            f"model.classes is missing, and {path.name} does not say it; wanted the names of the "
            f"{found.forest.n_classes} classes, in order."
        )
    if faults:
        raise ProblemError(faults)
    return TreeClassifier(found, classes=classes)


def _is_network(data: bytes) -> bool:
    """Whether it is read as one. What only begins like one may be a program, of which the wall has more to say."""
    try:
        return maxflip_wall.is_safetensors(data) and bool(maxflip_wall.read_tensors(data, "").arrays)
    except maxflip_wall.Unreadable:
        return False


def load_sequence_classifier(
    path: Path,
    *,
    data: bytes | None = None,
    features: Sequence[str],
    static_features: Sequence[str] = (),
    output: Scores | None = None,
    classes: Sequence[str] | None = None,
) -> TorchClassifier:
    """The network at `path`; its file says what it returns and what it takes, and what is given must agree. `data` is
    what it holds, where it was read already."""
    data = read_model(path) if data is None else data
    try:
        if data.startswith(b"PK\x03\x04"):
            maxflip_wall.load_model(data, str(path))  # what is unsafe is told first
            raise InputError(
                f"{path}: a .pt2 has one length of sequences built in, and a .skops takes rows of a table. Save a "
                "network of maxflip.networks with save_network(net, 'model.safetensors')."
            )
        net = parse_network(data, str(path))
    except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
        raise as_ours(error) from error
    faults = _other_columns("features", net.inputs, net.features, features)
    faults += _other_columns("static features", net.static, net.static_features, static_features)
    if faults:
        raise ModelError([f"{path}: {fault}" for fault in faults])
    own = net.class_names or tuple(map(str, range(net.classes)))
    wrong = []
    if output not in (None, "logits"):
        wrong.append(f"model.output = {output!r}: {path.name} gives logits. Leave it out.")
    if classes is not None and _misnamed(classes, own):
        wrong.append(_other_classes(classes, own, path))
    if wrong:
        raise ProblemError(wrong)
    # In float64, as the auditor runs it: in float32 two programs may differ by more than a flip is ahead.
    return TorchClassifier(net.double(), output="logits", classes=net.class_names if classes is None else classes)


def load_judge(path: Path, asked: Classifier, people: Cohort) -> TorchClassifier | TreeClassifier:
    """Another model of the same question; what its file does not say is as in the model `asked`."""
    names = asked.classes
    try:
        if people.ragged is not None:
            static = people.ragged.static_features
            return load_sequence_classifier(path, features=people.features, static_features=static, classes=names)
        data = maxflip_wall.read(path)
        if maxflip_wall.is_tree_file(data):
            return _of_trees(data, path, None, names)
        loaded = maxflip_wall.load_model(data, str(path))
        if isinstance(loaded, maxflip_wall.LoadedEstimator):
            return _converted(loaded, path, None, names)
    except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
        raise as_ours(error) from error
    except MaxflipError as error:
        raise type(error)([f"judges: {sentence}" for sentence in error.problems]) from error
    if not isinstance(asked, TorchClassifier) or isinstance(asked, SklearnClassifier):
        raise InputError(
            f"judges: {path}: a .pt2 does not say what its columns are, and the problem's model is no torch module. "
            "Give TorchClassifier(module, output=...) instead."
        )
    return TorchClassifier(loaded.module, output=asked.output, classes=names, dtype=loaded.dtype)


def _other_columns(what: str, number: int, names: Sequence[str] | None, given: Sequence[str]) -> list[str]:
    """A sentence if the network was trained on others than those given."""
    if names is None:
        if number == len(given):
            return []
        return [f"the network takes {number} {what}; the job names {len(given)}: {listed(given) or 'none'}."]
    if list(names) == list(given):
        return []
    if sorted(names) == sorted(given):
        return [f"the network has its {what} in another order: {listed(names, 50)}. Name them in that order."]
    missing, more = [n for n in names if n not in given], [n for n in given if n not in names]
    return [
        f"the network was trained on other {what} than the job names."
        + (f" The job lacks {listed(missing)}." if missing else "")
        + (f" The network does not know {listed(more)}." if more else "")
    ]


def _converted(
    loaded: maxflip_wall.LoadedEstimator, path: Path, output: Scores | None, classes: Sequence[str] | None
) -> SklearnClassifier:
    try:
        classifier = SklearnClassifier(loaded.estimator, classes=classes)
    except (InputError, ModelError) as error:
        raise type(error)([f"{path}: {sentence}" for sentence in error.problems]) from error
    faults = []
    gives, own = loaded.says["output"], loaded.says["classes"]
    if output not in (None, gives):
        values = "decision values" if gives == "decision" else gives
        faults.append(
            f"model.output = {output!r}: {path.name} is a scikit-learn model and gives {values}. Leave it out."
        )
    if classes is not None and _misnamed(classes, own):
        faults.append(_other_classes(classes, own, path))
    if faults:
        raise ProblemError(faults)
    return classifier


def _other_classes(classes: Sequence[str], own: Sequence[str], path: Path) -> str:
    return (
        f"model.classes = {shown(list(classes))}: the classes of {path.name} are {listed(own)}. Leave it out, or "
        "give a name for each in that order."
    )


def _misnamed(classes: Sequence[str], own: Sequence[str]) -> bool:
    """Too many names, too few, or one that is the name of another class."""
    return len(classes) != len(own) or any(name != its and name in own for name, its in zip(classes, own, strict=True))
